//! Evaluating decisions.

use protocol::{Command, DecisionEvaluationIntent, DecisionEvaluationValue, Key, Payload, Text};

use super::{Request, Submission};
use crate::executor::Router;
use crate::outcome::Failure;
use crate::tenants::tenant;
use crate::validation::Variables;

/// Wants to know the result of a decision.
#[derive(Debug, Default)]
pub(crate) struct EvaluateDecision {
    /// Empty when the key names it.
    pub decision_id: Text,
    pub decision_key: i64,
    pub variables: Variables,
    pub tenant_id: String,
}

impl Request for EvaluateDecision {
    /// The key of the evaluation and what it gave.
    type Answer = (Key, Box<DecisionEvaluationValue>);

    const STARTS_WORK: bool = true;

    /// Every partition has all decisions, so they take turns.
    fn submission(self, router: &Router<'_>) -> Result<Submission, Failure> {
        let value = DecisionEvaluationValue {
            tenant_id: tenant(&self.tenant_id)?,
            variables: self.variables.check()?,
            decision_id: self.decision_id,
            decision_key: Key::from_raw(self.decision_key),
            ..DecisionEvaluationValue::default()
        };
        let payload = Payload::DecisionEvaluation(DecisionEvaluationIntent::Evaluate, Box::new(value));
        Ok(Submission::new(router.next(), Command::new(Key::NONE, payload)))
    }

    fn answer(key: Key, payload: Payload) -> Result<Self::Answer, Payload> {
        match payload {
            Payload::DecisionEvaluation(_, value) => Ok((key, value)),
            other => Err(other),
        }
    }
}
