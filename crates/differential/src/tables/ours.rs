//! Evaluates decisions with the crate `dmn` and reports the outcome as `reference/Decisions.java` does.

use dmn::{DecisionEvaluation, EvaluatedDecision, MatchedRule};
use feel::Environment;
use serde_json::{Value, json};

/// The outcome; the variables are a JSON object.
pub fn outcome(file: &str, decision: &str, variables: &str) -> Value {
    let graph = match dmn::parse(file.as_bytes()) {
        Ok(graph) => graph,
        Err(report) => return json!({"invalid": report.to_string()}),
    };
    let variables = feel::Value::from_json(variables).unwrap_or_default();
    let variables = variables.as_context().cloned().unwrap_or_default();
    tell(&graph.evaluate(decision, &variables, &Environment::at(0)))
}

fn tell(evaluation: &DecisionEvaluation) -> Value {
    let evaluated: Vec<Value> = evaluation.evaluated_decisions.iter().map(tell_decision).collect();
    match &evaluation.result {
        Ok(output) => json!({"evaluated": evaluated, "output": value(output)}),
        Err(failure) => {
            json!({"evaluated": evaluated, "failure": failure.message, "failed": &*failure.failed_decision_id})
        }
    }
}

fn tell_decision(decision: &EvaluatedDecision) -> Value {
    let inputs: Vec<Value> = decision
        .inputs
        .iter()
        .map(|input| json!({"id": id(&input.id), "name": &*input.name, "value": value(&input.value)}))
        .collect();
    json!({
        "id": &*decision.id,
        "name": &*decision.name,
        "type": decision.decision_type.name(),
        "output": value(&decision.output),
        "inputs": inputs,
        "rules": decision.matched_rules.iter().map(tell_rule).collect::<Vec<_>>(),
    })
}

fn tell_rule(rule: &MatchedRule) -> Value {
    let outputs: Vec<Value> = rule
        .outputs
        .iter()
        .map(|output| json!({"id": id(&output.id), "name": id(&output.name), "value": value(&output.value)}))
        .collect();
    json!({"id": id(&rule.id), "index": rule.index, "outputs": outputs})
}

/// What the reference has none of is null there.
fn id(text: &str) -> Value {
    if text.is_empty() { Value::Null } else { text.into() }
}

fn value(value: &feel::Value) -> Value {
    serde_json::from_str(&value.to_json()).unwrap_or_default()
}
