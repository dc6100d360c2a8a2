//! Values about the work between and inside partitions.

use minicbor::{Decode, Encode};
use serde::Serialize;

use crate::{Command, Key, PartitionId, Text};

/// The way of one command to the other partitions.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CommandDistributionValue {
    /// The partition that it goes to, or came from.
    #[n(0)]
    pub partition_id: PartitionId,
    /// Distributions of one queue keep their order.
    #[n(1)]
    pub queue_id: Text,
    /// Value type of the command.
    #[n(2)]
    pub value_type: Text,
    /// Intent of the command.
    #[n(3)]
    pub intent: Text,
    /// The command; only in the record that starts the distribution.
    #[n(4)]
    #[serde(rename = "commandValue", serialize_with = "super::complete::command_value")]
    pub command: Option<Box<Command>>,
}

/// A command for another partition, kept until that partition has it.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OutboxValue {
    /// The other partition.
    #[n(0)]
    pub partition: PartitionId,
    /// Position in the order of commands between the two, from 1.
    #[n(1)]
    pub sequence: u64,
    /// The distribution that waits for it, if any.
    #[n(2)]
    pub distribution_key: Key,
    /// The command, while it is kept.
    #[n(3)]
    #[serde(skip)]
    pub command: Option<Box<Command>>,
    /// The incarnation of the sending partition.
    #[n(4)]
    pub incarnation: u64,
}

/// Steps that did not fit their command and are taken later.
#[derive(Clone, Debug, Default, PartialEq, Encode, Decode, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkValue {
    /// Position in the queue.
    #[n(0)]
    pub sequence: u64,
    #[n(1)]
    pub process_instance_key: Key,
    /// What is to be done, in order.
    #[n(2)]
    #[serde(skip)]
    pub commands: Vec<Command>,
    /// How many continuations led here without a wait between them.
    #[n(3)]
    #[serde(skip)]
    pub rounds: u32,
    /// Whether there were more steps than one entry holds, so that others belong between these and what these cause.
    #[n(4)]
    #[serde(skip)]
    pub is_part: bool,
}
