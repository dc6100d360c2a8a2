//! Hostile, broken and very large input, and evaluations that would not end.

mod support;

use dmn::{MAXIMUM_NESTING_LEVELS, MAXIMUM_RESOURCE_BYTES, parse};
use feel::{Budget, Environment, Scope, VariableText};
use support::{decision, definitions, evaluate, graph, literal, model, output, table, variables};

fn sample() -> String {
    let rules = ["> 5; \"a\" | 1", "[1..5]; - | x + 1", "not(7); ? = y | null"];
    let context = format!("<context><contextEntry><variable name=\"k\"/>{}</contextEntry></context>", literal("f(x)"));
    definitions(
        &(decision("d", &["e"], &table("hitPolicy=\"FIRST\"", &["x", "y"], &["z"], &rules))
            + &decision("e", &["+f"], &context)
            + &model("f", &[], &["a: number"], &literal("a * 2"))),
    )
}

/// A small linear congruential generator: the same mutations in every run.
fn next_random(state: &mut u64) -> usize {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    usize::try_from(*state >> 33).expect("31 bits fit")
}

#[test]
fn every_truncation_of_a_file_is_refused() {
    let sample = sample();
    for length in 0..sample.trim_end().len() {
        assert!(parse(&sample.as_bytes()[..length]).is_err(), "cut after {length} bytes");
    }
}

#[test]
fn mutated_files_are_refused_or_evaluated() {
    let sample = sample();
    let scope = variables(r#"{"x": 3, "y": "a"}"#);
    let environment = Environment { step_limit: 10_000, ..Environment::at(0) };
    let mut state = 7;
    let mut accepted = 0;
    for _ in 0..5_000 {
        let mut bytes = sample.clone().into_bytes();
        for _ in 0..1 + next_random(&mut state) % 3 {
            let position = next_random(&mut state) % bytes.len();
            match next_random(&mut state) % 3 {
                0 => bytes[position] = b"0123\"<>/=a1-(["[next_random(&mut state) % 14],
                1 => drop(bytes.remove(position)),
                _ => {
                    let end = (position + next_random(&mut state) % 80).min(bytes.len());
                    let copy = bytes[position..end].to_vec();
                    drop(bytes.splice(end..end, copy));
                }
            }
        }
        match parse(&bytes) {
            Ok(graph) => {
                accepted += 1;
                for decision in graph.decisions() {
                    let evaluation = graph.evaluate(decision.id, &scope, &environment);
                    assert!(evaluation.steps <= environment.step_limit);
                }
            }
            Err(report) => assert!(!report.problems.is_empty()),
        }
    }
    assert!(accepted > 100, "only {accepted} mutations were accepted: the loop does not reach the compiler");
}

#[test]
fn a_file_over_the_size_limit_is_refused() {
    let mut content = sample().into_bytes();
    content.resize(MAXIMUM_RESOURCE_BYTES, b' ');
    assert!(parse(&content).is_ok());
    content.push(b' ');
    let report = parse(&content).expect_err("the file is too large");
    assert!(report.to_string().contains("The file has 4194305 bytes, but at most 4194304 bytes are read."));
}

#[test]
fn hostile_nesting_and_namespaces_are_refused_before_a_tree_is_built() {
    let nested = "<a>".repeat(1_000_000);
    let attributes = format!("<a {}/>", (0..300_000).map(|number| format!("a{number}='' ")).collect::<String>());
    let scope: String = (0..64).map(|number| format!(" xmlns:n{number}=''")).collect();
    let many = format!("<a{scope}>{}</a>", "<a xmlns:m=''/>".repeat(200_000));
    for content in [nested, attributes, many] {
        let text = parse(content.as_bytes()).expect_err("the file is refused").to_string();
        let refused = ["nested deeper than", "are accepted.", "Too many XML elements declare namespaces"];
        assert!(refused.iter().any(|fragment| text.contains(fragment)), "{text}");
    }
}

#[test]
fn boxed_expressions_nested_as_deep_as_xml_allows_are_evaluated() {
    let levels = MAXIMUM_NESTING_LEVELS - 4;
    let logic = "<list>".repeat(levels) + &literal("x") + &"</list>".repeat(levels);
    let graph = graph(&decision("d", &[], &logic));
    assert_eq!(output(&graph, "d", r#"{"x": 1}"#), format!("{}1{}", "[".repeat(levels), "]".repeat(levels)));
    let environment = Environment { depth_limit: 100, ..Environment::at(0) };
    let failure = graph.evaluate("d", &variables("{}"), &environment).result.expect_err("it is nested too deeply");
    assert!(failure.message.contains("nested more than 100 levels deep"), "{failure}");
}

#[test]
fn long_chains_of_requirements_need_no_stack() {
    let mut content = decision("d0", &["+f0"], &literal("f0(0)"));
    for level in 1..10_000 {
        let required = format!("d{}", level - 1);
        content += &decision(&format!("d{level}"), &[&required], &literal(&format!("{required} + 1")));
    }
    content += &model("f5000", &[], &["n"], &literal("n + z"));
    for level in 0..5_000 {
        content += &model(&format!("f{level}"), &[&format!("f{}", level + 1)], &["n"], &literal("n"));
    }
    let graph = graph(&content);
    assert_eq!(output(&graph, "d9999", "{}"), "9999");
}

#[test]
fn functions_that_call_each_other_without_end_are_stopped() {
    let calls: String = (1..30)
        .map(|level| {
            model(
                &format!("f{level}"),
                &[&format!("f{}", level - 1)],
                &["n"],
                &literal(&format!("f{0}(n) + f{0}(n)", level - 1)),
            )
        })
        .collect();
    let content = model("f0", &[], &["n"], &literal("n"))
        + &calls
        + &model("itself", &[], &["f"], &literal("f(f)"))
        + &decision("many", &["+f29"], &literal("f29(1)"))
        + &decision("deep", &["+itself"], &literal("itself(itself)"));
    let graph = graph(&content);
    let environment = Environment { step_limit: 500_000, ..Environment::at(0) };
    let message = |decision| graph.evaluate(decision, &(), &environment).result.expect_err("it is stopped").message;
    assert!(message("many").contains("was stopped after 500000 steps"), "{}", message("many"));
    assert!(message("deep").contains("nested more than 400 levels deep"), "{}", message("deep"));
}

#[test]
fn deep_values_and_recursive_types_are_compared_without_end_of_the_stack() {
    let content = "<itemDefinition name=\"tNode\"><itemComponent name=\"next\"><typeRef>tNode</typeRef></itemComponent>\
                   </itemDefinition><decision id=\"d\" name=\"d\"><variable name=\"d\" typeRef=\"tNode\"/>"
        .to_owned()
        + &literal("x") + "</decision>";
    let nested = |levels: usize| format!("{{\"x\":{}null{}}}", "{\"next\":".repeat(levels), "}".repeat(levels));
    let graph = graph(&content);
    assert!(evaluate(&graph, "d", &nested(50)).result.is_ok());
    let failure = evaluate(&graph, "d", &nested(900)).result.expect_err("it is nested too deeply for its type");
    assert!(failure.message.contains("expected 'tNode' but found"), "{failure}");
}

#[test]
fn values_and_functions_that_hold_each_other_are_dropped_without_end_of_the_stack() {
    let mut lists = decision("d0", &[], &literal("1"));
    for level in 1..2_000 {
        let required = format!("d{}", level - 1);
        lists += &decision(&format!("d{level}"), &[&required], &format!("<list>{}</list>", literal(&required)));
    }
    let failure = evaluate(&graph(&lists), "d1999", "{}").result.expect_err("the list is nested too deeply");
    assert!(failure.message.contains("nested more than 1000 levels deep"), "{failure}");
    for boxed in [true, false] {
        let mut entries = String::new();
        for level in 0..10_000 {
            let call = if level == 0 { "1".to_owned() } else { format!("f{}()", level - 1) };
            let function = match boxed {
                true => format!("<functionDefinition>{}</functionDefinition>", literal(&call)),
                false => literal(&format!("function() {call}")),
            };
            entries += &format!("<contextEntry><variable name=\"f{level}\"/>{function}</contextEntry>");
        }
        let last = format!("<contextEntry>{}</contextEntry>", literal("f9999"));
        let graph = graph(&decision("d", &[], &format!("<context>{entries}{last}</context>")));
        assert_eq!(output(&graph, "d", "{}"), "null", "a function has no JSON");
    }
}

/// Not timed: anything quadratic would make it take minutes.
#[test]
fn the_largest_files_are_compiled() {
    let rules: Vec<String> =
        (0..10_000).map(|number| format!("[{number}..{}); > {number} | {number}", number + 5)).collect();
    let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
    let content = decision("d", &[], &table("hitPolicy=\"COLLECT\"", &["x", "y"], &["z"], &rules));
    assert_eq!(output(&graph(&content), "d", r#"{"x": 1002, "y": 1000}"#), "[998,999]");

    let types: String = (0..20_000)
        .map(|number| format!("<itemDefinition name=\"t{number}\"><typeRef>t{}</typeRef></itemDefinition>", number + 1))
        .collect();
    assert!(support::report(&types).contains("through more than 16 types"));

    let models: String = (0..3_000)
        .map(|number| model(&format!("f {number}-x"), &[], &[&format!("a.b{number}")], &literal("1")))
        .collect();
    assert!(graph(&models).decisions().next().is_none());
}

/// A text that is shared with where it is kept, as the engine gives variables.
struct Shared(std::sync::Arc<str>);

impl Scope for Shared {
    fn variable(&self, _: &str) -> Option<VariableText<'_>> {
        Some(VariableText::Shared(self.0.clone()))
    }
}

/// A loop around an expression, and a function with a variable from around it, read the variable once.
#[test]
fn a_long_variable_is_read_once_however_often_it_is_named() {
    let each = format!(
        "<for iteratorVariable=\"i\"><in>{}</in><return>{}</return></for>",
        literal("for n in 1..500 return n"),
        literal("count(doc) + i")
    );
    let content = decision("loops", &[], &each)
        + &model("counts", &[], &["n: number"], &literal("count(doc) + n"))
        + &decision("calls", &["+counts"], &literal("for n in 1..500 return counts(n)"));
    let graph = graph(&content);
    let scope = Shared(format!("[{}1]", "\"text\",".repeat(50_000)).into());
    for decision in ["loops", "calls"] {
        let environment = Environment::at(0);
        let budget = Budget::of(&environment);
        let evaluation = graph.evaluate_within(decision, &scope, &environment, &budget);
        assert!(evaluation.result.is_ok(), "{:?}", evaluation.result);
        assert!(budget.bytes_read() <= 2 * scope.0.len(), "{decision} read {}", budget.bytes_read());
        assert_eq!(budget.steps_used(), evaluation.steps, "what is charged is what is told");
    }
}

/// Tables give lists of contexts, and each decision nests what the one before gave.
#[test]
fn values_cannot_nest_from_table_to_table() {
    let mut content = decision("d0", &[], &literal("1"));
    for level in 1..1_200 {
        let required = format!("d{}", level - 1);
        let rule = format!("- | {required}");
        let logic = table("hitPolicy=\"COLLECT\"", &["1"], &["z"], &[&rule]);
        // Every id is given once.
        let logic = ["i0", "o0", "r0"]
            .iter()
            .fold(logic, |logic, id| logic.replace(&format!("id=\"{id}\""), &format!("id=\"{id}-{level}\"")));
        content += &decision(&format!("d{level}"), &[&required], &logic);
    }
    let failure = evaluate(&graph(&content), "d1199", "{}").result.expect_err("the list is nested too deeply");
    assert!(failure.message.contains("nested more than 1000 levels deep"), "{failure}");
}

/// Rows of a table with the hit policy ANY are compared with each other; shared parts count as often as they are visited.
#[test]
fn rows_are_compared_within_the_budget() {
    let shared = "(for i in 1..20 return if i = 1 then [1, 1] else [partial[-1], partial[-1]])[-1]";
    let rules: Vec<String> = (0..100).map(|_| format!("- | {shared}")).collect();
    let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
    let content = decision("d", &[], &table("hitPolicy=\"ANY\"", &["1"], &["z"], &rules));
    let failure = evaluate(&graph(&content), "d", "{}").result.expect_err("it is too much to compare");
    assert!(failure.message.contains("was stopped after"), "{failure}");
}
