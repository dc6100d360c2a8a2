//! Kept: the term that a node's log had reached, its vote in that term, and every entry of which the node knew that it is committed, are there after
//! a restart, or the node does not start. Otherwise it could vote twice, or help to commit something else in their place.

use std::collections::BTreeMap;

use protocol::PartitionId;
use replication::{GroupStatus, NodeId};

struct Durable {
    term: u64,
    vote: Option<NodeId>,
    commit: u64,
}

/// What each node's log held for sure.
#[derive(Default)]
pub struct Kept {
    durable: BTreeMap<(NodeId, PartitionId), Durable>,
}

impl Kept {
    /// Everything that a node has is durable now.
    pub fn durable(&mut self, node: NodeId, partition: PartitionId, status: &GroupStatus) {
        let GroupStatus { term, vote, commit, .. } = *status;
        self.durable.insert((node, partition), Durable { term, vote, commit });
    }

    /// A node starts on what it found.
    pub fn found(&self, node: NodeId, partition: PartitionId, status: &GroupStatus) {
        let Some(Durable { term, vote, commit }) = self.durable.get(&(node, partition)) else { return };
        assert!(status.term >= *term, "node {node} starts {partition} in term {}, after term {term}", status.term);
        let has_vote = status.term > *term || vote.is_none() || status.vote == *vote;
        assert!(has_vote, "node {node} starts {partition} in term {term} with {:?}, and voted {vote:?}", status.vote);
        let last = status.last_index;
        assert!(last >= *commit, "node {node} starts {partition} with a log up to {last}, and {commit} was committed");
    }
}
