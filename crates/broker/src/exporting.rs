//! The exporter director: one thread per exporter and partition feeds it the records of that partition.
//!
//! Records come in order and at least once; between partitions there is no order. A record that cannot be read, or that the
//! exporter refuses, comes again after a pause that grows. Whoever fails, or does not come back at all, holds up that exporter
//! and partition alone, and the deletion of the segments that it needs. What an exporter has acknowledged is kept in a small
//! file, unless it keeps that itself; after a restart it continues from there.

mod exporter_loop;
mod pause;
mod positions;
mod progress;
mod sharing;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError};
use exporters::{Arguments, Exporter, ExporterConfiguration, ExporterError, RecordFilter, Role};
use parking_lot::RwLock;
use protocol::{PartitionId, Timestamp};

use crate::clock::Clock;
use crate::data_directory::error::DataDirectoryError;
use crate::data_directory::paths::Paths;
use crate::shared::Shared;

pub use exporter_loop::ExporterLoop;
pub(crate) use pause::PauseChange;
pub use pause::{Pause, PauseSwitch};
pub use positions::{Keeper, KeptByPartition, PositionsFile};
pub use progress::{ExporterPosition, ExporterProgress, ExporterState, ExporterStatus, Leadership};
pub use sharing::SHARED_EXPORTERS_MAX;
pub(crate) use sharing::{Said, Sent, Sharing};

/// How long a stopping node lets an exporter take the last records.
const STOP_LIMIT: Duration = Duration::from_secs(5);
/// How much longer it waits for one that does not come back. What such a one had not acknowledged comes again.
pub(crate) const ABANDON_LIMIT: Duration = Duration::from_secs(10);
/// After so long, records are read although the exporter rests, so that not too many are left for the end of a long rest.
const REST_MAX: Duration = Duration::from_millis(50);

/// A look at all exporters of a node.
#[derive(Clone)]
pub struct Exporters {
    clock: Arc<Clock>,
    exporters: Progresses,
    pause: Arc<PauseSwitch>,
}

/// Of each exporter and partition, to which may come more.
pub(crate) type Progresses = Arc<RwLock<Vec<Arc<ExporterProgress>>>>;

impl Exporters {
    pub(crate) fn new(clock: Arc<Clock>, exporters: Progresses, pause: Arc<PauseSwitch>) -> Self {
        Exporters { clock, exporters, pause }
    }

    /// What of exporting is paused.
    pub fn pause(&self) -> Pause {
        self.pause.get()
    }

    /// Pauses or resumes exporting, also for the starts that follow. What an exporter is taking at this moment may still come to its
    /// target. Waits for the disk.
    ///
    /// # Errors
    /// When that cannot be kept for the next start. Nothing has changed then.
    pub fn set_pause(&self, pause: Pause) -> Result<(), DataDirectoryError> {
        self.pause.set(pause)?;
        tracing::info!(?pause, "an operator paused or resumed exporting");
        self.exporters.read().iter().for_each(|exporter| exporter.controller().wake());
        Ok(())
    }

    /// Another node says how exporting was paused or resumed. Waits for the disk.
    ///
    /// # Errors
    /// When that cannot be kept for the next start. Nothing has changed then.
    pub(crate) fn adopt_pause(&self, change: PauseChange) -> Result<(), DataDirectoryError> {
        if self.pause.adopt(change)? {
            tracing::info!(pause = ?change.pause, "an operator paused or resumed exporting at another node");
            self.exporters.read().iter().for_each(|exporter| exporter.controller().wake());
        }
        Ok(())
    }

    /// How exporting was paused or resumed last.
    pub(crate) fn pause_change(&self) -> PauseChange {
        self.pause.change()
    }

    /// The partitions that this node leads although another one should, because records that an exporter needs are missing
    /// here; with the reason.
    pub fn lacking(&self) -> Vec<(PartitionId, String)> {
        let exporters = self.exporters.read();
        exporters
            .iter()
            .filter_map(|of| Some((of.partition(), format!("Exporter {}: {}", of.name(), of.lacks()?))))
            .collect()
    }

    /// How each of them is now, in the order of the configuration, and of the partitions of each.
    pub fn statuses(&self) -> Vec<ExporterStatus> {
        let now = self.clock.now_milliseconds();
        let mut statuses: Vec<ExporterStatus> = Vec::new();
        for exporter in &*self.exporters.read() {
            let position = exporter.position(now);
            match statuses.iter_mut().find(|status| status.name == exporter.name()) {
                Some(status) => status.partitions.push(position),
                None => {
                    statuses.push(ExporterStatus { name: exporter.name().to_owned(), partitions: vec![position] });
                }
            }
        }
        statuses.iter_mut().for_each(|status| status.partitions.sort_by_key(|position| position.partition));
        statuses
    }
}

/// The thread of an exporter and a partition.
pub(crate) struct ExporterThread {
    pub shared: Arc<Shared>,
    pub exporter: ExporterLoop,
    /// Told that there are new records.
    pub written: Receiver<()>,
    /// Told that something was acknowledged, or that the exporter has something to do.
    pub called: Receiver<()>,
    /// Closed when the node stops.
    pub stop: Receiver<()>,
    /// Of the node.
    pub started: Instant,
}

impl ExporterThread {
    /// Runs until the node stops.
    pub fn run(mut self) {
        loop {
            self.exporter.set_role(self.role());
            // They are about to be read.
            let _ = self.written.try_recv();
            let more = self.exporter.turn(self.started.elapsed(), self.clock());
            if self.shared.is_crashed() {
                return;
            }
            if self.is_stopping() {
                break;
            }
            self.exporter.save(self.started.elapsed());
            if !more {
                self.wait();
            }
        }
        let until = Instant::now() + STOP_LIMIT;
        let (shared, started) = (self.shared.clone(), self.started);
        self.exporter.close(|| started.elapsed(), self.clock(), || Instant::now() < until && !shared.is_crashed());
        if !self.shared.is_crashed() {
            self.exporter.save_now(self.started.elapsed());
        }
    }

    fn clock(&self) -> Timestamp {
        self.shared.clock.now_milliseconds()
    }

    fn role(&self) -> Role {
        let entrance = self.shared.entrance(self.exporter.progress().partition());
        let leads = entrance.is_ok_and(|entrance| entrance.role() == crate::status::Role::Leader);
        if leads { Role::Leader } else { Role::Follower }
    }

    /// Waits for new records, the end, or a moment when there is something to do. While the exporter fails, new records change
    /// nothing; while it rests, they are read from time to time, because it costs as much to be woken for one as to read some.
    fn wait(&self) {
        let (never, now) = (crossbeam_channel::never(), self.started.elapsed());
        let rest = self.exporter.rests_until().filter(|until| *until > now).map(|until| until.min(now + REST_MAX));
        let progress = self.exporter.progress();
        let (written, called) = match (self.exporter.is_failing(), rest) {
            // Resuming calls, and so does a change of the role.
            _ if progress.is_paused() || progress.is_elsewhere() => (&never, &self.called),
            (true, _) => (&never, &never),
            (false, Some(_)) => (&never, &self.called),
            (false, None) => (&self.written, &self.called),
        };
        let until = |at: Duration| crossbeam_channel::after(at.saturating_sub(now));
        let at = [self.exporter.deadline(), rest].into_iter().flatten().min();
        let timer = at.map_or_else(crossbeam_channel::never, until);
        crossbeam_channel::select! {
            recv(written) -> _ => {}
            recv(called) -> _ => {}
            recv(self.stop) -> _ => {}
            recv(timer) -> _ => {}
        }
    }

    fn is_stopping(&self) -> bool {
        !matches!(self.stop.recv_timeout(Duration::ZERO), Err(RecvTimeoutError::Timeout))
    }
}

/// An exporter, and the records that it gets.
pub(crate) type Configured = (Box<dyn Exporter>, RecordFilter);

/// Makes the exporters, lets them check their arguments, and refuses two that would write to the same file.
pub(crate) fn configure_all(
    configurations: &[ExporterConfiguration],
    partition_count: u16,
    data_directory: &Path,
) -> Result<Vec<Configured>, ExporterError> {
    let directory = Paths::exporters_in(data_directory);
    let configured = configurations.iter().map(|one| configure(one, &directory)).collect::<Result<Vec<_>, _>>()?;
    let names = configurations.iter().map(|configuration| configuration.name.as_str());
    let files = configured.iter().map(|(exporter, _)| exporter.files(PartitionId(partition_count)));
    exporters::check_written_files(names.zip(files))?;
    Ok(configured)
}

fn configure(configuration: &ExporterConfiguration, directory: &Path) -> Result<Configured, ExporterError> {
    let mut exporter = (configuration.factory)();
    let mut arguments = Arguments::new(&configuration.name, configuration.arguments.clone());
    let filter = configuration.filter.clone().with_arguments(&mut arguments, exporter.index_arguments())?;
    let directory = directory.to_owned();
    let mut context = exporters::Context { name: configuration.name.clone(), arguments, filter, directory };
    exporter.configure(&mut context)?;
    Ok((exporter, context.filter))
}

/// Checks settings of exporters as the start of a node does, without opening anything.
///
/// # Errors
/// The first thing that the start would refuse.
pub fn check_exporters(
    configurations: &[ExporterConfiguration],
    partition_count: u16,
    data_directory: &Path,
) -> Result<(), ExporterError> {
    configure_all(configurations, partition_count, data_directory).map(drop)
}

#[cfg(test)]
mod shared_tests;
#[cfg(test)]
mod tests;
