//! Files that use what the models that they import contain.

mod support;

use dmn::{DecisionRequirementsGraph, parse_with_imports};
use feel::Environment;
use support::{decision, evaluate, literal, model, output, table};

/// A file of this namespace. Imports are written as `name=namespace`.
fn file(namespace: &str, imports: &[&str], content: &str) -> String {
    let imports: String = imports
        .iter()
        .map(|import| {
            let (name, namespace) = import.split_once('=').expect("a name and a namespace");
            format!("<import name=\"{name}\" namespace=\"{namespace}\" importType=\"dmn\"/>")
        })
        .collect();
    format!(
        "<definitions xmlns=\"https://www.omg.org/spec/DMN/20191111/MODEL/\" id=\"file {namespace}\" name=\"{namespace}\" \
         namespace=\"{namespace}\">{imports}{content}</definitions>"
    )
}

fn graph(file: &str, models: &[DecisionRequirementsGraph]) -> DecisionRequirementsGraph {
    parse_with_imports(file.as_bytes(), models).unwrap_or_else(|report| panic!("{report}"))
}

fn refusal(file: &str, models: &[DecisionRequirementsGraph]) -> String {
    parse_with_imports(file.as_bytes(), models).expect_err("the file is refused").to_string()
}

/// A decision with these requirements, written as `decision:href`, `input:href` or `knowledge:href`.
fn requiring(name: &str, requirements: &[&str], text: &str) -> String {
    let requirements: String = requirements
        .iter()
        .map(|requirement| match requirement.split_once(':').expect("a kind and a reference") {
            ("decision", href) => {
                format!("<informationRequirement><requiredDecision href=\"{href}\"/></informationRequirement>")
            }
            ("input", href) => {
                format!("<informationRequirement><requiredInput href=\"{href}\"/></informationRequirement>")
            }
            (_, href) => format!("<knowledgeRequirement><requiredKnowledge href=\"{href}\"/></knowledgeRequirement>"),
        })
        .collect();
    let logic = literal(text);
    format!("<decision id=\"{name}\" name=\"{name}\"><variable name=\"{name}\"/>{requirements}{logic}</decision>")
}

const TYPES: &str = "<itemDefinition name=\"small\"><typeRef>number</typeRef><allowedValues><text>&lt; 10</text></allowedValues>\
                     </itemDefinition>";

fn base() -> DecisionRequirementsGraph {
    let content = TYPES.to_owned()
        + "<inputData id=\"in\" name=\"the in-put\"/>"
        + &decision("base", &[], &literal("the in-put + 1"))
        + &decision("grade", &[], &table("hitPolicy=\"UNIQUE\"", &["the in-put"], &["g"], &["> 3 | \"high\""]))
        + &model("inner", &[], &["a: small"], &literal("a * factor"))
        + &model("outer", &["inner"], &["a"], &literal("inner(a) + 1"))
        + "<decisionService id=\"service\" name=\"service\"><outputDecision href=\"#base\"/><inputData href=\"#in\"/>\
           </decisionService>";
    graph(&file("base", &[], &content), &[])
}

#[test]
fn elements_are_known_behind_the_name_of_the_import() {
    let content = requiring("value", &["decision:base#base", "input:base#in"], "lib.base + lib.the in-put")
        + &requiring("called", &["knowledge:base#outer"], "lib.outer(the number)")
        + &requiring("served", &["knowledge:base#service"], "lib.service(the in-put: 7)")
        + &requiring("rules", &["decision:base#grade"], "lib.grade")
        + "<decision id=\"invoked\" name=\"invoked\"><knowledgeRequirement><requiredKnowledge href=\"base#outer\"/>\
           </knowledgeRequirement><invocation><literalExpression><text>lib.outer</text></literalExpression><binding>\
           <parameter name=\"a\"/><literalExpression><text>3</text></literalExpression></binding></invocation></decision>";
    let graph = graph(&file("main", &["lib=base"], &content), &[base()]);
    let given = "{\"the in-put\": 4, \"the number\": 2, \"factor\": 10}";
    assert_eq!(output(&graph, "value", given), "9");
    assert_eq!(output(&graph, "called", given), "21");
    assert_eq!(output(&graph, "served", given), "8");
    assert_eq!(output(&graph, "rules", given), "\"high\"");
    assert_eq!(output(&graph, "invoked", given), "31");
    // The decisions of the imported model are no decisions of this one.
    assert!(output(&graph, "base", given).contains("no decision found with id 'base'"));
}

#[test]
fn types_are_those_of_the_imported_model() {
    let typed = |item: &str| {
        let content = format!(
            "<decision id=\"d\" name=\"d\"><variable name=\"d\" typeRef=\"{item}\"/>{}</decision>",
            literal("x")
        );
        graph(&file("main", &["my.lib=base"], &content), &[base()])
    };
    assert_eq!(output(&typed("my.lib.small"), "d", "{\"x\": 9}"), "9");
    let failure = output(&typed("my.lib.small"), "d", "{\"x\": 10}");
    assert_eq!(failure, "Expected to evaluate decision 'd', but expected 'small' but found '10'");
    // What no file defines is any type.
    assert_eq!(output(&typed("my.lib.other"), "d", "{\"x\": 10}"), "10");
}

#[test]
fn an_import_without_a_name_leaves_names_as_they_are() {
    let content = requiring("d", &["decision:base#base", "knowledge:base#inner"], "base + inner(2)");
    let graph = graph(&file("main", &["=base"], &content), &[base()]);
    assert_eq!(output(&graph, "d", "{\"the in-put\": 4, \"factor\": 5}"), "15");
}

#[test]
fn what_is_imported_on_several_ways_is_evaluated_once() {
    let base = base();
    let between = |namespace: &str| {
        let content = requiring(namespace, &["decision:base#base"], "lib.base * 2");
        graph(&file(namespace, &["lib=base"], &content), std::slice::from_ref(&base))
    };
    let content = requiring("d", &["decision:left#left", "decision:right#right"], "a.left + b.right");
    let models = [between("left"), between("right")];
    let graph = graph(&file("main", &["a=left", "b=right"], &content), &models);
    let evaluation = evaluate(&graph, "d", "{\"the in-put\": 1}");
    let names: Vec<&str> = evaluation.evaluated_decisions.iter().map(|decision| &*decision.id).collect();
    assert_eq!(names, ["base", "left", "right", "d"]);
    assert_eq!(evaluation.result.expect("a result").to_json(), "8");
}

#[test]
fn what_cannot_be_imported_is_refused_by_name() {
    let main = |imports: &[&str], requirement: &str| file("main", imports, &requiring("d", &[requirement], "1"));
    for (file, models, expected) in [
        (
            main(&["lib=base"], "decision:base#base"),
            &[][..],
            "'d' requires the decision 'base' of the model 'base', but imports are not supported.",
        ),
        (main(&["lib=else"], "decision:base#base"), &[base()], "but no such model is both imported and given."),
        (
            main(&["lib=base"], "decision:base#none"),
            &[base()],
            "'d' requires the decision 'none', but there is none with this id in the model.",
        ),
        (
            main(&["lib=base"], "decision:base#outer"),
            &[base()],
            "'base#outer' is no decision, but one is required here.",
        ),
        (
            file(
                "main",
                &["lib=base"],
                "<decisionService id=\"s\" name=\"s\"><outputDecision href=\"base#base\"/></decisionService>",
            ),
            &[base()],
            "'base#base' is of an imported model, but a decision service is made of elements of its own file.",
        ),
    ] {
        let found = refusal(&file, models);
        assert!(found.contains(expected), "{expected}\n{found}");
    }
}

#[test]
fn limits_hold_across_models_and_failures_name_the_imported_decision() {
    let mut models = vec![base()];
    for number in 0..300 {
        let before = models.last().expect("one at least");
        let namespace = format!("level {number}");
        let reference = format!("decision:{}#base", before.namespace());
        let file =
            file(&namespace, &[&format!("lib={}", before.namespace())], &requiring("base", &[&reference], "lib.base"));
        models.push(graph(&file, std::slice::from_ref(before)));
    }
    assert_eq!(output(&models[300], "base", "{\"the in-put\": 1}"), "2");
    let environment = Environment { depth_limit: 100, ..Environment::at(0) };
    let deep = models[300].evaluate("base", &support::variables("{\"the in-put\": 1}"), &environment);
    assert!(deep.result.expect_err("too deep").message.contains("100"));
    let failing = requiring("bad", &[], "assert(1, false)");
    let failing = graph(&file("failing", &[], &failing), &[]);
    let main = graph(&file("main", &["lib=failing"], &requiring("d", &["decision:failing#bad"], "1")), &[failing]);
    let failure = evaluate(&main, "d", "{}").result.expect_err("the imported decision fails");
    assert_eq!(&*failure.failed_decision_id, "bad");
}
