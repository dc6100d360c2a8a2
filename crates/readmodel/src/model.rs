//! The read model of a node: where the rows of its partitions are, how far they are, and the threads that search in them.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};
use exporters::{ExporterConfiguration, ExporterError};
use protocol::PartitionId;

use crate::audited::Audited;
use crate::consumer::{NAME, ReadModelExporter};
use crate::progress::Progress;
use crate::query::Readers;
use crate::retention::Retention;
use crate::source::{PostgreSql, Source};

/// Threads that search.
pub const READERS: usize = 2;
/// So many searches may wait for a thread.
const WAITING_MAX: usize = 256;

type Task = Box<dyn FnOnce(&mut Readers) + Send>;

/// The read model of a node.
pub struct ReadModel {
    source: Source,
    partitions: BTreeMap<PartitionId, Arc<Progress>>,
    tasks: Sender<Task>,
}

/// Too many searches wait already.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{WAITING_MAX} searches wait already. Please try again after a growing pause.")]
pub struct Busy;

impl ReadModel {
    /// Of these partitions, in this directory. Its threads end with the last clone.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub fn new(directory: &Path, partitions: impl IntoIterator<Item = PartitionId>) -> std::io::Result<Arc<ReadModel>> {
        ReadModel::of(Source::in_directory(directory), partitions)
    }

    /// The same on a server.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub fn on_server(
        server: PostgreSql,
        partitions: impl IntoIterator<Item = PartitionId>,
    ) -> std::io::Result<Arc<ReadModel>> {
        ReadModel::of(Source::Server(server), partitions)
    }

    fn of(source: Source, partitions: impl IntoIterator<Item = PartitionId>) -> std::io::Result<Arc<ReadModel>> {
        let (tasks, waiting) = bounded(WAITING_MAX);
        let partitions: BTreeMap<_, Arc<Progress>> =
            partitions.into_iter().map(|partition| (partition, Arc::default())).collect();
        for number in 0..READERS {
            let (waiting, source, ids): (Receiver<Task>, _, Vec<_>) =
                (waiting.clone(), source.clone(), partitions.keys().copied().collect());
            std::thread::Builder::new().name(format!("search {number}")).spawn(move || {
                let mut readers = Readers::new(source, ids);
                while let Ok(task) = waiting.recv() {
                    task(&mut readers);
                }
            })?;
        }
        Ok(Arc::new(ReadModel { source, partitions, tasks }))
    }

    /// The consumer that fills it, notes who did what, and deletes what is not kept.
    ///
    /// # Errors
    /// Never for the name that it has.
    pub fn consumer(
        self: &Arc<Self>,
        retention: Retention,
        audited: Audited,
    ) -> Result<ExporterConfiguration, ExporterError> {
        let model = self.clone();
        let factory = Arc::new(move || {
            Box::new(ReadModelExporter { model: model.clone(), retention, audited }) as Box<dyn exporters::Exporter>
        });
        ExporterConfiguration::of_factory(NAME, factory, serde_json::Map::new())
    }

    /// How far a partition is.
    pub fn progress(&self, partition: PartitionId) -> Arc<Progress> {
        self.partitions.get(&partition).cloned().unwrap_or_default()
    }

    /// Where its rows are.
    pub(crate) fn source(&self) -> &Source {
        &self.source
    }

    /// Has a thread carry out a search.
    ///
    /// # Errors
    /// When too many wait.
    pub fn search(&self, task: impl FnOnce(&mut Readers) + Send + 'static) -> Result<(), Busy> {
        match self.tasks.try_send(Box::new(task)) {
            Ok(()) => Ok(()),
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => Err(Busy),
        }
    }
}

impl std::fmt::Debug for ReadModel {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("ReadModel").field("source", &self.source).finish_non_exhaustive()
    }
}
