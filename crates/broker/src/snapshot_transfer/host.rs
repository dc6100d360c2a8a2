//! What the threads that send and receive states need of their node.

use replication::{GroupId, Message, NodeId, SnapshotRequest};

/// Brings bytes to other nodes, in order and whole, or not at all.
pub trait SnapshotTransport: Send + Sync {
    /// Sends bytes of at most 1 MiB, which the other node hands to
    /// [`SnapshotExchange::received`](super::SnapshotExchange::received).
    ///
    /// # Errors
    /// When they are not sent.
    fn send(&self, to: NodeId, bytes: &[u8]) -> Result<(), TransportError>;
}

/// Bytes are not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TransportError {
    /// As many wait as may: try again soon.
    #[error("the node takes less than it is sent")]
    Full,
    /// There is no connection, or no such node.
    #[error("the node cannot be reached")]
    Unreachable,
}

/// The log and the disk of a node.
pub trait SnapshotHost: Send + Sync {
    /// Asks the log for the message that goes with the state of exactly this index; none when that state does not help, or the node
    /// stops. Waits for the log.
    fn message(&self, request: &SnapshotRequest, at: u64) -> Option<Message>;

    /// Tells the log that a state reached a node, or did not.
    fn sent(&self, group: GroupId, to: NodeId, delivered: bool);

    /// Hands a received state to the log. `false` when the log does not take it, or the node stops. Waits for the log.
    fn step(&self, message: Message) -> bool;

    /// Bytes that may still be written to the disk before no new work is taken.
    fn spare_bytes(&self) -> u64;

    /// Whether the threads are to end.
    fn is_stopping(&self) -> bool;
}
