//! Evaluating decisions.

use gateway_interface::EvaluateDecisionRequest;
use protocol::{Command, DecisionEvaluationIntent, DecisionEvaluationValue, Key, Payload};
use tonic::Status;

use super::Pending;
use crate::rpc::Rpc;
use crate::service::Service;
use crate::validation::{tenant, variables};

impl Service {
    /// Every partition has all decisions, so they take turns.
    pub(crate) fn evaluate(&self, request: EvaluateDecisionRequest) -> Result<Pending, Status> {
        let value = DecisionEvaluationValue {
            tenant_id: tenant(Rpc::EvaluateDecision.name(), &request.tenant_id)?,
            variables: variables(request.variables)?,
            decision_id: request.decision_id.into(),
            decision_key: Key::from_raw(request.decision_key),
            ..DecisionEvaluationValue::default()
        };
        let payload = Payload::DecisionEvaluation(DecisionEvaluationIntent::Evaluate, Box::new(value));
        let command = Command::new(Key::NONE, payload);
        Ok(self.execute(Rpc::EvaluateDecision, self.client.next_partition(), command, self.request_timeout))
    }
}
