//! A file with decisions that somebody deploys: refused with problems, or compiled, and then every decision is evaluated
//! within the limits, twice with the same result.
#![no_main]

use libfuzzer_sys::fuzz_target;
use dmn::{DecisionEvaluation, MAXIMUM_EVALUATED_DECISIONS, MAXIMUM_PROBLEMS, parse};
use feel::{Environment, Value, json};

const VARIABLES: &str = r#"{"x": 3, "y": "a", "z": [1, 2, {"k": null}], "d": true, "amount": 100.5, "tier": "gold"}"#;

fn shown(evaluation: &DecisionEvaluation) -> String {
    let reported: Vec<String> =
        evaluation.evaluated_decisions.iter().map(|decision| format!("{} {}", decision.id, decision.output)).collect();
    let result = match &evaluation.result {
        Ok(value) => value.to_json(),
        Err(failure) => json_text(&failure.message),
    };
    assert!(json::validate(&result).is_ok(), "{result}");
    format!("{result} {reported:?} {:?} {}", evaluation.warnings, evaluation.steps)
}

fn json_text(text: &str) -> String {
    Value::string(text).to_json()
}

fuzz_target!(|content: &[u8]| {
    let graph = match parse(content) {
        Ok(graph) => graph,
        Err(report) => {
            assert!(!report.problems.is_empty(), "a refused file has a problem");
            assert!(report.problems.len() <= MAXIMUM_PROBLEMS);
            return;
        }
    };
    let variables = Value::from_json(VARIABLES).expect("valid JSON");
    let scope = variables.as_context().expect("an object");
    let environment = Environment {
        step_limit: 20_000,
        list_limit_items: 10_000,
        string_limit_bytes: 100_000,
        memory_limit_bytes: 16 << 20,
        ..Environment::at(1_772_600_767_089)
    };
    for decision in graph.decisions().take(20) {
        let first = graph.evaluate(decision.id, scope, &environment);
        assert!(first.steps <= environment.step_limit);
        assert!(first.evaluated_decisions.len() <= MAXIMUM_EVALUATED_DECISIONS);
        assert_eq!(shown(&first), shown(&graph.evaluate(decision.id, scope, &environment)));
    }
    for (id, _) in graph.decision_services().take(5) {
        shown(&graph.evaluate_service(id, scope, &environment));
    }
});
