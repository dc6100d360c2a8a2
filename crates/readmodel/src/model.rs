//! The read model of a node: where the rows of its partitions are, how far they are, and the threads that search in them.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use exporters::{ExporterConfiguration, ExporterError};
use protocol::PartitionId;

use crate::audited::Audited;
use crate::consumer::{NAME, ReadModelExporter};
use crate::database::{Looked, ServerError};
use crate::progress::Progress;
use crate::query::Readers;
use crate::queue::{Cost, Place, Queue, SenderId, WAITING_MAX};
use crate::retention::Retention;
use crate::source::{PostgreSql, Source};

/// Threads that search. One more looks for keys only.
pub const READERS: usize = 2;
/// What a thread that searches keeps of a file in memory, in KiB.
const CACHE_KIB: i64 = 4 << 10;
/// The same for the thread that looks for keys: it reads few pages.
const KEY_CACHE_KIB: i64 = 1 << 10;

/// What a thread does with its connections, or does not because the search has waited too long.
type Run = Box<dyn FnOnce(Result<&mut Readers, Busy>) + Send>;

struct Task {
    asked_at: Instant,
    run: Run,
}

/// The read model of a node.
pub struct ReadModel {
    source: Source,
    partitions: BTreeMap<PartitionId, Arc<Progress>>,
    tasks: Arc<Queue<Task>>,
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
        let tasks = Arc::new(Queue::new());
        let partitions: BTreeMap<_, Arc<Progress>> =
            partitions.into_iter().map(|partition| (partition, Arc::default())).collect();
        let ids: Vec<PartitionId> = partitions.keys().copied().collect();
        let model = Arc::new(ReadModel { source: source.clone(), partitions, tasks });
        let searching = (0..READERS).map(|number| (format!("search {number}"), Cost::Any, CACHE_KIB));
        for (name, cost, cache_kib) in searching.chain([("search keys".to_owned(), Cost::Key, KEY_CACHE_KIB)]) {
            let (source, ids, tasks) = (source.clone(), ids.clone(), model.tasks.clone());
            std::thread::Builder::new().name(name).spawn(move || {
                let mut readers = Readers::new(source, ids, cache_kib);
                while let Some(task) = tasks.take(cost) {
                    readers.begin(task.asked_at);
                    (task.run)(Ok(&mut readers));
                }
            })?;
        }
        Ok(model)
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

    /// Looks whether its rows can be opened. This may take as long as it takes to find out that a server is not there.
    ///
    /// # Errors
    /// What only an operator can mend.
    pub fn look(&self) -> Result<Looked, ServerError> {
        self.source.look(self.partitions.keys().copied())
    }

    /// What is in the way of the fold until an operator changes something, in a sentence.
    pub fn trouble(&self) -> Option<String> {
        let sentence = self.partitions.values().find_map(|progress| progress.trouble())?;
        Some(format!("The read model cannot be written: {sentence}."))
    }

    /// How far a partition is.
    pub fn progress(&self, partition: PartitionId) -> Arc<Progress> {
        self.partitions.get(&partition).cloned().unwrap_or_default()
    }

    /// Where its rows are.
    pub(crate) fn source(&self) -> &Source {
        &self.source
    }

    /// Has a thread carry out a search of the node itself.
    ///
    /// # Errors
    /// When too many wait.
    pub fn search(&self, task: impl FnOnce(&mut Readers) + Send + 'static) -> Result<(), Busy> {
        let (refused, is_refused) = std::sync::mpsc::channel();
        let place = self.ask(SenderId::default(), Cost::Any, move |readers| match readers {
            Ok(readers) => task(readers),
            Err(busy) => drop(refused.send(busy)),
        });
        place.keep();
        is_refused.try_recv().map_or(Ok(()), Err)
    }

    /// Has a thread carry out a search for somebody, whose time begins now. It is not carried out if its
    /// place is dropped before, and it is given [`Busy`] if too many wait, now or when others come.
    pub fn ask(
        &self,
        sender: SenderId,
        cost: Cost,
        run: impl FnOnce(Result<&mut Readers, Busy>) + Send + 'static,
    ) -> Place {
        let task = Task { asked_at: Instant::now(), run: Box::new(run) };
        let (place, pushed_out) = self.tasks.push(sender, cost, task);
        if let Some(task) = pushed_out {
            (task.run)(Err(Busy));
        }
        place
    }
}

impl Drop for ReadModel {
    fn drop(&mut self) {
        self.tasks.close();
    }
}

impl std::fmt::Debug for ReadModel {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("ReadModel").field("source", &self.source).finish_non_exhaustive()
    }
}
