//! Kept: the term that a node's log had reached, and every entry of which the node knew that it is committed, are there after
//! a restart, or the node does not start. Otherwise it could vote twice, or help to commit something else in their place.

use std::collections::BTreeMap;

use protocol::PartitionId;
use replication::{GroupStatus, NodeId};

/// What each node's log held for sure.
#[derive(Default)]
pub struct Kept {
    terms_and_commits: BTreeMap<(NodeId, PartitionId), (u64, u64)>,
}

impl Kept {
    /// Everything that a node has is durable now.
    pub fn durable(&mut self, node: NodeId, partition: PartitionId, status: &GroupStatus) {
        self.terms_and_commits.insert((node, partition), (status.term, status.commit));
    }

    /// A node starts on what it found.
    pub fn found(&self, node: NodeId, partition: PartitionId, status: &GroupStatus) {
        let Some((term, commit)) = self.terms_and_commits.get(&(node, partition)) else { return };
        assert!(status.term >= *term, "node {node} starts {partition} in term {}, after term {term}", status.term);
        let last = status.last_index;
        assert!(last >= *commit, "node {node} starts {partition} with a log up to {last}, and {commit} was committed");
    }
}
