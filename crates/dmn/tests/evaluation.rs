//! What decisions give and what is reported of them.

mod support;

use std::collections::BTreeSet;

use dmn::{DecisionType, MAXIMUM_EVALUATED_DECISIONS, parse};
use feel::{Environment, Value};
use support::{decision, evaluate, graph, literal, model, output, table, variables};

fn tabled(attributes: &str, outputs: &[&str], rules: &[&str], json: &str) -> String {
    output(&graph(&decision("d", &[], &table(attributes, &["x"], outputs, rules))), "d", json)
}

#[test]
fn hit_policies_decide_what_several_rules_give() {
    let rules = ["> 1 | 10", "> 2 | 30", "> 3 | 20"];
    for (policy, expected) in [
        ("hitPolicy=\"FIRST\"", "10"),
        ("hitPolicy=\"RULE ORDER\"", "[10,30,20]"),
        ("hitPolicy=\"COLLECT\"", "[10,30,20]"),
        ("hitPolicy=\"COLLECT\" aggregation=\"SUM\"", "60"),
        ("hitPolicy=\"COLLECT\" aggregation=\"MIN\"", "10"),
        ("hitPolicy=\"COLLECT\" aggregation=\"MAX\"", "30"),
        ("hitPolicy=\"COLLECT\" aggregation=\"COUNT\"", "3"),
        (
            "",
            "Expected to evaluate decision 'd', but multiple values aren't allowed for UNIQUE hit policy. found: \
              'List(Map(y -> 10), Map(y -> 30), Map(y -> 20))'",
        ),
        (
            "hitPolicy=\"ANY\"",
            "Expected to evaluate decision 'd', but different values aren't allowed for ANY hit policy. \
              found: 'List(Map(y -> 10), Map(y -> 30), Map(y -> 20))'",
        ),
    ] {
        assert_eq!(tabled(policy, &["y"], &rules, r#"{"x": 4}"#), expected, "{policy}");
        assert_eq!(tabled(policy, &["y"], &rules, r#"{"x": 0}"#), "null", "{policy}: no rule matches");
    }
    assert_eq!(tabled("", &["y"], &rules, r#"{"x": 2}"#), "10");
    assert_eq!(tabled("hitPolicy=\"ANY\"", &["y"], &["> 1 | 1.0", "> 2 | 1"], r#"{"x": 3}"#), "1");
    let texts = ["> 1 | \"a\"", "> 2 | \"b\""];
    assert_eq!(
        tabled("hitPolicy=\"COLLECT\" aggregation=\"SUM\"", &["y"], &texts, r#"{"x": 3}"#),
        "Expected to evaluate decision 'd', but expected number but found '\"a\"'"
    );
}

#[test]
fn of_a_first_table_all_tests_but_only_one_output_are_evaluated() {
    let first = |rules: &[&str]| {
        let logic = table("hitPolicy=\"FIRST\"", &["x"], &["y"], rules);
        evaluate(&graph(&decision("d", &[], &logic)), "d", "{\"x\": 3}")
    };
    let evaluation = first(&["> 5 | 0", "> 1 | 10", "> 2 | assert(20, false)"]);
    assert_eq!(evaluation.result.expect("the failing output is not reached").to_json(), "10");
    let matched: Vec<u32> = evaluation.evaluated_decisions[0].matched_rules.iter().map(|rule| rule.index).collect();
    assert_eq!(matched, [2]);
    let failure = first(&["> 1 | 10", "assert(?, false) | 20"]).result.expect_err("the test of the second rule fails");
    assert_eq!(failure.failed_rule, Some(2));
}

#[test]
fn messages_quote_ten_rows_and_outputs_without_a_name() {
    let rules: Vec<String> = (1..=11).map(|number| format!("- | {number}")).collect();
    let rules: Vec<&str> = rules.iter().map(|rule| &**rule).collect();
    let rows: Vec<String> = (1..=10).map(|number| format!("Map(null -> {number})")).collect();
    for (policy, problem) in [("UNIQUE", "multiple"), ("ANY", "different")] {
        let expected = |rows: &str| {
            format!(
                "Expected to evaluate decision 'd', but {problem} values aren't allowed for {policy} hit policy. found: \
                 'List({rows})'"
            )
        };
        let attribute = format!("hitPolicy=\"{policy}\"");
        assert_eq!(tabled(&attribute, &[""], &rules[..10], "{}"), expected(&rows.join(", ")));
        assert_eq!(tabled(&attribute, &[""], &rules, "{}"), expected(&(rows.join(", ") + ", …")));
    }
}

#[test]
fn priorities_are_the_order_of_the_output_values() {
    let outputs = [
        "risk <outputValues><text>\"high\", \"a, b\", \"low\"</text></outputValues>",
        "level <outputValues><text>3, 20, 1</text></outputValues>",
    ];
    let rules = ["> 0 | \"low\"; 3", "> 0 | \"other\"; 3", "> 0 | \"a, b\"; 1", "> 0 | \"a, b\"; 20"];
    assert_eq!(tabled("hitPolicy=\"PRIORITY\"", &outputs, &rules, r#"{"x": 1}"#), r#"{"risk":"a, b","level":20}"#);
    assert_eq!(
        tabled("hitPolicy=\"OUTPUT ORDER\"", &outputs, &rules, r#"{"x": 1}"#),
        r#"[{"risk":"a, b","level":20},{"risk":"a, b","level":1},{"risk":"low","level":3},{"risk":"other","level":3}]"#
    );
}

#[test]
fn default_outputs_stand_in_where_no_rule_matches() {
    let default = |text: &str| format!("y <defaultOutputEntry><text>{text}</text></defaultOutputEntry>");
    assert_eq!(tabled("", &[&default("x + 1")], &["> 1 | 10"], r#"{"x": 0}"#), "1");
    let both = [
        "a <defaultOutputEntry><text>1</text></defaultOutputEntry>",
        "b <defaultOutputEntry><text>2</text></defaultOutputEntry>",
    ];
    assert_eq!(tabled("", &both, &["> 1 | 10; 20"], r#"{"x": 0}"#), r#"{"a":1,"b":2}"#);
    assert_eq!(tabled("", &["a", both[1]], &["> 1 | 10; 20"], r#"{"x": 0}"#), "2");
}

#[test]
fn every_evaluated_decision_is_reported_in_order() {
    let rules = ["> 5; - | \"ok\"; x * 2", "<= 5; \"a\", \"b\" | \"low\"; 0"];
    let graph = graph(
        &(decision(
            "final",
            &["first", "second"],
            &table("hitPolicy=\"FIRST\"", &["first", "second.k"], &["text", "n"], &rules),
        ) + &decision("first", &["base"], &literal("base + x"))
            + &decision(
                "second",
                &["base"],
                &format!("<context><contextEntry><variable name=\"k\"/>{}</contextEntry></context>", literal("\"a\"")),
            )
            + &decision("base", &[], &literal("1"))),
    );
    let evaluation = evaluate(&graph, "final", r#"{"x": 6}"#);
    assert_eq!(evaluation.result.expect("an output").to_json(), r#"{"text":"ok","n":12}"#);
    let reported: Vec<(&str, &str, String)> = evaluation
        .evaluated_decisions
        .iter()
        .map(|decision| (&*decision.id, decision.decision_type.name(), decision.output.to_json()))
        .collect();
    assert_eq!(
        reported,
        [
            ("base", "LITERAL_EXPRESSION", "1".to_owned()),
            ("first", "LITERAL_EXPRESSION", "7".to_owned()),
            ("second", "CONTEXT", r#"{"k":"a"}"#.to_owned()),
            ("final", "DECISION_TABLE", r#"{"text":"ok","n":12}"#.to_owned()),
        ]
    );
    let last = evaluation.evaluated_decisions.last().expect("the decision itself");
    let inputs: Vec<(&str, &str, String)> =
        last.inputs.iter().map(|input| (&*input.id, &*input.name, input.value.to_json())).collect();
    assert_eq!(inputs, [("i0", "first", "7".to_owned()), ("i1", "second.k", "\"a\"".to_owned())]);
    let [rule] = &last.matched_rules[..] else { panic!("one rule") };
    assert_eq!((&*rule.id, rule.index), ("r0", 1));
    let outputs: Vec<(&str, &str, String)> =
        rule.outputs.iter().map(|output| (&*output.id, &*output.name, output.value.to_json())).collect();
    assert_eq!(outputs, [("o0", "text", "\"ok\"".to_owned()), ("o1", "n", "12".to_owned())]);
}

#[test]
fn a_failure_names_the_decision_and_the_rule() {
    let rules = ["> 5 | 1", "> 1 | assert(x, x > 100)"];
    let graph = graph(
        &(decision("outer", &["inner"], &literal("inner"))
            + &decision("inner", &[], &table("", &["x"], &["y"], &rules))),
    );
    let evaluation = evaluate(&graph, "outer", r#"{"x": 3}"#);
    let failure = evaluation.result.expect_err("the assertion fails");
    assert_eq!(&*failure.failed_decision_id, "inner");
    assert_eq!(failure.failed_rule, Some(2));
    assert!(failure.message.starts_with("Expected to evaluate decision 'outer', but Assertion failure"), "{failure}");
    let [inner] = &evaluation.evaluated_decisions[..] else { panic!("the inner decision alone") };
    assert_eq!((&*inner.id, inner.output.is_null(), inner.inputs.len()), ("inner", true, 1));

    let failure = evaluate(&graph, "nothing", "{}").result.expect_err("there is no such decision");
    assert_eq!(failure.message, "Expected to evaluate decision 'nothing', but no decision found with id 'nothing'");
    assert_eq!((&*failure.failed_decision_id, failure.failed_rule), ("nothing", None));
}

#[test]
fn results_are_of_the_type_of_the_decision() {
    let typed = |item: &str, text: &str| {
        let types = "<itemDefinition name=\"tLevel\"><typeRef>number</typeRef>\
                     <allowedValues><text>[1..3]</text></allowedValues></itemDefinition>\
                     <itemDefinition name=\"tLevels\" isCollection=\"true\"><typeRef>tLevel</typeRef></itemDefinition>\
                     <itemDefinition name=\"tPerson\"><itemComponent name=\"name\"><typeRef>string</typeRef></itemComponent>\
                     <itemComponent name=\"level\"><typeRef>tLevel</typeRef></itemComponent></itemDefinition>";
        let decision = format!(
            "<decision id=\"d\" name=\"d\"><variable name=\"d\" typeRef=\"{item}\"/>{}</decision>",
            literal(text)
        );
        output(&graph(&format!("{types}{decision}")), "d", "{}")
    };
    let wrong = |message: &str| format!("Expected to evaluate decision 'd', but {message}");
    assert_eq!(typed("number", "1"), "1");
    assert_eq!(typed("feel:string", "null"), "null");
    assert_eq!(typed("string", "1"), wrong("expected 'string' but found '1'"));
    assert_eq!(typed("string", "[\"one\"]"), "\"one\"");
    assert_eq!(typed("unheard of", "1"), "1");
    assert_eq!(typed("tLevel", "2"), "2");
    assert_eq!(typed("tLevel", "4"), wrong("expected 'tLevel' but found '4'"));
    assert_eq!(typed("tLevels", "[1, 2, null]"), "[1,2,null]");
    assert_eq!(typed("tLevels", "[1, 5]"), wrong("expected 'tLevels' but found '[1, 5]'"));
    assert_eq!(typed("tPerson", "{name: \"Ada\", level: 3, more: 1}"), r#"{"name":"Ada","level":3,"more":1}"#);
    assert_eq!(typed("tPerson", "{name: \"Ada\"}"), wrong("expected 'tPerson' but found '{name:\"Ada\"}'"));
}

#[test]
fn business_knowledge_models_are_functions() {
    let graph = graph(
        &(model("double", &[], &["n: number"], &literal("n * factor"))
            + &model("twice", &["double"], &["n"], &literal("double(double(n))"))
            + &model(
                "grade",
                &[],
                &["points"],
                &table("", &["points"], &["g"], &[">= 50 | \"pass\"", "< 50 | \"fail\""]),
            )
            + &decision("called", &["+twice"], &literal("twice(x)"))
            + &decision("mapped", &["+grade"], &literal("for p in [10, 60] return grade(points: p)"))
            + &decision("wrong", &["+double"], &literal("double(\"a\")"))
            + &decision(
                "invoked",
                &["+grade"],
                &format!(
                    "<invocation>{}<binding><parameter name=\"points\"/>{}</binding></invocation>",
                    literal("grade"),
                    literal("x * 10")
                ),
            )
            + &decision("missing", &["+grade"], &format!("<invocation>{}</invocation>", literal("grade")))),
    );
    let json = r#"{"x": 6, "factor": 2}"#;
    assert_eq!(output(&graph, "called", json), "24");
    assert_eq!(output(&graph, "mapped", json), r#"["fail","pass"]"#);
    let wrong = evaluate(&graph, "wrong", json);
    assert!(wrong.result.expect("null with a warning").is_null());
    assert_eq!(
        wrong.warnings[0].to_string(),
        "[FUNCTION_INVOCATION_FAILURE] Failed to invoke function 'double': expected 'number' but found '\"a\"'"
    );
    let invoked = evaluate(&graph, "invoked", json);
    assert_eq!(invoked.result.expect("an output").to_json(), "\"pass\"");
    let reported: Vec<(&str, DecisionType)> =
        invoked.evaluated_decisions.iter().map(|decision| (&*decision.id, decision.decision_type)).collect();
    assert_eq!(reported, [("grade", DecisionType::DecisionTable), ("invoked", DecisionType::Invocation)]);
    assert_eq!(
        output(&graph, "missing", json),
        "Expected to evaluate decision 'missing', but no parameter found with name 'points'"
    );
}

#[test]
fn boxed_expressions_nest() {
    let relation = format!(
        "<relation><column name=\"a\"/><column name=\"b\"/><row>{}{}</row><row>{}{}</row></relation>",
        literal("1"),
        literal("x"),
        literal("2"),
        literal("x + 1")
    );
    let function = format!(
        "<functionDefinition><formalParameter name=\"n\" typeRef=\"number\"/>{}</functionDefinition>",
        literal("n + x")
    );
    let context = format!(
        "<context><contextEntry><variable name=\"rows\"/>{relation}</contextEntry>\
         <contextEntry><variable name=\"plus x\"/>{function}</contextEntry>\
         <contextEntry><list>{}{}</list></contextEntry></context>",
        literal("plus x(rows[a = 2].b[1])"),
        literal("rows.b")
    );
    let graph = graph(&decision("d", &[], &context));
    assert_eq!(output(&graph, "d", r#"{"x": 5}"#), "[11,[5,6]]");
}

#[test]
fn boxed_iterators_and_conditions() {
    let part = |name: &str, text: &str| format!("<{name}>{}</{name}>", literal(text));
    let iterator = |name: &str, last: &str, text: &str| {
        format!("<{name} iteratorVariable=\"i\">{}{}</{name}>", part("in", "xs"), part(last, text))
    };
    let conditional = |text: &str| {
        format!("<conditional>{}{}{}</conditional>", part("if", text), part("then", "1"), part("else", "2"))
    };
    let filter = format!("<filter>{}{}</filter>", part("in", "xs"), part("match", "item > 1"));
    for (logic, expected) in [
        (iterator("for", "return", "i * 2"), "[2,4,6]"),
        (iterator("some", "satisfies", "i > 2"), "true"),
        (iterator("every", "satisfies", "i > 2"), "false"),
        (iterator("every", "satisfies", "i > none"), "null"),
        (filter, "[2,3]"),
        (conditional("count(xs) = 3"), "1"),
        (conditional("count(xs) = 4"), "2"),
        (conditional("none"), "2"),
    ] {
        assert_eq!(output(&graph(&decision("d", &[], &logic)), "d", r#"{"xs": [1, 2, 3]}"#), expected, "{logic}");
    }
}

#[test]
fn services_see_their_parameters_alone() {
    let content = "<inputData id=\"taken\" name=\"taken\"><variable name=\"taken\" typeRef=\"number\"/></inputData>\
        <decisionService id=\"service\" name=\"service\"><outputDecision href=\"#out\"/><inputDecision href=\"#given\"/>\
        <inputData href=\"#taken\"/></decisionService>"
        .to_owned()
        + &decision("given", &[], &literal("1000"))
        + &decision("out", &["given"], &literal("[taken, given, outside]"))
        + &decision("calling", &["+service"], &literal("service(1, 2)"));
    let graph = graph(&content);
    let json = r#"{"taken": 7, "given": 8, "outside": 9}"#;
    assert_eq!(output(&graph, "calling", json), "[1,2,null]");
    assert_eq!(output(&graph, "out", json), "[7,1000,9]");
    let direct = graph.evaluate_service("service", &variables(json), &Environment::at(0));
    assert_eq!(direct.result.expect("an output").to_json(), "[7,8,null]");
}

#[test]
fn names_need_no_backticks() {
    let content =
        "<inputData id=\"in\" name=\"Pre-bureau risk (new)\"><variable name=\"Pre-bureau risk (new)\"/></inputData>"
            .to_owned()
            + &decision("d", &[], &literal("Pre-bureau risk (new) + 1"));
    assert_eq!(output(&graph(&content), "d", r#"{"Pre-bureau risk (new)": 1}"#), "2");
}

#[test]
fn all_versions_of_the_standard_are_read() {
    let xml = support::definitions(&decision("d", &[], &literal("1")));
    for namespace in [
        "http://www.omg.org/spec/DMN/20151101/dmn.xsd",
        "http://www.omg.org/spec/DMN/20180521/MODEL/",
        "https://www.omg.org/spec/DMN/20191111/MODEL/",
        "https://www.omg.org/spec/DMN/20211108/MODEL/",
        "https://www.omg.org/spec/DMN/20230324/MODEL/",
    ] {
        let graph = parse(xml.replace("https://www.omg.org/spec/DMN/20191111/MODEL/", namespace).as_bytes());
        let graph = graph.unwrap_or_else(|report| panic!("{report}"));
        assert_eq!((graph.id(), graph.name(), graph.namespace()), ("graph", "Graph", "test"));
        assert_eq!(output(&graph, "d", "{}"), "1");
    }
}

#[test]
fn a_decision_that_several_require_is_evaluated_once() {
    let mut content = decision("d0", &[], &literal("1"));
    for level in 1..=60 {
        let required = format!("d{}", level - 1);
        content += &decision(&format!("left{level}"), &[&required], &literal(&required));
        content += &decision(&format!("right{level}"), &[&required], &literal(&required));
        let sides = [format!("left{level}"), format!("right{level}")];
        let sides: Vec<&str> = sides.iter().map(String::as_str).collect();
        content += &decision(&format!("d{level}"), &sides, &literal(&format!("left{level} + right{level} - 1")));
    }
    let evaluation = evaluate(&graph(&content), "d60", "{}");
    assert_eq!(evaluation.result.expect("an output").to_json(), "1");
    assert_eq!(evaluation.evaluated_decisions.len(), 181);
}

#[test]
fn calls_in_loops_are_reported_up_to_a_limit() {
    let content = model("f", &[], &["n"], &literal("n"))
        + &decision("d", &["+f"], &literal("count(for i in 1..3000 return f(i))"))
        + &decision("fails", &["d"], &literal("assert(d, false)"));
    let graph = graph(&content);
    let evaluation = evaluate(&graph, "fails", "{}");
    assert_eq!(evaluation.evaluated_decisions.len(), MAXIMUM_EVALUATED_DECISIONS);
    assert_eq!(&*evaluation.result.expect_err("the assertion fails").failed_decision_id, "fails");
}

#[test]
fn every_expression_has_random_values_of_its_own() {
    let boxed = |id: &str| format!("<literalExpression id=\"{id}\"><text>uuid()</text></literalExpression>");
    let content = format!(
        "<definitions xmlns=\"https://www.omg.org/spec/DMN/20191111/MODEL/\" id=\"g\" name=\"g\" namespace=\"n\">\
         <decision id=\"d\" name=\"d\"><list id=\"l\">{}{}{}</list></decision></definitions>",
        boxed("a"),
        boxed("b"),
        boxed("c")
    );
    let graph = parse(content.as_bytes()).expect("a graph");
    let ids = |seed| {
        let environment = Environment { seed, ..Environment::at(1_000) };
        let output = graph.evaluate("d", &(), &environment).result.expect("an output");
        output.as_list().unwrap_or_default().iter().map(Value::to_json).collect::<BTreeSet<_>>()
    };
    assert_eq!((ids(1).len(), ids(1)), (3, ids(1)), "the same seed gives the same");
    assert!(ids(1).is_disjoint(&ids(500)));
}
