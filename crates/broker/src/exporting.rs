//! The exporter director: one thread per exporter feeds it the records of all partitions.
//!
//! Each partition's records come in order and at least once; between partitions there is no order. A record that cannot
//! be read, or that the exporter refuses, comes again after a pause that grows, and holds up its own partition alone:
//! what is exported of the others is acknowledged all the same. What the exporter has acknowledged is kept in a small
//! file; after a restart it continues from there.

mod exporter_loop;
mod positions;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError};
use exporters::{Controller, Exporter, ExporterConfiguration, ExporterError, RecordFilter};
use parking_lot::Mutex;
use protocol::{PartitionId, Timestamp};

use crate::clock::Clock;
use crate::record_log::RecordLog;
use crate::shared::Shared;

pub use exporter_loop::ExporterLoop;
pub use positions::PositionsFile;

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

/// A look at all exporters of a node.
#[derive(Clone)]
pub struct Exporters {
    clock: Arc<Clock>,
    exporters: Vec<Arc<ExporterProgress>>,
}

impl Exporters {
    pub(crate) fn new(clock: Arc<Clock>, exporters: Vec<Arc<ExporterProgress>>) -> Self {
        Exporters { clock, exporters }
    }

    /// How each of them is now.
    pub fn statuses(&self) -> Vec<ExporterStatus> {
        let now = self.clock.now_milliseconds();
        self.exporters.iter().map(|exporter| exporter.status(now)).collect()
    }
}

/// What other threads see of an exporter.
#[derive(Debug)]
pub struct ExporterProgress {
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
    /// Of an exporter that has acknowledged so much of each partition.
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

    /// The name in the configuration.
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

/// The thread of one exporter.
pub(crate) struct ExporterThread {
    shared: Arc<Shared>,
    exporter: ExporterLoop,
    new_records: Receiver<()>,
    /// Closed when the node stops.
    stop: Receiver<()>,
    started: Instant,
    next_round: Instant,
}

impl ExporterThread {
    pub fn new(shared: Arc<Shared>, exporter: ExporterLoop, new_records: Receiver<()>, stop: Receiver<()>) -> Self {
        let now = Instant::now();
        ExporterThread { shared, exporter, new_records, stop, started: now, next_round: now }
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

    fn turn(&mut self, now: Instant) -> bool {
        self.exporter.turn(now.duration_since(self.started), self.shared.clock.now_milliseconds())
    }

    /// Waits for new records, the end, a moment when something is tried again, or the next look at positions. While the
    /// exporter as a whole fails, new records change nothing.
    fn wait(&self, now: Instant) {
        let retry = self.exporter.retry_at().map(|at| self.started + at);
        let until = retry.into_iter().fold(now + INTERVAL, Instant::min);
        let never = crossbeam_channel::never();
        let new_records = if self.exporter.retry.failure.is_some() { &never } else { &self.new_records };
        crossbeam_channel::select! {
            recv(new_records) -> _ => {}
            recv(self.stop) -> _ => {}
            default(until.saturating_duration_since(Instant::now())) => {}
        }
    }

    fn is_stopping(&self) -> bool {
        !matches!(self.stop.recv_timeout(Duration::ZERO), Err(RecvTimeoutError::Timeout))
    }

    /// About once a second: keeps the positions and publishes the numbers.
    fn look_after_positions(&mut self) {
        let now = Instant::now();
        if now < self.next_round {
            return;
        }
        self.next_round = now + INTERVAL;
        self.exporter.save_positions();
        let status = self.exporter.progress.status(self.shared.clock.now_milliseconds());
        for (source, position) in self.exporter.sources.iter().zip(&status.partitions) {
            let lag = Duration::from_millis(position.lag_milliseconds);
            source.metrics.positions(position.exported, position.acknowledged, position.lag_records(), lag);
            source.metrics.state(matches!(status.state, ExporterState::Failing(_)));
        }
    }

    /// Exports the remaining records, as long as that works and does not take too long, and closes the target.
    fn close(&mut self) {
        let until = Instant::now() + STOP_LIMIT;
        let mut more = self.exporter.open;
        while more && Instant::now() < until && !self.shared.is_crashed() {
            more = self.turn(Instant::now());
        }
        if self.shared.is_crashed() {
            return;
        }
        if self.exporter.open
            && let Err(error) = self.exporter.exporter.close()
        {
            tracing::info!(
                exporter = self.exporter.progress.name, %error,
                "the exporter could not be closed; what it did not acknowledge comes again after the next start"
            );
        }
        self.exporter.save_positions();
        *self.exporter.progress.state.lock() = ExporterState::Closed;
    }
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
