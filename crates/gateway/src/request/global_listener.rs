//! Defining, changing and deleting listeners of the user tasks of all processes.

use protocol::{Command, GlobalListenerIntent, GlobalListenerValue, Key, PartitionId, Payload};

use super::{Request, Submission};
use crate::executor::Router;
use crate::outcome::Failure;

/// Wants a global listener to be like this, or to be gone.
#[derive(Debug)]
pub(crate) struct ChangeGlobalListener {
    /// CREATE, UPDATE or DELETE.
    pub intent: GlobalListenerIntent,
    pub listener: GlobalListenerValue,
}

impl Request for ChangeGlobalListener {
    type Answer = Box<GlobalListenerValue>;

    const STARTS_WORK: bool = false;

    /// Where deployments are decided, too.
    fn submission(self, _: &Router<'_>) -> Result<Submission, Failure> {
        let payload = Payload::GlobalListener(self.intent, Box::new(self.listener));
        Ok(Submission::new(PartitionId::DEPLOYMENT, Command::new(Key::NONE, payload)))
    }

    fn answer(_: Key, payload: Payload) -> Result<Self::Answer, Payload> {
        match payload {
            Payload::GlobalListener(_, value) => Ok(value),
            other => Err(other),
        }
    }
}
