//! What a group keeps, and no more.

use replication::{MemberProgress, Membership};

use super::*;

const LIMITS: RetentionLimits =
    RetentionLimits { group_bytes_max: 10_000, sending_bytes_max: 50_000, total_bytes_max: u64::MAX };
/// What the log takes for each entry here.
const ENTRY_BYTES: u64 = 100;

fn status(role: Role, matched: &[u64]) -> GroupStatus {
    let progress: Vec<_> = (1..)
        .zip(matched)
        .map(|(node, matched)| MemberProgress { node: NodeId(node), matched: *matched, recently_active: true })
        .collect();
    let voters = (1..=3).map(NodeId).collect();
    GroupStatus {
        role,
        term: 1,
        vote: None,
        leader: Some(NodeId(1)),
        commit: 0,
        handed_out: 0,
        checkpoint: 0,
        first_index: 1,
        last_index: 0,
        membership: Membership { voters, ..Membership::default() },
        progress,
    }
}

/// A group with entries 1 to `entries` since the node was started.
fn with_entries(entries: u64) -> Retention {
    let mut retention = Retention::new(LIMITS, 1, 0, 0);
    let content = usize::try_from(ENTRY_BYTES - ENTRY_OVERHEAD_BYTES).unwrap();
    (1..=entries).for_each(|index| retention.handed_out(LIMITS, index, content));
    retention
}

#[test]
fn entries_stay_until_every_member_has_them_and_the_state_holds_them() {
    let may_forget =
        |matched: &[u64], durable| with_entries(50).may_forget(LIMITS, 1, &status(Role::Leader, matched), durable);
    assert_eq!(may_forget(&[50, 50, 20], 45), 20, "one member lacks the rest");
    assert_eq!(may_forget(&[50, 50, 50], 45), 45, "the state lacks the rest");
    assert_eq!(may_forget(&[50, 50, 0], 50), 0, "a new member has nothing yet");
}

#[test]
fn a_follower_goes_by_what_the_leader_said() {
    let mut retention = with_entries(50);
    let follower = status(Role::Follower, &[]);
    assert_eq!(retention.may_forget(LIMITS, 1, &follower, 50), 0, "nobody has said anything");
    retention.everybody_has(30);
    assert_eq!(retention.may_forget(LIMITS, 1, &follower, 50), 30);
}

#[test]
fn who_lags_too_far_is_not_waited_for() {
    let mut retention = with_entries(1_000);
    let up_to = retention.may_forget(LIMITS, 1, &status(Role::Leader, &[1_000, 1_000, 20]), 1_000);
    let kept_bytes = (1_000 - up_to) * ENTRY_BYTES;
    assert!(kept_bytes <= LIMITS.group_bytes_max, "{kept_bytes} bytes are kept");
    assert!(kept_bytes >= LIMITS.group_bytes_max * 9 / 10, "only {kept_bytes} bytes are kept");
    let shared = RetentionLimits { total_bytes_max: 20_000, ..LIMITS };
    let up_to = with_entries(1_000).may_forget(shared, 4, &status(Role::Leader, &[1_000, 1_000, 20]), 1_000);
    let kept_bytes = (1_000 - up_to) * ENTRY_BYTES;
    assert!((4_500..=5_000).contains(&kept_bytes), "{kept_bytes} bytes are kept by one of four groups");
}

#[test]
fn a_sole_voter_keeps_nothing_for_others() {
    let mut alone = status(Role::Leader, &[50]);
    alone.membership.voters = vec![NodeId(1)];
    assert_eq!(with_entries(50).may_forget(LIMITS, 1, &alone, 40), 40);
    alone.membership.learners = vec![NodeId(2)];
    alone.progress.push(MemberProgress { node: NodeId(2), matched: 7, recently_active: true });
    assert_eq!(with_entries(50).may_forget(LIMITS, 1, &alone, 40), 7, "it is not alone with a learner");
}

#[test]
fn entries_after_a_snapshot_stay_until_its_receiver_goes_on_with_them() {
    let (mut retention, mut lagging) = (with_entries(300), status(Role::Leader, &[300, 300, 5]));
    retention.sending(NodeId(3), 120);
    assert_eq!(retention.may_forget(LIMITS, 1, &lagging, 300), 120, "more than the usual bytes");
    retention.sent(NodeId(3), true);
    assert_eq!(retention.may_forget(LIMITS, 1, &lagging, 300), 120, "it has not said so yet");
    lagging.progress[2].matched = 130;
    assert!(retention.may_forget(LIMITS, 1, &lagging, 300) >= 200, "it goes on");
    lagging.progress[2].matched = 5;
    retention.sending(NodeId(3), 220);
    retention.sent(NodeId(3), false);
    assert!(retention.sending.is_empty(), "what did not arrive holds nothing back");
    retention.sending(NodeId(3), 250);
    retention.may_forget(LIMITS, 1, &status(Role::Follower, &[]), 300);
    assert!(retention.sending.is_empty(), "another node leads and sends");
}

#[test]
fn a_slow_receiver_does_not_keep_the_log_without_end() {
    let mut retention = with_entries(1_000);
    retention.sending(NodeId(3), 120);
    let up_to = retention.may_forget(LIMITS, 1, &status(Role::Leader, &[1_000, 1_000, 5]), 1_000);
    let kept_bytes = (1_000 - up_to) * ENTRY_BYTES;
    assert!(kept_bytes <= LIMITS.sending_bytes_max, "{kept_bytes} bytes are kept");
    assert!(kept_bytes > LIMITS.group_bytes_max, "only {kept_bytes} bytes are kept");
}

#[test]
fn after_a_restart_what_was_kept_is_forgotten_step_by_step() {
    let mut retention = Retention::new(LIMITS, 1, 100, 1_100);
    let lagging = status(Role::Leader, &[1_100, 1_100, 100]);
    assert_eq!(retention.may_forget(LIMITS, 1, &lagging, 1_100), 100, "it fits");
    (1_101..=1_120).for_each(|index| retention.handed_out(LIMITS, index, 36));
    let up_to = retention.may_forget(LIMITS, 1, &lagging, 1_120);
    assert!((300..=320).contains(&up_to), "a fifth of the bytes came, and {up_to} goes");
}

#[test]
fn after_a_restart_a_group_without_room_keeps_nothing() {
    let none = RetentionLimits { group_bytes_max: 0, ..LIMITS };
    let mut retention = Retention::new(none, 1, 3, 10);
    assert_eq!(retention.may_forget(none, 1, &status(Role::Follower, &[]), 9), 9, "the state lacks the rest");
    assert_eq!(retention.may_forget(none, 1, &status(Role::Follower, &[]), 10), 10);
}

#[test]
fn places_stay_few() {
    let retention = with_entries(1_000_000);
    assert!(retention.places.len() <= PLACES_MAX);
    let mut replaced = with_entries(1_000);
    replaced.replaced(5_000);
    assert_eq!(replaced.may_forget(LIMITS, 1, &status(Role::Follower, &[]), 5_000), 5_000.min(replaced.newest.0));
}
