//! A received state takes its place, at a start and while a node runs.

use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::mpsc;

use engine::{Engine, EngineOptions, LivingRecords};
use protocol::{DEFAULT_TENANT, ProcessInstanceCreationIntent, ProcessInstanceCreationValue};
use replication::{
    GroupId, LogStore, MemoryLog, Message, NodeId, Position, Role, SnapshotRequest, SnapshotSink as _,
    SnapshotSource as _,
};

use super::*;
use crate::replication_loop::group_of;
use crate::snapshots::CheckpointSource;
use crate::state_handle::StateHandle;

const PARTITION: PartitionId = PartitionId(1);
const LIMIT: Duration = Duration::from_secs(60);

fn options(directory: &Path) -> NodeOptions {
    NodeOptions {
        data_directory: directory.to_owned(),
        checkpoint_interval: Duration::from_millis(10),
        ..NodeOptions::default()
    }
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + LIMIT;
    while !is_so() {
        assert!(Instant::now() < until, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whoever takes part in a group, with whatever log.
trait Member {
    fn id(&self) -> NodeId;
    fn take(&mut self, message: Message);
    fn round(&mut self, outbox: &mut Vec<Message>) -> replication::Round;
}

impl<L: LogStore> Member for Replicas<L> {
    fn id(&self) -> NodeId {
        self.node()
    }

    fn take(&mut self, message: Message) {
        self.step(message).expect("a proper message");
    }

    fn round(&mut self, outbox: &mut Vec<Message>) -> replication::Round {
        Replicas::round(self, outbox).expect("the log works")
    }
}

/// Lets members talk until they have nothing more to say; whoever is not among them hears nothing. Returns for whom a state is wanted.
fn talk(members: &mut [&mut dyn Member]) -> Vec<SnapshotRequest> {
    let mut requests = Vec::new();
    loop {
        let (mut outbox, mut more) = (Vec::new(), false);
        for member in &mut *members {
            let round = member.round(&mut outbox);
            more |= round.more;
            requests.extend(round.snapshots_to_send);
        }
        more |= !outbox.is_empty();
        for message in outbox {
            if let Some(member) = members.iter_mut().find(|member| member.id() == message.to()) {
                member.take(message);
            }
        }
        if !more {
            return requests;
        }
    }
}

fn open<L: LogStore>(node: NodeId, log: Arc<L>, voters: &[NodeId]) -> Replicas<L> {
    let options = ReplicationOptions { seed: node.0, ..ReplicationOptions::default() };
    let mut replicas = Replicas::open(node, log, options).expect("fine options");
    replicas.create_group(group_of(PARTITION), voters, 0).expect("new");
    replicas
}

/// Stages the state of a partition that is durable up to an index.
fn stage(received: &mut ReceivedStates, index: u64, scratch: &Path) {
    let mut engine = Engine::open(EngineOptions::new(PARTITION, 1), scratch).expect("new");
    engine.advance(index);
    let written = engine.freeze().expect("open").write().expect("writable");
    drop(engine.release(written).expect("its own"));
    copy(received, &engine.store().handle(), scratch);
}

fn copy(received: &mut ReceivedStates, store: &state::StoreHandle, scratch: &Path) -> u64 {
    let (store, _) = store.hold().expect("readable").expect("there is a checkpoint");
    let source = CheckpointSource { store: &store, directory: scratch.to_owned() };
    let (index, mut state) = source.open(GroupId(1)).expect("readable");
    let position = Position { index, term: 1 };
    let mut staged = received.stage(GroupId(1), position).expect("writable");
    std::io::copy(&mut state, &mut staged).expect("writable");
    staged.flush().expect("writable");
    staged.complete().expect("whole");
    index
}

/// The log of a node that was away until others had forgotten what it lacks, and then accepted the state that ends with the index that
/// is returned.
fn accept_state(directory: &DataDirectory, received: &mut ReceivedStates, scratch: &Path) -> u64 {
    let (member, leader, other) = (directory.member, NodeId(1), NodeId(2));
    let voters = [leader, other, member];
    let log = Arc::new(RaftEngineLog::open(&directory.paths.log(), replication::LogOptions::default()).expect("new"));
    let (mut first, mut second) =
        (open(leader, Arc::new(MemoryLog::new()), &voters), open(other, Arc::new(MemoryLog::new()), &voters));
    let mut away = open(member, log, &voters);
    let group = group_of(PARTITION);
    while first.status(group).expect("open").role != Role::Leader {
        first.tick();
        talk(&mut [&mut first, &mut second, &mut away]);
    }
    for number in 0..20u8 {
        first.propose(group, vec![number + 1]).expect("it leads");
        talk(&mut [&mut first, &mut second]);
    }
    let last = first.status(group).expect("open").commit;
    first.applied(group, last).expect("there");
    first.compact(group, last).expect("there");
    let mut requests = Vec::new();
    while requests.is_empty() {
        first.tick();
        requests = talk(&mut [&mut first, &mut second, &mut away]);
    }
    stage(received, last, scratch);
    let message = first.snapshot_message(&requests[0], last).expect("open").expect("there");
    away.step(message).expect("its state is complete");
    let installs = away.round(&mut Vec::new()).expect("the log works").snapshots_to_install;
    assert_eq!(installs.iter().map(|(_, position)| position.index).collect::<Vec<_>>(), [last]);
    last
}

#[test]
fn a_state_that_was_accepted_before_the_node_stopped_is_put_into_place_at_the_start() {
    for is_staged in [true, false] {
        let (data, scratch) = (tempfile::tempdir().expect("temporary"), tempfile::tempdir().expect("temporary"));
        let options = options(data.path());
        let directory = DataDirectory::open(&options).expect("new");
        let mut received = ReceivedStates::new(directory.paths.partitions());
        let index = accept_state(&directory, &mut received, scratch.path());
        if !is_staged {
            std::fs::remove_dir_all(directory.paths.partitions().join("1").join("received")).expect("it is there");
        }
        let opener = opening::state_opener(&options, &directory);
        let engine = opener.open(PARTITION).expect("new");
        let log = RaftEngineLog::open(&directory.paths.log(), replication::LogOptions::default()).expect("there");
        let (pieces, _pieces) = crossbeam_channel::bounded(1);
        let opened = opening::open_partition(&options, &directory, &log, &[], &pieces, &opener, (PARTITION, engine));
        match opened {
            Ok(opened) => {
                assert!(is_staged);
                assert_eq!(opened.engine.applied(), index);
                assert!(!received.has(PARTITION, index), "it is in its place");
            }
            Err(StartError::StateLost { compacted, .. }) => assert!(!is_staged && compacted == index),
            Err(error) => panic!("{error}"),
        }
    }
}

/// A command that is rejected, which is a record and an answer.
fn ask(client: &Client) {
    let value = ProcessInstanceCreationValue {
        bpmn_process_id: "unknown".into(),
        version: -1,
        tenant_id: DEFAULT_TENANT.into(),
        ..ProcessInstanceCreationValue::default()
    };
    let payload = Payload::ProcessInstanceCreation(ProcessInstanceCreationIntent::Create, Box::new(value));
    let (sender, answer) = mpsc::channel();
    client.submit(PARTITION, Command::new(Key::NONE, payload), move |reply| drop(sender.send(reply)));
    let reply = answer.recv_timeout(LIMIT).expect("an answer").expect("it is taken");
    assert!(reply.rejection.is_some());
}

/// Waits for a checkpoint of all that is applied.
fn settle(node: &Node, state: &StateHandle) {
    let entrance = node.shared.entrances.of(PARTITION);
    wait_until("everything is in a checkpoint", || {
        let (store, _) = state.get().expect("not replaced");
        let living = LivingRecords::of(PARTITION, &store).expect("readable");
        living.is_some_and(|living| living.place().position == entrance.last_position())
    });
}

#[test]
fn a_partition_goes_on_from_another_state_while_its_node_runs() {
    let (data, scratch) = (tempfile::tempdir().expect("temporary"), tempfile::tempdir().expect("temporary"));
    let node = Node::start(options(data.path())).expect("a new directory");
    assert!(node.wait_until_ready(LIMIT), "{:?}", node.failure());
    let (client, entrance) = (node.client(), node.shared.entrances.of(PARTITION));
    (0..5).for_each(|_| ask(&client));
    let state = node.host.states.of(PARTITION).expect("it holds it");
    settle(&node, &state);
    let file = node.host.opener.directory(PARTITION).join("data.mdb");
    let (before, position) = (std::fs::metadata(&file).expect("there").ino(), entrance.last_position());
    let mut received = ReceivedStates::new(node.directory.paths.partitions());
    let index = copy(&mut received, &state.get().expect("not replaced").0, scratch.path());

    let held = state.get().expect("not replaced").0.hold().expect("readable");
    let work = &node.host.work[node.host.thread_of(PARTITION)];
    entrance.close();
    work.send(Work::StepDown(PARTITION)).expect("it runs");
    work.send(Work::Install { partition: PARTITION, index }).expect("it runs");
    // In the place where it comes: after the state.
    work.send(Work::Lead { partition: PARTITION, leadership: entrance.leadership() }).expect("it runs");
    wait_until("the old state is taken away", || state.get().is_none());
    assert_eq!(std::fs::metadata(&file).expect("there").ino(), before, "somebody still holds it");
    assert!(!entrance.is_open());
    drop(held);
    wait_until("the other state is there", || state.get().is_some() && entrance.is_open());
    assert_ne!(std::fs::metadata(&file).expect("there").ino(), before);
    assert!(!received.has(PARTITION, index));
    assert_eq!(node.failure(), None);

    (0..5).for_each(|_| ask(&client));
    assert!(entrance.last_position() > position);
    settle(&node, &state);
    node.stop().expect("cleanly");
    let node = Node::start(options(data.path())).expect("the log and the state fit");
    assert!(node.wait_until_ready(LIMIT), "{:?}", node.failure());
}
