//! What a processing thread does for one partition between two waits, driven by calls: committed batches go in and are
//! applied in order, their records are written, and then their effects are told to the shell around it.
//!
//! Nothing here has a thread or a clock of its own, so a simulation drives the same code as production.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use engine::{Engine, JobsAvailable, OutgoingCommand, Push, Reply, Watch};
use protocol::{Command, PartitionId, Record, RecordPlace, Request};
use state::{Checkpoint, CheckpointStatistics, Retired, Written};

use crate::partition::{Effects, EmptyPartition, Moment, Partition, Room};
use crate::record_log::{RecordLog, RecordLogError, RecordWriter};
use crate::replication_loop::CommittedEntry;
use crate::status::Health;

/// Pause before records are written again that could not be written.
const RECORDS_RETRY_PAUSE: Duration = Duration::from_millis(200);
/// A checkpoint follows at once behind what took longer to apply.
const SAVED_AFTER: Duration = Duration::from_secs(1);
/// Time between two looks at the engine's own numbers.
const STATISTICS_INTERVAL: Duration = Duration::from_secs(1);
/// What is due later than that is looked at again before.
const FAR_MILLISECONDS: i64 = 3_600_000;

/// The surroundings of the loop. What it is told comes in the order in which it is to become true.
pub trait Shell {
    /// What commands carry.
    type Permit;
    /// Looks on while an entry is applied.
    type Watch<'a>: Watch
    where
        Self: 'a;

    /// What the node's clocks show.
    fn now(&self) -> Moment;

    /// Time since the start of the partition. It never goes back, and it is the steady time of [`Shell::now`].
    fn elapsed(&self) -> Duration;

    /// What of its own work the partition may go on with.
    fn room(&self) -> Room;

    /// An entry is read, to be applied.
    fn begin(&mut self, index: u64);

    /// Who looks on while the entry with this content and so many commands is applied.
    fn watch(&self, index: u64, content: &[u8], commands: usize) -> Self::Watch<'_>;

    /// The first entry of a term is about to be applied: nothing of earlier terms follows.
    fn began(&mut self, term: u64);

    /// The command of this request is applied, and its answer comes with a later one.
    fn awaits(&mut self, request: Request);

    /// Everything up to this entry is applied, or will never be.
    fn end(&mut self, index: u64);

    /// So many bytes of committed entries do not wait any more.
    fn taken(&mut self, bytes: usize);

    /// An entry was applied; its records are not written yet.
    fn applied(&mut self, content: &[u8], records: &[Record], engine: &Engine);

    /// The records of all that is applied are written, or they could not be, and that is tried again.
    fn records_flushed(&mut self, result: Result<(), &RecordLogError>);

    /// The records of a batch that was begun and ended at these times were written, and its effects follow: the limits have room
    /// again.
    fn written(&mut self, time: Range<Duration>, permit: Option<Self::Permit>, records: &[Record], is_leading: bool);

    /// The effects of a batch are carried out.
    fn finished(&mut self, batch: &Batch);

    /// The answer to a request.
    fn answer(&mut self, reply: Reply);

    /// A job for a stream.
    fn push(&mut self, push: Push);

    /// Jobs are available.
    fn available(&mut self, available: &JobsAvailable);

    /// A command for another partition. What does not arrive is sent again.
    fn send(&mut self, send: OutgoingCommand);

    /// A command of the partition to itself.
    fn submit(&mut self, command: Command);

    /// Whether the leadership of this number has not ended.
    fn is_current(&self, leadership: u64) -> bool;

    /// Everything before the leadership is applied: commands may come in.
    fn lead(&mut self, leadership: u64, engine: &Engine);

    /// This node does not lead the partition any more.
    fn step_down(&mut self);

    /// How much is changed and not in a checkpoint.
    fn unsaved(&mut self, overlay_bytes: u64);

    /// The state is frozen: after all records up to a position it is to be written.
    fn write_checkpoint(&mut self, checkpoint: Checkpoint, position: u64);

    /// A checkpoint is part of the state; the memory of what was frozen can be freed.
    fn checkpointed(&mut self, retired: Retired, statistics: &CheckpointStatistics, pause: Duration);

    /// Once a second: how the partition is.
    fn statistics(&mut self, ahead_milliseconds: i64, is_leading: bool, engine: &Engine);

    /// The partition takes no part in anything any more, for this reason.
    fn stop(&mut self, health: Health, reason: &str);

    /// Whoever waits for an answer of the stopped partition gets none.
    fn refuse_all(&mut self);
}

/// A batch that was applied, with what that took.
#[derive(Debug, Clone, Copy)]
pub struct Batch {
    /// Commands of the batch.
    pub commands: usize,
    /// Records that came of them.
    pub records: usize,
    /// Whether effects were carried out.
    pub is_leading: bool,
    /// Time until the records were written.
    pub processing: Duration,
    /// Time for the effects.
    pub effects: Duration,
}

/// When a partition makes checkpoints.
#[derive(Debug, Clone, Copy)]
pub struct CheckpointPolicy {
    /// Time after the last one, if something changed.
    pub interval: Duration,
    /// Changes after which there is one at once.
    pub overlay_bytes: u64,
}

impl<P> std::fmt::Debug for PartitionLoop<P> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("PartitionLoop").field("partition", &self.partition.id()).finish_non_exhaustive()
    }
}

/// One partition with what waits for it.
pub struct PartitionLoop<P> {
    partition: Partition,
    pub(crate) records: RecordWriter,
    policy: CheckpointPolicy,
    effects: Effects,
    /// The batch whose effects are in `effects` and wait until its records are written: nothing else touches them.
    unfinished: Option<Unfinished<P>>,
    /// Committed and not applied, and the news of leadership in its place among it.
    queue: VecDeque<Queued<P>>,
    /// The index that the log has reached behind the queue.
    reached: u64,
    /// The term of the entry that was applied last.
    term: u64,
    /// Set while the records of the last batch could not be written: nothing further is applied, and nothing else is done
    /// that has effects.
    records_retry_at: Option<Duration>,
    checkpoint: CheckpointState,
    /// When the next checkpoint is made, if something changed.
    checkpoint_at: Duration,
    last_checkpoint_applied: u64,
    /// Something happened since the partition last looked for work.
    touched: bool,
    /// When the partition looks for work if nothing happens.
    poll_at: Option<Duration>,
    next_statistics: Duration,
    /// Something was applied since the numbers were published last.
    statistics_are_old: bool,
    /// Position of the last record that anybody got of this partition before the start.
    exported: RecordPlace,
    /// Set when the state cannot be trusted any more.
    dead: bool,
}

/// What waits for its turn.
enum Queued<P> {
    /// A batch to be applied.
    Entry(CommittedEntry<P>),
    /// This node leads, in the leadership of this number: everything that was committed before stands before it.
    Lead(u64),
}

/// An applied batch whose records are not written yet.
struct Unfinished<P> {
    permit: Option<P>,
    commands: usize,
    started: Duration,
}

/// What stays of a partition's loop while its state is replaced.
#[derive(Debug)]
pub struct EmptyLoop {
    partition: EmptyPartition,
    records: Arc<RecordLog>,
    policy: CheckpointPolicy,
    exported: RecordPlace,
}

impl EmptyLoop {
    /// The partition.
    pub fn id(&self) -> PartitionId {
        self.partition.id()
    }

    /// Its record stream.
    pub fn records(&self) -> &Arc<RecordLog> {
        &self.records
    }

    /// The loop on another state, whose records go on in the same stream, behind a gap.
    ///
    /// # Errors
    /// When the stream cannot go on there.
    pub fn with_engine<P>(self, engine: Engine) -> Result<PartitionLoop<P>, RecordLogError> {
        let records = self.records.go_on_behind(engine.record_place())?;
        let mut of = PartitionLoop::new(self.partition.with_engine(engine), records, self.policy);
        of.was_exported(self.exported);
        Ok(of)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CheckpointState {
    Idle,
    UnderWay,
}

impl<P> PartitionLoop<P> {
    /// Drives a partition whose records go to a writer.
    pub fn new(partition: Partition, records: RecordWriter, policy: CheckpointPolicy) -> Self {
        // Partitions do not all write their checkpoints at the same moment.
        let offset = policy.interval.mul_f64(f64::from(partition.id().0 % 16) / 16.0);
        PartitionLoop {
            last_checkpoint_applied: partition.engine().applied(),
            partition,
            records,
            policy,
            effects: Effects::default(),
            unfinished: None,
            queue: VecDeque::new(),
            reached: 0,
            term: 0,
            records_retry_at: None,
            checkpoint: CheckpointState::Idle,
            checkpoint_at: policy.interval.saturating_sub(offset),
            touched: false,
            poll_at: None,
            next_statistics: Duration::ZERO,
            statistics_are_old: false,
            exported: RecordPlace::default(),
            dead: false,
        }
    }

    /// The partition.
    pub fn partition(&self) -> &Partition {
        &self.partition
    }

    /// Adds committed batches; behind them the log holds entries of Raft up to an index.
    pub fn enqueue(&mut self, shell: &mut impl Shell<Permit = P>, entries: Vec<CommittedEntry<P>>, up_to: u64) {
        self.queue.extend(entries.into_iter().map(Queued::Entry));
        self.reached = up_to;
        self.touched = true;
        if self.dead {
            self.drop_queue(shell);
        }
    }

    /// Looks for work soon.
    pub fn touch(&mut self) {
        self.touched = true;
    }

    /// Whether there is something to do.
    pub fn is_touched_or_due(&self, now: Duration) -> bool {
        self.touched || self.deadline().is_some_and(|deadline| deadline <= now)
    }

    /// When to run if nothing happens before.
    pub fn deadline(&self) -> Option<Duration> {
        if self.dead {
            return None;
        }
        let checkpoint = self.is_checkpoint_needed().then_some(self.checkpoint_at);
        // Nothing is published while records cannot be written.
        let statistics = (self.statistics_are_old && self.records_retry_at.is_none()).then_some(self.next_statistics);
        [self.records_retry_at, self.poll_at, checkpoint, statistics].into_iter().flatten().min()
    }

    /// Applies what is committed, carries out the effects, and looks for work.
    pub fn run(&mut self, shell: &mut impl Shell<Permit = P>, now: Duration) {
        if self.dead {
            return;
        }
        self.touched = false;
        if self.records_retry_at.is_some_and(|retry| retry <= now) {
            self.finish(shell);
        }
        while self.records_retry_at.is_none()
            && !self.dead
            && let Some(queued) = self.queue.pop_front()
        {
            match queued {
                Queued::Entry(entry) => self.apply(shell, entry),
                Queued::Lead(leadership) => self.take_lead(shell, leadership),
            }
        }
        if self.dead || self.records_retry_at.is_some() {
            return;
        }
        self.partition.advance(self.reached);
        self.poll(shell);
        self.consider_checkpoint(shell);
        if now >= self.next_statistics {
            self.next_statistics = now + STATISTICS_INTERVAL;
            self.statistics_are_old = false;
            let ahead = self.partition.ahead_milliseconds(shell.now());
            shell.statistics(ahead, self.partition.is_leading(), self.partition.engine());
        }
    }

    fn apply(&mut self, shell: &mut impl Shell<Permit = P>, entry: CommittedEntry<P>) {
        let CommittedEntry { index, term, data, permit } = entry;
        let started = shell.elapsed();
        self.effects.clear();
        if term > self.term {
            self.term = term;
            shell.began(term);
        }
        shell.begin(index);
        let applied = match protocol::decode_batch(&data) {
            Ok(batch) => {
                let mut watch = shell.watch(index, &data, batch.commands.len());
                let applied = self.partition.apply_watched(index, &batch, &mut watch, &mut self.effects);
                drop(watch);
                let unanswered = self.effects.unanswered(self.partition.node(), &batch);
                unanswered.into_iter().for_each(|request| shell.awaits(request));
                applied.map(|()| batch.commands.len()).map_err(|fault| fault.to_string())
            }
            Err(error) => Err(format!("entry {index} of the log cannot be read: {error}")),
        };
        shell.end(index);
        shell.taken(data.len());
        if shell.elapsed().saturating_sub(started) >= SAVED_AFTER {
            // The next start had to do it again.
            self.checkpoint_at = shell.elapsed();
        }
        let commands = match applied {
            Ok(commands) => commands,
            Err(reason) => return self.die(shell, &reason),
        };
        shell.applied(&data, self.effects.records(), self.partition.engine());
        for record in self.effects.records() {
            self.records.append(record);
        }
        self.statistics_are_old = true;
        self.unfinished = Some(Unfinished { permit, commands, started });
        self.finish(shell);
    }

    /// Writes the records of the batch that was applied last, and carries out its effects once that has worked: what is
    /// answered or handed to a worker must be in the record stream.
    fn finish(&mut self, shell: &mut impl Shell<Permit = P>) {
        let flushed = self.records.flush();
        self.records_retry_at = flushed.is_err().then(|| shell.elapsed() + RECORDS_RETRY_PAUSE);
        shell.records_flushed(flushed.as_ref().copied());
        if self.records_retry_at.is_some() {
            return;
        }
        let Some(Unfinished { permit, commands, started }) = self.unfinished.take() else { return };
        let written = shell.elapsed();
        let (records, is_leading) = (self.effects.records().len(), self.partition.is_leading());
        shell.written(started..written, permit, self.effects.records(), is_leading);
        self.carry_out(shell);
        let (processing, effects) = (written.saturating_sub(started), shell.elapsed().saturating_sub(written));
        shell.finished(&Batch { commands, records, is_leading, processing, effects });
    }

    /// Passes the effects on. There are none but records while this node does not lead.
    fn carry_out(&mut self, shell: &mut impl Shell<Permit = P>) {
        self.effects.replies().for_each(|reply| shell.answer(reply));
        self.effects.pushes().for_each(|push| shell.push(push));
        self.effects.available().for_each(|available| shell.available(&available));
        self.effects.sends().for_each(|send| shell.send(send));
        self.effects.submit.drain(..).for_each(|command| shell.submit(command));
    }

    fn poll(&mut self, shell: &mut impl Shell<Permit = P>) {
        let now = shell.now();
        self.effects.clear();
        self.partition.poll(now, shell.room(), &mut self.effects);
        self.carry_out(shell);
        let next = self.partition.next_poll();
        // A clock that stands still never shows what is ahead of it.
        let clock = next.clock.filter(|at| !now.is_pinned || *at <= now.clock);
        let wait = |at: i64| milliseconds(at.saturating_sub(now.clock).min(FAR_MILLISECONDS));
        let clock = clock.map(|at| shell.elapsed() + wait(at));
        self.poll_at = [clock, next.steady_milliseconds.map(milliseconds)].into_iter().flatten().min();
    }

    /// This node leads, as soon as everything is applied that was committed before.
    pub fn lead(&mut self, shell: &mut impl Shell<Permit = P>, leadership: u64) {
        self.queue.push_back(Queued::Lead(leadership));
        self.run(shell, shell.elapsed());
    }

    fn take_lead(&mut self, shell: &mut impl Shell<Permit = P>, leadership: u64) {
        if !shell.is_current(leadership) {
            return;
        }
        if let Err(reason) = self.check_records() {
            return self.die(shell, &reason);
        }
        self.effects.clear();
        self.partition.lead(shell.now(), &mut self.effects);
        self.carry_out(shell);
        shell.lead(leadership, self.partition.engine());
        self.touched = true;
    }

    /// Looks whether the settings of this node are those of the cluster by now.
    pub fn look_at_settings(&mut self, shell: &mut impl Shell<Permit = P>) {
        if !self.dead && self.records_retry_at.is_none() {
            self.effects.clear();
            self.partition.look_at_settings(&mut self.effects);
            self.carry_out(shell);
        }
    }

    /// Exporters got records of this partition up to a place before the start. Its log must account for them before it leads.
    pub fn was_exported(&mut self, place: RecordPlace) {
        self.exported = self.exported.max(place);
    }

    /// Everything that is committed is applied, so there are no records but those that were derived from it. If there are
    /// more, the log has lost entries that were acknowledged: new records would have positions that were given away, and
    /// exporters would skip them.
    pub(crate) fn check_records(&self) -> Result<(), String> {
        let RecordPlace { incarnation, position: derived, .. } = self.partition.engine().record_place();
        let partition = self.partition.id();
        if self.exported.incarnation > incarnation {
            return Err(format!(
                "there is an exporter with records of incarnation {} of it, and the state is of incarnation {incarnation}: the state is \
                 older than a restore that these records came after; restore the data as a whole, or stop the node and move the \
                 directory exporters away (exporters then get again what is left)",
                self.exported.incarnation
            ));
        }
        // What exporters have of an earlier incarnation is told apart from what comes now.
        let is_present = self.exported.incarnation == incarnation;
        let exported = if is_present { self.exported.position } else { 0 };
        let recorded = self.records.last_position().max(exported);
        if recorded <= derived {
            return Ok(());
        }
        Err(format!(
            "there are records up to position {recorded}, but the log ends at position {derived}: it has lost commands that \
             were acknowledged; restore the data from a backup, or, to go on without these commands, stop the node and move \
             the directories partitions/{partition}/records and exporters away (exporters then get again what is left)"
        ))
    }

    /// This node does not lead the partition any more.
    pub fn step_down(&mut self, shell: &mut impl Shell<Permit = P>) {
        self.queue.retain(|queued| !matches!(queued, Queued::Lead(_)));
        // What others need the next leader sends again.
        self.effects.step_down();
        self.partition.step_down();
        shell.step_down();
    }

    /// The node starts without this partition, because the process ended repeatedly while something of it was applied.
    /// Nothing of it is applied, and its log keeps everything that its state does not hold.
    pub fn leave_out(&mut self, shell: &mut impl Shell<Permit = P>, reason: &str) {
        tracing::error!(partition = %self.partition.id(), "the node starts without the partition: {reason}");
        self.stop_for_good(shell, Health::LeftOut, reason);
    }

    /// The log cannot be read, so nothing of it comes any more.
    pub fn log_failed(&mut self, shell: &mut impl Shell<Permit = P>, reason: &str) {
        tracing::error!(partition = %self.partition.id(), reason, "the partition stops because its log cannot be read");
        self.stop_for_good(shell, Health::Dead, reason);
    }

    /// The state cannot be trusted any more.
    fn die(&mut self, shell: &mut impl Shell<Permit = P>, reason: &str) {
        let partition = self.partition.id();
        tracing::error!(%partition, reason, "the partition stops because its state cannot be trusted any more");
        self.stop_for_good(shell, Health::Dead, &format!("its state cannot be trusted any more: {reason}"));
    }

    fn stop_for_good(&mut self, shell: &mut impl Shell<Permit = P>, health: Health, reason: &str) {
        self.dead = true;
        self.partition.step_down();
        shell.stop(health, reason);
        self.drop_queue(shell);
    }

    /// What comes to a dead partition is never applied.
    fn drop_queue(&mut self, shell: &mut impl Shell<Permit = P>) {
        shell.refuse_all();
        self.unfinished = None;
        let bytes = self.queued_bytes();
        shell.taken(bytes);
    }

    fn is_checkpoint_needed(&self) -> bool {
        self.checkpoint == CheckpointState::Idle && self.partition.engine().applied() != self.last_checkpoint_applied
    }

    fn consider_checkpoint(&mut self, shell: &mut impl Shell<Permit = P>) {
        let overlay_bytes = self.partition.engine().overlay_bytes();
        shell.unsaved(overlay_bytes);
        if self.is_checkpoint_needed()
            && (shell.elapsed() >= self.checkpoint_at || overlay_bytes >= self.policy.overlay_bytes)
        {
            self.begin_checkpoint(shell);
        }
    }

    /// Makes a checkpoint of what the last one does not hold, without waiting for its time.
    pub fn begin_checkpoint_now(&mut self, shell: &mut impl Shell<Permit = P>) {
        if !self.dead && self.is_checkpoint_needed() {
            self.begin_checkpoint(shell);
        }
    }

    fn begin_checkpoint(&mut self, shell: &mut impl Shell<Permit = P>) {
        // Records that wait to be written are not in a segment yet, so the state must not be ahead of them.
        if self.records_retry_at.is_some() {
            return;
        }
        let (applied, position) = (self.partition.engine().applied(), self.partition.engine().last_position());
        match self.partition.engine_mut().freeze() {
            Ok(checkpoint) => {
                self.checkpoint = CheckpointState::UnderWay;
                self.last_checkpoint_applied = applied;
                shell.write_checkpoint(checkpoint, position);
            }
            Err(error) => tracing::error!(partition = %self.partition.id(), %error, "the state could not be frozen"),
        }
        self.checkpoint_at = shell.elapsed() + self.policy.interval;
    }

    /// Ends a checkpoint that is on disk.
    pub fn checkpoint_written(&mut self, shell: &mut impl Shell<Permit = P>, written: Written) {
        let statistics = written.statistics();
        let started = shell.elapsed();
        match self.partition.engine_mut().release(written) {
            Ok(retired) => {
                self.checkpoint = CheckpointState::Idle;
                let ended = shell.elapsed();
                self.checkpoint_at = ended + self.policy.interval;
                shell.checkpointed(retired, &statistics, ended.saturating_sub(started));
            }
            Err(error) => self.die(shell, &error.to_string()),
        }
    }

    /// Closes the state, because a received one takes its place. What waits to be applied is part of that one, and what was applied
    /// last had no effects that anybody waits for: this node does not lead.
    pub fn empty(mut self, shell: &mut impl Shell<Permit = P>) -> EmptyLoop {
        self.step_down(shell);
        let bytes = self.queued_bytes();
        shell.taken(bytes);
        EmptyLoop {
            partition: self.partition.empty(),
            records: self.records.log().clone(),
            policy: self.policy,
            exported: self.exported,
        }
    }

    /// Forgets what waits, and says how many bytes that was.
    fn queued_bytes(&mut self) -> usize {
        let bytes = |queued: Queued<P>| match queued {
            Queued::Entry(entry) => entry.data.len(),
            Queued::Lead(_) => 0,
        };
        self.queue.drain(..).map(bytes).sum()
    }

    /// Whether the partition has stopped for good.
    pub fn is_dead(&self) -> bool {
        self.dead
    }

    /// Whether a checkpoint is being written.
    pub fn is_checkpointing(&self) -> bool {
        !self.dead && self.checkpoint == CheckpointState::UnderWay
    }
}

/// None for a time that is past.
fn milliseconds(milliseconds: i64) -> Duration {
    Duration::from_millis(u64::try_from(milliseconds).unwrap_or(0))
}
