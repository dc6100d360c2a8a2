//! When a node asks for votes.

use raft::StateRole;

use super::Group;
use crate::log_store::LogStore;

/// Election timeouts from the caller's seed. Raft draws its own from the thread's generator, which no simulation could
/// repeat, so each one is replaced before it is looked at.
pub(super) struct Jitter {
    state: u64,
    drawn_for: (u64, StateRole),
    ticks: usize,
}

impl Jitter {
    pub(super) fn new(seed: u64) -> Self {
        Self { state: seed, drawn_for: (0, StateRole::Follower), ticks: 0 }
    }

    fn next(&mut self) -> u64 {
        // SplitMix64.
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
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

    pub(super) fn draw_election_timeout(&mut self) {
        let raft = &self.node.raft;
        self.jitter.drawn_for = (raft.term, raft.state);
        let shortest = raft.election_timeout();
        let span = u64::try_from(shortest).expect("the timeout came from a u32");
        self.jitter.ticks = shortest + usize::try_from(self.jitter.next() % span).expect("less than the timeout");
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
