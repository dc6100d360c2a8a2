//! The thread that sends states to followers that entries cannot help any more.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::Receiver;
use replication::{Frame, GroupId, NodeId, SnapshotRequest, SnapshotStream};

use super::envelope::{Envelope, Outcome};
use super::host::{SnapshotHost, SnapshotTransport, TransportError};
use super::rate::Rate;
use crate::snapshots::{self, partition_of};
use crate::state_handle::StateHandles;

/// The most bytes of a state in one part. With what goes around them, a message has at most 1 MiB.
const PART_BYTES_MAX: usize = (1 << 20) - (4 << 10);
/// States leave the node no faster.
const BYTES_PER_SECOND_MAX: u64 = 64 << 20;
/// Pause before bytes are sent again that found no room.
const FULL_PAUSE: Duration = Duration::from_millis(5);
/// A receiver that takes nothing for so long does not get the rest.
const FULL_TIME_MAX: Duration = Duration::from_secs(60);
/// A state that takes longer to send is of no use any more.
const SENDING_TIME_MAX: Duration = Duration::from_secs(3_600);
/// How long a receiver may take to check and store a state, and how much longer for each part of it.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(60);
const ANSWER_TIME_FOR_EACH_PART: Duration = Duration::from_millis(100);
/// Pause before the log hears of a failure and asks again, at first and at most.
const FAILURE_PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));
/// How often the thread looks while it waits.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// A message to the thread that sends states.
#[derive(Debug)]
pub enum ToSender {
    /// A follower needs a state.
    Request(Box<SnapshotRequest>),
    /// A follower says what became of a state.
    Outcome {
        /// The follower.
        from: NodeId,
        /// What became of it.
        outcome: Outcome,
    },
    /// What is on its way to this follower may be lost.
    Disconnected(NodeId),
}

/// Sends one state at a time.
pub struct SnapshotSender {
    host: Arc<dyn SnapshotHost>,
    transport: Arc<dyn SnapshotTransport>,
    messages: Receiver<ToSender>,
    /// Closed when the node stops.
    stop: Receiver<()>,
    states: StateHandles,
    /// Where copies are made, which vanish by themselves.
    directory: PathBuf,
    /// Bounded by the groups and members that there are.
    waiting: VecDeque<SnapshotRequest>,
    /// States that were sent and not answered yet, and failures that the log is to hear of later: one of each follower.
    pending: BTreeMap<NodeId, Pending>,
    /// The pause after the last failure of each follower.
    pauses: BTreeMap<NodeId, Duration>,
    rate: Rate,
    started: Instant,
}

/// What the log does not know yet.
#[derive(Debug, Clone, Copy)]
struct Pending {
    group: GroupId,
    /// Of the state that was sent; none when the sending failed.
    index: Option<u64>,
    /// When it counts as failed.
    until: Instant,
}

/// Why a state was not sent.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("the partition has no state here now")]
    NoState,
    #[error("the newest checkpoint does not help; a newer one will")]
    OldState,
    #[error("a copy of the state needs {needed} bytes, and {spare} are left on the disk")]
    NoRoom { needed: u64, spare: u64 },
    #[error("the state cannot be copied: {0}")]
    Copy(io::Error),
    #[error(transparent)]
    Transport(TransportError),
    #[error("it took more than {} s", SENDING_TIME_MAX.as_secs())]
    TooSlow,
    #[error("the receiver refused it")]
    Refused,
    #[error("the connection broke before the receiver had all of it")]
    Disconnected,
    #[error("the node stops")]
    Stops,
}

impl SnapshotSender {
    /// A sender of the states of a node, of which it makes copies in a directory.
    pub fn new(
        host: Arc<dyn SnapshotHost>,
        transport: Arc<dyn SnapshotTransport>,
        messages: Receiver<ToSender>,
        stop: Receiver<()>,
        states: StateHandles,
        directory: PathBuf,
    ) -> Self {
        SnapshotSender {
            host,
            transport,
            messages,
            stop,
            states,
            directory,
            waiting: VecDeque::new(),
            pending: BTreeMap::new(),
            pauses: BTreeMap::new(),
            rate: Rate::new(BYTES_PER_SECOND_MAX),
            started: Instant::now(),
        }
    }

    /// Runs until the node stops.
    pub fn run(mut self) {
        while !self.host.is_stopping() {
            let next = self.waiting.iter().position(|request| !self.pending.contains_key(&request.to));
            match next.and_then(|place| self.waiting.remove(place)) {
                Some(request) => self.serve(&request),
                None if !self.wait() => return,
                None => {}
            }
            while let Ok(message) = self.messages.try_recv() {
                self.take(message);
            }
            self.give_up();
        }
    }

    /// Waits for something to do. `false` at the end.
    fn wait(&mut self) -> bool {
        let until = self.pending.values().map(|pending| pending.until).min();
        let timer = until.map_or_else(crossbeam_channel::never, crossbeam_channel::at);
        crossbeam_channel::select! {
            recv(self.messages) -> message => match message {
                Ok(message) => self.take(message),
                Err(_) => return false,
            },
            recv(self.stop) -> _ => return false,
            recv(timer) -> _ => {}
        }
        true
    }

    fn take(&mut self, message: ToSender) {
        match message {
            ToSender::Request(request) => {
                // The newer one is of a later leadership.
                self.waiting.retain(|waiting| (waiting.group, waiting.to) != (request.group, request.to));
                self.waiting.push_back(*request);
            }
            ToSender::Outcome { from, outcome } => {
                let Outcome { group, index, is_taken } = outcome;
                let is_meant = |pending: &&Pending| (pending.group, pending.index) == (group, Some(index));
                let Some(pending) = self.pending.get(&from).filter(is_meant).copied() else { return };
                match is_taken {
                    true => {
                        tracing::info!(%group, node = %from, index, "the node has the state that it needed");
                        self.pending.remove(&from);
                        self.pauses.remove(&from);
                        self.host.sent(group, from, true);
                    }
                    false => self.failed(pending.group, from, &Failure::Refused),
                }
            }
            ToSender::Disconnected(node) => {
                let pending = self.pending.get(&node).filter(|pending| pending.index.is_some()).copied();
                if let Some(pending) = pending {
                    self.failed(pending.group, node, &Failure::Disconnected);
                }
            }
        }
    }

    /// The log hears of what failed, and asks again.
    fn give_up(&mut self) {
        let now = Instant::now();
        let over: Vec<_> = self.pending.iter().filter(|(_, pending)| pending.until <= now).map(|(to, _)| *to).collect();
        for to in over {
            let Some(pending) = self.pending.remove(&to) else { continue };
            if let Some(index) = pending.index {
                tracing::warn!(group = %pending.group, node = %to, index, "the node does not say whether it has the state");
            }
            self.host.sent(pending.group, to, false);
        }
    }

    fn failed(&mut self, group: GroupId, to: NodeId, failure: &Failure) {
        if !matches!(failure, Failure::Stops) {
            tracing::warn!(%group, node = %to, %failure, "a state that a node needs was not sent; it is tried again");
        }
        let pause = self.pauses.get(&to).map_or(FAILURE_PAUSE.0, |pause| (*pause * 2).min(FAILURE_PAUSE.1));
        self.pauses.insert(to, pause);
        self.pending.insert(to, Pending { group, index: None, until: Instant::now() + pause });
    }

    fn serve(&mut self, request: &SnapshotRequest) {
        let (group, to) = (request.group, request.to);
        match self.send(request) {
            // Unless the answer has come already.
            Ok(parts) => {
                if let Some(pending) = self.pending.get_mut(&to) {
                    pending.until = Instant::now() + ANSWER_TIME_MAX + ANSWER_TIME_FOR_EACH_PART * parts;
                }
            }
            // The message that says so was taken.
            Err(Failure::Refused | Failure::Disconnected) => {}
            Err(failure) => self.failed(group, to, &failure),
        }
    }

    /// Sends a state, and returns how many parts it had. The receiver may answer at any time.
    fn send(&mut self, request: &SnapshotRequest) -> Result<u32, Failure> {
        let (mut stream, state_bytes) = self.open(request)?;
        let index = stream.position().index;
        tracing::info!(
            group = %request.group, node = %request.to, index, bytes = state_bytes,
            "sending a state to a node that lacks more of the log than is kept"
        );
        let until = Instant::now() + SENDING_TIME_MAX;
        self.pending.insert(request.to, Pending { group: request.group, index: Some(index), until });
        let mut parts = 0;
        while let Some(frame) = stream.next_frame().map_err(Failure::Copy)? {
            let is_start = matches!(frame, Frame::SnapshotStart(_));
            let mut bytes = Vec::new();
            frame.encode(&mut bytes);
            let envelope =
                if is_start { Envelope::Start { state_bytes, frame: &bytes } } else { Envelope::Part(&bytes) };
            self.send_bytes(request, until, &envelope.encode())?;
            parts += 1;
        }
        Ok(parts)
    }

    /// Copies the newest checkpoint, so that its file need not be held while it goes out.
    fn open(&self, request: &SnapshotRequest) -> Result<(SnapshotStream, u64), Failure> {
        let partition = partition_of(request.group).map_err(Failure::Copy)?;
        let state = self.states.of(partition).and_then(|handle| handle.get()).ok_or(Failure::NoState)?;
        let held = state.0.hold().map_err(|error| Failure::Copy(io::Error::other(error)))?;
        let (store, _) = held.ok_or(Failure::OldState)?;
        let snapshot = store.snapshot().map_err(|error| Failure::Copy(io::Error::other(error)))?;
        let (needed, spare) = (store.file_bytes(), self.host.spare_bytes());
        if needed > spare {
            return Err(Failure::NoRoom { needed, spare });
        }
        // Before it is copied, so that the log keeps the entries after it.
        let message = self.host.message(request, snapshot.applied()).ok_or(Failure::OldState)?;
        let (copy, bytes) = snapshots::copy(&snapshot, &self.directory).map_err(Failure::Copy)?;
        let stream = SnapshotStream::new(message, copy, PART_BYTES_MAX).ok_or(Failure::OldState)?;
        Ok((stream, bytes))
    }

    fn send_bytes(&mut self, request: &SnapshotRequest, give_up: Instant, bytes: &[u8]) -> Result<(), Failure> {
        let full_until = Instant::now() + FULL_TIME_MAX;
        loop {
            self.look(request, give_up)?;
            match self.transport.send(request.to, bytes) {
                Ok(()) => break,
                Err(TransportError::Full) if Instant::now() < full_until => std::thread::sleep(FULL_PAUSE),
                Err(error) => return Err(Failure::Transport(error)),
            }
        }
        let until = Instant::now() + self.rate.pause_after(bytes.len(), self.started.elapsed());
        while Instant::now() < until {
            self.look(request, give_up)?;
            std::thread::sleep(until.saturating_duration_since(Instant::now()).min(LOOK_INTERVAL));
        }
        Ok(())
    }

    /// Whether the state is still wanted.
    fn look(&mut self, request: &SnapshotRequest, give_up: Instant) -> Result<(), Failure> {
        if self.host.is_stopping() {
            return Err(Failure::Stops);
        }
        while let Ok(message) = self.messages.try_recv() {
            self.take(message);
        }
        match self.pending.get(&request.to) {
            Some(pending) if pending.index.is_none() => Err(Failure::Refused),
            _ if Instant::now() >= give_up => Err(Failure::TooSlow),
            _ => Ok(()),
        }
    }
}
