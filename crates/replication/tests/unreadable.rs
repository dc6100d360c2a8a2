//! What becomes of a group whose entries cannot be read back, on a disk that lost some of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use raft::eraftpb::Entry;
use replication::{
    GroupId, LogError, LogStore, MemoryLog, Message, NodeId, Options, ProposeError, Replicas, Role, SpaceReport,
    StoredGroup, WriteBatch, WriteReport,
};

const DAMAGED: GroupId = GroupId(1);
const SOUND: GroupId = GroupId(2);
const FIRST: NodeId = NodeId(1);
const SECOND: NodeId = NodeId(2);
const THIRD: NodeId = NodeId(3);

/// A log of whose group [`DAMAGED`] the entries before an index cannot be read.
#[derive(Default)]
struct Log {
    inner: MemoryLog,
    readable_from: AtomicU64,
}

impl LogStore for Log {
    fn groups(&self) -> Result<Vec<GroupId>, LogError> {
        self.inner.groups()
    }

    fn load(&self, group: GroupId) -> Result<Option<StoredGroup>, LogError> {
        self.inner.load(group)
    }

    fn write(&self, batch: &WriteBatch) -> Result<WriteReport, LogError> {
        self.inner.write(batch)
    }

    fn read(&self, group: GroupId, from: u64, to: u64, max_bytes: u64) -> Result<Vec<Entry>, LogError> {
        if group == DAMAGED && from < self.readable_from.load(Ordering::Relaxed) {
            let (record, problem) = (from.to_string(), "its checksum does not fit".to_owned());
            return Err(LogError::Unreadable { group, record, problem });
        }
        self.inner.read(group, from, to, max_bytes)
    }

    fn reclaim_space(&self) -> Result<SpaceReport, LogError> {
        self.inner.reclaim_space()
    }
}

fn open(node: NodeId, log: &Arc<Log>, voters: &[NodeId]) -> Replicas<Log> {
    // Nothing stays in memory that the log has to read.
    let options = Options { seed: node.0, recent_entries_bytes: 0, ..Options::default() };
    let mut replicas = Replicas::open(node, Arc::clone(log), options).expect("the options are fine");
    for group in [DAMAGED, SOUND] {
        replicas.create_group(group, voters, 0).expect("the group opens");
    }
    replicas
}

/// Lets the nodes talk, of which those that are away hear nothing. Returns which groups of the first one failed, and for which it
/// would send a snapshot.
fn talk(nodes: &mut [&mut Replicas<Log>], away: Option<NodeId>) -> (Vec<GroupId>, Vec<(GroupId, u64)>) {
    let (mut failed, mut snapshots) = (Vec::new(), Vec::new());
    loop {
        let (mut outbox, mut more): (Vec<Message>, _) = (Vec::new(), false);
        for node in &mut *nodes {
            let round = node.round(&mut outbox).expect("the node goes on");
            more |= round.more;
            failed.extend(round.failed.iter().map(|(group, _)| *group));
            let requests = round.snapshots_to_send.iter();
            snapshots.extend(requests.map(|request| (request.group, request.at_least.index)));
        }
        outbox.retain(|message| Some(message.to()) != away && Some(message.from()) != away);
        more |= !outbox.is_empty();
        for message in outbox {
            let node = nodes.iter_mut().find(|node| node.node() == message.to()).expect("all are here");
            node.step(message).expect("a proper message");
        }
        if !more {
            return (failed, snapshots);
        }
    }
}

#[test]
fn a_follower_that_needs_unreadable_entries_gets_a_snapshot_that_includes_them() {
    let (voters, log) = ([FIRST, SECOND, THIRD], Arc::new(Log::default()));
    let mut first = open(FIRST, &log, &voters);
    let mut second = open(SECOND, &Arc::default(), &voters);
    let mut third = open(THIRD, &Arc::default(), &voters);
    let leads = |first: &Replicas<Log>, group| first.status(group).expect("open").role == Role::Leader;
    while !leads(&first, DAMAGED) || !leads(&first, SOUND) {
        first.tick();
        talk(&mut [&mut first, &mut second, &mut third], None);
    }
    for number in 1..=20u8 {
        for group in [DAMAGED, SOUND] {
            first.propose(group, vec![number]).expect("it leads");
        }
        talk(&mut [&mut first, &mut second, &mut third], Some(THIRD));
    }
    let last = first.status(DAMAGED).expect("open").last_index;
    first.applied(DAMAGED, last - 10).expect("readable");
    log.readable_from.store(last - 5, Ordering::Relaxed);
    let mut snapshots = Vec::new();
    let mut go_on = |first: &mut Replicas<Log>, third: &mut Replicas<Log>, ticks| {
        for _ in 0..ticks {
            first.tick();
            let (failed, sent) = talk(&mut [first, &mut second, third], None);
            assert_eq!(failed, [], "no group stops");
            snapshots.extend(sent);
        }
        std::mem::take(&mut snapshots)
    };
    assert_eq!(go_on(&mut first, &mut third, 10), [], "the state does not include all that cannot be read");
    let caught_up = third.status(SOUND).expect("open");
    assert_eq!(caught_up.last_index, first.status(SOUND).expect("open").last_index, "the other group goes on");
    first.applied(DAMAGED, last).expect("there");
    assert_eq!(go_on(&mut first, &mut third, 10), [(DAMAGED, last)]);
    first.propose(DAMAGED, vec![21]).expect("it still leads");
}

#[test]
fn a_group_stops_alone_when_what_it_must_apply_cannot_be_read() {
    let log = Arc::new(Log::default());
    let mut alone = open(FIRST, &log, &[FIRST]);
    talk(&mut [&mut alone], None);
    for group in [DAMAGED, SOUND] {
        alone.propose(group, b"before".to_vec()).expect("it leads");
    }
    talk(&mut [&mut alone], None);
    let last = alone.status(DAMAGED).expect("open").last_index;
    drop(alone);
    log.readable_from.store(last, Ordering::Relaxed);
    let mut alone = open(FIRST, &log, &[FIRST]);
    let (failed, _) = talk(&mut [&mut alone], None);
    assert_eq!(failed, [DAMAGED]);
    assert_eq!(alone.status(DAMAGED).expect("open").role, Role::Follower);
    assert!(matches!(alone.propose(DAMAGED, vec![1]), Err(ProposeError::NotLeader { .. })));
    alone.propose(SOUND, vec![1]).expect("it leads");
    assert_eq!(talk(&mut [&mut alone], None).0, [], "said once");
}
