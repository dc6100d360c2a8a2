//! The members of a group: how a group starts with them, and how they change.

use protobuf::Message as _;
use raft::eraftpb::{
    self, ConfChange, ConfChangeSingle, ConfChangeType, ConfChangeV2, ConfState, EntryType, HardState,
};

use raft::StateRole;

use super::Group;
use crate::error::ProposeError;
use crate::log_store::{Anchor, LogStore};
use crate::types::{Membership, MembershipChange, NodeId};

/// The term of the entries that every replica of a new group writes on its own.
const FIRST_TERM: u64 = 1;

/// The stored state with which a new group starts, identical on all of its first members: the log begins with an entry
/// per voter, so that a later member can learn them from the log as well as from a snapshot.
pub(crate) fn first_state(voters: &[NodeId]) -> (HardState, Anchor, Vec<eraftpb::Entry>) {
    let mut voters: Vec<u64> = voters.iter().map(|node| node.0).collect();
    voters.sort_unstable();
    voters.dedup();
    let mut hard_state = HardState::default();
    let mut anchor = Anchor::default();
    if voters.is_empty() {
        // A member that joins later: it hears everything from the leader.
        return (hard_state, anchor, Vec::new());
    }
    let entries: Vec<_> = (1..)
        .zip(&voters)
        .map(|(index, voter)| {
            let mut change = ConfChange::default();
            change.set_change_type(ConfChangeType::AddNode);
            change.node_id = *voter;
            let mut entry = eraftpb::Entry::default();
            entry.set_entry_type(EntryType::EntryConfChange);
            entry.term = FIRST_TERM;
            entry.index = index;
            entry.data = change.write_to_bytes().expect("a complete message is always encodable into memory").into();
            entry
        })
        .collect();
    hard_state.term = FIRST_TERM;
    hard_state.commit = entries.last().map_or(0, |entry| entry.index);
    anchor.membership_index = hard_state.commit;
    anchor.membership.voters = voters;
    (hard_state, anchor, entries)
}

impl<L: LogStore> Group<L> {
    pub(crate) fn propose_membership(&mut self, changes: &[MembershipChange]) -> Result<(), ProposeError> {
        self.check_leader()?;
        let group = self.id;
        let invalid = |problem: String| ProposeError::InvalidMembershipChange { group, problem };
        if changes.is_empty() {
            return Err(invalid("no change is named".to_owned()));
        }
        let joint = !self.storage().anchor.membership.voters_outgoing.is_empty();
        if joint || self.node.raft.has_pending_conf() {
            return Err(ProposeError::MembershipChangeInProgress(self.id));
        }
        let mut voters = Membership::from_conf_state(&self.storage().anchor.membership).voters;
        let mut proposal = ConfChangeV2::default();
        for change in changes {
            let (kind, node) = match *change {
                MembershipChange::AddVoter(node) => (ConfChangeType::AddNode, node),
                MembershipChange::AddLearner(node) => (ConfChangeType::AddLearnerNode, node),
                MembershipChange::Remove(node) => (ConfChangeType::RemoveNode, node),
            };
            if node.0 == 0 {
                return Err(invalid("node 0 does not exist".to_owned()));
            }
            if proposal.changes.iter().any(|other| other.node_id == node.0) {
                return Err(invalid(format!("node {node} is named twice")));
            }
            voters.retain(|voter| *voter != node);
            if kind == ConfChangeType::AddNode {
                voters.push(node);
            }
            let mut single = ConfChangeSingle::default();
            single.set_change_type(kind);
            single.node_id = node.0;
            proposal.mut_changes().push(single);
        }
        if voters.is_empty() {
            return Err(invalid("no voter would remain".to_owned()));
        }
        let me = NodeId(self.node.raft.id);
        if !voters.contains(&me) {
            let problem = format!("node {me} leads the group, so transfer the leadership first");
            return Err(invalid(problem));
        }
        self.flush_proposals();
        self.node.propose_conf_change(Vec::new(), proposal).map_err(|error| invalid(error.to_string()))
    }

    /// Every replica decides alike here: what cannot be applied is skipped by all of them.
    pub(super) fn apply_membership(&mut self, entry: &eraftpb::Entry) -> Option<ConfState> {
        let applied = if entry.get_entry_type() == EntryType::EntryConfChange {
            ConfChange::parse_from_bytes(&entry.data)
                .map_err(raft::Error::from)
                .and_then(|change| self.node.apply_conf_change(&change))
        } else {
            ConfChangeV2::parse_from_bytes(&entry.data)
                .map_err(raft::Error::from)
                .and_then(|change| self.node.apply_conf_change(&change))
        };
        applied
            .inspect_err(|error| {
                tracing::warn!(group = self.id.0, index = entry.index, %error, "a change of members is skipped");
            })
            .ok()
    }

    /// A leader that takes no part any more leads on no more.
    pub(crate) fn leave_if_retired(&mut self) {
        if self.retired && !matches!(self.node.raft.state, StateRole::Follower) {
            let term = self.node.raft.term;
            self.node.raft.become_follower(term, raft::INVALID_ID);
        }
    }

    /// Raft lets a leader that is no longer a voter keep leading, without a vote and unable to propose.
    pub(crate) fn step_down_if_removed(&mut self) {
        if self.is_leader() && !self.node.raft.promotable() {
            let term = self.node.raft.term;
            self.node.raft.become_follower(term, raft::INVALID_ID);
        }
    }
}
