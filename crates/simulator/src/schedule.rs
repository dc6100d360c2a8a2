//! What happens when, in virtual time.

use std::collections::BTreeMap;

use engine::Reply;
use protocol::{JobListenerEventType, Key, PartitionId};
use replication::{GroupId, NodeId};

use crate::network::Parcel;
use crate::node::News;
use crate::options::Milliseconds;

/// A life of a node, from a start to a stop. What was scheduled in one life does not happen in the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Life {
    /// The node.
    pub node: NodeId,
    /// Counts its starts.
    pub number: u64,
}

/// Something that happens.
pub enum Event {
    /// Raft's clock on a node.
    Tick(Life),
    /// A node takes what has come in and makes a round.
    Work(Life),
    /// What a round brought is known.
    RoundDone(Life, Vec<News>),
    /// What was committed is applied.
    Process(Life),
    /// The exporter of a node has a turn.
    Export(Life),
    /// Something arrives over the network.
    Arrival { from: NodeId, to: NodeId, parcel: Parcel },
    /// A checkpoint is written to the disk.
    WriteCheckpoint(Life, PartitionId),
    /// A checkpoint is on the disk.
    CheckpointWritten(Life, PartitionId),
    /// A state that was sent has arrived, or not.
    StateSent { life: Life, group: GroupId, to: NodeId, delivered: bool },
    /// A node starts.
    Start(NodeId),
    /// A link works again.
    Mend(NodeId, NodeId),
    /// A disk has room again.
    Room(NodeId),
    /// A disk can be written, and files can be opened again.
    Works(NodeId),
    /// A disk is as fast as before.
    Fast(NodeId),
    /// A worker does again what it did with a job that was pushed to it.
    Unfinished(Key, JobListenerEventType),
    /// Faults are drawn.
    Faults,
    /// A client does something.
    Act,
    /// A client's command reaches a node.
    Request { to: NodeId, partition: PartitionId, number: u64, bytes: Vec<u8> },
    /// A client learns the outcome of a command; none if it is unknown.
    Answer(u64, Option<Box<Reply>>),
}

/// Everything that will happen. What happens at the same time happens in the order in which it was scheduled.
#[derive(Default)]
pub struct Schedule {
    now: Milliseconds,
    count: u64,
    events: BTreeMap<(Milliseconds, u64), Event>,
}

impl Schedule {
    /// The time.
    pub fn now(&self) -> Milliseconds {
        self.now
    }

    /// Lets something happen after a while.
    pub fn after(&mut self, pause: Milliseconds, event: Event) {
        self.count += 1;
        self.events.insert((self.now + pause, self.count), event);
    }

    /// The next event; time passes until then.
    pub fn next(&mut self) -> Option<Event> {
        let ((at, _), event) = self.events.pop_first()?;
        self.now = at;
        Some(event)
    }
}
