//! Exported: the exporter of every node gets each record as it was applied, in order, without a gap, and again only what
//! its target had not acknowledged. What is missing there is missing for everybody who reads the history outside.

use std::collections::BTreeMap;
use std::hash::Hasher;

use protocol::{PartitionId, Record};
use replication::NodeId;
use rustc_hash::FxHasher;

use crate::node::Told;

/// The records of all partitions, and how far each exporter is.
#[derive(Default)]
pub struct Exported {
    /// Checksums by position.
    records: BTreeMap<PartitionId, BTreeMap<u64, u64>>,
    exporters: BTreeMap<(NodeId, PartitionId), Progress>,
}

#[derive(Default)]
struct Progress {
    /// The last record since the exporter was opened.
    last: Option<u64>,
    acknowledged: u64,
    /// A state was received up to this position: the records before it never were on this node.
    received: u64,
}

fn checksum(record: &Record) -> u64 {
    let mut bytes = Vec::new();
    protocol::encode(record, &mut bytes);
    let mut hasher = FxHasher::default();
    hasher.write(&bytes);
    hasher.finish()
}

impl Exported {
    /// A record that was not seen before.
    pub fn record(&mut self, partition: PartitionId, record: &Record) {
        self.records.entry(partition).or_default().insert(record.position, checksum(record));
    }

    /// A node goes on from a state that another node sent, which ends with the record at a position.
    pub fn installed(&mut self, node: NodeId, partition: PartitionId, position: u64) {
        self.exporters.entry((node, partition)).or_default().received = position;
    }

    /// What the exporter of a node was told.
    pub fn told(&mut self, node: NodeId, told: &Told) {
        match told {
            Told::Opened(partition) => self.exporters.entry((node, *partition)).or_default().last = None,
            Told::Took(partition, record) => self.took(node, *partition, record),
            Told::Acknowledged(partition, position) => {
                let progress = self.exporters.entry((node, *partition)).or_default();
                progress.acknowledged = progress.acknowledged.max(*position);
            }
        }
    }

    /// The exporter of a node says that so many records were missing: only those that never were on the node can be.
    pub fn missed(&self, node: NodeId, partition: PartitionId, records: u64) {
        let received = self.exporters.get(&(node, partition)).map_or(0, |progress| progress.received);
        assert!(
            records == 0 || received > 0,
            "the exporter of node {node} says that {records} records of {partition} are missing, and they were all there"
        );
    }

    fn took(&mut self, node: NodeId, partition: PartitionId, record: &Record) {
        let (records, position) = (self.records.entry(partition).or_default(), record.position);
        let known = records.get(&position).copied();
        assert!(
            known == Some(checksum(record)),
            "the exporter of node {node} got another record of {partition} at position {position} than was applied"
        );
        let progress = self.exporters.entry((node, partition)).or_default();
        if let Some(last) = progress.last {
            assert!(position > last, "the exporter of node {node} got {position} of {partition} after {last}");
        }
        let has = progress.last.unwrap_or(progress.acknowledged).max(progress.received);
        let missing = records.range(has.saturating_add(1)..position.max(has.saturating_add(1))).next();
        assert!(
            missing.is_none(),
            "the exporter of node {node} got {position} of {partition}, and {missing:?} behind {has} never"
        );
        progress.last = Some(position);
    }

    /// Whether the exporter of a node has everything.
    pub fn is_complete(&self, node: NodeId, partition: PartitionId) -> bool {
        let newest = self.records.get(&partition).and_then(|records| records.keys().next_back()).copied().unwrap_or(0);
        let progress = self.exporters.get(&(node, partition));
        let has = progress.map_or(0, |progress| progress.acknowledged.max(progress.received));
        has >= newest
    }
}
