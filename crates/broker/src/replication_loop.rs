//! What the replication thread does between two waits, driven by calls: commands go in, batches are proposed, and what
//! a round of the Raft groups brings is passed to the shell.
//!
//! Nothing here has a thread, a clock or a file of its own, so a simulation drives the same code as production.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use protocol::{PartitionId, Timestamp};
use replication::{
    Committed, Entry, GroupId, LogError, LogStore, Message, NodeId, Outbox, ProposeError, Replicas, ReplicationError,
    Role, Round, SnapshotRequest,
};

use crate::partition_time::{Moment, PartitionTime};
use crate::retention::{self, Retention, RetentionLimits};

/// A share of a partition's limits that travels with commands to their application.
pub trait Share {
    /// The share of both together.
    fn join(&mut self, other: Self);
}

/// Without flow control there is nothing to share.
impl Share for () {
    fn join(&mut self, other: Self) {
        let () = other;
    }
}

/// A committed batch.
#[derive(Debug)]
pub struct CommittedEntry<S> {
    /// Its place in the log.
    pub index: u64,
    /// The term in which it was proposed.
    pub term: u64,
    /// The encoded batch.
    pub data: Bytes,
    /// The share of its commands in the partition's limits; none when this node did not propose it in this term.
    pub permit: Option<S>,
}

/// What surrounds the loop. What it learns about a partition comes in order: entries before the leadership that depends
/// on them.
pub trait Shell {
    /// What commands carry.
    type Permit: Share;

    /// What the node's clocks show.
    fn now(&self) -> Moment;

    /// A batch was made of some commands.
    fn batched(&mut self, _partition: PartitionId, _commands: usize, _bytes: usize, _permit: Option<&Self::Permit>) {}

    /// A message for another node.
    fn send(&mut self, message: Message);

    /// Batches are committed, and to be applied in this order; behind them the log holds entries of Raft up to an index.
    fn committed(&mut self, partition: PartitionId, entries: Vec<CommittedEntry<Self::Permit>>, up_to: u64);

    /// This node leads the partition in a term, once everything that was committed before is applied.
    fn lead(&mut self, partition: PartitionId, term: u64);

    /// This node does not lead the partition any more: nothing of users may come in from here on.
    fn step_down(&mut self, partition: PartitionId);

    /// This node follows, or looks for, the leader of a term. Whether what was proposed in earlier terms is lost shows when
    /// the first batch of the new term is applied.
    fn follow(&mut self, partition: PartitionId, leader: Option<NodeId>, term: u64);

    /// The log builds on a received state of this index now: that replaces the state of the partition, before anything that
    /// comes after.
    fn install(&mut self, partition: PartitionId, index: u64);

    /// The log of the partition cannot be read, so this node takes no part in its group any more.
    fn log_failed(&mut self, partition: PartitionId, error: &LogError);
}

/// All partitions of a node on their shared log. A group has the number of its partition.
pub struct ReplicationLoop<L: LogStore, S> {
    replicas: Replicas<L>,
    groups: BTreeMap<GroupId, Group<S>>,
    batch_limit_bytes: usize,
    limits: RetentionLimits,
}

/// What waits for one partition.
struct Group<S> {
    partition: PartitionId,
    commands: Vec<Vec<u8>>,
    bytes: usize,
    permit: Option<S>,
    /// Batches that the log could not take yet; they go before `commands`.
    encoded: VecDeque<(Bytes, Option<S>)>,
    /// The term in which this node leads; none while it does not.
    term: Option<u64>,
    /// The permits of the entries proposed in this term and not committed yet, in order.
    proposed: VecDeque<Option<S>>,
    /// Up to the newest batch in the log.
    time: PartitionTime,
    retention: Retention,
}

/// The group of a partition.
pub fn group_of(partition: PartitionId) -> GroupId {
    GroupId(u32::from(partition.0))
}

/// Raft's messages go through the shell.
struct Messages<'a, H>(&'a mut H);

impl<H: Shell> Outbox for Messages<'_, H> {
    fn send(&mut self, message: Message) {
        self.0.send(message);
    }
}

impl<L: LogStore, S: Share> ReplicationLoop<L, S> {
    /// Drives groups that are open. `last_timestamps` are the times of the partitions' states.
    pub fn new(
        replicas: Replicas<L>,
        last_timestamps: &BTreeMap<PartitionId, Timestamp>,
        batch_limit_bytes: usize,
    ) -> Self {
        let (groups, limits) = (BTreeMap::new(), RetentionLimits::default());
        let mut replication = ReplicationLoop { replicas, groups, batch_limit_bytes, limits };
        for (&partition, &last_timestamp) in last_timestamps {
            replication.add(partition, last_timestamp);
        }
        replication
    }

    /// With other limits of what the log keeps for members that lack it.
    #[must_use]
    pub fn with_retention(mut self, limits: RetentionLimits) -> Self {
        self.limits = limits;
        let partitions: Vec<_> = self.groups.values().map(|group| group.partition).collect();
        for partition in partitions {
            let retention = self.retention_of(partition);
            if let Some(group) = self.groups.get_mut(&group_of(partition)) {
                group.retention = retention;
            }
        }
        self
    }

    fn retention_of(&self, partition: PartitionId) -> Retention {
        let status = self.replicas.status(group_of(partition));
        let (first, applied) = status.map_or((1, 0), |status| (status.first_index, status.handed_out));
        Retention::new(self.limits, self.groups.len().max(1), first.saturating_sub(1), applied)
    }

    /// Drives one more group, which is open. `last_timestamp` is the time of the partition's state.
    pub fn add(&mut self, partition: PartitionId, last_timestamp: Timestamp) {
        let group = Group {
            partition,
            commands: Vec::new(),
            bytes: 0,
            permit: None,
            encoded: VecDeque::new(),
            term: None,
            proposed: VecDeque::new(),
            time: PartitionTime::new(last_timestamp),
            retention: self.retention_of(partition),
        };
        self.groups.insert(group_of(partition), group);
    }

    /// The Raft groups.
    pub fn replicas(&self) -> &Replicas<L> {
        &self.replicas
    }

    /// The Raft groups, for ticks, messages, snapshots and changes of members.
    pub fn replicas_mut(&mut self) -> &mut Replicas<L> {
        &mut self.replicas
    }

    /// A command waits for the next batch of its partition.
    pub fn enqueue(
        &mut self,
        shell: &mut impl Shell<Permit = S>,
        partition: PartitionId,
        bytes: Vec<u8>,
        permit: Option<S>,
    ) {
        let Some(group) = self.groups.get_mut(&group_of(partition)) else { return };
        if !group.commands.is_empty() && group.bytes + bytes.len() > self.batch_limit_bytes {
            group.seal(shell);
        }
        group.bytes += bytes.len();
        group.commands.push(bytes);
        group.permit = match (group.permit.take(), permit) {
            (Some(mut permit), Some(next)) => {
                permit.join(next);
                Some(permit)
            }
            (permit, next) => permit.or(next),
        };
    }

    /// The state of a partition is durable up to `applied`: the log may forget what is before, once every member has it.
    ///
    /// # Errors
    /// When the log does not know the partition or cannot be read.
    pub fn checkpointed(&mut self, partition: PartitionId, applied: u64) -> Result<(), ReplicationError> {
        let group = group_of(partition);
        self.replicas.applied(group, applied)?;
        self.forget(group, applied)
    }

    /// The leader says up to which index every member has the log of a partition that this node follows.
    ///
    /// # Errors
    /// When the log does not know the partition or cannot be read.
    pub fn everybody_has(&mut self, partition: PartitionId, index: u64) -> Result<(), ReplicationError> {
        let id = group_of(partition);
        let group = self.groups.get_mut(&id).ok_or(ReplicationError::UnknownGroup(id))?;
        group.retention.everybody_has(index);
        self.forget_some(id)
    }

    /// What followers of this node are to know of a partition that it leads: the index up to which every member has the log.
    /// None while it does not lead.
    pub fn held_by_everybody(&self, partition: PartitionId) -> Option<u64> {
        self.replicas.status(group_of(partition)).as_ref().and_then(retention::everybody_has)
    }

    /// Lets the logs of all groups forget what no member lacks any more. Costs little, and is for about once a second:
    /// a member may have caught up since the last checkpoint.
    ///
    /// # Errors
    /// When a log cannot be read.
    pub fn forget_all(&mut self) -> Result<(), ReplicationError> {
        let groups: Vec<_> = self.groups.keys().copied().collect();
        groups.into_iter().try_for_each(|group| self.forget_some(group))
    }

    /// What no member lacks any more, of a state that is durable as far as the log knows.
    fn forget_some(&mut self, id: GroupId) -> Result<(), ReplicationError> {
        let durable = self.replicas.status(id).map_or(0, |status| status.checkpoint);
        self.forget(id, durable)
    }

    fn forget(&mut self, id: GroupId, durable: u64) -> Result<(), ReplicationError> {
        let (groups, limits) = (self.groups.len(), self.limits);
        let status = self.replicas.status(id).ok_or(ReplicationError::UnknownGroup(id))?;
        let group = self.groups.get_mut(&id).ok_or(ReplicationError::UnknownGroup(id))?;
        let up_to = group.retention.may_forget(limits, groups, &status, durable);
        self.replicas.compact(id, up_to)
    }

    /// The message that goes with the state of exactly the index `at`; none if the log cannot vouch for it, or it is too old
    /// for the request. From here on the entries after it stay, until the receiver has them or the sending failed.
    ///
    /// # Errors
    /// When the log does not know the partition or cannot be read.
    pub fn snapshot_message(
        &mut self,
        request: &SnapshotRequest,
        at: u64,
    ) -> Result<Option<Message>, ReplicationError> {
        let message = self.replicas.snapshot_message(request, at)?;
        if message.is_some()
            && let Some(group) = self.groups.get_mut(&request.group)
        {
            group.retention.sending(request.to, at);
        }
        Ok(message)
    }

    /// A snapshot reached the node, or did not.
    pub fn snapshot_sent(&mut self, id: GroupId, to: NodeId, delivered: bool) {
        if let Some(group) = self.groups.get_mut(&id) {
            group.retention.sent(to, delivered);
        }
        self.replicas.snapshot_sent(id, to, delivered);
    }

    /// The state of a partition is lost: this node takes no part in its group any more.
    ///
    /// # Errors
    /// When the log does not know the partition.
    pub fn retire(&mut self, partition: PartitionId) -> Result<(), ReplicationError> {
        self.replicas.retire(group_of(partition))
    }

    /// The term in which this node leads a partition, and takes commands for it.
    pub fn term(&self, partition: PartitionId) -> Option<u64> {
        self.groups.get(&group_of(partition)).and_then(|group| group.term)
    }

    /// The state of a partition was replaced by one whose last batch happened at this time.
    pub fn state_installed(&mut self, partition: PartitionId, last_timestamp: Timestamp) {
        if let Some(group) = self.groups.get_mut(&group_of(partition)) {
            group.time.witness(last_timestamp);
        }
    }

    /// Proposes everything that waits.
    pub fn propose(&mut self, shell: &mut impl Shell<Permit = S>) {
        for group in self.groups.values_mut() {
            group.seal(shell);
            if group.term.is_none() && !group.encoded.is_empty() {
                // The node itself sends its commands again. Users' commands wait outside until it leads, but some may have
                // come in before the way was closed: their clients hear of it when the next term begins.
                group.encoded.clear();
            }
            while let Some((data, permit)) = group.encoded.pop_front() {
                match self.replicas.propose(group_of(group.partition), data.clone()) {
                    Ok(()) => group.proposed.push_back(permit),
                    // The log catches up, or is written again later. A transfer ends with another leader, or with this one, and
                    // that must not have lost a command that nobody sends again (what was not proposed is dropped with the
                    // leadership).
                    Err(
                        ProposeError::Backlog { .. }
                        | ProposeError::LogUnavailable
                        | ProposeError::TransferInProgress { .. },
                    ) => {
                        group.encoded.push_front((data, permit));
                        break;
                    }
                    // It is a command of this partition to itself or of another one, whose own limits should have kept it away (a
                    // client's cannot be as large): nobody else waits for it.
                    Err(error @ ProposeError::TooLarge { .. }) => {
                        tracing::error!(partition = %group.partition, %error, "a command does not fit the log");
                        drop(permit);
                    }
                    Err(error) => {
                        tracing::debug!(partition = %group.partition, %error, "dropping commands");
                        drop(permit);
                    }
                }
            }
        }
    }

    /// One round of all groups. What it brings for partitions is passed to the shell; the rest is returned: snapshots,
    /// members, and whether there is more to do already.
    ///
    /// # Errors
    /// [`ReplicationError::Log`] with an input or output error can be tried again, every other error is final.
    pub fn round(&mut self, shell: &mut impl Shell<Permit = S>) -> Result<Round, ReplicationError> {
        let mut round = self.replicas.round(&mut Messages(shell))?;
        for change in &round.role_changes {
            let leads = change.role == Role::Leader;
            let Some(group) = self.groups.get_mut(&change.group) else { continue };
            let partition = group.partition;
            if group.term.is_some() && (!leads || group.term != Some(change.term)) {
                group.proposed.clear();
                group.term = None;
                shell.step_down(partition);
            }
            if !leads {
                shell.follow(partition, change.leader, change.term);
            }
        }
        for (id, position) in std::mem::take(&mut round.snapshots_to_install) {
            if let Some(group) = self.groups.get_mut(&id) {
                group.retention.replaced(position.index);
                shell.install(group.partition, position.index);
            }
        }
        for committed in std::mem::take(&mut round.committed) {
            if let Some(group) = self.groups.get_mut(&committed.group) {
                group.hand_out(shell, committed, self.limits);
            }
        }
        for (id, error) in std::mem::take(&mut round.failed) {
            if let Some(group) = self.groups.get(&id) {
                shell.log_failed(group.partition, &error);
            }
        }
        for (id, term) in std::mem::take(&mut round.caught_up) {
            if let Some(group) = self.groups.get_mut(&id) {
                group.term = Some(term);
                shell.lead(group.partition, term);
            }
        }
        Ok(round)
    }
}

impl<S: Share> Group<S> {
    /// Makes one entry of the waiting commands, with the time at which they happen: never earlier than the batch
    /// before, also when the clock went back, the leader changed or the node was restarted. Time then continues from
    /// there.
    fn seal(&mut self, shell: &mut impl Shell<Permit = S>) {
        if self.commands.is_empty() {
            return;
        }
        shell.batched(self.partition, self.commands.len(), self.bytes, self.permit.as_ref());
        let timestamp = self.time.stamp(shell.now());
        let data = protocol::encode_batch(timestamp, self.commands.iter().map(Vec::as_slice));
        self.encoded.push_back((Bytes::from(data), self.permit.take()));
        self.commands.clear();
        self.bytes = 0;
    }

    fn hand_out(&mut self, shell: &mut impl Shell<Permit = S>, committed: Committed, limits: RetentionLimits) {
        let entry = |entry: Entry| {
            self.retention.handed_out(limits, entry.index, entry.data.len());
            self.time.witness(timestamp_of(&entry.data));
            // Entries of the term in which this node leads are its own, in the order of their proposal.
            let own = self.term == Some(entry.term);
            let permit = if own { self.proposed.pop_front().flatten() } else { None };
            CommittedEntry { index: entry.index, term: entry.term, data: entry.data, permit }
        };
        let entries = committed.entries.into_iter().map(entry).collect();
        self.retention.reached(committed.up_to);
        shell.committed(self.partition, entries, committed.up_to);
    }
}

/// The time of an encoded batch; entries without one change nothing.
fn timestamp_of(batch: &[u8]) -> Timestamp {
    protocol::batch_timestamp(batch).unwrap_or(Timestamp::MIN)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use replication::{MemoryLog, Options};

    use super::*;

    const PARTITION: PartitionId = PartitionId(1);

    /// A share that is not counted.
    struct OfUser;

    impl Share for OfUser {
        fn join(&mut self, _: Self) {}
    }

    /// Notes what it is told.
    #[derive(Default)]
    struct Told(Vec<&'static str>);

    impl Shell for Told {
        type Permit = OfUser;

        fn now(&self) -> Moment {
            Moment { clock: 1, is_pinned: false, steady_milliseconds: 1 }
        }

        fn send(&mut self, _: Message) {}

        fn committed(&mut self, _: PartitionId, entries: Vec<CommittedEntry<OfUser>>, _: u64) {
            self.0.extend(entries.iter().filter(|entry| !entry.data.is_empty()).map(|_| "committed"));
        }

        fn lead(&mut self, _: PartitionId, _: u64) {
            self.0.push("lead");
        }

        fn step_down(&mut self, _: PartitionId) {
            self.0.push("step down");
        }

        fn follow(&mut self, _: PartitionId, _: Option<NodeId>, _: u64) {}

        fn install(&mut self, _: PartitionId, _: u64) {
            self.0.push("install");
        }

        fn log_failed(&mut self, _: PartitionId, _: &LogError) {
            self.0.push("log failed");
        }
    }

    fn one_partition() -> ReplicationLoop<MemoryLog, OfUser> {
        one_partition_with(Options::default())
    }

    fn one_partition_with(options: Options) -> ReplicationLoop<MemoryLog, OfUser> {
        let node = NodeId(1);
        let mut replicas = Replicas::open(node, Arc::new(MemoryLog::new()), options).expect("fine options");
        replicas.create_group(group_of(PARTITION), &[node], 0).expect("new");
        ReplicationLoop::new(replicas, &BTreeMap::from([(PartitionId(1), 0)]), 1 << 20)
    }

    fn settle(replication: &mut ReplicationLoop<MemoryLog, OfUser>, told: &mut Told) {
        while replication.round(told).expect("memory works").more {}
    }

    #[test]
    fn commands_that_came_in_after_the_leadership_are_dropped() {
        let (mut replication, mut told) = (one_partition(), Told::default());
        settle(&mut replication, &mut told);
        assert_eq!(std::mem::take(&mut told.0), ["lead"]);
        replication.retire(PARTITION).expect("it is there");
        settle(&mut replication, &mut told);
        assert_eq!(replication.term(PARTITION), None, "nothing of its last term is taken any more");
        assert_eq!(std::mem::take(&mut told.0), ["step down"]);
        let last_index = |replication: &ReplicationLoop<MemoryLog, OfUser>| {
            replication.replicas().status(group_of(PARTITION)).expect("it is there").last_index
        };
        let before = last_index(&replication);
        replication.enqueue(&mut told, PARTITION, b"of a user".to_vec(), Some(OfUser));
        replication.propose(&mut told);
        assert_eq!(last_index(&replication), before, "whoever waits for it hears of it with the next term");
        replication.enqueue(&mut told, PARTITION, b"of the node".to_vec(), None);
        replication.propose(&mut told);
        settle(&mut replication, &mut told);
        assert_eq!(told.0, Vec::<&str>::new(), "the node sends its own commands again");
        assert_eq!(last_index(&replication), before);
    }

    #[test]
    fn a_command_that_does_not_fit_the_log_fails_alone() {
        let options = Options { max_entry_bytes: 1_000, ..Options::default() };
        let (mut replication, mut told) = (one_partition_with(options), Told::default());
        replication.batch_limit_bytes = 500;
        settle(&mut replication, &mut told);
        for bytes in [10, 2_000, 10] {
            replication.enqueue(&mut told, PARTITION, vec![0; bytes], Some(OfUser));
        }
        replication.propose(&mut told);
        settle(&mut replication, &mut told);
        assert_eq!(
            told.0,
            ["lead", "committed", "committed"],
            "the others are carried out, and nothing is said to be lost"
        );
    }

    #[test]
    fn the_time_of_a_batch_is_read_from_its_header() {
        let batch = protocol::encode_batch(1_763_700_000_123, [b"command".as_slice()].into_iter());
        assert_eq!(timestamp_of(&batch), 1_763_700_000_123);
        assert_eq!(timestamp_of(&[1, 2]), Timestamp::MIN);
    }
}
