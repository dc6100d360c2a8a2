//! States on their way between the nodes of a cluster, on threads of their own: what takes seconds holds up neither the log nor the
//! partitions.
//!
//! A leader's log asks for a state for a follower ([`SnapshotSender`]). A copy of the newest checkpoint goes in parts to the
//! follower's node, where it grows next to the state that it will replace ([`SnapshotReceiver`]), is checked, and is handed to the
//! log. The receiver says what became of it, and only then the leader's log goes on with the entries after it.

mod envelope;
mod host;
mod rate;
mod receiver;
mod sender;

use crossbeam_channel::Sender;
use replication::NodeId;

use envelope::Envelope;
pub use envelope::{EnvelopeError, Outcome};
pub use host::{SnapshotHost, SnapshotTransport, TransportError};
pub use receiver::{Incoming, SnapshotReceiver};
pub use sender::{SnapshotSender, ToSender};

/// Parts that wait for the thread that receives a state. The connection that brings more waits.
const WAITING_PARTS_MAX: usize = 8;

/// Where everything goes that other nodes send about states.
#[derive(Debug, Clone)]
pub struct SnapshotExchange {
    sender: Sender<ToSender>,
    receiver: Sender<Incoming>,
}

/// The ends of an exchange, for its two threads.
#[derive(Debug)]
pub struct ExchangeEnds {
    /// For the thread that sends.
    pub sender: crossbeam_channel::Receiver<ToSender>,
    /// For the thread that receives.
    pub receiver: crossbeam_channel::Receiver<Incoming>,
}

impl SnapshotExchange {
    /// An exchange, and where its threads get what comes.
    pub fn new() -> (Self, ExchangeEnds) {
        let (sender, of_sender) = crossbeam_channel::unbounded();
        let (receiver, of_receiver) = crossbeam_channel::bounded(WAITING_PARTS_MAX);
        (SnapshotExchange { sender, receiver }, ExchangeEnds { sender: of_sender, receiver: of_receiver })
    }

    /// Where the log asks for states.
    pub fn requests(&self) -> Sender<ToSender> {
        self.sender.clone()
    }

    /// What a node sent through [`SnapshotTransport::send`]. Waits while parts of a state come faster than they are written, so it is for
    /// a thread that brings nothing else.
    ///
    /// # Errors
    /// When the bytes are none that a node sends.
    pub fn received(&self, from: NodeId, bytes: Vec<u8>) -> Result<(), EnvelopeError> {
        // Whoever gets it may have ended.
        match Envelope::decode(&bytes)? {
            Envelope::Outcome(outcome) => drop(self.sender.send(ToSender::Outcome { from, outcome })),
            Envelope::Start { .. } | Envelope::Part(_) => drop(self.receiver.send(Incoming::Frame { from, bytes })),
        }
        Ok(())
    }

    /// A connection with a node broke: parts of states on their way to it, or from it, may be lost.
    pub fn disconnected(&self, node: NodeId) {
        drop(self.sender.send(ToSender::Disconnected(node)));
        drop(self.receiver.send(Incoming::Disconnected(node)));
    }
}

#[cfg(test)]
mod tests;
