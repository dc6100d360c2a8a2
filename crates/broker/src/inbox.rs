//! What the threads of a node say to each other.

use crossbeam_channel::Sender;
use protocol::{Command, PartitionId, Timestamp};
use replication::{GroupId, Message, NodeId, ReplicationError, SnapshotRequest};

use crate::flow_control::Permit;
use crate::partition_loop::PartitionLoop;
use crate::processing_thread::Slot;
use crate::replication_loop::CommittedEntry;

/// A message to the replication thread.
#[derive(Debug)]
pub(crate) enum Inbound {
    /// A command to be replicated.
    Command(QueuedCommand),
    /// A message of Raft from another node.
    Message {
        /// The message.
        message: Message,
        /// Its encoded size.
        bytes: usize,
    },
    /// Messages to this member get lost.
    Unreachable(NodeId),
    /// On a leader's word, all members have the log of a partition up to this index.
    EverybodyHas {
        /// The partition.
        partition: PartitionId,
        /// The index.
        index: u64,
    },
    /// Another node is to lead the partition: this member, or whichever has the most entries.
    HandOver {
        /// The partition.
        partition: PartitionId,
        /// The member.
        to: Option<NodeId>,
    },
    /// The process of this member is gone.
    Gone(NodeId),
    /// Take part in the group of one more partition.
    Add(Addition),
    /// The state of a partition is durable up to this index: the log may forget what is before.
    Checkpointed {
        /// The partition.
        partition: PartitionId,
        /// The last log index that is part of the state.
        applied: u64,
    },
    /// Which message goes with the state of exactly this index?
    SnapshotMessage {
        /// Who needs a state.
        request: Box<SnapshotRequest>,
        /// The last log index that is part of the state.
        at: u64,
        /// Told the message, or none when that state does not help.
        reply: Sender<Option<Message>>,
    },
    /// A state reached a node, or did not.
    SnapshotSent {
        /// Whose state it is.
        group: GroupId,
        /// Who should have it.
        to: NodeId,
        /// Whether it has.
        delivered: bool,
    },
    /// A state of another node is complete and durable here.
    SnapshotReceived {
        /// The message that goes with it.
        message: Box<Message>,
        /// Told whether the log takes it; none if it is to be asked again.
        reply: Sender<Option<bool>>,
    },
    /// A received state took the place of that of a partition.
    StateInstalled {
        /// The partition.
        partition: PartitionId,
        /// The last log index that is part of it.
        applied: u64,
        /// When its last batch happened.
        last_timestamp: Timestamp,
    },
    /// The state of a partition cannot be trusted any more: this node takes no part in its group from here on.
    Died(PartitionId),
    /// Take no more, finish what is under way and end.
    Stop,
}

/// A partition that this node takes part in from now on.
#[derive(Debug)]
pub(crate) struct Addition {
    /// The partition.
    pub partition: PartitionId,
    /// The nodes that make its group, if the log does not know it yet.
    pub voters: Vec<NodeId>,
    /// The last log index that is part of the state.
    pub applied: u64,
    /// When the last batch of the state happened.
    pub last_timestamp: Timestamp,
    /// The thread that will own it, and where its committed batches go.
    pub processing: Sender<Work>,
    /// For that thread, as soon as the log takes part: before the first batch, and before the partition can ask for anything.
    pub slot: Box<Slot>,
    /// Told whether the log takes part.
    pub done: Sender<Result<(), ReplicationError>>,
}

/// An encoded command on its way to the log.
#[derive(Debug)]
pub(crate) struct QueuedCommand {
    /// Where it goes.
    pub partition: PartitionId,
    /// The encoded command.
    pub bytes: Vec<u8>,
    /// Its share of the partition's limits; none for what the node itself submits.
    pub permit: Option<Permit>,
    /// The term whose leader took it in: no other one may propose it. None for what the node itself submits.
    pub term: Option<u64>,
}

impl QueuedCommand {
    /// A command of the node itself, which no limit refuses: there are never more of them than the work that was
    /// admitted before.
    pub fn internal(partition: PartitionId, command: &Command) -> Self {
        QueuedCommand { partition, bytes: protocol::encode_to_vec(command), permit: None, term: None }
    }
}

/// A message to a processing thread.
#[derive(Debug)]
pub(crate) enum Work {
    /// Committed batches of a partition, in order.
    Committed {
        /// The partition.
        partition: PartitionId,
        /// The batches.
        entries: Vec<CommittedEntry<Permit>>,
        /// The index that the log has reached with them.
        up_to: u64,
    },
    /// Own one more partition.
    Add(Box<Slot>),
    /// This node leads the partition, once everything before this message is applied.
    Lead {
        /// The partition.
        partition: PartitionId,
        /// The number of the leadership, for its entrance.
        leadership: u64,
    },
    /// This node does not lead the partition any more.
    StepDown(PartitionId),
    /// A received state of this index takes the place of that of the partition.
    Install {
        /// The partition.
        partition: PartitionId,
        /// The last log index that is part of the state.
        index: u64,
    },
    /// A received state took the place of that of the partition.
    Installed(Box<PartitionLoop<Permit>>),
    /// The log of the partition cannot be read, so nothing comes any more.
    LogFailed {
        /// The partition.
        partition: PartitionId,
        /// Why.
        reason: String,
    },
    /// Make a checkpoint, for a node that needs a newer one.
    Checkpoint(PartitionId),
    /// A checkpoint was written.
    CheckpointWritten {
        /// The partition.
        partition: PartitionId,
        /// Proof for the tables.
        written: state::Written,
    },
    /// Streams are compared with the states, and what belongs to nodes that are gone is given back.
    Reconcile,
    /// The node's clock was changed: all waits for a time start again.
    ClockChanged,
    /// Apply what came before, make a last checkpoint and end.
    Stop,
}

impl Work {
    /// The partition that it is for, which must have its state open for that.
    pub fn partition(&self) -> Option<PartitionId> {
        match self {
            Work::Committed { partition, .. }
            | Work::Lead { partition, .. }
            | Work::StepDown(partition)
            | Work::Checkpoint(partition)
            | Work::Install { partition, .. }
            | Work::LogFailed { partition, .. }
            | Work::CheckpointWritten { partition, .. } => Some(*partition),
            Work::Add(_) | Work::Installed(_) | Work::Reconcile | Work::ClockChanged | Work::Stop => None,
        }
    }
}
