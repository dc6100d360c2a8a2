//! The thread that receives states from leaders.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::Receiver;
use replication::{Frame, GroupId, Message, NodeId, SnapshotChunk};

use super::envelope::{Envelope, Outcome};
use super::host::{SnapshotHost, SnapshotTransport, TransportError};
use crate::snapshots::ReceivedStates;

/// The most bytes of a frame.
const FRAME_BYTES_MAX: usize = 1 << 20;
/// A state of which nothing comes for so long makes way for another one.
const STALLED_AFTER: Duration = Duration::from_secs(30);
/// How often its bytes a state takes on the disk while it comes in: as they came, and as a state.
const DISK_FACTOR: u64 = 2;
/// Pause before an answer is sent again that found no room, and how often that is tried.
const ANSWER_PAUSE: Duration = Duration::from_millis(20);
const ANSWER_ATTEMPTS_MAX: u32 = 50;

/// What comes from other nodes.
#[derive(Debug)]
pub enum Incoming {
    /// Bytes of a state.
    Frame {
        /// Who sent them.
        from: NodeId,
        /// What was sent.
        bytes: Vec<u8>,
    },
    /// The connection from a node broke.
    Disconnected(NodeId),
}

/// Receives one state at a time.
pub struct SnapshotReceiver {
    host: Arc<dyn SnapshotHost>,
    transport: Arc<dyn SnapshotTransport>,
    incoming: Receiver<Incoming>,
    /// Closed when the node stops.
    stop: Receiver<()>,
    received: ReceivedStates,
    receiver: replication::SnapshotReceiver,
    present: Option<Present>,
    /// Of this one, what still comes gets no answer again.
    refused: Option<(NodeId, GroupId, u64)>,
}

/// The state that is coming in.
#[derive(Debug, Clone, Copy)]
struct Present {
    from: NodeId,
    group: GroupId,
    index: u64,
    /// How many bytes it still may have.
    bytes_left: u64,
    last_part: Instant,
}

impl SnapshotReceiver {
    /// A receiver that stages states.
    pub fn new(
        host: Arc<dyn SnapshotHost>,
        transport: Arc<dyn SnapshotTransport>,
        incoming: Receiver<Incoming>,
        stop: Receiver<()>,
        received: ReceivedStates,
    ) -> Self {
        let receiver = replication::SnapshotReceiver::new();
        SnapshotReceiver { host, transport, incoming, stop, received, receiver, present: None, refused: None }
    }

    /// Runs until the node stops.
    pub fn run(mut self) {
        while !self.host.is_stopping() {
            crossbeam_channel::select! {
                recv(self.incoming) -> incoming => match incoming {
                    Ok(Incoming::Frame { from, bytes }) => self.take(from, &bytes),
                    Ok(Incoming::Disconnected(from)) => self.disconnected(from),
                    Err(_) => return,
                },
                recv(self.stop) -> _ => return,
            }
        }
    }

    fn take(&mut self, from: NodeId, bytes: &[u8]) {
        let decoded = Envelope::decode(bytes).map_err(|error| error.to_string());
        let frame = decoded.and_then(|envelope| {
            let (state_bytes, frame) = match envelope {
                Envelope::Start { state_bytes, frame } => (state_bytes, frame),
                Envelope::Part(frame) => (0, frame),
                Envelope::Outcome(_) => return Err("an answer is nothing to receive".to_owned()),
            };
            let frame = Frame::decode(frame, FRAME_BYTES_MAX).map_err(|error| error.to_string())?;
            Ok((state_bytes, frame))
        });
        match frame {
            Ok((state_bytes, Frame::SnapshotStart(message))) if message.from() == from => {
                self.start(message, state_bytes);
            }
            Ok((_, Frame::SnapshotChunk(chunk))) if chunk.from == from => self.part(&chunk),
            Ok(_) => tracing::warn!(node = %from, "a node sent a part of a state that is not its own; it is ignored"),
            Err(problem) => tracing::warn!(node = %from, problem, "a part of a state cannot be read; it is ignored"),
        }
    }

    fn start(&mut self, message: Message, state_bytes: u64) {
        let (from, group) = (message.from(), message.group);
        let Some(position) = message.snapshot() else { return };
        let next = Present { from, group, index: position.index, bytes_left: state_bytes, last_part: Instant::now() };
        if let Some(present) = self.present
            && (present.from, present.group) != (from, group)
        {
            if present.last_part.elapsed() < STALLED_AFTER {
                tracing::debug!(%group, node = %from, other = %present.group, "another state is coming in; it is asked for later");
                return self.answer(next, false);
            }
            self.drop_present();
        }
        let (needed, spare) = (state_bytes.saturating_mul(DISK_FACTOR), self.host.spare_bytes());
        if needed > spare {
            tracing::warn!(
                %group, node = %from, needed, spare,
                "the disk has no room for a state that this node needs; make room, it comes again"
            );
            return self.answer(next, false);
        }
        match self.receiver.start(message, &mut self.received) {
            Ok(()) => (self.present, self.refused) = (Some(next), None),
            Err(error) => {
                tracing::warn!(%group, node = %from, %error, "a state cannot be received");
                self.present = None;
                self.answer(next, false);
            }
        }
    }

    fn part(&mut self, chunk: &SnapshotChunk) {
        let of = (chunk.from, chunk.group, chunk.position.index);
        let is_present = |present: &Present| (present.from, present.group, present.index) == of;
        let Some(mut present) = self.present.filter(is_present) else {
            // The rest of one that was refused or dropped: its sender must not go on without knowing that.
            if self.refused != Some(of) {
                let (from, group, index) = of;
                self.answer(Present { from, group, index, bytes_left: 0, last_part: Instant::now() }, false);
            }
            return;
        };
        let bytes = chunk.data.len() as u64;
        if bytes > present.bytes_left {
            tracing::warn!(group = %chunk.group, node = %chunk.from, "a state has more bytes than were announced");
            self.drop_present();
            return self.answer(present, false);
        }
        match self.receiver.chunk(chunk) {
            Ok(None) => {
                present.bytes_left -= bytes;
                present.last_part = Instant::now();
                self.present = Some(present);
            }
            Ok(Some(message)) => {
                self.present = None;
                let is_taken = self.host.step(message);
                self.answer(present, is_taken);
            }
            Err(error) => {
                tracing::warn!(group = %chunk.group, node = %chunk.from, %error, "a state was not received");
                self.drop_present();
                self.answer(present, false);
            }
        }
    }

    fn disconnected(&mut self, from: NodeId) {
        if self.present.is_some_and(|present| present.from == from) {
            tracing::debug!(node = %from, "the connection broke that brought a state");
            self.drop_present();
        }
    }

    fn drop_present(&mut self) {
        if let Some(present) = self.present.take() {
            self.receiver.disconnected(present.from);
        }
    }

    /// Without an answer the sender waits for a while, and sends again.
    fn answer(&mut self, to: Present, is_taken: bool) {
        self.refused = (!is_taken).then_some((to.from, to.group, to.index));
        let outcome = Outcome { group: to.group, index: to.index, is_taken };
        let bytes = Envelope::Outcome(outcome).encode();
        for _ in 0..ANSWER_ATTEMPTS_MAX {
            match self.transport.send(to.from, &bytes) {
                Err(TransportError::Full) if !self.host.is_stopping() => std::thread::sleep(ANSWER_PAUSE),
                Err(error) => {
                    return tracing::debug!(node = %to.from, %error, "the sender of a state gets no answer");
                }
                Ok(()) => return,
            }
        }
    }
}
