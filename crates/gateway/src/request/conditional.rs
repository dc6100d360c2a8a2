//! Starting processes by conditions.

use protocol::{Command, ConditionalEvaluationIntent, ConditionalEvaluationValue, Key, Payload};

use super::{Request, Submission};
use crate::executor::Router;
use crate::outcome::Failure;
use crate::tenants::tenant;
use crate::validation::Variables;

/// Has an instance started for each conditional start event whose condition holds.
#[derive(Debug, Default)]
pub(crate) struct EvaluateConditional {
    /// Only start events of this definition.
    pub process_definition_key: Option<i64>,
    pub variables: Variables,
    pub tenant_id: String,
}

impl Request for EvaluateConditional {
    /// The key of the evaluation and what it started.
    type Answer = (Key, Box<ConditionalEvaluationValue>);

    const STARTS_WORK: bool = true;

    /// Every partition knows all start events; the one that is asked starts instances, so all take turns.
    fn submission(self, router: &Router<'_>) -> Result<Submission, Failure> {
        let definition = self.process_definition_key;
        if let Some(key) = definition.filter(|key| *key < 1) {
            return Err(Failure::InvalidArgument(format!(
                "Expected the key of a process definition to be positive, but it is {key}."
            )));
        }
        let value = ConditionalEvaluationValue {
            process_definition_key: definition.map_or(Key::NONE, Key::from_raw),
            tenant_id: tenant(&self.tenant_id)?,
            variables: self.variables.check()?,
            started_process_instances: Vec::new(),
        };
        let payload = Payload::ConditionalEvaluation(ConditionalEvaluationIntent::Evaluate, Box::new(value));
        Ok(Submission::new(router.next(), Command::new(Key::NONE, payload)))
    }

    fn answer(key: Key, payload: Payload) -> Result<Self::Answer, Payload> {
        match payload {
            Payload::ConditionalEvaluation(_, value) => Ok((key, value)),
            other => Err(other),
        }
    }
}
