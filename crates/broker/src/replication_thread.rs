//! The one thread that writes the log of the node.
//!
//! It takes everything that waits for all partitions, makes one entry per partition of it, writes all entries with one
//! synced write, and hands what is committed to the processing threads. While these apply a round, the next one is
//! written; the busier the node, the larger the batches.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use protocol::PartitionId;
use replication::{LogError, Message, NodeId, RaftEngineLog, Replicas, ReplicationError, Round, StepError};

use crate::flow_control::Permit;
use crate::handover::{Handovers, Step};
use crate::inbox::{Addition, Inbound, QueuedCommand, Work};
use crate::members::next_changes;
use crate::metrics::ReplicationMetrics;
use crate::partition_time::Moment;
use crate::replication_loop::{CommittedEntry, ReplicationLoop, Shell, group_of};
use crate::retention::RetentionLimits;
use crate::shared::Shared;
use crate::snapshot_transfer::ToSender;
use crate::snapshots::partition_of;
use crate::status::{Health, Trouble};

/// Time between two ticks of Raft's clock at a node alone, which has nobody to wait for.
const TICK_ALONE: Duration = Duration::from_millis(100);
/// The same at a member of a cluster: its elections take 10 to 20 ticks.
const TICK: Duration = Duration::from_millis(20);
/// Time between two looks at the groups for the metrics.
const PUBLICATION_INTERVAL: Duration = Duration::from_secs(1);
/// The same of a member, whose groups depend on others.
const PUBLICATION_INTERVAL_OF_MEMBER: Duration = Duration::from_millis(250);
/// Pause before a failed write is tried again.
const RETRY_PAUSE: Duration = Duration::from_millis(200);
/// Commands that one round takes at most, so that a flood does not delay the round without end.
const ROUND_COMMANDS_LIMIT: usize = 20_000;
/// Bytes handed to the processing threads and not applied yet, above which no further round is made.
const UNAPPLIED_LIMIT_BYTES: usize = 256 << 20;

pub(crate) struct ReplicationThread {
    inbox: Receiver<Inbound>,
    replication: ReplicationLoop<RaftEngineLog, Permit>,
    shell: ReplicationShell,
    handovers: Handovers,
    tick: Duration,
    next_tick: Instant,
    next_publication: Instant,
    /// To the thread that sends states to other nodes; none in a node alone.
    snapshots: Option<Sender<ToSender>>,
    /// Set while the log cannot be written.
    retry_at: Option<Instant>,
    stopping: bool,
}

/// What the loop talks to: the other threads and the waiting requests.
struct ReplicationShell {
    shared: Arc<Shared>,
    /// Where the committed batches of each partition go.
    processing: BTreeMap<PartitionId, Sender<Work>>,
    metrics: ReplicationMetrics,
    /// Members that a message did not reach in this round.
    unreachable: BTreeSet<NodeId>,
    started: Instant,
}

impl ReplicationThread {
    pub fn new(
        shared: Arc<Shared>,
        inbox: Receiver<Inbound>,
        replicas: Replicas<RaftEngineLog>,
        batch_limit_bytes: usize,
        retention: RetentionLimits,
    ) -> Self {
        let (processing, metrics) = (BTreeMap::new(), ReplicationMetrics::new());
        let tick = if shared.port.is_some() { TICK } else { TICK_ALONE };
        ReplicationThread {
            handovers: Handovers::default(),
            tick,
            inbox,
            replication: ReplicationLoop::new(replicas, &BTreeMap::new(), batch_limit_bytes).with_retention(retention),
            shell: ReplicationShell {
                shared,
                processing,
                metrics,
                unreachable: BTreeSet::new(),
                started: Instant::now(),
            },
            next_tick: Instant::now() + tick,
            next_publication: Instant::now(),
            snapshots: None,
            retry_at: None,
            stopping: false,
        }
    }

    /// States for other nodes are asked for there.
    pub fn with_snapshots(mut self, snapshots: Option<Sender<ToSender>>) -> Self {
        self.snapshots = snapshots;
        self
    }

    /// Runs until the node stops, or until the log cannot be trusted any more.
    pub fn run(mut self) {
        // The first round of a partition elects its leader and hands out what was not applied before the last stop.
        let mut result = self.rounds();
        while result.is_ok() && !self.shell.shared.is_crashed() && self.wait() {
            self.replication.propose(&mut self.shell);
            result = self.rounds();
        }
        if let Err(error) = result {
            self.shell.shared.fail(&format!("the log cannot be trusted any more: {error}"));
        }
    }

    /// Waits for something to do and takes everything that is there. `false` at the end.
    fn wait(&mut self) -> bool {
        if self.stopping {
            return false;
        }
        let deadlines = [self.retry_at, self.handovers.deadline()].into_iter().flatten();
        let deadline = deadlines.fold(self.next_tick, Instant::min);
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
        self.hand_over(now);
        if now >= self.next_tick {
            self.replication.replicas_mut().tick();
            self.next_tick = now + self.tick;
            self.publish(now);
        }
        true
    }

    /// Says about once a second how far the groups are.
    fn publish(&mut self, now: Instant) {
        if now < self.next_publication {
            return;
        }
        let is_member = self.shell.shared.port.is_some();
        self.next_publication = now + if is_member { PUBLICATION_INTERVAL_OF_MEMBER } else { PUBLICATION_INTERVAL };
        if is_member {
            self.change_members();
        }
        if let Err(error) = self.replication.forget_all() {
            tracing::error!(%error, "the log could not be compacted");
        }
        for &partition in self.shell.processing.keys() {
            if let Some(status) = self.replication.replicas().status(group_of(partition)) {
                self.shell.metrics.group(partition, &status);
                if let Some(entrance) = self.shell.shared.entrances.get(partition) {
                    entrance.set_group(status);
                }
            }
        }
    }

    /// Brings the members of the groups that are led here closer to the configuration of the cluster.
    fn change_members(&mut self) {
        let Some(configuration) = self.shell.shared.port.as_ref().and_then(|port| port.configuration()) else { return };
        let (me, wished) = (self.replication.replicas().node(), configuration.directories());
        for &partition in self.shell.processing.keys() {
            let Some(status) = self.replication.replicas().status(group_of(partition)) else { continue };
            let changes = next_changes(&status, me, &wished);
            if changes.is_empty() {
                continue;
            }
            match self.replication.replicas_mut().change_membership(group_of(partition), &changes) {
                Ok(()) => tracing::info!(%partition, ?changes, "the members of the partition change"),
                Err(error) => tracing::debug!(%partition, %error, "a change of members was not proposed"),
            }
        }
    }

    fn begin_handover(&mut self, partition: PartitionId, to: Option<NodeId>) {
        let Some(entrance) = self.shell.shared.entrances.get(partition) else { return };
        if entrance.is_open() && !self.handovers.contains(partition) {
            entrance.close();
            entrance.pass_on_held();
            self.handovers.begin(partition, to, Instant::now());
        }
    }

    fn hand_over(&mut self, now: Instant) {
        let (replicas, me) = (self.replication.replicas(), self.replication.replicas().node());
        for (partition, step) in self.handovers.due(now, me, |partition| replicas.status(group_of(partition))) {
            let to = match step {
                Step::Move(to) => to,
                Step::Stay => {
                    let term = self.replication.replicas().status(group_of(partition)).map(|status| status.term);
                    term.into_iter().for_each(|term| self.shell.lead(partition, term));
                    continue;
                }
            };
            self.replication.propose(&mut self.shell);
            match self.replication.replicas_mut().transfer_leadership(group_of(partition), to) {
                Ok(()) => tracing::info!(%partition, "the leadership of the partition is handed over"),
                Err(error) => tracing::debug!(%partition, %error, "the leadership was not handed over"),
            }
        }
    }

    fn step(&mut self, message: Message) {
        let partition = partition_of(message.group).ok();
        match self.replication.replicas_mut().step(message) {
            Ok(()) => {}
            // Its leader knows that this node has had entries which are not here any more: it must not go on by halves.
            Err(error @ StepError::EntriesLost { .. }) => self.leave(partition, &error),
            Err(error) => tracing::debug!(%error, "a message of Raft was not taken"),
        }
    }

    /// One group goes on without this node; the others are as they were.
    fn leave(&mut self, partition: Option<PartitionId>, error: &StepError) {
        let Some(partition) = partition else { return };
        tracing::error!(
            %partition, %error,
            "the partition stops on this node: its log has lost entries; stop the node, empty its data directory, and run \
             'osmia cluster replace' with its number"
        );
        if let Some(entrance) = self.shell.shared.entrances.get(partition) {
            entrance.stop(Health::Dead, &error.to_string());
        }
        if let Err(error) = self.replication.retire(partition) {
            tracing::error!(%partition, %error, "the partition could not be taken out of its group");
        }
    }

    fn take(&mut self, message: Inbound) {
        match message {
            // It came in while its leadership ended. Whoever waits for it hears that it is lost, so it must not be proposed.
            Inbound::Command(QueuedCommand { partition, term: Some(term), .. })
                if self.replication.term(partition) != Some(term) => {}
            Inbound::Command(command) => {
                self.replication.enqueue(&mut self.shell, command.partition, command.bytes, command.permit);
            }
            Inbound::Message { message, bytes } => {
                if let Some(port) = &self.shell.shared.port {
                    port.stepped(bytes);
                }
                self.step(message);
            }
            Inbound::EverybodyHas { partition, index } => {
                if let Err(error) = self.replication.everybody_has(partition, index) {
                    tracing::debug!(%partition, %error, "the log was not compacted to what all members have");
                }
            }
            Inbound::HandOver { partition, to } => self.begin_handover(partition, to),
            Inbound::Gone(member) => self.replication.replicas_mut().gone(member),
            Inbound::Unreachable(member) => self.replication.replicas_mut().unreachable(member),
            Inbound::Add(addition) => self.add(addition),
            Inbound::Checkpointed { partition, applied } => {
                let started = Instant::now();
                if let Err(error) = self.replication.checkpointed(partition, applied) {
                    tracing::error!(%partition, %error, "the log could not be compacted after a checkpoint");
                }
                self.shell.metrics.compacted(partition, started.elapsed());
            }
            Inbound::SnapshotMessage { request, at, reply } => {
                let message = self.replication.snapshot_message(&request, at).unwrap_or_else(|error| {
                    tracing::warn!(group = %request.group, %error, "there is no message for a state");
                    None
                });
                drop(reply.send(message));
            }
            Inbound::SnapshotSent { group, to, delivered } => self.replication.snapshot_sent(group, to, delivered),
            Inbound::SnapshotReceived { message, reply } => {
                let group = message.group;
                let is_taken = match self.replication.replicas_mut().step(*message) {
                    Ok(()) => Some(true),
                    Err(StepError::LogUnavailable) => None,
                    Err(error) => {
                        tracing::warn!(%group, %error, "the log does not take a state that another node sent");
                        Some(false)
                    }
                };
                // Who asks may have ended.
                let _ = reply.send(is_taken);
            }
            Inbound::StateInstalled { partition, applied, last_timestamp } => {
                self.replication.state_installed(partition, last_timestamp);
                self.take(Inbound::Checkpointed { partition, applied });
            }
            Inbound::Died(partition) => {
                if let Err(error) = self.replication.retire(partition) {
                    tracing::error!(%partition, %error, "the partition could not be taken out of its group");
                }
            }
            Inbound::Stop => self.stopping = true,
        }
    }

    fn add(&mut self, addition: Addition) {
        let Addition { partition, voters, applied, last_timestamp, processing, slot, done } = addition;
        let created = self.replication.replicas_mut().create_group(group_of(partition), &voters, applied);
        if created.is_ok() {
            self.shell.metrics.add(partition);
            // A thread that has ended is noticed when the first batch comes.
            drop(processing.send(Work::Add(slot)));
            self.shell.processing.insert(partition, processing);
            self.replication.add(partition, last_timestamp);
        }
        // Nobody waits any more when the start has failed.
        let _ = done.send(created);
    }

    /// Makes rounds until there is nothing to do. Returns only fatal errors.
    fn rounds(&mut self) -> Result<(), ReplicationError> {
        if self.retry_at.is_some_and(|retry| Instant::now() < retry) {
            return Ok(());
        }
        loop {
            match self.replication.round(&mut self.shell) {
                Ok(round) => {
                    self.log_works();
                    for member in std::mem::take(&mut self.shell.unreachable) {
                        self.replication.replicas_mut().unreachable(member);
                    }
                    if round.syncs > 0 {
                        self.shell.metrics.write(round.write);
                    }
                    self.states_wanted(&round);
                    if !self.shell.wait_for_application() || !round.more {
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

    /// Followers that entries cannot help any more get states.
    fn states_wanted(&mut self, round: &Round) {
        for request in &round.snapshots_to_send {
            let request = Box::new(request.clone());
            let (group, to) = (request.group, request.to);
            let is_sent = |snapshots: &Sender<ToSender>| snapshots.send(ToSender::Request(request)).is_ok();
            if !self.snapshots.as_ref().is_some_and(is_sent) {
                self.replication.snapshot_sent(group, to, false);
            }
        }
        for group in &round.checkpoints_wanted {
            if let Ok(partition) = partition_of(*group) {
                self.shell.tell(partition, Work::Checkpoint(partition));
            }
        }
    }

    fn log_works(&mut self) {
        if self.retry_at.take().is_some() {
            tracing::info!("the log can be written again");
            for entrance in self.shell.shared.entrances.all().values() {
                entrance.set_trouble(Trouble::Log, false);
            }
        }
    }

    fn log_fails(&mut self, error: &LogError) {
        if self.retry_at.is_none() {
            tracing::warn!(%error, "the log cannot be written; commands wait, and the write is tried again until it works");
            for entrance in self.shell.shared.entrances.all().values() {
                entrance.set_trouble(Trouble::Log, true);
            }
        }
        self.retry_at = Some(Instant::now() + RETRY_PAUSE);
    }
}

impl ReplicationShell {
    /// Keeps the queues of the processing threads bounded, for example while a long log is replayed. `false` when there are
    /// to be no further rounds, because the node ends: what it has not applied then, the next start replays.
    fn wait_for_application(&self) -> bool {
        let shared = &self.shared;
        loop {
            if shared.is_crashed() {
                return false;
            }
            if shared.unapplied_bytes.load(Ordering::Relaxed) <= UNAPPLIED_LIMIT_BYTES {
                return true;
            }
            // A partition that cannot write its records, or whose thread is gone, applies nothing more.
            if shared.stopping.load(Ordering::Acquire) || shared.failure.lock().is_some() {
                return false;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn tell(&self, partition: PartitionId, work: Work) {
        if self.processing.get(&partition).is_none_or(|processing| processing.send(work).is_err()) {
            tracing::debug!(%partition, "the processing thread has ended");
        }
    }
}

impl Shell for ReplicationShell {
    type Permit = Permit;

    fn now(&self) -> Moment {
        self.shared.clock.moment(self.started)
    }

    fn batched(&mut self, partition: PartitionId, commands: usize, bytes: usize, permit: Option<&Permit>) {
        let waited = permit.map(|permit| permit.admitted().elapsed());
        self.metrics.batch(partition, commands, bytes, waited);
    }

    fn send(&mut self, message: Message) {
        let to = message.to();
        if !self.shared.port.as_ref().is_some_and(|port| port.send_message(message)) {
            self.unreachable.insert(to);
        }
    }

    fn committed(&mut self, partition: PartitionId, mut entries: Vec<CommittedEntry<Permit>>, up_to: u64) {
        let now = Instant::now();
        for permit in entries.iter_mut().filter_map(|entry| entry.permit.as_mut()) {
            permit.committed(now);
            self.metrics.committed(partition, permit.admitted().elapsed());
        }
        self.metrics.committed_entries(partition, entries.len());
        let bytes = entries.iter().map(|entry| entry.data.len()).sum();
        self.shared.unapplied_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.tell(partition, Work::Committed { partition, entries, up_to });
    }

    fn lead(&mut self, partition: PartitionId, term: u64) {
        let Ok(entrance) = self.shared.entrance(partition) else { return };
        entrance.set_lead(term, Some(self.shared.node));
        self.tell(partition, Work::Lead { partition, leadership: entrance.leadership() });
    }

    fn step_down(&mut self, partition: PartitionId) {
        tracing::debug!(%partition, "not leading the partition any more");
        // At once: the processing thread has other things to do first, and what came in until then would be dropped.
        if let Ok(entrance) = self.shared.entrance(partition) {
            entrance.end_leadership();
        }
        self.tell(partition, Work::StepDown(partition));
    }

    fn follow(&mut self, partition: PartitionId, leader: Option<NodeId>, term: u64) {
        let leader = leader.and_then(|member| self.shared.port.as_ref()?.node(member)).map(|node| node.0);
        tracing::debug!(%partition, ?leader, term, "following a leader, or looking for one");
        if let Ok(entrance) = self.shared.entrance(partition) {
            entrance.follow(&self.shared, leader, term);
        }
    }

    fn install(&mut self, partition: PartitionId, index: u64) {
        tracing::info!(%partition, index, "the state of the partition is replaced by one that another node sent");
        self.tell(partition, Work::Install { partition, index });
    }

    fn log_failed(&mut self, partition: PartitionId, error: &LogError) {
        self.tell(partition, Work::LogFailed { partition, reason: error.to_string() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::Role;

    const PARTITION: PartitionId = PartitionId(1);

    fn shell() -> (ReplicationShell, Receiver<Work>) {
        let (shared, _) = Shared::for_test(1, 8);
        let (processing, work) = crossbeam_channel::unbounded();
        let (processing, mut metrics, started) =
            (BTreeMap::from([(PARTITION, processing)]), ReplicationMetrics::new(), Instant::now());
        metrics.add(PARTITION);
        (ReplicationShell { shared, processing, metrics, unreachable: BTreeSet::new(), started }, work)
    }

    #[test]
    fn a_node_that_stops_or_failed_waits_for_no_application() {
        let (shell, _work) = shell();
        let shared = shell.shared.clone();
        assert!(shell.wait_for_application());
        shared.unapplied_bytes.store(UNAPPLIED_LIMIT_BYTES + 1, Ordering::Relaxed);
        shared.stopping.store(true, Ordering::Release);
        assert!(!shell.wait_for_application());
        shared.stopping.store(false, Ordering::Release);
        shared.fail("a thread is gone");
        assert!(!shell.wait_for_application());
    }

    #[test]
    fn the_way_in_is_closed_with_the_leadership_and_an_old_one_opens_it_no_more() {
        let (mut shell, work) = shell();
        let entrance = shell.shared.entrances.of(PARTITION);
        entrance.set_role(Role::Follower);
        shell.lead(PARTITION, 2);
        let Ok(Work::Lead { leadership, .. }) = work.try_recv() else { panic!("the leadership is told") };
        assert!(entrance.open(leadership));
        assert!(entrance.is_open());
        shell.step_down(PARTITION);
        assert!(!entrance.is_open(), "although the processing thread knows nothing of it yet");
        assert!(matches!(work.try_recv(), Ok(Work::StepDown(PARTITION))));
        // The processing thread comes to the news of a leadership when that has ended.
        shell.lead(PARTITION, 2);
        let Ok(Work::Lead { leadership, .. }) = work.try_recv() else { panic!("the leadership is told") };
        shell.step_down(PARTITION);
        assert!(!entrance.open(leadership));
        assert!(!entrance.is_open());
    }
}
