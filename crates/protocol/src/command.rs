//! Commands and the batches in which they are replicated.

use minicbor::{Decode, Encode};

use crate::codec::{DecodeError, decode};
use crate::{Key, PartitionId, Payload, Timestamp};

/// Who waits for the answer to a command: a request at the gateway of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
pub struct Request {
    /// The node that holds the connection.
    #[n(0)]
    pub node: u32,
    /// Number of the request at that node; never used twice in the life of a process.
    #[n(1)]
    pub number: u64,
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
}

/// A command, as it is replicated.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub struct Command {
    /// The entity it is about; none for wishes that make one.
    #[n(0)]
    pub key: Key,
    /// What is wanted.
    #[n(1)]
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
}

impl Command {
    /// A command without a waiting request.
    pub fn new(key: Key, payload: Payload) -> Self {
        Command { key, payload, request: None, operation_reference: None, source: None }
    }
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

const HEADER_BYTES: usize = 1 + 8 + 4;

/// Joins commands that were encoded one by one: version, time, count, then each with its length (all little-endian).
///
/// # Panics
/// When a command is longer than 4 GiB; the limits on payloads are far below.
pub fn encode_batch<'a>(timestamp: Timestamp, commands: impl ExactSizeIterator<Item = &'a [u8]> + Clone) -> Vec<u8> {
    let length = |bytes: usize| u32::try_from(bytes).expect("a command is below the payload limit");
    let size: usize = commands.clone().map(|command| 4 + command.len()).sum();
    let mut out = Vec::with_capacity(HEADER_BYTES + size);
    out.push(BATCH_FORMAT);
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
    let Some((&version, rest)) = bytes.split_first() else {
        return Err(error("it is empty".to_owned()));
    };
    if version != BATCH_FORMAT {
        return Err(error(format!("its format is {version}, this version reads {BATCH_FORMAT}")));
    }
    let early = || error("it ends early".to_owned());
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
