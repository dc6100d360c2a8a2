//! The background thread: writes checkpoints, deletes what is no longer needed, publishes numbers.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use protocol::PartitionId;
use replication::{LogStore, RaftEngineLog};
use state::{Checkpoint, Retired, Written};

use crate::entrance::Trouble;
use crate::exporting::ExporterProgress;
use crate::flow_control::Backlog;
use crate::inbox::Work;
use crate::metrics::SharedMetrics;
use crate::record_log::{RecordLog, RecordLogError};
use crate::shared::Shared;

const INTERVAL: Duration = Duration::from_secs(1);
/// How often the backlogs of exporters are looked at: what comes in between goes over the limit.
const BACKLOG_INTERVAL: Duration = Duration::from_millis(100);
/// Pause before a failed checkpoint is tried again, at first and at most.
const RETRY_PAUSE: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(10));

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
    /// Where written checkpoints are reported, from partition 1 on.
    pub processing: Vec<Sender<Work>>,
    pub records: Vec<Arc<RecordLog>>,
    /// Position of the last record of each partition's newest checkpoint.
    pub checkpointed: Vec<AtomicU64>,
    pub exporters: Vec<Arc<ExporterProgress>>,
    pub log: Arc<RaftEngineLog>,
    pub exporter_backlog_limit_bytes: u64,
}

/// A checkpoint that could not be written yet.
struct Waiting {
    partition: PartitionId,
    checkpoint: Checkpoint,
    position: u64,
    retry_at: Instant,
    pause: Duration,
}

impl MaintenanceThread {
    /// Runs until the node stops.
    pub fn run(self) {
        let metrics = SharedMetrics::new(self.shared.partition_count());
        let mut waiting: VecDeque<Waiting> = VecDeque::new();
        let mut next_round = Instant::now();
        let mut next_backlog = (!self.exporters.is_empty()).then_some(next_round);
        loop {
            let retry = waiting.iter().map(|waiting| waiting.retry_at).min();
            let deadline = [retry, next_backlog].into_iter().flatten().fold(next_round, Instant::min);
            let message = self.messages.recv_deadline(deadline);
            if self.shared.is_crashed() {
                return;
            }
            match message {
                Ok(Maintenance::Checkpoint { partition, checkpoint, position }) => {
                    let (retry_at, pause) = (Instant::now(), RETRY_PAUSE.0);
                    let attempt = Waiting { partition, checkpoint, position, retry_at, pause };
                    waiting.extend(self.attempt(attempt));
                }
                Ok(Maintenance::Drop(retired)) => drop(retired),
                Ok(Maintenance::TryAgain) => {
                    let now = Instant::now();
                    waiting.iter_mut().for_each(|waiting| (waiting.retry_at, waiting.pause) = (now, RETRY_PAUSE.0));
                }
                Ok(Maintenance::Stop) | Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => {}
            }
            let now = Instant::now();
            for _ in 0..waiting.len() {
                let Some(attempt) = waiting.pop_front() else { break };
                let again = if attempt.retry_at <= now { self.attempt(attempt) } else { Some(attempt) };
                waiting.extend(again);
            }
            if next_backlog.is_some_and(|next| next <= now) {
                next_backlog = Some(now + BACKLOG_INTERVAL);
                self.limit_backlogs();
            }
            if now >= next_round {
                next_round = now + INTERVAL;
                self.delete_records();
                metrics.publish(&self.shared);
            }
        }
    }

    /// Writes a checkpoint; returns it for another attempt when that fails.
    fn attempt(&self, waiting: Waiting) -> Option<Waiting> {
        let partition = waiting.partition;
        let entrance = self.shared.entrance(partition).ok()?;
        match self.write(&waiting) {
            Ok(written) => {
                if entrance.set_trouble(Trouble::Checkpoint, false) {
                    tracing::info!(%partition, "checkpoints can be written again");
                }
                self.checkpointed[index_of(partition)].store(waiting.position, Ordering::Release);
                drop(self.processing[index_of(partition)].send(Work::CheckpointWritten { partition, written }));
                self.reclaim_log();
                None
            }
            Err(error) => {
                if entrance.set_trouble(Trouble::Checkpoint, true) {
                    tracing::warn!(
                        %partition, error,
                        "a checkpoint of the state cannot be written; it is tried again until it works"
                    );
                }
                let pause = (waiting.pause * 2).min(RETRY_PAUSE.1);
                Some(Waiting { retry_at: Instant::now() + waiting.pause, pause, ..waiting })
            }
        }
    }

    /// The records first: what the state holds is never derived again, so its records must not be lost.
    fn write(&self, waiting: &Waiting) -> Result<Written, String> {
        if let Err(error) = self.records[index_of(waiting.partition)].sync() {
            if let RecordLogError::Damaged { .. } = error {
                // From the log they can be derived again, but only by a start.
                self.shared.fail(&format!("records are lost that were not on the disk yet: {error}"));
            }
            return Err(error.to_string());
        }
        waiting.checkpoint.write().map_err(|error| {
            if error.needs_reopening() {
                let partition = waiting.partition;
                self.shared.fail(&format!("the state of partition {partition} has to be opened again: {error}"));
            }
            error.to_string()
        })
    }

    fn reclaim_log(&self) {
        if let Err(error) = self.log.reclaim_space() {
            tracing::debug!(%error, "the log's space was not reclaimed; the next checkpoint tries again");
        }
    }

    /// Deletes the segments that every exporter has acknowledged and that are part of a checkpoint.
    fn delete_records(&self) {
        for (log, checkpointed) in self.records.iter().zip(&self.checkpointed) {
            let partition = log.partition();
            let acknowledged = self.exporters.iter().map(|exporter| exporter.acknowledged(partition)).min();
            let needless = checkpointed.load(Ordering::Acquire).min(acknowledged.unwrap_or(u64::MAX));
            match log.delete_up_to(needless) {
                Ok(0) => {}
                Ok(deleted) => tracing::debug!(%partition, deleted, "deleted record segments"),
                Err(error) => tracing::debug!(%partition, %error, "a record segment was not deleted; trying again"),
            }
        }
    }

    /// Refuses new work while an exporter holds back too much.
    fn limit_backlogs(&self) {
        for (log, entrance) in self.records.iter().zip(&self.shared.entrances) {
            let partition = log.partition();
            let behind =
                self.exporters.iter().map(|exporter| (log.bytes_behind(exporter.acknowledged(partition)), exporter));
            let limit_bytes = self.exporter_backlog_limit_bytes;
            let worst = behind.max_by_key(|(bytes, _)| *bytes).filter(|(bytes, _)| *bytes > limit_bytes);
            let backlog =
                worst.map(|(bytes, exporter)| Backlog { exporter: exporter.name().to_owned(), bytes, limit_bytes });
            entrance.limiter.set_backlog(backlog);
        }
    }
}

fn index_of(partition: PartitionId) -> usize {
    usize::from(partition.0) - 1
}
