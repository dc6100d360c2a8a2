//! The deterministic engine of one partition: commands decide, events apply.
//!
//! [`Engine::apply`] takes a batch of replicated commands and a time, and changes the state by the events that it gives
//! back. It knows no clock, random number, thread, file (beyond opening its tables), socket or iteration over a hash map:
//! the same batches give the same state and the same records on every replica.

#![deny(clippy::disallowed_methods, clippy::iter_over_hash_type)]

mod apply;
mod decision_evaluation;
mod definitions;
mod deployment;
mod dispatch;
mod distribution;
mod due;
mod element;
mod event;
mod execution;
mod incident;
mod job;
mod job_stream;
mod limits;
mod message;
mod name;
mod output;
mod payload_bytes;
mod process_instance;

mod refused;
mod resource_deletion;
mod state;
mod timer;
mod usage;
mod variable;
mod watch;

pub use limits::Limits;
pub use output::{JobsAvailable, OutgoingCommand, Output, Push, Reply, Spent};
pub use watch::{Decision, Subject, Unwatched, Watch};

use std::path::Path;

use ::state::{Checkpoint, Retired, Store, StoreError, StoreOptions, Written};
use protocol::{
    Command, CommandBatch, JobStreamIntent, Key, PartitionId, Payload, Record, Timestamp, WorkIntent, WorkValue,
};

use crate::state::{Counters, EarlyVariables, State, Tables};

/// Version of the tables' layout; a file of another version is refused.
pub const SCHEMA_VERSION: u32 = 1;
/// Bytes of changes in memory above which interrupted work waits: other work is admitted up to twice as much.
const CONTINUATION_OVERLAY_BYTES_MAX: u64 = 128 << 20;

/// The settings of an engine.
#[derive(Clone, Copy, Debug)]
pub struct EngineOptions {
    /// Its partition.
    pub partition: PartitionId,
    /// How many partitions there are.
    pub partition_count: u16,
    /// What a single command may do.
    pub limits: Limits,
    /// What a mistake of the engine itself leads to.
    pub broken_invariant: BrokenInvariant,
}

impl EngineOptions {
    /// The options of a partition, with the usual limits.
    pub fn new(partition: PartitionId, partition_count: u16) -> Self {
        EngineOptions {
            partition,
            partition_count,
            limits: Limits::default(),
            broken_invariant: BrokenInvariant::default(),
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
    /// The counters saved with the state cannot be read.
    #[error("The counters saved with the state of partition {partition} cannot be read: {reason}")]
    Counters {
        partition: PartitionId,
        /// What is wrong with them.
        reason: String,
    },
}

/// The files of all partitions of a node are mapped into one process.
fn store_options(partition_count: u16) -> StoreOptions {
    let map_size_bytes = StoreOptions::map_size_of(partition_count);
    StoreOptions { schema_version: SCHEMA_VERSION, map_size_bytes, ..StoreOptions::default() }
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
        let store = Store::open(directory, &store_options(options.partition_count)).map_err(fault)?;
        let recovered = store.recovered();
        let counters = if recovered.metadata.is_empty() {
            Counters::default()
        } else {
            protocol::decode(&recovered.metadata)
                .map_err(|error| Fault::Counters { partition, reason: error.to_string() })?
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
        let state = State::new(Tables::in_memory(), Counters::default(), options.partition);
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
            dispatch::process(&mut self.state, &self.options, batch.timestamp, command, decision, output)?;
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
        let value = WorkValue { sequence, process_instance_key: row.process_instance_key, ..WorkValue::default() };
        Some(Command::new(Key::NONE, Payload::Work(WorkIntent::Continue, Box::new(value))))
    }

    /// Whether so much changed since the last checkpoint that self-sustaining work must wait for the next one.
    fn awaits_checkpoint(&self) -> bool {
        // Without a file there is no checkpoint to wait for.
        self.overlay_bytes() > CONTINUATION_OVERLAY_BYTES_MAX && self.state.tables.store().file_bytes() > 0
    }

    /// For the leader: unacknowledged commands for `partition` after a position, to be sent again.
    pub fn outbox(&self, partition: PartitionId, after_sequence: u64, limit: usize) -> Vec<Command> {
        let range = (partition.0, after_sequence.saturating_add(1))..=(partition.0, u64::MAX);
        self.state.tables.outbox.range(range).take(limit).map(|(_, row)| row.command.clone()).collect()
    }

    /// Partitions that have not acknowledged everything that was sent to them.
    pub fn outbox_partitions(&self) -> Vec<PartitionId> {
        let all = (1..=self.options.partition_count).map(PartitionId);
        all.filter(|partition| {
            self.state.tables.outbox.range((partition.0, 0)..=(partition.0, u64::MAX)).next().is_some()
        })
        .collect()
    }

    /// For a new leader: the command that forgets all job streams; `None` when there is none.
    pub fn clear_streams_command(&self) -> Option<Command> {
        (self.state.counters.job_streams > 0)
            .then(|| Command::new(Key::NONE, Payload::JobStream(JobStreamIntent::Clear, Box::default())))
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

    /// Compares what is counted of each root process instance with what is there. It looks at everything, so it is for
    /// tests and simulations.
    ///
    /// # Errors
    /// When a count is wrong.
    pub fn audit(&self) -> Result<(), String> {
        self.state.audit_usage()
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
