//! Which change of a group's members brings it closer to the cluster's configuration.

use std::collections::BTreeSet;

use replication::{GroupStatus, MembershipChange, NodeId, Role};

/// A learner that lacks so many entries at most becomes a voter.
const VOTER_LAG_ENTRIES_MAX: u64 = 1_000;

/// The next change that the leader of a group proposes; empty when the group is as it should be, has to wait, or is led by
/// another node.
///
/// A new member first learns everything without a vote. Only then it becomes a voter, in the same step in which the members
/// leave whose place it has. So the group never depends on a replica that has not got its data.
pub(crate) fn next_changes(status: &GroupStatus, me: NodeId, wished: &BTreeSet<NodeId>) -> Vec<MembershipChange> {
    let membership = &status.membership;
    if status.role != Role::Leader || membership.is_joint() || !wished.contains(&me) {
        return Vec::new();
    }
    let missing = wished.iter().filter(|member| !membership.contains(**member));
    let learners: Vec<_> = missing.map(|member| MembershipChange::AddLearner(*member)).collect();
    if !learners.is_empty() {
        return learners;
    }
    let learning = || membership.learners.iter().filter(|member| wished.contains(member)).copied();
    let leaving = || membership.voters.iter().chain(&membership.learners).filter(|member| !wished.contains(member));
    if !learning().all(|member| has_caught_up(status, member)) {
        return Vec::new();
    }
    let joining = learning().map(MembershipChange::AddVoter);
    joining.chain(leaving().copied().map(MembershipChange::Remove)).collect()
}

fn has_caught_up(status: &GroupStatus, member: NodeId) -> bool {
    status.progress.iter().any(|progress| {
        progress.node == member
            && progress.recently_active
            && progress.matched > 0
            && progress.matched.saturating_add(VOTER_LAG_ENTRIES_MAX) >= status.last_index
    })
}

#[cfg(test)]
mod tests {
    use replication::{MemberProgress, Membership};

    use super::*;

    fn nodes(numbers: &[u64]) -> Vec<NodeId> {
        numbers.iter().copied().map(NodeId).collect()
    }

    fn status(voters: &[u64], learners: &[u64], matched: &[(u64, u64)]) -> GroupStatus {
        let progress = |(node, matched): &(u64, u64)| MemberProgress {
            node: NodeId(*node),
            matched: *matched,
            recently_active: true,
        };
        GroupStatus {
            role: Role::Leader,
            term: 2,
            vote: None,
            leader: Some(NodeId(1)),
            commit: 5_000,
            handed_out: 5_000,
            checkpoint: 0,
            first_index: 1,
            last_index: 5_000,
            membership: Membership { voters: nodes(voters), learners: nodes(learners), outgoing_voters: Vec::new() },
            progress: matched.iter().map(progress).collect(),
        }
    }

    #[test]
    fn a_replaced_member_learns_first_and_then_takes_the_place() {
        let wished: BTreeSet<_> = nodes(&[1, 2, 9]).into_iter().collect();
        let next = |status: &GroupStatus| next_changes(status, NodeId(1), &wished);
        let voters = [1, 2, 3];
        assert_eq!(next(&status(&voters, &[], &[])), [MembershipChange::AddLearner(NodeId(9))]);
        assert_eq!(next(&status(&voters, &[9], &[(9, 100)])), [], "it has not caught up");
        let both = [MembershipChange::AddVoter(NodeId(9)), MembershipChange::Remove(NodeId(3))];
        assert_eq!(next(&status(&voters, &[9], &[(9, 4_500)])), both);
        assert_eq!(next(&status(&[1, 2, 9], &[], &[])), []);
    }

    #[test]
    fn only_a_leader_that_stays_changes_members() {
        let wished: BTreeSet<_> = nodes(&[2, 3, 9]).into_iter().collect();
        assert_eq!(next_changes(&status(&[1, 2, 3], &[], &[]), NodeId(1), &wished), [], "it is to leave itself");
        let follower = GroupStatus { role: Role::Follower, ..status(&[1, 2, 3], &[], &[]) };
        assert_eq!(next_changes(&follower, NodeId(2), &wished), []);
        let mut joint = status(&[1, 2, 9], &[], &[]);
        joint.membership.outgoing_voters = nodes(&[1, 2, 3]);
        assert_eq!(next_changes(&joint, NodeId(2), &wished), [], "a change is under way");
    }
}
