//! The processing of one command: what handlers read from and emit to.

use std::collections::VecDeque;
use std::sync::Arc;

use bpmn::model::{ElementIndex, ExecutableProcess};
use protocol::{
    Command, Key, Payload, ProcessInstanceValue, Record, RecordType, Rejection, Request, StreamId, Text, Timestamp,
    WorkIntent, WorkValue,
};

use crate::element::Step;
use crate::limits::Limits;
use crate::output::{JobsAvailable, Output, Push, Reply, Send};
use crate::state::State;

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
    pub state: &'a mut State,
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
        crate::apply::apply(self.state, &record);
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

    /// Takes the steps that the command caused, up to the limit; what is left then waits in the work queue.
    pub fn run_steps(&mut self) -> Outcome {
        for _ in 0..self.limits.steps_per_command_max {
            let Some(step) = self.steps.pop_front() else { return Ok(()) };
            self.at = step.element_instance();
            crate::element::take_step(self, step)?;
        }
        self.enqueue_remaining_steps();
        Ok(())
    }

    fn enqueue_remaining_steps(&mut self) {
        let Some(first) = self.steps.front() else { return };
        let process_instance_key = first.process_instance(self.state);
        let commands = std::mem::take(&mut self.steps).into_iter().map(Step::into_command).collect();
        let sequence = self.state.counters.work_in + 1;
        let value = WorkValue { sequence, process_instance_key, commands };
        self.emit(Key::NONE, Payload::Work(WorkIntent::Enqueued, Box::new(value)));
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
