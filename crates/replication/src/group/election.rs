//! When a node asks for votes.

use chance::Chance;
use raft::StateRole;

use super::Group;
use crate::log_store::LogStore;

/// Ranks that are told apart: with more voters some share one.
const RANKS: usize = 3;

/// Election timeouts from the caller's seed. Raft draws its own from the thread's generator, which no simulation could
/// repeat, so each one is replaced before it is looked at.
pub(super) struct Jitter {
    chance: Chance,
    drawn_for: (u64, StateRole),
    ticks: usize,
}

impl Jitter {
    pub(super) fn new(seed: u64) -> Self {
        Self { chance: Chance::new(seed), drawn_for: (0, StateRole::Follower), ticks: 0 }
    }
}

impl<L: LogStore> Group<L> {
    pub(crate) fn tick(&mut self) {
        if self.retired || self.is_alone() && !self.is_leader() {
            return;
        }
        let raft = &self.node.raft;
        if raft.election_elapsed == 0 || self.jitter.drawn_for != (raft.term, raft.state) {
            self.draw_election_timeout();
        }
        self.node.raft.set_randomized_election_timeout(self.jitter.ticks);
        self.node.tick();
    }

    /// The leader's process is gone. Without this a follower refuses the votes of those that know it, until its own time for the
    /// leader is over. The jitter stays, so that not all ask at once.
    pub(crate) fn expect_no_leader(&mut self) {
        let shortest = self.node.raft.election_timeout();
        self.node.raft.election_elapsed = self.node.raft.election_elapsed.max(shortest);
        self.jitter.ticks = (shortest + 1 + self.rank() * shortest / RANKS).min(2 * shortest - 1);
    }

    /// The place of this node in the order in which the group's voters ask for votes. It differs from group to group, so that
    /// leaders are spread, and from voter to voter, so that votes are not split.
    fn rank(&self) -> usize {
        let voters = &self.storage().anchor.membership.voters;
        let own = voters.iter().filter(|voter| **voter < self.node.raft.id).count();
        let first = usize::try_from(self.id.0).unwrap_or_default() % voters.len().max(1);
        (own + voters.len() - first) % voters.len().max(1) % RANKS
    }

    pub(super) fn draw_election_timeout(&mut self) {
        let raft = &self.node.raft;
        self.jitter.drawn_for = (raft.term, raft.state);
        let shortest = raft.election_timeout();
        let step = (shortest / RANKS).max(1);
        let ticks = shortest + self.rank() * step + self.jitter.chance.index(step);
        self.jitter.ticks = ticks.min(2 * shortest - 1);
    }

    /// A sole voter need not wait for others: it leads as soon as everything it has is durable and handed out.
    pub(crate) fn should_lead_alone(&self) -> bool {
        let committed = self.node.raft.raft_log.committed;
        !self.retired && self.is_alone() && !self.is_leader() && self.handed_out >= committed && !self.node.has_ready()
    }

    pub(crate) fn lead_if_alone(&mut self) {
        if self.should_lead_alone() {
            self.node.campaign().expect("a node may always campaign");
        }
    }

    /// A sole voter wins any election on the spot, and Raft panics if something is not durable then. So only
    /// [`Self::lead_if_alone`] starts one; time and requests do not.
    pub(crate) fn is_alone(&self) -> bool {
        let membership = &self.storage().anchor.membership;
        membership.voters == [self.node.raft.id] && membership.voters_outgoing.is_empty()
    }
}
