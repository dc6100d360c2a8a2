//! Leaders that are handed over on purpose, without a client that notices.
//!
//! The way in is closed first, and what came in before is proposed; a little later, when nobody can be on the way in any
//! more, the leadership moves to a follower that has everything. Commands wait meanwhile where they come from.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use protocol::PartitionId;
use replication::{GroupStatus, NodeId, Role};

/// The time between closing the way in and moving the leadership.
const CLOSING: Duration = Duration::from_millis(10);
/// A leadership that has not moved after this time stays, and takes commands again.
const MOVING_MAX: Duration = Duration::from_secs(1);

/// The leaderships that are being handed over.
#[derive(Debug, Default)]
pub(crate) struct Handovers(BTreeMap<PartitionId, Handover>);

#[derive(Debug)]
struct Handover {
    /// Who is to lead; whoever has the most entries, if nobody is named.
    to: Option<NodeId>,
    begun: Instant,
    is_moving: bool,
}

/// What to do next for a partition.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Move the leadership to this member.
    Move(NodeId),
    /// Nobody took it: lead on.
    Stay,
}

impl Handovers {
    /// The way into a partition was closed.
    pub fn begin(&mut self, partition: PartitionId, to: Option<NodeId>, now: Instant) {
        self.0.entry(partition).or_insert(Handover { to, begun: now, is_moving: false });
    }

    /// Whether a partition is being handed over.
    pub fn contains(&self, partition: PartitionId) -> bool {
        self.0.contains_key(&partition)
    }

    /// When to look again.
    pub fn deadline(&self) -> Option<Instant> {
        let at = |handover: &Handover| handover.begun + if handover.is_moving { MOVING_MAX } else { CLOSING };
        self.0.values().map(at).min()
    }

    /// What is due now. `status` says how a partition's group is.
    pub fn due(
        &mut self,
        now: Instant,
        me: NodeId,
        status: impl Fn(PartitionId) -> Option<GroupStatus>,
    ) -> Vec<(PartitionId, Step)> {
        let mut steps = Vec::new();
        self.0.retain(|partition, handover| {
            let Some(status) = status(*partition).filter(|status| status.role == Role::Leader) else { return false };
            let since = now.saturating_duration_since(handover.begun);
            let step = match (handover.is_moving, handover.to.or_else(|| most_complete(&status, me))) {
                (false, _) if since < CLOSING => return true,
                (false, Some(to)) => Step::Move(to),
                (true, _) if since < MOVING_MAX => return true,
                (false, None) | (true, _) => Step::Stay,
            };
            handover.is_moving = true;
            let is_moving = step != Step::Stay;
            steps.push((*partition, step));
            is_moving
        });
        steps
    }
}

/// The voter that has the most entries and was heard of lately.
pub(crate) fn most_complete(status: &GroupStatus, me: NodeId) -> Option<NodeId> {
    let is_candidate = |node: NodeId| node != me && status.membership.voters.contains(&node);
    let candidates = status.progress.iter().filter(|progress| is_candidate(progress.node) && progress.recently_active);
    candidates.max_by_key(|progress| progress.matched).map(|progress| progress.node)
}

#[cfg(test)]
mod tests {
    use replication::{MemberProgress, Membership};

    use super::*;

    const PARTITION: PartitionId = PartitionId(1);

    fn leading(matched: &[(u64, u64, bool)]) -> Option<GroupStatus> {
        let progress = |(node, matched, recently_active): &(u64, u64, bool)| MemberProgress {
            node: NodeId(*node),
            matched: *matched,
            recently_active: *recently_active,
        };
        let voters = matched.iter().map(|(node, ..)| NodeId(*node)).collect();
        Some(GroupStatus {
            role: Role::Leader,
            term: 2,
            vote: None,
            leader: Some(NodeId(1)),
            commit: 9,
            handed_out: 9,
            checkpoint: 0,
            first_index: 1,
            last_index: 9,
            membership: Membership { voters, ..Membership::default() },
            progress: matched.iter().map(progress).collect(),
        })
    }

    #[test]
    fn the_most_complete_follower_leads_next_or_the_leader_stays() {
        let (now, me) = (Instant::now(), NodeId(1));
        let mut handovers = Handovers::default();
        handovers.begin(PARTITION, None, now);
        let three = |_| leading(&[(1, 9, true), (2, 8, true), (3, 9, false)]);
        assert_eq!(handovers.due(now, me, three), [], "somebody may be on the way in");
        assert_eq!(handovers.due(now + CLOSING, me, three), [(PARTITION, Step::Move(NodeId(2)))]);
        assert_eq!(handovers.due(now + CLOSING * 2, me, three), []);
        assert_eq!(handovers.due(now + MOVING_MAX, me, three), [(PARTITION, Step::Stay)]);
        assert_eq!(handovers.deadline(), None);
        handovers.begin(PARTITION, None, now);
        let nobody = |_| leading(&[(1, 9, true), (2, 8, false)]);
        assert_eq!(handovers.due(now + CLOSING, me, nobody), [(PARTITION, Step::Stay)]);
        handovers.begin(PARTITION, Some(NodeId(2)), now);
        assert_eq!(handovers.due(now, me, |_| None), [], "it has moved");
        assert_eq!(handovers.deadline(), None);
    }
}
