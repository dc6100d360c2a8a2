//! One partition on its processing thread.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crossbeam_channel::Sender;
use protocol::{PartitionId, Timestamp};

use crate::applying::Guard;
use crate::client::SubmitError;
use crate::entrance::{Entrance, Health, Role, Trouble};
use crate::flow_control::Permit;
use crate::inbox::{Inbound, QueuedCommand};
use crate::maintenance::Maintenance;
use crate::metrics::{ProcessingMetrics, RecordMetrics};
use crate::partition::{Effects, Moment, Partition};
use crate::record_log::RecordWriter;
use crate::replication_loop::CommittedEntry;
use crate::shared::Shared;

/// Pause before records are written again that could not be written.
const RECORDS_RETRY_PAUSE: Duration = Duration::from_millis(200);
/// How far the clock may be behind the partition's time before that is said.
const CLOCK_BEHIND_MILLISECONDS: i64 = 1_000;
/// Time between two looks at the engine's own numbers.
const STATISTICS_INTERVAL: Duration = Duration::from_secs(1);

/// When a partition makes checkpoints.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CheckpointPolicy {
    pub interval: Duration,
    pub overlay_bytes: u64,
}

/// One partition with what belongs to it on this thread.
pub(crate) struct Slot {
    partition: Partition,
    guard: Guard,
    records: RecordWriter,
    entrance: Arc<Entrance>,
    maintenance: Sender<Maintenance>,
    policy: CheckpointPolicy,
    metrics: ProcessingMetrics,
    record_metrics: RecordMetrics,
    effects: Effects,
    /// The batch whose effects are in `effects` and wait until its records are written: nothing else touches them.
    unfinished: Option<Unfinished>,
    /// Committed and not applied, and the news of leadership in its place among it.
    queue: VecDeque<Queued>,
    /// The index that the log has reached behind the queue.
    reached: u64,
    /// Set while the records of the last batch could not be written: nothing further is applied, and nothing else is done
    /// that has effects.
    records_retry_at: Option<Instant>,
    checkpoint: CheckpointState,
    last_checkpoint: Instant,
    last_checkpoint_applied: u64,
    /// Something happened since the partition last looked for work.
    touched: bool,
    /// When the partition looks for work if nothing happens.
    poll_at: Option<Instant>,
    next_statistics: Instant,
    /// That was said, and the clock has not caught up since.
    is_clock_behind: bool,
    /// Position of the last record that anybody got of this partition before the start.
    exported: u64,
    started: Instant,
    /// Set when the state cannot be trusted any more.
    dead: bool,
}

/// What waits for its turn.
enum Queued {
    /// A batch to be applied.
    Entry(CommittedEntry<Permit>),
    /// This node leads, in the leadership of this number: everything that was committed before stands before it.
    Lead(u64),
}

/// An applied batch whose records are not written yet.
struct Unfinished {
    permit: Option<Permit>,
    commands: usize,
    started: Instant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CheckpointState {
    Idle,
    UnderWay,
}

impl Slot {
    pub fn new(
        partition: Partition,
        guard: Guard,
        records: RecordWriter,
        entrance: Arc<Entrance>,
        maintenance: Sender<Maintenance>,
        policy: CheckpointPolicy,
    ) -> Self {
        let now = Instant::now();
        let id = partition.id();
        // Partitions do not all write their checkpoints at the same moment.
        let offset = policy.interval.mul_f64(f64::from(id.0 % 16) / 16.0);
        Slot {
            last_checkpoint_applied: partition.engine().applied(),
            partition,
            guard,
            records,
            entrance,
            maintenance,
            policy,
            metrics: ProcessingMetrics::new(id),
            record_metrics: RecordMetrics::new(id),
            effects: Effects::default(),
            unfinished: None,
            queue: VecDeque::new(),
            reached: 0,
            records_retry_at: None,
            checkpoint: CheckpointState::Idle,
            last_checkpoint: now.checked_sub(offset).unwrap_or(now),
            touched: false,
            poll_at: None,
            next_statistics: now,
            is_clock_behind: false,
            exported: 0,
            started: now,
            dead: false,
        }
    }

    pub fn id(&self) -> PartitionId {
        self.partition.id()
    }

    /// Adds committed batches.
    pub fn enqueue(&mut self, shared: &Shared, entries: Vec<CommittedEntry<Permit>>, up_to: u64) {
        self.queue.extend(entries.into_iter().map(Queued::Entry));
        self.reached = up_to;
        self.touched = true;
        if self.dead {
            self.drop_queue(shared);
        }
    }

    /// Looks for work soon.
    pub fn touch(&mut self) {
        self.touched = true;
    }

    pub fn is_touched_or_due(&self, now: Instant) -> bool {
        self.touched || self.deadline().is_some_and(|deadline| deadline <= now)
    }

    /// When to run if nothing happens before.
    pub fn deadline(&self) -> Option<Instant> {
        if self.dead {
            return None;
        }
        let checkpoint = self.is_checkpoint_needed().then(|| self.last_checkpoint + self.policy.interval);
        [self.records_retry_at, self.poll_at, checkpoint].into_iter().flatten().min()
    }

    /// Applies what is committed, carries out the effects, and looks for work.
    pub fn run(&mut self, shared: &Arc<Shared>, now: Instant) {
        if self.dead {
            return;
        }
        self.touched = false;
        if self.records_retry_at.is_some_and(|retry| retry <= now) {
            self.finish(shared);
        }
        while self.records_retry_at.is_none()
            && !self.dead
            && let Some(queued) = self.queue.pop_front()
        {
            match queued {
                Queued::Entry(entry) => self.apply(shared, entry),
                Queued::Lead(leadership) => self.take_lead(shared, leadership),
            }
        }
        if self.dead || self.records_retry_at.is_some() {
            return;
        }
        self.partition.advance(self.reached);
        self.poll(shared);
        self.consider_checkpoint();
        if now >= self.next_statistics {
            self.next_statistics = now + STATISTICS_INTERVAL;
            self.compare_clock(shared);
            let engine = self.partition.engine();
            self.metrics.engine(engine.last_position(), &engine.statistics());
        }
    }

    fn apply(&mut self, shared: &Arc<Shared>, entry: CommittedEntry<Permit>) {
        let started = Instant::now();
        let bytes = entry.data.len();
        self.effects.clear();
        self.guard.note.begin(entry.index);
        let applied = match protocol::decode_batch(&entry.data) {
            Ok(batch) => {
                let mut watch = self.guard.watch(entry.index, &entry.data, batch.commands.len());
                let applied = self.partition.apply_watched(entry.index, &batch, &mut watch, &mut self.effects);
                applied.map(|()| batch.commands.len()).map_err(|fault| fault.to_string())
            }
            Err(error) => Err(format!("entry {} of the log cannot be read: {error}", entry.index)),
        };
        self.guard.note.applied(entry.index);
        shared.unapplied_bytes.fetch_sub(bytes, Ordering::Relaxed);
        let commands = match applied {
            Ok(commands) => commands,
            Err(reason) => return self.die(shared, &reason),
        };
        for record in self.effects.records() {
            self.records.append(record);
        }
        self.unfinished = Some(Unfinished { permit: entry.permit, commands, started });
        self.finish(shared);
    }

    /// Writes the records of the batch that was applied last, and carries out its effects once that has worked: what is
    /// answered or handed to a worker must be in the record stream.
    fn finish(&mut self, shared: &Arc<Shared>) {
        self.flush_records();
        if self.records_retry_at.is_some() {
            // What waits for room is refused with the reason.
            return self.entrance.admit_held(&shared.inbox);
        }
        let Some(Unfinished { permit, commands, started }) = self.unfinished.take() else { return };
        let written = Instant::now();
        if let Some(permit) = permit {
            permit.applied(written);
            self.entrance.admit_held(&shared.inbox);
        }
        let (records, replay) = (self.effects.records().len(), !self.partition.is_leading());
        if !replay {
            self.record_metrics.count(self.effects.records());
        }
        self.carry_out(shared);
        self.metrics.applied(commands, records, written - started, written.elapsed(), replay);
    }

    /// Passes the effects on. There are none but records while this node does not lead.
    fn carry_out(&mut self, shared: &Arc<Shared>) {
        let partition = self.partition.id();
        for reply in self.effects.replies() {
            if reply.request.node == shared.node
                && let Some(function) = self.entrance.requests.take(reply.request.number)
            {
                function(Ok(reply));
            }
        }
        for push in self.effects.pushes() {
            shared.streams.push(shared, partition, push);
        }
        for available in self.effects.available() {
            for listener in shared.listeners.read().iter() {
                listener(partition, &available);
            }
        }
        for send in self.effects.sends() {
            // What a dead partition does not get stays in the outbox.
            if shared.entrance(send.partition).is_ok_and(|entrance| !entrance.health().has_stopped()) {
                submit(shared, send.partition, &send.command);
            }
        }
        for command in self.effects.submit.drain(..) {
            submit(shared, partition, &command);
        }
    }

    fn flush_records(&mut self) {
        match self.records.flush() {
            Ok(()) => {
                self.records_retry_at = None;
                if self.entrance.set_trouble(Trouble::Records, false) {
                    tracing::info!(partition = %self.id(), "the record stream can be written again");
                }
            }
            Err(error) => {
                self.records_retry_at = Some(Instant::now() + RECORDS_RETRY_PAUSE);
                if self.entrance.set_trouble(Trouble::Records, true) {
                    tracing::warn!(
                        partition = %self.id(), %error,
                        "the record stream cannot be written; the partition waits and tries again until it works"
                    );
                }
            }
        }
    }

    fn poll(&mut self, shared: &Arc<Shared>) {
        let now = self.now(shared);
        self.effects.clear();
        self.partition.poll(now, &mut self.effects);
        self.carry_out(shared);
        let next = self.partition.next_poll();
        let clock = next.clock.and_then(|at| wait_for(shared, now.clock, at));
        let steady = next.steady_milliseconds.map(|at| self.started + duration(at));
        self.poll_at = [clock, steady].into_iter().flatten().min();
    }

    /// Says when the partition's time leaves the clock behind, and when the clock has caught up.
    fn compare_clock(&mut self, shared: &Shared) {
        let ahead = self.partition.ahead_milliseconds(self.now(shared));
        self.metrics.clock_ahead(ahead);
        let partition = self.id();
        if self.is_clock_behind && ahead == 0 {
            self.is_clock_behind = false;
            tracing::info!(%partition, "the clock has caught up with the time of the partition");
        } else if !self.is_clock_behind && ahead > CLOCK_BEHIND_MILLISECONDS && self.partition.is_leading() {
            self.is_clock_behind = true;
            tracing::warn!(
                %partition, ahead_milliseconds = ahead,
                "the clock is behind the time of the partition's newest commands: it was further ahead before, here or on an \
                 earlier leader. The partition's time goes on a little slower than the clock until that has caught up; what \
                 is due after a duration comes in time, what is due at a date comes early. Check the clocks of the nodes"
            );
        }
    }

    fn now(&self, shared: &Shared) -> Moment {
        shared.clock.moment(self.started)
    }

    /// This node leads, as soon as everything is applied that was committed before.
    pub fn lead(&mut self, shared: &Arc<Shared>, leadership: u64) {
        self.queue.push_back(Queued::Lead(leadership));
        self.run(shared, Instant::now());
    }

    /// Opens the entrance.
    fn take_lead(&mut self, shared: &Arc<Shared>, leadership: u64) {
        if self.entrance.leadership() != leadership {
            return;
        }
        if let Err(reason) = self.check_records() {
            return self.die(shared, &reason);
        }
        self.effects.clear();
        self.partition.lead(self.now(shared), &mut self.effects);
        self.carry_out(shared);
        shared.streams.lead(shared, self.id());
        self.entrance.set_health(Health::Healthy);
        self.entrance.open(leadership);
        self.metrics.leads(self.started.elapsed());
        self.touched = true;
        tracing::info!(
            partition = %self.id(), applied = self.partition.engine().applied(),
            position = self.partition.engine().last_position(), "leading the partition"
        );
    }

    /// Exporters got records of this partition up to a position before the start. [`Slot::check_records`] compares it.
    pub fn was_exported(&mut self, position: u64) {
        self.exported = self.exported.max(position);
    }

    /// Everything that is committed is applied, so there are no records but those that were derived from it. If there are
    /// more, the log has lost entries that were acknowledged: new records would have positions that were given away, and
    /// exporters would skip them.
    fn check_records(&self) -> Result<(), String> {
        let derived = self.partition.engine().last_position();
        let recorded = self.records.last_position().max(self.exported);
        if recorded <= derived {
            return Ok(());
        }
        let partition = self.id();
        Err(format!(
            "there are records up to position {recorded}, but the log ends at position {derived}: it has lost commands that \
             were acknowledged; restore the data from a backup, or, to go on without these commands, stop the node and move \
             the directories partitions/{partition}/records and exporters away (exporters then get again what is left)"
        ))
    }

    /// This node does not lead any more: closes the entrance.
    pub fn step_down(&mut self, shared: &Arc<Shared>) {
        self.queue.retain(|queued| !matches!(queued, Queued::Lead(_)));
        // Whoever waits for an answer was told that it may be lost, and what others need the next leader sends again.
        self.effects.clear();
        self.entrance.set_role(Role::Follower);
        shared.streams.step_down(self.id());
        self.partition.step_down();
        self.metrics.follows();
    }

    /// The node starts without this partition, because the process ended repeatedly while something of it was applied.
    /// Nothing of it is applied, and its log keeps everything that its state does not hold.
    pub fn leave_out(&mut self, shared: &Arc<Shared>, reason: &str) {
        tracing::error!(partition = %self.id(), "the node starts without the partition: {reason}");
        self.stop_for_good(shared, Health::LeftOut, reason);
    }

    /// The state cannot be trusted any more.
    fn die(&mut self, shared: &Arc<Shared>, reason: &str) {
        let partition = self.id();
        tracing::error!(%partition, reason, "the partition stops because its state cannot be trusted any more");
        self.stop_for_good(shared, Health::Dead, &format!("its state cannot be trusted any more: {reason}"));
    }

    fn stop_for_good(&mut self, shared: &Arc<Shared>, health: Health, reason: &str) {
        let partition = self.id();
        self.dead = true;
        self.entrance.set_remark(reason);
        self.partition.step_down();
        shared.streams.step_down(partition);
        self.entrance.set_role(Role::Inactive);
        self.entrance.set_health(health);
        self.drop_queue(shared);
        drop(shared.inbox.send(Inbound::Died(partition)));
    }

    /// What comes to a dead partition is never applied.
    fn drop_queue(&mut self, shared: &Shared) {
        let partition = self.id();
        let reason = "it has stopped until an operator looks at it; the health of its node says why";
        self.entrance.fail_all(&SubmitError::Unavailable { partition, reason });
        self.unfinished = None;
        let bytes = |queued| match queued {
            Queued::Entry(entry) => entry.data.len(),
            Queued::Lead(_) => 0,
        };
        let bytes: usize = self.queue.drain(..).map(bytes).sum();
        shared.unapplied_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn is_checkpoint_needed(&self) -> bool {
        self.checkpoint == CheckpointState::Idle && self.partition.engine().applied() != self.last_checkpoint_applied
    }

    fn consider_checkpoint(&mut self) {
        let overlay_bytes = self.partition.engine().overlay_bytes();
        self.entrance.limiter.set_state_bytes(overlay_bytes);
        if self.is_checkpoint_needed()
            && (self.last_checkpoint.elapsed() >= self.policy.interval || overlay_bytes >= self.policy.overlay_bytes)
        {
            self.begin_checkpoint();
        }
    }

    fn begin_checkpoint(&mut self) {
        // Records that wait to be written are not in a segment yet, so the state must not be ahead of them.
        if self.records_retry_at.is_some() {
            return;
        }
        let (applied, position) = (self.partition.engine().applied(), self.partition.engine().last_position());
        match self.partition.engine_mut().freeze() {
            Ok(checkpoint) => {
                self.checkpoint = CheckpointState::UnderWay;
                self.last_checkpoint_applied = applied;
                let partition = self.id();
                drop(self.maintenance.send(Maintenance::Checkpoint { partition, checkpoint, position }));
            }
            Err(error) => tracing::error!(partition = %self.id(), %error, "the state could not be frozen"),
        }
        self.last_checkpoint = Instant::now();
    }

    /// Ends a checkpoint that is on disk.
    pub fn checkpoint_written(&mut self, shared: &Arc<Shared>, written: state::Written) {
        let statistics = written.statistics();
        let started = Instant::now();
        match self.partition.engine_mut().release(written) {
            Ok(retired) => {
                self.metrics.checkpoint(statistics.freeze_pause, statistics.write, started.elapsed());
                // Freeing millions of entries takes a while.
                drop(self.maintenance.send(Maintenance::Drop(retired)));
            }
            Err(error) => return self.die(shared, &error.to_string()),
        }
        self.checkpoint = CheckpointState::Idle;
        self.last_checkpoint = Instant::now();
        let checkpointed = Inbound::Checkpointed { partition: self.id(), applied: statistics.applied };
        drop(shared.inbox.send(checkpointed));
    }

    /// Makes a checkpoint of what the last one does not hold.
    pub fn begin_last_checkpoint(&mut self) {
        if !self.dead && self.is_checkpoint_needed() {
            self.begin_checkpoint();
        }
    }

    /// The node stops as it should: no entry ended the process.
    pub fn forget_ends(&mut self) {
        if !self.dead {
            self.guard.note.forget();
        }
    }

    pub fn is_checkpointing(&self) -> bool {
        !self.dead && self.checkpoint == CheckpointState::UnderWay
    }
}

/// When the clock will show `at`; none while it stands still before that.
fn wait_for(shared: &Shared, now: Timestamp, at: Timestamp) -> Option<Instant> {
    if at > now && shared.clock.is_pinned() {
        return None;
    }
    // Far dates are looked at again before: an `Instant` has less room than a `Timestamp`.
    Some(Instant::now() + duration(at.saturating_sub(now)).min(Duration::from_secs(3_600)))
}

/// None for a time that is past.
fn duration(milliseconds: i64) -> Duration {
    Duration::from_millis(u64::try_from(milliseconds).unwrap_or(0))
}

fn submit(shared: &Shared, partition: PartitionId, command: &protocol::Command) {
    drop(shared.inbox.send(Inbound::Command(QueuedCommand::internal(partition, command))));
}

#[cfg(test)]
mod tests;
