//! What an exporter's thread does between two waits, driven by calls.
//!
//! Nothing here has a thread or a clock of its own, so a simulation drives the same code as production.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use exporters::{Exporter, ExporterError, RecordFilter};
use protocol::{PartitionId, Record, Timestamp};

use super::{ExporterProgress, ExporterState, PartitionProgress, PositionsFile};
use crate::metrics::ExporterMetrics;
use crate::record_log::{RecordLogError, RecordReader};

/// Records of one partition that are exported before the next partition has its turn.
pub(super) const TURN_RECORDS: usize = 1_000;
/// Pause after a first and, at most, after a repeated failure.
const RETRY_PAUSE: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(10));

/// Feeds one exporter with the records of all partitions.
pub struct ExporterLoop {
    pub(super) exporter: Box<dyn Exporter>,
    filter: RecordFilter,
    pub(super) progress: Arc<ExporterProgress>,
    positions: PositionsFile,
    saved: Vec<u64>,
    pub(super) sources: Vec<Source>,
    /// The exporter is connected to its target.
    pub(super) open: bool,
    /// Set while the exporter as a whole fails.
    pub(super) retry: Retry,
}

/// The records of one partition.
pub(super) struct Source {
    pub partition: PartitionId,
    reader: RecordReader,
    /// A record that was read and not exported yet.
    next: Option<Record>,
    /// Position of the last record that the exporter took.
    exported: u64,
    /// Position of the last record that the exporter took or that was none of its concern.
    seen: u64,
    /// Set while a record of this partition cannot be read or exported.
    pub retry: Retry,
    pub metrics: ExporterMetrics,
}

/// When something that failed is tried again.
pub(super) struct Retry {
    /// Why it failed, and when it is tried again.
    pub failure: Option<(String, Duration)>,
    pause: Duration,
}

impl Retry {
    fn new() -> Self {
        Retry { failure: None, pause: RETRY_PAUSE.0 }
    }

    fn note(&mut self, result: Result<(), String>, now: Duration) {
        match result {
            Ok(()) => *self = Retry::new(),
            Err(reason) => {
                self.failure = Some((reason, now + self.pause));
                self.pause = (self.pause * 2).min(RETRY_PAUSE.1);
            }
        }
    }

    pub fn at(&self) -> Option<Duration> {
        self.failure.as_ref().map(|(_, at)| *at)
    }

    fn is_waiting(&self, now: Duration) -> bool {
        self.at().is_some_and(|at| now < at)
    }
}

impl ExporterLoop {
    /// Goes on behind what the exporter has acknowledged.
    pub fn new(
        configured: (Box<dyn Exporter>, RecordFilter),
        progress: Arc<ExporterProgress>,
        positions: PositionsFile,
    ) -> Self {
        let (exporter, filter) = configured;
        let source = |progress_of: &PartitionProgress| {
            let partition = progress_of.log.partition();
            let acknowledged = progress.acknowledged(partition);
            Source {
                partition,
                reader: RecordReader::after(progress_of.log.clone(), acknowledged),
                next: None,
                exported: acknowledged,
                seen: acknowledged,
                retry: Retry::new(),
                metrics: ExporterMetrics::new(&progress.name, partition),
            }
        };
        let sources: Vec<Source> = progress.partitions.iter().map(source).collect();
        let saved = sources.iter().map(|source| source.exported).collect();
        let (open, retry) = (false, Retry::new());
        ExporterLoop { exporter, filter, progress, positions, saved, sources, open, retry }
    }

    /// What others see of the exporter.
    pub fn progress(&self) -> &Arc<ExporterProgress> {
        &self.progress
    }

    /// When something that failed is tried again.
    pub fn retry_at(&self) -> Option<Duration> {
        self.sources.iter().map(|source| &source.retry).chain([&self.retry]).filter_map(Retry::at).min()
    }

    /// Opens the exporter, or exports some records of every partition, unless that waits to be tried again. `true` when
    /// there is more to do at once.
    pub fn turn(&mut self, now: Duration, clock: Timestamp) -> bool {
        if self.retry.is_waiting(now) {
            return false;
        }
        let mut more = false;
        let mut result = match self.open {
            true => Ok(()),
            false => self.exporter.open(self.progress.controller.clone()),
        };
        if result.is_ok() {
            self.open = true;
            for index in 0..self.sources.len() {
                match self.export_some(index, now, clock) {
                    Ok(more_here) => more |= more_here,
                    Err(loss) => {
                        result = Err(loss);
                        break;
                    }
                }
            }
        }
        if result.is_ok() {
            // Also while more records wait, and whatever delays a partition: the exporter acknowledges when asked.
            result = self.exporter.flush();
        }
        if result.as_ref().is_err_and(ExporterError::is_loss) {
            self.begin_again();
        }
        self.retry.note(result.map_err(|error| error.to_string()), now);
        self.tell_state();
        more && self.retry.failure.is_none()
    }

    /// The exporter lost what it has not acknowledged: it is opened again and gets that again.
    fn begin_again(&mut self) {
        self.open = false;
        for (source, progress) in self.sources.iter_mut().zip(&self.progress.partitions) {
            let acknowledged = self.progress.controller.acknowledged(source.partition);
            source.reader = RecordReader::after(progress.log.clone(), acknowledged);
            source.next = None;
            (source.exported, source.seen) = (acknowledged, acknowledged);
        }
    }

    /// Exports some records of a partition, unless that waits to be tried again. `true` when it has more.
    fn export_some(&mut self, index: usize, now: Duration, clock: Timestamp) -> Result<bool, ExporterError> {
        if self.sources[index].retry.is_waiting(now) {
            return Ok(false);
        }
        let (more, result) = match self.export_turn(index, clock) {
            Ok(more) => (more, Ok(())),
            Err(Failure::Exporter(loss)) if loss.is_loss() => return Err(loss),
            Err(failure) => (false, Err(failure.to_string())),
        };
        self.sources[index].retry.note(result, now);
        Ok(more)
    }

    /// `true` when the partition has more records than were exported now.
    fn export_turn(&mut self, index: usize, clock: Timestamp) -> Result<bool, Failure> {
        let source = &mut self.sources[index];
        let (mut exported, mut skipped, mut timestamp) = (0, 0, None);
        let mut result = Ok(true);
        for _ in 0..TURN_RECORDS {
            let record = match source.next.take().map_or_else(|| source.reader.next(), |record| Ok(Some(record))) {
                Ok(Some(record)) => record,
                Ok(None) => {
                    result = Ok(false);
                    break;
                }
                Err(error) => {
                    result = Err(error.into());
                    break;
                }
            };
            timestamp = Some(record.timestamp);
            if !self.filter.accepts(&record) {
                skipped += 1;
                source.seen = record.position;
                continue;
            }
            if let Err(error) = self.exporter.export(source.partition, &record) {
                source.next = Some(record);
                result = Err(error.into());
                break;
            }
            exported += 1;
            source.exported = record.position;
            source.seen = record.position;
        }
        let progress = &self.progress.partitions[index];
        progress.exported.store(source.exported, Ordering::Relaxed);
        if let Some(timestamp) = timestamp {
            progress.exported_timestamp.store(timestamp, Ordering::Relaxed);
            let latency = clock.saturating_sub(timestamp);
            let latency = Duration::from_millis(u64::try_from(latency).unwrap_or(0));
            source.metrics.exported(exported, skipped, latency);
        }
        result
    }

    /// Says how the exporter is, and what of it is news.
    fn tell_state(&self) {
        let retries = [&self.retry].into_iter().chain(self.sources.iter().map(|source| &source.retry));
        let failure = retries.filter_map(|retry| retry.failure.as_ref()).map(|(reason, _)| reason).next();
        let mut state = self.progress.state.lock();
        let failed_before = matches!(*state, ExporterState::Failing(_));
        match failure {
            None if *state == ExporterState::Exporting => {}
            None => {
                if failed_before {
                    tracing::info!(exporter = self.progress.name, "the exporter works again");
                }
                *state = ExporterState::Exporting;
            }
            Some(reason) => {
                if !failed_before {
                    tracing::warn!(
                        exporter = self.progress.name,
                        reason,
                        "the exporter fails; it is tried again until it works, and records are kept for it meanwhile"
                    );
                }
                *state = ExporterState::Failing(reason.clone());
            }
        }
    }

    /// Keeps what the exporter has acknowledged for the next start.
    pub fn save_positions(&mut self) {
        for source in &self.sources {
            // Nothing else moves the position past skipped records; but not while the exporter holds a record back.
            if self.progress.controller.acknowledged(source.partition) >= source.exported {
                self.progress.controller.acknowledge(source.partition, source.seen);
            }
        }
        let acknowledged: Vec<u64> =
            self.sources.iter().map(|source| self.progress.controller.acknowledged(source.partition)).collect();
        if acknowledged == self.saved {
            return;
        }
        match self.positions.save(&acknowledged) {
            Ok(()) => self.saved = acknowledged,
            // Harmless but for records that come twice after a restart; the next second tries again.
            Err(error) => tracing::debug!(exporter = self.progress.name, %error, "positions were not saved"),
        }
    }
}

/// Why a partition makes no progress.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Records(#[from] RecordLogError),
    #[error(transparent)]
    Exporter(#[from] ExporterError),
}
