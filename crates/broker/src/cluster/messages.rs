//! What the nodes of a cluster say to each other, besides Raft and snapshots, as bytes.

use std::collections::BTreeSet;
use std::num::NonZeroU64;

use engine::FeatureLevel;
use minicbor::{Decode, Encode};
use peers::{DirectoryId, NodeNumber};
use protocol::PartitionId;

use super::configuration::ClusterConfiguration;
use super::founding::{Empty, FoundingMessage};
use crate::flow_control::Admission;
use crate::status::{Health, PartitionView, Role};
use crate::submit_error::SubmitError;

/// Kinds of frames.
pub(crate) mod kind {
    use peers::KIND_MIN;

    /// [`super::FoundingMessage::Ask`].
    pub const ASK: u8 = KIND_MIN;
    /// [`super::FoundingMessage::Empty`].
    pub const EMPTY: u8 = KIND_MIN + 1;
    /// [`super::FoundingMessage::Configuration`].
    pub const CONFIGURATION: u8 = KIND_MIN + 2;
    /// An encoded [`replication::Frame`] with a message of Raft.
    pub const RAFT: u8 = KIND_MIN + 3;
    /// [`super::ForwardedCommand`].
    pub const COMMAND: u8 = KIND_MIN + 4;
    /// [`super::RefusedCommand`].
    pub const REFUSAL: u8 = KIND_MIN + 5;
    /// [`super::NodeStatus`].
    pub const STATUS: u8 = KIND_MIN + 6;
    /// An encoded [`replication::Frame`] with a part of a snapshot.
    pub const SNAPSHOT: u8 = KIND_MIN + 7;
    /// The number of a node whose directory is to be replaced, for the leader of the first partition.
    pub const REPLACE: u8 = KIND_MIN + 8;
    /// [`crate::exporting::Said`].
    pub const EXPORTED: u8 = KIND_MIN + 9;
    /// The number of a question that [`super::super::reached::Reached`] answers, 8 bytes.
    pub const HOW_FAR: u8 = KIND_MIN + 10;
    /// [`super::super::reached::Reached`].
    pub const REACHED: u8 = KIND_MIN + 11;
}

/// Bytes that are no message of their kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a message of another node cannot be read: {0}")]
pub(crate) struct MessageError(String);

fn malformed(problem: impl ToString) -> MessageError {
    MessageError(problem.to_string())
}

#[derive(Encode, Decode)]
struct EncodedEmpty {
    #[n(0)]
    directory: u64,
    #[n(1)]
    partition_count: u16,
    #[n(2)]
    first_level: u32,
    #[n(3)]
    members: Vec<u32>,
}

impl FoundingMessage {
    /// The kind and the payload.
    pub fn encode(&self) -> (u8, Vec<u8>) {
        match self {
            FoundingMessage::Ask => (kind::ASK, Vec::new()),
            FoundingMessage::Empty(Empty { directory, partition_count, first_level, members }) => {
                let empty = EncodedEmpty {
                    directory: directory.0.get(),
                    partition_count: *partition_count,
                    first_level: first_level.number(),
                    members: members.iter().map(|node| node.0).collect(),
                };
                (kind::EMPTY, protocol::encode_to_vec(&empty))
            }
            FoundingMessage::Configuration(configuration) => {
                (kind::CONFIGURATION, configuration.to_text().into_bytes())
            }
        }
    }

    /// The message of a kind; none for other kinds.
    pub fn decode(kind: u8, payload: &[u8]) -> Option<Result<FoundingMessage, MessageError>> {
        match kind {
            kind::ASK => Some(Ok(FoundingMessage::Ask)),
            kind::EMPTY => Some(decode_empty(payload).map(FoundingMessage::Empty)),
            kind::CONFIGURATION => {
                let read = ClusterConfiguration::from_text(payload).map_err(malformed);
                Some(read.map(|configuration| FoundingMessage::Configuration(Box::new(configuration))))
            }
            _ => None,
        }
    }
}

fn decode_empty(payload: &[u8]) -> Result<Empty, MessageError> {
    let EncodedEmpty { directory, partition_count, first_level, members } =
        protocol::decode(payload).map_err(malformed)?;
    let directory = NonZeroU64::new(directory).map(DirectoryId).ok_or_else(|| malformed("a directory is 0"))?;
    let first_level = FeatureLevel::new(first_level).map_err(malformed)?;
    let members: BTreeSet<_> = members.into_iter().map(NodeNumber).collect();
    Ok(Empty { directory, partition_count, first_level, members })
}

/// A command on its way to the leader of its partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ForwardedCommand<'a> {
    /// Where it goes.
    pub partition: PartitionId,
    /// The node whose client sent it, and which gets a refusal.
    pub origin: u32,
    /// The sender at that node, whose commands take turns with those of others.
    pub sender: u64,
    /// The number of its request; none for what a node submits itself.
    pub request: Option<u64>,
    /// The term in which the receiver leads, as the node of the client knows.
    pub term: u64,
    /// How it is admitted.
    pub admission: Admission,
    /// The encoded command.
    pub bytes: &'a [u8],
}

/// Bytes before the encoded command.
const COMMAND_HEADER_BYTES: usize = 2 + 4 + 8 + 8 + 8 + 1;
const HAS_REQUEST: u8 = 1;

impl<'a> ForwardedCommand<'a> {
    /// The header; the command follows.
    pub fn header(&self) -> [u8; COMMAND_HEADER_BYTES] {
        let mut header = [0; COMMAND_HEADER_BYTES];
        header[..2].copy_from_slice(&self.partition.0.to_le_bytes());
        header[2..6].copy_from_slice(&self.origin.to_le_bytes());
        header[6..14].copy_from_slice(&self.sender.to_le_bytes());
        header[14..22].copy_from_slice(&self.request.unwrap_or_default().to_le_bytes());
        header[22..30].copy_from_slice(&self.term.to_le_bytes());
        let admission = Admission::ALL.iter().position(|known| *known == self.admission).unwrap_or_default();
        header[30] =
            u8::try_from(admission << 1).unwrap_or_default() | if self.request.is_some() { HAS_REQUEST } else { 0 };
        header
    }

    /// Reads a payload.
    pub fn decode(mut payload: &'a [u8]) -> Result<Self, MessageError> {
        let short = || malformed("a command ends early");
        let partition = PartitionId(u16::from_le_bytes(take(&mut payload).ok_or_else(short)?));
        let origin = u32::from_le_bytes(take(&mut payload).ok_or_else(short)?);
        let sender = u64::from_le_bytes(take(&mut payload).ok_or_else(short)?);
        let number = u64::from_le_bytes(take(&mut payload).ok_or_else(short)?);
        let term = u64::from_le_bytes(take(&mut payload).ok_or_else(short)?);
        let [flags] = take(&mut payload).ok_or_else(short)?;
        let request = (flags & HAS_REQUEST != 0).then_some(number);
        let admission = Admission::ALL.get(usize::from(flags >> 1)).copied();
        let admission = admission.ok_or_else(|| malformed("the admission of a command is unknown"))?;
        Ok(ForwardedCommand { partition, origin, sender, request, term, admission, bytes: payload })
    }
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*first)
}

/// Says to the node of a client that a command was not taken.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub(crate) struct RefusedCommand {
    /// The partition.
    #[n(0)]
    pub partition: u16,
    /// The number of the request.
    #[n(1)]
    pub request: u64,
    /// A limit is reached; otherwise the partition cannot take commands now.
    #[n(2)]
    pub is_exhausted: bool,
    /// Nothing was proposed, because the node does not lead the partition in the term of the command.
    #[n(4)]
    pub is_led_elsewhere: bool,
    /// The term of such a command.
    #[n(5)]
    pub term: u64,
    /// The sentence.
    #[n(3)]
    pub reason: String,
}

impl RefusedCommand {
    /// What is said of an error.
    pub fn new(partition: PartitionId, request: u64, error: &SubmitError) -> Self {
        let (is_exhausted, reason) = match error {
            SubmitError::ResourceExhausted { reason, .. } => (true, reason.clone()),
            SubmitError::Unavailable { reason, .. } => (false, reason.clone().into_owned()),
            error => (false, error.to_string()),
        };
        RefusedCommand { partition: partition.0, request, is_exhausted, is_led_elsewhere: false, term: 0, reason }
    }

    /// What a node says that does not lead the partition: the command may go to another one.
    pub fn not_taken(partition: PartitionId, request: u64, error: &SubmitError) -> Self {
        RefusedCommand { is_led_elsewhere: true, ..RefusedCommand::new(partition, request, error) }
    }

    /// The error at the node of the client.
    pub fn error(self) -> SubmitError {
        let partition = PartitionId(self.partition);
        match self.is_exhausted {
            true => SubmitError::ResourceExhausted { partition, reason: self.reason },
            false => SubmitError::Unavailable { partition, reason: self.reason.into() },
        }
    }
}

/// What a node says of itself several times a second.
#[derive(Debug, Clone, PartialEq, Eq, Default, Encode, Decode)]
pub(crate) struct NodeStatus {
    /// Where clients find its gateway; empty while that does not listen.
    #[n(0)]
    pub host: String,
    /// The port of its gateway.
    #[n(1)]
    pub port: u16,
    /// The version that it speaks for.
    #[n(2)]
    pub version: String,
    /// The newest feature level that it knows.
    #[n(3)]
    pub newest_level: u32,
    /// Checksums of the settings that become part of the state of partitions, in a fixed order.
    #[n(4)]
    pub settings: Vec<u32>,
    /// Its replicas.
    #[n(5)]
    pub replicas: Vec<ReplicaStatus>,
    /// How exporting was paused or resumed last, as [`crate::exporting::PauseChange::bits`] says.
    #[n(6)]
    pub pause: u64,
    /// The names of its exporters that the nodes have in common.
    #[n(7)]
    pub exporters: BTreeSet<String>,
    /// Its disk has no room for new work, so it should lead nothing.
    #[n(8)]
    pub is_short_of_room: bool,
}

impl NodeStatus {
    /// How many partitions the node leads.
    pub fn leaders(&self) -> usize {
        self.replicas.iter().filter(|replica| replica.role() == Role::Leader).count()
    }

    /// Its replica of a partition.
    pub fn replica(&self, partition: PartitionId) -> Option<&ReplicaStatus> {
        self.replicas.iter().find(|replica| replica.partition == partition.0)
    }
}

/// What a node says of one of its replicas.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub(crate) struct ReplicaStatus {
    /// The partition.
    #[n(0)]
    pub partition: u16,
    /// 1 leader, 2 follower, 3 inactive.
    #[n(1)]
    role: u8,
    /// 1 healthy, 2 unhealthy, 3 dead, 4 left out.
    #[n(2)]
    health: u8,
    /// Raft's term.
    #[n(3)]
    pub term: u64,
    /// The last entry of its log.
    #[n(4)]
    pub last_index: u64,
    /// Of a leader: the last entry that all members have.
    #[n(5)]
    pub replicated_index: u64,
    /// Position of the last record that is part of its state.
    #[n(6)]
    pub last_position: u64,
}

impl ReplicaStatus {
    /// A replica with its role and health; the rest is 0.
    pub fn new(partition: PartitionId, role: Role, health: Health) -> Self {
        let role = match role {
            Role::Leader => 1,
            Role::Follower => 2,
            Role::Inactive => 3,
        };
        let health = match health {
            Health::Healthy => 1,
            Health::Unhealthy => 2,
            Health::Dead => 3,
            Health::LeftOut => 4,
        };
        let (term, last_index, replicated_index, last_position) = (0, 0, 0, 0);
        ReplicaStatus { partition: partition.0, role, health, term, last_index, replicated_index, last_position }
    }

    /// What clients see of it.
    pub fn view(&self) -> PartitionView {
        PartitionView { id: PartitionId(self.partition), role: self.role(), health: self.health() }
    }

    /// What the replica does.
    pub fn role(&self) -> Role {
        match self.role {
            1 => Role::Leader,
            2 => Role::Follower,
            _ => Role::Inactive,
        }
    }

    /// How the replica is.
    pub fn health(&self) -> Health {
        match self.health {
            1 => Health::Healthy,
            3 => Health::Dead,
            4 => Health::LeftOut,
            _ => Health::Unhealthy,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::configuration::tests::{configuration, directory_of};
    use super::*;

    #[test]
    fn messages_are_read_back() {
        let empty = Empty {
            directory: directory_of(1),
            partition_count: 3,
            first_level: FeatureLevel::NEWEST,
            members: [0, 1, 2].map(NodeNumber).into(),
        };
        let configuration = FoundingMessage::Configuration(Box::new(configuration(3)));
        for message in [FoundingMessage::Ask, FoundingMessage::Empty(empty), configuration] {
            let (kind, payload) = message.encode();
            assert_eq!(FoundingMessage::decode(kind, &payload), Some(Ok(message)));
        }
        for request in [None, Some(0), Some(7 << 40)] {
            let command = ForwardedCommand {
                partition: PartitionId(3),
                origin: 2,
                sender: 9,
                request,
                term: 4,
                admission: Admission::Preferred,
                bytes: b"command",
            };
            let bytes = [&command.header()[..], command.bytes].concat();
            assert_eq!(ForwardedCommand::decode(&bytes), Ok(command));
            assert!(ForwardedCommand::decode(&bytes[..COMMAND_HEADER_BYTES - 1]).is_err());
        }
    }

    #[test]
    fn a_refusal_says_the_same_at_the_other_node() {
        let partition = PartitionId(2);
        for error in [
            SubmitError::ResourceExhausted { partition, reason: "full".to_owned() },
            SubmitError::Unavailable { partition, reason: "it has no leader".into() },
        ] {
            assert_eq!(RefusedCommand::new(partition, 5, &error).error(), error);
        }
    }
}
