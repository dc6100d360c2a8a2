//! The one place where the state changes: an event is applied, and nothing else writes.
//!
//! Nothing here decides. An event that does not fit the state is a broken invariant, of the handler that emitted it or
//! of the state: it is reported with [`broken`], and its command is not committed. The row that an event is about, the
//! rows that it counts in, and the definition that it relies on must be there; what is derived from such a row, its
//! entries in indexes, is trusted to be there with it. Wherever something may be missing, a comment says why.

mod ad_hoc_sub_process;
mod business_id;
mod change;
mod compensation;
mod conditional;
mod decision;
mod distribution;
mod document;
mod global_listener;
mod incident;
mod job;
mod job_owner;
mod job_stream;
mod message;
mod message_buffer;
mod migration;
mod modification;
mod partition;
mod process;
mod process_event;
mod process_instance;
mod purge;
mod runtime_instruction;
mod signal;
mod timer;
mod usage;
mod user_task;
mod variable;
mod work;

use std::ops::Deref;

use protocol::{
    ErrorIntent, ErrorValue, Key, Payload, ProcessInstanceCreationIntent, ProcessInstanceCreationValue, Record,
    RecordType,
};

use change::not_an_event;

use crate::state::{AwaitedResult, BanRow, State};

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

/// Applies one record. Rejections change nothing but what counts records: their keys are those that clients sent.
pub(crate) fn apply(state: &mut State, record: &Record) {
    state.counters.position = record.position;
    state.counters.records = record.number;
    state.counters.timestamp = record.timestamp;
    state.grown = None;
    if record.record_type == RecordType::Event {
        if record.key.partition() == Some(state.partition) {
            state.counters.key = state.counters.key.max(record.key.counter());
        }
        apply_event(state, record.key, &record.payload);
        name_misfit(state, record);
    }
}

/// Says which event it was that did not fit.
fn name_misfit(state: &mut State, record: &Record) {
    if let Some(misfit) = &mut state.misfit
        && misfit.event.is_empty()
    {
        let (value_type, intent) = (record.payload.value_type().name(), record.payload.intent_name());
        misfit.event = format!("{value_type} {intent} of {} at position {}", record.key, record.position);
    }
}

fn apply_event(state: &mut State, key: Key, payload: &Payload) {
    match payload {
        Payload::ProcessInstance(intent, value) => process_instance::apply(state, key, *intent, value),
        Payload::Job(intent, value) => job::apply(state, key, *intent, value),
        Payload::JobBatch(_, value) => job::apply_batch(state, value),
        Payload::JobStream(intent, value) => job_stream::apply(state, *intent, value),
        Payload::JobPoll(intent, value) => job_owner::apply_poll(state, *intent, value),
        Payload::Variable(intent, value) => variable::apply(state, key, *intent, value),
        Payload::UserTask(intent, value) => user_task::apply(state, key, *intent, value),
        Payload::Incident(intent, value) => incident::apply(state, key, *intent, value),
        Payload::ProcessInstanceCreation(intent, value) => apply_creation(state, *intent, value),
        Payload::Process(intent, value) => process::apply(state, *intent, value),
        Payload::Decision(intent, value) => decision::apply(state, *intent, value),
        Payload::DecisionRequirements(intent, value) => decision::apply_requirements(state, *intent, value),
        Payload::Form(intent, value) => document::apply_form(state, *intent, value),
        Payload::Resource(intent, value) => document::apply_resource(state, *intent, value),
        Payload::CommandDistribution(intent, value) => distribution::apply(state, key, *intent, value),
        Payload::Outbox(intent, value) => distribution::apply_outbox(state, *intent, value),
        Payload::Work(intent, value) => work::apply(state, *intent, value),
        Payload::FeatureLevel(intent, value) => partition::apply_feature_level(state, *intent, *value),
        Payload::Incarnation(intent, value) => partition::apply_incarnation(state, *intent, value),
        Payload::Settings(intent, value) => partition::apply_settings(state, *intent, *value),
        Payload::Node(intent, value) => partition::apply_node(state, *intent, *value),
        Payload::Cluster(intent, value) => partition::apply_cluster(state, *intent, value),
        Payload::Clock(intent, value) => partition::apply_clock(state, *intent, *value),
        Payload::Purge(intent, value) => purge::apply(state, *intent, *value),
        Payload::GlobalListener(intent, value) => global_listener::apply(state, *intent, value),
        Payload::GlobalListenerBatch(intent, _) => global_listener::apply_batch(state, *intent),
        Payload::Error(intent, value) => apply_error(state, *intent, value),
        Payload::Timer(intent, value) => timer::apply(state, key, *intent, value),
        Payload::ProcessEvent(intent, value) => process_event::apply(state, key, *intent, value),
        Payload::CompensationSubscription(intent, value) => compensation::apply(state, key, *intent, value),
        Payload::MultiInstance(intent, value) => process_event::apply_loop(state, key, *intent, value),
        Payload::Message(intent, value) => message::apply(state, key, *intent, value),
        Payload::MessageSubscription(intent, value) => message::apply_subscription(state, key, *intent, value),
        Payload::ProcessMessageSubscription(intent, value) => {
            message::apply_process_subscription(state, key, *intent, value);
        }
        Payload::MessageCorrelation(intent, value) => message::apply_correlation(state, key, *intent, value),
        Payload::MessageStartEventSubscription(intent, value) => {
            message::apply_start_event(state, key, *intent, value);
        }
        Payload::SignalSubscription(intent, value) => signal::apply_subscription(state, key, *intent, value),
        Payload::Signal(intent, _) => signal::apply(state, *intent),
        Payload::ConditionalSubscription(intent, value) => conditional::apply_subscription(state, key, *intent, value),
        Payload::ConditionalEvaluation(intent, _) => conditional::apply(state, *intent),
        Payload::ResourceDeletion(intent, value) => process::apply_deletion(state, key, *intent, value),
        Payload::ProcessInstanceModification(intent, value) => modification::apply(state, *intent, value),
        Payload::RuntimeInstruction(intent, value) => runtime_instruction::apply(state, *intent, value),
        Payload::AdHocSubProcessInstruction(intent, value) => ad_hoc_sub_process::apply(state, *intent, value),
        Payload::Deployment(..)
        | Payload::DecisionEvaluation(..)
        | Payload::Expression(..)
        | Payload::Escalation(..)
        | Payload::ProcessInstanceResult(..)
        | Payload::ProcessInstanceMigration(..) => {}
        Payload::VariableDocument(intent, value) => user_task::apply_variables(state, key, *intent, value),
        Payload::MessageBatch(..) | Payload::ProcessInstanceBatch(..) => {
            not_an_event(state, payload.intent_name());
        }
    }
}

fn apply_creation(state: &mut State, intent: ProcessInstanceCreationIntent, value: &ProcessInstanceCreationValue) {
    if let (ProcessInstanceCreationIntent::Created, Some(request)) = (intent, value.awaiting) {
        let awaited = AwaitedResult { request, fetch_variables: value.fetch_variables.clone() };
        state.tables.awaited_results.insert_new(value.process_instance_key.raw(), awaited);
        state.counters.awaited_results += 1;
    }
    if intent == ProcessInstanceCreationIntent::Created {
        runtime_instruction::keep_runtime_instructions(state, value);
    }
}

fn apply_error(state: &mut State, intent: ErrorIntent, value: &ErrorValue) {
    let ErrorIntent::Created = intent;
    // A failure may concern no instance, or one that is banned already.
    if value.process_instance_key.is_some() && !state.is_banned(value.process_instance_key) {
        process::instance_banned(state, value.process_instance_key);
        let ban = BanRow { work_in: state.counters.work_in };
        state.tables.banned_instances.insert_new(value.process_instance_key.raw(), ban);
        state.counters.banned_instances += 1;
    }
}
