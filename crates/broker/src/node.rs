//! Starting and stopping a node.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use engine::{Engine, EngineOptions, Fault};
use exporters::ExporterError;
use parking_lot::{Mutex, RwLock};
use protocol::{ClockIntent, ClockValue, Command, Key, PartitionId, Payload, SettingsValue};
use replication::{
    LogError, LogOptions, NodeId, Options as ReplicationOptions, RaftEngineLog, Replicas, ReplicationError,
};

use crate::applying::{self, ApplyingNote, CommandTimes, Guard, RefusedCommands, RefusedError};
use crate::client::{Client, PartitionView};
use crate::clock::Clock;
use crate::data_directory::{DataDirectory, DataDirectoryError};
use crate::disk::{DiskThread, DiskView};
use crate::entrance::{Entrance, Health};
use crate::exporting::{self, ExporterLoop, ExporterProgress, ExporterThread, Exporters, Keeper, PositionsFile};
use crate::feature_levels::Member;
use crate::flow_control::{FlowControlOptions, Limiter};
use crate::held::Held;
use crate::inbox::{Inbound, QueuedCommand, Work};
use crate::maintenance::{Maintained, Maintenance, MaintenanceThread};
use crate::options::NodeOptions;
use crate::partition::{Partition, PartitionOptions};
use crate::partition_loop::CheckpointPolicy;
use crate::processing_thread::{ProcessingThread, Slot};
use crate::record_log::{RecordLog, RecordLogError, RecordLogOptions, SystemFiles, WriteBackThread};
use crate::replication_loop::group_of;
use crate::replication_thread::ReplicationThread;
use crate::requests::Requests;
use crate::restored;
use crate::shared::Shared;
use crate::streams::Streams;
use crate::upkeep::Upkeep;
use crate::write_throttle::WriteThrottle;

/// The largest number of partitions.
const PARTITION_COUNT_MAX: u16 = PartitionId::MAX.0;

/// A node could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The number of partitions makes no sense.
    #[error(
        "The partition count is {0}, and it must be between 1 and {PARTITION_COUNT_MAX}. Change the partition count."
    )]
    PartitionCount(u16),
    /// A command that is allowed would not fit an entry of the log.
    #[error(
        "The command limit is {command_limit_bytes} bytes and the batch limit is {batch_limit_bytes} bytes. Both must be \
         at least 1 and at most {max_bytes}. Change them."
    )]
    BatchLimit {
        /// The limit of a command.
        command_limit_bytes: usize,
        /// The limit of a batch.
        batch_limit_bytes: usize,
        /// The most that the log takes.
        max_bytes: usize,
    },
    /// Two exporters have the same name.
    #[error("There are two exporters with the name '{0}'. Give each exporter a name of its own.")]
    DuplicateExporter(String),
    /// The data directory cannot be used.
    #[error(transparent)]
    DataDirectory(#[from] DataDirectoryError),
    /// The log cannot be opened.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The log and the state do not fit each other.
    #[error(transparent)]
    Replication(#[from] ReplicationError),
    /// The state of a partition is missing, or older than its log.
    #[error(
        "The state of partition {partition} in {} holds everything up to entry {applied}, but its log begins after entry \
         {compacted}: the state is missing, empty or of an older copy. Put that directory back as it was, or restore the whole \
         data of this node from a backup.", path.display()
    )]
    StateLost {
        /// The partition.
        partition: PartitionId,
        /// Where its state should be.
        path: PathBuf,
        /// The last entry of the log that is in the state.
        applied: u64,
        /// The last entry that is not in the log any more.
        compacted: u64,
    },
    /// The list of a partition's refused commands cannot be used.
    #[error(transparent)]
    Refused(#[from] RefusedError),
    /// The state of a partition cannot be opened.
    #[error(transparent)]
    State(#[from] Fault),
    /// The record stream of a partition cannot be opened.
    #[error(transparent)]
    Records(#[from] RecordLogError),
    /// An exporter refuses its configuration.
    #[error(transparent)]
    Exporter(#[from] ExporterError),
    /// The operating system gives no thread.
    #[error("Could not start the thread '{name}': {source}")]
    Thread {
        /// The thread's name.
        name: String,
        /// The operating system's words.
        source: std::io::Error,
    },
}

/// A node did not stop cleanly. Nothing acknowledged is lost: the next start replays the log.
#[derive(Debug, thiserror::Error)]
pub enum StopError {
    /// A thread ended with a panic.
    #[error("The thread '{0}' ended with a panic. The log has the details.")]
    Panicked(String),
    /// The log could not be trusted any more.
    #[error("The node had stopped before, because its log cannot be trusted any more: {0}")]
    Failed(String),
}

/// A running node.
pub struct Node {
    shared: Arc<Shared>,
    /// In the order of the configuration, each for all partitions.
    exporters: Vec<Arc<ExporterProgress>>,
    /// Told nothing; closed when all threads of exporters have ended.
    exporters_ended: Option<Receiver<()>>,
    maintenance: Sender<Maintenance>,
    processing: Vec<Sender<Work>>,
    /// Dropped to stop the exporters.
    stop_exporters: Option<Sender<()>>,
    /// Dropped to stop the threads that look at the disk and bring records to it.
    stop_disk: Option<Sender<()>>,
    threads: Threads,
    /// Given back last of all.
    directory: DataDirectory,
}

#[derive(Default)]
struct Threads {
    /// In the order in which they are stopped: replication, processing, exporters, maintenance, those of the disk.
    running: Vec<(Stage, String, JoinHandle<()>)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Replication,
    Processing,
    Exporting,
    Maintenance,
    Disk,
}

/// What was opened for one partition.
struct Opened {
    engine: Engine,
    guard: Guard,
    /// Why the node starts without this partition.
    left_out: Option<String>,
    records: Arc<RecordLog>,
    writer: crate::record_log::RecordWriter,
}

/// Wakes a thread, which looks for itself what there is to do.
type Bell = (Sender<()>, Receiver<()>);

/// The queues between the threads.
struct Channels {
    inbox: Receiver<Inbound>,
    /// Of the processing threads.
    work: Vec<(Sender<Work>, Receiver<Work>)>,
    maintenance: (Sender<Maintenance>, Receiver<Maintenance>),
    /// Of the threads of exporters, in the order of the configuration.
    exporters: BTreeMap<PartitionId, Vec<Bell>>,
    /// Pieces of the record streams that should be brought to the disk.
    record_pieces: Bell,
    /// Closed to stop the exporters.
    stop_exporters: Receiver<()>,
}

impl Channels {
    /// The queue of the thread that owns a partition.
    fn work_of(&self, partition: PartitionId) -> Sender<Work> {
        self.work[usize::from(partition.0) % self.work.len()].0.clone()
    }
}

impl Node {
    /// Opens the data directory, recovers what is in it, and starts the threads. Commands are taken as soon as the
    /// partitions have replayed their logs ([`Node::is_ready`]).
    ///
    /// # Errors
    /// When the options make no sense, or the data cannot be used; nothing is changed then.
    pub fn start(options: NodeOptions) -> Result<Node, StartError> {
        check(&options)?;
        let configured =
            exporting::configure_all(&options.exporters, options.partition_count, &options.data_directory)?;
        let directory = DataDirectory::open(&options)?;
        let engines = open_engines(&options, &directory)?;
        let opening = Instant::now();
        let log = Arc::new(RaftEngineLog::open(&directory.paths.log(), log_options(&directory.disk.view()))?);
        crate::metrics::log_opened(opening.elapsed());
        let (channels, inbox, stop_exporters) = channels(&options);
        let (opened, replicas) = open_partitions(&options, &directory, engines, &channels, &log)?;
        directory.confirm()?;
        let shared = Arc::new(share(&options, &directory, inbox));
        for opened in opened.values() {
            shared.begin_streams(&opened.engine);
            shared.adopt_cluster(&opened.engine);
        }
        if let Some(pinned) = opened.values().next().and_then(|opened| opened.engine.pinned_clock()) {
            shared.clock.adopt(Some(pinned));
        }
        let last_timestamps: BTreeMap<_, _> =
            opened.iter().map(|(id, opened)| (*id, opened.engine.last_timestamp())).collect();
        let maintained = |(&id, opened): (&PartitionId, &Opened)| {
            let of = Maintained {
                upkeep: Upkeep::new(opened.records.clone(), opened.engine.last_position()),
                throttle: WriteThrottle::new(options.write_throttle, id),
                processing: channels.work_of(id),
            };
            (id, of)
        };
        let maintained = opened.iter().map(maintained).collect();
        let mut node = Node {
            shared: shared.clone(),
            exporters: Vec::new(),
            exporters_ended: None,
            maintenance: channels.maintenance.0.clone(),
            processing: channels.work.iter().map(|(sender, _)| sender.clone()).collect(),
            stop_exporters: Some(stop_exporters),
            stop_disk: None,
            threads: Threads::default(),
            directory,
        };
        node.start_disk(&opened, &channels)?;
        node.start_exporters(&options, configured, &opened, &channels)?;
        let maintenance = MaintenanceThread {
            shared: shared.clone(),
            messages: channels.maintenance.1.clone(),
            partitions: maintained,
            exporters: node.exporters.clone(),
            log,
            exporter_backlog_limit_bytes: options.exporter_backlog_limit_bytes,
            exporter_stuck_after: options.exporter_stuck_after,
        };
        node.threads.start(&node.shared, Stage::Maintenance, "maintenance".to_owned(), move || maintenance.run())?;
        node.start_processing(&options, opened, &channels)?;
        let replication = ReplicationThread::new(
            shared,
            channels.inbox.clone(),
            last_timestamps.keys().map(|id| (*id, channels.work_of(*id))).collect(),
            replicas,
            &last_timestamps,
            options.batch_limit_bytes,
        );
        node.threads.start(&node.shared, Stage::Replication, "replication".to_owned(), move || replication.run())?;
        Ok(node)
    }

    fn start_disk(&mut self, opened: &BTreeMap<PartitionId, Opened>, channels: &Channels) -> Result<(), StartError> {
        let (sender, stop) = crossbeam_channel::bounded(0);
        self.stop_disk = Some(sender);
        let thread = DiskThread::new(self.shared.disk.clone(), channels.maintenance.0.clone(), stop.clone());
        self.threads.start(&self.shared, Stage::Disk, "disk".to_owned(), move || thread.run())?;
        if channels.exporters.values().all(Vec::is_empty) {
            return Ok(());
        }
        let records = opened.values().map(|opened| opened.records.clone()).collect();
        let (shared, pieces) = (self.shared.clone(), channels.record_pieces.1.clone());
        let write_back = WriteBackThread { shared, records, pieces, stop };
        self.threads.start(&self.shared, Stage::Disk, "write-back".to_owned(), move || write_back.run())
    }

    fn start_exporters(
        &mut self,
        options: &NodeOptions,
        configured: Vec<exporting::Configured>,
        opened: &BTreeMap<PartitionId, Opened>,
        channels: &Channels,
    ) -> Result<(), StartError> {
        let started = Instant::now();
        let now = self.shared.clock.now_milliseconds();
        let (alive, ended) = crossbeam_channel::bounded(0);
        self.exporters_ended = Some(ended);
        for (index, (configuration, (exporter, filter))) in options.exporters.iter().zip(configured).enumerate() {
            let name = &configuration.name;
            let (file, kept) = PositionsFile::open(self.directory.paths.exporter_positions(name))?;
            let keeper = Arc::new(Keeper::new(file, kept));
            for (&partition, opened) in opened {
                let (log, state) = (&opened.records, opened.engine.store().handle());
                let written = channels.exporters[&partition][index].1.clone();
                let (call, called) = crossbeam_channel::bounded(1);
                // A full channel means that the thread already knows.
                let wake = move || {
                    let _ = call.try_send(());
                };
                let progress = Arc::new(ExporterProgress::new(name, keeper.kept(partition), log.clone(), now, wake));
                self.exporters.push(progress.clone());
                let exporter =
                    ExporterLoop::new(exporter.partition(partition), filter.clone(), progress, keeper.clone())
                        .with_state(state);
                let (shared, stop) = (self.shared.clone(), channels.stop_exporters.clone());
                let thread = ExporterThread { shared, exporter, written, called, stop, started };
                let alive = alive.clone();
                self.threads.start(
                    &self.shared,
                    Stage::Exporting,
                    format!("exporter {name} {partition}"),
                    move || {
                        let _alive = alive;
                        thread.run();
                    },
                )?;
            }
        }
        Ok(())
    }

    fn start_processing(
        &mut self,
        options: &NodeOptions,
        opened: BTreeMap<PartitionId, Opened>,
        channels: &Channels,
    ) -> Result<(), StartError> {
        let policy = CheckpointPolicy {
            interval: options.checkpoint_interval,
            overlay_bytes: options.checkpoint_bytes_of_each(),
        };
        let resend_interval = options.outbox_resend_interval.as_millis();
        let settings = SettingsValue {
            root_variable_bytes_max: options.root_variable_bytes_limit.unwrap_or_default(),
            business_ids_are_unique: options.unique_business_ids,
        };
        let settings = Some(settings).filter(|settings| *settings != SettingsValue::default());
        let partition_options = PartitionOptions {
            node: options.node_id,
            settings,
            restored: restored::read(self.directory.paths.directory())?,
            resend_interval_milliseconds: i64::try_from(resend_interval).unwrap_or(i64::MAX),
            ..PartitionOptions::default()
        };
        let cluster_id = self.shared.cluster_id.lock().clone();
        let count = channels.work.len();
        let mut slots: Vec<Vec<Slot>> = (0..count).map(|_| Vec::new()).collect();
        for (id, opened) in opened {
            let entrance = &self.shared.entrances[&id];
            entrance.applied(&opened.engine);
            let partition = Partition::new(entrance.id, opened.engine, partition_options)
                .with_cluster_id(&cluster_id)
                .with_global_listeners(options.global_listeners.clone());
            let maintenance = channels.maintenance.0.clone();
            remark_refused(entrance, &opened.guard, partition.engine());
            let (shared, entrance_of) = (self.shared.clone(), entrance.clone());
            let (guard, writer) = (opened.guard, opened.writer);
            let mut slot = Slot::new(shared, entrance_of, partition, guard, writer, maintenance, policy);
            let exporters = self.exporters.iter().filter(|exporter| exporter.partition() == entrance.id);
            slot.was_exported(exporters.map(|exporter| exporter.kept_at_start()).max().unwrap_or_default());
            if let Some(reason) = opened.left_out {
                slot.leave_out(&reason);
            }
            slots[usize::from(entrance.id.0) % count].push(slot);
        }
        self.publish_clock();
        for (number, (slots, (sender, receiver))) in slots.into_iter().zip(&channels.work).enumerate() {
            let clock_changed = sender.clone();
            self.shared.clock.on_change(Arc::new(move || drop(clock_changed.send(Work::ClockChanged))));
            let thread = ProcessingThread::new(self.shared.clone(), receiver.clone(), slots);
            self.threads
                .start(&self.shared, Stage::Processing, format!("processing {number}"), move || thread.run())?;
        }
        Ok(())
    }

    /// Where users stop the clock becomes part of the state of the first partition.
    fn publish_clock(&self) {
        let inbox = self.shared.inbox.clone();
        self.shared.clock.publish_to(Arc::new(move |pinned| {
            let payload = match pinned {
                Some(time) => Payload::Clock(ClockIntent::Pin, ClockValue { time }),
                None => Payload::Clock(ClockIntent::Reset, ClockValue::default()),
            };
            let command = Command::of_system(Key::NONE, payload);
            drop(inbox.send(Inbound::Command(QueuedCommand::internal(PartitionId::DEPLOYMENT, &command))));
        }));
    }

    /// The gateway's handle.
    pub fn client(&self) -> Client {
        Client::new(self.shared.clone())
    }

    /// The clock that time inside the engine is taken from.
    pub fn clock(&self) -> Arc<Clock> {
        self.shared.clock.clone()
    }

    /// Tells clients that ask for the topology where the gateway listens.
    pub fn set_advertised_address(&self, host: &str, port: u16) {
        *self.shared.advertised_address.lock() = (host.to_owned(), port);
    }

    /// Whether every partition takes commands, but for those that have stopped for good: the others do not wait for them.
    /// A node that started without all of its partitions is up too, so that its health can say why.
    pub fn is_ready(&self) -> bool {
        let entrances = &self.shared.entrances;
        let is_settled = |entrance: &Arc<Entrance>| entrance.is_open() || entrance.health().has_stopped();
        let is_up = |entrance: &Arc<Entrance>| entrance.is_open() || entrance.health() == Health::LeftOut;
        entrances.values().all(is_settled) && entrances.values().any(is_up)
    }

    /// Waits until the node is ready. `false` when that takes longer than the limit.
    pub fn wait_until_ready(&self, limit: Duration) -> bool {
        let until = Instant::now() + limit;
        while !self.is_ready() {
            if Instant::now() >= until || self.failure().is_some() {
                return false;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        true
    }

    /// How the partitions are.
    pub fn partitions(&self) -> Vec<PartitionView> {
        let view = |entrance: &Arc<Entrance>| PartitionView {
            id: entrance.id,
            role: entrance.role(),
            health: entrance.health(),
        };
        self.shared.entrances.values().map(view).collect()
    }

    /// A look at the exporters, for those who report about them.
    pub fn exporters(&self) -> Exporters {
        Exporters::new(self.shared.clock.clone(), self.exporters.clone())
    }

    /// How the disk of the data directory is.
    pub fn disk(&self) -> DiskView {
        self.shared.disk.view()
    }

    /// Why the node cannot continue: its process should end and be started again.
    pub fn failure(&self) -> Option<String> {
        self.shared.failure.lock().clone()
    }

    /// Stops cleanly: what was taken is finished, the last checkpoints are written, the exporters get the last records.
    ///
    /// # Errors
    /// When something did not end as it should. The next start then replays more of the log.
    pub fn stop(mut self) -> Result<(), StopError> {
        let result = self.end(false);
        match self.failure() {
            Some(failure) => Err(StopError::Failed(failure)),
            None => result,
        }
    }

    /// Ends all threads without finishing anything, for tests of what a killed process leaves behind.
    pub fn crash(mut self) {
        drop(self.end(true));
    }

    fn end(&mut self, crash: bool) -> Result<(), StopError> {
        self.shared.crashed.store(crash, Ordering::Relaxed);
        self.shared.stopping.store(true, Ordering::Release);
        drop(self.shared.inbox.send(Inbound::Stop));
        let mut result = self.threads.join(Stage::Replication);
        for processing in &self.processing {
            drop(processing.send(Work::Stop));
        }
        result = result.and(self.threads.join(Stage::Processing));
        self.shared.entrances.values().for_each(|entrance| entrance.requests.close());
        self.stop_exporters = None;
        result = result.and(self.join_exporters());
        drop(self.maintenance.send(Maintenance::Stop));
        result = result.and(self.threads.join(Stage::Maintenance));
        self.stop_disk = None;
        result.and(self.threads.join(Stage::Disk))
    }
}

impl Node {
    /// An exporter that does not come back is left behind: what it had not acknowledged comes again.
    fn join_exporters(&mut self) -> Result<(), StopError> {
        let Some(ended) = self.exporters_ended.take() else { return Ok(()) };
        if ended.recv_timeout(exporting::ABANDON_LIMIT) == Err(RecvTimeoutError::Timeout) {
            // Whoever comes back later does nothing any more.
            self.shared.crashed.store(true, Ordering::Relaxed);
            let threads = self.threads.abandon(Stage::Exporting);
            tracing::warn!(?threads, "exporters do not come back; the node stops without them");
        }
        self.threads.join(Stage::Exporting)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if !self.threads.running.is_empty()
            && let Err(error) = self.end(false)
        {
            tracing::error!(%error, "the node did not stop cleanly");
        }
    }
}

impl std::fmt::Debug for Node {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Node").field("node", &self.shared.node).field("partitions", &self.partitions()).finish()
    }
}

impl Threads {
    fn start(
        &mut self,
        shared: &Arc<Shared>,
        stage: Stage,
        name: String,
        run: impl FnOnce() + Send + 'static,
    ) -> Result<(), StartError> {
        let (shared, thread_name) = (shared.clone(), name.clone());
        let guarded = move || {
            // A node that lost a thread would silently stop working. What the thread owned is lost with it.
            if let Err(panic) = catch_unwind(AssertUnwindSafe(run)) {
                shared.fail(&format!("the thread '{thread_name}' ended with a panic"));
                resume_unwind(panic);
            }
        };
        let thread = std::thread::Builder::new().name(name.clone()).spawn(guarded);
        let thread = thread.map_err(|source| StartError::Thread { name: name.clone(), source })?;
        self.running.push((stage, name, thread));
        Ok(())
    }

    /// Lets go of the threads of a stage that have not ended, and returns their names.
    fn abandon(&mut self, stage: Stage) -> Vec<String> {
        let still_running =
            |(of, _, thread): &mut (Stage, String, JoinHandle<()>)| *of == stage && !thread.is_finished();
        self.running.extract_if(.., still_running).map(|(_, name, _)| name).collect()
    }

    fn join(&mut self, stage: Stage) -> Result<(), StopError> {
        let mut result = Ok(());
        for (_, name, thread) in self.running.extract_if(.., |(of, _, _)| *of == stage) {
            if thread.join().is_err() {
                result = Err(StopError::Panicked(name));
            }
        }
        result
    }
}

fn check(options: &NodeOptions) -> Result<(), StartError> {
    if !(1..=PARTITION_COUNT_MAX).contains(&options.partition_count) {
        return Err(StartError::PartitionCount(options.partition_count));
    }
    let (command_limit_bytes, batch_limit_bytes) = (options.command_limit_bytes, options.batch_limit_bytes);
    // The batch adds a header and lengths of at most as many bytes as the smallest commands have.
    let max_bytes = ReplicationOptions::default().max_entry_bytes / 2;
    if [command_limit_bytes, batch_limit_bytes].iter().any(|bytes| !(1..=max_bytes).contains(bytes)) {
        return Err(StartError::BatchLimit { command_limit_bytes, batch_limit_bytes, max_bytes });
    }
    for (index, exporter) in options.exporters.iter().enumerate() {
        if options.exporters[..index].iter().any(|other| other.name == exporter.name) {
            return Err(StartError::DuplicateExporter(exporter.name.clone()));
        }
    }
    Ok(())
}

fn channels(options: &NodeOptions) -> (Channels, Sender<Inbound>, Sender<()>) {
    let (sender, inbox) = crossbeam_channel::unbounded();
    let (stop_sender, stop_exporters) = crossbeam_channel::bounded(0);
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let wanted = if options.processing_threads == 0 { cores } else { options.processing_threads };
    let threads = wanted.clamp(1, usize::from(options.partition_count));
    let channels = Channels {
        inbox,
        work: (0..threads).map(|_| crossbeam_channel::unbounded()).collect(),
        maintenance: crossbeam_channel::unbounded(),
        exporters: (1..=options.partition_count)
            .map(|id| (PartitionId(id), options.exporters.iter().map(|_| crossbeam_channel::bounded(1)).collect()))
            .collect(),
        record_pieces: crossbeam_channel::bounded(1),
        stop_exporters,
    };
    (channels, sender, stop_sender)
}

/// Opens the states of all partitions, before anything else is opened: logs and records are cut back to where they are whole when
/// that is done, and a start that is refused for a state of a newer version must leave them to that version.
fn open_engines(options: &NodeOptions, directory: &DataDirectory) -> Result<BTreeMap<PartitionId, Engine>, StartError> {
    let open = |partition| {
        let engine_options = EngineOptions {
            first_level: directory.first_level,
            // Other work is admitted up to twice as much.
            continuation_overlay_bytes_max: options.flow_control.state_limit_of(options.partition_count) / 2,
            ..EngineOptions::new(partition, options.partition_count)
        };
        Ok((partition, Engine::open(engine_options, &directory.paths.state(partition))?))
    };
    (1..=options.partition_count).map(PartitionId).map(open).collect()
}

fn open_partitions(
    options: &NodeOptions,
    directory: &DataDirectory,
    engines: BTreeMap<PartitionId, Engine>,
    channels: &Channels,
    log: &Arc<RaftEngineLog>,
) -> Result<(BTreeMap<PartitionId, Opened>, Replicas<RaftEngineLog>), StartError> {
    let me = NodeId(u64::from(options.node_id) + 1);
    let replication = ReplicationOptions { seed: me.0, ..ReplicationOptions::default() };
    let mut replicas = Replicas::open(me, log.clone(), replication)?;
    let mut opened = BTreeMap::new();
    for (partition, engine) in engines {
        let paths = &directory.paths;
        let guard = Guard {
            refused: RefusedCommands::read(&paths.refused(partition), partition)?,
            note: ApplyingNote::open(&paths.applying(partition), partition)?,
            times: CommandTimes::of(partition),
        };
        let left_out = applying::reason_to_leave_out(&**log, paths, partition, &guard, &engine);
        let exporters = &channels.exporters[&partition];
        let readers: Vec<_> = exporters.iter().map(|(sender, _)| sender.clone()).collect();
        let record_options = RecordLogOptions {
            partition,
            directory: paths.records(partition),
            files: Arc::new(SystemFiles),
            broker_version: protocol::BROKER_VERSION.into(),
            segment_bytes: segment_bytes(options, &directory.disk.view()),
            is_read: !readers.is_empty(),
            readers,
            write_back: Some(channels.record_pieces.0.clone()),
        };
        // Before the record log, which drops what the state does not lead to.
        replicas.create_group(group_of(partition), &[me], engine.applied()).map_err(|error| match error {
            ReplicationError::StateBehindLog { applied, compacted, .. } => {
                StartError::StateLost { partition, path: paths.state(partition), applied, compacted }
            }
            error => error.into(),
        })?;
        let (records, writer) = RecordLog::open(record_options, engine.record_place())?;
        opened.insert(partition, Opened { engine, guard, left_out, records, writer });
    }
    Ok((opened, replicas))
}

/// Says once what the partition will not process.
fn remark_refused(entrance: &Entrance, guard: &Guard, engine: &Engine) {
    let ahead = guard.refused.all().iter().filter(|refused| refused.index > engine.applied());
    let names: Vec<String> = ahead.map(ToString::to_string).collect();
    if !names.is_empty() {
        let remark = format!("Refused by an operator and not processed: {}.", names.join("; "));
        tracing::warn!(partition = %entrance.id, "{remark}");
        entrance.set_remark(&remark);
    }
}

/// The log gives no room back before it has its size, so on a small volume it must not become large.
fn log_options(disk: &DiskView) -> LogOptions {
    const VOLUME_SHARE: u64 = 8;
    const FILES: u64 = 8;
    const SMALLEST_FILE_BYTES: u64 = 1 << 20;
    let usual = LogOptions::default();
    let reclaim_above_bytes = usual.reclaim_above_bytes.min(disk.total_bytes / VOLUME_SHARE);
    let file_bytes = usual.file_bytes.min(reclaim_above_bytes / FILES).max(SMALLEST_FILE_BYTES);
    LogOptions { file_bytes, reclaim_above_bytes }
}

/// The same holds for the newest segment of each partition.
fn segment_bytes(options: &NodeOptions, disk: &DiskView) -> u64 {
    const VOLUME_SHARE: u64 = 32;
    let share = disk.total_bytes / VOLUME_SHARE / u64::from(options.partition_count);
    options.segment_bytes.min(share.max(64 << 10))
}

fn share(options: &NodeOptions, directory: &DataDirectory, inbox: Sender<Inbound>) -> Shared {
    let entrance = |id| {
        let flow_control = &options.flow_control;
        let state_limit_bytes = flow_control.state_limit_of(options.partition_count);
        let own = FlowControlOptions { state_limit_bytes, ..flow_control.clone() };
        let limiter = Arc::new(Limiter::new(id, own, directory.disk.clone()));
        let held = Held::new(flow_control.held_commands, flow_control.inflight_limit_bytes);
        Arc::new(Entrance::new(id, limiter, Requests::new(id, options.waiting_requests_limit), held))
    };
    Shared {
        node: options.node_id,
        cluster_id: Mutex::new(directory.cluster_id.clone()),
        last_completed_change: Mutex::default(),
        global_listeners: options.global_listeners.clone(),
        members: Mutex::new(vec![Member::this_build(options.node_id)]),
        advertised_address: Mutex::new(options.advertised_address.clone()),
        clock: Arc::new(Clock::new(options.clock_control)),
        disk: directory.disk.clone(),
        entrances: (1..=options.partition_count).map(PartitionId).map(|id| (id, entrance(id))).collect(),
        inbox,
        streams: Streams::new(options.partition_count, options.stream_window),
        listeners: RwLock::default(),
        command_limit_bytes: options.command_limit_bytes,
        next_stream: AtomicU64::new(1),
        next_partition: AtomicU64::new(0),
        next_sender: AtomicU64::new(1),
        unapplied_bytes: AtomicUsize::new(0),
        stopping: AtomicBool::new(false),
        crashed: AtomicBool::new(false),
        failure: Mutex::default(),
    }
}
