//! `osmia evaluate`.

use clap::Args;
use gateway_interface::EvaluateDecisionRequest;
use serde_json::json;

use super::action::Action;
use crate::client::ClientError;
use crate::client::{Client, Outcome};
use crate::input::Variables;
use crate::output::{Output, document, key};

#[derive(Debug, Args)]
pub(crate) struct Evaluate {
    /// Id of the decision; its newest version is evaluated.
    id: String,
    /// Variables: a JSON object, @FILE, or - for standard input.
    #[arg(long, default_value = "")]
    variables: Variables,
}

impl Action for Evaluate {
    /// Prints the output, or fails with what went wrong.
    async fn carry_out(self, mut client: Client, output: &Output) -> Outcome {
        let request = EvaluateDecisionRequest {
            decision_id: self.id,
            variables: self.variables.into(),
            ..EvaluateDecisionRequest::default()
        };
        let response = client.gateway.evaluate_decision(client.request(request)).await?.into_inner();
        if !response.failure_message.is_empty() {
            return Err(ClientError::Evaluation(response.failure_message));
        }
        let json = || {
            json!({
                "decisionDefinitionId": response.decision_id,
                "decisionDefinitionKey": key(response.decision_key),
                "decisionDefinitionVersion": response.decision_version,
                "decisionEvaluationKey": key(response.decision_evaluation_key),
                "output": document(&response.decision_output),
            })
        };
        Ok(output.say(&response.decision_output, json)?)
    }
}
