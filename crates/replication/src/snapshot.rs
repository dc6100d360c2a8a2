//! Sending the state of a group to a follower that cannot be helped with entries any more.
//!
//! The leader's side: [`Round::snapshots_to_send`](crate::Round::snapshots_to_send) asks, a [`SnapshotSource`] opens the
//! newest durable state, [`SnapshotStream::open`] turns both into [`Frame`]s of bounded size, and
//! [`Replicas::snapshot_sent`] reports the outcome. The follower's side: a [`SnapshotReceiver`] writes the frames into a
//! [`SnapshotSink`] and returns the message to be stepped when the state is complete and durable; the state machine
//! replaces its state when [`Round::snapshots_to_install`](crate::Round::snapshots_to_install) says so.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};

use bytes::Bytes;

use crate::error::ReplicationError;
use crate::log_store::LogStore;
use crate::message::{Frame, Message};
use crate::replicas::Replicas;
use crate::round::SnapshotRequest;
use crate::types::{GroupId, NodeId, Position};

/// The state machine's side of sending.
pub trait SnapshotSource {
    /// Opens the newest durable state of the group: the index that it includes, and a consistent read of it.
    fn open(&self, group: GroupId) -> io::Result<(u64, Box<dyn Read + Send>)>;
}

/// The state machine's side of receiving.
pub trait SnapshotSink {
    /// Starts to stage the state of the group at the position, next to the group's current state. What was staged before
    /// for the group is obsolete.
    fn stage(&mut self, group: GroupId, position: Position) -> io::Result<Box<dyn StagedSnapshot>>;
}

/// A state that is being received.
pub trait StagedSnapshot: Write + Send {
    /// All bytes are there: checks them, and makes them durable. A restart must find them, because the log may from now on
    /// start behind them ([`ReplicationError::StateBehindLog`]).
    fn complete(self: Box<Self>) -> io::Result<()>;
}

/// A part of a state on its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotChunk {
    /// The group.
    pub group: GroupId,
    /// Who sends the state.
    pub from: NodeId,
    /// Who receives it.
    pub to: NodeId,
    /// Which state it is.
    pub position: Position,
    /// How many bytes came before.
    pub offset: u64,
    /// Whether the state ends here.
    pub last: bool,
    /// The bytes. Only the last chunk may be empty.
    pub data: Bytes,
}

/// A state on its way out: frames to be sent in order over one connection.
pub struct SnapshotStream {
    message: Message,
    position: Position,
    state: Box<dyn Read + Send>,
    chunk_bytes: usize,
    next: Next,
}

enum Next {
    Start,
    Chunk { offset: u64 },
    Nothing,
}

impl SnapshotStream {
    /// Opens the newest state for a request. Nothing, if the state is too old for the request: it has to wait for a
    /// newer checkpoint, and Raft asks again.
    pub fn open<L: LogStore>(
        replicas: &Replicas<L>,
        request: &SnapshotRequest,
        source: &impl SnapshotSource,
        chunk_bytes: usize,
    ) -> Result<Option<Self>, SnapshotError> {
        let (index, state) = source
            .open(request.group)
            .map_err(|error| SnapshotError::State { group: request.group, problem: error.to_string() })?;
        Ok(replicas.snapshot_message(request, index)?.and_then(|message| Self::new(message, state, chunk_bytes)))
    }

    /// A state with its message ([`Replicas::snapshot_message`]), in parts of so many bytes. Nothing, if the message announces
    /// no snapshot.
    #[must_use]
    pub fn new(message: Message, state: Box<dyn Read + Send>, chunk_bytes: usize) -> Option<Self> {
        let position = message.snapshot()?;
        Some(Self { message, position, state, chunk_bytes: chunk_bytes.max(1), next: Next::Start })
    }

    /// Which state it is.
    #[must_use]
    pub fn position(&self) -> Position {
        self.position
    }

    /// Who receives it.
    #[must_use]
    pub fn to(&self) -> NodeId {
        self.message.to()
    }

    /// The group whose state it is.
    #[must_use]
    pub fn group(&self) -> GroupId {
        self.message.group
    }

    /// The next frame; nothing after the last.
    pub fn next_frame(&mut self) -> io::Result<Option<Frame>> {
        let offset = match self.next {
            Next::Start => {
                self.next = Next::Chunk { offset: 0 };
                return Ok(Some(Frame::SnapshotStart(self.message.clone())));
            }
            Next::Chunk { offset } => offset,
            Next::Nothing => return Ok(None),
        };
        let mut data = Vec::new();
        (&mut self.state).take(self.chunk_bytes as u64).read_to_end(&mut data)?;
        // A chunk that is not full says that the state ends here.
        let last = data.len() < self.chunk_bytes;
        self.next = if last { Next::Nothing } else { Next::Chunk { offset: offset + data.len() as u64 } };
        Ok(Some(Frame::SnapshotChunk(SnapshotChunk {
            group: self.message.group,
            from: self.message.from(),
            to: self.message.to(),
            position: self.position,
            offset,
            last,
            data: data.into(),
        })))
    }
}

/// Receives states, at most one at a time per group.
#[derive(Default)]
pub struct SnapshotReceiver {
    incoming: BTreeMap<GroupId, Incoming>,
}

struct Incoming {
    message: Message,
    position: Position,
    staged: Box<dyn StagedSnapshot>,
    received: u64,
}

/// A snapshot cannot be sent or received.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the message says what each field is")]
pub enum SnapshotError {
    /// The state machine's side failed.
    #[error("The snapshot of group {group} cannot be read or staged: {problem}.")]
    State { group: GroupId, problem: String },
    /// A frame is missing or came twice. The rest of the stream is worthless; the leader has to send it again.
    #[error("The snapshot of group {group} cannot be received: {problem}. The leader has to send it again.")]
    OutOfOrder {
        group: GroupId,
        /// What does not fit.
        problem: &'static str,
    },
    /// The log failed.
    #[error(transparent)]
    Replication(#[from] ReplicationError),
}

impl SnapshotReceiver {
    /// Nothing is coming in.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A state is announced. What was coming in for the same group is dropped.
    pub fn start(&mut self, message: Message, sink: &mut impl SnapshotSink) -> Result<(), SnapshotError> {
        let group = message.group;
        self.incoming.remove(&group);
        let Some(position) = message.snapshot() else {
            let problem = "the message announces no snapshot";
            return Err(SnapshotError::OutOfOrder { group, problem });
        };
        let staged = sink.stage(group, position).map_err(|error| state_error(group, &error))?;
        self.incoming.insert(group, Incoming { message, position, staged, received: 0 });
        Ok(())
    }

    /// A part arrived. After the last one the state is complete and durable, and the message has to be stepped
    /// ([`Replicas::step`]).
    pub fn chunk(&mut self, chunk: &SnapshotChunk) -> Result<Option<Message>, SnapshotError> {
        let group = chunk.group;
        // Whatever goes wrong, the stream is dropped.
        let problem = |problem| SnapshotError::OutOfOrder { group, problem };
        let mut incoming = self.incoming.remove(&group).ok_or_else(|| problem("it was not announced"))?;
        if (incoming.position, incoming.message.from()) != (chunk.position, chunk.from) {
            // A part of an older stream; the current one continues.
            self.incoming.insert(group, incoming);
            return Err(problem("a part of another snapshot came in between"));
        }
        if incoming.received != chunk.offset {
            return Err(problem("a part is missing or came twice"));
        }
        if chunk.data.is_empty() && !chunk.last {
            return Err(problem("a part is empty"));
        }
        incoming.staged.write_all(&chunk.data).map_err(|error| state_error(group, &error))?;
        incoming.received += chunk.data.len() as u64;
        if !chunk.last {
            self.incoming.insert(group, incoming);
            return Ok(None);
        }
        incoming.staged.complete().map_err(|error| state_error(group, &error))?;
        Ok(Some(incoming.message))
    }

    /// The connection to a node broke: its streams never become complete.
    pub fn disconnected(&mut self, from: NodeId) {
        self.incoming.retain(|_, incoming| incoming.message.from() != from);
    }
}

fn state_error(group: GroupId, error: &io::Error) -> SnapshotError {
    SnapshotError::State { group, problem: error.to_string() }
}
