//! The processing of one command: what handlers read from and emit to.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::Arc;

use bpmn::model::{ElementIndex, ExecutableProcess};
use protocol::{
    Command, Key, Payload, ProcessInstanceValue, Record, RecordType, Rejection, Request, StreamId, Text, Timestamp,
    WorkIntent, WorkValue,
};

use crate::apply::StateView;
use crate::element::{Step, WaitingJoins};
use crate::limits::Limits;
use crate::output::{JobsAvailable, Output, Push, Reply, Send};

/// Why a command came to nothing.
#[derive(Debug)]
pub(crate) enum Failure {
    /// It was refused, with the reason.
    Rejected(Rejection),
    /// A broken invariant: the instance cannot be trusted to go on.
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

/// One command in the making. Everything it emits is applied at once, so later reads see it; if it fails, all is undone.
pub(crate) struct Execution<'a> {
    /// To be read; it changes by what is emitted.
    pub state: StateView<'a>,
    pub output: &'a mut Output,
    pub limits: &'a Limits,
    pub partition_count: u16,
    /// The time of the batch.
    pub timestamp: Timestamp,
    /// Position of the command.
    pub source_position: u64,
    pub operation_reference: Option<u64>,
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
}

/// What a command has used. With much of anything it takes no further step, so that no command holds its partition for
/// long or fills the memory.
#[derive(Debug, Default)]
pub(crate) struct Used {
    records: usize,
    /// About the bytes of variables in the records.
    bytes: u64,
    /// Nodes and items that expressions visited, and what joining gateways looked at.
    pub evaluation_steps: Cell<u64>,
}

impl Used {
    /// Counts what was looked at, as if an expression had visited it.
    pub fn count_reads(&self, reads: u64) {
        self.evaluation_steps.set(self.evaluation_steps.get().saturating_add(reads));
    }
}

impl Execution<'_> {
    /// Makes an event true.
    pub fn emit(&mut self, key: Key, payload: Payload) {
        self.record(key, RecordType::Event, payload);
    }

    /// Notes a refusal.
    pub fn emit_rejection(&mut self, key: Key, payload: Payload, rejection: Rejection) {
        self.record(key, RecordType::Rejection(rejection), payload);
    }

    fn record(&mut self, key: Key, record_type: RecordType, payload: Payload) {
        let record = Record {
            position: self.state.counters.position + 1,
            source_position: self.source_position,
            key,
            timestamp: self.timestamp,
            record_type,
            operation_reference: self.operation_reference,
            payload,
        };
        self.state.apply(&record);
        self.used.records += 1;
        self.used.bytes = self.used.bytes.saturating_add(variable_bytes(&record.payload));
        self.output.records.push(record);
    }

    /// Answers the request of this command, if it has one.
    pub fn reply(&mut self, key: Key, payload: Payload) {
        if let Some(request) = self.request {
            self.reply_to(request, key, payload);
        }
    }

    /// Answers a request that may be older than this command.
    pub fn reply_to(&mut self, request: Request, key: Key, payload: Payload) {
        self.output.replies.push(Reply { request, key, payload, rejection: None });
    }

    pub fn push(&mut self, stream: StreamId, key: Key, job: Arc<protocol::JobValue>) {
        self.output.pushes.push(Push { stream, key, job });
    }

    pub fn announce_jobs(&mut self, tenant_id: &Text, job_type: &Text) {
        let available = JobsAvailable { tenant_id: tenant_id.clone(), job_type: job_type.clone() };
        if self.output.available.last() != Some(&available) {
            self.output.available.push(available);
        }
    }

    pub fn send(&mut self, partition: protocol::PartitionId, command: Command) {
        self.output.sends.push(Send { partition, command });
    }

    /// Takes the steps that the command caused, up to the limits; what is left then waits in the work queue.
    pub fn run_steps(&mut self) -> Outcome {
        for _ in 0..self.steps_max {
            let Some(step) = self.steps.pop_front() else { return Ok(()) };
            self.at = step.element_instance();
            crate::element::take_step(self, step)?;
            if self.has_used_much() {
                break;
            }
        }
        self.enqueue_remaining_steps()
    }

    /// Whether what remains to be done is better left to the work queue.
    pub fn has_used_much(&self) -> bool {
        let (used, limits) = (&self.used, self.limits);
        used.records.max(self.steps.len()) >= limits.records_per_command
            || used.bytes >= limits.bytes_per_command
            || used.evaluation_steps.get() >= limits.evaluation_steps_per_command
    }

    /// Each entry of the queue holds no more steps than one command takes: to write the others again each time would take
    /// the square of their number.
    fn enqueue_remaining_steps(&mut self) -> Outcome {
        let Some(first) = self.steps.front() else { return Ok(()) };
        let process_instance = first.process_instance(&self.state);
        let entry_steps_max = self.limits.steps_per_command_max.max(1);
        let entries = self.steps.len().div_ceil(entry_steps_max);
        let rounds = self.rounds.saturating_add(u32::try_from(entries).unwrap_or(u32::MAX));
        let mut rest = std::mem::take(&mut self.steps).into_iter();
        for _ in 0..entries {
            let steps: Vec<Step> = rest.by_ref().take(entry_steps_max).collect();
            let value = WorkValue {
                sequence: self.state.counters.work_in + 1,
                process_instance_key: steps.first().map_or(Key::NONE, |step| step.process_instance(&self.state)),
                commands: steps.into_iter().map(Step::into_command).collect(),
                rounds,
                is_part: entries > 1,
            };
            self.emit(Key::NONE, Payload::Work(WorkIntent::Enqueued, Box::new(value)));
        }
        self.check_waiting_work(process_instance)
    }

    /// Tokens that multiply faster than they are used up fill the queue, and with it the disk.
    fn check_waiting_work(&self, process_instance: Key) -> Outcome {
        let entries_max = self.limits.work_entries_max;
        if self.state.counters.work_entries <= entries_max {
            return Ok(());
        }
        let entries = self.state.tables.work.iter();
        let own = entries.filter(|(_, row)| row.process_instance_key == process_instance).count() as u64;
        if own <= entries_max / 2 {
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

    /// Refuses commands for instances that a failure has put aside.
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

/// About the bytes that variables take in a record.
fn variable_bytes(payload: &Payload) -> u64 {
    let bytes = match payload {
        Payload::Variable(_, variable) => variable.value.len(),
        Payload::Job(_, job) => job.variables.len(),
        Payload::JobBatch(_, batch) => batch.jobs.iter().map(|job| job.variables.len()).sum(),
        Payload::ProcessEvent(_, event) => event.variables.len(),
        Payload::MultiInstance(_, value) => {
            value.input_collection.iter().map(|item| item.len()).sum::<usize>() + value.output_element.len()
        }
        _ => 0,
    };
    bytes as u64
}
