//! The deterministic engine of one partition: commands decide, events apply.
//!
//! [`Engine::apply`] takes a batch of replicated commands and a time, and changes the state by the events that it gives
//! back. It knows no clock, random number, thread, file (beyond opening its tables), socket or iteration over a hash map:
//! the same batches give the same state and the same records on every replica.

#![deny(clippy::disallowed_methods, clippy::iter_over_hash_type)]

mod ad_hoc_sub_process;
mod apply;
mod compensation;
mod conditional;
mod decision_evaluation;
mod definitions;
mod deployment;
mod dispatch;
mod distribution;
mod due;
mod element;
mod element_path;
mod event;
mod execution;
mod expression_evaluation;
mod feature_level;
mod global_listener;
mod incident;
mod job;
mod job_stream;
mod limits;
mod listener;
mod living;
mod message;
mod name;
mod output;
mod owners;
mod partition;
mod payload_bytes;
mod process_instance;

mod refused;
mod resource;
mod resource_deletion;
mod routing;
mod run;
mod signal;
mod state;
mod timer;
mod usage;
mod user_task;
mod variable;
mod watch;

pub use feature_level::{FeatureLevel, UnknownFeatureLevel};
pub use global_listener::configure_global_listeners;
pub use limits::Limits;
pub use living::LivingRecords;
pub use output::{JobsAvailable, OutgoingCommand, Output, Push, Reply, Spent};
pub use owners::{StreamTotals, acknowledge_polls, give_back_poll, remove_lost_stream};
pub use watch::{Decision, Subject, Unwatched, Watch};

use std::path::Path;
use std::sync::Arc;

use ::state::{Checkpoint, Retired, Schema, Store, StoreError, StoreOptions, Written};
use protocol::{
    ClusterIntent, ClusterValue, Command, CommandBatch, DecodeError, GlobalListenerValue, IncarnationIntent,
    IncarnationValue, Key, NodeIntent, NodeValue, OutboxSource, PartitionId, Payload, Record, RecordPlace, Request,
    SettingsIntent, SettingsValue, StreamId, Timestamp, WorkIntent, WorkValue,
};

use crate::state::{Counters, EarlyVariables, OutboxRow, SavedLevel, State, Tables, WorkRow};

/// More keys than a life of the data gives between a copy and its loss, and so few that data can be put back 100,000 times.
const KEYS_OF_A_LOST_LIFE: u64 = 1 << 34;
/// The same of positions.
const POSITIONS_OF_A_LOST_LIFE: u64 = 1 << 40;
/// The layout of the tables, with what brings the files of older versions to it.
const SCHEMA: Schema = Schema { version: SCHEMA_VERSION, oldest_reader: 1, steps: &[] };
/// The version of the tables' layout.
pub const SCHEMA_VERSION: u32 = 1;
/// Bytes of changes in memory above which interrupted work waits, if the options do not say less.
const CONTINUATION_OVERLAY_BYTES_MAX: u64 = 80 << 20;

/// The settings of an engine.
#[derive(Clone, Copy, Debug)]
pub struct EngineOptions {
    /// Its partition.
    pub partition: PartitionId,
    /// How many partitions there were when this one began: by that it routes until its state says by what (CLUSTER BOOTSTRAP). It
    /// must be the same whenever the log of the partition is applied from its beginning.
    pub first_partition_count: u16,
    /// The feature level at which the partition begins while there is no state of it. It must be the same whenever the log of
    /// the partition is applied from its beginning.
    pub first_level: FeatureLevel,
    /// The newest feature level that this engine knows: [`FeatureLevel::NEWEST`], but for tests of raising it.
    pub newest_level: FeatureLevel,
    /// Other limits than those of the feature level, for tests and simulations.
    pub limits: Option<Limits>,
    /// What a mistake of the engine itself leads to.
    pub broken_invariant: BrokenInvariant,
    /// For the leader: bytes of changes in memory above which interrupted work waits for the next checkpoint.
    pub continuation_overlay_bytes_max: u64,
}

impl EngineOptions {
    /// The options of a partition that begins at the newest feature level.
    pub fn new(partition: PartitionId, first_partition_count: u16) -> Self {
        EngineOptions {
            partition,
            first_partition_count,
            first_level: FeatureLevel::NEWEST,
            newest_level: FeatureLevel::NEWEST,
            limits: None,
            broken_invariant: BrokenInvariant::default(),
            continuation_overlay_bytes_max: CONTINUATION_OVERLAY_BYTES_MAX,
        }
    }
}

/// What happens when a command finds an invariant of the engine broken: its handler panics, or emits an event that does not
/// fit the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BrokenInvariant {
    /// Nothing of the command remains, its instance is banned with the reason, and the partition continues.
    FailsTheCommand,
    /// The engine panics. Otherwise a test would only see a command that was refused, which it may expect.
    Stops,
}

impl Default for BrokenInvariant {
    /// A build with debug assertions stops; a production build continues without the instance.
    fn default() -> Self {
        if cfg!(debug_assertions) { BrokenInvariant::Stops } else { BrokenInvariant::FailsTheCommand }
    }
}

/// The state cannot be read or trusted any more; the partition must stop.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the message says what each field is")]
pub enum Fault {
    /// The tables met an error.
    #[error("The state of partition {partition} met an error: {source}")]
    Store { partition: PartitionId, source: StoreError },
    /// A record does not fit the state, and that of no single command, which would only have been refused.
    #[error(
        "A record of partition {partition} does not fit its state, which is damaged or met a mistake of the engine: {reason}"
    )]
    Misfit {
        partition: PartitionId,
        /// The record, and what it did not find.
        reason: String,
    },
    /// The state is at a feature level that this build does not know, or the log holds a command that raises it to one.
    #[error("Partition {partition} cannot go on with this build: {error}")]
    FeatureLevel { partition: PartitionId, error: UnknownFeatureLevel },
    /// The counters saved with the state cannot be read.
    #[error("The counters saved with the state of partition {partition} cannot be read: {reason}")]
    Counters {
        partition: PartitionId,
        /// What is wrong with them.
        reason: String,
    },
}

impl Fault {
    /// Whether a later version wrote what this one cannot read: it should be left to that version as it is.
    pub fn is_of_newer_version(&self) -> bool {
        match self {
            Fault::FeatureLevel { .. } => true,
            Fault::Store { source, .. } => matches!(source, StoreError::UnknownVersion { .. }),
            Fault::Misfit { .. } | Fault::Counters { .. } => false,
        }
    }
}

/// The files of all partitions of a node are mapped into one process.
fn store_options(partition_count: u16) -> StoreOptions {
    let map_size_bytes = StoreOptions::map_size_of(partition_count);
    StoreOptions { schema: SCHEMA, map_size_bytes, ..StoreOptions::default() }
}

/// Reads the counters saved with a state. Their level comes first: at one that this build does not know, others may have another
/// meaning.
fn read_counters(saved: &[u8], options: &EngineOptions) -> Result<Counters, Fault> {
    let partition = options.partition;
    let unreadable = |error: DecodeError| Fault::Counters { partition, reason: error.to_string() };
    let SavedLevel { number } = protocol::decode(saved).map_err(unreadable)?;
    FeatureLevel::known_to(number, options.newest_level).map_err(|error| Fault::FeatureLevel { partition, error })?;
    protocol::decode(saved).map_err(unreadable)
}

/// Numbers for operators.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngineStatistics {
    /// Open incidents.
    pub incidents: u64,
    /// Banned instances.
    pub banned_instances: u64,
    /// Registered job streams.
    pub job_streams: u64,
    /// Entries of interrupted work that wait for their continuation.
    pub work_entries: u64,
    /// Open timers.
    pub timers: u64,
    /// Messages that are kept.
    pub messages: u64,
    /// Open subscriptions to messages that arrive here.
    pub message_subscriptions: u64,
    /// Memory and file of the state.
    pub store: ::state::Statistics,
}

/// The state machine of one partition.
#[derive(Debug)]
pub struct Engine {
    options: EngineOptions,
    state: State,
    applied: u64,
}

impl Engine {
    /// Opens the state in `directory`, which is made when absent, as of its newest checkpoint.
    ///
    /// # Errors
    /// When the state cannot be read, or is of another version.
    pub fn open(options: EngineOptions, directory: &Path) -> Result<Engine, Fault> {
        let partition = options.partition;
        let fault = |source| Fault::Store { partition, source };
        let store = Store::open(directory, &store_options(options.first_partition_count)).map_err(fault)?;
        let recovered = store.recovered();
        let counters = if recovered.metadata.is_empty() {
            Counters::new(options.first_level)
        } else {
            read_counters(&recovered.metadata, &options)?
        };
        let state = State::new(Tables::open(&store), counters, partition);
        Ok(Engine { options, state, applied: recovered.applied })
    }

    /// Replaces the state in `directory`, which must not be open, by one that another replica sent, and returns the index
    /// of the last batch that is part of it.
    ///
    /// # Errors
    /// When the stream is damaged or of another version, or the directory cannot be written; the old state stays then.
    pub fn restore(partition: PartitionId, directory: &Path, stream: impl std::io::Read) -> Result<u64, Fault> {
        // One file at a time is restored, and mapped for no longer than that.
        let recovered = Store::restore_from(directory, &store_options(1), stream);
        recovered.map(|recovered| recovered.applied).map_err(|source| Fault::Store { partition, source })
    }

    /// An engine without a file: everything lives in memory.
    pub fn in_memory(options: EngineOptions) -> Engine {
        let state = State::new(Tables::in_memory(), Counters::new(options.first_level), options.partition);
        Engine { options, state, applied: 0 }
    }

    /// Index of the log up to which everything is part of the state; 0 for a new one.
    pub fn applied(&self) -> u64 {
        self.applied
    }

    /// Position of the last record that is part of the state.
    pub fn last_position(&self) -> u64 {
        self.state.counters.position
    }

    /// The life of the partition's data: 1 at first, and a higher one after each restore.
    pub fn incarnation(&self) -> u64 {
        self.state.counters.incarnation
    }

    /// By which rules commands are processed.
    pub fn feature_level(&self) -> FeatureLevel {
        self.state.counters.feature_level
    }

    /// Where the clock of the cluster stands still, if it does.
    pub fn pinned_clock(&self) -> Option<Timestamp> {
        self.state.counters.pinned_clock
    }

    /// The place in the record stream behind everything that is part of the state. Its position may be that of a command
    /// behind the last record.
    pub fn record_place(&self) -> RecordPlace {
        let Counters { incarnation, position, records, .. } = self.state.counters;
        RecordPlace { incarnation, position, number: records }
    }

    /// Time of the last batch that is part of the state.
    pub fn last_timestamp(&self) -> Timestamp {
        self.state.counters.timestamp
    }

    /// Applies one replicated batch: each command atomically, in order. What it produces is appended to `output`.
    ///
    /// # Errors
    /// When the state cannot be trusted any more. The batch is then half applied in memory; the partition must stop and
    /// be opened again.
    pub fn apply(&mut self, index: u64, batch: &CommandBatch, output: &mut Output) -> Result<(), Fault> {
        self.apply_watched(index, batch, &mut Unwatched, output)
    }

    /// As [`Engine::apply`], and `watch` learns of each command before it is processed.
    ///
    /// # Errors
    /// As [`Engine::apply`].
    pub fn apply_watched(
        &mut self,
        index: u64,
        batch: &CommandBatch,
        watch: &mut impl Watch,
        output: &mut Output,
    ) -> Result<(), Fault> {
        output.reply_bytes = 0;
        for (number, command) in (1..).zip(&batch.commands) {
            let decision = watch.before(number, command, watch::named(command));
            let (replies, records) = (output.replies.len(), output.records.len());
            dispatch::process(&mut self.state, &self.options, batch.timestamp, command, decision, output)?;
            output.place_replies(replies, records);
        }
        distribution::acknowledge(&self.state, batch, output);
        self.state.counters.timestamp = self.state.counters.timestamp.max(batch.timestamp);
        self.applied = index;
        Ok(())
    }

    /// The log has reached `index`, and what is there behind the last batch is none of the engine's: without this, a
    /// checkpoint could not say that it includes a change of members, which a new replica has to know.
    pub fn advance(&mut self, index: u64) {
        self.applied = self.applied.max(index);
    }

    /// Applies one record of the stream to the state: the records alone rebuild it.
    ///
    /// # Errors
    /// As [`Engine::apply`].
    pub fn replay(&mut self, record: &Record) -> Result<(), Fault> {
        self.state.begin();
        // Records of the same command came before.
        self.state.early_variables = EarlyVariables::Unknown;
        apply::apply(&mut self.state, record);
        dispatch::commit(&mut self.state)
    }

    /// For the leader: commands for everything that is due at `now`, oldest due date first, at most `limit`.
    pub fn due_commands(&self, now: Timestamp, limit: usize) -> Vec<Command> {
        due::commands(&self.state, now, limit)
    }

    /// The earliest due date; `None` when nothing is scheduled.
    pub fn next_due(&self) -> Option<Timestamp> {
        due::next(&self.state)
    }

    /// For the leader: the command that continues interrupted work, if there is some. At most one should be under way.
    pub fn continuation(&self) -> Option<Command> {
        if self.state.counters.work_entries == 0 || self.awaits_checkpoint() {
            return None;
        }
        let (sequence, row) = self.state.tables.work.iter().next()?;
        Some(continuation_of(sequence, &row))
    }

    /// For the leader, while there is room only for what gives room back: the command that continues the oldest interrupted work of
    /// a process instance that comes to its end.
    pub fn continuation_of_end(&self) -> Option<Command> {
        if self.state.counters.work_entries == 0 || self.awaits_checkpoint() {
            return None;
        }
        let mut work = self.state.tables.work.iter().take(WORK_LOOKED_AT_MAX);
        let (sequence, row) =
            work.find(|(_, row)| state::life::comes_to_an_end(&self.state, row.process_instance_key))?;
        Some(continuation_of(sequence, &row))
    }

    /// Whether something was interrupted and waits to be continued.
    pub fn has_interrupted_work(&self) -> bool {
        self.state.counters.work_entries > 0
    }

    /// Whether so much changed since the last checkpoint that self-sustaining work must wait for the next one.
    fn awaits_checkpoint(&self) -> bool {
        // Without a file there is no checkpoint to wait for.
        self.overlay_bytes() > self.options.continuation_overlay_bytes_max && self.state.tables.store().file_bytes() > 0
    }

    /// For the leader: unacknowledged commands for `partition` after a position, to be sent again.
    pub fn outbox(&self, partition: PartitionId, after_sequence: u64, limit: usize) -> Vec<Command> {
        let outbox = &self.state.tables.outbox;
        let oldest = outbox.first(&partition.0).map(|(sequence, _)| sequence);
        let of_this_life = |(sequence, row): (u64, Arc<OutboxRow>)| {
            let (partition, incarnation) = (self.state.partition, self.state.counters.incarnation);
            let is_oldest = oldest == Some(sequence);
            Command {
                source: Some(OutboxSource { partition, sequence, incarnation, is_oldest }),
                ..row.command.clone()
            }
        };
        outbox.iter_after(&partition.0, &after_sequence).take(limit).map(of_this_life).collect()
    }

    /// Partitions that have not acknowledged everything that was sent to them.
    pub fn outbox_partitions(&self) -> Vec<PartitionId> {
        let all = self.state.tables.outbox_sequences.iter().map(|(partition, _)| PartitionId(partition));
        all.filter(|partition| !self.state.tables.outbox.is_empty(&partition.0)).collect()
    }

    /// How far a stream has come; none when it is not registered.
    pub fn job_stream(&self, stream: StreamId) -> Option<StreamTotals> {
        owners::job_stream(&self.state, stream)
    }

    /// The registered streams of a node by their numbers, so those of its earlier lives first.
    pub fn job_streams_of(&self, node: u32) -> impl Iterator<Item = StreamTotals> + use<'_> {
        owners::job_streams_of(&self.state, node)
    }

    /// The pushes to a stream after a number that are not known to be delivered, with their jobs. Each may have another owner by now.
    pub fn pushed_after(&self, stream: StreamId, number: u64) -> impl Iterator<Item = (u64, Key)> + use<'_> {
        owners::pushed_after(&self.state, stream, number)
    }

    /// Whether jobs were activated for a poll that are not known to be delivered.
    pub fn has_poll(&self, poll: Request) -> bool {
        owners::has_poll(&self.state, poll)
    }

    /// The oldest poll of a life of a node that got jobs and is not acknowledged.
    pub fn oldest_poll(&self, node: u32, life: u64) -> Option<Request> {
        owners::oldest_poll(&self.state, node, life)
    }

    /// For a leader: the registered streams of nodes that are gone, and of earlier lives of those that are there. `life` says which
    /// life of a node is there; none when it is gone. However many streams living nodes have, they take one step for each node.
    pub fn lost_streams(&self, life: impl Fn(u32) -> Option<u64>) -> impl Iterator<Item = StreamId> {
        owners::lost_streams(&self.state, life)
    }

    /// The same of polls whose answers may not be delivered.
    pub fn lost_polls(&self, life: impl Fn(u32) -> Option<u64>) -> impl Iterator<Item = Request> {
        owners::lost_polls(&self.state, life)
    }

    /// How often a node will have begun to lead, when it does so next.
    pub fn next_start(&self, node: u32) -> u64 {
        self.state.node_start(node).saturating_add(1)
    }

    /// For a new leader: the command that says that it leads.
    pub fn start_command(&self, node: u32) -> Command {
        let value = NodeValue { node, start: self.next_start(node) };
        Command::of_system(Key::NONE, Payload::Node(NodeIntent::Start, value))
    }

    /// The cluster, and by which partitions this one routes; none before it knows.
    pub fn cluster(&self) -> Option<ClusterValue> {
        self.state.tables.cluster.get(&()).map(|row| row.value.clone())
    }

    /// By how many partitions, from partition 1 on, messages are routed.
    pub fn correlation_partition_count(&self) -> u16 {
        self.state.counters.correlation_partition_count.unwrap_or(self.options.first_partition_count)
    }

    /// For a leader whose data was put back from a copy: the command that begins the life of the data with this number, unless
    /// it has begun. Keys and positions go on far behind those of the copy, because others may have those of the lost life.
    pub fn restored_command(&self, incarnation: u64) -> Option<Command> {
        let Counters { incarnation: present, key, position, .. } = self.state.counters;
        (present < incarnation).then(|| {
            let value = IncarnationValue {
                incarnation,
                key_counter: key.saturating_add(KEYS_OF_A_LOST_LIFE),
                position: position.saturating_add(POSITIONS_OF_A_LOST_LIFE),
            };
            Command::of_system(Key::NONE, Payload::Incarnation(IncarnationIntent::Raise, Box::new(value)))
        })
    }

    /// For a leader of the first partition: the command by which the cluster gets its id and its routing, which are those given
    /// unless the state has them; `None` when it has, or when this is another partition.
    pub fn bootstrap_command(&self, cluster_id: &str) -> Option<Command> {
        let is_wanted = self.state.partition == PartitionId::DEPLOYMENT
            && self.state.counters.correlation_partition_count.is_none();
        let count = self.options.first_partition_count;
        let value = || ClusterValue {
            cluster_id: cluster_id.into(),
            active_partitions: (1..=count).map(PartitionId).collect(),
            correlation_partition_count: count,
        };
        is_wanted.then(|| Command::of_system(Key::NONE, Payload::Cluster(ClusterIntent::Bootstrap, Box::new(value()))))
    }

    /// For a leader: the command that makes settings those of the partition; `None` when they are already.
    pub fn settings_command(&self, settings: SettingsValue) -> Option<Command> {
        let counters = &self.state.counters;
        let bytes_max = settings.root_variable_bytes_max;
        let unique = settings.business_ids_are_unique;
        let changes_bytes = bytes_max > 0 && counters.root_variable_bytes_max != Some(bytes_max);
        let is_wanted = changes_bytes || unique.is_some_and(|unique| unique != counters.business_ids_are_unique);
        is_wanted.then(|| Command::of_system(Key::NONE, Payload::Settings(SettingsIntent::Change, settings)))
    }

    /// For a leader: the command that makes these global listeners those that the configuration of the cluster defines; `None` when
    /// they are already, or when another partition decides.
    pub fn global_listeners_command(&self, configured: &[GlobalListenerValue]) -> Option<Command> {
        let is_wanted =
            self.state.partition == PartitionId::DEPLOYMENT && !global_listener::is_configured(&self.state, configured);
        is_wanted.then(|| configure_global_listeners(configured))
    }

    /// What a command is about, as far as the state shows.
    pub fn subject(&self, command: &Command) -> Subject {
        watch::subject(&self.state, command)
    }

    /// Whether jobs of a type wait to be activated.
    pub fn has_available_jobs(&self, tenant_id: &str, job_type: &str) -> bool {
        !self.state.tables.available_jobs.is_empty(&(tenant_id.into(), job_type.into()))
    }

    /// About how many bytes the state holds in memory since its last checkpoint.
    pub fn overlay_bytes(&self) -> u64 {
        self.state.tables.overlay_bytes()
    }

    /// Freezes the state for a checkpoint, which another thread is to write.
    ///
    /// # Errors
    /// When a checkpoint is under way, or the engine has no file.
    pub fn freeze(&mut self) -> Result<Checkpoint, StoreError> {
        self.state.tables.freeze(self.applied, protocol::encode_to_vec(&self.state.counters))
    }

    /// Ends a checkpoint that was written. The answer is to be dropped on another thread.
    ///
    /// # Errors
    /// When the file cannot be read any more.
    pub fn release(&mut self, written: Written) -> Result<Retired, StoreError> {
        self.state.tables.release(written)
    }

    /// Compares what is counted, of each root process instance and of what goes by global listeners, with what is there. It looks
    /// at everything, so it is for tests and simulations.
    ///
    /// # Errors
    /// When a count is wrong.
    pub fn audit(&self) -> Result<(), String> {
        self.state.audit_usage()?;
        owners::audit(&self.state)?;
        self.state.audit_global_listeners()
    }

    /// A hash over the whole state: equal on replicas that applied the same.
    ///
    /// # Errors
    /// When the state cannot be read.
    pub fn state_hash(&self) -> Result<u128, StoreError> {
        let counters = Counters { timestamp: 0, ..self.state.counters };
        let hash = self.state.tables.state_hash()?;
        Ok(protocol::encode_to_vec(&counters).iter().fold(hash, |hash, byte| hash.rotate_left(7) ^ u128::from(*byte)))
    }

    /// Writes the state as text, one entry a line.
    ///
    /// # Errors
    /// When the state cannot be read or `out` cannot be written.
    pub fn dump(&self, out: &mut dyn std::io::Write) -> std::io::Result<()> {
        writeln!(out, "{:?}", self.state.counters)?;
        self.state.tables.dump(out)
    }

    /// The store, to send a snapshot of it to a new replica.
    pub fn store(&self) -> &Store {
        self.state.tables.store()
    }

    /// Numbers for operators.
    pub fn statistics(&self) -> EngineStatistics {
        let counters = &self.state.counters;
        EngineStatistics {
            incidents: counters.incidents,
            banned_instances: counters.banned_instances,
            job_streams: counters.job_streams,
            work_entries: counters.work_entries,
            timers: counters.timers,
            messages: counters.messages,
            message_subscriptions: counters.message_subscriptions,
            store: self.state.tables.statistics(),
        }
    }
}

/// Entries of the work queue among which one is looked for that comes to an end.
const WORK_LOOKED_AT_MAX: usize = 2_000;

fn continuation_of(sequence: u64, row: &WorkRow) -> Command {
    let value = WorkValue { sequence, process_instance_key: row.process_instance_key, ..WorkValue::default() };
    Command::of_system(Key::NONE, Payload::Work(WorkIntent::Continue, Box::new(value)))
}
