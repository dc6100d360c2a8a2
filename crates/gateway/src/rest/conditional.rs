//! Conditional start events in JSON.

use protocol::{ConditionalEvaluationValue, ConditionalStartedProcessInstance, Key};

use super::json::JsonObject;
use super::object::{GivenKey, Object, invalid};
use crate::request::conditional::EvaluateConditional;
use crate::rest::no_answer::NoAnswer;

pub(super) fn evaluation(body: &[u8]) -> Result<EvaluateConditional, NoAnswer> {
    let mut object = Object::read(body)?;
    let definition: Option<GivenKey> = object.take("processDefinitionKey")?;
    let request = EvaluateConditional {
        process_definition_key: definition.map(|key| key.0),
        tenant_id: object.take("tenantId")?.unwrap_or_default(),
        variables: object.require("variables")?,
    };
    object.finish()?;
    // Conditions see nothing else.
    if request.variables.is_empty() {
        return Err(invalid("No variables provided.").into());
    }
    Ok(request)
}

pub(super) fn evaluated(key: Key, value: &ConditionalEvaluationValue) -> Vec<u8> {
    let mut json = JsonObject::new();
    json.key("conditionalEvaluationKey", key).text("tenantId", &value.tenant_id);
    json.objects("processInstances", value.started_process_instances.iter().map(started));
    json.finish()
}

fn started(instance: &ConditionalStartedProcessInstance) -> JsonObject {
    let mut json = JsonObject::new();
    json.key("processDefinitionKey", instance.process_definition_key);
    json.key("processInstanceKey", instance.process_instance_key);
    json
}

#[cfg(test)]
mod tests {
    use protocol::PartitionId;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn an_evaluation_needs_variables() {
        let request = evaluation(br#"{"variables":{"x":1},"processDefinitionKey":"7"}"#).unwrap();
        assert_eq!(request.process_definition_key, Some(7));
        assert_eq!(evaluation(br#"{"variables":{"x":1}}"#).unwrap().process_definition_key, None);
        for (body, sentence) in [
            ("{}", "No variables provided."),
            (r#"{"variables":{ }}"#, "No variables provided."),
            (r#"{"variables":[]}"#, "Request property [variables]"),
            (r#"{"variables":{},"processDefinitionKey":"x"}"#, "Request property [processDefinitionKey]"),
        ] {
            let Err(NoAnswer::Problem(problem)) = evaluation(body.as_bytes()) else { panic!("{body}") };
            assert!(problem.detail.starts_with(sentence), "{problem:?}");
        }
    }

    #[test]
    fn what_was_started_is_named_by_its_keys() {
        let [evaluation, definition, instance] = [3, 4, 5].map(|number| Key::new(PartitionId(1), number));
        let started =
            ConditionalStartedProcessInstance { process_definition_key: definition, process_instance_key: instance };
        let value = ConditionalEvaluationValue {
            tenant_id: "<default>".into(),
            started_process_instances: vec![started],
            ..ConditionalEvaluationValue::default()
        };
        let found: Value = serde_json::from_slice(&evaluated(evaluation, &value)).expect("it is JSON");
        let [definition, instance] = [definition, instance].map(|key| key.to_string());
        assert_eq!(
            found,
            json!({
                "conditionalEvaluationKey": evaluation.to_string(),
                "tenantId": "<default>",
                "processInstances": [{"processDefinitionKey": definition, "processInstanceKey": instance}],
            })
        );
    }
}
