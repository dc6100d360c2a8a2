//! What clients may want of one partition, whatever their protocol: a file for each subject.
//!
//! A protocol makes one of these from what it reads, and renders the answer. What is checked here needs no state; what
//! depends on it is decided by the engine.

pub(crate) mod ad_hoc_sub_process;
pub(crate) mod conditional;
pub(crate) mod creation;
pub(crate) mod decision;
pub(crate) mod expression;
pub(crate) mod global_listener;
pub(crate) mod incident;
pub(crate) mod job;
pub(crate) mod message;
pub(crate) mod process_instance;
pub(crate) mod resource;
pub(crate) mod signal;
pub(crate) mod task_result;
pub(crate) mod user_task;
pub(crate) mod variable;

use std::time::Duration;

use protocol::{Command, Key, PartitionId, Payload};

use crate::executor::Router;
use crate::outcome::Failure;
use crate::validation::Target;

/// Something that one command to one partition does.
pub(crate) trait Request: Sized {
    /// What the client is told when it is done.
    type Answer;

    /// Whether it starts work, or computes for somebody: whatever the protocol, such a request waits while less goes on than is
    /// begun ([`crate::starts`]). The protocols ask this of the request that each of their operations makes.
    const STARTS_WORK: bool;

    /// What may still happen when the answer takes too long.
    const LATE: &'static str = "The command may still be carried out.";

    /// The command for it and where it goes, after all checks that need no state.
    fn submission(self, router: &Router<'_>) -> Result<Submission, Failure>;

    /// Reads the answer of the engine; gives it back when it is none to this request.
    fn answer(key: Key, payload: Payload) -> Result<Self::Answer, Payload>;
}

/// A command and where it goes.
pub(crate) struct Submission {
    pub partition: PartitionId,
    pub command: Command,
    /// How long the answer may take, when it is not as long as usual.
    pub limit: Option<Duration>,
}

impl Submission {
    pub(crate) fn new(partition: PartitionId, command: Command) -> Submission {
        Submission { partition, command, limit: None }
    }

    /// A command about the entity of a key goes to the partition of the key.
    pub(crate) fn by_key(
        router: &Router<'_>,
        target: Target,
        key: i64,
        operation_reference: Option<u64>,
        payload: impl FnOnce(Key) -> Payload,
    ) -> Result<Submission, Failure> {
        let (partition, key) = router.of_key(target, key)?;
        let command = Command { operation_reference, ..Command::new(key, payload(key)) };
        Ok(Submission::new(partition, command))
    }
}
