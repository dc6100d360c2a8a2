//! The one thread that writes the log of the node.
//!
//! It takes everything that waits for all partitions, makes one entry per partition of it, writes all entries with one
//! synced write, and hands what is committed to the processing threads. While these apply a round, the next one is
//! written; the busier the node, the larger the batches.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bytes::Bytes;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use protocol::{PartitionId, Timestamp};
use replication::{
    Committed, GroupId, LogError, Message, Outbox, ProposeError, RaftEngineLog, Replicas, ReplicationError,
    Role as RaftRole, Round,
};

use crate::client::SubmitError;
use crate::entrance::{Role, Trouble};
use crate::flow_control::Permit;
use crate::inbox::{CommittedEntry, Inbound, QueuedCommand, Work};
use crate::metrics::ReplicationMetrics;
use crate::shared::Shared;

/// Time between two ticks of Raft's clock.
const TICK: Duration = Duration::from_millis(100);
/// Pause before a failed write is tried again.
const RETRY_PAUSE: Duration = Duration::from_millis(200);
/// Commands that one round takes at most, so that a flood does not delay the round without end.
const ROUND_COMMANDS_LIMIT: usize = 20_000;
/// Bytes handed to the processing threads and not applied yet, above which no further round is made.
const UNAPPLIED_LIMIT_BYTES: usize = 256 << 20;

pub(crate) struct ReplicationThread {
    shared: Arc<Shared>,
    inbox: Receiver<Inbound>,
    /// Where the committed batches of each partition go, from partition 1 on.
    processing: Vec<Sender<Work>>,
    replicas: Replicas<RaftEngineLog>,
    groups: Vec<Group>,
    batch_limit_bytes: usize,
    metrics: ReplicationMetrics,
    next_tick: Instant,
    /// Set while the log cannot be written.
    retry_at: Option<Instant>,
    stopping: bool,
}

/// What waits for one partition.
struct Group {
    partition: PartitionId,
    commands: Vec<Vec<u8>>,
    bytes: usize,
    permit: Option<Permit>,
    /// Batches that the log could not take yet; they go before `commands`.
    encoded: VecDeque<(Bytes, Option<Permit>)>,
    /// The term in which this node leads; none while it does not.
    term: Option<u64>,
    /// The permits of the entries proposed in this term and not committed yet, in order.
    proposed: VecDeque<Option<Permit>>,
    /// Time of the newest batch in the log.
    last_timestamp: Timestamp,
}

/// A single node has nobody to talk to.
struct NoPeers;

impl Outbox for NoPeers {
    fn send(&mut self, message: Message) {
        tracing::debug!(?message, "a message for a node that does not exist was dropped");
    }
}

pub(crate) fn group_of(partition: PartitionId) -> GroupId {
    GroupId(u32::from(partition.0))
}

/// Groups are numbered like the partitions, from 1.
fn group_mut(groups: &mut [Group], id: GroupId) -> Option<&mut Group> {
    usize::try_from(id.0).ok()?.checked_sub(1).and_then(|index| groups.get_mut(index))
}

impl ReplicationThread {
    pub fn new(
        shared: Arc<Shared>,
        inbox: Receiver<Inbound>,
        processing: Vec<Sender<Work>>,
        replicas: Replicas<RaftEngineLog>,
        last_timestamps: &[Timestamp],
        batch_limit_bytes: usize,
    ) -> Self {
        let group = |(partition, last_timestamp): (PartitionId, &Timestamp)| Group {
            partition,
            commands: Vec::new(),
            bytes: 0,
            permit: None,
            encoded: VecDeque::new(),
            term: None,
            proposed: VecDeque::new(),
            last_timestamp: *last_timestamp,
        };
        let groups = (1..).map(PartitionId).zip(last_timestamps).map(group).collect();
        let metrics = ReplicationMetrics::new(shared.partition_count());
        ReplicationThread {
            shared,
            inbox,
            processing,
            replicas,
            groups,
            batch_limit_bytes,
            metrics,
            next_tick: Instant::now() + TICK,
            retry_at: None,
            stopping: false,
        }
    }

    /// Runs until the node stops, or until the log cannot be trusted any more.
    pub fn run(mut self) {
        // The first round elects the leaders and hands out what was not applied before the last stop.
        let mut result = self.rounds();
        while result.is_ok() && !self.shared.is_crashed() && self.wait() {
            self.propose();
            result = self.rounds();
        }
        if let Err(error) = result {
            self.shared.fail(&format!("the log cannot be trusted any more: {error}"));
        }
    }

    /// Waits for something to do and takes everything that is there. `false` at the end.
    fn wait(&mut self) -> bool {
        if self.stopping {
            return false;
        }
        let deadline = self.retry_at.map_or(self.next_tick, |retry| retry.min(self.next_tick));
        match self.inbox.recv_deadline(deadline) {
            Ok(message) => self.take(message),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return false,
        }
        for _ in 0..ROUND_COMMANDS_LIMIT {
            match self.inbox.try_recv() {
                Ok(message) => self.take(message),
                Err(_) => break,
            }
        }
        let now = Instant::now();
        if now >= self.next_tick {
            self.replicas.tick();
            self.next_tick = now + TICK;
        }
        true
    }

    fn take(&mut self, message: Inbound) {
        match message {
            Inbound::Command(command) => self.enqueue(command),
            Inbound::Checkpointed { partition, applied } => {
                let group = group_of(partition);
                let compacted =
                    self.replicas.applied(group, applied).and_then(|()| self.replicas.compact(group, applied));
                if let Err(error) = compacted {
                    tracing::error!(%partition, %error, "the log could not be compacted after a checkpoint");
                }
            }
            Inbound::Stop => self.stopping = true,
        }
    }

    fn enqueue(&mut self, command: QueuedCommand) {
        let Some(group) = group_mut(&mut self.groups, group_of(command.partition)) else { return };
        if !group.commands.is_empty() && group.bytes + command.bytes.len() > self.batch_limit_bytes {
            group.seal(&self.shared);
        }
        group.bytes += command.bytes.len();
        group.commands.push(command.bytes);
        group.permit = match (group.permit.take(), command.permit) {
            (Some(mut permit), Some(next)) => {
                permit.join(next);
                Some(permit)
            }
            (permit, next) => permit.or(next),
        };
    }

    /// Proposes everything that waits.
    fn propose(&mut self) {
        for group in &mut self.groups {
            if !group.commands.is_empty() {
                let commands = group.commands.len();
                let bytes = group.bytes;
                let waited = group.permit.as_ref().map(|permit| permit.admitted().elapsed());
                group.seal(&self.shared);
                self.metrics.batch(group.partition, commands, bytes, waited);
            }
            if group.term.is_none() {
                // Only the node itself sends commands before it leads (users' commands wait outside), and it sends them
                // again.
                group.encoded.clear();
            }
            while let Some((data, permit)) = group.encoded.pop_front() {
                match self.replicas.propose(group_of(group.partition), data.clone()) {
                    Ok(()) => group.proposed.push_back(permit),
                    // The log catches up, or is written again later.
                    Err(ProposeError::Backlog { .. } | ProposeError::LogUnavailable) => {
                        group.encoded.push_front((data, permit));
                        break;
                    }
                    Err(error) => {
                        tracing::debug!(partition = %group.partition, %error, "dropping commands");
                        drop(permit);
                        fail_requests(&self.shared, group.partition);
                    }
                }
            }
        }
    }

    /// Makes rounds until there is nothing to do. Only an error from which there is no way on is returned.
    fn rounds(&mut self) -> Result<(), ReplicationError> {
        if self.retry_at.is_some_and(|retry| Instant::now() < retry) {
            return Ok(());
        }
        loop {
            match self.replicas.round(&mut NoPeers) {
                Ok(round) => {
                    self.log_works();
                    let more = round.more;
                    self.hand_out(round);
                    self.wait_for_application();
                    if !more || self.shared.is_crashed() {
                        return Ok(());
                    }
                }
                Err(ReplicationError::Log(error @ LogError::Io { .. })) => {
                    self.log_fails(&error);
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn log_works(&mut self) {
        if self.retry_at.take().is_some() {
            tracing::info!("the log can be written again");
            for entrance in &self.shared.entrances {
                entrance.set_trouble(Trouble::Log, false);
            }
        }
    }

    fn log_fails(&mut self, error: &LogError) {
        if self.retry_at.is_none() {
            tracing::warn!(%error, "the log cannot be written; commands wait, and the write is tried again until it works");
            for entrance in &self.shared.entrances {
                entrance.set_trouble(Trouble::Log, true);
            }
        }
        self.retry_at = Some(Instant::now() + RETRY_PAUSE);
    }

    /// Passes on what a round brought. What is committed goes before the news of leadership that depends on it.
    fn hand_out(&mut self, round: Round) {
        if round.syncs > 0 {
            self.metrics.write(round.write);
        }
        for change in &round.role_changes {
            let leads = change.role == RaftRole::Leader;
            let Some(group) = group_mut(&mut self.groups, change.group) else { continue };
            if group.term.is_some() && (!leads || group.term != Some(change.term)) {
                // Whatever was proposed in the old term may be lost.
                group.proposed.clear();
                group.term = None;
                let partition = group.partition;
                fail_requests(&self.shared, partition);
                self.send(partition, Work::StepDown(partition));
            } else if !leads && let Ok(entrance) = self.shared.entrance(group.partition) {
                entrance.set_role(Role::Follower);
            }
        }
        for committed in round.committed {
            self.hand_out_entries(committed);
        }
        for (group, term) in round.caught_up {
            if let Some(group) = group_mut(&mut self.groups, group) {
                group.term = Some(term);
                let partition = group.partition;
                self.send(partition, Work::Lead(partition));
            }
        }
    }

    fn hand_out_entries(&mut self, committed: Committed) {
        if committed.entries.is_empty() {
            return;
        }
        let Some(group) = group_mut(&mut self.groups, committed.group) else { return };
        let term = group.term;
        let (mut bytes, mut last_timestamp) = (0, group.last_timestamp);
        let entries = committed.entries.into_iter().map(|entry| {
            bytes += entry.data.len();
            last_timestamp = last_timestamp.max(timestamp_of(&entry.data));
            // Entries of the term in which this node leads are its own, in the order of their proposal.
            let own = term == Some(entry.term);
            let permit = if own { group.proposed.pop_front().flatten() } else { None };
            CommittedEntry { index: entry.index, data: entry.data, permit }
        });
        let entries: Vec<_> = entries.collect();
        group.last_timestamp = last_timestamp;
        let partition = group.partition;
        for permit in entries.iter().filter_map(|entry| entry.permit.as_ref()) {
            self.metrics.committed(partition, permit.admitted().elapsed());
        }
        self.shared.unapplied_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.send(partition, Work::Committed { partition, entries });
    }

    /// Keeps the queues of the processing threads bounded, for example while a long log is replayed.
    fn wait_for_application(&self) {
        while self.shared.unapplied_bytes.load(Ordering::Relaxed) > UNAPPLIED_LIMIT_BYTES && !self.shared.is_crashed() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn send(&self, partition: PartitionId, work: Work) {
        let processing = usize::from(partition.0).checked_sub(1).and_then(|index| self.processing.get(index));
        if processing.is_none_or(|processing| processing.send(work).is_err()) {
            tracing::debug!(%partition, "the processing thread has ended");
        }
    }
}

impl Group {
    /// Makes one entry of the waiting commands, with the time at which they happen: never earlier than the batch before,
    /// also when the clock went back or the node was restarted.
    fn seal(&mut self, shared: &Shared) {
        self.last_timestamp = self.last_timestamp.max(shared.clock.now_milliseconds());
        let data = protocol::encode_batch(self.last_timestamp, self.commands.iter().map(Vec::as_slice));
        self.encoded.push_back((Bytes::from(data), self.permit.take()));
        self.commands.clear();
        self.bytes = 0;
    }
}

/// The time in the header of an encoded batch, which follows the byte with its version.
fn timestamp_of(batch: &[u8]) -> Timestamp {
    let bytes = batch.get(1..).and_then(|rest| rest.first_chunk::<8>());
    bytes.map_or(Timestamp::MIN, |bytes| Timestamp::from_le_bytes(*bytes))
}

fn fail_requests(shared: &Shared, partition: PartitionId) {
    if let Ok(entrance) = shared.entrance(partition) {
        let reason = "its leader changed or its log failed while the command was under way";
        entrance.requests.fail_all(&SubmitError::Unavailable { partition, reason });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_batch_is_read_from_its_header() {
        let batch = protocol::encode_batch(1_763_700_000_123, [b"command".as_slice()].into_iter());
        assert_eq!(timestamp_of(&batch), 1_763_700_000_123);
        assert_eq!(timestamp_of(&[1, 2]), Timestamp::MIN);
    }
}
