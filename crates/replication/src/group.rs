//! One Raft group on one node.

mod election;
mod membership;

use std::sync::Arc;

use bytes::Bytes;
use raft::eraftpb::{EntryType, MessageType};
use raft::prelude::RawNode;
use raft::{Ready, StateRole, eraftpb};

use crate::error::{LogError, ProposeError, ReplicationError};
use crate::group_storage::GroupStorage;
use crate::log_store::{Anchor, GroupWrite, LogStore, StoredGroup};
use crate::logger::raft_logger;
use crate::options::Options;
use crate::proposals::Proposals;
use crate::round::{Committed, RoleChange};
use crate::types::{Entry, GroupId, GroupStatus, MemberProgress, Membership, NodeId, Position, Role};

use election::Jitter;
pub(crate) use membership::first_state;

/// One Raft group on one node.
pub(crate) struct Group<L: LogStore> {
    pub(crate) id: GroupId,
    pub(crate) node: RawNode<GroupStorage<L>>,
    pub(crate) handed_out: u64,
    /// This node takes no part any more.
    pub(crate) retired: bool,
    /// Its log cannot be read, so Raft must not go on. Retired too.
    pub(crate) failed: bool,
    jitter: Jitter,
    reported: RoleChange,
    /// The term for which this node was last reported as caught up.
    caught_up_term: u64,
    proposals: Proposals,
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
        stored.check_applied(id, applied)?;
        // The commit index is written along with the next entries, so it may lag behind what was applied. Without the
        // members' index, a leader that knows only members behind its checkpoint could neither send a snapshot nor, without
        // the follower that needs it, commit anything to make a newer checkpoint of.
        let known_committed = applied.max(stored.anchor.membership_index);
        stored.hard_state.commit = stored.hard_state.commit.max(known_committed);
        if stored.hard_state.commit > stored.last_index {
            let problem = format!("entry {} is committed, but the log ends before", stored.hard_state.commit);
            return Err(ReplicationError::Raft { group: id, problem });
        }
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
            jitter: Jitter::new(options.seed ^ (u64::from(id.0) << 32)),
            node,
            handed_out: applied,
            retired: false,
            failed: false,
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

    pub(crate) fn leader(&self) -> Option<NodeId> {
        NodeId::known(self.node.raft.leader_id).filter(|_| !self.failed)
    }

    pub(crate) fn is_leader(&self) -> bool {
        self.node.raft.state == StateRole::Leader && !self.failed
    }

    /// Whether this node may propose now.
    pub(crate) fn check_leader(&self) -> Result<(), ProposeError> {
        if !self.is_leader() || self.retired {
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

    /// The messages of a [`Ready`]: those to send at once, and those after the sync. Call before [`Self::write_of`].
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

    /// Whether a follower's rejection is stale (delayed, or delivered twice): it names an index that the follower has
    /// confirmed since. Raft would step back behind what is confirmed and send it all again, or even a snapshot
    /// (tikv/raft-rs#557, fixed after 0.7.0).
    pub(crate) fn is_stale(&self, rejection: &eraftpb::Message) -> bool {
        let progress = self.node.raft.prs().get(rejection.from);
        self.is_leader() && progress.is_some_and(|progress| rejection.index <= progress.matched)
    }

    pub(crate) fn role(&self) -> Role {
        match self.node.raft.state {
            _ if self.failed => Role::Follower,
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
            vote: (raft.vote != 0).then_some(NodeId(raft.vote)),
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

    /// Whether anybody could still ask for entries that were handed out here.
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
