//! The index of decision tables gives the same result as looking at every rule and its tests, in order.

mod support;

use std::sync::Arc;

use feel::{Context, Environment, UnaryTests, Value};
use proptest::prelude::*;
use support::{decision, graph, table};

/// Tests of all kinds: those that an index is made of, and those that have to be evaluated, some of which fail.
fn test() -> impl Strategy<Value = String> {
    let number =
        || (-3..6_i32).prop_map(|number| if number % 2 == 0 { number.to_string() } else { format!("{number}.5") });
    let text = || "[abc]{0,2}".prop_map(|text| format!("\"{text}\""));
    let date = || (1..5_u8).prop_map(|day| format!("@\"2024-01-0{day}\""));
    let duration = || (1..4_u8).prop_map(|days| format!("@\"P{days}D\""));
    let scalar =
        || prop_oneof![4 => number().boxed(), 2 => text().boxed(), 1 => date().boxed(), 1 => duration().boxed()];
    let operator = || prop_oneof![Just("<"), Just("<="), Just(">"), Just(">=")];
    let simple = || {
        prop_oneof![
            4 => scalar().boxed(),
            3 => (operator(), scalar()).prop_map(|(operator, value)| format!("{operator} {value}")).boxed(),
            2 => ("[\\[\\]\\(]", number(), number(), "[\\[\\]\\)]")
                .prop_map(|(open, start, end, close)| format!("{open}{start}..{end}{close}"))
                .boxed(),
            1 => prop_oneof![Just("true"), Just("false"), Just("null")].prop_map(str::to_owned).boxed(),
        ]
    };
    prop_oneof![
        3 => Just("-".to_owned()),
        8 => simple(),
        2 => prop::collection::vec(simple(), 1..4).prop_map(|tests| tests.join(", ")),
        1 => simple().prop_map(|test| format!("not({test})")),
        1 => Just("? = limit".to_owned()),
        1 => Just("> limit".to_owned()),
    ]
}

/// Inputs of all kinds, as JSON or as an expression.
fn input() -> impl Strategy<Value = Value> {
    let written = |text: &str| feel::Expression::parse(text).expect("valid").constant().expect("a constant");
    prop_oneof![
        6 => (-30..60_i32).prop_map(move |tenths| written(&format!("{tenths} / 10"))),
        3 => "[abc]{0,2}".prop_map(Value::string),
        1 => any::<bool>().prop_map(Value::Boolean),
        1 => Just(Value::Null),
        1 => (1..5_u8).prop_map(move |day| written(&format!("@\"2024-01-0{day}\""))),
        1 => (1..4_u8).prop_map(move |days| written(&format!("@\"P{days}D\""))),
        1 => (0..4_i32).prop_map(move |number| written(&format!("[{number}]"))),
        1 => Just(written("{a: 1}")),
        1 => Just(written("@\"10:00:00\"")),
    ]
}

/// The numbers of the rules that match, counted from 0.
fn scanned(rules: &[Vec<String>], inputs: &[Value], scope: &Context) -> Vec<i64> {
    let passes = |test: &String, input: &Value| {
        let tests = UnaryTests::parse(test).unwrap_or_else(|error| panic!("{error}"));
        let evaluation = tests.evaluate(input, scope, &Environment::at(0)).expect("tests without limits do not fail");
        evaluation.value.as_bool() == Some(true)
    };
    let matches = |rule: &Vec<String>| rule.iter().zip(inputs).all(|(test, input)| passes(test, input));
    (0..).zip(rules).filter(|(_, rule)| matches(rule)).map(|(number, _)| number).collect()
}

fn indexed(rules: &[Vec<String>], inputs: &[Value], scope: &Context) -> Vec<i64> {
    let texts: Vec<String> =
        (0..).zip(rules).map(|(number, tests): (usize, _)| format!("{} | {number}", tests.join(";"))).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let names: Vec<String> = (0..inputs.len()).map(|number| format!("x{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let graph = graph(&decision("d", &[], &table("hitPolicy=\"COLLECT\"", &names, &["y"], &texts)));
    let mut variables = scope.clone();
    for (name, input) in names.iter().zip(inputs) {
        variables.put(Arc::from(*name), input.clone());
    }
    let output = graph.evaluate("d", &variables, &Environment::at(0)).result.expect("an output");
    output.as_list().unwrap_or_default().iter().filter_map(Value::as_i64).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_index_finds_the_rules_that_match(
        rules in prop::collection::vec(prop::collection::vec(test(), 3), 1..60),
        inputs in prop::collection::vec(prop::collection::vec(input(), 3), 4),
        limit in -3..6_i32,
    ) {
        let mut scope = Context::new();
        scope.put(Arc::from("limit"), Value::integer(i64::from(limit)));
        for inputs in inputs {
            prop_assert_eq!(indexed(&rules, &inputs, &scope), scanned(&rules, &inputs, &scope), "inputs {:?}", inputs);
        }
    }
}

/// A rule whose test fails makes the decision fail exactly when a look at every rule would come to that test.
#[test]
fn a_test_that_fails_is_reached_as_without_an_index() {
    let rules: Vec<String> = (0..40)
        .map(|number| match number {
            20 => "count(for i in 1..1000000 return i) = ?; 20; 5 | 20".to_owned(),
            _ => format!("{}; {number}; - | {number}", number % 7),
        })
        .collect();
    let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
    let graph = graph(&decision("d", &[], &table("hitPolicy=\"FIRST\"", &["a", "b", "c"], &["y"], &rules)));
    let environment = Environment { step_limit: 10_000, ..Environment::at(0) };
    let message = |json: &str| match graph.evaluate("d", &support::variables(json), &environment).result {
        Ok(value) => value.to_json(),
        Err(failure) => failure.message,
    };
    // The test comes before the column that excludes its rule, so it is always evaluated.
    let stopped = "Expected to evaluate decision 'd', but the expression was stopped after 10000 steps. Let it work on less data.";
    assert_eq!(message(r#"{"a": 3, "b": 3, "c": 1}"#), stopped);

    let turned: Vec<String> = rules
        .iter()
        .map(|rule| {
            let (tests, result) = rule.split_once('|').expect("a bar");
            let mut tests: Vec<&str> = tests.split(';').collect();
            tests.swap(0, 1);
            format!("{} | {result}", tests.join(";"))
        })
        .collect();
    let turned: Vec<&str> = turned.iter().map(String::as_str).collect();
    let graph = support::graph(&decision("d", &[], &table("hitPolicy=\"FIRST\"", &["b", "a", "c"], &["y"], &turned)));
    let message = |json: &str| match graph.evaluate("d", &support::variables(json), &environment).result {
        Ok(value) => value.to_json(),
        Err(failure) => failure.message,
    };
    assert_eq!(message(r#"{"a": 3, "b": 3, "c": 1}"#), "3");
    assert_eq!(message(r#"{"a": 3, "b": 20, "c": 5}"#), stopped);
}
