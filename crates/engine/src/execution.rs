//! The processing of one command: what handlers read from and emit to.

pub(crate) mod problem;
pub(crate) mod step;
pub(crate) mod token;
pub(crate) mod waiting_joins;

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::Arc;

use bpmn::model::{ElementIndex, ExecutableProcess};
use feel::Budget;
use protocol::{
    Command, ElementPath, Key, Origin, Payload, ProcessInstanceValue, Record, RecordType, Rejection, Request, Text,
    Timestamp, WorkIntent, WorkValue,
};
use state::StoreError;

use crate::apply::StateView;
use crate::element_path::{self, LastPath};
use crate::execution::step::Step;
use crate::execution::waiting_joins::WaitingJoins;
use crate::limits::{Limits, environment_at};
use crate::output::{JobsAvailable, OutgoingCommand, Output, Reply, Spent};
use crate::payload_bytes::{command_bytes, payload_bytes};
use crate::usage;
use crate::variable::long::LongVariables;

/// About the bytes that a key of a path takes in memory and in the record stream.
const KEY_BYTES: usize = 16;

/// Why a command came to nothing.
#[derive(Debug)]
pub(crate) enum Failure {
    /// It was refused, with the reason.
    Rejected(Rejection),
    /// A broken invariant: the instance cannot be trusted to continue.
    Broken {
        /// The instance concerned, if it is known.
        process_instance: Key,
        /// What is wrong.
        reason: String,
    },
}

impl From<Rejection> for Failure {
    fn from(rejection: Rejection) -> Self {
        Failure::Rejected(rejection)
    }
}

pub(crate) type Outcome<T = ()> = Result<T, Failure>;

/// One command being processed. Everything it emits is applied at once, so later reads see it; if it fails, all is
/// undone.
pub(crate) struct Execution<'a> {
    /// To be read; it changes by what is emitted.
    pub state: StateView<'a>,
    pub output: &'a mut Output,
    pub limits: &'a Limits,
    /// By how many partitions is routed while the state does not say it: see `crate::routing`.
    pub first_partition_count: u16,
    /// The time of the batch.
    pub timestamp: Timestamp,
    /// Position of the command.
    pub source_position: u64,
    /// What all records and further commands repeat.
    pub origin: Origin,
    pub request: Option<Request>,
    /// The element instance of the step under way.
    pub at: Key,
    /// What is still to be done, in order.
    pub steps: VecDeque<Step>,
    /// Steps that this command takes.
    pub steps_max: usize,
    /// How many continuations led here without a wait between them.
    pub rounds: u32,
    /// What the command has used of what it may do.
    pub used: Used,
    /// What joining gateways wait for.
    pub waiting_joins: WaitingJoins,
    pub last_path: LastPath,
}

/// What a command has used. With much of anything it takes no further step, so that no command holds its partition for
/// long or fills the memory.
#[derive(Debug)]
pub(crate) struct Used {
    records: usize,
    /// About the bytes of the records.
    bytes: u64,
    /// Why the command cannot be carried out, although it went on: a record or a command for another partition was too large.
    excess: Option<Rejection>,
    /// What joining gateways looked at.
    reads: Cell<u64>,
    /// What expressions and decisions may still spend.
    pub budget: Budget,
    /// Long variables that were read, as long as they do not change.
    pub long_variables: LongVariables,
}

impl Used {
    /// Nothing yet.
    pub fn of(limits: &Limits) -> Used {
        Used {
            records: 0,
            bytes: 0,
            excess: None,
            reads: Cell::new(0),
            budget: Budget::of(&environment_at(0, limits)),
            long_variables: LongVariables::default(),
        }
    }

    /// Adds this to what other commands have used.
    pub fn add_to(&self, spent: &mut Spent) {
        spent.evaluation_steps += u64::from(self.budget.steps_used());
        spent.evaluation_bytes_read += self.budget.bytes_read() as u64;
        spent.evaluation_bytes_built += self.budget.bytes_built() as u64;
        spent.joins_read += self.reads.get();
        spent.record_bytes += self.bytes;
    }

    /// Counts what was looked at, as if an expression had visited it.
    pub fn count_reads(&self, reads: u64) {
        self.reads.set(self.reads.get().saturating_add(reads));
    }
}

impl Execution<'_> {
    /// Makes an event true.
    pub fn emit(&mut self, key: Key, payload: Payload) {
        let path = element_path::of(&mut self.last_path, &self.state, key, &payload);
        self.record(key, RecordType::Event, payload, path);
    }

    /// As [`Execution::emit`], of an element that is gone: its record says the way to where it was.
    pub fn emit_at(&mut self, key: Key, payload: Payload, path: Option<Box<ElementPath>>) {
        self.record(key, RecordType::Event, payload, path);
    }

    /// Notes a refusal.
    pub fn emit_rejection(&mut self, key: Key, payload: Payload, rejection: Rejection) {
        self.record(key, RecordType::Rejection(rejection), payload, None);
    }

    fn record(&mut self, key: Key, record_type: RecordType, payload: Payload, path: Option<Box<ElementPath>>) {
        let path_bytes = path.as_ref().map_or(0, |path| path.len() * KEY_BYTES);
        // Made where it stays: records are large to move.
        self.output.records.push(Record {
            position: self.state.counters.position + 1,
            number: self.state.counters.records + 1,
            source_position: self.source_position,
            key,
            timestamp: self.timestamp,
            record_type,
            operation_reference: self.origin.operation_reference,
            payload,
            actor: self.origin.actor.clone(),
            batch_operation_reference: self.origin.batch_operation_reference,
            path,
        });
        let Some(record) = self.output.records.last() else { return };
        if let Payload::Variable(_, value) = &record.payload {
            self.used.long_variables.forget(value.scope_key, &value.name);
        }
        self.state.apply(record);
        let bytes = payload_bytes(&record.payload).saturating_add(path_bytes as u64);
        self.used.records += 1;
        if let Some((_, usage)) = self.state.grown
            && usage.bytes > self.root_variable_bytes_max()
            && let Some(excess) = usage::excess(self)
        {
            self.used.excess.get_or_insert(excess);
        }
        self.used.bytes = self.used.bytes.saturating_add(bytes);
        if bytes > self.limits.record_bytes_max {
            self.exceed("a record", bytes, self.limits.record_bytes_max);
        }
    }

    /// The command made something that is too large to be kept or sent; it fails, and nothing of it stays.
    #[cold]
    pub fn exceed(&mut self, what: &str, bytes: u64, bytes_max: u64) {
        let reason = format!(
            "Expected {what} to have at most {bytes_max} bytes, but it has about {bytes}. Let the process and its clients work \
             with smaller variables."
        );
        self.used.excess.get_or_insert_with(|| Rejection::invalid_argument(reason));
    }

    /// Refuses a command whose handler made something too large.
    pub fn check_excess(&mut self) -> Outcome {
        self.used.excess.take().map_or(Ok(()), |rejection| Err(rejection.into()))
    }

    /// Answers the request of this command, if it has one.
    pub fn reply(&mut self, key: Key, payload: Payload) {
        if let Some(request) = self.request {
            self.reply_to(request, key, payload);
        }
    }

    /// Answers a request that may be older than this command.
    pub fn reply_to(&mut self, request: Request, key: Key, payload: Payload) {
        let bytes = payload_bytes(&payload);
        self.output.reply_bytes = self.output.reply_bytes.saturating_add(bytes);
        self.output.replies.push(Reply { request, key, payload, rejection: None, position: None });
    }

    /// Bytes that the variables of a root process instance and of all that it called may have.
    #[inline]
    pub fn root_variable_bytes_max(&self) -> u64 {
        self.state.counters.root_variable_bytes_max.unwrap_or(self.limits.root_variable_bytes_max)
    }

    /// Whether the answers to this batch are so large together that further large ones have to wait for another.
    pub fn has_answered_much(&self) -> bool {
        self.output.reply_bytes >= self.limits.reply_bytes_per_batch
    }

    /// Refuses a request that may be older than this command, although what it asked for has happened.
    pub fn refuse_request(&mut self, request: Request, key: Key, payload: Payload, rejection: Rejection) {
        self.output.replies.push(Reply { request, key, payload, rejection: Some(rejection), position: None });
    }

    pub fn announce_jobs(&mut self, tenant_id: &Text, job_type: &Text) {
        let available = JobsAvailable { tenant_id: tenant_id.clone(), job_type: job_type.clone() };
        if self.output.available.last() != Some(&available) {
            self.output.available.push(available);
        }
    }

    pub fn send(&mut self, partition: protocol::PartitionId, command: Command) {
        self.output.sends.push(OutgoingCommand { partition, command });
    }

    /// What a step cannot store or send is the fault of its instance and must not fail the whole command.
    pub fn check_step(&mut self) -> Outcome {
        let fault = self.state.tables.fault().filter(StoreError::concerns_one_command);
        let excess = self.used.excess.take().map(|rejection| rejection.reason.to_string());
        let Some(reason) = excess.or_else(|| fault.map(|fault| fault.to_string())) else { return Ok(()) };
        let instance = self.state.element_instance(self.at);
        let process_instance = instance.map_or(self.at, |instance| instance.value.process_instance_key);
        Err(Failure::Broken { process_instance, reason })
    }

    /// Whether the remaining steps should be left to the work queue.
    pub fn is_over_budget(&self) -> bool {
        let (used, limits) = (&self.used, self.limits);
        used.records.max(self.steps.len()) >= limits.records_per_command
            || used.bytes >= limits.bytes_per_command
            || used.reads.get().saturating_add(u64::from(used.budget.steps_used()))
                >= limits.evaluation_steps_per_command
            || used.budget.bytes_read() >= limits.evaluation_bytes_read_per_command_max / 4
            || used.budget.bytes_built() >= limits.evaluation_bytes_built_per_command_max / 4
    }

    /// How much is done in one slice, of so much at most: no more than a command takes steps, so that a command with few of them
    /// is left to the work queue as one with many is.
    pub fn at_once(&self, max: usize) -> usize {
        max.min(self.limits.steps_per_command_max).max(1)
    }

    /// Each entry of the queue holds no more steps than one command takes: to write the others again each time would take
    /// the square of their number.
    pub fn enqueue_remaining_steps(&mut self) -> Outcome {
        let Some(first) = self.steps.front() else { return Ok(()) };
        let process_instance = first.process_instance(&self.state);
        let entries = self.entries_of_remaining_steps();
        let rounds = self.rounds.saturating_add(u32::try_from(entries.len()).unwrap_or(u32::MAX));
        let is_part = entries.len() > 1;
        for (process_instance_key, commands) in entries {
            self.enqueue(WorkValue { process_instance_key, commands, rounds, is_part, ..WorkValue::default() });
        }
        self.check_waiting_work(process_instance)
    }

    /// Puts an entry at the end of the work queue, which gives it its sequence.
    pub fn enqueue(&mut self, entry: WorkValue) {
        let sequence = self.state.counters.work_in + 1;
        self.emit(Key::NONE, Payload::Work(WorkIntent::Enqueued, Box::new(WorkValue { sequence, ..entry })));
    }

    /// The remaining steps in entries, each with the instance of its first one. None is larger than what one command should
    /// take, unless a single step is.
    fn entries_of_remaining_steps(&mut self) -> Vec<(Key, Vec<Command>)> {
        let mut entries: Vec<(Key, Vec<Command>)> = Vec::new();
        let mut bytes = 0_u64;
        for step in std::mem::take(&mut self.steps) {
            let process_instance = step.process_instance(&self.state);
            let command = step.into_command().following(&self.origin);
            let more = command_bytes(&command);
            match entries.last_mut() {
                Some((_, commands))
                    if commands.len() < self.limits.steps_per_command_max
                        && bytes.saturating_add(more) <= self.limits.bytes_per_command =>
                {
                    commands.push(command);
                    bytes = bytes.saturating_add(more);
                }
                _ => {
                    entries.push((process_instance, vec![command]));
                    bytes = more;
                }
            }
        }
        entries
    }

    /// Tokens that multiply faster than they are used up fill the queue, and with it the disk.
    fn check_waiting_work(&self, process_instance: Key) -> Outcome {
        let entries_max = self.limits.work_entries_max;
        if self.state.counters.work_entries <= entries_max {
            return Ok(());
        }
        let own = self.state.entries_of_work(process_instance).len() as u64;
        if own <= entries_max / 2 || crate::state::life::comes_to_an_end(&self.state, process_instance) {
            return Ok(());
        }
        Err(Failure::Broken {
            process_instance,
            reason: format!(
                "Expected the tokens of process instance '{process_instance}' to end some time, but more than {} of its steps \
                 wait to be taken. Look for flows that multiply tokens in a loop or one after the other.",
                own.saturating_mul(self.limits.steps_per_command_max as u64)
            ),
        })
    }

    /// The compiled process of a value, and the element that the value names.
    pub fn element_of(&self, value: &ProcessInstanceValue) -> Outcome<(Arc<ExecutableProcess>, ElementIndex)> {
        let process = self.process(value)?;
        match process.find(&value.element_id, value.bpmn_element_type) {
            Some(index) => Ok((process, index)),
            None => Err(Failure::Broken {
                process_instance: value.process_instance_key,
                reason: format!(
                    "Expected process '{}' version {} to have an element '{}', but it has none.",
                    value.bpmn_process_id, value.version, value.element_id
                ),
            }),
        }
    }

    /// The compiled process of a value.
    pub fn process(&self, value: &ProcessInstanceValue) -> Outcome<Arc<ExecutableProcess>> {
        self.state.process(value.process_definition_key).ok_or_else(|| Failure::Broken {
            process_instance: value.process_instance_key,
            reason: format!(
                "Expected the definition {} of process '{}' to be deployed, but it cannot be read.",
                value.process_definition_key, value.bpmn_process_id
            ),
        })
    }

    /// Refuses commands for instances that were banned.
    pub fn check_not_banned(&self, process_instance: Key) -> Result<(), Rejection> {
        if self.state.is_banned(process_instance) {
            return Err(Rejection::invalid_state(format!(
                "Expected to work on process instance with key '{process_instance}', but it is banned because processing it failed; \
                 see the ERROR record of the instance for the cause"
            )));
        }
        Ok(())
    }
}
