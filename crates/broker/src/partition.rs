//! The runtime of one partition, driven by calls: committed batches and the time go in, effects come out.
//!
//! Nothing here has a thread, a clock or a file of its own, so a simulation drives the same code as production. The records
//! are the same on every replica. Answers and jobs for the clients of a node come from the replica of that node; what a
//! partition sends to itself and to others comes from its leader.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use engine::{Engine, Fault, JobsAvailable, OutgoingCommand, Output, Push, Reply, Unwatched, Watch};
use protocol::{
    Command, CommandBatch, GlobalListenerValue, Key, PartitionId, Record, Request, SettingsValue, Text, Timestamp,
};

pub use crate::partition_time::{Moment, PartitionTime};

/// Timing and limits of the work that a partition finds for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartitionOptions {
    /// Commands for due work that may be in flight at once. When half of them are applied, the next ones follow, so
    /// that the log is written while the others are applied.
    pub due_commands_limit: usize,
    /// Time without acknowledgement after which commands to other partitions are sent again.
    pub resend_interval_milliseconds: i64,
    /// While nothing is acknowledged, the pause before the next sending doubles up to this.
    pub resend_pause_limit_milliseconds: i64,
    /// Commands to one other partition that are sent again at a time.
    pub resend_limit: usize,
    /// Time after which the partition's own commands that were not applied count as lost.
    pub lost_after_milliseconds: i64,
    /// The number of this node.
    pub node: u32,
    /// The number of this life of the node.
    pub life: u64,
    /// Settings that are to be part of the state; none to leave those that are.
    pub settings: Option<SettingsValue>,
    /// The data was put back from a copy, and is to be at this incarnation at least.
    pub restored: Option<u64>,
}

impl Default for PartitionOptions {
    fn default() -> Self {
        PartitionOptions {
            // Few enough that other work waits only milliseconds when a million timers are due at once.
            due_commands_limit: 128,
            resend_interval_milliseconds: 1_000,
            resend_pause_limit_milliseconds: 30_000,
            resend_limit: 1_000,
            lost_after_milliseconds: 10_000,
            node: 0,
            life: 0,
            settings: None,
            restored: None,
        }
    }
}

/// What is to be done after a call.
#[derive(Debug, Default)]
pub struct Effects {
    output: Output,
    /// Commands of the partition to itself.
    pub submit: Vec<Command>,
}

impl Effects {
    /// Records in order; for every replica.
    pub fn records(&self) -> &[Record] {
        &self.output.records
    }

    /// Answers to waiting requests.
    pub fn replies(&mut self) -> impl Iterator<Item = Reply> + '_ {
        self.output.replies.drain(..)
    }

    /// Jobs for streams.
    pub fn pushes(&mut self) -> impl Iterator<Item = Push> + '_ {
        self.output.pushes.drain(..)
    }

    /// Hints that jobs are available.
    pub fn available(&mut self) -> impl Iterator<Item = JobsAvailable> + '_ {
        self.output.available.drain(..)
    }

    /// Commands for other partitions.
    pub fn sends(&mut self) -> impl Iterator<Item = OutgoingCommand> + '_ {
        self.output.sends.drain(..)
    }

    /// The requests of a node's clients in a batch whose answers are not among these effects: they come later, if at all.
    /// Answers come in the order of the commands.
    pub fn unanswered(&self, node: u32, batch: &CommandBatch) -> Vec<Request> {
        let mut replies = self.output.replies.as_slice();
        let own = batch.commands.iter().filter(|command| command.source.is_none());
        let own = own.filter_map(|command| command.request).filter(|request| request.node == node);
        let is_unanswered = |request: &Request| {
            let Some(at) = replies.iter().position(|reply| reply.request == *request) else { return true };
            replies = &replies[at + 1..];
            false
        };
        own.filter(is_unanswered).collect()
    }

    /// Drops what only a leader does.
    pub fn step_down(&mut self) {
        self.output.sends.clear();
        self.submit.clear();
    }

    /// Empties everything, keeping the memory.
    pub fn clear(&mut self) {
        self.output.clear();
        self.submit.clear();
    }
}

/// One partition: its engine, and the work that only the leader does.
#[derive(Debug)]
pub struct Partition {
    id: PartitionId,
    engine: Engine,
    options: PartitionOptions,
    /// What the cluster is called if it has no id yet.
    cluster_id: Option<Text>,
    /// The global listeners that the configuration of the cluster defines.
    global_listeners: Arc<[GlobalListenerValue]>,
    /// Whether the settings and global listeners of this node are those of the cluster.
    decides_settings: Arc<AtomicBool>,
    time: PartitionTime,
    leading: Option<Leading>,
}

/// What of its own work a partition goes on with. Each step writes records, which need room on the disk and are kept until exporters
/// have them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// All of it.
    Enough,
    /// What comes to an end: that gives room back.
    ForEnds,
    /// Nothing.
    None,
}

/// Own work that waits for room is looked at again after this time: whoever makes room does not say so.
const ROOM_LOOK_MILLISECONDS: i64 = 200;

/// When a partition has something to do if nothing happens before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NextPoll {
    /// On the node's clock.
    pub clock: Option<Timestamp>,
    /// In steady time.
    pub steady_milliseconds: Option<i64>,
}

/// What a leader keeps in mind. Nothing of it matters to its successor.
#[derive(Debug)]
struct Leading {
    /// The settings of this node were made part of the state, or are already.
    has_settings: bool,
    /// Commands for due work that are under way: none of them is submitted again before it is applied.
    due: UnderWay,
    /// The continuation of interrupted work that is under way.
    continuation: UnderWay,
    /// When to look whether there is room for interrupted work that waits for it (steady time).
    room_check: Option<i64>,
    /// There may be commands to other partitions that are not acknowledged.
    awaits_acknowledgement: bool,
    /// When to look after them (steady time).
    outbox_check: i64,
    /// What each other partition had not acknowledged at the last check.
    unacknowledged: BTreeMap<PartitionId, Unacknowledged>,
}

/// Commands to another partition that wait for their acknowledgement.
#[derive(Debug, Clone, Copy)]
struct Unacknowledged {
    /// The oldest sequence.
    oldest: u64,
    /// When they are sent again if it is still the oldest then (steady time).
    resend_at: i64,
    /// The pause before that.
    pause: i64,
}

/// A partition without its state, which is being replaced.
#[derive(Debug)]
pub struct EmptyPartition {
    id: PartitionId,
    options: PartitionOptions,
    cluster_id: Option<Text>,
    global_listeners: Arc<[GlobalListenerValue]>,
    decides_settings: Arc<AtomicBool>,
}

impl EmptyPartition {
    /// The partition.
    pub fn id(&self) -> PartitionId {
        self.id
    }

    /// The partition with another state. It does not lead yet.
    pub fn with_engine(self, engine: Engine) -> Partition {
        let EmptyPartition { id, options, cluster_id, global_listeners, decides_settings } = self;
        Partition { cluster_id, global_listeners, decides_settings, ..Partition::new(id, engine, options) }
    }
}

impl Partition {
    /// Closes the state, to be replaced by another one.
    pub fn empty(self) -> EmptyPartition {
        let Partition { id, options, cluster_id, global_listeners, decides_settings, .. } = self;
        EmptyPartition { id, options, cluster_id, global_listeners, decides_settings }
    }

    /// A partition on top of its recovered engine. It does not lead yet.
    pub fn new(id: PartitionId, engine: Engine, options: PartitionOptions) -> Self {
        let time = PartitionTime::new(engine.last_timestamp());
        let decides_settings = Arc::new(AtomicBool::new(true));
        let global_listeners = Arc::default();
        Partition { id, engine, options, cluster_id: None, global_listeners, decides_settings, time, leading: None }
    }

    /// Leading the first partition, it gives the cluster this id, unless that has one.
    pub fn with_cluster_id(self, cluster_id: &str) -> Self {
        Partition { cluster_id: Some(cluster_id.into()), ..self }
    }

    /// Leading the first partition, it has the configuration of the cluster define these global listeners.
    pub fn with_global_listeners(self, global_listeners: Arc<[GlobalListenerValue]>) -> Self {
        Partition { global_listeners, ..self }
    }

    /// Leading, it makes the settings and global listeners of this node part of the state only while this is so.
    pub fn with_settings_gate(self, decides_settings: Arc<AtomicBool>) -> Self {
        Partition { decides_settings, ..self }
    }

    /// The partition.
    pub fn id(&self) -> PartitionId {
        self.id
    }

    /// The number of this node.
    pub fn node(&self) -> u32 {
        self.options.node
    }

    /// The state machine.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The state machine, for checkpoints.
    pub fn engine_mut(&mut self) -> &mut Engine {
        &mut self.engine
    }

    /// Whether the data were put back from a copy once. That of all partitions was, so each of them begins another life, unless it has.
    pub fn may_begin_anew(&self) -> bool {
        self.options.restored.is_some()
    }

    /// The command that begins another life of the data, while that is still to be done.
    fn begin_anew(&self) -> Option<Command> {
        self.options.restored.and_then(|incarnation| self.engine.restored_command(incarnation))
    }

    /// Whether effects are carried out here.
    pub fn is_leading(&self) -> bool {
        self.leading.is_some()
    }

    /// This node leads the partition from now on, and everything that was committed before is applied.
    pub fn lead(&mut self, now: Moment, effects: &mut Effects) {
        // First, so that whatever else is done belongs to the new life.
        let begin_anew = self.begin_anew();
        let begins_anew = begin_anew.is_some();
        effects.submit.extend(begin_anew);
        // Those of earlier lives of this node take nothing any more.
        let (own, life) = (self.options.node, self.options.life);
        let lost = self.engine.lost_streams(|node| Some(if node == own { life } else { 0 }));
        effects.submit.extend(lost.map(engine::remove_lost_stream));
        // Before all that comes in: each term begins with a batch, by which requests of earlier terms are known to be lost.
        effects.submit.push(self.engine.start_command(self.options.node));
        let has_settings = self.adapt_state(effects);
        let mut leading = Leading {
            has_settings,
            due: UnderWay::default(),
            continuation: UnderWay::default(),
            room_check: None,
            awaits_acknowledgement: false,
            outbox_check: now.steady_milliseconds.saturating_add(self.options.resend_interval_milliseconds),
            unacknowledged: BTreeMap::new(),
        };
        // What an earlier leader sent may never have left it: everything unacknowledged is sent at once. In a new life that waits
        // until the life has begun, because what is sent names its sender's life.
        for partition in self.engine.outbox_partitions() {
            leading.awaits_acknowledgement = true;
            let waiting = self.oldest_unacknowledged(partition).map(|oldest| self.wait_for(oldest, now));
            leading.unacknowledged.extend(waiting.map(|waiting| (partition, waiting)));
            if !begins_anew {
                self.send_again(partition, effects);
            }
        }
        self.leading = Some(leading);
    }

    /// What the leader knows of the cluster and its settings become part of the state, as soon as the feature level has them.
    /// Returns whether the settings have: those of another node may be those of the cluster.
    fn adapt_state(&self, effects: &mut Effects) -> bool {
        effects
            .submit
            .extend(self.cluster_id.as_ref().and_then(|cluster_id| self.engine.bootstrap_command(cluster_id)));
        if !self.decides_settings.load(Ordering::Acquire) {
            return false;
        }
        effects.submit.extend(self.options.settings.and_then(|settings| self.engine.settings_command(settings)));
        effects.submit.extend(self.engine.global_listeners_command(&self.global_listeners));
        true
    }

    /// The settings of this node may be those of the cluster now, which they were not when it began to lead: then they become
    /// part of the state. To be called from time to time.
    pub fn look_at_settings(&mut self, effects: &mut Effects) {
        if self.leading.as_ref().is_some_and(|leading| !leading.has_settings) {
            let has_settings = self.adapt_state(effects);
            if let Some(leading) = &mut self.leading {
                leading.has_settings = has_settings;
            }
        }
    }

    /// This node does not lead the partition any more.
    pub fn step_down(&mut self) {
        self.leading = None;
    }

    /// Applies a committed batch.
    ///
    /// # Errors
    /// When the state cannot be trusted any more: the partition must stop.
    pub fn apply(&mut self, index: u64, batch: &CommandBatch, effects: &mut Effects) -> Result<(), Fault> {
        self.apply_watched(index, batch, &mut Unwatched, effects)
    }

    /// As [`Partition::apply`], and a watch sees each command before it is processed.
    ///
    /// # Errors
    /// As [`Partition::apply`].
    pub fn apply_watched(
        &mut self,
        index: u64,
        batch: &CommandBatch,
        watch: &mut impl Watch,
        effects: &mut Effects,
    ) -> Result<(), Fault> {
        let level = self.engine.feature_level();
        self.engine.apply_watched(index, batch, watch, &mut effects.output)?;
        self.time.witness(batch.timestamp);
        if self.leading.is_some() && self.engine.feature_level() != level {
            let has_settings = self.adapt_state(effects);
            if let Some(leading) = &mut self.leading {
                leading.has_settings = has_settings;
            }
        }
        // Whoever waits at this node is served by its own replica, whoever leads: so no answer depends on a leader.
        let node = self.options.node;
        effects.output.replies.retain(|reply| reply.request.node == node);
        effects.output.pushes.retain(|push| push.stream.node == node);
        let Some(leading) = &mut self.leading else {
            effects.output.sends.clear();
            return Ok(());
        };
        for command in &batch.commands {
            leading.due.applied(command);
            leading.continuation.applied(command);
        }
        leading.awaits_acknowledgement |= !effects.output.sends.is_empty();
        Ok(())
    }

    /// The log has reached `index`, with nothing to apply behind the last batch.
    pub fn advance(&mut self, index: u64) {
        self.engine.advance(index);
    }

    /// Looks for work that the partition has to start itself: what is due, what was interrupted, what was not
    /// acknowledged. Interrupted work waits while there is no room for what it would write.
    pub fn poll(&mut self, now: Moment, room: Room, effects: &mut Effects) {
        let steady = now.steady_milliseconds;
        let clock = self.time.now(now);
        let lost_before = steady.saturating_sub(self.options.lost_after_milliseconds);
        let Some(leading) = &mut self.leading else { return };
        leading.due.give_up(lost_before);
        let due_limit = self.options.due_commands_limit;
        if leading.due.len() <= due_limit / 2 && self.engine.next_due().is_some_and(|due| due <= clock) {
            let commands = self.engine.due_commands(clock, due_limit).into_iter();
            effects.submit.extend(commands.filter(|command| leading.due.submitted(command, steady)));
        }
        leading.continuation.give_up(lost_before);
        leading.room_check = None;
        if leading.continuation.len() == 0 {
            let continuation = match room {
                Room::Enough => self.engine.continuation(),
                Room::ForEnds => self.engine.continuation_of_end(),
                Room::None => None,
            };
            match continuation {
                Some(command) => {
                    leading.continuation.submitted(&command, steady);
                    effects.submit.push(command);
                }
                None if room != Room::Enough && self.engine.has_interrupted_work() => {
                    leading.room_check = Some(steady.saturating_add(ROOM_LOOK_MILLISECONDS));
                }
                None => {}
            }
        }
        if leading.outbox_check <= steady {
            leading.outbox_check = steady.saturating_add(self.options.resend_interval_milliseconds);
            if leading.awaits_acknowledgement {
                self.check_outbox(now, effects);
            }
        }
    }

    /// How far the partition's time is ahead of the node's clock, in milliseconds: what is due at a date comes this
    /// much early.
    pub fn ahead_milliseconds(&mut self, now: Moment) -> i64 {
        self.time.now(now).saturating_sub(now.clock)
    }

    /// When [`Partition::poll`] has something to do if nothing happens before.
    pub fn next_poll(&self) -> NextPoll {
        let Some(leading) = &self.leading else { return NextPoll::default() };
        let lost_after = self.options.lost_after_milliseconds;
        let outbox = leading.awaits_acknowledgement.then_some(leading.outbox_check);
        let (due, continuation) = (leading.due.lost_at(lost_after), leading.continuation.lost_at(lost_after));
        let clock = if due.is_some() { None } else { self.engine.next_due() };
        let behind = clock.and_then(|at| self.time.steady_at(at));
        let room = leading.room_check;
        NextPoll { clock, steady_milliseconds: [due, continuation, outbox, behind, room].into_iter().flatten().min() }
    }

    /// Sends the oldest command again whose acknowledgement is overdue. The pause grows with each attempt, because
    /// otherwise a partition that is gone for long would get the same commands without end. Nothing is sent before another life of the
    /// data has begun, because it would name the one before.
    fn check_outbox(&mut self, now: Moment, effects: &mut Effects) {
        if self.begin_anew().is_some() {
            return;
        }
        let steady = now.steady_milliseconds;
        let PartitionOptions { resend_pause_limit_milliseconds: limit, resend_interval_milliseconds: interval, .. } =
            self.options;
        let longest = limit.max(interval);
        let partitions = self.engine.outbox_partitions();
        let oldest: Vec<_> = partitions.iter().filter_map(|id| Some((*id, self.oldest_unacknowledged(*id)?))).collect();
        let Some(leading) = &mut self.leading else { return };
        leading.awaits_acknowledgement = !oldest.is_empty();
        let before = std::mem::take(&mut leading.unacknowledged);
        for (partition, oldest) in oldest {
            let mut waiting = match before.get(&partition) {
                Some(before) if before.oldest == oldest => *before,
                _ => self.wait_for(oldest, now),
            };
            if waiting.resend_at <= steady {
                waiting.pause = waiting.pause.saturating_mul(2).min(longest);
                waiting.resend_at = steady.saturating_add(waiting.pause);
                self.send_again(partition, effects);
            }
            if let Some(leading) = &mut self.leading {
                leading.unacknowledged.insert(partition, waiting);
            }
        }
    }

    fn wait_for(&self, oldest: u64, now: Moment) -> Unacknowledged {
        let pause = self.options.resend_interval_milliseconds;
        Unacknowledged { oldest, resend_at: now.steady_milliseconds.saturating_add(pause), pause }
    }

    fn oldest_unacknowledged(&self, partition: PartitionId) -> Option<u64> {
        let oldest = self.engine.outbox(partition, 0, 1);
        oldest.first().and_then(|command| command.source).map(|source| source.sequence)
    }

    fn send_again(&self, partition: PartitionId, effects: &mut Effects) {
        let commands = self.engine.outbox(partition, 0, self.options.resend_limit);
        effects.output.sends.extend(commands.into_iter().map(|command| OutgoingCommand { partition, command }));
    }
}

/// Commands of the partition to itself that were submitted and are not applied yet.
#[derive(Debug, Default)]
struct UnderWay {
    /// With the steady time of their submission.
    commands: BTreeMap<(Key, u8, &'static str), i64>,
}

impl UnderWay {
    fn name(command: &Command) -> (Key, u8, &'static str) {
        (command.key, command.payload.value_type() as u8, command.payload.intent_name())
    }

    fn len(&self) -> usize {
        self.commands.len()
    }

    /// A command is to be submitted; `false` when it is under way already.
    fn submitted(&mut self, command: &Command, now: i64) -> bool {
        match self.commands.entry(Self::name(command)) {
            Entry::Vacant(entry) => {
                entry.insert(now);
                true
            }
            Entry::Occupied(_) => false,
        }
    }

    fn applied(&mut self, command: &Command) {
        // Users' commands have a request, and most batches come while nothing is under way.
        if !self.commands.is_empty() && command.request.is_none() {
            self.commands.remove(&Self::name(command));
        }
    }

    /// What was submitted at `lost_before` or earlier is not waited for any more.
    fn give_up(&mut self, lost_before: i64) {
        self.commands.retain(|_, since| *since > lost_before);
    }

    /// When the first of what is under way counts as lost.
    fn lost_at(&self, lost_after_milliseconds: i64) -> Option<i64> {
        self.commands.values().min().map(|since| since.saturating_add(lost_after_milliseconds))
    }
}

#[cfg(test)]
mod tests;
