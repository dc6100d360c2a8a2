//! What a port brings to its node.

use peers::NodeNumber;
use protocol::PartitionId;
use replication::{Message, NodeId};

use super::messages::{ForwardedCommand, RefusedCommand};
use super::reached::Reached;

/// The node that a port serves. No call blocks.
pub(crate) trait Served: Send + Sync {
    /// A message of Raft of so many bytes.
    fn message(&self, message: Message, bytes: usize);

    /// Commands to a node, and its refusals, may have been lost with the connection.
    fn disconnected(&self, node: NodeNumber);

    /// Commands reach a node again.
    fn reconnected(&self, node: NodeNumber);

    /// Messages to a member get lost.
    fn unreachable(&self, member: NodeId);

    /// The process of a member is gone.
    fn gone(&self, member: NodeId);

    /// The leader of a term says that all members have the log of a partition up to an index.
    fn everybody_has(&self, partition: PartitionId, term: u64, index: u64);

    /// A command of another node, for the leader of its partition.
    fn command(&self, from: NodeNumber, command: &ForwardedCommand<'_>);

    /// A command that this node sent was not taken.
    fn refused(&self, refusal: RefusedCommand);

    /// Somebody wants the directory of a node replaced.
    fn replace(&self, node: NodeNumber);

    /// How far the replicas of this node are, for a question.
    fn reached(&self, question: u64) -> Reached;

    /// Number of partitions.
    fn partition_count(&self) -> u16;
}
