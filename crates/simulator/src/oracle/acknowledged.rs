//! Acknowledged is durable: what a client was told is part of the history of every later leader, or the client acts on
//! something that never happened. (That the history itself never changes is watched by `replicas`.)

use std::collections::BTreeMap;

use engine::{Engine, Reply};
use protocol::PartitionId;
use replication::NodeId;

/// How far each partition's answers reach.
#[derive(Default)]
pub struct Acknowledged {
    newest: BTreeMap<PartitionId, u64>,
    newest_position: BTreeMap<PartitionId, u64>,
    answered: BTreeMap<u64, u64>,
}

impl Acknowledged {
    /// A client was answered after the log was applied up to an index.
    pub fn answered(&mut self, partition: PartitionId, index: u64, reply: &Reply) {
        let newest = self.newest.entry(partition).or_insert(0);
        *newest = (*newest).max(index);
        let newest = self.newest_position.entry(partition).or_insert(0);
        *newest = (*newest).max(reply.position.unwrap_or(0));
        let before = self.answered.insert(reply.request.number, index);
        assert!(before.is_none(), "request {} was answered twice, at {before:?} and {index}", reply.request.number);
    }

    /// At the end every node has everything that was answered, and the records that answers refer to.
    pub fn check(&self, node: NodeId, partition: PartitionId, engine: &Engine) {
        let newest = self.newest.get(&partition).copied().unwrap_or(0);
        let applied = engine.applied();
        assert!(applied >= newest, "node {node} has {partition} up to {applied}, and {newest} was acknowledged");
        let newest = self.newest_position.get(&partition).copied().unwrap_or(0);
        let last = engine.last_position();
        assert!(last >= newest, "node {node} has records of {partition} up to {last}, and {newest} was acknowledged");
    }
}
