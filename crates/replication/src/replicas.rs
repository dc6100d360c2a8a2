//! All groups of one node, driven by calls.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use raft::eraftpb::MessageType;
use raft::{Ready, SnapshotStatus, eraftpb};

use crate::error::{LogError, ProposeError, ReplicationError, StepError};
use crate::group::{Group, first_state};
use crate::log_store::{GroupWrite, LogStore, StoredGroup, WriteBatch};
use crate::message::{Message, Outbox};
use crate::options::Options;
use crate::round::{Committed, Round, SnapshotRequest};
use crate::types::{GroupId, GroupStatus, Membership, MembershipChange, NodeId, Position};

/// All groups of one node over one shared log.
///
/// Nothing happens on its own: the caller calls [`Replicas::tick`] in regular intervals, [`Replicas::step`] for every
/// message, [`Replicas::propose`] for every entry, and then [`Replicas::round`], which makes all of it durable with one
/// synced write and says what to do.
pub struct Replicas<L: LogStore> {
    me: NodeId,
    log: Arc<L>,
    options: Options,
    groups: BTreeMap<GroupId, Group<L>>,
    /// Writes that do not come from Raft: creation and removal. They go first into the next round's batch.
    queued: WriteBatch,
    /// Groups that dropped entries. What the next round writes of it is taken from the group when the round begins: while a
    /// write is repeated, the members that go with it may change.
    compacted: BTreeSet<GroupId>,
    /// A round whose write failed. It is repeated before anything else happens.
    unfinished: Option<Unfinished>,
    /// The log as a whole cannot be read or synced. What was handed out is unknown to the caller, so there is no way on but a
    /// restart.
    failed: Option<LogError>,
}

struct Unfinished {
    readies: Vec<CollectedReady>,
    batch: WriteBatch,
    round: Round,
}

struct CollectedReady {
    group: GroupId,
    ready: Ready,
    after_sync: Vec<eraftpb::Message>,
}

/// Looks whether a state machine that is durable up to `applied` can go on with what the log has of its group, or with the
/// group that these voters would create, before anything is changed.
///
/// # Errors
/// When it cannot, or the log cannot be read.
pub fn check_applied(
    log: &impl LogStore,
    group: GroupId,
    voters: &[NodeId],
    applied: u64,
) -> Result<(), ReplicationError> {
    let stored = log.load(group)?.unwrap_or_else(|| new_group(voters).0);
    stored.check_applied(group, applied)
}

/// What a group has that was just created.
fn new_group(voters: &[NodeId]) -> (StoredGroup, Vec<eraftpb::Entry>) {
    let (hard_state, anchor, entries) = first_state(voters);
    let last_index = entries.last().map_or(0, |entry| entry.index);
    (StoredGroup { hard_state, anchor, last_index }, entries)
}

impl<L: LogStore> Replicas<L> {
    /// Opens a node on its log. No group is open yet.
    pub fn open(me: NodeId, log: Arc<L>, options: Options) -> Result<Self, ReplicationError> {
        options.validate()?;
        if me.0 == 0 {
            return Err(ReplicationError::Option { option: "node", value: 0, rule: "a node's number starts at 1" });
        }
        Ok(Self {
            me,
            log,
            options,
            groups: BTreeMap::new(),
            queued: WriteBatch::default(),
            compacted: BTreeSet::new(),
            unfinished: None,
            failed: None,
        })
    }

    /// This node.
    #[must_use]
    pub fn node(&self) -> NodeId {
        self.me
    }

    /// The shared log, for example to reclaim its space in the background.
    #[must_use]
    pub fn log(&self) -> &Arc<L> {
        &self.log
    }

    /// Opens a group whose state machine is durable up to `applied`; the entries behind it are handed out again as soon as
    /// they are known to be committed.
    ///
    /// A group that the log does not know is created: all of its first members create it with the same `voters`; a node
    /// that joins an existing group creates it without any. A group that the log knows continues with the members it has.
    ///
    /// [`ReplicationError::StateBehindLog`] means that a snapshot was accepted, but not installed before the node
    /// stopped: install the staged state of that position and try again.
    pub fn create_group(&mut self, id: GroupId, voters: &[NodeId], applied: u64) -> Result<(), ReplicationError> {
        if self.groups.contains_key(&id) {
            return Err(ReplicationError::GroupExists(id));
        }
        if voters.contains(&NodeId(0)) {
            return Err(ReplicationError::Option { option: "voter", value: 0, rule: "a node's number starts at 1" });
        }
        let mut waiting =
            self.unfinished.iter().flat_map(|unfinished| &unfinished.batch.writes).chain(&self.queued.writes);
        let removed = waiting.any(|(group, write)| *group == id && *write == GroupWrite::Remove);
        let known = if removed { None } else { self.log.load(id)? };
        let mut creation = None;
        let (stored, entries) = match known {
            Some(stored) => (stored, Vec::new()),
            None => {
                let (stored, entries) = new_group(voters);
                let (hard_state, anchor) = (stored.hard_state.clone(), stored.anchor.clone());
                creation = Some(GroupWrite::Replace { hard_state, anchor, entries: entries.clone() });
                (stored, entries)
            }
        };
        let group = Group::open(id, self.me, Arc::clone(&self.log), stored, entries, applied, &self.options)?;
        self.groups.insert(id, group);
        self.queued.writes.extend(creation.map(|write| (id, write)));
        Ok(())
    }

    /// Closes a group and, with the next round, removes it from the log.
    pub fn remove_group(&mut self, id: GroupId) -> Result<(), ReplicationError> {
        self.groups.remove(&id).ok_or(ReplicationError::UnknownGroup(id))?;
        self.queued.writes.retain(|(group, _)| *group != id);
        self.compacted.remove(&id);
        self.queued.writes.push((id, GroupWrite::Remove));
        Ok(())
    }

    /// This node takes no part in a group any more until it is opened again, because its state machine is lost: it does not
    /// lead, vote or take entries, so that nothing piles up in a log that is never compacted. What the group has in the log
    /// stays. If this node leads, it does so no more from the next round on, and takes no proposals from now on.
    ///
    /// # Errors
    /// When the group is not open.
    pub fn retire(&mut self, id: GroupId) -> Result<(), ReplicationError> {
        let group = self.groups.get_mut(&id).ok_or(ReplicationError::UnknownGroup(id))?;
        group.retired = true;
        Ok(())
    }

    /// The groups that are open on this node, in ascending order.
    pub fn groups(&self) -> impl Iterator<Item = GroupId> + '_ {
        self.groups.keys().copied()
    }

    /// What this node knows about a group.
    #[must_use]
    pub fn status(&self, id: GroupId) -> Option<GroupStatus> {
        self.groups.get(&id).map(Group::status)
    }

    /// Proposes an entry. Accepted is not committed: the entry is committed when a round hands it out, and it is lost if
    /// the leader changes before.
    pub fn propose(&mut self, id: GroupId, data: impl Into<Bytes>) -> Result<(), ProposeError> {
        let data = data.into();
        let limit_bytes = self.options.max_entry_bytes;
        let max_uncommitted_bytes = self.options.max_uncommitted_bytes;
        let group = self.proposing_group(id)?;
        group.check_leader()?;
        if data.is_empty() {
            return Err(ProposeError::Empty);
        }
        if data.len() > limit_bytes {
            return Err(ProposeError::TooLarge { bytes: data.len(), limit_bytes });
        }
        group.propose(data, max_uncommitted_bytes)
    }

    /// Proposes a change of the members. Several changes take effect together, through a joint configuration.
    pub fn change_membership(&mut self, id: GroupId, changes: &[MembershipChange]) -> Result<(), ProposeError> {
        self.proposing_group(id)?.propose_membership(changes)
    }

    /// Starts to hand the leadership of a group to another voter. It may come to nothing, for example if that voter is not
    /// reachable; the role changes tell.
    pub fn transfer_leadership(&mut self, id: GroupId, to: NodeId) -> Result<(), ProposeError> {
        self.proposing_group(id)?.transfer_leadership(to)
    }

    /// Elections prefer members with a higher priority (0 unless set).
    pub fn set_priority(&mut self, id: GroupId, priority: i64) -> Result<(), ReplicationError> {
        let group = self.groups.get_mut(&id).ok_or(ReplicationError::UnknownGroup(id))?;
        group.node.set_priority(priority);
        Ok(())
    }

    fn proposing_group(&mut self, id: GroupId) -> Result<&mut Group<L>, ProposeError> {
        if self.unfinished.is_some() {
            return Err(ProposeError::LogUnavailable);
        }
        self.groups.get_mut(&id).ok_or(ProposeError::UnknownGroup(id))
    }

    /// Takes a message from another node. A snapshot message only when its state is complete and durable here
    /// ([`Message::snapshot`]).
    pub fn step(&mut self, message: Message) -> Result<(), StepError> {
        if self.unfinished.is_some() {
            return Err(StepError::LogUnavailable);
        }
        if message.to() != self.me {
            return Err(StepError::WrongNode { to: message.to(), here: self.me });
        }
        let id = message.group;
        let group = self.groups.get_mut(&id).ok_or(StepError::UnknownGroup(id))?;
        if group.retired {
            return Ok(());
        }
        let raft = &group.node.raft;
        match message.raft.get_msg_type() {
            // Proposals and reads are never forwarded here, and the others are Raft's notes to itself.
            kind @ (MessageType::MsgPropose
            | MessageType::MsgReadIndex
            | MessageType::MsgReadIndexResp
            | MessageType::MsgTransferLeader
            | MessageType::MsgHup
            | MessageType::MsgBeat
            | MessageType::MsgUnreachable
            | MessageType::MsgSnapStatus
            | MessageType::MsgCheckQuorum) => {
                return Err(StepError::UnexpectedKind(format!("{kind:?}")));
            }
            // A leader's heartbeat names a commit index that this node has acknowledged, so Raft panics if the entries are
            // missing (an older disk was put in).
            MessageType::MsgHeartbeat
                if message.raft.term >= raft.term && message.raft.commit > raft.raft_log.last_index() =>
            {
                let (commit, last_index) = (message.raft.commit, raft.raft_log.last_index());
                return Err(StepError::EntriesLost { group: id, commit, last_index });
            }
            MessageType::MsgTimeoutNow if group.is_alone() => return Ok(()),
            MessageType::MsgAppendResponse if message.raft.reject && group.is_stale(&message.raft) => return Ok(()),
            _ => {}
        }
        match group.node.step(message.raft) {
            // An answer from a node that was removed meanwhile.
            Ok(()) | Err(raft::Error::StepPeerNotFound) => Ok(()),
            Err(error) => Err(StepError::Refused { group: id, problem: error.to_string() }),
        }
    }

    /// A message to the node could not be sent.
    pub fn unreachable(&mut self, node: NodeId) {
        if self.unfinished.is_none() {
            for group in self.groups.values_mut() {
                group.node.report_unreachable(node.0);
            }
        }
    }

    /// The process of a node is gone: the groups that it led look for another leader without waiting for its heartbeats.
    pub fn gone(&mut self, node: NodeId) {
        self.unreachable(node);
        if self.unfinished.is_none() {
            for group in self.groups.values_mut().filter(|group| group.leader() == Some(node)) {
                group.expect_no_leader();
            }
        }
    }

    /// Time passed.
    pub fn tick(&mut self) {
        if self.unfinished.is_none() {
            for group in self.groups.values_mut() {
                group.tick();
            }
        }
    }

    /// The state machine of a group is durable up to `index`.
    pub fn applied(&mut self, id: GroupId, index: u64) -> Result<(), ReplicationError> {
        let group = self.groups.get_mut(&id).ok_or(ReplicationError::UnknownGroup(id))?;
        Ok(group.set_checkpoint(index)?)
    }

    /// Drops a group's entries up to `up_to`, but none behind the state machine's checkpoint ([`Replicas::applied`]). A
    /// follower that needs dropped entries gets a snapshot instead. Durable with the next round.
    pub fn compact(&mut self, id: GroupId, up_to: u64) -> Result<(), ReplicationError> {
        let group = self.groups.get_mut(&id).ok_or(ReplicationError::UnknownGroup(id))?;
        let up_to = up_to.min(group.storage().checkpoint_index());
        if group.storage_mut().compact(up_to)? {
            self.compacted.insert(id);
        }
        Ok(())
    }

    /// The message that goes with the state of exactly the index `at`, or nothing if the log cannot vouch for that index
    /// any more or the index is too old for the request.
    pub fn snapshot_message(&self, request: &SnapshotRequest, at: u64) -> Result<Option<Message>, ReplicationError> {
        let id = request.group;
        let group = self.groups.get(&id).ok_or(ReplicationError::UnknownGroup(id))?;
        if at < request.at_least.index || at > group.handed_out {
            return Ok(None);
        }
        Ok(group.storage().snapshot_at(at)?.map(|snapshot| {
            let mut raft = request.message.clone();
            raft.set_snapshot(snapshot);
            Message { group: id, raft }
        }))
    }

    /// A snapshot was sent to the node (or could not be): Raft continues with the entries after it, or tries again.
    pub fn snapshot_sent(&mut self, id: GroupId, to: NodeId, delivered: bool) {
        if let Some(group) = self.groups.get_mut(&id) {
            let status = if delivered { SnapshotStatus::Finish } else { SnapshotStatus::Failure };
            group.node.report_snapshot(to.0, status);
        }
    }

    /// One round: takes what every group has to say, sends the leaders' messages, makes everything durable with one synced
    /// write, sends the followers' messages, and returns what is committed now.
    ///
    /// After an error nothing of the round is acknowledged or handed out. The next call repeats the write, so a full disk
    /// heals ([`LogError::Io`] of a write). After [`LogError::SyncFailed`], and when the files of the log cannot
    /// be read, no call succeeds any more: the process must stop. A group with damaged entries takes no part in anything any
    /// more ([`Round::failed`]).
    pub fn round(&mut self, outbox: &mut impl Outbox) -> Result<Round, ReplicationError> {
        if let Some(failed) = &self.failed {
            return Err(failed.clone().into());
        }
        let mut unfinished = match self.unfinished.take() {
            Some(unfinished) => unfinished,
            None => self.collect(outbox),
        };
        loop {
            if !unfinished.batch.writes.is_empty() {
                match self.log.write(&unfinished.batch) {
                    Ok(report) => unfinished.round.note_write(report),
                    Err(error) => {
                        self.unfinished = Some(unfinished);
                        return Err(error.into());
                    }
                }
            }
            let memberships = self.finish(&mut unfinished, outbox);
            if memberships.writes.is_empty() {
                break;
            }
            // New members must be durable before anybody can rely on a checkpoint behind their entry.
            unfinished.batch = memberships;
        }
        self.summarise(unfinished.round)
    }

    /// Takes a `Ready` from every group that has one. From here until [`Self::finish`] no group may be touched.
    fn collect(&mut self, outbox: &mut impl Outbox) -> Unfinished {
        let mut unfinished =
            Unfinished { readies: Vec::new(), batch: std::mem::take(&mut self.queued), round: Round::default() };
        for id in std::mem::take(&mut self.compacted) {
            if let Some(group) = self.groups.get(&id) {
                unfinished.batch.writes.push((id, anchor_write(group)));
            }
        }
        for (id, group) in &mut self.groups {
            if group.failed {
                continue;
            }
            group.leave_if_retired();
            group.flush_proposals();
            group.lead_if_alone();
            if !group.node.has_ready() {
                continue;
            }
            let mut ready = group.node.ready();
            let (at_once, after_sync) = group.messages_of(&mut ready);
            dispatch(*id, at_once, outbox, &mut unfinished.round);
            unfinished.batch.writes.extend(group.write_of(&mut ready).map(|write| (*id, write)));
            unfinished.readies.push(CollectedReady { group: *id, ready, after_sync });
        }
        unfinished
    }

    /// Everything collected is durable: acts on it. Returns what has to be written because of it.
    fn finish(&mut self, unfinished: &mut Unfinished, outbox: &mut impl Outbox) -> WriteBatch {
        let round = &mut unfinished.round;
        for (id, write) in std::mem::take(&mut unfinished.batch.writes) {
            let Some(group) = self.groups.get_mut(&id) else {
                continue;
            };
            match write {
                GroupWrite::Replace { anchor, entries, .. } if anchor.compacted.index > 0 => {
                    // A compaction that was asked for while this write was repeated is of the log before.
                    self.compacted.remove(&id);
                    round.snapshots_to_install.push((id, anchor.compacted));
                    round.membership_changes.push((id, Membership::from_conf_state(&anchor.membership)));
                    group.handed_out = anchor.compacted.index;
                    group.storage_mut().replace(anchor);
                    group.storage_mut().append(entries);
                }
                // A creation is in the group's storage from the start, and a compaction or change of members already.
                GroupWrite::Replace { .. } | GroupWrite::Remove => {}
                GroupWrite::Append { entries, .. } => group.storage_mut().append(entries),
            }
        }
        let mut memberships = WriteBatch::default();
        for CollectedReady { group: id, mut ready, after_sync } in unfinished.readies.drain(..) {
            // The group may have been removed while the write was repeated.
            let Some(group) = self.groups.get_mut(&id) else {
                continue;
            };
            dispatch(id, after_sync, outbox, round);
            let mut committed = Committed { group: id, entries: Vec::new(), up_to: 0 };
            let committed_before = ready.take_committed_entries();
            let mut light = group.node.advance_append(ready);
            if let Some(commit) = light.commit_index() {
                group.storage_mut().hard_state.commit = commit;
                group.storage_mut().hard_state_changed = true;
            }
            dispatch(id, light.take_messages(), outbox, round);
            // Only now: Raft panics if a leader that is not a member any more has entries persisted.
            let mut changed = group.hand_out(committed_before, &mut committed);
            changed |= group.hand_out(light.take_committed_entries(), &mut committed);
            group.node.advance_apply_to(group.handed_out);
            group.step_down_if_removed();
            if committed.up_to > 0 {
                round.committed.push(committed);
            }
            if changed {
                let members = Membership::from_conf_state(&group.storage().anchor.membership);
                round.membership_changes.push((id, members));
                memberships.writes.push((id, anchor_write(group)));
            }
        }
        memberships
    }

    fn summarise(&mut self, mut round: Round) -> Result<Round, ReplicationError> {
        let groups = u64::try_from(self.groups.len()).expect("a count fits").max(1);
        let share_bytes = self.options.recent_entries_bytes / groups;
        for (id, group) in &mut self.groups {
            match group.storage().take_failure() {
                // The next start may be able to read it.
                Some(failure @ (LogError::SyncFailed { .. } | LogError::Io { .. } | LogError::Crashed)) => {
                    self.failed = Some(failure.clone());
                    return Err(failure.into());
                }
                Some(failure) => {
                    // What Raft was not given it would ask for again and again.
                    (group.retired, group.failed) = (true, true);
                    round.failed.push((*id, failure));
                }
                None => {}
            }
            if group.storage().take_newer_checkpoint_wanted() {
                round.checkpoints_wanted.push(*id);
            }
            round.role_changes.extend(group.take_role_change());
            round.caught_up.extend(group.take_caught_up().map(|term| (*id, term)));
            let limit_bytes = if group.has_followers() { share_bytes } else { 0 };
            let handed_out = group.handed_out;
            group.storage_mut().trim_recent(handed_out, limit_bytes);
            round.more |= !group.failed && (group.node.has_ready() || group.should_lead_alone());
        }
        Ok(round)
    }
}

/// Makes the dropped entries and the members of a group durable as they are now.
fn anchor_write<L: LogStore>(group: &Group<L>) -> GroupWrite {
    GroupWrite::Append { entries: Vec::new(), hard_state: None, anchor: Some(group.storage().anchor.clone()) }
}

/// Sends messages; those that announce a snapshot wait until the state is opened.
fn dispatch(group: GroupId, messages: Vec<eraftpb::Message>, outbox: &mut impl Outbox, round: &mut Round) {
    for message in messages {
        if message.get_msg_type() == MessageType::MsgSnapshot {
            let metadata = message.get_snapshot().get_metadata();
            round.snapshots_to_send.push(SnapshotRequest {
                group,
                to: NodeId(message.to),
                at_least: Position { index: metadata.index, term: metadata.term },
                message,
            });
        } else {
            outbox.send(Message { group, raft: message });
        }
    }
}
