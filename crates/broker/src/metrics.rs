//! What is measured. Handles are made once and kept, so that counting costs no look-up by name.

mod life_times;
mod number;
mod records;

use std::collections::BTreeMap;
use std::time::Duration;

use engine::FeatureLevel;
use metrics::{Counter, Gauge, Histogram, counter, gauge, histogram};
use protocol::PartitionId;
use replication::{GroupStatus, WriteReport};

use self::number::number;
use crate::applying::CommandTimes;
use crate::disk::{DiskState, DiskView};
use crate::exporting::ExporterState;
use crate::partition_loop::Batch;
use crate::shared::Shared;

pub(crate) use records::RecordMetrics;

/// The log of all partitions was opened.
pub(crate) fn log_opened(duration: Duration) {
    gauge!("atomix_journal_open_time").set(number(duration.as_millis()));
}

/// Of the replication thread.
pub(crate) struct ReplicationMetrics {
    partitions: BTreeMap<PartitionId, ReplicatedPartition>,
    flush: Histogram,
    written_bytes: Counter,
    writes: Counter,
}

struct ReplicatedPartition {
    batch_commands: Histogram,
    batch_bytes: Histogram,
    append_latency: Histogram,
    commit_latency: Histogram,
    appended: Counter,
    entries: Counter,
    entry_bytes: u64,
    entry_kibibytes: Counter,
    committed: Counter,
    last_index: Gauge,
    commit_index: Gauge,
    uncommitted: Gauge,
    compaction: Histogram,
}

impl ReplicationMetrics {
    pub fn new() -> Self {
        ReplicationMetrics {
            partitions: BTreeMap::new(),
            flush: histogram!("atomix_journal_flush_time_seconds"),
            written_bytes: counter!("osmia_log_written_bytes_total"),
            writes: counter!("osmia_log_synced_writes_total"),
        }
    }

    /// The node holds one more partition.
    pub fn add(&mut self, partition: PartitionId) {
        let id = partition;
        let partition = partition.to_string();
        let metrics = ReplicatedPartition {
            batch_commands: histogram!("zeebe_sequencer_batch_size", "partition" => partition.clone()),
            batch_bytes: histogram!("zeebe_sequencer_batch_length_bytes", "partition" => partition.clone()),
            append_latency: histogram!("zeebe_log_appender_append_latency_seconds", "partition" => partition.clone()),
            commit_latency: histogram!("zeebe_log_appender_commit_latency_seconds", "partition" => partition.clone()),
            appended: counter!("zeebe_log_appender_record_appended_total", "partition" => partition.clone()),
            entries: counter!("atomix_journal_append_rate_total", "partition" => partition.clone()),
            entry_bytes: 0,
            entry_kibibytes: counter!("atomix_journal_append_data_rate_total", "partition" => partition.clone()),
            committed: counter!("atomix_commit_entries_rate_total", "partition" => partition.clone()),
            last_index: gauge!("atomix_partition_raft_append_index", "partition" => partition.clone()),
            commit_index: gauge!("atomix_partition_raft_commit_index", "partition" => partition.clone()),
            uncommitted: gauge!("atomix_non_committed_entries", "partition" => partition.clone()),
            compaction: histogram!("atomix_compaction_time_ms_seconds", "partition" => partition),
        };
        self.partitions.insert(id, metrics);
    }

    /// A batch was made, this long after its first command of a user was taken.
    pub fn batch(&mut self, partition: PartitionId, commands: usize, bytes: usize, waited: Option<Duration>) {
        let metrics = self.partitions.get_mut(&partition).expect("a partition of this node");
        metrics.entries.increment(1);
        metrics.entry_bytes = metrics.entry_bytes.saturating_add(bytes as u64);
        metrics.entry_kibibytes.absolute(metrics.entry_bytes / 1_024);
        metrics.batch_commands.record(number(commands));
        metrics.batch_bytes.record(number(bytes));
        metrics.appended.increment(commands as u64);
        if let Some(waited) = waited {
            metrics.append_latency.record(waited);
        }
    }

    /// A batch was committed this long after its first command was taken.
    pub fn committed(&self, partition: PartitionId, latency: Duration) {
        self.partitions[&partition].commit_latency.record(latency);
    }

    /// Entries were committed.
    pub fn committed_entries(&self, partition: PartitionId, entries: usize) {
        self.partitions[&partition].committed.increment(entries as u64);
    }

    /// How far the group of a partition is.
    pub fn group(&self, partition: PartitionId, status: &GroupStatus) {
        let metrics = &self.partitions[&partition];
        metrics.last_index.set(number(status.last_index));
        metrics.commit_index.set(number(status.commit));
        metrics.uncommitted.set(number(status.last_index.saturating_sub(status.commit)));
    }

    /// The log of a partition forgot what a checkpoint holds.
    pub fn compacted(&self, partition: PartitionId, duration: Duration) {
        self.partitions[&partition].compaction.record(duration);
    }

    /// A round was written and synced.
    pub fn write(&self, report: WriteReport) {
        self.flush.record(report.duration);
        self.written_bytes.increment(report.bytes);
        self.writes.increment(1);
    }
}

/// What dashboards read as states of the processing; 0 is the state before the first batch.
const REPLAYS: f64 = 1.0;
const PROCESSES: f64 = 2.0;
const FAILED: f64 = 3.0;

/// Of one partition on its processing thread.
pub(crate) struct ProcessingMetrics {
    records: Counter,
    batch_duration: Histogram,
    longest_batch: Gauge,
    longest_batch_so_far: Duration,
    command_duration: Histogram,
    longest_command: Gauge,
    longest_computing: Gauge,
    batch_commands: Histogram,
    effects_duration: Histogram,
    latency: Histogram,
    retries: Counter,
    state: Gauge,
    last_position: Gauge,
    last_appended: Gauge,
    last_committed: Gauge,
    messages: Gauge,
    incidents: Gauge,
    banned: Gauge,
    overlay_bytes: Gauge,
    file_bytes: Gauge,
    freeze_pause: Histogram,
    release_pause: Histogram,
    worst_pause: Gauge,
    worst_pause_so_far: Duration,
    checkpoint_duration: Histogram,
    checkpoints: Counter,
    recovery: Gauge,
    replayed: Counter,
    replay_duration: Histogram,
    replay_position: Gauge,
    transition: Histogram,
    role: Gauge,
    clock_ahead: Gauge,
    feature_level: Gauge,
}

impl ProcessingMetrics {
    pub fn new(partition: PartitionId) -> Self {
        let partition = partition.to_string();
        let p = || partition.clone();
        ProcessingMetrics {
            records: counter!("zeebe_stream_processor_records_total", "partition" => p(), "action" => "processed"),
            batch_duration: histogram!("zeebe_stream_processor_batch_processing_duration_seconds", "partition" => p()),
            longest_batch: gauge!("osmia_batch_processing_longest_seconds", "partition" => p()),
            longest_batch_so_far: Duration::ZERO,
            command_duration: histogram!(
                "zeebe_stream_processor_processing_duration_seconds", "partition" => p()
            ),
            longest_command: gauge!("osmia_command_application_longest_seconds", "partition" => p()),
            longest_computing: gauge!("osmia_command_application_longest_processor_seconds", "partition" => p()),
            batch_commands: histogram!("zeebe_stream_processor_batch_processing_commands", "partition" => p()),
            effects_duration: histogram!(
                "zeebe_stream_processor_batch_processing_post_commit_tasks_seconds", "partition" => p()
            ),
            latency: histogram!("zeebe_stream_processor_latency_seconds", "partition" => p()),
            retries: counter!("zeebe_stream_processor_batch_processing_retry_total", "partition" => p()),
            state: gauge!("zeebe_stream_processor_state", "partition" => p()),
            last_position: gauge!("zeebe_stream_processor_last_processed_position", "partition" => p()),
            last_appended: gauge!("zeebe_log_appender_last_appended_position", "partition" => p()),
            last_committed: gauge!("zeebe_log_appender_last_committed_position", "partition" => p()),
            messages: gauge!("zeebe_buffered_messages_count", "partition" => p()),
            incidents: gauge!("zeebe_pending_incidents_total", "partition" => p()),
            banned: gauge!("zeebe_banned_instances_total", "partition" => p()),
            overlay_bytes: gauge!("osmia_state_overlay_bytes", "partition" => p()),
            file_bytes: gauge!("osmia_state_file_bytes", "partition" => p()),
            freeze_pause: histogram!("osmia_checkpoint_freeze_pause_seconds", "partition" => p()),
            release_pause: histogram!("osmia_checkpoint_release_pause_seconds", "partition" => p()),
            worst_pause: gauge!("osmia_checkpoint_worst_pause_seconds", "partition" => p()),
            worst_pause_so_far: Duration::ZERO,
            checkpoint_duration: histogram!("zeebe_snapshot_duration_seconds", "partition" => p()),
            checkpoints: counter!("zeebe_snapshot_count_total", "partition" => p()),
            recovery: gauge!("zeebe_stream_processor_startup_recovery_time", "partition" => p()),
            replayed: counter!("zeebe_replay_events_total", "partition" => p()),
            replay_duration: histogram!("zeebe_replay_event_batch_replay_duration_seconds", "partition" => p()),
            replay_position: gauge!("zeebe_replay_last_source_position", "partition" => p()),
            transition: histogram!("zeebe_leader_transition_latency_seconds", "partition" => p()),
            role: gauge!("atomix_role", "partition" => p()),
            clock_ahead: gauge!("osmia_clock_ahead_milliseconds", "partition" => p()),
            feature_level: gauge!("osmia_feature_level", "partition" => p()),
        }
    }

    /// A batch was applied; a leader picked it up this long after its first command of a user was admitted.
    pub fn applied(&mut self, batch: &Batch, latency: Option<Duration>) {
        let Batch { commands, records, is_leading, processing: application, effects } = *batch;
        if application > self.longest_batch_so_far {
            self.longest_batch_so_far = application;
            self.longest_batch.set(application.as_secs_f64());
        }
        if !is_leading {
            self.replayed.increment(records as u64);
            self.replay_duration.record(application);
            self.state.set(REPLAYS);
            return;
        }
        if let Some(latency) = latency {
            self.latency.record(latency);
        }
        self.records.increment(records as u64);
        self.batch_commands.record(number(commands));
        self.batch_duration.record(application);
        self.effects_duration.record(effects);
    }

    /// The records of a batch could not be written; that is tried again.
    pub fn records_failed(&self) {
        self.retries.increment(1);
    }

    /// How far the partition's time is ahead of the node's clock, in milliseconds.
    pub fn clock_ahead(&self, milliseconds: i64) {
        self.clock_ahead.set(number(milliseconds));
    }

    /// By which rules the partition works.
    pub fn feature_level(&self, level: FeatureLevel) {
        self.feature_level.set(f64::from(level.number()));
    }

    /// How long single commands took since they were asked for last.
    pub fn commands(&self, times: &CommandTimes) {
        for (duration, count) in times.take() {
            self.command_duration.record_many(duration.as_secs_f64(), count);
        }
        self.longest_command.set(times.longest().as_secs_f64());
        self.longest_computing.set(times.longest_computing().as_secs_f64());
    }

    /// What the engine says about itself.
    pub fn engine(&self, position: u64, is_leading: bool, statistics: &engine::EngineStatistics) {
        self.last_position.set(number(position));
        // A record gets its position when the committed command that causes it is applied.
        self.last_appended.set(number(position));
        self.last_committed.set(number(position));
        if !is_leading {
            self.replay_position.set(number(position));
        }
        self.messages.set(number(statistics.messages));
        self.incidents.set(number(statistics.incidents));
        self.banned.set(number(statistics.banned_instances));
        self.overlay_bytes.set(number(statistics.store.layers.overlay_bytes + statistics.store.layers.frozen_bytes));
        self.file_bytes.set(number(statistics.store.file_bytes));
    }

    /// A checkpoint is complete.
    pub fn checkpoint(&mut self, freeze: Duration, write: Duration, release: Duration) {
        self.freeze_pause.record(freeze);
        self.checkpoint_duration.record(write);
        self.release_pause.record(release);
        self.worst_pause_so_far = self.worst_pause_so_far.max(freeze).max(release);
        self.worst_pause.set(self.worst_pause_so_far.as_secs_f64());
        self.checkpoints.increment(1);
    }

    /// This node leads the partition, this long after its start and after it was elected; up to the position it only
    /// derived the records again. (Dashboards read 3 as the leader.)
    pub fn leads(&self, after: Duration, transition: Duration, position: u64) {
        self.transition.record(transition);
        self.replay_position.set(number(position));
        self.state.set(PROCESSES);
        self.recovery.set(number(after.as_millis()));
        self.role.set(3.0);
    }

    /// This node follows (dashboards read 1).
    pub fn follows(&self) {
        self.role.set(1.0);
        self.state.set(REPLAYS);
    }

    /// Nothing is applied here any more.
    pub fn stops(&self) {
        self.state.set(FAILED);
    }
}

/// Gauges and totals that are looked up about once a second.
pub(crate) struct SharedMetrics {
    partitions: BTreeMap<PartitionId, SharedPartition>,
    pushed: Counter,
    push_failed: Counter,
    streams: Gauge,
    blocked: Gauge,
    undelivered: Gauge,
}

struct SharedPartition {
    received: Counter,
    dropped: Counter,
    limit: Gauge,
    in_flight: Gauge,
    accepted: Counter,
    exhausted: Counter,
    write_rate_exhausted: Counter,
    health: Gauge,
    health_node: Gauge,
}

impl SharedMetrics {
    fn of_partition(node: u32, partition: PartitionId) -> SharedPartition {
        let partition = partition.to_string();
        let flow = |partition: &String, outcome: &'static str| {
            counter!(
                "zeebe_flow_control_total",
                "partition" => partition.clone(), "context" => "userCommand", "outcome" => outcome
            )
        };
        let health_node = |partition: &String| {
            let id = format!("Partition-{partition}");
            let path = format!("Broker-{node}/{id}");
            gauge!("zeebe_broker_health_nodes", "partition" => partition.clone(), "id" => id, "path" => path)
        };
        SharedPartition {
            accepted: flow(&partition, "accepted"),
            exhausted: flow(&partition, "requestLimitExhausted"),
            write_rate_exhausted: flow(&partition, "writeRateLimitExhausted"),
            health_node: health_node(&partition),
            received: counter!("zeebe_received_request_count_total", "partition" => partition.clone()),
            dropped: counter!("zeebe_dropped_request_count_total", "partition" => partition.clone()),
            limit: gauge!("zeebe_backpressure_requests_limit", "partition" => partition.clone()),
            in_flight: gauge!("zeebe_backpressure_inflight_requests_count", "partition" => partition.clone()),
            health: gauge!("zeebe_health", "partition" => partition),
        }
    }

    pub fn new() -> Self {
        SharedMetrics {
            partitions: BTreeMap::new(),
            pushed: counter!("zeebe_broker_jobs_pushed_count_total"),
            push_failed: counter!("zeebe_broker_jobs_push_fail_count_total"),
            streams: gauge!("zeebe_broker_open_job_stream_count"),
            blocked: gauge!("osmia_job_streams_blocked"),
            undelivered: gauge!("osmia_job_streams_undelivered_bytes"),
        }
    }

    pub fn publish(&mut self, shared: &Shared) {
        use crate::status::Health;

        for (&partition, entrance) in &*shared.entrances.all() {
            let new = || Self::of_partition(shared.node, partition);
            let metrics = self.partitions.entry(partition).or_insert_with(new);
            let (admitted, refused) = entrance.limiter.totals();
            metrics.received.absolute(admitted + refused);
            metrics.dropped.absolute(refused);
            metrics.limit.set(f64::from(entrance.limiter.limit()));
            metrics.in_flight.set(f64::from(entrance.limiter.in_flight()));
            metrics.accepted.absolute(admitted);
            let refused_for_pace = entrance.limiter.refused_for_pace();
            metrics.exhausted.absolute(refused.saturating_sub(refused_for_pace));
            metrics.write_rate_exhausted.absolute(refused_for_pace);
            let health = entrance.health();
            metrics.health.set(if health == Health::Healthy { 1.0 } else { 0.0 });
            metrics.health_node.set(match health {
                Health::Healthy => 1.0,
                Health::Unhealthy => -1.0,
                Health::Dead | Health::LeftOut => -2.0,
            });
        }
        let (pushed, yielded) = shared.streams.totals();
        self.pushed.absolute(pushed);
        self.push_failed.absolute(yielded);
        self.streams.set(number(shared.streams.count()));
        let (blocked, undelivered_bytes) = shared.streams.blocked();
        self.blocked.set(number(blocked));
        self.undelivered.set(number(undelivered_bytes));
    }
}

/// Of the disk of the data directory.
pub(crate) struct DiskMetrics {
    total: Gauge,
    free: Gauge,
    low: Gauge,
    reserve: Gauge,
    reserve_left: Gauge,
    state: Gauge,
}

impl DiskMetrics {
    pub fn new() -> Self {
        DiskMetrics {
            total: gauge!("osmia_disk_total_bytes"),
            free: gauge!("osmia_disk_free_bytes"),
            low: gauge!("osmia_disk_low_bytes"),
            reserve: gauge!("osmia_disk_reserve_bytes"),
            reserve_left: gauge!("osmia_disk_reserve_left_bytes"),
            state: gauge!("osmia_disk_state"),
        }
    }

    pub fn publish(&self, view: &DiskView) {
        self.total.set(number(view.total_bytes));
        self.free.set(number(view.free_bytes));
        self.low.set(number(view.low_bytes));
        self.reserve.set(number(view.reserve_bytes));
        self.reserve_left.set(number(view.reserve_left_bytes));
        self.state.set(match view.state {
            DiskState::Enough => 0.0,
            DiskState::Low => 1.0,
            DiskState::Full => 2.0,
        });
    }
}

/// Of one exporter and partition.
#[derive(Debug)]
pub(crate) struct ExporterMetrics {
    exported: Counter,
    skipped: Counter,
    exported_position: Gauge,
    acknowledged_position: Gauge,
    lag_positions: Gauge,
    lag_seconds: Gauge,
    latency: Histogram,
    state: Gauge,
    failing: Gauge,
    missing: Counter,
}

impl ExporterMetrics {
    pub fn new(exporter: &str, partition: PartitionId) -> Self {
        let (e, p) = (|| exporter.to_owned(), || partition.to_string());
        ExporterMetrics {
            exported: counter!("zeebe_exporter_events_total", "exporter" => e(), "partition" => p(), "action" => "exported"),
            skipped: counter!("zeebe_exporter_events_total", "exporter" => e(), "partition" => p(), "action" => "skipped"),
            exported_position: gauge!("zeebe_exporter_last_exported_position", "exporter" => e(), "partition" => p()),
            acknowledged_position: gauge!(
                "zeebe_exporter_last_updated_exported_position", "exporter" => e(), "partition" => p()
            ),
            lag_positions: gauge!("osmia_exporter_lag_records", "exporter" => e(), "partition" => p()),
            lag_seconds: gauge!("osmia_exporter_lag_seconds", "exporter" => e(), "partition" => p()),
            latency: histogram!("zeebe_exporting_latency_seconds", "exporter" => e(), "partition" => p()),
            state: gauge!("zeebe_exporter_state", "exporter" => e(), "partition" => p()),
            failing: gauge!("osmia_exporter_failing", "exporter" => e(), "partition" => p()),
            missing: counter!("osmia_exporter_missing_records_total", "exporter" => e(), "partition" => p()),
        }
    }

    /// So many records were not there to be exported.
    pub fn missing(&self, records: u64) {
        self.missing.increment(records);
    }

    /// What the exporter is doing, and whether it is paused in the numbers of the reference.
    pub fn state(&self, state: &ExporterState) {
        self.state.set(match state {
            ExporterState::Paused => 1.0,
            ExporterState::SoftPaused => 2.0,
            _ => 0.0,
        });
        self.failing.set(if state.trouble().is_some() { 1.0 } else { 0.0 });
    }

    /// A run of records was exported, the last of them this long after it happened.
    pub fn exported(&self, exported: u64, skipped: u64, latency: Duration) {
        self.exported.increment(exported);
        self.skipped.increment(skipped);
        self.latency.record(latency);
    }

    pub fn positions(&self, exported: u64, acknowledged: u64, lag_records: u64, lag: Duration) {
        self.exported_position.set(number(exported));
        self.acknowledged_position.set(number(acknowledged));
        self.lag_positions.set(number(lag_records));
        self.lag_seconds.set(lag.as_secs_f64());
    }
}
