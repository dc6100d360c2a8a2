//! A node: its disk, and while it lives the replication loop and the partitions of production.

mod clients;
mod exporting;
mod processing;
mod searched;
mod shell;
mod states;

use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;

use broker::partition::Moment;
use broker::partition_loop::PartitionLoop;
use broker::reception::{MemberNumber, Reception};
use broker::replaced_state::Places;
use broker::replication_loop::{CommittedEntry, ReplicationLoop, Shell, group_of};
use broker::snapshots::ReceivedStates;
use broker::state_handle::StateHandle;
use broker::{Client, Permit, SubmitError};
use engine::{BrokenInvariant, Engine, EngineOptions, Fault, Limits, Reply};
use parking_lot::Mutex;
use protocol::{PartitionId, Request, Timestamp};
use replication::{
    Frame, GroupId, LogError, LogOptions, LogStore, Message, NodeId, Options, RaftEngineLog, Replicas,
    ReplicationError, Round, SnapshotReceiver, StepError,
};

use crate::disk::{Disk, SimulatedFiles, Tearing};
use crate::network::{Network, Parcel};
use crate::options::{Milliseconds, Swarm};
use crate::oracle::Oracles;
use crate::schedule::{Event, Life, Schedule};
use crate::state_file::StateFile;
use crate::worker;
use chance::Chance;

use exporting::Exporting;
use searched::Searched;
use shell::Front;

pub use clients::members;
pub use exporting::{OwnPlaces, Told};
pub use searched::Shown;

/// Virtual time starts here, so that times look like times.
pub const EPOCH: Timestamp = 1_800_000_000_000;
/// Time between two ticks of Raft's clock.
pub const TICK: Milliseconds = 100;
/// The nodes that can start a cluster; as many of them do as it has voters.
const FOUNDERS: [NodeId; 3] = [NodeId(1), NodeId(2), NodeId(3)];
/// The node that can take the place of another.
pub const SPARE: NodeId = NodeId(4);
/// A worker opens its stream anew once in so many ticks.
const STREAM_TICKS: u64 = 100;
/// Pause before a failed write of the log is tried again.
const RETRY_PAUSE: Milliseconds = 200;
/// Connections of clients to a node.
const SENDERS: u64 = 3;
const FRAME_LIMIT_BYTES: usize = 64 << 20;
const STATE_CHUNK_BYTES: usize = 16 << 10;
const BATCH_LIMIT_BYTES: usize = 1 << 20;

type Loop = ReplicationLoop<RaftEngineLog<SimulatedFiles>, Permit>;

/// What became of requests, by the numbers that their clients gave them.
type Answers = Arc<Mutex<Vec<(u64, Result<Reply, SubmitError>)>>>;

/// What nodes act upon.
pub struct Surroundings<'a> {
    pub schedule: &'a mut Schedule,
    pub network: &'a mut Network,
    pub oracles: &'a mut Oracles,
    pub chance: &'a mut Chance,
    pub swarm: &'a Swarm,
}

/// What a round brought for a partition, in order.
#[derive(Debug)]
pub enum News {
    Install(PartitionId, u64),
    Committed(PartitionId, Vec<CommittedEntry<Permit>>, u64),
    /// With the number of the leadership.
    Lead(PartitionId, u64),
    StepDown(PartitionId),
}

/// A machine.
pub struct Node {
    pub id: NodeId,
    directory: PathBuf,
    pub disk: Arc<Disk>,
    /// How far its clock is ahead.
    pub clock_offset: i64,
    /// Set while its disk is slow.
    pub is_slow: bool,
    /// Nothing happens there before this time.
    pub paused_until: Milliseconds,
    /// Why it does not start any more.
    pub refuses: Option<String>,
    lives: u64,
    /// Its number among the nodes of the cluster.
    number: u32,
    /// Who belongs to the cluster.
    members: BTreeMap<u32, MemberNumber>,
    /// The files of states before the first of their checkpoints that were not synced.
    unsynced_states: BTreeMap<PartitionId, StateFile>,
    /// What the targets of its exporters hold by themselves.
    own_places: OwnPlaces,
    running: Option<Running>,
}

/// A node that lives.
struct Running {
    replication: Loop,
    partitions: Vec<PartitionLoop<Permit>>,
    /// Of each partition, for those who read its checkpoints.
    states: Vec<StateHandle>,
    fronts: Vec<Front>,
    exporting: Exporting,
    searched: Option<Searched>,
    receiver: SnapshotReceiver,
    received: ReceivedStates,
    reception: Reception,
    /// The clients' connections.
    senders: Vec<Client>,
    /// The stream of the worker on this node.
    stream: Option<worker::Stream>,
    /// What the reception answered and nobody was told yet.
    answers: Answers,
    /// Requests that are not answered, by the numbers of their clients, with where they went and under which name.
    waiting: BTreeMap<u64, (PartitionId, Request)>,
    /// When it started.
    started: Milliseconds,
    ticks: u64,
    inbox: Vec<Inbound>,
    news: VecDeque<News>,
    /// A round is under way, or one is scheduled.
    is_busy: bool,
    is_processing: bool,
    /// When the loops of the partitions are called if nothing happens before.
    wakes_at: Milliseconds,
    retry_at: Milliseconds,
}

enum Inbound {
    Tick,
    Frame(Frame),
    State { from: NodeId, frames: Vec<Vec<u8>>, is_whole: bool },
    Command(PartitionId, Vec<u8>, Option<Permit>),
    Checkpointed(PartitionId, u64),
    EverybodyHas(PartitionId, u64),
    StateSent(GroupId, NodeId, bool),
    Transfer(GroupId, NodeId),
}

/// The nodes that start the cluster.
pub fn founders(swarm: &Swarm) -> &'static [NodeId] {
    &FOUNDERS[..swarm.voters.min(FOUNDERS.len())]
}

impl Drop for Node {
    fn drop(&mut self) {
        // The log would close its files, and panics if that fails: also while a broken promise unwinds the run.
        self.disk.switch_off();
    }
}

/// Takes down what a round says.
struct Collected {
    now: Moment,
    /// With how many syncs there had been when they were sent.
    messages: Vec<(u64, Message)>,
    disk: Arc<Disk>,
    news: Vec<News>,
    reception: Reception,
    /// Why a log cannot be read.
    log_failed: Option<String>,
}

impl Shell for Collected {
    type Permit = Permit;

    fn now(&self) -> Moment {
        self.now
    }

    fn send(&mut self, message: Message) {
        self.messages.push((self.disk.syncs(), message));
    }

    fn committed(&mut self, partition: PartitionId, entries: Vec<CommittedEntry<Permit>>, up_to: u64) {
        self.news.push(News::Committed(partition, entries, up_to));
    }

    fn lead(&mut self, partition: PartitionId, term: u64) {
        self.reception.elected(partition, term);
        self.news.push(News::Lead(partition, self.reception.leadership(partition)));
    }

    fn step_down(&mut self, partition: PartitionId) {
        // At once: what came in until the processing knows of it would be dropped.
        self.reception.close(partition);
        self.news.push(News::StepDown(partition));
    }

    fn follow(&mut self, partition: PartitionId, leader: Option<NodeId>, term: u64) {
        self.reception.follow(partition, leader, term);
    }

    fn install(&mut self, partition: PartitionId, index: u64) {
        self.news.push(News::Install(partition, index));
    }

    fn log_failed(&mut self, _: PartitionId, error: &LogError) {
        self.log_failed = Some(error.to_string());
    }
}

impl Node {
    /// A machine that is switched off.
    pub fn new(id: NodeId, directory: PathBuf, members: BTreeMap<u32, MemberNumber>) -> Self {
        Node {
            id,
            directory,
            disk: Disk::new(),
            clock_offset: 0,
            is_slow: false,
            paused_until: 0,
            refuses: None,
            lives: 0,
            number: u32::try_from(id.0).expect("few nodes"),
            members,
            unsynced_states: BTreeMap::new(),
            own_places: OwnPlaces::default(),
            running: None,
        }
    }

    /// Whether it runs.
    pub fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// The present or last life.
    pub fn life(&self) -> Life {
        Life { node: self.id, number: self.lives }
    }

    /// Where the files of the log are.
    pub fn log_files(&self) -> PathBuf {
        self.directory.join("log").join("files")
    }

    /// Lets the log give back the space of what it does not need. Says whether it did: it cannot move what was damaged while the
    /// node ran.
    pub fn reclaim_space(&self) -> bool {
        let Some(running) = &self.running else { return false };
        let Err(error) = running.replication.replicas().log().reclaim_space() else { return true };
        let reason = error.to_string();
        assert!(self.disk.explains(&reason), "nothing is wrong with the disk of node {} any more: {reason}", self.id);
        false
    }

    /// Whether the node takes commands for the partition.
    pub fn is_leading(&self, partition: PartitionId) -> bool {
        self.running.as_ref().is_some_and(|running| running.reception.is_open(partition))
    }

    /// The engine of a partition, if the node runs.
    pub fn engine(&self, partition: PartitionId) -> Option<&Engine> {
        self.running.as_ref().map(|running| running.partitions[index_of(partition)].partition().engine())
    }

    /// What the node knows about a partition's group.
    pub fn status(&self, partition: PartitionId) -> Option<replication::GroupStatus> {
        self.running.as_ref()?.replication.replicas().status(group_of(partition))
    }

    /// Starts on what is on the disk. `Err` says why the node refuses to.
    pub fn start(&mut self, seed: u64, surroundings: &mut Surroundings<'_>) -> Result<(), String> {
        // A start that fails closes its log again, which panics when that cannot be synced.
        let opened = catch_unwind(AssertUnwindSafe(|| self.open(seed, surroundings)));
        let running = opened.unwrap_or_else(|panic| Err(crate::panic_text(panic.as_ref())))?;
        self.running = Some(running);
        self.lives += 1;
        self.open_stream(surroundings);
        for partition in (1..=surroundings.swarm.partitions).map(PartitionId) {
            let status = self.status(partition).expect("it was just opened");
            surroundings.oracles.found(self.id, partition, &status);
        }
        let life = self.life();
        surroundings.schedule.after(TICK, Event::Tick(life));
        surroundings.schedule.after(TICK, Event::Export(life));
        self.work(surroundings);
        Ok(())
    }

    fn open(&self, seed: u64, surroundings: &mut Surroundings<'_>) -> Result<Running, String> {
        let swarm = surroundings.swarm;
        let options = LogOptions { file_bytes: swarm.log_file_bytes, reclaim_above_bytes: swarm.log_file_bytes * 4 };
        let files = Arc::new(SimulatedFiles(self.disk.clone()));
        let log = RaftEngineLog::open_with(&self.directory.join("log"), options, files);
        let log = log.map_err(|error| error.to_string())?;
        let options = Options {
            seed: seed ^ self.id.0,
            max_append_message_bytes: 20_000,
            max_inflight_messages: 16,
            recent_entries_bytes: 50_000,
            ..Options::default()
        };
        let mut replicas = Replicas::open(self.id, Arc::new(log), options).map_err(|error| error.to_string())?;
        let received = ReceivedStates::new(self.directory.join("partitions"));
        let (mut partitions, mut fronts, mut times) = (Vec::new(), Vec::new(), BTreeMap::new());
        for partition in (1..=swarm.partitions).map(PartitionId) {
            let engine = self.open_partition(&mut replicas, &received, partition, surroundings)?;
            times.insert(partition, engine.last_timestamp());
            let (partition_loop, upkeep) = self.partition_loop(partition, engine, swarm)?;
            partitions.push(partition_loop);
            fronts.push(Front::new(upkeep, surroundings.schedule.now()));
        }
        let logs = processing::logs(&fronts);
        let exporting = self.open_exporting(&logs, self.clock(surroundings.schedule))?;
        let states = processing::states(&partitions);
        let searched = self.open_searched(&logs, states.clone(), surroundings)?;
        for (number, partition_loop) in (1..).zip(&mut partitions) {
            let partition = PartitionId(number);
            let acknowledged = exporting.acknowledged(partition);
            let rows = searched.as_ref().map(|searched| searched.needs_nothing_of(partition).0);
            partition_loop.was_exported(rows.map_or(acknowledged, |rows| acknowledged.min(rows)));
        }
        let reception = self.reception(surroundings.swarm);
        Ok(Running {
            replication: ReplicationLoop::new(replicas, &times, BATCH_LIMIT_BYTES)
                .with_retention(states::retention(swarm)),
            fronts,
            exporting,
            searched,
            partitions,
            states,
            receiver: SnapshotReceiver::new(),
            received,
            senders: (0..SENDERS).map(|_| reception.client().new_sender()).collect(),
            reception,
            stream: None,
            answers: Answers::default(),
            waiting: BTreeMap::new(),
            started: surroundings.schedule.now(),
            ticks: 0,
            inbox: Vec::new(),
            news: VecDeque::new(),
            is_busy: false,
            is_processing: false,
            wakes_at: 0,
            retry_at: 0,
        })
    }

    fn open_partition(
        &self,
        replicas: &mut Replicas<RaftEngineLog<SimulatedFiles>>,
        received: &ReceivedStates,
        partition: PartitionId,
        surroundings: &mut Surroundings<'_>,
    ) -> Result<Engine, String> {
        let swarm = surroundings.swarm;
        let founders = founders(swarm);
        let voters = if founders.contains(&self.id) { founders } else { &[] };
        let engine =
            open_engine(partition, &self.state_directory(partition), swarm).map_err(|error| error.to_string())?;
        match replicas.create_group(group_of(partition), voters, engine.applied()) {
            Ok(()) => Ok(engine),
            Err(ReplicationError::StateBehindLog { compacted, .. }) => {
                // The node stopped after it had accepted a state and before it used it.
                let directory = self.state_directory(partition);
                let places = Places { received, state: &directory };
                let records = self.record_options(partition);
                let installed =
                    places.install_at_start(engine, compacted, records, || open_engine(partition, &directory, swarm));
                let engine = installed.map_err(|error| error.to_string())?;
                surroundings.oracles.installed(self.id, partition, compacted, &engine);
                let created = replicas.create_group(group_of(partition), voters, engine.applied());
                created.map(|()| engine).map_err(|error| error.to_string())
            }
            Err(error) => Err(error.to_string()),
        }
    }

    fn state_directory(&self, partition: PartitionId) -> PathBuf {
        self.partition_directory(partition).join("state")
    }

    fn partition_directory(&self, partition: PartitionId) -> PathBuf {
        self.directory.join("partitions").join(partition.0.to_string())
    }

    /// Stops without warning. Whoever waits for an answer never gets one.
    pub fn stop(&mut self, surroundings: &mut Surroundings<'_>) {
        let Some(running) = self.running.take() else { return };
        for number in running.waiting.keys() {
            surroundings.schedule.after(1, Event::Answer(*number, None));
        }
        surroundings.oracles.stopped(self.id);
        self.disk.switch_off();
        drop(running);
        self.lose_rows(surroundings);
        let tearing = *surroundings.chance.choose(&[Tearing::Keeps, Tearing::Loses, Tearing::Mixes]);
        self.disk.settle(tearing, surroundings.chance).expect("the scratch directory is writable");
        for (partition, before) in std::mem::take(&mut self.unsynced_states) {
            before.lose(&self.state_directory(partition), tearing, surroundings.chance);
        }
    }

    fn clock(&self, schedule: &Schedule) -> Timestamp {
        let passed = i64::try_from(schedule.now()).unwrap_or(i64::MAX);
        EPOCH.saturating_add(passed).saturating_add(self.clock_offset)
    }

    /// With the time since a start.
    fn moment(&self, schedule: &Schedule, started: Milliseconds) -> Moment {
        let steady_milliseconds = i64::try_from(schedule.now() - started).unwrap_or(i64::MAX);
        Moment { clock: self.clock(schedule), is_pinned: false, steady_milliseconds }
    }

    fn take(&mut self, inbound: Inbound, surroundings: &mut Surroundings<'_>) {
        if let Some(running) = &mut self.running {
            running.inbox.push(inbound);
            self.work(surroundings);
        }
    }

    /// Raft's clock.
    pub fn tick(&mut self, surroundings: &mut Surroundings<'_>) {
        surroundings.schedule.after(TICK, Event::Tick(self.life()));
        self.take(Inbound::Tick, surroundings);
        self.say_what_everybody_has(surroundings);
        self.look_after_clients(surroundings);
        if surroundings.oracles.has_faults() && surroundings.chance.one_in(STREAM_TICKS) {
            self.open_stream(surroundings);
        }
    }

    /// Something came over the network.
    pub fn arrive(&mut self, from: NodeId, parcel: Parcel, surroundings: &mut Surroundings<'_>) {
        let inbound = match parcel {
            Parcel::Frame(bytes) => match Frame::decode(&bytes, FRAME_LIMIT_BYTES) {
                Ok(frame) => Inbound::Frame(frame),
                Err(error) => panic!("a frame survives its bytes: {error}"),
            },
            Parcel::State { frames, is_whole } => Inbound::State { from, frames, is_whole },
            Parcel::EverybodyHas(partition, index) => Inbound::EverybodyHas(partition, index),
            Parcel::Node(number, life, frame) => return self.node_frame(number, life, &frame, surroundings),
        };
        self.take(inbound, surroundings);
    }

    /// The state that was sent to another node arrived, or not.
    pub fn state_sent(&mut self, group: GroupId, to: NodeId, delivered: bool, surroundings: &mut Surroundings<'_>) {
        self.take(Inbound::StateSent(group, to, delivered), surroundings);
    }

    /// Hands over the leadership of a partition.
    pub fn transfer(&mut self, partition: PartitionId, to: NodeId, surroundings: &mut Surroundings<'_>) {
        self.take(Inbound::Transfer(group_of(partition), to), surroundings);
    }

    /// Changes the members of a partition that this node leads.
    pub fn change_members(&mut self, partition: PartitionId, changes: &[replication::MembershipChange]) {
        if let Some(running) = &mut self.running {
            // Refused while another change is under way.
            let changed = running.replication.replicas_mut().change_membership(group_of(partition), changes);
            tracing::trace!(node = %self.id, %partition, ?changed, "changes members");
        }
    }

    /// Schedules a round, unless there is one.
    fn work(&mut self, surroundings: &mut Surroundings<'_>) {
        let life = self.life();
        if let Some(running) = &mut self.running
            && !running.is_busy
        {
            running.is_busy = true;
            surroundings.schedule.after(0, Event::Work(life));
        }
    }

    /// Takes what has come in and makes a round.
    pub fn round(&mut self, surroundings: &mut Surroundings<'_>) {
        let (now, moment, id, life) =
            (surroundings.schedule.now(), self.moment(surroundings.schedule, 0), self.id, self.life());
        let (disk, is_slow) = (self.disk.clone(), self.is_slow);
        let Some(running) = &mut self.running else { return };
        let mut collected = Collected {
            now: moment,
            messages: Vec::new(),
            disk: disk.clone(),
            news: Vec::new(),
            reception: running.reception.clone(),
            log_failed: None,
        };
        let syncs = disk.syncs();
        let mut rest = Round::default();
        // As on the thread of production: whatever panics ends the process.
        let turn = catch_unwind(AssertUnwindSafe(|| running.turn(now, &mut collected, &mut rest)));
        let fatal = match turn {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error),
            Err(panic) => Some(format!("a panic: {}", crate::panic_text(panic.as_ref()))),
        };
        let synced = disk.syncs() - syncs;
        let slowness = if is_slow { 50 } else { 1 };
        let took = synced * surroundings.chance.within(0..surroundings.swarm.sync_milliseconds + 1) * slowness;
        for (sent_at, message) in collected.messages {
            if let Some(term) = message.vote() {
                surroundings.oracles.voted(id, partition_of(message.group), term, message.to());
            }
            send(id, if sent_at > syncs { took } else { 0 }, message, surroundings);
        }
        let is_written = running.retry_at <= now;
        self.receive(surroundings);
        if let Some(reason) = fatal {
            surroundings.oracles.trace("stops", &[id.0], "");
            self.fail(&reason, surroundings);
            return;
        }
        for partition in (1..=surroundings.swarm.partitions).map(PartitionId) {
            let status = self.status(partition).expect("it runs");
            surroundings.oracles.seen(id, partition, &status);
            if is_written {
                surroundings.oracles.durable(id, partition, &status);
            }
        }
        self.send_states(&rest, surroundings);
        self.wanted_checkpoints(&rest, surroundings);
        surroundings.schedule.after(took, Event::RoundDone(life, collected.news));
    }

    /// The node cannot go on: its process ends, and is started again.
    fn fail(&mut self, reason: &str, surroundings: &mut Surroundings<'_>) {
        let has_fault = self.disk.explains(reason) || self.disk.is_crashed();
        surroundings.oracles.node_failed(self.id, reason, has_fault);
        self.start_again(surroundings);
    }

    fn start_again(&mut self, surroundings: &mut Surroundings<'_>) {
        self.stop(surroundings);
        surroundings.schedule.after(surroundings.chance.within(50..1_000), Event::Start(self.id));
    }

    /// What a round brought is known: it will be applied, and the next round may begin.
    pub fn round_done(&mut self, news: Vec<News>, surroundings: &mut Surroundings<'_>) {
        let life = self.life();
        let Some(running) = &mut self.running else { return };
        running.is_busy = false;
        running.news.extend(news);
        if !running.news.is_empty() && !running.is_processing {
            running.is_processing = true;
            surroundings.schedule.after(surroundings.chance.below(3), Event::Process(life));
        }
        if !running.inbox.is_empty() {
            self.work(surroundings);
        }
    }
}

impl Running {
    /// Takes what has come in and makes rounds until there is nothing to do.
    fn turn(&mut self, now: Milliseconds, collected: &mut Collected, rest: &mut Round) -> Result<(), String> {
        self.take_inbox(collected)?;
        if now < self.retry_at {
            return Ok(());
        }
        self.replication.propose(collected);
        match self.rounds(collected, rest) {
            Err(ReplicationError::Log(LogError::Io { .. })) if !collected.disk.is_crashed() => {
                self.retry_at = now + RETRY_PAUSE;
                Ok(())
            }
            result => result.map_err(|error| error.to_string()),
        }?;
        // As with a partition that stops, so that what goes on is whole.
        collected.log_failed.take().map_or(Ok(()), Err)
    }

    fn take_inbox(&mut self, collected: &mut Collected) -> Result<(), String> {
        for inbound in std::mem::take(&mut self.inbox) {
            match inbound {
                Inbound::Tick => {
                    self.replication.replicas_mut().tick();
                    self.replication.forget_all().map_err(|error| error.to_string())?;
                }
                Inbound::Frame(Frame::Message(message)) => step(&mut self.replication, message)?,
                Inbound::Frame(_) => panic!("states travel on their own connection"),
                Inbound::State { from, frames, is_whole } => self.take_state(from, &frames, is_whole)?,
                Inbound::Command(partition, bytes, permit) => {
                    self.replication.enqueue(collected, partition, bytes, permit);
                }
                Inbound::Checkpointed(partition, applied) => {
                    let checkpointed = self.replication.checkpointed(partition, applied);
                    checkpointed.map_err(|error| error.to_string())?;
                }
                Inbound::EverybodyHas(partition, index) => {
                    self.replication.everybody_has(partition, index).map_err(|error| error.to_string())?;
                }
                Inbound::StateSent(group, to, delivered) => self.replication.snapshot_sent(group, to, delivered),
                Inbound::Transfer(group, to) => {
                    // Refused where another node leads.
                    drop(self.replication.replicas_mut().transfer_leadership(group, to));
                }
            }
        }
        Ok(())
    }

    fn rounds(&mut self, collected: &mut Collected, rest: &mut Round) -> Result<(), ReplicationError> {
        loop {
            let round = self.replication.round(collected)?;
            rest.snapshots_to_send.extend(round.snapshots_to_send);
            rest.checkpoints_wanted.extend(round.checkpoints_wanted);
            if !round.more {
                return Ok(());
            }
        }
    }
}

fn step(replication: &mut Loop, message: Message) -> Result<(), String> {
    match replication.replicas_mut().step(message) {
        // While the log cannot be written, messages are lost.
        Ok(()) | Err(StepError::LogUnavailable) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

fn send(from: NodeId, pause: Milliseconds, message: Message, surroundings: &mut Surroundings<'_>) {
    let to = message.to();
    let mut bytes = Vec::new();
    Frame::Message(message).encode(&mut bytes);
    for latency in surroundings.network.deliveries(from, to) {
        let parcel = Parcel::Frame(bytes.clone());
        surroundings.schedule.after(pause + latency, Event::Arrival { from, to, parcel });
    }
}

fn open_engine(partition: PartitionId, directory: &std::path::Path, swarm: &Swarm) -> Result<Engine, Fault> {
    let options = EngineOptions {
        limits: Some(limits(swarm)),
        broken_invariant: BrokenInvariant::Stops,
        ..EngineOptions::new(partition, swarm.partitions)
    };
    Engine::open(options, directory)
}

fn limits(swarm: &Swarm) -> Limits {
    let limits = Limits { steps_per_command_max: swarm.steps_per_command, ..Limits::default() };
    let Some(spending) = swarm.spending else { return limits };
    Limits {
        evaluation_steps_per_command: spending.steps,
        evaluation_steps_per_command_max: spending.steps_max,
        evaluation_bytes_read_per_command_max: spending.bytes_read_max,
        evaluation_bytes_built_per_command_max: spending.bytes_built_max,
        reply_bytes_per_batch: spending.reply_bytes,
        ..limits
    }
}

pub(crate) fn partition_of(group: GroupId) -> PartitionId {
    PartitionId(u16::try_from(group.0).expect("groups are numbered like partitions"))
}

pub(crate) fn index_of(partition: PartitionId) -> usize {
    usize::from(partition.0) - 1
}
