//! Three replicas (and two spare nodes) through everything that networks, disks and operators do.

mod cluster;

use std::sync::Arc;

use chance::Chance;
use cluster::{Cluster, Disk, GROUPS};
use proptest::prelude::*;
use replication::{CrashPoint, LogOptions, MembershipChange, MemoryLog, NodeId, RaftEngineLog, Role};

const FOUNDERS: usize = 3;

#[derive(Default)]
struct MemoryDisk(Arc<MemoryLog>);

impl Disk for MemoryDisk {
    type Log = MemoryLog;

    fn open(&mut self) -> Arc<MemoryLog> {
        self.0.recover();
        Arc::clone(&self.0)
    }

    fn crash_at_next_write(&mut self, chance: &mut Chance) {
        let point = if chance.one_in(2) { CrashPoint::BeforeSync } else { CrashPoint::AfterSync };
        self.0.crash_at_next_write(point);
    }
}

struct DirectoryDisk(tempfile::TempDir);

impl Disk for DirectoryDisk {
    type Log = RaftEngineLog;

    fn open(&mut self) -> Arc<RaftEngineLog> {
        let options = LogOptions { file_bytes: 8 << 10, reclaim_above_bytes: 16 << 10 };
        Arc::new(RaftEngineLog::open(self.0.path(), options).expect("the log is intact"))
    }

    fn crash_at_next_write(&mut self, _: &mut Chance) {}
}

fn memory_disks(count: usize) -> Vec<MemoryDisk> {
    (0..count).map(|_| MemoryDisk::default()).collect()
}

/// Random events, then peace, then equal states without anything lost.
fn storm<D: Disk>(seed: u64, disks: Vec<D>, steps: usize) -> Cluster<D> {
    let mut cluster = Cluster::new(seed, FOUNDERS, disks);
    cluster.reliable = false;
    let count = cluster.nodes.len();
    for _ in 0..steps {
        let at = cluster.chance.index(count);
        let group = GROUPS[cluster.chance.index(GROUPS.len())];
        match cluster.chance.index(100) {
            0 => cluster.crash_at_next_write(at),
            1 => cluster.crash(at),
            2..=4 => {
                cluster.checkpoint(at, group, true);
            }
            5 => {
                let to = NodeId(1 + cluster.chance.index(count) as u64);
                cluster.transfer(group, to);
            }
            6 | 7 => {
                let changes = random_changes(&mut cluster.chance, count);
                // The leader may refuse it, for example because another change is under way.
                let _ = cluster.change_membership(group, &changes);
            }
            8 => {
                let other = cluster.chance.index(count);
                cluster.cut(NodeId(at as u64 + 1), NodeId(other as u64 + 1));
            }
            9 | 10 => cluster.heal(),
            11..=24 => {
                if cluster.nodes[at].running.is_none() {
                    cluster.start(at, FOUNDERS);
                }
            }
            25..=50 => cluster.tick(at),
            51..=62 => cluster.propose(cluster.leader(group).unwrap_or(at), group),
            _ => {
                for _ in 0..cluster.chance.index(4) {
                    cluster.deliver(at);
                }
            }
        }
        cluster.round(at);
    }
    cluster.converge(FOUNDERS);
    for group in GROUPS {
        let entries = |cluster: &Cluster<D>| cluster.state(cluster.leader(group).expect("it converged"), group).entries;
        let before = entries(&cluster);
        // A transfer of the leadership may still be under way; it ends by itself.
        for _ in 0..20 {
            cluster.propose(cluster.leader(group).expect("it converged"), group);
            cluster.converge(FOUNDERS);
        }
        assert!(entries(&cluster) > before + 5, "the healed cluster makes progress");
        cluster.check_nothing_lost(group);
    }
    cluster
}

fn random_changes(chance: &mut Chance, nodes: usize) -> Vec<MembershipChange> {
    (0..1 + chance.index(2))
        .map(|_| {
            let node = NodeId(1 + chance.index(nodes) as u64);
            match chance.index(4) {
                0 => MembershipChange::Remove(node),
                1 => MembershipChange::AddLearner(node),
                _ => MembershipChange::AddVoter(node),
            }
        })
        .collect()
}

/// `PROPTEST_CASES` makes it weather for longer.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(40)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases()) })]

    #[test]
    fn replicas_are_equal_after_any_storm(seed: u64) {
        storm(seed, memory_disks(5), 8000);
    }
}

#[test]
fn the_storms_contain_what_they_should() {
    let mut totals = [0u64; 5];
    for seed in 0..8 {
        let history = storm(seed, memory_disks(5), 8000).history;
        let counts = [
            u64::from(history.snapshots_installed),
            u64::from(history.crashes),
            u64::from(history.leader_changes),
            u64::from(history.membership_changes),
            history.proposals,
        ];
        totals = std::array::from_fn(|at| totals[at] + counts[at]);
    }
    let [snapshots, crashes, leaders, memberships, proposals] = totals;
    println!(
        "{snapshots} snapshots, {crashes} crashes, {leaders} elections, {memberships} membership changes, {proposals} proposals"
    );
    assert!(snapshots >= 20 && crashes >= 100 && leaders >= 50 && memberships >= 100 && proposals >= 1000);
}

#[test]
fn a_seed_repeats_a_run() {
    let run = |seed| {
        let cluster = storm(seed, memory_disks(5), 1500);
        GROUPS.map(|group| cluster.state(cluster.leader(group).expect("it converged"), group).clone())
    };
    assert_eq!(run(7), run(7));
    assert_ne!(run(7), run(8));
}

#[test]
fn replicas_in_directories_are_equal_after_storms() {
    for seed in 0..3 {
        let disks = (0..5).map(|_| DirectoryDisk(tempfile::tempdir().expect("a temporary directory"))).collect();
        storm(seed, disks, 1500);
    }
}

#[test]
fn another_leader_takes_over_and_the_old_one_comes_back() {
    let mut cluster = Cluster::new(1, FOUNDERS, memory_disks(FOUNDERS));
    cluster.converge(FOUNDERS);
    let group = GROUPS[0];
    let old = cluster.leader(group).expect("it converged");
    for _ in 0..20 {
        cluster.propose(old, group);
    }
    cluster.converge(FOUNDERS);
    cluster.crash(old);
    let mut new = None;
    for step in 0..500 {
        for at in 0..FOUNDERS {
            if step % 5 == 0 {
                cluster.tick(at);
            }
            while cluster.deliver(at) {}
            cluster.round(at);
        }
        new = cluster.leader(group);
        if new.is_some() {
            break;
        }
    }
    let new = new.expect("the remaining two elect a leader");
    assert_ne!(new, old);
    cluster.propose(new, group);
    cluster.converge(FOUNDERS);
    assert_eq!(cluster.state(old, group).entries, 21);

    cluster.transfer(group, NodeId(old as u64 + 1));
    cluster.converge(FOUNDERS);
    assert_eq!(cluster.leader(group), Some(old), "the leadership moved back on request");
}

#[test]
fn a_learner_catches_up_from_a_snapshot_is_promoted_and_replaces_a_member() {
    let mut cluster = Cluster::new(2, FOUNDERS, memory_disks(4));
    cluster.converge(FOUNDERS);
    let group = GROUPS[1];
    let leader = cluster.leader(group).expect("it converged");
    for _ in 0..50 {
        cluster.propose(leader, group);
        cluster.converge(FOUNDERS);
    }
    for at in 0..FOUNDERS {
        cluster.checkpoint(at, group, true);
    }
    let status = |cluster: &Cluster<MemoryDisk>, at: usize| {
        cluster.nodes[at].running.as_ref().expect("it runs").replicas.status(group).expect("it is open")
    };
    cluster.converge(FOUNDERS);
    assert!(status(&cluster, leader).first_index > 50, "the log was compacted");
    assert_eq!(status(&cluster, 3).membership.voters, [], "node 4 is no member yet");

    let new = NodeId(4);
    cluster.change_membership(group, &[MembershipChange::AddLearner(new)]).expect("nothing is under way");
    cluster.converge(FOUNDERS);
    assert_eq!(cluster.history.snapshots_installed, 1);
    assert_eq!(status(&cluster, 3).role, Role::Learner);
    assert_eq!(cluster.state(3, group).entries, 50);

    let old = (1..=3).map(NodeId).find(|node| node.0 != leader as u64 + 1).expect("there are two");
    let leaving = NodeId(leader as u64 + 1);
    cluster
        .change_membership(group, &[MembershipChange::Remove(leaving)])
        .expect_err("the leader cannot remove itself");
    cluster
        .change_membership(group, &[MembershipChange::AddVoter(new), MembershipChange::Remove(old)])
        .expect("nothing is under way");
    cluster.converge(FOUNDERS);
    let membership = status(&cluster, 3).membership;
    assert!(membership.voters.contains(&new) && !membership.contains(old) && !membership.is_joint());
    assert_eq!(membership.voters.len(), 3);

    cluster.transfer(group, new);
    cluster.converge(FOUNDERS);
    assert_eq!(cluster.leader(group), Some(3), "the new member leads");
    cluster.propose(3, group);
    cluster.converge(FOUNDERS);
    cluster.check_nothing_lost(group);
}
