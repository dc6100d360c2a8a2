//! One leader a term, and one vote of each node: two leaders would both take commands, and acknowledge what only one of them
//! can keep.

use std::collections::BTreeMap;

use protocol::PartitionId;
use replication::{GroupStatus, NodeId, Role};

/// Who led which term.
#[derive(Default)]
pub struct Leaders {
    terms: BTreeMap<(PartitionId, u64), NodeId>,
    votes: BTreeMap<(NodeId, PartitionId, u64), NodeId>,
}

impl Leaders {
    /// A node votes for another.
    pub fn voted(&mut self, node: NodeId, partition: PartitionId, term: u64, candidate: NodeId) {
        let first = *self.votes.entry((node, partition, term)).or_insert(candidate);
        assert!(first == candidate, "node {node} votes for {first} and {candidate} in term {term} of {partition}");
    }

    /// What a node takes itself for.
    pub fn seen(&mut self, node: NodeId, partition: PartitionId, status: &GroupStatus) {
        if status.role != Role::Leader {
            return;
        }
        let first = *self.terms.entry((partition, status.term)).or_insert(node);
        assert!(first == node, "nodes {first} and {node} both lead {partition} in term {}", status.term);
    }
}
