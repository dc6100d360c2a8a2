//! Replicas are equal, and replay is processing: whatever a node applies at an index of a partition, now or after a
//! restart, is what was applied there first, with the same records and the same state, byte for byte; and the records
//! alone rebuild the state. Otherwise a change of the leader would change the past.

use std::collections::BTreeMap;
use std::hash::Hasher;

use engine::{Engine, EngineOptions};
use protocol::{PartitionId, Record, RecordType};
use replication::NodeId;
use rustc_hash::FxHasher;

use super::Applied;

/// States are compared at every so many batches: hashing reads everything.
const HASH_INTERVAL: u64 = 16;

/// The one history of all partitions.
#[derive(Default)]
pub struct Replicas {
    history: BTreeMap<(PartitionId, u64), Batch>,
    states: BTreeMap<(PartitionId, u64), u128>,
    records: BTreeMap<PartitionId, Vec<Record>>,
    last: BTreeMap<PartitionId, u64>,
}

struct Batch {
    data: u64,
    records: u64,
    bytes: u64,
    first: NodeId,
}

fn checksum(bytes: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(bytes);
    hasher.finish()
}

impl Replicas {
    /// A node applied a batch. `true` when nobody had applied it before.
    pub fn applied(&mut self, applied: &Applied<'_>) -> bool {
        let (node, partition, index) = (applied.node, applied.partition, applied.index);
        let mut encoded = Vec::new();
        for record in applied.records {
            protocol::encode(record, &mut encoded);
        }
        let (data, records) = (checksum(applied.data), checksum(&encoded));
        if let Some(known) = self.history.get(&(partition, index)) {
            let first = known.first;
            assert!(known.data == data, "nodes {first} and {node} applied different batches at {partition}/{index}");
            assert!(
                known.records == records,
                "nodes {first} and {node} have different records of the same batch at {partition}/{index}"
            );
            self.compare_state(node, partition, index, applied.engine);
            return false;
        }
        let last = self.last.entry(partition).or_insert(0);
        assert!(index > *last, "node {node} applied {partition}/{index}, which the nodes before skipped");
        *last = index;
        self.history.insert((partition, index), Batch { data, records, bytes: applied.data.len() as u64, first: node });
        self.records.entry(partition).or_default().extend(applied.records.iter().cloned());
        self.compare_state(node, partition, index, applied.engine);
        true
    }

    fn compare_state(&mut self, node: NodeId, partition: PartitionId, index: u64, engine: &Engine) {
        if index.is_multiple_of(HASH_INTERVAL) {
            let hash = engine.state_hash().expect("the state is readable");
            let known = *self.states.entry((partition, index)).or_insert(hash);
            assert!(known == hash, "node {node} has another state than others at {partition}/{index}");
        }
    }

    /// A node replaced a state by that of another node.
    pub fn installed(&mut self, node: NodeId, partition: PartitionId, index: u64, engine: &Engine) {
        assert!(engine.applied() <= index, "the state of {partition} on node {node} is ahead of its place {index}");
        self.compare_state(node, partition, engine.applied(), engine);
    }

    /// The bytes of the batches from an index on.
    pub fn bytes_from(&self, partition: PartitionId, index: u64) -> u64 {
        self.history.range((partition, index)..=(partition, u64::MAX)).map(|(_, batch)| batch.bytes).sum()
    }

    /// How many batches there were.
    pub fn batches(&self) -> u64 {
        self.history.len() as u64
    }

    /// The newest batch of a partition.
    pub fn last(&self, partition: PartitionId) -> u64 {
        self.last.get(&partition).copied().unwrap_or(0)
    }

    /// All records of a partition.
    pub fn records(&self, partition: PartitionId) -> &[Record] {
        self.records.get(&partition).map_or(&[], Vec::as_slice)
    }

    /// At the end every node is as far as any other, with the same state.
    pub fn check(&mut self, node: NodeId, partition: PartitionId, engine: &Engine) {
        let last = self.last(partition);
        assert!(engine.applied() >= last, "node {node} has applied {} of {last} at {partition}", engine.applied());
        let hash = engine.state_hash().expect("the state is readable");
        let known = *self.states.entry((partition, last)).or_insert(hash);
        assert!(known == hash, "node {node} has another state than others at the end of {partition}");
    }

    /// The records alone rebuild the state.
    pub fn check_fold(&self, partition: PartitionId, engine: &Engine, partitions: u16) {
        let options = EngineOptions::new(partition, partitions);
        let mut folded = Engine::in_memory(options);
        for record in self.records(partition) {
            if record.record_type == RecordType::Event {
                folded.replay(record).expect("the state is sound");
            }
        }
        let (folded, processed) = (rows(&folded), rows(engine));
        let differs = folded.iter().zip(&processed).find(|(left, right)| left != right);
        assert!(
            folded == processed,
            "the records of {partition} do not rebuild its state: {} and {} rows, first difference {differs:?}",
            folded.len(),
            processed.len()
        );
    }
}

fn rows(engine: &Engine) -> Vec<String> {
    let mut dump = Vec::new();
    engine.dump(&mut dump).expect("the state is readable");
    // Commands without a record take keys too, so the counters may differ.
    String::from_utf8_lossy(&dump).lines().skip(1).map(str::to_owned).collect()
}
