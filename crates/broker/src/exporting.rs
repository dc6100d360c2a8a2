//! The exporter director: one thread per exporter feeds it the records of all partitions.
//!
//! Each partition's records come in order and at least once; between partitions there is no order. A record that cannot
//! be read, or that the exporter refuses, comes again after a pause that grows, and holds up its own partition alone:
//! what is exported of the others is acknowledged all the same. What the exporter has acknowledged is kept in a small
//! file; after a restart it continues from there.

mod positions;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError};
use exporters::{Controller, Exporter, ExporterConfiguration, ExporterError, RecordFilter};
use parking_lot::Mutex;
use protocol::{PartitionId, Record, Timestamp};

use crate::metrics::ExporterMetrics;
use crate::record_log::{RecordLog, RecordLogError, RecordReader};
use crate::shared::Shared;

pub(crate) use positions::PositionsFile;

/// Records of one partition that are exported before the next partition has its turn.
const TURN_RECORDS: usize = 1_000;
/// Pause after a first and, at most, after a repeated failure.
const RETRY_PAUSE: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(10));
/// Time between two looks at positions and numbers.
const INTERVAL: Duration = Duration::from_secs(1);
/// How long a stopping node waits for an exporter to take the last records.
const STOP_LIMIT: Duration = Duration::from_secs(5);

/// What an exporter is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExporterState {
    /// It connects to its target.
    Opening,
    /// It takes records.
    Exporting,
    /// It failed and is tried again; the sentence says why.
    Failing(String),
    /// It is closed.
    Closed,
}

/// How an exporter is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExporterStatus {
    /// Its name.
    pub name: String,
    /// What it is doing.
    pub state: ExporterState,
    /// How far it is, for each partition.
    pub partitions: Vec<ExporterPosition>,
}

/// How far an exporter is with a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExporterPosition {
    /// The partition.
    pub partition: PartitionId,
    /// Position of the last record handed to it.
    pub exported: u64,
    /// Position up to which it needs no record again.
    pub acknowledged: u64,
    /// Position of the last record there is.
    pub last: u64,
    /// Time since the record happened that it took or refused last; 0 when it has acknowledged everything.
    pub lag_milliseconds: u64,
}

impl ExporterPosition {
    /// How many positions it is behind: no fewer than records.
    pub fn lag_records(&self) -> u64 {
        self.last.saturating_sub(self.acknowledged)
    }
}

/// What other threads see of an exporter.
#[derive(Debug)]
pub(crate) struct ExporterProgress {
    name: String,
    controller: Controller,
    state: Mutex<ExporterState>,
    partitions: Vec<PartitionProgress>,
}

#[derive(Debug)]
struct PartitionProgress {
    log: Arc<RecordLog>,
    exported: AtomicU64,
    /// When the record happened that was exported or tried last; at first the start of the node.
    exported_timestamp: AtomicI64,
}

impl ExporterProgress {
    pub fn new(name: &str, acknowledged: &[u64], logs: &[Arc<RecordLog>], now: Timestamp) -> Self {
        let partition = |(log, acknowledged): (&Arc<RecordLog>, &u64)| PartitionProgress {
            log: log.clone(),
            exported: AtomicU64::new(*acknowledged),
            exported_timestamp: AtomicI64::new(now),
        };
        ExporterProgress {
            name: name.to_owned(),
            controller: Controller::new(acknowledged.iter().copied()),
            state: Mutex::new(ExporterState::Opening),
            partitions: logs.iter().zip(acknowledged).map(partition).collect(),
        }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Position up to which the exporter needs no record again.
    pub fn acknowledged(&self, partition: PartitionId) -> u64 {
        self.controller.acknowledged(partition)
    }

    /// How the exporter is doing at the time `now`.
    pub fn status(&self, now: Timestamp) -> ExporterStatus {
        let position = |progress: &PartitionProgress| {
            let partition = progress.log.partition();
            let (acknowledged, last) = (self.acknowledged(partition), progress.log.last_position());
            let since = progress.exported_timestamp.load(Ordering::Relaxed);
            let lag = if acknowledged < last { now.saturating_sub(since) } else { 0 };
            ExporterPosition {
                partition,
                exported: progress.exported.load(Ordering::Relaxed),
                acknowledged,
                last,
                lag_milliseconds: u64::try_from(lag).unwrap_or(0),
            }
        };
        ExporterStatus {
            name: self.name.clone(),
            state: self.state.lock().clone(),
            partitions: self.partitions.iter().map(position).collect(),
        }
    }
}

/// Feeds one exporter.
pub(crate) struct ExporterThread {
    shared: Arc<Shared>,
    exporter: Box<dyn Exporter>,
    filter: RecordFilter,
    progress: Arc<ExporterProgress>,
    positions: PositionsFile,
    saved: Vec<u64>,
    sources: Vec<Source>,
    /// The exporter is connected to its target.
    open: bool,
    /// Set while the exporter as a whole fails.
    retry: Retry,
    new_records: Receiver<()>,
    /// Closed when the node stops.
    stop: Receiver<()>,
    next_round: Instant,
}

/// The records of one partition.
struct Source {
    partition: PartitionId,
    reader: RecordReader,
    /// A record that was read and not exported yet.
    next: Option<Record>,
    /// Position of the last record that the exporter took.
    exported: u64,
    /// Position of the last record that the exporter took or that was none of its concern.
    seen: u64,
    /// Set while a record of this partition cannot be read or exported.
    retry: Retry,
    metrics: ExporterMetrics,
}

/// When something that failed is tried again.
struct Retry {
    /// Why it failed, and when it is tried again.
    failure: Option<(String, Instant)>,
    pause: Duration,
}

impl Retry {
    fn new() -> Self {
        Retry { failure: None, pause: RETRY_PAUSE.0 }
    }

    fn note(&mut self, result: Result<(), String>, now: Instant) {
        match result {
            Ok(()) => *self = Retry::new(),
            Err(reason) => {
                self.failure = Some((reason, now + self.pause));
                self.pause = (self.pause * 2).min(RETRY_PAUSE.1);
            }
        }
    }

    fn at(&self) -> Option<Instant> {
        self.failure.as_ref().map(|(_, at)| *at)
    }

    fn is_waiting(&self, now: Instant) -> bool {
        self.at().is_some_and(|at| now < at)
    }
}

impl ExporterThread {
    pub fn new(
        shared: Arc<Shared>,
        configured: (Box<dyn Exporter>, RecordFilter),
        progress: Arc<ExporterProgress>,
        positions: PositionsFile,
        new_records: Receiver<()>,
        stop: Receiver<()>,
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
        let next_round = Instant::now();
        ExporterThread {
            shared,
            exporter,
            filter,
            progress,
            positions,
            saved,
            sources,
            open: false,
            retry: Retry::new(),
            new_records,
            stop,
            next_round,
        }
    }

    /// Runs until the node stops.
    pub fn run(mut self) {
        loop {
            let now = Instant::now();
            let more = self.turn(now);
            if self.is_stopping() {
                break;
            }
            self.look_after_positions();
            if !more {
                self.wait(now);
            }
            if self.shared.is_crashed() {
                return;
            }
        }
        self.close();
    }

    /// Opens the exporter, or exports some records of every partition, unless that waits to be tried again. `true` when
    /// there is more to do at once.
    fn turn(&mut self, now: Instant) -> bool {
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
                match self.export_some(index, now) {
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

    /// The exporter lost what it has not acknowledged: it is opened anew and gets that again.
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
    fn export_some(&mut self, index: usize, now: Instant) -> Result<bool, ExporterError> {
        if self.sources[index].retry.is_waiting(now) {
            return Ok(false);
        }
        let (more, result) = match self.export_turn(index) {
            Ok(more) => (more, Ok(())),
            Err(Failure::Exporter(loss)) if loss.is_loss() => return Err(loss),
            Err(failure) => (false, Err(failure.to_string())),
        };
        self.sources[index].retry.note(result, now);
        Ok(more)
    }

    /// `true` when the partition has more records than were exported now.
    fn export_turn(&mut self, index: usize) -> Result<bool, Failure> {
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
            let latency = self.shared.clock.now_milliseconds().saturating_sub(timestamp);
            let latency = Duration::from_millis(u64::try_from(latency).unwrap_or(0));
            source.metrics.exported(exported, skipped, latency);
        }
        result
    }

    /// Waits for new records, the end, a moment when something is tried again, or the next look at positions. While the
    /// exporter as a whole fails, new records change nothing.
    fn wait(&self, now: Instant) {
        let retries = self.sources.iter().map(|source| &source.retry).chain([&self.retry]).filter_map(Retry::at);
        let until = retries.fold(now + INTERVAL, Instant::min);
        let never = crossbeam_channel::never();
        let new_records = if self.retry.failure.is_some() { &never } else { &self.new_records };
        crossbeam_channel::select! {
            recv(new_records) -> _ => {}
            recv(self.stop) -> _ => {}
            default(until.saturating_duration_since(Instant::now())) => {}
        }
    }

    fn is_stopping(&self) -> bool {
        !matches!(self.stop.recv_timeout(Duration::ZERO), Err(RecvTimeoutError::Timeout))
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

    /// About once a second: keeps the positions and publishes the numbers.
    fn look_after_positions(&mut self) {
        let now = Instant::now();
        if now < self.next_round {
            return;
        }
        self.next_round = now + INTERVAL;
        self.save_positions();
        let status = self.progress.status(self.shared.clock.now_milliseconds());
        for (source, position) in self.sources.iter().zip(&status.partitions) {
            let lag = Duration::from_millis(position.lag_milliseconds);
            source.metrics.positions(position.exported, position.acknowledged, position.lag_records(), lag);
        }
    }

    fn save_positions(&mut self) {
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

    /// Exports the remaining records, as long as that works and does not take too long, and closes the target.
    fn close(&mut self) {
        let until = Instant::now() + STOP_LIMIT;
        let mut more = self.open;
        while more && Instant::now() < until && !self.shared.is_crashed() {
            more = self.turn(Instant::now());
        }
        if self.shared.is_crashed() {
            return;
        }
        if self.open
            && let Err(error) = self.exporter.close()
        {
            tracing::info!(
                exporter = self.progress.name, %error,
                "the exporter could not be closed; what it did not acknowledge comes again after the next start"
            );
        }
        self.save_positions();
        *self.progress.state.lock() = ExporterState::Closed;
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

/// Makes the exporter and lets it check its arguments.
pub(crate) fn configure(
    configuration: &ExporterConfiguration,
    partition_count: u16,
) -> Result<(Box<dyn Exporter>, RecordFilter), ExporterError> {
    let mut exporter = (configuration.factory)();
    let mut context = exporters::Context {
        name: configuration.name.clone(),
        arguments: configuration.arguments.clone(),
        filter: configuration.filter.clone(),
        partition_count,
    };
    exporter.configure(&mut context)?;
    Ok((exporter, context.filter))
}

#[cfg(test)]
mod tests;
