//! What the engine returns for an applied batch, besides the changed state.

use std::sync::Arc;

use protocol::{Command, JobValue, Key, PartitionId, Payload, Record, Rejection, Request, StreamId, Text};

/// Everything that one application produced. Records belong to every replica; the rest is carried out by the leader only.
#[derive(Debug, Default)]
pub struct Output {
    /// Events and rejections in order.
    pub records: Vec<Record>,
    /// Answers to waiting requests.
    pub replies: Vec<Reply>,
    /// Jobs for streams; already activated in the state.
    pub pushes: Vec<Push>,
    /// Types whose queue of waiting jobs is no longer empty, or got its first job after a failed activation.
    pub available: Vec<JobsAvailable>,
    /// Commands for other partitions: new outbox entries and acknowledgements.
    pub sends: Vec<OutgoingCommand>,
    /// What the commands have used of what they may.
    pub spent: Spent,
    /// About the bytes of the answers to the commands of the batch at hand.
    pub(crate) reply_bytes: u64,
}

/// What commands have used together of the limits of one, attempts that failed included.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Spent {
    /// Steps of expressions and decisions.
    pub evaluation_steps: u64,
    /// Bytes of variables that expressions and decisions read.
    pub evaluation_bytes_read: u64,
    /// Bytes that expressions and decisions built.
    pub evaluation_bytes_built: u64,
    /// What joining gateways looked at.
    pub joins_read: u64,
    /// About the bytes of the records.
    pub record_bytes: u64,
}

/// The answer to one request.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// Who asked.
    pub request: Request,
    /// Key of the entity that the answer is about.
    pub key: Key,
    /// On success the event that answers; on refusal the command as it was asked.
    pub payload: Payload,
    /// Set when the command was refused.
    pub rejection: Option<Rejection>,
    /// Position of the last record of the command that gave the answer: whoever has read the records of this partition up
    /// to it has seen all that this command did. None when that was nothing, as for an activation that finds no job.
    pub position: Option<u64>,
}

/// A job that was activated for a stream in the application that made it available.
#[derive(Debug, Clone, PartialEq)]
pub struct Push {
    /// The stream whose credit it used.
    pub stream: StreamId,
    /// Number of the push: the first job since the stream was opened has 1, and each further one of this partition the next.
    pub number: u64,
    /// The job.
    pub key: Key,
    /// The job with the variables that the worker asked for.
    pub job: Arc<JobValue>,
}

/// A hint that an activation of this type will find jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobsAvailable {
    /// Tenant of the jobs.
    pub tenant_id: Text,
    /// Type of the jobs.
    pub job_type: Text,
}

/// A command for another partition. `command.source` tells the receiver its position in the order.
#[derive(Debug, Clone, PartialEq)]
pub struct OutgoingCommand {
    /// Where it goes.
    pub partition: PartitionId,
    /// What is sent.
    pub command: Command,
}

impl Output {
    /// A command is over: tells the answers after the first `replies` how far its records reach, those after the first
    /// `records`.
    pub(crate) fn place_replies(&mut self, replies: usize, records: usize) {
        let position = self.records.get(records..).and_then(|records| records.last()).map(|record| record.position);
        self.replies.iter_mut().skip(replies).for_each(|reply| reply.position = position);
    }

    /// Empties all lists, keeping their memory.
    pub fn clear(&mut self) {
        self.records.clear();
        self.replies.clear();
        self.pushes.clear();
        self.available.clear();
        self.sends.clear();
        self.spent = Spent::default();
    }
}
