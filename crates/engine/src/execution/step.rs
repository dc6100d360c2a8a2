//! Steps: bounded pieces of work on one element instance.

use std::sync::Arc;

use protocol::{
    AdHocSubProcessInstructionIntent, AdHocSubProcessInstructionValue, Command, Key, Payload,
    ProcessInstanceBatchIntent, ProcessInstanceBatchValue, ProcessInstanceIntent, ProcessInstanceValue, Text,
};

use crate::state::owning_instance::owning_instance;
use crate::state::{State, WorkRow};

/// A bounded piece of work on one element instance. Steps of a command run in order, in the same application.
#[derive(Debug)]
pub(crate) enum Step {
    /// A token arrives at an element. The key is set when it is decided already (the process itself).
    Activate { key: Option<Key>, value: Arc<ProcessInstanceValue> },
    /// The activation continues after its incident was resolved.
    ContinueActivation { key: Key },
    /// The element's work is done.
    Complete { key: Key },
    /// The element is to end early.
    Terminate { key: Key },
    /// The children of a scope must end early; those up to `after` were already told, and those behind `up_to` are not meant.
    TerminateChildren { scope: Key, after: Key, up_to: Option<Key> },
    /// More of what an element instance begins is to begin: inner instances of a parallel multi-instance body, until all of its
    /// items have one; compensation handlers of a throw event.
    ActivateBatch { of: Key },
    /// Further elements of an ad-hoc sub-process are to begin.
    BeginAdHocElements { ad_hoc: Key, value: Box<AdHocSubProcessInstructionValue> },
    /// A command of this partition to itself. When it is refused, nothing else is undone.
    Command(Box<Command>),
}

impl Step {
    /// Its form in the work queue.
    pub fn into_command(self) -> Command {
        let step = |key, intent, value| Command::new(key, Payload::ProcessInstance(intent, value));
        match self {
            Step::Activate { key, value } => {
                step(key.unwrap_or(Key::NONE), ProcessInstanceIntent::ActivateElement, value)
            }
            Step::ContinueActivation { key } => step(key, ProcessInstanceIntent::ActivateElement, Arc::default()),
            Step::Complete { key } => step(key, ProcessInstanceIntent::CompleteElement, Arc::default()),
            Step::Terminate { key } => step(key, ProcessInstanceIntent::TerminateElement, Arc::default()),
            Step::TerminateChildren { scope, after, up_to } => {
                batch_command(ProcessInstanceBatchIntent::Terminate, scope, after.raw(), up_to)
            }
            Step::ActivateBatch { of } => batch_command(ProcessInstanceBatchIntent::Activate, of, 0, None),
            Step::BeginAdHocElements { ad_hoc, value } => {
                let intent = AdHocSubProcessInstructionIntent::Activate;
                Command::new(ad_hoc, Payload::AdHocSubProcessInstruction(intent, value))
            }
            Step::Command(command) => *command,
        }
    }

    /// Reads back what [`Step::into_command`] wrote.
    pub fn from_command(command: Command) -> Step {
        let key = command.key;
        match command.payload {
            Payload::ProcessInstance(ProcessInstanceIntent::ActivateElement, value) => {
                if value.element_id.is_empty() {
                    Step::ContinueActivation { key }
                } else {
                    Step::Activate { key: key.is_some().then_some(key), value }
                }
            }
            Payload::ProcessInstance(ProcessInstanceIntent::CompleteElement, _) => Step::Complete { key },
            Payload::ProcessInstance(ProcessInstanceIntent::TerminateElement, _) => Step::Terminate { key },
            Payload::ProcessInstanceBatch(ProcessInstanceBatchIntent::Terminate, value) => {
                Step::TerminateChildren { scope: key, after: Key::from_raw(value.index), up_to: value.up_to }
            }
            Payload::ProcessInstanceBatch(ProcessInstanceBatchIntent::Activate, _) => Step::ActivateBatch { of: key },
            Payload::AdHocSubProcessInstruction(AdHocSubProcessInstructionIntent::Activate, value) => {
                Step::BeginAdHocElements { ad_hoc: key, value }
            }
            payload => Step::Command(Box::new(Command { payload, ..command })),
        }
    }

    /// The element instance that the step is about, or the process instance of one that is not there yet.
    pub fn element_instance(&self) -> Key {
        match self {
            Step::Activate { value, .. } => value.process_instance_key,
            Step::ContinueActivation { key }
            | Step::Complete { key }
            | Step::Terminate { key }
            | Step::TerminateChildren { scope: key, .. }
            | Step::ActivateBatch { of: key }
            | Step::BeginAdHocElements { ad_hoc: key, .. } => *key,
            Step::Command(command) => match &command.payload {
                Payload::ProcessMessageSubscription(_, value) => value.process_instance_key,
                Payload::ConditionalSubscription(_, value) => value.process_instance_key,
                _ => command.key,
            },
        }
    }

    /// The instance that the step belongs to.
    pub fn process_instance(&self, state: &State) -> Key {
        match self {
            Step::Activate { value, .. } => value.process_instance_key,
            Step::ContinueActivation { key }
            | Step::Complete { key }
            | Step::Terminate { key }
            | Step::TerminateChildren { scope: key, .. }
            | Step::ActivateBatch { of: key }
            | Step::BeginAdHocElements { ad_hoc: key, .. } => {
                state.element_instance(*key).map_or(Key::NONE, |instance| instance.value.process_instance_key)
            }
            Step::Command(command) => owning_instance(state, command),
        }
    }
}

/// A batch step for one element instance.
fn batch_command(intent: ProcessInstanceBatchIntent, of: Key, index: i64, up_to: Option<Key>) -> Command {
    let value = ProcessInstanceBatchValue {
        process_instance_key: Key::NONE,
        batch_element_instance_key: of,
        index,
        tenant_id: Text::default(),
        up_to,
    };
    Command::new(of, Payload::ProcessInstanceBatch(intent, Box::new(value)))
}

/// Whether a step that waited in this entry of the work queue was forgotten when its instance was banned: what the instance
/// did then is over, and a cancellation after it ends everything anew. The end of a whole process stays, because what called
/// it waits for that.
pub(crate) fn is_forgotten(state: &State, step: &Step, sequence: u64) -> bool {
    if state.counters.banned_instances == 0 || matches!(step, Step::Command(_)) {
        return false;
    }
    let process_instance = step.process_instance(state);
    let ends_process = matches!(step, Step::Terminate { key } if *key == process_instance);
    !ends_process && state.is_forgotten_work(process_instance, sequence)
}

/// The instances that interrupted work belongs to and that are not banned.
pub(crate) fn instances_of_work(state: &State, row: &WorkRow) -> Vec<Key> {
    let steps = row.commands.iter().cloned().map(Step::from_command);
    let mut instances: Vec<Key> = steps
        .filter(|step| !matches!(step, Step::Command(_)))
        .map(|step| step.process_instance(state))
        .filter(|instance| instance.is_some() && !state.is_banned(*instance))
        .collect();
    instances.sort_unstable();
    instances.dedup();
    instances
}
