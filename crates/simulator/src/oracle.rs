//! What must hold in every run. Each oracle has a file that says why.
//!
//! The oracles see every application of a batch on every node, every answer that a client could have got, and the end.
//! A broken promise ends the run with a panic, whose message names it.

mod accounting;
mod acknowledged;
mod ad_hoc;
mod bounded;
mod compensation;
mod conditions;
mod distributed;
mod due;
mod exported;
mod global_listeners;
mod jobs;
mod kept;
mod keys;
mod leaders;
mod listeners;
mod lives;
mod once;
mod owners;
mod reached;
mod repeated;
mod replicas;
mod requests;
mod searched;
mod signals;
mod streams;
mod trace;
mod user_tasks;
mod variables;

use broker::SubmitError;
use engine::{Engine, Reply};
use protocol::{Command, JobAmount, Key, PartitionId, Record, Request, StreamId, Timestamp};
use replication::{GroupStatus, NodeId};

use crate::node::{Shown, Told};

pub use accounting::Accounting;
pub use bounded::{check_log_bytes, left_over};
pub use distributed::deployed;

/// A batch that a node applied.
pub struct Applied<'a> {
    pub node: NodeId,
    pub partition: PartitionId,
    pub index: u64,
    /// The time, on a clock that is right.
    pub now: Timestamp,
    pub data: &'a [u8],
    pub records: &'a [Record],
    pub engine: &'a Engine,
}

/// All oracles of a run.
pub struct Oracles {
    replicas: replicas::Replicas,
    requests: requests::Requests,
    acknowledged: acknowledged::Acknowledged,
    accounting: Accounting,
    ad_hoc: ad_hoc::AdHoc,
    compacted: bounded::Compacted,
    compensation: compensation::Compensation,
    conditions: conditions::Conditions,
    due: due::Due,
    exported: exported::Exported,
    global_listeners: global_listeners::GlobalListeners,
    jobs: jobs::Jobs,
    kept: kept::Kept,
    leaders: leaders::Leaders,
    listeners: listeners::Listeners,
    lives: lives::Lives,
    searched: searched::Searched,
    signals: signals::Signals,
    streams: streams::Streams,
    owners: owners::Owners,
    user_tasks: user_tasks::UserTasks,
    variables: variables::Variables,
    once: once::Once,
    reached: reached::Reached,
    repeated: repeated::Repeated,
    keys: keys::Keys,
    trace: trace::Trace,
    /// Whether faults still happen.
    faults: bool,
}

impl Oracles {
    /// Oracles that have seen nothing. The logs of groups may keep entries for members that lack them.
    pub fn new(partitions: u16, logs_keep_entries: bool) -> Self {
        Oracles {
            replicas: replicas::Replicas::default(),
            requests: requests::Requests::default(),
            acknowledged: acknowledged::Acknowledged::default(),
            accounting: Accounting::default(),
            ad_hoc: ad_hoc::AdHoc::default(),
            compacted: bounded::Compacted::new(logs_keep_entries),
            compensation: compensation::Compensation::default(),
            conditions: conditions::Conditions::default(),
            due: due::Due::default(),
            exported: exported::Exported::default(),
            global_listeners: global_listeners::GlobalListeners::new(partitions),
            jobs: jobs::Jobs::default(),
            kept: kept::Kept::default(),
            leaders: leaders::Leaders::default(),
            listeners: listeners::Listeners::default(),
            lives: lives::Lives::default(),
            searched: searched::Searched::default(),
            signals: signals::Signals::default(),
            streams: streams::Streams::default(),
            owners: owners::Owners::default(),
            user_tasks: user_tasks::UserTasks::default(),
            variables: variables::Variables::default(),
            once: once::Once::default(),
            reached: reached::Reached::default(),
            repeated: repeated::Repeated::default(),
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
        self.requests.applied(applied.partition, applied.index, applied.data);
        for record in applied.records {
            tracing::trace!(target: "record", partition = %applied.partition, index = applied.index, ?record);
            self.keys.record(applied.partition, record, applied.now);
            self.once.record(record);
            self.reached.record(applied.partition, record);
            self.repeated.record(record, applied.now);
            self.due.record(record);
            self.exported.record(applied.partition, record);
            self.jobs.record(applied.partition, applied.index, record);
            self.streams.record(applied.partition, record);
            self.owners.record(applied.partition, record);
            self.lives.record(record);
            self.variables.record(record);
            self.conditions.record(applied.partition, record, &self.variables);
            self.global_listeners.record(applied.partition, record);
            self.listeners.record(applied.partition, record, &self.global_listeners);
            self.accounting.record(record);
            self.signals.record(applied.partition, record);
            self.user_tasks.record(record);
            self.compensation.record(record);
            self.ad_hoc.record(applied.partition, record, &self.global_listeners);
        }
        self.conditions.check(applied.partition, applied.engine, &self.variables);
        self.listeners.check();
        self.repeated.check(applied.now, self.faults);
        self.compare_counts(applied.partition, applied.engine);
        self.signals.check(applied.partition, applied.engine);
        self.ad_hoc.check(applied.partition, applied.engine);
    }

    /// What the records say is there is what the state says.
    fn compare_counts(&self, partition: PartitionId, engine: &Engine) {
        self.accounting.check_counts(partition, engine);
        let counted = engine.statistics();
        let (timers, messages) = (self.due.count("timer", partition), self.due.count("message", partition));
        let streams = self.streams.count(partition);
        let (counted, by_records) =
            ((counted.timers, counted.messages, counted.job_streams), (timers, messages, streams));
        assert!(
            counted == by_records,
            "{partition} counts {counted:?} timers, messages and streams in its state and {by_records:?} by its records"
        );
    }

    /// A node's clock is set ahead by so many milliseconds, or back.
    pub fn clock_is_ahead(&mut self, milliseconds: i64) {
        self.keys.clock_is_ahead(milliseconds);
    }

    /// A client sends a command.
    pub fn asked(&mut self, number: u64, command: &Command) {
        self.accounting.asked(command);
        self.variables.asked(number, command);
    }

    /// A node takes a command of a client and numbers it.
    pub fn sent(&mut self, gateway: NodeId, partition: PartitionId, request: Request, number: u64) {
        self.requests.sent(gateway, partition, request, number);
    }

    /// The client of a request gets the engine's answer.
    pub fn request_answered(&mut self, partition: PartitionId, request: Request) {
        self.requests.answered(partition, request);
    }

    /// The client of a request gets an error of its node.
    pub fn request_refused(&mut self, partition: PartitionId, request: Request, error: &SubmitError) {
        self.trace("refuses", &[partition.0.into(), request.node.into(), request.number], "");
        self.requests.refused(partition, request, error);
    }

    /// A node stops without warning.
    pub fn stopped(&mut self, node: NodeId) {
        self.requests.stopped(node);
    }

    /// At the end: nobody waits at a node for what was carried out.
    pub fn check_requests(&self, gateway: NodeId) {
        self.requests.check(gateway);
    }

    /// A node answers a client, after it has applied the log up to an index.
    pub fn acknowledged(&mut self, partition: PartitionId, index: u64, reply: &Reply) {
        let numbers = [partition.0.into(), index, reply.request.number];
        self.trace("answers", &numbers, reply.payload.intent_name());
        self.acknowledged.answered(partition, index, reply);
        self.accounting.answered(reply);
        self.global_listeners.answered(reply);
        self.variables.answered(reply);
    }

    /// A job was pushed to a stream, because of the batch at an index.
    pub fn pushed(&mut self, partition: PartitionId, index: u64, job: Key, stream: StreamId) {
        self.trace("pushes", &[job.raw().cast_unsigned(), stream.node.into(), stream.number], "");
        self.jobs.pushed(partition, index, job, stream);
    }

    /// The worker of a stream says how much it can take in all.
    pub fn offered(&mut self, partition: PartitionId, stream: StreamId, total: JobAmount) {
        self.streams.offered(partition, stream, total);
    }

    /// A node votes for another.
    pub fn voted(&mut self, node: NodeId, partition: PartitionId, term: u64, candidate: NodeId) {
        self.leaders.voted(node, partition, term, candidate);
    }

    /// What a node takes itself for.
    pub fn seen(&mut self, node: NodeId, partition: PartitionId, status: &GroupStatus) {
        self.leaders.seen(node, partition, status);
    }

    /// A node replaced a state by that of another node.
    pub fn installed(&mut self, node: NodeId, partition: PartitionId, index: u64, engine: &Engine) {
        self.trace("installs", &[node.0, partition.0.into(), index], "");
        self.replicas.installed(node, partition, index, engine);
        self.exported.installed(node, partition, engine.last_position());
    }

    /// What the exporter of a node was told.
    pub fn exporter_told(&mut self, node: NodeId, told: &Told) {
        let (what, numbers) = match told {
            Told::Opened(partition) => ("exporter opens", [node.0, partition.0.into(), 0]),
            Told::Took(partition, record) => ("exports", [node.0, partition.0.into(), record.position]),
            Told::Acknowledged(partition, position) => ("has exported", [node.0, partition.0.into(), *position]),
        };
        self.trace(what, &numbers, "");
        self.exported.told(node, told);
    }

    /// The exporter of a node says that so many records were missing.
    pub fn exporter_missed(&self, node: NodeId, partition: PartitionId, records: u64) {
        self.exported.missed(node, partition, records);
    }

    /// Searches on a node find what happened up to a place.
    pub fn shown(&mut self, node: NodeId, shown: &Shown) {
        let numbers = [node.0, shown.partition.0.into(), shown.place.number, shown.remark.is_some().into()];
        self.trace("shows", &numbers, "");
        self.searched.shown(node, shown, self.replicas.records(shown.partition));
    }

    /// Whether searches on a node find everything that happened in a partition.
    pub fn is_searched(&self, node: NodeId, partition: PartitionId) -> bool {
        self.searched.is_complete(node, partition, self.replicas.records(partition))
    }

    /// Whether the exporter of a node has every record of a partition.
    pub fn is_exported(&self, node: NodeId, partition: PartitionId) -> bool {
        self.exported.is_complete(node, partition)
    }

    /// Everything that a node's log has for a partition is synced.
    pub fn durable(&mut self, node: NodeId, partition: PartitionId, status: &GroupStatus) {
        self.compacted.check(node, partition, status);
        self.kept.durable(node, partition, status);
    }

    /// Whether a node's log holds nothing that its newest checkpoint made unnecessary.
    pub fn is_compacted(&self, node: NodeId, partition: PartitionId, status: &GroupStatus) -> bool {
        self.compacted.is_compacted(node, partition, status)
    }

    /// A node starts with what its log has for a partition.
    pub fn found(&mut self, node: NodeId, partition: PartitionId, status: &GroupStatus) {
        self.searched.started(node);
        self.compacted.started(node, partition);
        self.kept.found(node, partition, status);
    }

    /// A node's checkpoint is on the disk.
    pub fn checkpointed(&mut self, node: NodeId, partition: PartitionId, applied: u64) {
        self.compacted.checkpointed(node, partition, applied);
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

    /// The bytes of the batches from an index on.
    pub fn bytes_from(&self, partition: PartitionId, index: u64) -> u64 {
        self.replicas.bytes_from(partition, index)
    }

    /// How many batches were applied.
    pub fn batches(&self) -> u64 {
        self.replicas.batches()
    }

    /// At the end, for each node that is there: it has everything, and the same as the others.
    pub fn check_end(&mut self, node: NodeId, partition: PartitionId, engine: &Engine) {
        self.acknowledged.check(node, partition, engine);
        self.replicas.check(node, partition, engine);
        self.compare_counts(partition, engine);
    }

    /// At the end: the rows of a state are what the records say.
    pub fn check_rows(&self, partition: PartitionId, rows: &[String]) {
        self.accounting.check();
        self.accounting.check_rows(partition, rows);
        self.streams.check(partition, rows);
        self.signals.check_end(partition);
        self.user_tasks.check_rows(partition, rows);
        self.conditions.check_rows(partition, rows);
        self.global_listeners.check_rows(partition, rows);
    }

    /// The open streams of a partition.
    pub fn streams(&self, partition: PartitionId) -> Vec<StreamId> {
        self.streams.open(partition)
    }

    /// At the end: the records alone rebuild the state.
    pub fn check_fold(&self, partition: PartitionId, engine: &Engine, partitions: u16) {
        self.replicas.check_fold(partition, engine, partitions);
    }
}
