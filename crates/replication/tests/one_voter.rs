//! A node that is alone in all of its groups.

use std::sync::Arc;

use replication::{
    Committed, CrashPoint, GroupId, LogError, LogStore, MembershipChange, MemoryLog, Message, NodeId, Options,
    ProposeError, Replicas, ReplicationError, Role, Round,
};

const ME: NodeId = NodeId(1);
const GROUP: GroupId = GroupId(3);

fn open(log: &Arc<MemoryLog>, groups: u32, applied: u64) -> Replicas<MemoryLog> {
    let mut replicas = Replicas::open(ME, Arc::clone(log), Options::default()).expect("the options are fine");
    for group in 0..groups {
        replicas.create_group(GroupId(group), &[ME], applied).expect("a new or intact group opens");
    }
    replicas
}

/// Runs rounds until there is nothing to do.
fn settle<L: LogStore>(replicas: &mut Replicas<L>) -> Vec<Round> {
    let mut rounds = Vec::new();
    let mut outbox: Vec<Message> = Vec::new();
    loop {
        rounds.push(replicas.round(&mut outbox).expect("the log works"));
        assert!(outbox.is_empty(), "a node that is alone talks to nobody");
        if rounds.last().is_some_and(|round| !round.more) {
            return rounds;
        }
    }
}

fn data(committed: &[Committed], group: GroupId) -> Vec<Vec<u8>> {
    let of_group = committed.iter().filter(|committed| committed.group == group);
    of_group.flat_map(|committed| &committed.entries).map(|entry| entry.data.to_vec()).collect()
}

fn all_data(rounds: &[Round], group: GroupId) -> Vec<Vec<u8>> {
    rounds.iter().flat_map(|round| data(&round.committed, group)).collect()
}

#[test]
fn leads_without_any_tick_and_commits_in_the_round_that_persists() {
    let log = Arc::new(MemoryLog::new());
    let mut replicas = open(&log, 4, 0);
    let rounds = settle(&mut replicas);
    let last_role = rounds.iter().flat_map(|round| &round.role_changes).rfind(|change| change.group == GROUP);
    assert_eq!(last_role.map(|change| (change.role, change.leader)), Some((Role::Leader, Some(ME))));
    assert!(rounds.iter().any(|round| round.caught_up.iter().any(|(group, _)| *group == GROUP)));

    replicas.propose(GROUP, b"first".to_vec()).expect("the leader takes proposals");
    replicas.propose(GROUP, b"second".to_vec()).expect("the leader takes proposals");
    let round = replicas.round(&mut Vec::new()).expect("the log works");
    assert_eq!(data(&round.committed, GROUP), [b"first".to_vec(), b"second".to_vec()]);
    assert!(!round.more);
}

#[test]
fn all_groups_share_one_sync_per_round() {
    const GROUPS: u32 = 30;
    let log = Arc::new(MemoryLog::new());
    let mut replicas = open(&log, GROUPS, 0);
    let rounds = settle(&mut replicas);
    assert!(log.syncs() <= 2, "{} syncs to start {GROUPS} groups", log.syncs());
    assert!(rounds.len() <= 3, "{} rounds", rounds.len());

    let before = log.syncs();
    for group in 0..GROUPS {
        for proposal in 0..64u8 {
            replicas.propose(GroupId(group), vec![proposal; 10]).expect("the leader takes proposals");
        }
    }
    let round = replicas.round(&mut Vec::new()).expect("the log works");
    assert_eq!(log.syncs() - before, 1);
    assert_eq!(round.syncs, 1);
    for group in 0..GROUPS {
        assert_eq!(data(&round.committed, GroupId(group)).len(), 64);
    }
    let idle = replicas.round(&mut Vec::new()).expect("the log works");
    assert_eq!((idle.syncs, idle.committed.len()), (0, 0), "nothing to do costs no sync");
}

#[test]
fn what_was_handed_out_survives_a_crash_and_what_was_not_synced_does_not() {
    for point in [CrashPoint::BeforeSync, CrashPoint::AfterSync] {
        let log = Arc::new(MemoryLog::new());
        let mut replicas = open(&log, 4, 0);
        settle(&mut replicas);
        replicas.propose(GROUP, b"kept".to_vec()).expect("the leader takes proposals");
        settle(&mut replicas);
        replicas.propose(GROUP, b"in doubt".to_vec()).expect("the leader takes proposals");
        log.crash_at_next_write(point);
        let error = replicas.round(&mut Vec::new()).expect_err("the node crashes");
        assert!(matches!(error, ReplicationError::Log(LogError::Crashed)));
        drop(replicas);

        log.recover();
        let mut replicas = open(&log, 4, 0);
        let handed_out = all_data(&settle(&mut replicas), GROUP);
        let expected: &[&[u8]] = match point {
            CrashPoint::BeforeSync => &[b"kept"],
            CrashPoint::AfterSync => &[b"kept", b"in doubt"],
        };
        assert_eq!(handed_out, expected);
        replicas.propose(GROUP, b"new".to_vec()).expect("the node leads again");
        assert_eq!(all_data(&settle(&mut replicas), GROUP), [b"new".to_vec()]);
    }
}

#[test]
fn a_refused_write_acknowledges_nothing_and_is_repeated() {
    let log = Arc::new(MemoryLog::new());
    let mut replicas = open(&log, 4, 0);
    settle(&mut replicas);
    replicas.propose(GROUP, b"waits".to_vec()).expect("the leader takes proposals");
    log.refuse_writes(2);
    for _ in 0..2 {
        replicas.round(&mut Vec::new()).expect_err("the disk is full");
        assert_eq!(replicas.propose(GROUP, b"too early".to_vec()), Err(ProposeError::LogUnavailable));
    }
    assert_eq!(all_data(&settle(&mut replicas), GROUP), [b"waits".to_vec()]);
    replicas.propose(GROUP, b"goes on".to_vec()).expect("the leader takes proposals");
    assert_eq!(all_data(&settle(&mut replicas), GROUP), [b"goes on".to_vec()]);
}

#[test]
fn a_restart_hands_out_only_what_is_behind_the_checkpoint() {
    let log = Arc::new(MemoryLog::new());
    let mut replicas = open(&log, 4, 0);
    settle(&mut replicas);
    let mut up_to = 0;
    for number in 0..10u8 {
        replicas.propose(GROUP, vec![number]).expect("the leader takes proposals");
        let round = replicas.round(&mut Vec::new()).expect("the log works");
        if number == 6 {
            up_to = round.committed[0].up_to;
        }
    }
    replicas.applied(GROUP, up_to).expect("it was handed out");
    replicas.compact(GROUP, u64::MAX).expect("entries up to the checkpoint may go");
    settle(&mut replicas);
    let status = replicas.status(GROUP).expect("the group is open");
    assert_eq!((status.first_index, status.checkpoint), (up_to + 1, up_to));
    drop(replicas);

    let reopen = |applied| {
        let mut replicas = Replicas::open(ME, Arc::clone(&log), Options::default()).expect("the options are fine");
        replicas.create_group(GROUP, &[], applied).map(|()| replicas)
    };
    let mut replicas = reopen(up_to).expect("log and state fit");
    assert_eq!(all_data(&settle(&mut replicas), GROUP), [vec![7], vec![8], vec![9]]);
    drop(replicas);
    assert!(matches!(reopen(up_to - 1).map(|_| ()), Err(ReplicationError::StateBehindLog { .. })));
    assert!(matches!(reopen(1000).map(|_| ()), Err(ReplicationError::StateAheadOfLog { applied: 1000, .. })));
}

#[test]
fn proposals_are_limited() {
    let log = Arc::new(MemoryLog::new());
    let options = Options {
        max_entry_bytes: 100,
        max_append_message_bytes: 100,
        max_uncommitted_bytes: 250,
        ..Options::default()
    };
    let mut replicas = Replicas::open(ME, log, options).expect("the options are fine");
    replicas.create_group(GROUP, &[ME], 0).expect("a new group opens");
    assert_eq!(
        replicas.propose(GROUP, b"too early".to_vec()),
        Err(ProposeError::NotLeader { group: GROUP, leader: None })
    );
    settle(&mut replicas);
    assert_eq!(replicas.propose(GROUP, Vec::new()), Err(ProposeError::Empty));
    assert_eq!(replicas.propose(GROUP, vec![1; 101]), Err(ProposeError::TooLarge { bytes: 101, limit_bytes: 100 }));
    assert_eq!(replicas.propose(GroupId(9), vec![1]), Err(ProposeError::UnknownGroup(GroupId(9))));
    for _ in 0..2 {
        replicas.propose(GROUP, vec![1; 100]).expect("within the limit");
    }
    assert_eq!(replicas.propose(GROUP, vec![1; 100]), Err(ProposeError::Backlog { group: GROUP, limit_bytes: 250 }));
    assert_eq!(all_data(&settle(&mut replicas), GROUP).len(), 2);
    replicas.propose(GROUP, vec![1; 100]).expect("there is room again");
}

#[test]
fn a_removed_group_is_gone_and_can_be_created_anew() {
    let log = Arc::new(MemoryLog::new());
    let mut replicas = open(&log, 4, 0);
    settle(&mut replicas);
    replicas.propose(GROUP, b"old".to_vec()).expect("the leader takes proposals");
    settle(&mut replicas);
    replicas.remove_group(GROUP).expect("the group is open");
    replicas.create_group(GROUP, &[ME], 0).expect("the old group is gone");
    assert_eq!(all_data(&settle(&mut replicas), GROUP), Vec::<Vec<u8>>::new());
    replicas.remove_group(GROUP).expect("the group is open");
    settle(&mut replicas);
    assert_eq!(log.groups().expect("the log works"), [GroupId(0), GroupId(1), GroupId(2)]);
}

#[test]
fn a_retired_group_leads_no_more_and_its_log_does_not_grow() {
    let log = Arc::new(MemoryLog::new());
    let mut replicas = open(&log, 5, 0);
    settle(&mut replicas);
    let other = GroupId(1);
    replicas.propose(GROUP, b"on its way".to_vec()).expect("the leader takes proposals");
    replicas.retire(GROUP).expect("it is open");
    let refused = replicas.propose(GROUP, b"too late".to_vec());
    assert!(matches!(refused, Err(ProposeError::NotLeader { group: GROUP, .. })), "{refused:?}");
    let last_index = replicas.status(GROUP).expect("it is open").last_index;
    let rounds = settle(&mut replicas);
    let roles = rounds.iter().flat_map(|round| &round.role_changes).filter(|change| change.group == GROUP);
    assert_eq!(roles.map(|change| (change.role, change.leader)).collect::<Vec<_>>(), [(Role::Follower, None)]);
    for _ in 0..100 {
        replicas.tick();
        settle(&mut replicas);
        replicas.propose(other, b"the others go on".to_vec()).expect("the leader takes proposals");
    }
    let status = replicas.status(GROUP).expect("it is open");
    assert_eq!((status.role, status.last_index), (Role::Follower, last_index));
    // A restart opens it anew.
    let mut replicas = open(&log, 5, 0);
    settle(&mut replicas);
    assert_eq!(replicas.status(GROUP).map(|status| status.role), Some(Role::Leader));
}

#[test]
fn a_compaction_during_a_repeated_write_does_not_bring_the_old_members_back() {
    let log = Arc::new(MemoryLog::new());
    let mut replicas = open(&log, 4, 0);
    settle(&mut replicas);
    for _ in 0..5 {
        replicas.propose(GROUP, b"entry".to_vec()).expect("the leader takes proposals");
        settle(&mut replicas);
    }
    let handed_out = replicas.status(GROUP).expect("it is open").handed_out;
    let learner = NodeId(2);
    let mut outbox: Vec<Message> = Vec::new();
    replicas.change_membership(GROUP, &[MembershipChange::AddLearner(learner)]).expect("nothing is under way");
    log.refuse_writes(1);
    replicas.round(&mut outbox).expect_err("the disk is full");
    replicas.applied(GROUP, handed_out).expect("it was handed out");
    replicas.compact(GROUP, handed_out).expect("the log can be read");
    for _ in 0..5 {
        replicas.round(&mut outbox).expect("the disk has room again");
    }
    assert_eq!(replicas.status(GROUP).map(|status| status.first_index), Some(handed_out + 1));
    let replicas = {
        let mut replicas = Replicas::open(ME, Arc::clone(&log), Options::default()).expect("the options are fine");
        replicas.create_group(GROUP, &[ME], handed_out).expect("an intact group opens");
        replicas
    };
    let status = replicas.status(GROUP).expect("it is open");
    assert!(status.membership.contains(learner), "{:?}", status.membership);
    assert_eq!(status.first_index, handed_out + 1, "the compaction is durable as well");
}
