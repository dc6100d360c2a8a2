//! What the nodes say to each other, as values and as bytes.

use bytes::Bytes;
use protobuf::Message as _;
use raft::eraftpb::{self, MessageType};

use crate::error::DecodeError;
use crate::snapshot::{SnapshotChunk, SnapshotStream};
use crate::types::{GroupId, NodeId, Position};

/// A Raft message of one group on its way from one node to another.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// The group that it concerns.
    pub group: GroupId,
    pub(crate) raft: eraftpb::Message,
}

/// Takes messages on their way. Called in the middle of a round: what a leader has to say is on its way to the
/// followers while the leader's own disk still syncs.
pub trait Outbox {
    /// Sends the message now or drops it. Must not block: Raft repeats what gets lost.
    fn send(&mut self, message: Message);
}

impl Outbox for Vec<Message> {
    fn send(&mut self, message: Message) {
        self.push(message);
    }
}

/// Carries frames between nodes. What arrives is read with [`Frame::decode`] and goes to [`crate::Replicas::step`] or to a
/// [`crate::SnapshotReceiver`].
pub trait Transport: Outbox {
    /// Starts to send a state, without blocking. The outcome is reported with [`crate::Replicas::snapshot_sent`].
    fn send_snapshot(&mut self, stream: SnapshotStream);
}

/// What travels between nodes.
#[derive(Debug, Clone, PartialEq)]
pub enum Frame {
    /// A Raft message.
    Message(Message),
    /// A snapshot message; the state follows in chunks, and only then the message may be stepped.
    SnapshotStart(Message),
    /// A part of a state.
    SnapshotChunk(SnapshotChunk),
}

impl Frame {
    /// The addressee.
    #[must_use]
    pub fn to(&self) -> NodeId {
        match self {
            Self::Message(message) | Self::SnapshotStart(message) => message.to(),
            Self::SnapshotChunk(chunk) => chunk.to,
        }
    }

    /// Appends the frame's bytes. How long it is has to be said by the transport.
    pub fn encode(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Message(message) => {
                bytes.push(0);
                message.encode(bytes);
            }
            Self::SnapshotStart(message) => {
                bytes.push(1);
                message.encode(bytes);
            }
            Self::SnapshotChunk(chunk) => {
                bytes.push(2);
                bytes.push(u8::from(chunk.last));
                bytes.extend_from_slice(&chunk.group.0.to_be_bytes());
                for number in [chunk.from.0, chunk.to.0, chunk.position.index, chunk.position.term, chunk.offset] {
                    bytes.extend_from_slice(&number.to_be_bytes());
                }
                bytes.extend_from_slice(&crc32fast::hash(&chunk.data).to_be_bytes());
                bytes.extend_from_slice(&chunk.data);
            }
        }
    }

    /// Reads a frame, which may have at most `limit_bytes` bytes.
    pub fn decode(bytes: &[u8], limit_bytes: usize) -> Result<Self, DecodeError> {
        if bytes.len() > limit_bytes {
            return Err(DecodeError::TooLarge { bytes: bytes.len(), limit_bytes });
        }
        let malformed = |what: &str| DecodeError::Malformed(what.to_owned());
        let (kind, rest) = bytes.split_first().ok_or_else(|| malformed("it is empty"))?;
        match kind {
            0 => Message::decode(rest, limit_bytes).map(Self::Message),
            1 => {
                let message = Message::decode(rest, limit_bytes)?;
                message.snapshot().ok_or_else(|| malformed("a snapshot starts with another message"))?;
                Ok(Self::SnapshotStart(message))
            }
            2 => {
                decode_chunk(rest).ok_or_else(|| malformed("a part of a snapshot is damaged")).map(Self::SnapshotChunk)
            }
            _ => Err(malformed("its kind is unknown")),
        }
    }
}

fn decode_chunk(bytes: &[u8]) -> Option<SnapshotChunk> {
    let (last, bytes) = bytes.split_first()?;
    let (group, mut bytes) = bytes.split_first_chunk()?;
    let mut numbers = [0u64; 5];
    for number in &mut numbers {
        let (raw, rest) = bytes.split_first_chunk()?;
        *number = u64::from_be_bytes(*raw);
        bytes = rest;
    }
    let (checksum, data) = bytes.split_first_chunk()?;
    let [from, to, index, term, offset] = numbers;
    let intact = crc32fast::hash(data) == u32::from_be_bytes(*checksum) && *last <= 1;
    intact.then(|| SnapshotChunk {
        group: GroupId(u32::from_be_bytes(*group)),
        from: NodeId(from),
        to: NodeId(to),
        position: Position { index, term },
        offset,
        last: *last == 1,
        data: Bytes::copy_from_slice(data),
    })
}

impl Message {
    /// The sender.
    #[must_use]
    pub fn from(&self) -> NodeId {
        NodeId(self.raft.from)
    }

    /// The addressee.
    #[must_use]
    pub fn to(&self) -> NodeId {
        NodeId(self.raft.to)
    }

    /// The term in which the sender votes for the addressee with this message, if it does.
    #[must_use]
    pub fn vote(&self) -> Option<u64> {
        let is_vote = self.raft.get_msg_type() == MessageType::MsgRequestVoteResponse && !self.raft.reject;
        is_vote.then_some(self.raft.term)
    }

    /// The position of the state that the message announces, if it is a snapshot message. Such a message may only be
    /// stepped when the state of exactly this position is complete and durable on this node.
    #[must_use]
    pub fn snapshot(&self) -> Option<Position> {
        (self.raft.get_msg_type() == MessageType::MsgSnapshot).then(|| {
            let metadata = self.raft.get_snapshot().get_metadata();
            Position { index: metadata.index, term: metadata.term }
        })
    }

    /// Appends the message's bytes.
    pub fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.group.0.to_be_bytes());
        self.raft.write_to_vec(bytes).expect("a complete message is always encodable into memory");
    }

    /// Reads a message, which may have at most `limit_bytes` bytes.
    pub fn decode(bytes: &[u8], limit_bytes: usize) -> Result<Self, DecodeError> {
        if bytes.len() > limit_bytes {
            return Err(DecodeError::TooLarge { bytes: bytes.len(), limit_bytes });
        }
        let (group, raft) =
            bytes.split_first_chunk().ok_or_else(|| DecodeError::Malformed("too short for a group".to_owned()))?;
        refuse_protobuf_groups(raft, Shape::Message)?;
        let raft =
            eraftpb::Message::parse_from_bytes(raft).map_err(|error| DecodeError::Malformed(error.to_string()))?;
        Ok(Self { group: GroupId(u32::from_be_bytes(*group)), raft })
    }
}

/// The parts of a Raft message that contain parts.
#[derive(Clone, Copy)]
enum Shape {
    Message,
    Snapshot,
    SnapshotMetadata,
    Leaf,
}

impl Shape {
    /// The shape of a length-delimited field, if it is a message itself.
    fn field(self, number: u64) -> Option<Self> {
        match (self, number) {
            (Self::Message, 7) => Some(Self::Leaf),
            (Self::Message, 9) => Some(Self::Snapshot),
            (Self::Snapshot, 2) => Some(Self::SnapshotMetadata),
            (Self::SnapshotMetadata, 1) => Some(Self::Leaf),
            _ => None,
        }
    }
}

/// The protobuf decoder skips unknown "groups" (wire types 3 and 4) recursively and without a limit, so hostile bytes could
/// overflow the stack (RUSTSEC-2024-0437). Raft's messages have no groups: refuse them before decoding.
fn refuse_protobuf_groups(mut bytes: &[u8], shape: Shape) -> Result<(), DecodeError> {
    let malformed = |what: &str| DecodeError::Malformed(what.to_owned());
    while !bytes.is_empty() {
        let tag = take_varint(&mut bytes).ok_or_else(|| malformed("a field without a tag"))?;
        let skip = match tag & 7 {
            0 => {
                take_varint(&mut bytes).ok_or_else(|| malformed("a number that does not end"))?;
                0
            }
            1 => 8,
            2 => take_varint(&mut bytes).ok_or_else(|| malformed("a field without a length"))?,
            5 => 4,
            _ => return Err(malformed("a field of a wire type that Raft does not use")),
        };
        let skip = usize::try_from(skip).ok().filter(|skip| *skip <= bytes.len());
        let skip = skip.ok_or_else(|| malformed("a field that is longer than the frame"))?;
        let (content, rest) = bytes.split_at(skip);
        if tag & 7 == 2
            && let Some(shape) = shape.field(tag >> 3)
        {
            refuse_protobuf_groups(content, shape)?;
        }
        bytes = rest;
    }
    Ok(())
}

fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message() -> Message {
        let mut raft = eraftpb::Message::default();
        raft.set_msg_type(MessageType::MsgAppend);
        raft.from = 1;
        raft.to = 2;
        let entry = eraftpb::Entry { index: 7, data: vec![0x1b; 40].into(), ..eraftpb::Entry::default() };
        raft.mut_entries().push(entry);
        raft.mut_snapshot().mut_metadata().mut_conf_state().voters = vec![1, 2, 300];
        Message { group: GroupId(9), raft }
    }

    #[test]
    fn a_message_survives_its_bytes() {
        let mut bytes = Vec::new();
        message().encode(&mut bytes);
        assert_eq!(Message::decode(&bytes, bytes.len()).as_ref(), Ok(&message()));
        assert_eq!(
            Message::decode(&bytes, bytes.len() - 1),
            Err(DecodeError::TooLarge { bytes: bytes.len(), limit_bytes: bytes.len() - 1 })
        );
        for cut in 0..bytes.len() {
            // A prefix may happen to be a shorter message, but it is never the whole one, and never a panic.
            assert_ne!(Message::decode(&bytes[..cut], bytes.len()), Ok(message()));
        }
    }

    #[test]
    fn nested_groups_are_refused_before_the_decoder_recurses_into_them() {
        let mut bytes = Vec::new();
        message().encode(&mut bytes);
        bytes.extend(std::iter::repeat_n(0xa3, 1_000_000).flat_map(|tag| [tag, 0x06]));
        let error = Message::decode(&bytes, usize::MAX).expect_err("a group is no field of Raft");
        assert!(error.to_string().contains("wire type"), "{error}");
    }

    #[test]
    fn a_damaged_part_of_a_snapshot_is_refused() {
        let chunk = SnapshotChunk {
            group: GroupId(3),
            from: NodeId(1),
            to: NodeId(2),
            position: Position { index: 70, term: 8 },
            offset: 1 << 40,
            last: true,
            data: Bytes::from_static(b"some state"),
        };
        let mut bytes = Vec::new();
        Frame::SnapshotChunk(chunk.clone()).encode(&mut bytes);
        assert_eq!(Frame::decode(&bytes, bytes.len()), Ok(Frame::SnapshotChunk(chunk)));
        let data_at = bytes.len() - b"some state".len();
        for at in data_at - 4..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            Frame::decode(&damaged, bytes.len()).expect_err("the checksum does not match");
        }
        for cut in 0..bytes.len() {
            Frame::decode(&bytes[..cut], bytes.len()).expect_err("something is missing");
        }
    }
}
