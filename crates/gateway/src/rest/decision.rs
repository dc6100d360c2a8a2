//! Decisions in JSON.

use protocol::{
    DecisionEvaluationValue, EvaluatedDecisionValue, EvaluatedInputValue, EvaluatedOutputValue, Key, MatchedRuleValue,
    Text,
};

use super::json::JsonObject;
use super::object::{GivenKey, Object, Violations};
use crate::request::decision::EvaluateDecision;
use crate::rest::no_answer::NoAnswer;

pub(super) fn evaluation(body: &[u8]) -> Result<EvaluateDecision, NoAnswer> {
    let mut object = Object::read(body)?;
    let decision_id: Option<Text> = object.take("decisionDefinitionId")?;
    let decision_key: Option<GivenKey> = object.take("decisionDefinitionKey")?;
    let mut violations = Violations::default();
    let names = ["decisionDefinitionId", "decisionDefinitionKey"];
    violations.require_one_of(names, [decision_id.is_some(), decision_key.is_some()]);
    let request = EvaluateDecision {
        decision_id: decision_id.unwrap_or_default(),
        decision_key: decision_key.map_or(-1, |key| key.0),
        variables: object.take("variables")?.unwrap_or_default(),
        tenant_id: object.take("tenantId")?.unwrap_or_default(),
    };
    object.finish()?;
    violations.check()?;
    Ok(request)
}

pub(super) fn evaluated(key: Key, value: &DecisionEvaluationValue) -> Vec<u8> {
    let mut json = JsonObject::with_capacity(1024 + value.decision_output.len());
    json.text("decisionDefinitionId", &value.decision_id).key("decisionDefinitionKey", value.decision_key);
    json.text("decisionDefinitionName", &value.decision_name);
    json.number("decisionDefinitionVersion", value.decision_version);
    // Two names for one thing: clients of 8.8 know only the second.
    json.key("decisionEvaluationKey", key).key("decisionInstanceKey", key);
    json.text("decisionRequirementsId", &value.decision_requirements_id);
    json.key("decisionRequirementsKey", value.decision_requirements_key);
    json.objects("evaluatedDecisions", value.evaluated_decisions.iter().map(evaluated_decision));
    json.text_or_null("failedDecisionDefinitionId", &value.failed_decision_id);
    json.text_or_null("failureMessage", &value.evaluation_failure_message);
    json.text("output", &value.decision_output).text("tenantId", &value.tenant_id);
    json.finish()
}

fn evaluated_decision(value: &EvaluatedDecisionValue) -> JsonObject {
    let mut json = JsonObject::new();
    json.text("decisionDefinitionId", &value.decision_id).key("decisionDefinitionKey", value.decision_key);
    json.text("decisionDefinitionName", &value.decision_name);
    json.number("decisionDefinitionVersion", value.decision_version);
    json.text("decisionDefinitionType", &value.decision_type).text("output", &value.decision_output);
    json.text("tenantId", &value.tenant_id);
    json.objects("matchedRules", value.matched_rules.iter().map(matched_rule));
    json.objects("evaluatedInputs", value.evaluated_inputs.iter().map(evaluated_input));
    json.text("decisionEvaluationInstanceKey", &value.decision_evaluation_instance_key);
    json
}

fn evaluated_input(value: &EvaluatedInputValue) -> JsonObject {
    let mut json = JsonObject::new();
    json.text("inputId", &value.input_id).text("inputName", &value.input_name).text("inputValue", &value.input_value);
    json
}

fn matched_rule(rule: &MatchedRuleValue) -> JsonObject {
    let output = |value: &EvaluatedOutputValue| {
        let mut json = JsonObject::new();
        json.text("outputId", &value.output_id).text("outputName", &value.output_name);
        json.text("outputValue", &value.output_value);
        json.text("ruleId", &rule.rule_id).number("ruleIndex", rule.rule_index);
        json
    };
    let mut json = JsonObject::new();
    json.text("ruleId", &rule.rule_id).number("ruleIndex", rule.rule_index);
    json.objects("evaluatedOutputs", rule.evaluated_outputs.iter().map(output));
    json
}

#[cfg(test)]
mod tests {
    use protocol::PartitionId;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_decision_is_named_in_one_way() {
        let request = evaluation(br#"{"decisionDefinitionId":"d","variables":{},"tenantId":"<default>"}"#).unwrap();
        assert_eq!((&*request.decision_id, request.decision_key), ("d", -1));
        assert_eq!(evaluation(br#"{"decisionDefinitionKey":"7"}"#).unwrap().decision_key, 7);
        for (body, sentence) in [
            ("", "At least one of [decisionDefinitionId, decisionDefinitionKey] is required."),
            (r#"{"decisionDefinitionId":"d","decisionDefinitionKey":"7"}"#, "Only one of"),
            (r#"{"decisionDefinitionId":"d","variables":1}"#, "Request property [variables]"),
        ] {
            let Err(NoAnswer::Problem(problem)) = evaluation(body.as_bytes()) else { panic!("{body}") };
            assert!(problem.detail.starts_with(sentence), "{problem:?}");
        }
    }

    #[test]
    fn what_failed_is_told_and_what_did_not_is_null() {
        let key = Key::new(PartitionId(1), 9);
        let output =
            EvaluatedOutputValue { output_id: "o".into(), output_name: "O".into(), output_value: "\"x\"".into() };
        let rule = MatchedRuleValue { rule_id: "r".into(), rule_index: 2, evaluated_outputs: vec![output] };
        let decision = EvaluatedDecisionValue {
            decision_id: "d".into(),
            decision_evaluation_instance_key: format!("{key}-1").into(),
            decision_name: "D".into(),
            decision_key: key,
            decision_version: 1,
            decision_type: "DECISION_TABLE".into(),
            decision_output: "\"x\"".into(),
            evaluated_inputs: Vec::new(),
            matched_rules: vec![rule],
            tenant_id: "<default>".into(),
        };
        let mut value = DecisionEvaluationValue {
            decision_id: "d".into(),
            decision_output: "\"x\"".into(),
            evaluated_decisions: vec![decision],
            ..DecisionEvaluationValue::default()
        };
        let read = |value: &_| serde_json::from_slice::<Value>(&evaluated(key, value)).expect("it is JSON");
        let found = read(&value);
        assert_eq!((&found["output"], &found["failureMessage"]), (&json!("\"x\""), &Value::Null));
        assert_eq!(
            (&found["decisionEvaluationKey"], &found["decisionInstanceKey"]),
            (&json!(key.to_string()), &json!(key.to_string()))
        );
        assert_eq!(
            found["evaluatedDecisions"][0]["matchedRules"],
            json!([{"ruleId": "r", "ruleIndex": 2, "evaluatedOutputs":
                [{"outputId": "o", "outputName": "O", "outputValue": "\"x\"", "ruleId": "r", "ruleIndex": 2}]}])
        );
        value.failed_decision_id = "d".into();
        value.evaluation_failure_message = "why".into();
        let found = read(&value);
        assert_eq!((&found["failedDecisionDefinitionId"], &found["failureMessage"]), (&json!("d"), &json!("why")));
    }
}
