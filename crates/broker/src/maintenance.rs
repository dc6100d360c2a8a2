//! The background thread: writes checkpoints, deletes what is no longer needed, publishes numbers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use protocol::PartitionId;
use replication::{LogStore, RaftEngineLog};
use state::{Checkpoint, Retired, Written};

use crate::exporting::ExporterProgress;
use crate::flow_control::Backlog;
use crate::inbox::Work;
use crate::metrics::SharedMetrics;
use crate::partition_loop::EmptyLoop;
use crate::shared::Shared;
use crate::status::Trouble;
use crate::upkeep::{CheckpointError, Upkeep};
use crate::write_throttle::{Slowest, WriteThrottle};

const INTERVAL: Duration = Duration::from_secs(1);
/// How often the backlogs of exporters are looked at: what comes in between goes over the limit.
const BACKLOG_INTERVAL: Duration = Duration::from_millis(100);
/// A message to the background thread.
pub(crate) enum Maintenance {
    /// Write a checkpoint of a partition.
    Checkpoint {
        /// The partition.
        partition: PartitionId,
        /// The frozen state.
        checkpoint: Checkpoint,
        /// Position of the last record that is part of it.
        position: u64,
    },
    /// Keep up one more partition of this node.
    Add(Box<Maintained>),
    /// A received state takes the place of that of a partition, which is closed: let go of it.
    Replace {
        /// What stays of the partition.
        partition: EmptyLoop,
        /// The last log index that is part of the received state.
        index: u64,
    },
    /// Free the memory of a frozen layer.
    Drop(Retired),
    /// Room on the disk became available: what could not be written is tried again at once.
    TryAgain,
    /// End.
    Stop,
}

pub(crate) struct MaintenanceThread {
    pub shared: Arc<Shared>,
    pub messages: Receiver<Maintenance>,
    pub partitions: BTreeMap<PartitionId, Maintained>,
    /// An exporter that does not come back for so long is stuck.
    pub exporter_stuck_after: Duration,
    pub log: Arc<RaftEngineLog>,
    pub exporter_backlog_limit_bytes: u64,
    /// The exporter that only other nodes of the cluster have, and the position up to which it needs nothing of a partition.
    pub held_back: Box<dyn Fn(PartitionId) -> Option<(String, u64)> + Send>,
    /// To the thread that puts received states into place.
    pub replacements: Sender<Replacement>,
}

/// A received state that takes the place of that of a partition.
pub(crate) struct Replacement {
    /// What stays of the partition.
    pub partition: EmptyLoop,
    /// The last log index that is part of the received state.
    pub index: u64,
    /// What is kept up of the partition. Its upkeep may hold the old state.
    pub maintained: Maintained,
}

/// What is kept up of a partition.
pub(crate) struct Maintained {
    pub partition: PartitionId,
    /// Those of this partition.
    pub exporters: Vec<Arc<ExporterProgress>>,
    pub upkeep: Upkeep,
    pub throttle: WriteThrottle,
    /// Where written checkpoints are reported.
    pub processing: Sender<Work>,
}

impl MaintenanceThread {
    /// Runs until the node stops.
    pub fn run(mut self) {
        let mut metrics = SharedMetrics::new();
        let started = Instant::now();
        let mut next_round = started;
        let mut next_backlog = None;
        loop {
            let retry = self.partitions.values().filter_map(|of| of.upkeep.retry_at()).min().map(|at| started + at);
            let deadline = [retry, next_backlog].into_iter().flatten().fold(next_round, Instant::min);
            let message = self.messages.recv_deadline(deadline);
            if self.shared.is_crashed() {
                return;
            }
            match message {
                Ok(Maintenance::Checkpoint { partition, checkpoint, position }) => {
                    let of = self.partitions.get_mut(&partition).expect("a partition of this node");
                    of.upkeep.begin(checkpoint, position, started.elapsed());
                }
                Ok(Maintenance::Add(maintained)) => {
                    if !maintained.exporters.is_empty() {
                        next_backlog.get_or_insert(next_round);
                    }
                    self.partitions.insert(maintained.partition, *maintained);
                }
                Ok(Maintenance::Replace { partition, index }) => self.replace(partition, index),
                Ok(Maintenance::Drop(retired)) => drop(retired),
                Ok(Maintenance::TryAgain) => {
                    let now = started.elapsed();
                    self.partitions.values_mut().for_each(|of| of.upkeep.try_again(now));
                }
                Ok(Maintenance::Stop) | Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => {}
            }
            self.write_checkpoints(started);
            let now = Instant::now();
            if next_backlog.is_some_and(|next| next <= now) {
                next_backlog = Some(now + BACKLOG_INTERVAL);
                self.limit_backlogs();
                self.slow_down(started.elapsed());
                self.watch_exporters(started.elapsed());
            }
            if now >= next_round {
                next_round = now + INTERVAL;
                self.reconcile();
                self.delete_records();
                self.publish_exporters();
                metrics.publish(&self.shared);
            }
        }
    }

    /// Lets go of a partition, whose checkpoints came before.
    fn replace(&mut self, partition: EmptyLoop, index: u64) {
        let maintained = self.partitions.remove(&partition.id()).expect("a partition of this node");
        drop(self.replacements.send(Replacement { partition, index, maintained }));
    }

    /// Once a second, so that a partition knows also in rest which jobs are delivered. The other nodes of a cluster have a
    /// thread that does so.
    fn reconcile(&self) {
        if self.shared.port.is_some() {
            return;
        }
        let mut called: Vec<&Sender<Work>> = Vec::new();
        for of in self.partitions.values() {
            if !called.iter().any(|sender| sender.same_channel(&of.processing)) {
                drop(of.processing.send(Work::Reconcile));
                called.push(&of.processing);
            }
        }
    }

    fn write_checkpoints(&mut self, started: Instant) {
        let mut partitions = std::mem::take(&mut self.partitions);
        for (&partition, of) in &mut partitions {
            if let Some(written) = of.upkeep.write(started.elapsed()) {
                self.report(partition, &of.processing, written);
            }
        }
        self.partitions = partitions;
    }

    /// Says what became of a checkpoint.
    fn report(&self, partition: PartitionId, processing: &Sender<Work>, written: Result<Written, CheckpointError>) {
        let entrance = self.shared.entrances.of(partition);
        match written {
            Ok(written) => {
                entrance.limiter.set_full_state_file(written.nearly_full().as_deref());
                if entrance.set_trouble(Trouble::Checkpoint, false) {
                    tracing::info!(%partition, "checkpoints can be written again");
                }
                drop(processing.send(Work::CheckpointWritten { partition, written }));
                self.reclaim_log();
            }
            Err(error) => {
                if let CheckpointError::State(error) = &error
                    && error.is_file_full()
                {
                    entrance.limiter.set_full_state_file(Some(&error.to_string()));
                }
                match &error {
                    error if !error.needs_restart() => {}
                    CheckpointError::Records(error) => {
                        self.shared.fail(&format!("records are lost that were not on the disk yet: {error}"));
                    }
                    CheckpointError::State(error) => {
                        self.shared
                            .fail(&format!("the state of partition {partition} has to be opened again: {error}"));
                    }
                }
                if entrance.set_trouble(Trouble::Checkpoint, true) {
                    tracing::warn!(
                        %partition, %error,
                        "a checkpoint of the state cannot be written; it is tried again until it works"
                    );
                }
            }
        }
    }

    fn reclaim_log(&self) {
        if let Err(error) = self.log.reclaim_space() {
            tracing::debug!(%error, "the log's space was not reclaimed; the next checkpoint tries again");
        }
    }

    /// Deletes the segments that every exporter has acknowledged, so that a restart knows, and that are part of a checkpoint.
    fn delete_records(&self) {
        for (&partition, of) in &self.partitions {
            let own = of.exporters.iter().map(|exporter| exporter.saved().position);
            let saved = own.chain((self.held_back)(partition).map(|(_, position)| position)).min();
            match of.upkeep.delete_records(saved.unwrap_or(u64::MAX)) {
                Ok(0) => {}
                Ok(deleted) => tracing::debug!(%partition, deleted, "deleted record segments"),
                Err(error) => tracing::debug!(%partition, %error, "a record segment was not deleted; trying again"),
            }
        }
    }

    fn exporters(&self) -> impl Iterator<Item = &Arc<ExporterProgress>> {
        self.partitions.values().flat_map(|of| &of.exporters)
    }

    /// An exporter that is stuck cannot say so itself.
    fn watch_exporters(&self, now: Duration) {
        self.exporters().for_each(|exporter| exporter.watch(now, self.exporter_stuck_after));
    }

    fn publish_exporters(&self) {
        let now = self.shared.clock.now_milliseconds();
        self.exporters().for_each(|exporter| exporter.publish(now));
    }

    /// Refuses new work while an exporter holds back too much.
    fn limit_backlogs(&self) {
        for (partition, of) in &self.partitions {
            let (log, entrance) = (of.upkeep.records(), self.shared.entrances.of(*partition));
            let behind =
                of.exporters.iter().map(|exporter| (log.bytes_behind(exporter.kept_from().position), exporter));
            let limit_bytes = self.exporter_backlog_limit_bytes;
            let own = behind.map(|(bytes, exporter)| (bytes, exporter.name().to_owned(), exporter.is_held_back()));
            let foreign =
                (self.held_back)(*partition).map(|(name, position)| (log.bytes_behind(position), name, false));
            let worst = own.chain(foreign).max_by_key(|(bytes, ..)| *bytes).filter(|(bytes, ..)| *bytes > limit_bytes);
            let backlog = worst.map(|(bytes, exporter, is_paused)| Backlog { exporter, bytes, limit_bytes, is_paused });
            entrance.limiter.set_backlog(backlog);
        }
    }

    /// Lets new work in no faster than the slowest exporter allows.
    fn slow_down(&mut self, now: Duration) {
        for (&partition, of) in &mut self.partitions {
            let Some(slowest) = of.exporters.iter().min_by_key(|exporter| exporter.acknowledged().position) else {
                continue;
            };
            let entrance = self.shared.entrances.of(partition);
            let pace = of.throttle.look(
                now,
                Slowest {
                    exporter: slowest.name(),
                    is_paused: slowest.is_paused(),
                    exported: slowest.acknowledged().number,
                    written: slowest.log().last_place().number,
                    admitted: entrance.limiter.totals().0,
                },
            );
            entrance.limiter.set_pace(pace);
        }
    }
}
