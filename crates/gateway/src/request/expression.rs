//! Evaluating expressions.

use protocol::{Command, ExpressionIntent, ExpressionValue, Key, Payload, Text};

use super::{Request, Submission};
use crate::executor::Router;
use crate::outcome::Failure;
use crate::tenants::tenant;
use crate::validation::{Target, Variables};

/// Wants to know what an expression gives.
#[derive(Debug, Default)]
pub(crate) struct EvaluateExpression {
    /// With its `=`.
    pub expression: Text,
    /// The element instance whose variables it sees.
    pub scope_key: Option<i64>,
    /// What it sees before them.
    pub variables: Variables,
    pub tenant_id: String,
}

impl Request for EvaluateExpression {
    /// What it gave.
    type Answer = Box<ExpressionValue>;

    const STARTS_WORK: bool = true;

    /// The partition of the scope; without one they take turns.
    fn submission(self, router: &Router<'_>) -> Result<Submission, Failure> {
        let target = Target { intent: "EVALUATE", action: "evaluate expression", kind: "element instance" };
        let (partition, scope_key) = match self.scope_key {
            Some(key) => router.of_key(target, key)?,
            None => (router.next(), Key::NONE),
        };
        let value = ExpressionValue {
            expression: self.expression,
            tenant_id: tenant(&self.tenant_id)?,
            variables: self.variables.check()?,
            scope_key,
            ..ExpressionValue::default()
        };
        let payload = Payload::Expression(ExpressionIntent::Evaluate, Box::new(value));
        Ok(Submission::new(partition, Command::new(Key::NONE, payload)))
    }

    fn answer(_: Key, payload: Payload) -> Result<Self::Answer, Payload> {
        match payload {
            Payload::Expression(_, value) => Ok(value),
            other => Err(other),
        }
    }
}
