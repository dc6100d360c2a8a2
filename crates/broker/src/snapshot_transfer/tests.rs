//! Three replicas with their logs and states, of which one was away.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use engine::{Engine, EngineOptions};
use parking_lot::Mutex;
use protocol::PartitionId;
use replication::{GroupId, LogError, MemoryLog, Message, Options, Replicas, Role, SnapshotRequest};
use tempfile::TempDir;

use super::*;
use crate::partition_time::Moment;
use crate::replication_loop::{CommittedEntry, ReplicationLoop, Shell, group_of};
use crate::retention::RetentionLimits;
use crate::snapshots::ReceivedStates;
use crate::state_handle::{StateHandle, StateHandles};

const PARTITION: PartitionId = PartitionId(1);
const NODES: [NodeId; 3] = [NodeId(1), NodeId(2), NodeId(3)];
const AWAY: NodeId = NodeId(3);
const LIMIT: Duration = Duration::from_secs(60);

type Log = ReplicationLoop<MemoryLog, ()>;

/// What a round brings.
#[derive(Default)]
struct Brought {
    messages: Vec<Message>,
    up_to: u64,
    installs: Vec<u64>,
}

impl Shell for Brought {
    type Permit = ();

    fn now(&self) -> Moment {
        Moment { clock: 1, is_pinned: false, steady_milliseconds: 1 }
    }

    fn send(&mut self, message: Message) {
        self.messages.push(message);
    }

    fn committed(&mut self, _: PartitionId, _: Vec<CommittedEntry<()>>, up_to: u64) {
        self.up_to = up_to;
    }

    fn lead(&mut self, _: PartitionId, _: u64) {}

    fn step_down(&mut self, _: PartitionId) {}

    fn follow(&mut self, _: PartitionId, _: Option<NodeId>, _: u64) {}

    fn install(&mut self, _: PartitionId, index: u64) {
        self.installs.push(index);
    }

    fn log_failed(&mut self, _: PartitionId, error: &LogError) {
        panic!("{error}");
    }
}

/// The log and the disk of a node, as its exchange sees them.
struct Host {
    log: Mutex<Log>,
    spare_bytes: AtomicU64,
    is_stopping: AtomicBool,
}

impl SnapshotHost for Host {
    fn message(&self, request: &SnapshotRequest, at: u64) -> Option<Message> {
        self.log.lock().snapshot_message(request, at).expect("readable")
    }

    fn sent(&self, group: GroupId, to: NodeId, delivered: bool) {
        self.log.lock().snapshot_sent(group, to, delivered);
    }

    fn step(&self, message: Message) -> bool {
        self.log.lock().replicas_mut().step(message).is_ok()
    }

    fn spare_bytes(&self) -> u64 {
        self.spare_bytes.load(Ordering::Relaxed)
    }

    fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Relaxed)
    }
}

/// Connections from one node to the others.
#[derive(Clone)]
struct Wires {
    from: NodeId,
    exchanges: Arc<Mutex<BTreeMap<NodeId, SnapshotExchange>>>,
    /// Counts what is sent.
    sent: Arc<AtomicUsize>,
    /// What is sent with these numbers finds no room, or breaks the connection.
    full: usize,
    broken: usize,
    /// What is sent with this number is lost, and then nobody knows yet.
    lost: Arc<AtomicUsize>,
    is_lost: Arc<AtomicBool>,
}

impl SnapshotTransport for Wires {
    fn send(&self, to: NodeId, bytes: &[u8]) -> Result<(), TransportError> {
        let exchange = self.exchanges.lock()[&to].clone();
        match self.sent.fetch_add(1, Ordering::Relaxed) {
            number if number == self.lost.load(Ordering::Relaxed) => {
                self.is_lost.store(true, Ordering::Relaxed);
                return Ok(());
            }
            number if number == self.full => return Err(TransportError::Full),
            number if number == self.broken => {
                exchange.disconnected(self.from);
                return Err(TransportError::Unreachable);
            }
            _ => {}
        }
        exchange.received(self.from, bytes.to_vec()).expect("it is read");
        Ok(())
    }
}

struct Node {
    id: NodeId,
    host: Arc<Host>,
    engine: Option<Engine>,
    state: StateHandle,
    received: ReceivedStates,
    exchange: SnapshotExchange,
    installs: Vec<u64>,
    threads: Vec<std::thread::JoinHandle<()>>,
    stop: Option<Sender<()>>,
}

/// A node's states are under this directory.
fn open_engine(directory: &TempDir, node: NodeId) -> Engine {
    Engine::open(EngineOptions::new(PARTITION, 1), &state_directory(directory, node)).expect("it opens")
}

fn state_directory(directory: &TempDir, node: NodeId) -> PathBuf {
    directory.path().join(node.to_string()).join("state")
}

struct Cluster {
    directory: TempDir,
    lost: Arc<AtomicUsize>,
    is_lost: Arc<AtomicBool>,
    nodes: Vec<Node>,
    away: BTreeSet<NodeId>,
}

impl Cluster {
    fn new(limits: RetentionLimits, full: usize, broken: usize) -> Self {
        let directory = tempfile::tempdir().expect("temporary");
        let exchanges = Arc::<Mutex<BTreeMap<NodeId, SnapshotExchange>>>::default();
        let (lost, is_lost) = (Arc::new(AtomicUsize::new(usize::MAX)), Arc::<AtomicBool>::default());
        let nodes = NODES.map(|id| {
            let (exchanges, sent) = (exchanges.clone(), Arc::default());
            let (lost, is_lost) = (lost.clone(), is_lost.clone());
            let wires = Wires { from: id, exchanges: exchanges.clone(), sent, full, broken, lost, is_lost };
            let (exchange, ends) = SnapshotExchange::new();
            exchanges.lock().insert(id, exchange.clone());
            Node::start(id, &directory, limits, Arc::new(wires), (exchange, ends))
        });
        Cluster { directory, lost, is_lost, nodes: nodes.into(), away: BTreeSet::new() }
    }

    /// What a node sends with this number is lost. Returns whether that has happened.
    fn lost_part(&self, number: usize) -> Arc<AtomicBool> {
        self.lost.store(number, Ordering::Relaxed);
        self.is_lost.clone()
    }

    /// Time passes, and everything that is there to do is done.
    fn turn(&mut self) {
        let mut messages = Vec::new();
        for node in &mut self.nodes {
            messages.extend(node.round(&self.directory));
        }
        messages.retain(|message| !self.away.contains(&message.to()) && !self.away.contains(&message.from()));
        for message in messages {
            let node = self.nodes.iter().find(|node| node.id == message.to()).expect("it is there");
            node.host.log.lock().replicas_mut().step(message).expect("a proper message");
        }
        let said = self.nodes.iter().find_map(|node| node.host.log.lock().held_by_everybody(PARTITION));
        for node in self.nodes.iter().filter(|node| !self.away.contains(&node.id)) {
            node.host.log.lock().everybody_has(PARTITION, said.unwrap_or(0)).expect("readable");
        }
    }

    fn leader(&self) -> Option<usize> {
        self.nodes.iter().position(|node| node.status().role == Role::Leader && !self.away.contains(&node.id))
    }

    /// The leader proposes an entry of a thousand bytes.
    fn propose(&mut self) {
        while self.leader().is_none() {
            self.turn();
        }
        let leader = self.leader().expect("there is one");
        let mut log = self.nodes[leader].host.log.lock();
        log.enqueue(&mut Brought::default(), PARTITION, vec![7; 1_000], None);
        log.propose(&mut Brought::default());
    }

    fn write(&mut self, entries: usize) {
        for _ in 0..entries {
            self.propose();
            (0..3).for_each(|_| self.turn());
            self.nodes.iter_mut().for_each(Node::checkpoint);
        }
    }

    fn node(&self, id: NodeId) -> &Node {
        self.nodes.iter().find(|node| node.id == id).expect("it is there")
    }

    /// Goes on, with new entries all the time, until the node that was away has everything.
    fn catch_up(&mut self) {
        self.away.clear();
        let until = Instant::now() + LIMIT;
        let mut written = 0;
        loop {
            let last = self.leader().map(|leader| self.nodes[leader].status().commit);
            let has = self.node(AWAY).engine.as_ref().map(Engine::applied);
            if last.is_some() && has == last && written > 0 {
                return;
            }
            assert!(Instant::now() < until, "node {AWAY} has {has:?} of {last:?}");
            if written < 300 {
                self.write(1);
                written += 1;
            }
            self.turn();
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Node {
    fn start(
        id: NodeId,
        directory: &TempDir,
        limits: RetentionLimits,
        transport: Arc<dyn SnapshotTransport>,
        (exchange, ends): (SnapshotExchange, ExchangeEnds),
    ) -> Self {
        let options = Options { seed: id.0, recent_entries_bytes: 10_000, ..Options::default() };
        let mut replicas = Replicas::open(id, Arc::new(MemoryLog::new()), options).expect("fine options");
        replicas.create_group(group_of(PARTITION), &NODES, 0).expect("new");
        let log = ReplicationLoop::new(replicas, &BTreeMap::from([(PARTITION, 0)]), 1 << 20).with_retention(limits);
        let host = Arc::new(Host {
            log: Mutex::new(log),
            spare_bytes: AtomicU64::new(u64::MAX),
            is_stopping: AtomicBool::new(false),
        });
        let engine = open_engine(directory, id);
        let (state, states) = (StateHandle::new(engine.store().handle()), StateHandles::default());
        states.add(PARTITION, state.clone());
        let own = directory.path().join(id.to_string());
        let received = ReceivedStates::new(own.clone());
        let (stop_sender, stop) = crossbeam_channel::bounded(0);
        let sender = SnapshotSender::new(host.clone(), transport.clone(), ends.sender, stop.clone(), states, own);
        let receiver = SnapshotReceiver::new(host.clone(), transport, ends.receiver, stop, received.clone());
        let threads = vec![std::thread::spawn(move || sender.run()), std::thread::spawn(move || receiver.run())];
        Node {
            id,
            host,
            engine: Some(engine),
            state,
            received,
            exchange,
            installs: Vec::new(),
            threads,
            stop: Some(stop_sender),
        }
    }

    fn status(&self) -> replication::GroupStatus {
        self.host.log.lock().replicas().status(group_of(PARTITION)).expect("open")
    }

    fn round(&mut self, directory: &TempDir) -> Vec<Message> {
        let mut messages = Vec::new();
        self.host.log.lock().replicas_mut().tick();
        loop {
            let mut brought = Brought::default();
            let round = self.host.log.lock().round(&mut brought).expect("the log works");
            messages.append(&mut brought.messages);
            for request in round.snapshots_to_send {
                self.exchange.requests().send(ToSender::Request(Box::new(request))).expect("it runs");
            }
            for index in brought.installs {
                self.install(index, directory);
            }
            if brought.up_to > 0 {
                self.engine.as_mut().expect("open").advance(brought.up_to);
            }
            if !round.more {
                return messages;
            }
        }
    }

    fn install(&mut self, index: u64, directory: &TempDir) {
        self.state.take_away();
        self.engine = None;
        let state = state_directory(directory, self.id);
        assert!(state::Store::wait_until_closed(&state, LIMIT));
        self.received.install(PARTITION, index, &state).expect("it is there");
        let engine = open_engine(directory, self.id);
        assert_eq!(engine.applied(), index);
        self.state.put(engine.store().handle());
        self.engine = Some(engine);
        self.installs.push(index);
        self.host.log.lock().checkpointed(PARTITION, index).expect("readable");
    }

    fn checkpoint(&mut self) {
        let engine = self.engine.as_mut().expect("open");
        let written = engine.freeze().expect("open").write().expect("writable");
        let applied = written.statistics().applied;
        drop(engine.release(written).expect("its own"));
        self.host.log.lock().checkpointed(PARTITION, applied).expect("readable");
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.host.is_stopping.store(true, Ordering::Relaxed);
        self.stop = None;
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

const ENOUGH: RetentionLimits =
    RetentionLimits { group_bytes_max: 1 << 20, sending_bytes_max: 4 << 20, total_bytes_max: u64::MAX };
const LITTLE: RetentionLimits =
    RetentionLimits { group_bytes_max: 10_000, sending_bytes_max: 4 << 20, total_bytes_max: u64::MAX };

#[test]
fn who_was_away_goes_on_with_entries_as_long_as_these_are_kept() {
    let mut cluster = Cluster::new(ENOUGH, usize::MAX, usize::MAX);
    cluster.write(5);
    let before = cluster.node(AWAY).status().last_index;
    cluster.away.insert(AWAY);
    cluster.write(100);
    for node in [NodeId(1), NodeId(2)] {
        assert!(cluster.node(node).status().first_index <= before + 1, "node {node} keeps what the other one lacks");
    }
    cluster.catch_up();
    assert_eq!(cluster.node(AWAY).installs, Vec::<u64>::new());
    cluster.write(2);
    for node in &cluster.nodes {
        let status = node.status();
        assert!(status.first_index + 3 >= status.last_index, "node {} forgets what all have: {status:?}", node.id);
    }
}

#[test]
fn who_was_away_for_long_gets_one_state_and_goes_on_with_entries() {
    let mut cluster = Cluster::new(LITTLE, 1, usize::MAX);
    cluster.write(5);
    cluster.away.insert(AWAY);
    cluster.write(100);
    let status = cluster.node(NodeId(1)).status();
    assert!(status.last_index - status.first_index < 20, "it does not keep everything: {status:?}");
    cluster.catch_up();
    assert_eq!(cluster.node(AWAY).installs.len(), 1, "although others write all the time");
}

#[test]
fn a_state_that_does_not_arrive_is_sent_again() {
    // The connection breaks behind the announcement, in the second attempt: the first one is refused.
    let mut cluster = Cluster::new(LITTLE, usize::MAX, 3);
    cluster.write(5);
    cluster.away.insert(AWAY);
    cluster.write(100);
    cluster.away.clear();
    let host = cluster.node(AWAY).host.clone();
    host.spare_bytes.store(0, Ordering::Relaxed);
    let until = Instant::now() + LIMIT;
    let received = cluster.directory.path().join(AWAY.to_string()).join(PARTITION.to_string());
    while cluster.leader().is_none_or(|leader| cluster.nodes[leader].status().progress.len() < 3) {
        cluster.turn();
    }
    let refused_until = Instant::now() + Duration::from_millis(500);
    while Instant::now() < refused_until {
        cluster.turn();
        std::thread::sleep(Duration::from_millis(2));
        assert!(Instant::now() < until);
    }
    assert!(!received.exists(), "nothing was written to the full disk");
    host.spare_bytes.store(u64::MAX, Ordering::Relaxed);
    cluster.catch_up();
    assert!(!cluster.node(AWAY).installs.is_empty());
    let left: Vec<_> = std::fs::read_dir(received.join("received")).expect("it is there").collect();
    assert!(left.is_empty(), "nothing is left of states that did not become whole: {left:?}");
}

#[test]
fn a_state_that_was_lost_on_its_way_is_sent_again_soon() {
    // The part after the announcement vanishes with its connection, and nobody receives it.
    let mut cluster = Cluster::new(LITTLE, usize::MAX, usize::MAX);
    let is_lost = cluster.lost_part(1);
    cluster.write(5);
    cluster.away.insert(AWAY);
    cluster.write(100);
    cluster.away.clear();
    let until = Instant::now() + LIMIT;
    while !is_lost.load(Ordering::Relaxed) {
        cluster.turn();
        std::thread::sleep(Duration::from_millis(2));
        assert!(Instant::now() < until, "a state is sent");
    }
    // Whoever sends notices the broken connection; without that it would wait a minute for the answer.
    cluster.nodes.iter().for_each(|node| node.exchange.disconnected(AWAY));
    cluster.catch_up();
    assert_eq!(cluster.node(AWAY).installs.len(), 1);
}
