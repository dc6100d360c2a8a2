//! One partition on its processing thread: the loop that drives it, and what it needs of the node.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crossbeam_channel::Sender;
use engine::{Engine, JobsAvailable, OutgoingCommand, Push, Reply};
use protocol::{ClockIntent, Command, PartitionId, Payload, Record, RecordPlace, RecordType};
use state::{Checkpoint, CheckpointStatistics, Retired, Written};

use crate::applying::{Guard, Watching};
use crate::entrance::Entrance;
use crate::flow_control::Permit;
use crate::inbox::{Inbound, QueuedCommand};
use crate::maintenance::Maintenance;
use crate::metrics::{ProcessingMetrics, RecordMetrics};
use crate::partition::{Moment, Partition, Room};
use crate::partition_loop::{Batch, CheckpointPolicy, PartitionLoop, Shell};
use crate::record_log::{RecordLogError, RecordWriter};
use crate::replication_loop::CommittedEntry;
use crate::shared::Shared;
use crate::status::{Health, Role};

/// How far the clock may be behind the partition's time before that is said.
const CLOCK_BEHIND_MILLISECONDS: i64 = 1_000;

/// One partition with what belongs to it on this thread.
pub(crate) struct Slot {
    partition: PartitionLoop<Permit>,
    surroundings: Surroundings,
    /// Why the node works without the partition, until its thread owns it.
    left_out: Option<String>,
}

/// What the loop talks to: the rest of the node.
struct Surroundings {
    id: PartitionId,
    shared: Arc<Shared>,
    entrance: Arc<Entrance>,
    guard: Guard,
    maintenance: Sender<Maintenance>,
    metrics: ProcessingMetrics,
    record_metrics: RecordMetrics,
    /// That was said, and the clock has not caught up since.
    is_clock_behind: bool,
    started: Instant,
    /// Time from the admission of the first user's command in the batch that is being finished to the writing of its records.
    waited: Option<Duration>,
    /// When this node was told that it leads.
    elected: Option<Instant>,
    /// Whether the partitions may still have to begin another life of their data.
    may_begin_anew: bool,
}

impl std::fmt::Debug for Slot {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Slot").field("partition", &self.id()).finish_non_exhaustive()
    }
}

impl Slot {
    pub fn new(
        shared: Arc<Shared>,
        entrance: Arc<Entrance>,
        partition: Partition,
        guard: Guard,
        records: RecordWriter,
        maintenance: Sender<Maintenance>,
        policy: CheckpointPolicy,
    ) -> Self {
        let id = partition.id();
        let surroundings = Surroundings {
            id,
            shared,
            entrance,
            guard,
            maintenance,
            metrics: ProcessingMetrics::new(id),
            record_metrics: RecordMetrics::new(id),
            is_clock_behind: false,
            started: Instant::now(),
            waited: None,
            elected: None,
            may_begin_anew: partition.may_begin_anew(),
        };
        Slot { partition: PartitionLoop::new(partition, records, policy), surroundings, left_out: None }
    }

    /// The node works without this partition, for this reason.
    pub fn leave_out(&mut self, reason: String) {
        self.left_out = Some(reason);
    }

    pub fn id(&self) -> PartitionId {
        self.surroundings.id
    }

    /// Adds committed batches.
    pub fn enqueue(&mut self, entries: Vec<CommittedEntry<Permit>>, up_to: u64) {
        self.partition.enqueue(&mut self.surroundings, entries, up_to);
    }

    /// Looks for work soon.
    pub fn touch(&mut self) {
        self.partition.touch();
    }

    pub fn is_touched_or_due(&self, now: Instant) -> bool {
        self.partition.is_touched_or_due(now.duration_since(self.surroundings.started))
    }

    /// When to run if nothing happens before.
    pub fn deadline(&self) -> Option<Instant> {
        self.partition.deadline().map(|deadline| self.surroundings.started + deadline)
    }

    /// Applies what is committed, carries out the effects, and looks for work.
    pub fn run(&mut self, now: Instant) {
        let now = now.duration_since(self.surroundings.started);
        self.partition.run(&mut self.surroundings, now);
    }

    /// This node leads, as soon as everything is applied that was committed before.
    pub fn lead(&mut self, leadership: u64) {
        self.surroundings.elected = Some(Instant::now());
        self.partition.lead(&mut self.surroundings, leadership);
    }

    /// Exporters got records of this partition up to a place before the start.
    pub fn was_exported(&mut self, place: RecordPlace) {
        self.partition.was_exported(place);
    }

    /// This node does not lead any more: closes the entrance.
    pub fn step_down(&mut self) {
        self.partition.step_down(&mut self.surroundings);
    }

    /// Its log cannot be read.
    pub fn log_failed(&mut self, reason: &str) {
        self.partition.log_failed(&mut self.surroundings, reason);
    }

    /// Its thread owns it from here on. When the node is to work without this partition, it stops before anything is applied.
    pub fn begin(&mut self) {
        if let Some(reason) = self.left_out.take() {
            self.partition.leave_out(&mut self.surroundings, &reason);
        }
    }

    /// Ends a checkpoint that is on disk.
    pub fn checkpoint_written(&mut self, written: Written) {
        self.partition.checkpoint_written(&mut self.surroundings, written);
    }

    /// Makes a checkpoint of what the last one does not hold.
    pub fn begin_checkpoint_now(&mut self) {
        self.partition.begin_checkpoint_now(&mut self.surroundings);
    }

    /// The node stops as it should: no entry ended the process.
    pub fn forget_ends(&mut self) {
        if !self.partition.is_dead() {
            self.surroundings.guard.note.forget();
        }
    }

    pub fn is_checkpointing(&self) -> bool {
        self.partition.is_checkpointing()
    }

    pub fn is_dead(&self) -> bool {
        self.partition.is_dead()
    }

    /// Compares the streams of the node with the state, and gives back what belongs to nodes that are gone.
    pub fn reconcile(&mut self) {
        if !self.partition.is_dead() {
            self.partition.look_at_settings(&mut self.surroundings);
            let partition = self.partition.partition();
            self.surroundings.shared.reconcile(self.surroundings.id, partition.is_leading(), partition.engine());
        }
    }

    /// Closes the state, and lets a received one of this index take its place.
    pub fn empty(mut self, index: u64) -> EmptySlot {
        let partition = self.partition.empty(&mut self.surroundings);
        // Answers that another node's state skips never come here.
        let skipped = self.surroundings.entrance.requests.skipped();
        drop(self.surroundings.maintenance.send(Maintenance::Replace { partition, index }));
        EmptySlot { surroundings: self.surroundings, skipped }
    }
}

/// What stays of a partition while its state is replaced.
pub(crate) struct EmptySlot {
    surroundings: Surroundings,
    /// The requests whose outcome is not known.
    skipped: Vec<u64>,
}

impl EmptySlot {
    /// The partition goes on from another state.
    pub fn fill(mut self, partition: PartitionLoop<Permit>) -> Slot {
        let engine = partition.partition().engine();
        self.surroundings.guard.note.checkpointed(engine.applied());
        self.surroundings.entrance.applied(engine);
        self.surroundings.shared.adopt_cluster(engine);
        if self.surroundings.id == PartitionId::DEPLOYMENT {
            self.surroundings.shared.clock.adopt(engine.pinned_clock());
        }
        let (applied, position) = (engine.applied(), engine.last_position());
        self.surroundings.shared.give_back_skipped(self.surroundings.id, &self.skipped, engine);
        tracing::info!(partition = %self.surroundings.id, applied, position, "the partition goes on from a received state");
        Slot { partition, surroundings: self.surroundings, left_out: None }
    }
}

impl Surroundings {
    /// Follows where an earlier leader's clock was stopped. A leader has done so already, when its user did it.
    fn adopt_clock(&self, records: &[Record]) {
        if self.id != PartitionId::DEPLOYMENT {
            return;
        }
        for record in records.iter().filter(|record| record.record_type == RecordType::Event) {
            match record.payload {
                Payload::Clock(ClockIntent::Pinned, value) => self.shared.clock.adopt(Some(value.time)),
                Payload::Clock(ClockIntent::Resetted, _) => self.shared.clock.adopt(None),
                _ => {}
            }
        }
    }
}

impl Shell for Surroundings {
    type Permit = Permit;
    type Watch<'a> = Watching<'a>;

    fn now(&self) -> Moment {
        self.shared.clock.moment(self.started)
    }

    fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    fn room(&self) -> Room {
        self.entrance.limiter.room_for_own_work()
    }

    fn begin(&mut self, index: u64) {
        self.guard.note.begin(index);
    }

    fn watch(&self, index: u64, content: &[u8], commands: usize) -> Watching<'_> {
        self.guard.watch(index, content, commands)
    }

    fn began(&mut self, term: u64) {
        self.entrance.requests.lost_before(term);
    }

    fn awaits(&mut self, request: protocol::Request) {
        if request.node == self.shared.node {
            self.entrance.requests.applied(request.number);
        }
    }

    fn end(&mut self, index: u64) {
        self.guard.applied(index);
    }

    fn taken(&mut self, bytes: usize) {
        self.shared.unapplied_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn applied(&mut self, _: &[u8], _: &[Record], engine: &Engine) {
        self.entrance.applied(engine);
    }

    fn records_flushed(&mut self, result: Result<(), &RecordLogError>) {
        if result.is_err() {
            self.metrics.records_failed();
        }
        self.entrance.records_flushed(result, &self.shared.inbox);
    }

    fn written(&mut self, time: Range<Duration>, permit: Option<Permit>, records: &[Record], is_leading: bool) {
        let at = self.started + time.end;
        self.waited = permit.as_ref().map(|permit| at.saturating_duration_since(permit.admitted()));
        self.entrance.written(permit, at, time.end.saturating_sub(time.start), &self.shared.inbox);
        if is_leading {
            self.record_metrics.count(records);
        }
        // Of a cluster, another node's user may have done it.
        if !is_leading || self.shared.port.is_some() {
            self.adopt_clock(records);
        }
    }

    fn finished(&mut self, batch: &Batch) {
        // Up to the writing of its records, without the time that applying it and writing them took.
        let latency = self.waited.take().map(|waited| waited.saturating_sub(batch.processing));
        self.metrics.applied(batch, latency);
    }

    fn answer(&mut self, reply: Reply) {
        self.shared.answer(&self.entrance, reply);
    }

    fn push(&mut self, push: Push) {
        self.shared.streams.push(self.id, push);
    }

    fn available(&mut self, available: &JobsAvailable) {
        for listener in self.shared.listeners.read().iter() {
            listener(self.id, available);
        }
    }

    fn send(&mut self, send: OutgoingCommand) {
        // What a dead partition does not get stays in the outbox. One that may begin another life of its data gets nothing before it
        // has: behind its own entrance, which opens then.
        let takes = |entrance: &Entrance| match self.may_begin_anew {
            true => entrance.is_open(),
            false => entrance.lead().leader != Some(self.shared.node) || !entrance.health().has_stopped(),
        };
        if self.shared.entrance(send.partition).is_ok_and(|entrance| takes(&entrance)) {
            self.shared.submit_to(send.partition, &send.command);
        }
    }

    fn submit(&mut self, command: Command) {
        drop(self.shared.inbox.send(Inbound::Command(QueuedCommand::internal(self.id, &command))));
    }

    fn is_current(&self, leadership: u64) -> bool {
        self.entrance.leadership() == leadership
    }

    fn lead(&mut self, leadership: u64, engine: &Engine) {
        self.shared.reconcile(self.id, false, engine);
        self.entrance.begin_leadership(&self.shared, leadership);
        let transition = self.elected.take().map_or(Duration::ZERO, |elected| elected.elapsed());
        self.metrics.leads(self.started.elapsed(), transition, engine.last_position());
        tracing::info!(
            partition = %self.id, applied = engine.applied(), position = engine.last_position(), "leading the partition"
        );
    }

    fn step_down(&mut self) {
        self.entrance.set_role(Role::Follower);
        self.metrics.follows();
    }

    fn unsaved(&mut self, overlay_bytes: u64) {
        self.entrance.limiter.set_state_bytes(overlay_bytes);
    }

    fn write_checkpoint(&mut self, checkpoint: Checkpoint, position: u64) {
        drop(self.maintenance.send(Maintenance::Checkpoint { partition: self.id, checkpoint, position }));
    }

    fn checkpointed(&mut self, retired: Retired, statistics: &CheckpointStatistics, pause: Duration) {
        self.metrics.checkpoint(statistics.freeze_pause, statistics.write, pause);
        let (partition, applied) = (self.id, statistics.applied);
        let milliseconds = statistics.write.as_millis();
        self.guard.note.checkpointed(applied);
        tracing::debug!(%partition, applied, milliseconds, "a checkpoint of the state was written");
        // Freeing millions of entries takes a while.
        drop(self.maintenance.send(Maintenance::Drop(retired)));
        let checkpointed = Inbound::Checkpointed { partition: self.id, applied: statistics.applied };
        drop(self.shared.inbox.send(checkpointed));
    }

    /// Says when the partition's time leaves the clock behind, and when the clock has caught up.
    fn statistics(&mut self, ahead_milliseconds: i64, is_leading: bool, engine: &Engine) {
        self.shared.adopt_cluster(engine);
        self.metrics.feature_level(engine.feature_level());
        self.metrics.clock_ahead(ahead_milliseconds);
        self.metrics.engine(engine.last_position(), is_leading, &engine.statistics());
        self.record_metrics.publish();
        self.metrics.commands(&self.guard.times);
        let partition = self.id;
        if self.is_clock_behind && ahead_milliseconds == 0 {
            self.is_clock_behind = false;
            tracing::info!(%partition, "the clock has caught up with the time of the partition");
        } else if !self.is_clock_behind && ahead_milliseconds > CLOCK_BEHIND_MILLISECONDS && is_leading {
            self.is_clock_behind = true;
            tracing::warn!(
                %partition, ahead_milliseconds,
                "the clock is behind the time of the partition's newest commands: it was further ahead before, here or on an \
                 earlier leader. The partition's time goes on a little slower than the clock until that has caught up; what \
                 is due after a duration comes in time, what is due at a date comes early. Check the clocks of the nodes"
            );
        }
    }

    fn stop(&mut self, health: Health, reason: &str) {
        self.metrics.stops();
        self.entrance.stop(health, reason);
        drop(self.shared.inbox.send(Inbound::Died(self.id)));
    }

    fn refuse_all(&mut self) {
        self.entrance.refuse_all();
    }
}

#[cfg(test)]
mod tests;
