//! Starting and stopping a node.

mod errors;
mod host;
mod opening;
mod threads;

use std::collections::BTreeSet;
use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use parking_lot::{Mutex, RwLock};
use protocol::{ClockIntent, ClockValue, Command, Key, PartitionId, Payload};
use replication::{Options as ReplicationOptions, RaftEngineLog, Replicas};

use crate::applying::{LongCommand, Notes, Watcher};
use crate::client::Client;
use crate::clock::Clock;
use crate::cluster::{ClosePort, ClusterPort, ClusterThread, Consumers, Joining, Served};
use crate::data_directory::DataDirectory;
use crate::disk::DiskView;
use crate::disk::thread::DiskThread;
use crate::entrance::Entrance;
use crate::entrances::Entrances;
use crate::exporting::{self, Configured, Exporters, PauseSwitch, Progresses};
use crate::inbox::{Inbound, Work};
use crate::maintenance::{Maintenance, MaintenanceThread, Replacement};
use crate::member::Member;
use crate::options::NodeOptions;
use crate::polls::Polls;
use crate::processing_thread::ProcessingThread;
use crate::record_log::{RecordLogs, WriteBackThread};
use crate::replacement_thread::ReplacementThread;
use crate::replication_thread::ReplicationThread;
use crate::shared::Shared;
use crate::snapshot_host::NodeHost;
use crate::snapshot_transfer::{SnapshotExchange, SnapshotHost, SnapshotReceiver, SnapshotSender, SnapshotTransport};
use crate::snapshots::ReceivedStates;
use crate::state_handle::StateHandles;
use crate::status::{Health, PartitionView};
use crate::streams::Streams;

pub use errors::{StartError, StopError};
use host::{Host, TakesPart};
use opening::Opened;
use threads::{Stage, Threads};

/// A stopping node waits no longer for a command.
const STOP_COMMAND_MAX: Duration = Duration::from_secs(5);
/// A stopping node waits no longer until others lead.
const HANDOVER_MAX: Duration = Duration::from_secs(2);
/// How often it looks meanwhile what it waits for.
const STOP_LOOK_INTERVAL: Duration = Duration::from_millis(20);
/// Entries in one message to a follower, in bytes, and the messages on their way to one: together what a follower that
/// lags behind takes of the leader's memory, for each partition.
const APPEND_MESSAGE_BYTES: u64 = 256 << 10;
const INFLIGHT_MESSAGES: usize = 64;
/// The largest number of partitions.
const PARTITION_COUNT_MAX: u16 = PartitionId::MAX.0;

/// A running node.
pub struct Node {
    shared: Arc<Shared>,
    host: Host,
    /// Told nothing; closed when all threads of exporters have ended.
    exporters_ended: Option<Receiver<()>>,
    /// Dropped to stop the exporters.
    stop_exporters: Option<Sender<()>>,
    /// Dropped to stop the threads that look at the disk and bring records to it.
    stop_disk: Option<Sender<()>>,
    /// Closed before the thread of the log ends.
    port: Option<ClosePort>,
    /// Dropped to stop the thread that speaks with the other nodes.
    stop_cluster: Option<Sender<()>>,
    threads: Threads,
    /// Where other nodes' states come in, and what stops its threads when it is dropped; none in a node alone.
    exchange: Option<(SnapshotExchange, Sender<()>)>,
    /// Given back last of all.
    directory: DataDirectory,
}

/// Where the threads get their messages.
struct Inboxes {
    inbox: Receiver<Inbound>,
    /// Of the processing threads.
    work: Vec<Receiver<Work>>,
    maintenance: Receiver<Maintenance>,
    /// Pieces of the record streams that should be brought to the disk.
    record_pieces: Receiver<()>,
}

impl Node {
    /// Opens the data directory, recovers what is in it, and starts the threads. Commands are taken as soon as the
    /// partitions have replayed their logs ([`Node::is_ready`]).
    ///
    /// # Errors
    /// When the options make no sense, or the data cannot be used; nothing is changed then.
    pub fn start(options: NodeOptions) -> Result<Node, StartError> {
        let all = (1..=options.partition_count).map(PartitionId).collect();
        Node::start_with(options, &all)
    }

    /// Starts with some of the partitions of the cluster. Others may be added later ([`Node::add_partition`]).
    ///
    /// # Errors
    /// As [`Node::start`], and when there are no such partitions.
    pub fn start_with(options: NodeOptions, partitions: &BTreeSet<PartitionId>) -> Result<Node, StartError> {
        if options.cluster.is_some() {
            return Err(StartError::NotJoined);
        }
        let configured = check(&options)?;
        partitions.iter().try_for_each(|partition| opening::check_partition(*partition, options.partition_count))?;
        let directory = DataDirectory::open(&options)?;
        Node::start_in(options, configured, directory, None, partitions)
    }

    /// Listens for the other members of the cluster. The node is started when that is founded ([`Node::start_member`]).
    ///
    /// # Errors
    /// When the options make no sense, the data directory cannot be used, or the port cannot be had.
    pub fn join(options: &NodeOptions) -> Result<Joining, StartError> {
        check(options)?;
        let cluster = options.cluster.as_ref().ok_or(StartError::NoCluster)?;
        let directory = DataDirectory::open(options)?;
        Ok(Joining::start(options, cluster, directory)?)
    }

    /// Starts a node that belongs to a cluster, with all partitions.
    ///
    /// # Errors
    /// As [`Node::start`], and when the cluster is not founded.
    pub fn start_member(options: NodeOptions, joining: Joining) -> Result<Node, StartError> {
        let Joining { directory, port } = joining;
        if directory.cluster.is_none() {
            return Err(StartError::NoCluster);
        }
        let all = (1..=options.partition_count).map(PartitionId).collect();
        let configured = check(&options)?;
        Node::start_in(options, configured, directory, Some(port), &all)
    }

    fn start_in(
        options: NodeOptions,
        configured: Vec<Configured>,
        directory: DataDirectory,
        port: Option<ClosePort>,
        partitions: &BTreeSet<PartitionId>,
    ) -> Result<Node, StartError> {
        let partition_options = host::partition_options(&directory, &options)?;
        let pause = Arc::new(PauseSwitch::open(directory.paths.exporting_pause())?);
        let exporters = host::hosted_exporters(&directory, &options, configured, &pause)?;
        opening::refuse_newer(&directory, partitions.iter().copied())?;
        let opener = opening::state_opener(&options, &directory);
        let engine = |&partition| Ok((partition, opener.open(partition)?));
        let engines = partitions.iter().map(engine).collect::<Result<Vec<_>, StartError>>()?;
        let (log, replicas) = open_log(&options, &directory)?;
        let (inbox_sender, inbox) = crossbeam_channel::unbounded();
        let (work_senders, work): (Vec<_>, Vec<_>) =
            (0..processing_threads(&options)).map(|_| crossbeam_channel::unbounded()).unzip();
        let (maintenance_sender, maintenance) = crossbeam_channel::unbounded();
        let (pieces_sender, record_pieces) = crossbeam_channel::bounded(1);
        let (stop_exporters_sender, stop_exporters) = crossbeam_channel::bounded(0);
        let (exporters_alive, exporters_ended) = crossbeam_channel::bounded(0);
        let of_port = port.as_ref().map(|port| port.0.clone());
        let shared = Arc::new(share(&options, &directory, of_port, inbox_sender));
        let host = Host {
            member: directory.member,
            shared: shared.clone(),
            log,
            work: work_senders,
            maintenance: maintenance_sender,
            record_pieces: pieces_sender,
            records: RecordLogs::default(),
            exporters,
            progresses: Progresses::default(),
            pause,
            sharing: Arc::default(),
            stop_exporters,
            exporters_alive: Some(exporters_alive),
            opener,
            states: StateHandles::default(),
            partition_options,
            started: Instant::now(),
            options,
        };
        let open = |engine| host.open(&directory, engine);
        let opened = engines.into_iter().map(open).collect::<Result<Vec<_>, _>>()?;
        directory.confirm()?;
        let transport = shared.port.clone().map(|port| -> Arc<dyn SnapshotTransport> { port });
        let mut node = Node {
            shared,
            host,
            exporters_ended: Some(exporters_ended),
            stop_exporters: Some(stop_exporters_sender),
            stop_disk: None,
            port,
            stop_cluster: None,
            threads: Threads::default(),
            exchange: None,
            directory,
        };
        node.run(Inboxes { inbox, work, maintenance, record_pieces }, replicas, opened, transport)?;
        Ok(node)
    }

    /// Starts the threads. That of the log comes last, so that all partitions are there when the first of them is led.
    fn run(
        &mut self,
        inboxes: Inboxes,
        replicas: Replicas<RaftEngineLog>,
        opened: Vec<Opened>,
        transport: Option<Arc<dyn SnapshotTransport>>,
    ) -> Result<(), StartError> {
        self.start_disk(inboxes.record_pieces)?;
        transport.map_or(Ok(()), |transport| self.start_exchange(&transport))?;
        let maintenance = MaintenanceThread {
            shared: self.shared.clone(),
            messages: inboxes.maintenance,
            partitions: std::collections::BTreeMap::new(),
            log: self.host.log.clone(),
            exporter_backlog_limit_bytes: self.host.options.exporter_backlog_limit_bytes,
            exporter_stuck_after: self.host.options.exporter_stuck_after,
            held_back: {
                let sharing = self.host.sharing.clone();
                Box::new(move |partition| sharing.held_back(partition))
            },
            replacements: self.start_replacements()?,
        };
        self.threads.start(&self.shared, Stage::Maintenance, "maintenance".to_owned(), move || maintenance.run())?;
        let parts = self.hand_over(opened)?;
        self.publish_clock();
        for (number, (receiver, sender)) in inboxes.work.into_iter().zip(&self.host.work).enumerate() {
            let clock_changed = sender.clone();
            self.shared.clock.on_change(Arc::new(move || drop(clock_changed.send(Work::ClockChanged))));
            let thread = ProcessingThread::new(self.shared.clone(), receiver);
            self.threads.start(&self.shared, Stage::Processing, threads::processing(number), move || thread.run())?;
        }
        let batch_limit_bytes = self.host.options.batch_limit_bytes;
        let retention = opening::retention_limits(&self.host.options, &self.shared.disk.view());
        let replication =
            ReplicationThread::new(self.shared.clone(), inboxes.inbox, replicas, batch_limit_bytes, retention);
        let snapshots = self.exchange.as_ref().map(|(exchange, _)| exchange.requests());
        let replication = replication.with_snapshots(snapshots);
        self.threads.start(&self.shared, Stage::Replication, "replication".to_owned(), move || replication.run())?;
        wait_for(parts)?;
        self.start_cluster()
    }

    /// From here on the other nodes get answers.
    fn start_cluster(&mut self) -> Result<(), StartError> {
        let Some(ClosePort(port)) = &self.port else { return Ok(()) };
        let (sender, stop) = crossbeam_channel::bounded(0);
        self.stop_cluster = Some(sender);
        let directory = self.directory.paths.directory().to_owned();
        let consumers = Consumers::new(self.host.sharing.clone(), self.exporters());
        consumers.listen(&self.shared, port);
        let work = self.host.work.clone();
        let thread = ClusterThread::new(self.shared.clone(), port.clone(), directory, work, consumers, stop);
        port.serve(Arc::downgrade(&(self.shared.clone() as Arc<dyn Served>)));
        self.threads.start(&self.shared, Stage::Disk, "cluster".to_owned(), move || thread.run())
    }

    /// Opens one more partition, of which this node holds a replica from now on. Its commands are taken as soon as it has
    /// replayed its log; the other partitions work meanwhile.
    ///
    /// # Errors
    /// When there is no such partition, the node holds it already, or its data cannot be used.
    pub fn add_partition(&mut self, partition: PartitionId) -> Result<(), StartError> {
        opening::check_partition(partition, self.shared.partition_count)?;
        if self.shared.entrances.get(partition).is_some() {
            return Err(StartError::AlreadyHeld(partition));
        }
        if self.failure().is_some() {
            return Err(StartError::Stopped);
        }
        opening::refuse_newer(&self.directory, [partition])?;
        let engine = self.host.opener.open(partition)?;
        let opened = self.host.open(&self.directory, (partition, engine))?;
        let added = self.hand_over(vec![opened]).and_then(wait_for);
        if let Err(error) = &added
            && let Some(entrance) = self.shared.entrances.get(partition)
        {
            // The next start tries it again; until then the health says why it does not work.
            entrance.stop(Health::Dead, &error.to_string());
        }
        added
    }

    /// Each of them is announced before the first one works, and sends commands to others.
    fn hand_over(&mut self, opened: Vec<Opened>) -> Result<Vec<TakesPart>, StartError> {
        opened.iter().for_each(|opened| self.host.announce(opened));
        opened.into_iter().map(|opened| self.host.hand_over(opened, &mut self.threads)).collect()
    }

    /// Starts the thread that puts received states into place. It ends with the last of those who have something for it.
    fn start_replacements(&mut self) -> Result<Sender<Replacement>, StartError> {
        let (sender, replacements) = crossbeam_channel::unbounded();
        let thread = ReplacementThread {
            shared: self.shared.clone(),
            replacements,
            received: ReceivedStates::new(self.directory.paths.partitions()),
            opener: self.host.opener.clone(),
            states: self.host.states.clone(),
            maintenance: self.host.maintenance.clone(),
        };
        self.threads.start(&self.shared, Stage::Disk, "received states".to_owned(), move || thread.run())?;
        Ok(sender)
    }

    /// Starts the threads that exchange states with other nodes.
    fn start_exchange(&mut self, transport: &Arc<dyn SnapshotTransport>) -> Result<(), StartError> {
        let (exchange, ends) = SnapshotExchange::new();
        let (stop_sender, stop) = crossbeam_channel::bounded(0);
        let host: Arc<dyn SnapshotHost> = Arc::new(NodeHost(self.shared.clone()));
        let (states, directory) = (self.host.states.clone(), self.directory.paths.partitions());
        let received = ReceivedStates::new(directory.clone());
        let sender = SnapshotSender::new(host.clone(), transport.clone(), ends.sender, stop.clone(), states, directory);
        let receiver = SnapshotReceiver::new(host, transport.clone(), ends.receiver, stop, received);
        if let Some(port) = &self.shared.port {
            port.exchange(exchange.clone());
        }
        self.exchange = Some((exchange, stop_sender));
        self.threads.start(&self.shared, Stage::Disk, "states out".to_owned(), move || sender.run())?;
        self.threads.start(&self.shared, Stage::Disk, "states in".to_owned(), move || receiver.run())
    }

    fn start_disk(&mut self, pieces: Receiver<()>) -> Result<(), StartError> {
        let (sender, stop) = crossbeam_channel::bounded(0);
        self.stop_disk = Some(sender);
        let thread = DiskThread::new(self.shared.clone(), self.host.maintenance.clone(), stop.clone());
        self.threads.start(&self.shared, Stage::Disk, "disk".to_owned(), move || thread.run())?;
        if self.host.exporters.is_empty() {
            return Ok(());
        }
        let (shared, records) = (self.shared.clone(), self.host.records.clone());
        let write_back = WriteBackThread { shared, records, pieces, stop };
        self.threads.start(&self.shared, Stage::Disk, "write-back".to_owned(), move || write_back.run())
    }

    /// Where users stop the clock becomes part of the state of the first partition.
    fn publish_clock(&self) {
        let shared = Arc::downgrade(&self.shared);
        self.shared.clock.publish_to(Arc::new(move |pinned| {
            let Some(shared) = shared.upgrade() else { return };
            let payload = match pinned {
                Some(time) => Payload::Clock(ClockIntent::Pin, ClockValue { time }),
                None => Payload::Clock(ClockIntent::Reset, ClockValue::default()),
            };
            let command = Command::of_system(Key::NONE, payload);
            shared.submit_to(PartitionId::DEPLOYMENT, &command);
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
        let entrances = self.shared.entrances.all();
        if self.shared.port.is_some() {
            return entrances.values().any(|entrance| self.shared.is_served(entrance));
        }
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
        self.shared.entrances.all().values().map(view).collect()
    }

    /// A look at the exporters, for those who report about them.
    pub fn exporters(&self) -> Exporters {
        Exporters::new(self.shared.clock.clone(), self.host.progresses.clone(), self.host.pause.clone())
    }

    /// How the disk of the data directory is.
    pub fn disk(&self) -> DiskView {
        self.shared.disk.view()
    }

    /// Why the node cannot continue: its process should end and be started again.
    pub fn failure(&self) -> Option<String> {
        self.shared.failure.lock().clone()
    }

    /// Gives the partitions that this node leads to other nodes, so that they are led while this one stops. May take a
    /// moment. The partitions of a node alone have no other replicas and stay here.
    pub fn hand_over_leaders(&self) {
        if self.shared.port.is_none() {
            return;
        }
        for entrance in self.shared.entrances.all().values().filter(|entrance| entrance.is_open()) {
            drop(self.shared.inbox.send(Inbound::HandOver { partition: entrance.id, to: None }));
        }
        let until = Instant::now() + HANDOVER_MAX;
        let leads = |entrance: &Arc<Entrance>| entrance.lead().leader == Some(self.shared.node);
        while Instant::now() < until && self.shared.entrances.all().values().any(leads) {
            std::thread::sleep(STOP_LOOK_INTERVAL);
        }
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
        self.stop_cluster = None;
        if !crash {
            self.shared.acknowledge_polls();
        }
        self.port = None;
        drop(self.shared.inbox.send(Inbound::Stop));
        let mut result = self.threads.join(Stage::Replication);
        for processing in &self.host.work {
            drop(processing.send(Work::Stop));
        }
        result = result.and(self.join_processing());
        self.shared.entrances.all().values().for_each(|entrance| entrance.requests.close());
        (self.stop_exporters, self.host.exporters_alive) = (None, None);
        result = result.and(self.join_exporters());
        drop(self.host.maintenance.send(Maintenance::Stop));
        result = result.and(self.threads.join(Stage::Maintenance));
        (self.stop_disk, self.exchange) = (None, None);
        result.and(self.threads.join(Stage::Disk))
    }
}

impl Node {
    /// A command that still computes holds up no stop: the log has it, and the next start applies it.
    fn join_processing(&mut self) -> Result<(), StopError> {
        let mut watcher = Watcher::default();
        loop {
            let running = self.threads.running(Stage::Processing);
            if running.is_empty() || self.shared.is_crashed() {
                return self.threads.join(Stage::Processing);
            }
            let lasting = watcher.lasting(&self.shared.notes, Instant::now(), STOP_COMMAND_MAX);
            let holds_up = |long: &LongCommand| self.host.thread_of(long.partition);
            let held_up: Vec<String> = lasting.iter().map(holds_up).map(threads::processing).collect();
            if running.iter().all(|name| held_up.contains(name)) {
                for LongCommand { partition, applying, .. } in lasting {
                    tracing::warn!(
                        %partition, command = applying.command, key = applying.key.raw(),
                        process_instance = applying.process_instance.raw(),
                        "the node stops without the last checkpoint of the partition, which still applies {applying}: nothing is \
                         lost, and the next start applies it again"
                    );
                }
                self.threads.abandon(Stage::Processing);
                return self.threads.join(Stage::Processing);
            }
            std::thread::sleep(STOP_LOOK_INTERVAL);
        }
    }

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
        if !self.threads.is_empty()
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

/// Opens the log of all partitions.
fn open_log(
    options: &NodeOptions,
    directory: &DataDirectory,
) -> Result<(Arc<RaftEngineLog>, Replicas<RaftEngineLog>), StartError> {
    let opening = Instant::now();
    let retention = opening::retention_limits(options, &directory.disk.view());
    let log_options = opening::log_options(&directory.disk.view(), (retention, options.partition_count));
    let log = Arc::new(RaftEngineLog::open(&directory.paths.log(), log_options)?);
    crate::metrics::log_opened(opening.elapsed());
    let options = ReplicationOptions {
        seed: directory.member.0,
        max_append_message_bytes: APPEND_MESSAGE_BYTES,
        max_inflight_messages: INFLIGHT_MESSAGES,
        ..ReplicationOptions::default()
    };
    let replicas = Replicas::open(directory.member, log.clone(), options)?;
    Ok((log, replicas))
}

/// Looks at the options before anything is changed. What exporters make of theirs is returned.
fn check(options: &NodeOptions) -> Result<Vec<Configured>, StartError> {
    opening::check(options)?;
    Ok(exporting::configure_all(&options.exporters, options.partition_count, &options.data_directory)?)
}

/// Waits until the log takes part in the partitions.
fn wait_for(parts: Vec<TakesPart>) -> Result<(), StartError> {
    for takes_part in parts {
        takes_part.recv().map_err(|_| StartError::Stopped)??;
    }
    Ok(())
}

/// How many threads apply commands.
fn processing_threads(options: &NodeOptions) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let wanted = if options.processing_threads == 0 { cores } else { options.processing_threads };
    wanted.clamp(1, usize::from(options.partition_count))
}

fn share(
    options: &NodeOptions,
    directory: &DataDirectory,
    port: Option<Arc<ClusterPort>>,
    inbox: Sender<Inbound>,
) -> Shared {
    let life = directory.life();
    Shared {
        node: options.node_id,
        member: directory.member,
        life,
        port,
        cluster_id: Mutex::new(directory.cluster_id.clone()),
        last_completed_change: Mutex::default(),
        global_listeners: options.global_listeners.clone(),
        settings: crate::cluster::checksums(options),
        decides_settings: Arc::new(AtomicBool::new(options.cluster.is_none())),
        members: Mutex::new(vec![Member::of(options.node_id, options.newest_feature_level)]),
        newest_feature_level: options.newest_feature_level,
        advertised_address: Mutex::new(options.advertised_address.clone()),
        clock: Arc::new(Clock::new(options.clock_control)),
        disk: directory.disk.clone(),
        notes: Notes::default(),
        partition_count: options.partition_count,
        entrances: Entrances::default(),
        inbox,
        polls: Polls::default(),
        streams: Streams::new(std::iter::empty(), options.stream_window),
        listeners: RwLock::default(),
        command_limit_bytes: options.command_limit_bytes,
        next_stream: AtomicU64::new(Shared::first_number(life)),
        next_partition: AtomicU64::new(0),
        next_sender: AtomicU64::new(1),
        unapplied_bytes: AtomicUsize::new(0),
        stopping: AtomicBool::new(false),
        crashed: AtomicBool::new(false),
        failure: Mutex::default(),
    }
}

#[cfg(test)]
mod tests;
