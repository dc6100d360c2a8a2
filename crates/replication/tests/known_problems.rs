//! Known problems of the libraries below and of machines, each reproduced on purpose.

use std::io::{Result, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use protobuf::Message as _;
use raft::eraftpb::{self, MessageType};
use raft_engine::env::{DefaultFileSystem, FileSystem, Handle, Permission, WriteExt};
use replication::{
    CrashPoint, GroupId, LogError, LogOptions, LogStore, MembershipChange, MemoryLog, Message, NodeId, Options,
    ProposeError, RaftEngineLog, Replicas, ReplicationError, Role, StepError,
};

const GROUP: GroupId = GroupId(0);
const FIRST: NodeId = NodeId(1);
const SECOND: NodeId = NodeId(2);

fn raft(message: &Message) -> eraftpb::Message {
    let mut bytes = Vec::new();
    message.encode(&mut bytes);
    eraftpb::Message::parse_from_bytes(&bytes[4..]).expect("a message is a group and Raft's bytes")
}

fn message(raft: &eraftpb::Message) -> Message {
    let mut bytes = GROUP.0.to_be_bytes().to_vec();
    raft.write_to_vec(&mut bytes).expect("encodable");
    Message::decode(&bytes, bytes.len()).expect("valid")
}

fn open(node: NodeId, voters: &[NodeId], log: &Arc<MemoryLog>) -> Replicas<MemoryLog> {
    let options = Options { seed: node.0, ..Options::default() };
    let mut replicas = Replicas::open(node, Arc::clone(log), options).expect("the options are fine");
    replicas.create_group(GROUP, voters, 0).expect("the group opens");
    replicas
}

/// Lets two nodes talk until they have nothing more to say.
fn talk(nodes: &mut [&mut Replicas<MemoryLog>]) {
    loop {
        let mut outbox: Vec<Message> = Vec::new();
        let mut more = false;
        for node in &mut *nodes {
            more |= node.round(&mut outbox).expect("the log works").more;
        }
        more |= !outbox.is_empty();
        for message in outbox {
            let node = nodes.iter_mut().find(|node| node.node() == message.to()).expect("both are here");
            node.step(message).expect("a proper message");
        }
        if !more {
            return;
        }
    }
}

/// Two nodes, the first of which leads, with some entries on both.
fn leader_and_follower() -> (Replicas<MemoryLog>, Replicas<MemoryLog>) {
    let voters = [FIRST, SECOND];
    let mut first = open(FIRST, &voters, &Arc::default());
    let mut second = open(SECOND, &voters, &Arc::default());
    while first.status(GROUP).expect("open").role != Role::Leader {
        first.tick();
        talk(&mut [&mut first, &mut second]);
    }
    for number in 0..10u8 {
        first.propose(GROUP, vec![number]).expect("it leads");
        talk(&mut [&mut first, &mut second]);
    }
    (first, second)
}

/// tikv/raft-rs#557: a stale rejection made a probing leader step back behind what the follower had confirmed.
#[test]
fn a_stale_rejection_does_not_take_a_leader_back() {
    let (mut leader, mut follower) = leader_and_follower();
    let status = leader.status(GROUP).expect("open");
    let matched = status.progress.iter().find(|member| member.node == SECOND).expect("a member").matched;
    assert_eq!(matched, status.last_index);
    for (rejected, hint) in [(matched, 1), (matched, matched - 1), (matched + 1, 1), (1, 0)] {
        // A lost connection makes the leader probe from what is confirmed.
        leader.unreachable(SECOND);
        let mut rejection = eraftpb::Message { from: 2, to: 1, term: status.term, ..eraftpb::Message::default() };
        rejection.set_msg_type(MessageType::MsgAppendResponse);
        rejection.reject = true;
        rejection.index = rejected;
        rejection.reject_hint = hint;
        rejection.log_term = 1;
        leader.step(message(&rejection)).expect("a proper message");
        leader.propose(GROUP, b"next".to_vec()).expect("it leads");
        let mut outbox: Vec<Message> = Vec::new();
        leader.round(&mut outbox).expect("the log works");
        let appends = outbox.iter().map(raft).filter(|message| message.get_msg_type() == MessageType::MsgAppend);
        for append in appends {
            assert!(append.index >= matched, "sent again from {} although {matched} is confirmed", append.index);
        }
        for message in outbox {
            follower.step(message).expect("a proper message");
        }
        talk(&mut [&mut leader, &mut follower]);
        let status = (leader.status(GROUP).expect("open"), follower.status(GROUP).expect("open"));
        assert_eq!(status.0.commit, status.0.last_index);
        assert_eq!(status.1.last_index, status.0.last_index);
    }
}

/// A received state is noted in the log again and again while the disk is full, and the old state's last checkpoint ends
/// meanwhile. Its compaction must not take the log back to before the received state.
#[test]
fn a_compaction_does_not_follow_a_received_state_that_it_is_older_than() {
    let (leader, mut follower) = leader_and_follower();
    let (status, behind) = (leader.status(GROUP).expect("open"), 100);
    let mut announcement = eraftpb::Message { from: 1, to: 2, term: status.term, ..eraftpb::Message::default() };
    announcement.set_msg_type(MessageType::MsgSnapshot);
    let metadata = announcement.mut_snapshot().mut_metadata();
    (metadata.index, metadata.term) = (behind, status.term);
    metadata.mut_conf_state().voters = vec![1, 2];
    follower.step(message(&announcement)).expect("a proper message");
    follower.log().refuse_writes(1);
    let mut outbox: Vec<Message> = Vec::new();
    follower.round(&mut outbox).expect_err("the disk is full");

    let handed_out = follower.status(GROUP).expect("open").handed_out;
    follower.applied(GROUP, handed_out).expect("it was handed out");
    follower.compact(GROUP, handed_out).expect("up to the checkpoint");
    let round = follower.round(&mut outbox).expect("there is room again");
    assert_eq!(round.snapshots_to_install.iter().map(|(_, position)| position.index).collect::<Vec<_>>(), [behind]);
    while follower.round(&mut outbox).expect("the log works").more {}
    let log = Arc::clone(follower.log());
    drop(follower);
    assert_eq!(log.load(GROUP).expect("readable").expect("known").anchor.compacted.index, behind);
    let mut again = Replicas::open(SECOND, log, Options::default()).expect("the options are fine");
    again.create_group(GROUP, &[FIRST, SECOND], behind).expect("the log stands on the received state");
}

/// A sole voter wins its election on the spot. If anything of the new term left before the term is durable, a crash could
/// make it lead the same term twice with different entries.
#[test]
fn a_sole_voter_says_nothing_in_a_term_that_is_not_durable() {
    let log = Arc::new(MemoryLog::new());
    let mut first = open(FIRST, &[FIRST], &log);
    let mut second = open(SECOND, &[], &Arc::default());
    talk(&mut [&mut first, &mut second]);
    first.change_membership(GROUP, &[MembershipChange::AddLearner(SECOND)]).expect("nothing is under way");
    talk(&mut [&mut first, &mut second]);
    assert_eq!(second.status(GROUP).expect("open").leader, Some(FIRST));
    drop(first);

    let mut restarted = open(FIRST, &[], &log);
    let mut outbox: Vec<Message> = Vec::new();
    let mut rounds = 0;
    while restarted.status(GROUP).expect("open").role != Role::Leader {
        log.crash_at_next_write(CrashPoint::BeforeSync);
        match restarted.round(&mut outbox) {
            Ok(_) => rounds += 1,
            Err(ReplicationError::Log(LogError::Crashed)) => break,
            Err(error) => panic!("{error}"),
        }
        assert!(rounds < 10, "it leads by itself");
    }
    assert_eq!(outbox.iter().map(raft).collect::<Vec<_>>(), [], "the term was lost in the crash");
    drop(restarted);

    log.recover();
    let mut restarted = open(FIRST, &[], &log);
    talk(&mut [&mut restarted, &mut second]);
    restarted.propose(GROUP, b"after the crash".to_vec()).expect("it leads");
    talk(&mut [&mut restarted, &mut second]);
    let (leader, learner) = (restarted.status(GROUP).expect("open"), second.status(GROUP).expect("open"));
    assert_eq!((leader.commit, learner.commit), (leader.last_index, leader.last_index));
}

/// Raft panics when a heartbeat names a commit index that the follower does not have.
#[test]
fn a_follower_with_an_older_disk_is_told_so() {
    let (mut leader, _) = leader_and_follower();
    let mut replaced = open(SECOND, &[FIRST, SECOND], &Arc::default());
    let mut outbox: Vec<Message> = Vec::new();
    leader.tick();
    leader.tick();
    leader.round(&mut outbox).expect("the log works");
    let heartbeat = outbox.into_iter().find(|message| raft(message).get_msg_type() == MessageType::MsgHeartbeat);
    let refusal = replaced.step(heartbeat.expect("a heartbeat after two ticks"));
    assert!(matches!(refusal, Err(StepError::EntriesLost { last_index: 2, .. })), "{refusal:?}");
}

/// The default file system, whose syncs and writes can be made to fail.
struct FaultyFiles {
    fail_syncs: Arc<AtomicBool>,
    fail_writes: Arc<AtomicBool>,
}

struct FaultyHandle {
    file: Arc<<DefaultFileSystem as FileSystem>::Handle>,
    fail_syncs: Arc<AtomicBool>,
}

struct FaultyWriter {
    file: <DefaultFileSystem as FileSystem>::Writer,
    fail_writes: Arc<AtomicBool>,
}

impl FaultyFiles {
    fn handle(&self, file: <DefaultFileSystem as FileSystem>::Handle) -> FaultyHandle {
        FaultyHandle { file: Arc::new(file), fail_syncs: Arc::clone(&self.fail_syncs) }
    }
}

impl FileSystem for FaultyFiles {
    type Handle = FaultyHandle;
    type Reader = <DefaultFileSystem as FileSystem>::Reader;
    type Writer = FaultyWriter;

    fn create<P: AsRef<Path>>(&self, path: P) -> Result<FaultyHandle> {
        DefaultFileSystem.create(path).map(|file| self.handle(file))
    }

    fn open<P: AsRef<Path>>(&self, path: P, permission: Permission) -> Result<FaultyHandle> {
        DefaultFileSystem.open(path, permission).map(|file| self.handle(file))
    }

    fn delete<P: AsRef<Path>>(&self, path: P) -> Result<()> {
        DefaultFileSystem.delete(path)
    }

    fn rename<P: AsRef<Path>>(&self, from: P, to: P) -> Result<()> {
        DefaultFileSystem.rename(from, to)
    }

    fn new_reader(&self, handle: Arc<FaultyHandle>) -> Result<Self::Reader> {
        DefaultFileSystem.new_reader(Arc::clone(&handle.file))
    }

    fn new_writer(&self, handle: Arc<FaultyHandle>) -> Result<FaultyWriter> {
        let file = DefaultFileSystem.new_writer(Arc::clone(&handle.file))?;
        Ok(FaultyWriter { file, fail_writes: Arc::clone(&self.fail_writes) })
    }
}

impl Handle for FaultyHandle {
    fn truncate(&self, offset: usize) -> Result<()> {
        Handle::truncate(self.file.as_ref(), offset)
    }

    fn file_size(&self) -> Result<usize> {
        self.file.file_size()
    }

    fn sync(&self) -> Result<()> {
        if self.fail_syncs.load(Ordering::Acquire) {
            return Err(std::io::Error::other("the disk is gone"));
        }
        self.file.sync()
    }
}

impl Write for FaultyWriter {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        if self.fail_writes.load(Ordering::Acquire) {
            // Half of it gets through.
            self.file.write_all(&bytes[..bytes.len() / 2])?;
            return Err(std::io::Error::other("the disk is full"));
        }
        self.file.write(bytes)
    }

    fn flush(&mut self) -> Result<()> {
        self.file.flush()
    }
}

impl Seek for FaultyWriter {
    fn seek(&mut self, to: SeekFrom) -> Result<u64> {
        self.file.seek(to)
    }
}

impl WriteExt for FaultyWriter {
    fn truncate(&mut self, offset: usize) -> Result<()> {
        self.file.truncate(offset)
    }

    fn allocate(&mut self, offset: usize, size: usize) -> Result<()> {
        self.file.allocate(offset, size)
    }
}

fn node_on_faulty_disk(
    directory: &Path,
    fail_syncs: &Arc<AtomicBool>,
    fail_writes: &Arc<AtomicBool>,
) -> Replicas<RaftEngineLog<FaultyFiles>> {
    let files = FaultyFiles { fail_syncs: Arc::clone(fail_syncs), fail_writes: Arc::clone(fail_writes) };
    let log = RaftEngineLog::open_with(directory, LogOptions::default(), Arc::new(files)).expect("the disk works");
    let mut replicas = Replicas::open(FIRST, Arc::new(log), Options::default()).expect("the options are fine");
    replicas.create_group(GROUP, &[FIRST], 0).expect("the group opens");
    replicas
}

/// Runs rounds until there is nothing to do; returns the first bytes of what was handed out.
fn settle<L: LogStore>(replicas: &mut Replicas<L>) -> std::result::Result<Vec<u8>, ReplicationError> {
    let mut handed_out = Vec::new();
    loop {
        let round = replicas.round(&mut Vec::new())?;
        handed_out.extend(round.committed.iter().flat_map(|committed| &committed.entries).map(|entry| entry.data[0]));
        if !round.more {
            return Ok(handed_out);
        }
    }
}

#[test]
fn after_a_failed_sync_nothing_is_vouched_for_any_more() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (fail_syncs, fail_writes) = (Arc::default(), Arc::default());
    let mut replicas = node_on_faulty_disk(directory.path(), &fail_syncs, &fail_writes);
    settle(&mut replicas).expect("the disk works");
    replicas.propose(GROUP, vec![1]).expect("it leads");
    assert_eq!(settle(&mut replicas).expect("the disk works"), [1]);

    replicas.propose(GROUP, vec![2]).expect("it leads");
    fail_syncs.store(true, Ordering::Release);
    let error = settle(&mut replicas).expect_err("the sync failed");
    assert!(matches!(&error, ReplicationError::Log(LogError::SyncFailed { .. })), "{error}");
    assert!(error.to_string().contains("this process must stop"), "{error}");
    // Even if the disk pretends to be well again: the kernel may have dropped the pages.
    fail_syncs.store(false, Ordering::Release);
    for _ in 0..3 {
        let error = settle(&mut replicas).expect_err("there is no way back");
        assert!(matches!(error, ReplicationError::Log(LogError::SyncFailed { .. })), "{error}");
    }
    assert!(matches!(replicas.log().reclaim_space(), Err(LogError::SyncFailed { .. })));
    assert_eq!(replicas.propose(GROUP, vec![3]), Err(ProposeError::LogUnavailable));
}

#[test]
fn a_full_disk_heals() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (fail_syncs, fail_writes) = (Arc::default(), Arc::default());
    let mut replicas = node_on_faulty_disk(directory.path(), &fail_syncs, &fail_writes);
    settle(&mut replicas).expect("the disk works");
    for number in 0..4 {
        replicas.propose(GROUP, vec![number; 3000]).expect("it leads");
        fail_writes.store(true, Ordering::Release);
        for _ in 0..3 {
            let error = settle(&mut replicas).expect_err("the disk is full");
            assert!(matches!(error, ReplicationError::Log(LogError::Io { .. })), "{error}");
        }
        fail_writes.store(false, Ordering::Release);
        assert_eq!(settle(&mut replicas).expect("there is room again"), [number]);
    }
    drop(replicas);
    let mut replicas = node_on_faulty_disk(directory.path(), &fail_syncs, &fail_writes);
    assert_eq!(settle(&mut replicas).expect("the disk works"), [0, 1, 2, 3]);
}

/// The engine panics when it is asked for an entry below its first one (tikv/raft-engine#370).
#[test]
fn reading_below_the_first_index_is_an_error() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let log = Arc::new(RaftEngineLog::open(directory.path(), LogOptions::default()).expect("a new log"));
    let mut replicas = Replicas::open(FIRST, Arc::clone(&log), Options::default()).expect("the options are fine");
    replicas.create_group(GROUP, &[FIRST], 0).expect("the group opens");
    settle(&mut replicas).expect("the disk works");
    for number in 0..20u8 {
        replicas.propose(GROUP, vec![number]).expect("it leads");
    }
    settle(&mut replicas).expect("the disk works");
    replicas.applied(GROUP, 10).expect("it was handed out");
    replicas.compact(GROUP, 10).expect("up to the checkpoint");
    settle(&mut replicas).expect("the disk works");
    for from in 0..=10 {
        assert!(matches!(log.read(GROUP, from, 15, u64::MAX), Err(LogError::OutOfRange { first_index: 11, .. })));
    }
    assert_eq!(log.read(GROUP, 11, 15, u64::MAX).expect("the rest is there").len(), 4);
}
