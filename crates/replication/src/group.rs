//! One Raft group on one node.

use std::sync::Arc;

use bytes::Bytes;
use protobuf::Message as _;
use raft::eraftpb::{
    ConfChange, ConfChangeSingle, ConfChangeType, ConfChangeV2, ConfState, EntryType, HardState, MessageType,
};
use raft::prelude::RawNode;
use raft::{Ready, StateRole, eraftpb};

use crate::error::{LogError, ProposeError, ReplicationError};
use crate::group_storage::GroupStorage;
use crate::log_store::{Anchor, GroupWrite, LogStore, StoredGroup};
use crate::logger::raft_logger;
use crate::options::Options;
use crate::proposals::Proposals;
use crate::replicas::{Committed, RoleChange};
use crate::types::{Entry, GroupId, GroupStatus, MemberProgress, Membership, MembershipChange, NodeId, Position, Role};

/// The term of the entries that every replica of a new group writes on its own.
const FIRST_TERM: u64 = 1;

/// One Raft group on one node.
pub(crate) struct Group<L: LogStore> {
    pub(crate) id: GroupId,
    pub(crate) node: RawNode<GroupStorage<L>>,
    pub(crate) handed_out: u64,
    jitter: Jitter,
    reported: RoleChange,
    /// The term for which this node was last reported as caught up.
    caught_up_term: u64,
    proposals: Proposals,
}

/// Election timeouts from the caller's seed. Raft draws its own from the thread's generator, which no simulation could
/// repeat, so each one is replaced before it is looked at.
struct Jitter {
    state: u64,
    drawn_for: (u64, StateRole),
    ticks: usize,
}

impl Jitter {
    fn next(&mut self) -> u64 {
        // SplitMix64.
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

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
    /// Opens a group whose state machine is durable up to `applied`.
    pub(crate) fn open(
        id: GroupId,
        me: NodeId,
        log: Arc<L>,
        mut stored: StoredGroup,
        entries: Vec<eraftpb::Entry>,
        applied: u64,
        options: &Options,
    ) -> Result<Self, ReplicationError> {
        let compacted = stored.anchor.compacted.index;
        if applied < compacted {
            return Err(ReplicationError::StateBehindLog { group: id, applied, compacted });
        }
        if applied > stored.last_index {
            return Err(ReplicationError::StateAheadOfLog { group: id, applied, last_index: stored.last_index });
        }
        // The commit index is written along with the next entries, so it may lag behind what was applied. Without the
        // members' index, a leader that knows only members behind its checkpoint could neither send a snapshot nor, without
        // the follower that needs it, commit anything to make a newer checkpoint of.
        let known_committed = applied.max(stored.anchor.membership_index);
        stored.hard_state.commit = stored.hard_state.commit.max(known_committed);
        let config = raft_config(me, applied, options);
        let first_new = entries.first().map_or(stored.last_index, |entry| entry.index - 1);
        let mut storage = GroupStorage::new(id, log, stored.hard_state, stored.anchor, first_new);
        storage.append(entries);
        if applied > 0 {
            storage.set_checkpoint(applied)?;
        }
        let node = RawNode::new(&config, storage, &raft_logger())
            .map_err(|error| ReplicationError::Raft { group: id, problem: error.to_string() })?;
        let mut group = Self {
            id,
            jitter: Jitter {
                state: options.seed ^ (u64::from(id.0) << 32),
                drawn_for: (0, StateRole::Follower),
                ticks: 0,
            },
            node,
            handed_out: applied,
            reported: RoleChange { group: id, role: Role::Learner, leader: None, term: 0 },
            caught_up_term: 0,
            proposals: Proposals::default(),
        };
        group.draw_election_timeout();
        Ok(group)
    }

    pub(crate) fn storage(&self) -> &GroupStorage<L> {
        self.node.store()
    }

    pub(crate) fn storage_mut(&mut self) -> &mut GroupStorage<L> {
        self.node.mut_store()
    }

    pub(crate) fn tick(&mut self) {
        if self.is_alone() && !self.is_leader() {
            return;
        }
        let raft = &self.node.raft;
        if raft.election_elapsed == 0 || self.jitter.drawn_for != (raft.term, raft.state) {
            self.draw_election_timeout();
        }
        self.node.raft.set_randomized_election_timeout(self.jitter.ticks);
        self.node.tick();
    }

    fn draw_election_timeout(&mut self) {
        let raft = &self.node.raft;
        self.jitter.drawn_for = (raft.term, raft.state);
        let shortest = raft.election_timeout();
        let span = u64::try_from(shortest).expect("the timeout came from a u32");
        self.jitter.ticks = shortest + usize::try_from(self.jitter.next() % span).expect("less than the timeout");
    }

    /// A sole voter waits for nobody: it leads as soon as everything it has is durable and handed out.
    pub(crate) fn should_lead_alone(&self) -> bool {
        let committed = self.node.raft.raft_log.committed;
        self.is_alone() && !self.is_leader() && self.handed_out >= committed && !self.node.has_ready()
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

    pub(crate) fn leader(&self) -> Option<NodeId> {
        NodeId::known(self.node.raft.leader_id)
    }

    pub(crate) fn is_leader(&self) -> bool {
        self.node.raft.state == StateRole::Leader
    }

    /// Whether this node may propose now.
    pub(crate) fn check_leader(&self) -> Result<(), ProposeError> {
        if !self.is_leader() {
            return Err(ProposeError::NotLeader { group: self.id, leader: self.leader() });
        }
        match self.node.raft.lead_transferee.and_then(NodeId::known) {
            Some(to) => Err(ProposeError::TransferInProgress { group: self.id, to }),
            None => Ok(()),
        }
    }

    pub(crate) fn propose(&mut self, data: Bytes, limit_bytes: u64) -> Result<(), ProposeError> {
        let entry = eraftpb::Entry { data, ..eraftpb::Entry::default() };
        if !self.proposals.accept(self.node.raft.term, entry, limit_bytes) {
            return Err(ProposeError::Backlog { group: self.id, limit_bytes });
        }
        Ok(())
    }

    /// Takes what was proposed into Raft. It is lost if this node leads no more, like any proposal that is not committed.
    pub(crate) fn flush_proposals(&mut self) {
        let raft = &self.node.raft;
        let Some(message) = self.proposals.take(raft.term, raft.id) else {
            return;
        };
        if self.is_leader() && self.node.raft.step(message).is_err() {
            tracing::debug!(group = self.id.0, "proposals of a leader that just left its group are dropped");
        }
    }

    pub(crate) fn transfer_leadership(&mut self, to: NodeId) -> Result<(), ProposeError> {
        self.check_leader()?;
        if !self.storage().anchor.membership.voters.contains(&to.0) {
            let problem = format!("node {to} is not a voter, so it cannot lead");
            return Err(ProposeError::InvalidMembershipChange { group: self.id, problem });
        }
        // Raft takes nothing more once the transfer started.
        self.flush_proposals();
        self.node.transfer_leader(to.0);
        Ok(())
    }

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

    /// What a [`Ready`] has to say: at once, and after the sync. To be asked before [`Self::write_of`].
    ///
    /// A leader's entries may overtake its own disk. Raft hands all messages of a leader out for that, but two kinds have
    /// to wait, which a sole voter produces because it wins its election on the spot: answers that it owes as a follower
    /// (they promise what is not durable yet), and everything from a term that is not durable yet (after a crash, it would
    /// lead the same term again, with other entries at the same place).
    pub(crate) fn messages_of(&self, ready: &mut Ready) -> (Vec<eraftpb::Message>, Vec<eraftpb::Message>) {
        let durable = &self.storage().hard_state;
        let new_term = ready.hs().is_some_and(|new| (new.term, new.vote) != (durable.term, durable.vote));
        let (at_once, mut after_sync): (Vec<_>, Vec<_>) = ready.take_messages().into_iter().partition(|message| {
            let from_leader = matches!(
                message.get_msg_type(),
                MessageType::MsgAppend
                    | MessageType::MsgHeartbeat
                    | MessageType::MsgSnapshot
                    | MessageType::MsgTimeoutNow
            );
            from_leader && !new_term
        });
        after_sync.extend(ready.take_persisted_messages());
        (at_once, after_sync)
    }

    /// The part of a [`Ready`] that has to be durable before it may be acted upon, or nothing.
    pub(crate) fn write_of(&mut self, ready: &mut Ready) -> Option<GroupWrite> {
        let must_sync = ready.must_sync();
        let storage = self.node.mut_store();
        if let Some(hard_state) = ready.hs() {
            storage.hard_state = hard_state.clone();
            storage.hard_state_changed = true;
        }
        if !must_sync {
            return None;
        }
        let entries = ready.take_entries();
        if !ready.snapshot().is_empty() {
            let metadata = ready.snapshot().get_metadata();
            let anchor = Anchor {
                compacted: Position { index: metadata.index, term: metadata.term },
                membership: metadata.get_conf_state().clone(),
                membership_index: metadata.index,
            };
            storage.hard_state_changed = false;
            return Some(GroupWrite::Replace { hard_state: storage.hard_state.clone(), anchor, entries });
        }
        let hard_state = std::mem::take(&mut storage.hard_state_changed).then(|| storage.hard_state.clone());
        Some(GroupWrite::Append { entries, hard_state, anchor: None })
    }

    /// Takes committed entries from Raft: the caller's are handed out, Raft's own take effect here.
    pub(crate) fn hand_out(&mut self, entries: Vec<eraftpb::Entry>, committed: &mut Committed) -> bool {
        let mut membership_changed = false;
        for entry in entries {
            self.handed_out = entry.index;
            self.proposals.handed_out(&entry);
            committed.up_to = entry.index;
            match entry.get_entry_type() {
                EntryType::EntryNormal if entry.data.is_empty() => {}
                EntryType::EntryNormal => {
                    committed.entries.push(Entry { index: entry.index, term: entry.term, data: entry.data });
                }
                EntryType::EntryConfChange | EntryType::EntryConfChangeV2 => {
                    if entry.index > self.storage().anchor.membership_index
                        && let Some(membership) = self.apply_membership(&entry)
                    {
                        self.storage_mut().membership_changed(entry.index, membership);
                        membership_changed = true;
                    }
                }
            }
        }
        membership_changed
    }

    /// Every replica decides alike here: what cannot be applied is skipped by all of them.
    fn apply_membership(&mut self, entry: &eraftpb::Entry) -> Option<ConfState> {
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

    /// Raft lets a leader that is no voter any more lead on, without a say of its own and unable to propose.
    pub(crate) fn step_down_if_removed(&mut self) {
        if self.is_leader() && !self.node.raft.promotable() {
            let term = self.node.raft.term;
            self.node.raft.become_follower(term, raft::INVALID_ID);
        }
    }

    /// Whether a follower's rejection is stale (delayed, or delivered twice): it names an index that the follower has
    /// confirmed since. Raft would step back behind what is confirmed and send it all again, or even a snapshot
    /// (tikv/raft-rs#557, fixed after 0.7.0).
    pub(crate) fn is_stale(&self, rejection: &eraftpb::Message) -> bool {
        let progress = self.node.raft.prs().get(rejection.from);
        self.is_leader() && progress.is_some_and(|progress| rejection.index <= progress.matched)
    }

    pub(crate) fn role(&self) -> Role {
        match self.node.raft.state {
            StateRole::Leader => Role::Leader,
            StateRole::Candidate | StateRole::PreCandidate => Role::Candidate,
            StateRole::Follower if self.node.raft.promotable() => Role::Follower,
            StateRole::Follower => Role::Learner,
        }
    }

    /// The role, if it changed since it was last asked for.
    pub(crate) fn take_role_change(&mut self) -> Option<RoleChange> {
        let now = RoleChange { group: self.id, role: self.role(), leader: self.leader(), term: self.node.raft.term };
        (now != self.reported).then(|| {
            self.reported = now.clone();
            now
        })
    }

    /// The term, once per term: when this node leads and has handed out everything from earlier terms.
    pub(crate) fn take_caught_up(&mut self) -> Option<u64> {
        let raft = &self.node.raft;
        let caught_up = self.is_leader()
            && self.caught_up_term != raft.term
            && raft.commit_to_current_term()
            && self.handed_out >= raft.raft_log.committed;
        caught_up.then(|| {
            self.caught_up_term = self.node.raft.term;
            self.caught_up_term
        })
    }

    pub(crate) fn status(&self) -> GroupStatus {
        let raft = &self.node.raft;
        let mut progress = Vec::new();
        if self.is_leader() {
            progress.extend(raft.prs().iter().map(|(node, progress)| MemberProgress {
                node: NodeId(*node),
                matched: progress.matched,
                recently_active: progress.recent_active || *node == raft.id,
            }));
            // Raft keeps them in a hash map.
            progress.sort_unstable_by_key(|member| member.node);
        }
        GroupStatus {
            role: self.role(),
            term: raft.term,
            leader: self.leader(),
            commit: raft.raft_log.committed,
            handed_out: self.handed_out,
            checkpoint: self.storage().checkpoint_index(),
            first_index: self.storage().first(),
            last_index: raft.raft_log.last_index(),
            membership: Membership::from_conf_state(&self.storage().anchor.membership),
            progress,
        }
    }

    /// Whether a restart could still need entries that are only in memory for followers.
    pub(crate) fn has_followers(&self) -> bool {
        self.node.raft.prs().iter().any(|(node, _)| *node != self.node.raft.id)
    }

    pub(crate) fn set_checkpoint(&mut self, index: u64) -> Result<(), LogError> {
        assert!(index <= self.handed_out, "a state machine can only be durable up to what was handed out to it");
        if index <= self.storage().checkpoint_index() || index < self.storage().anchor.compacted.index {
            return Ok(());
        }
        self.storage_mut().set_checkpoint(index)
    }
}

fn raft_config(me: NodeId, applied: u64, options: &Options) -> raft::Config {
    let election_tick = usize::try_from(options.election_ticks).expect("a u32 fits");
    raft::Config {
        id: me.0,
        election_tick,
        heartbeat_tick: usize::try_from(options.heartbeat_ticks).expect("a u32 fits"),
        min_election_tick: election_tick,
        max_election_tick: election_tick * 2,
        applied,
        max_size_per_msg: options.max_append_message_bytes,
        max_inflight_msgs: options.max_inflight_messages,
        check_quorum: true,
        pre_vote: true,
        // `Proposals` batches and limits.
        batch_append: false,
        max_uncommitted_size: raft::NO_LIMIT,
        max_committed_size_per_ready: options.max_committed_bytes,
        ..raft::Config::default()
    }
}
