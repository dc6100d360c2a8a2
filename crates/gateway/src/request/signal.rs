//! Broadcasting signals.

use protocol::{Command, Key, Payload, SignalIntent, SignalValue, Text};

use super::{Request, Submission};
use crate::executor::Router;
use crate::outcome::Failure;
use crate::tenants::tenant;
use crate::validation::Variables;

/// Has a signal for all that wait for it now, on every partition.
#[derive(Debug, Default)]
pub(crate) struct BroadcastSignal {
    pub signal_name: Text,
    pub variables: Variables,
    pub tenant_id: String,
}

/// A signal that was broadcast.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BroadcastedSignal {
    pub key: Key,
    pub tenant_id: Text,
}

impl Request for BroadcastSignal {
    type Answer = BroadcastedSignal;

    const STARTS_WORK: bool = true;

    /// Any partition tells the others; the one that is asked starts instances, so all take turns.
    fn submission(self, router: &Router<'_>) -> Result<Submission, Failure> {
        if self.signal_name.trim().is_empty() {
            return Err(Failure::InvalidArgument(
                "Expected the name of a signal, but it is empty or blank.".to_owned(),
            ));
        }
        let value = SignalValue {
            tenant_id: tenant(&self.tenant_id)?,
            variables: self.variables.check()?,
            signal_name: self.signal_name,
            rest: None,
        };
        let command = Command::new(Key::NONE, Payload::Signal(SignalIntent::Broadcast, Box::new(value)));
        Ok(Submission::new(router.next(), command))
    }

    fn answer(key: Key, payload: Payload) -> Result<Self::Answer, Payload> {
        match payload {
            Payload::Signal(_, value) => Ok(BroadcastedSignal { key, tenant_id: value.tenant_id }),
            other => Err(other),
        }
    }
}
