//! Commands and the batches in which they are replicated.

use minicbor::{Decode, Decoder, Encode};

use crate::codec::{self, DecodeError, decode};
use crate::{Actor, Key, PartitionId, Payload, Timestamp};

/// Who waits for the answer to a command: a request at the gateway of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
pub struct Request {
    /// The node that holds the connection.
    #[n(0)]
    pub node: u32,
    /// Number of the request at that node. Its upper part is how often the node began to lead, as the partition's state counts it,
    /// so no number is used twice while that state remembers one.
    #[n(1)]
    pub number: u64,
}

/// Bits of the numbers of requests and streams that a node counts; above them is its life.
pub const NUMBER_BITS: u32 = 40;

/// The life of the node that gave a request or a stream this number: a higher one than in any life before.
pub const fn life_of(number: u64) -> u64 {
    number >> NUMBER_BITS
}

/// The place of a command in the order of commands from one partition to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct OutboxSource {
    /// The sending partition.
    #[n(0)]
    pub partition: PartitionId,
    /// Position in the order, from 1.
    #[n(1)]
    pub sequence: u64,
    /// The incarnation of the sending partition.
    #[n(2)]
    pub incarnation: u64,
    /// Whether the sender keeps none before it, so that a receiver which does not know where the order continues begins here.
    #[n(3)]
    pub is_oldest: bool,
}

/// An unknown payload is an error of whatever holds the command: a field that may be absent would else be read as if it were.
fn decode_payload<'b, C>(decoder: &mut Decoder<'b>, context: &mut C) -> Result<Payload, minicbor::decode::Error> {
    Payload::decode(decoder, context).map_err(codec::whole)
}

/// A command, as it is replicated.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub struct Command {
    /// The entity it is about; none for wishes that make one.
    #[n(0)]
    pub key: Key,
    /// What is wanted.
    #[n(1)]
    #[cbor(decode_with = "decode_payload")]
    pub payload: Payload,
    /// Who waits for the answer.
    #[n(2)]
    pub request: Option<Request>,
    /// A number chosen by the caller, repeated in every resulting record.
    #[n(3)]
    pub operation_reference: Option<u64>,
    /// Set when another partition sent it.
    #[n(4)]
    pub source: Option<OutboxSource>,
    /// Who sent it.
    #[n(5)]
    pub actor: Actor,
    /// The batch operation that it is a part of.
    #[n(6)]
    pub batch_operation_reference: Option<Key>,
}

impl Command {
    /// A command of nobody that is known, without a waiting request.
    pub fn new(key: Key, payload: Payload) -> Self {
        Command {
            key,
            payload,
            request: None,
            operation_reference: None,
            source: None,
            actor: Actor::Anonymous,
            batch_operation_reference: None,
        }
    }

    /// A command of the cluster to itself.
    pub fn of_system(key: Key, payload: Payload) -> Self {
        Command { actor: Actor::System, ..Command::new(key, payload) }
    }

    /// What all that follows from it repeats.
    pub fn origin(&self) -> Origin {
        Origin {
            operation_reference: self.operation_reference,
            actor: self.actor.clone(),
            batch_operation_reference: self.batch_operation_reference,
        }
    }

    /// The command as a consequence of what has this origin.
    #[must_use]
    pub fn following(self, origin: &Origin) -> Self {
        Command {
            operation_reference: origin.operation_reference,
            actor: origin.actor.clone(),
            batch_operation_reference: origin.batch_operation_reference,
            ..self
        }
    }
}

/// Where something comes from: every record and every further command that a command leads to has the command's own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// A number chosen by the caller.
    pub operation_reference: Option<u64>,
    /// Who wanted it.
    pub actor: Actor,
    /// The batch operation that it is a part of.
    pub batch_operation_reference: Option<Key>,
}

/// The commands that were replicated together, with the time at which they happen.
#[derive(Clone, Debug, PartialEq)]
pub struct CommandBatch {
    /// The leader's time; never earlier than that of the batch before.
    pub timestamp: Timestamp,
    /// The commands in order.
    pub commands: Vec<Command>,
}

/// Version of the layout of [`encode_batch`]; the first byte of every batch.
pub const BATCH_FORMAT: u8 = 1;
/// The oldest version whose programs read batches of this one; the second byte.
const BATCH_OLDEST_READER: u8 = 1;
/// The oldest version that this program reads.
const OLDEST_READABLE_BATCH: u8 = 1;

const VERSIONS_BYTES: usize = 2;
const HEADER_BYTES: usize = VERSIONS_BYTES + 8 + 4;

/// Joins commands that were encoded one by one: versions, time, count, then each with its length (all little-endian).
///
/// # Panics
/// When a command is longer than 4 GiB; the limits on payloads are far below.
pub fn encode_batch<'a>(timestamp: Timestamp, commands: impl ExactSizeIterator<Item = &'a [u8]> + Clone) -> Vec<u8> {
    let length = |bytes: usize| u32::try_from(bytes).expect("a command is below the payload limit");
    let size: usize = commands.clone().map(|command| 4 + command.len()).sum();
    let mut out = Vec::with_capacity(HEADER_BYTES + size);
    out.extend_from_slice(&[BATCH_FORMAT, BATCH_OLDEST_READER]);
    out.extend_from_slice(&timestamp.to_le_bytes());
    out.extend_from_slice(&length(commands.len()).to_le_bytes());
    for command in commands {
        out.extend_from_slice(&length(command.len()).to_le_bytes());
        out.extend_from_slice(command);
    }
    out
}

/// Reads a batch back.
///
/// # Errors
/// When the version is unknown, the bytes end early or a command cannot be read.
pub fn decode_batch(bytes: &[u8]) -> Result<CommandBatch, DecodeError> {
    let error = |reason: String| DecodeError { kind: "command batch", reason };
    let early = || error("it ends early".to_owned());
    let (&[version, oldest_reader], rest) = bytes.split_first_chunk::<VERSIONS_BYTES>().ok_or_else(early)?;
    if oldest_reader > BATCH_FORMAT || version < OLDEST_READABLE_BATCH {
        return Err(error(format!(
            "its format is {version}, for programs that know {oldest_reader} or a later one, and this version reads \
             {OLDEST_READABLE_BATCH} to {BATCH_FORMAT}; start the version that wrote it, or a newer one"
        )));
    }
    let (timestamp, rest) = rest.split_first_chunk::<8>().ok_or_else(early)?;
    let (count, mut rest) = rest.split_first_chunk::<4>().ok_or_else(early)?;
    let count = u32::from_le_bytes(*count) as usize;
    // Every command takes at least its length; a larger count is a lie that must not reserve memory.
    if count > rest.len() / 4 {
        return Err(early());
    }
    let mut commands = Vec::with_capacity(count);
    for _ in 0..count {
        let (length, after) = rest.split_first_chunk::<4>().ok_or_else(early)?;
        let (command, after) = after.split_at_checked(u32::from_le_bytes(*length) as usize).ok_or_else(early)?;
        commands.push(decode(command)?);
        rest = after;
    }
    if !rest.is_empty() {
        return Err(error(format!("{} bytes follow its end", rest.len())));
    }
    Ok(CommandBatch { timestamp: i64::from_le_bytes(*timestamp), commands })
}

/// The time of a batch, without reading its commands; none of bytes that are no batch.
pub fn batch_timestamp(bytes: &[u8]) -> Option<Timestamp> {
    let timestamp = bytes.get(VERSIONS_BYTES..)?.first_chunk::<8>()?;
    Some(Timestamp::from_le_bytes(*timestamp))
}
