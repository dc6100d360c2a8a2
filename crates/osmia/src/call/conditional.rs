//! `osmia evaluate-conditions`.

use clap::Args;
use gateway_interface::{EvaluateConditionalRequest, ProcessInstanceReference};
use serde_json::json;

use super::action::Action;
use crate::client::{Client, Outcome};
use crate::input::Variables;
use crate::output::{Output, key};

#[derive(Debug, Args)]
pub(crate) struct EvaluateConditions {
    /// Only start events of the process definition with this key.
    #[arg(long, value_name = "KEY")]
    process_definition_key: Option<i64>,
    /// Variables that the conditions see and the instances get: a JSON object, @FILE, or - for standard input.
    #[arg(long, default_value = "")]
    variables: Variables,
}

impl Action for EvaluateConditions {
    /// Prints the instances that were started, one a line.
    async fn carry_out(self, mut client: Client, output: &Output) -> Outcome {
        let request = EvaluateConditionalRequest {
            process_definition_key: self.process_definition_key,
            variables: self.variables.into(),
            tenant_id: String::new(),
        };
        let response = client.gateway.evaluate_conditional(client.request(request)).await?.into_inner();
        let started = |instance: &ProcessInstanceReference| {
            json!({
                "processDefinitionKey": key(instance.process_definition_key),
                "processInstanceKey": key(instance.process_instance_key),
            })
        };
        let json = || {
            json!({
                "conditionalEvaluationKey": key(response.conditional_evaluation_key),
                "processInstances": response.process_instances.iter().map(started).collect::<Vec<_>>(),
                "tenantId": response.tenant_id,
            })
        };
        let instances =
            response.process_instances.iter().map(|instance| format!("instance {}", instance.process_instance_key));
        let lines: Vec<String> = instances.collect();
        let text = if lines.is_empty() { "no condition holds".to_owned() } else { lines.join("\n") };
        Ok(output.say(text, json)?)
    }
}
