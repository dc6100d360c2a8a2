//! What must hold in every run. Each oracle has a file that says why.
//!
//! The oracles see every application of a batch on every node, every answer that a client could have got, and the end.
//! A broken promise ends the run with a panic, whose message names it.

mod accounting;
mod acknowledged;
mod bounded;
mod distributed;
mod due;
mod kept;
mod keys;
mod once;
mod replicas;
mod trace;

use engine::{Engine, Reply};
use protocol::{Key, PartitionId, Record, Timestamp};
use replication::{GroupStatus, NodeId};

pub use accounting::Accounting;
pub use bounded::left_over;
pub use distributed::deployed;

/// A batch that a node applied.
pub struct Applied<'a> {
    pub node: NodeId,
    pub partition: PartitionId,
    pub index: u64,
    pub data: &'a [u8],
    pub records: &'a [Record],
    pub engine: &'a Engine,
}

/// All oracles of a run.
pub struct Oracles {
    replicas: replicas::Replicas,
    acknowledged: acknowledged::Acknowledged,
    accounting: Accounting,
    due: due::Due,
    kept: kept::Kept,
    once: once::Once,
    keys: keys::Keys,
    trace: trace::Trace,
    /// Whether faults still happen.
    faults: bool,
}

impl Oracles {
    /// Oracles that have seen nothing.
    pub fn new(partitions: u16) -> Self {
        Oracles {
            replicas: replicas::Replicas::default(),
            acknowledged: acknowledged::Acknowledged::default(),
            accounting: Accounting::default(),
            due: due::Due::default(),
            kept: kept::Kept::default(),
            once: once::Once::default(),
            keys: keys::Keys::new(partitions),
            trace: trace::Trace::default(),
            faults: true,
        }
    }

    /// A node applied a batch.
    pub fn applied(&mut self, applied: &Applied<'_>) {
        self.trace("applies", &[applied.node.0, applied.partition.0.into(), applied.index], "");
        if !self.replicas.applied(applied) {
            // Another node, or this one in an earlier life, applied the same before.
            return;
        }
        for record in applied.records {
            tracing::trace!(target: "record", partition = %applied.partition, index = applied.index, ?record);
            self.keys.record(applied.partition, record);
            self.once.record(record);
            self.due.record(record);
            self.accounting.record(record);
        }
    }

    /// A node answers a client, after it has applied the log up to an index.
    pub fn acknowledged(&mut self, partition: PartitionId, index: u64, reply: &Reply) {
        let numbers = [partition.0.into(), index, reply.request.number];
        self.trace("answers", &numbers, reply.payload.intent_name());
        self.acknowledged.answered(partition, index, reply);
    }

    /// A job was pushed to a worker.
    pub fn pushed(&mut self, job: Key, is_here: bool) {
        self.trace("pushes", &[job.raw().cast_unsigned(), is_here.into()], "");
    }

    /// A node replaced a state by that of another node.
    pub fn installed(&mut self, node: NodeId, partition: PartitionId, index: u64, engine: &Engine) {
        self.trace("installs", &[node.0, partition.0.into(), index], "");
        self.replicas.installed(node, partition, index, engine);
    }

    /// Everything that a node's log has for a partition is synced.
    pub fn durable(&mut self, node: NodeId, partition: PartitionId, status: &GroupStatus) {
        self.kept.durable(node, partition, status);
    }

    /// A node starts with what its log has for a partition.
    pub fn found(&self, node: NodeId, partition: PartitionId, status: &GroupStatus) {
        self.kept.found(node, partition, status);
    }

    /// A node's process ends because it cannot go on.
    pub fn node_failed(&mut self, node: NodeId, reason: &str, has_fault: bool) {
        let is_expected = has_fault || reason.contains("Syncing the log");
        assert!(is_expected, "node {node} stopped without a fault that explains it: {reason}");
    }

    /// There have been no faults for a while.
    pub fn check_due(&self, now: Timestamp) {
        self.due.check(now);
    }

    /// Something that must happen again in a run of the same seed.
    pub fn trace(&mut self, what: &str, numbers: &[u64], text: &str) {
        self.trace.note(what, numbers, text);
    }

    /// A hash over everything that happened.
    pub fn trace_hash(&self) -> u64 {
        self.trace.hash()
    }

    /// Faults end.
    pub fn heal(&mut self) {
        self.faults = false;
    }

    /// Whether faults still happen.
    pub fn has_faults(&self) -> bool {
        self.faults
    }

    /// What the records say about instances, jobs and incidents.
    pub fn accounting(&self) -> &Accounting {
        &self.accounting
    }

    /// The newest batch of a partition that any node applied.
    pub fn last(&self, partition: PartitionId) -> u64 {
        self.replicas.last(partition)
    }

    /// How many batches were applied.
    pub fn batches(&self) -> u64 {
        self.replicas.batches()
    }

    /// At the end, for each node that is there: it has everything, and the same as the others.
    pub fn check_end(&mut self, node: NodeId, partition: PartitionId, engine: &Engine) {
        self.acknowledged.check(node, partition, engine.applied());
        self.replicas.check(node, partition, engine);
        self.accounting.check(partition, engine);
    }

    /// At the end: the records alone rebuild the state.
    pub fn check_fold(&self, partition: PartitionId, engine: &Engine, partitions: u16) {
        self.replicas.check_fold(partition, engine, partitions);
    }
}
