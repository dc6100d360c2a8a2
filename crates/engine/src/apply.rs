//! The one place where the state changes: an event is applied, and nothing else writes.
//!
//! Nothing here decides or fails. An event that does not fit the state is a broken invariant of the handler that emitted
//! it; the tables then simply stay as they are for the missing row.

mod decision;
mod distribution;
mod incident;
mod job;
mod job_stream;
mod message;
mod message_buffer;
mod migration;
mod operation;
mod process;
mod process_event;
mod process_instance;
mod timer;
mod variable;

use std::ops::Deref;
use std::sync::Arc;

use protocol::{
    ErrorIntent, ErrorValue, Key, Payload, ProcessInstanceCreationIntent, ProcessInstanceCreationValue, Record,
    RecordType, WorkIntent, WorkValue,
};

use crate::state::{AwaitedResult, State, WorkRow};

/// The state as the handler of a command sees it: to be read. It changes by the keys that are given and by the events that
/// are applied, and in no other way.
#[derive(Debug)]
pub(crate) struct StateView<'a> {
    state: &'a mut State,
}

impl<'a> StateView<'a> {
    pub fn new(state: &'a mut State) -> Self {
        StateView { state }
    }

    /// A key that no entity has.
    pub fn next_key(&mut self) -> Key {
        self.state.next_key()
    }

    /// Makes a record true.
    pub fn apply(&mut self, record: &Record) {
        apply(self.state, record);
    }
}

impl Deref for StateView<'_> {
    type Target = State;

    #[inline]
    fn deref(&self) -> &State {
        self.state
    }
}

/// A tenant and the id of a process, decision or graph of decisions.
type Name = (Arc<str>, Arc<str>);

/// The versions of a definition in a table by tenant, id and version, oldest first.
fn versions<'a>(
    table: &'a state::Table<(Arc<str>, Arc<str>, i32), i64>,
    name: &Name,
) -> impl Iterator<Item = (i32, Key)> + use<'a> {
    let range = (name.0.clone(), name.1.clone(), i32::MIN)..=(name.0.clone(), name.1.clone(), i32::MAX);
    table.range(range).map(|((.., version), key)| (version, Key::from_raw(*key)))
}

/// Applies one record. Rejections change nothing.
pub(crate) fn apply(state: &mut State, record: &Record) {
    state.counters.position = record.position;
    state.counters.timestamp = record.timestamp;
    if record.key.partition() == Some(state.partition) {
        state.counters.key = state.counters.key.max(record.key.counter());
    }
    if record.record_type != RecordType::Event {
        return;
    }
    let key = record.key;
    match &record.payload {
        Payload::ProcessInstance(intent, value) => process_instance::apply(state, key, *intent, value),
        Payload::Job(intent, value) => job::apply(state, key, *intent, value),
        Payload::JobBatch(_, value) => job::apply_batch(state, value),
        Payload::JobStream(intent, value) => job_stream::apply(state, *intent, value),
        Payload::Variable(intent, value) => variable::apply(state, key, *intent, value),
        Payload::Incident(intent, value) => incident::apply(state, key, *intent, value),
        Payload::ProcessInstanceCreation(intent, value) => apply_creation(state, *intent, value),
        Payload::Process(intent, value) => process::apply(state, *intent, value),
        Payload::Decision(intent, value) => decision::apply(state, *intent, value),
        Payload::DecisionRequirements(intent, value) => decision::apply_requirements(state, *intent, value),
        Payload::CommandDistribution(intent, value) => distribution::apply(state, key, *intent, value),
        Payload::Outbox(intent, value) => distribution::apply_outbox(state, *intent, value),
        Payload::Work(intent, value) => apply_work(state, *intent, value),
        Payload::Error(intent, value) => apply_error(state, *intent, value),
        Payload::Timer(intent, value) => timer::apply(state, key, *intent, value),
        Payload::ProcessEvent(intent, value) => process_event::apply(state, key, *intent, value),
        Payload::MultiInstance(intent, value) => process_event::apply_loop(state, key, *intent, value),
        Payload::Message(intent, value) => message::apply(state, key, *intent, value),
        Payload::MessageSubscription(intent, value) => message::apply_subscription(state, key, *intent, value),
        Payload::ProcessMessageSubscription(intent, value) => {
            message::apply_process_subscription(state, key, *intent, value);
        }
        Payload::MessageStartEventSubscription(intent, value) => {
            message::apply_start_event(state, key, *intent, value);
        }
        Payload::ResourceDeletion(intent, value) => process::apply_deletion(state, key, *intent, value),
        Payload::ProcessInstanceModification(intent, value) => operation::apply_modification(state, *intent, value),
        Payload::RuntimeInstruction(intent, value) => operation::apply_runtime_instruction(state, *intent, value),
        Payload::Deployment(..)
        | Payload::DecisionEvaluation(..)
        | Payload::VariableDocument(..)
        | Payload::ProcessInstanceBatch(..)
        | Payload::ProcessInstanceResult(..) => {}
        _ => {}
    }
}

fn apply_creation(state: &mut State, intent: ProcessInstanceCreationIntent, value: &ProcessInstanceCreationValue) {
    if let (ProcessInstanceCreationIntent::Created, Some(request)) = (intent, value.awaiting) {
        let awaited = AwaitedResult { request, fetch_variables: value.fetch_variables.clone() };
        state.tables.awaited_results.insert_new(value.process_instance_key.raw(), awaited);
        state.counters.awaited_results += 1;
    }
    if intent == ProcessInstanceCreationIntent::Created {
        operation::keep_runtime_instructions(state, value);
    }
}

fn apply_work(state: &mut State, intent: WorkIntent, value: &WorkValue) {
    match intent {
        WorkIntent::Enqueued => {
            let row = WorkRow {
                process_instance_key: value.process_instance_key,
                commands: value.commands.clone(),
                rounds: value.rounds,
                is_part: value.is_part,
            };
            state.tables.work.insert_new(value.sequence, row);
            state.counters.work_in = value.sequence;
            state.counters.work_entries += 1;
        }
        WorkIntent::Dequeued => {
            state.tables.work.delete(&value.sequence);
            state.counters.work_entries -= 1;
        }
        WorkIntent::Continue => {}
    }
}

fn apply_error(state: &mut State, intent: ErrorIntent, value: &ErrorValue) {
    let ErrorIntent::Created = intent;
    if value.process_instance_key.is_some() && !state.is_banned(value.process_instance_key) {
        process::instance_banned(state, value.process_instance_key);
        state.tables.banned_instances.insert_new(value.process_instance_key.raw(), ());
        state.counters.banned_instances += 1;
    }
}
