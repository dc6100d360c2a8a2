//! The life of element instances, step by step.

mod activate;
mod activate_at;
pub(crate) mod ad_hoc_sub_process;
mod bound_version;
mod business_rule_task;
mod call_activity;
mod complete;
mod exclusive_gateway;
mod inclusive_gateway;
mod job_worker_task;
mod linked_resources;
mod multi_instance;
mod output_collection;
mod runtime_instruction;
mod script_task;
mod terminate;
mod terminate_at_once;
mod throw_event;
mod user_task;

pub(crate) use activate_at::{ActivateInstruction, Activations, ScopeVariables, scopes_of};
pub(crate) use ad_hoc_sub_process::renew_choices;
pub(crate) use inclusive_gateway::WaitingJoins;
pub(crate) use job_worker_task::{create_job, evaluate as evaluate_job, job_of};
pub(crate) use terminate::{begin as begin_termination, cancel_job, finish_termination, interrupt_children};
pub(crate) use terminate_at_once::Terminations;
pub(crate) use user_task::{continue_as_user_task, list_text};

use std::sync::Arc;

use bpmn::model::{Behavior, ElementIndex, ExecutableProcess};
use protocol::{
    AdHocSubProcessInstructionIntent, AdHocSubProcessInstructionValue, Command, Key, Payload,
    ProcessInstanceBatchIntent, ProcessInstanceBatchValue, ProcessInstanceIntent, ProcessInstanceValue, Text,
};

use crate::compensation;
use crate::execution::{Execution, Outcome};
use crate::state::{ElementInstance, Lifecycle, State};

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

/// Children that an interrupting event tells to end at once.
const INTERRUPTED_CHILDREN_AT_ONCE_MAX: usize = 50;

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
            Step::Command(command) => crate::dispatch::owning_instance(state, command),
        }
    }
}

/// Takes one step. A step whose instance is gone or has ended meanwhile has nothing to do.
pub(crate) fn take_step(execution: &mut Execution<'_>, step: Step) -> Outcome {
    if is_of_banned(&execution.state, &step) {
        return Ok(());
    }
    match step {
        Step::Activate { key, value } => activate::activate(execution, key, value),
        Step::ContinueActivation { key } => activate::resume(execution, key),
        Step::Complete { key } => complete::complete(execution, key),
        Step::Terminate { key } => terminate::terminate(execution, key),
        Step::TerminateChildren { scope, after, up_to } => {
            terminate::terminate_children(execution, scope, after, up_to)
        }
        Step::ActivateBatch { of } => activate_batch(execution, of),
        Step::BeginAdHocElements { ad_hoc, value } => ad_hoc_sub_process::continue_elements(execution, ad_hoc, *value),
        Step::Command(command) => crate::dispatch::follow_up(execution, &command),
    }
}

fn activate_batch(execution: &mut Execution<'_>, of: Key) -> Outcome {
    match Token::find(execution, of)? {
        Some(token) if matches!(token.element().behavior, Behavior::CompensationThrowEvent { .. }) => {
            compensation::go_on(execution, &token)
        }
        _ => multi_instance::activate_inner_instances(execution, of),
    }
}

/// Whether the step belongs to a banned instance and is not taken, whatever caused it. Such an instance does nothing any
/// more but end, when itself or what called it is cancelled. What comes from another partition or goes there is always done.
fn is_of_banned(state: &State, step: &Step) -> bool {
    if state.counters.banned_instances == 0 || matches!(step, Step::Command(_)) {
        return false;
    }
    let process_instance = step.process_instance(state);
    if !state.is_banned(process_instance) {
        return false;
    }
    match step {
        Step::Terminate { key } if *key == process_instance => false,
        Step::Terminate { .. } | Step::TerminateChildren { .. } => {
            let process = state.element_instance(process_instance);
            process.is_none_or(|process| process.lifecycle != Lifecycle::Terminating)
        }
        _ => true,
    }
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

/// Whether a process instance is ending: it takes as many steps as it has elements, and no more.
pub(crate) fn comes_to_an_end(state: &State, process_instance: Key) -> bool {
    let process = state.element_instance(process_instance);
    process.is_some_and(|process| process.lifecycle == Lifecycle::Terminating)
}

/// Whether a process instance is ending and another one called it, which cannot end before.
pub(crate) fn is_end_waited_for(state: &State, process_instance: Key) -> bool {
    state.element_instance(process_instance).is_some_and(|process| {
        process.lifecycle == Lifecycle::Terminating && process.value.parent_process_instance_key.is_some()
    })
}

/// An element instance on its way, with what every part of its life needs.
pub(crate) struct Token {
    pub key: Key,
    pub instance: Arc<ElementInstance>,
    pub process: Arc<ExecutableProcess>,
    pub element: ElementIndex,
}

impl Token {
    /// The living instance with this key, if it is (still) there.
    pub fn find(execution: &Execution<'_>, key: Key) -> Outcome<Option<Token>> {
        let Some(instance) = execution.state.element_instance(key) else { return Ok(None) };
        let is_orphan = |execution: &Execution<'_>| execution.state.is_banned(instance.value.process_instance_key);
        let (process, element) = match execution.element_of(&instance.value) {
            Ok(found) => found,
            // A banned instance does not keep its definition.
            Err(_) if is_orphan(execution) => return Ok(None),
            Err(failure) => return Err(failure),
        };
        Ok(Some(Token { key, instance, process, element }))
    }

    pub fn element(&self) -> &bpmn::model::Element {
        self.process.element(self.element)
    }

    pub fn value(&self) -> &Arc<ProcessInstanceValue> {
        &self.instance.value
    }

    pub fn transition(&self, execution: &mut Execution<'_>, intent: ProcessInstanceIntent) {
        execution.emit(self.key, Payload::ProcessInstance(intent, self.instance.value.clone()));
    }
}

/// The value of an instance of `element` in `scope`, which belongs to the same process instance as `of`.
pub(crate) fn value_of(
    process: &ExecutableProcess,
    element: ElementIndex,
    scope: Key,
    of: &ProcessInstanceValue,
    without_token: bool,
) -> ProcessInstanceValue {
    let target = process.element(element);
    ProcessInstanceValue {
        element_id: (&target.id).into(),
        flow_scope_key: scope,
        bpmn_element_type: target.element_type,
        bpmn_event_type: target.event_type,
        without_token,
        ..of.clone()
    }
}

/// Lets a token arrive at `element`, which lies in the same scope as `of`.
fn arrive(
    execution: &mut Execution<'_>,
    process: &ExecutableProcess,
    element: ElementIndex,
    scope: Key,
    of: &ProcessInstanceValue,
) {
    let value = value_of(process, element, scope, of, false);
    execution.steps.push_back(Step::Activate { key: None, value: Arc::new(value) });
}

/// Begins `element` in `scope` without a token of a sequence flow.
fn begin(
    execution: &mut Execution<'_>,
    process: &ExecutableProcess,
    element: ElementIndex,
    scope: Key,
    of: &ProcessInstanceValue,
) {
    let value = value_of(process, element, scope, of, true);
    execution.steps.push_back(Step::Activate { key: None, value: Arc::new(value) });
}

/// Joining gateways of a scope begin if what they wait for can no longer come.
pub(crate) fn look_again_at_joins(execution: &mut Execution<'_>, scope: Key, of: &ProcessInstanceValue) -> Outcome {
    inclusive_gateway::look_again(execution, scope, of)
}

/// Whether an element may begin or complete in a scope: the scope is active and not interrupted by another element.
pub(crate) fn is_open_for(scope: &ElementInstance, element_id: &str) -> bool {
    scope.lifecycle == Lifecycle::Activated
        && scope.interrupted_by.as_ref().is_none_or(|interrupted_by| **interrupted_by == *element_id)
}
