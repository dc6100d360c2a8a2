//! An element is to end early: TERMINATING, its job, incident, subscriptions and children with it, TERMINATED.

use std::sync::Arc;

use bpmn::model::Behavior;
use protocol::{BpmnElementType, JobIntent, Key, Payload, ProcessInstanceIntent};

use super::interrupt::{can_begin, children_after};
use super::{complete, inclusive_gateway, multi_instance, runtime_instruction};
use crate::compensation;
use crate::event;
use crate::execution::step::Step;
use crate::execution::token::Token;
use crate::execution::{Execution, Outcome};
use crate::incident;
use crate::message;
use crate::state::{ElementInstance, Lifecycle};
use crate::user_task;

/// An element instance that ends. Its process definition matters only for what follows: a banned instance ends even
/// when its definition is gone.
struct Ending {
    key: Key,
    instance: Arc<ElementInstance>,
}

impl Ending {
    fn find(execution: &Execution<'_>, key: Key) -> Option<Ending> {
        execution.state.element_instance(key).map(|instance| Ending { key, instance })
    }

    fn transition(&self, execution: &mut Execution<'_>, intent: ProcessInstanceIntent) {
        execution.emit(self.key, Payload::ProcessInstance(intent, self.instance.value.clone()));
    }

    fn is(&self, element_type: BpmnElementType) -> bool {
        self.instance.value.bpmn_element_type == element_type
    }
}

pub(crate) fn terminate(execution: &mut Execution<'_>, key: Key) -> Outcome {
    match execution.state.element_instance(key) {
        Some(instance) if can_begin(execution, &instance) => begin(execution, key, instance),
        _ => Ok(()),
    }
}

/// From TERMINATING on; the cancellation of an instance starts here with the process itself.
pub(crate) fn begin(execution: &mut Execution<'_>, key: Key, instance: Arc<ElementInstance>) -> Outcome {
    let ending = Ending { key, instance };
    let instance = &ending.instance;
    if instance.lifecycle != Lifecycle::Terminating {
        ending.transition(execution, ProcessInstanceIntent::ElementTerminating);
    }
    cancel_job(execution, instance);
    event::unsubscribe(execution, key);
    if instance.user_task.is_some() {
        resolve_incident(execution, instance);
        if user_task::cancel(execution, instance)? {
            return Ok(());
        }
    }
    let goes_on = compensation::delete_of(execution, key, instance);
    if instance.children > 0 || goes_on {
        if !ending.is(BpmnElementType::MultiInstanceBody) {
            resolve_incident(execution, instance);
        }
        execution.steps.push_back(Step::TerminateChildren { scope: key, after: Key::NONE, up_to: None });
        return Ok(());
    }
    if !resolves_after_end(&ending) {
        resolve_incident(execution, instance);
    }
    if execution.state.element_instance(instance.called_instance).is_some() {
        execution.steps.push_back(Step::Terminate { key: instance.called_instance });
        return Ok(());
    }
    finish(execution, ending)
}

/// What held up the end of an element instance is done.
pub(crate) fn finish_termination(execution: &mut Execution<'_>, key: Key) -> Outcome {
    match Ending::find(execution, key) {
        Some(ending) if ending.instance.lifecycle == Lifecycle::Terminating => finish(execution, ending),
        _ => Ok(()),
    }
}

/// The next child of a scope is to end, and after it the others, one step each.
pub(crate) fn terminate_children(execution: &mut Execution<'_>, scope: Key, after: Key, up_to: Option<Key>) -> Outcome {
    if compensation::delete_of_ending(execution, scope) {
        execution.steps.push_back(Step::TerminateChildren { scope, after, up_to });
        return Ok(());
    }
    let children = children_after(execution, scope, after, up_to, 2);
    if children.is_empty() {
        return finish_left(execution, scope);
    }
    if let Some(child) = children.first() {
        execution.steps.push_back(Step::Terminate { key: *child });
    }
    if let [child, _] = children.as_slice() {
        execution.steps.push_back(Step::TerminateChildren { scope, after: *child, up_to });
    }
    Ok(())
}

/// A modification may have ended the last child of a scope that is ending, and a child that ends so tells its scope nothing.
fn finish_left(execution: &mut Execution<'_>, scope: Key) -> Outcome {
    match Ending::find(execution, scope) {
        Some(ending) if ending.instance.lifecycle == Lifecycle::Terminating && ending.instance.children == 0 => {
            finish(execution, ending)
        }
        _ => Ok(()),
    }
}

/// TERMINATED, and so on outwards as long as the enclosing instance was only waiting for this. A loop, because calls can be nested
/// deeper than a stack is.
fn finish(execution: &mut Execution<'_>, ending: Ending) -> Outcome {
    let mut enclosing = finish_one(execution, &ending)?;
    runtime_instruction::carry_out(execution, &ending.instance);
    while let Some(ending) = enclosing {
        if ending.is(BpmnElementType::MultiInstanceBody) {
            resolve_incident(execution, &ending.instance);
        }
        enclosing = finish_one(execution, &ending)?;
        runtime_instruction::carry_out(execution, &ending.instance);
    }
    Ok(())
}

/// Returns the enclosing instance if it ends too.
fn finish_one(execution: &mut Execution<'_>, ending: &Ending) -> Outcome<Option<Ending>> {
    let value = &ending.instance.value;
    if ending.is(BpmnElementType::Process) {
        return Ok(finish_process(execution, ending));
    }
    let scope = value.flow_scope_key;
    let is_banned = execution.state.is_banned(value.process_instance_key);
    let is_open = |scope: &ElementInstance| scope.lifecycle == Lifecycle::Activated && scope.interrupted_by.is_none();
    let goes_on = !is_banned && execution.state.element_instance(scope).is_some_and(|scope| is_open(&scope));
    // When a boundary event was the reason, it begins now, unless the enclosing scope is ending too.
    let token = if goes_on && ending.instance.has_triggers { Token::find(execution, ending.key)? } else { None };
    let boundary_event = token.and_then(|token| {
        let pending = event::find_boundary_trigger(&execution.state, &token)?;
        Some((token, pending))
    });
    let path = resolves_after_end(ending).then(|| incident::path(execution, ending.instance.incident)).flatten();
    ending.transition(execution, ProcessInstanceIntent::ElementTerminated);
    if resolves_after_end(ending) && ending.instance.incident.is_some() {
        incident::resolve_after_end(execution, ending.instance.incident, path);
    }
    if let Some((token, pending)) = boundary_event {
        event::activate(execution, &token, scope, &pending);
        return Ok(None);
    }
    let Some(enclosing) = Ending::find(execution, scope) else { return Ok(None) };
    match enclosing.instance.lifecycle {
        Lifecycle::Terminating => Ok((enclosing.instance.children == 0).then_some(enclosing)),
        Lifecycle::Activated if !is_banned => {
            if enclosing.instance.children == 0
                && let Some(scope) = Token::find(execution, scope)?
            {
                interrupted_or_complete(execution, &scope);
            }
            inclusive_gateway::look_again(execution, scope, value)?;
            Ok(None)
        }
        Lifecycle::Activated | Lifecycle::Activating | Lifecycle::Completing => Ok(None),
    }
}

/// Returns the call activity that ends with the process that it called.
fn finish_process(execution: &mut Execution<'_>, ending: &Ending) -> Option<Ending> {
    let value = &ending.instance.value;
    message::start_event::release_after(execution, ending.key, value, |execution| {
        ending.transition(execution, ProcessInstanceIntent::ElementTerminated);
    });
    let caller = Ending::find(execution, value.parent_element_instance_key);
    caller.filter(|caller| caller.instance.lifecycle == Lifecycle::Terminating)
}

/// Nothing lives any more in a scope that is not ending: what interrupted it begins, or it completes.
fn interrupted_or_complete(execution: &mut Execution<'_>, scope: &Token) {
    if let Behavior::MultiInstanceBody(_) | Behavior::AdHocSubProcess(_) = scope.element().behavior {
        multi_instance::inner_terminated(execution, scope);
        return;
    }
    match event::find_interrupting_trigger(&execution.state, scope) {
        Some(pending) => event::activate(execution, scope, scope.key, &pending),
        None => complete::complete_scope_without_tokens(execution, scope.key),
    }
}

pub(crate) fn cancel_job(execution: &mut Execution<'_>, instance: &ElementInstance) {
    if instance.job.is_none() {
        return;
    }
    let Some(job) = execution.state.job(instance.job) else { return };
    execution.emit(instance.job, Payload::Job(JobIntent::Canceled, job.value.clone()));
    if job.incident.is_some() {
        incident::resolve(execution, job.incident);
    }
}

/// The order of records on the reference engine: the incident of a start or throw event, or of a task that nobody works on,
/// is resolved after its end.
fn resolves_after_end(ending: &Ending) -> bool {
    matches!(
        ending.instance.value.bpmn_element_type,
        BpmnElementType::StartEvent
            | BpmnElementType::IntermediateThrowEvent
            | BpmnElementType::Task
            | BpmnElementType::ManualTask
    )
}

pub(crate) fn resolve_incident(execution: &mut Execution<'_>, instance: &ElementInstance) {
    if instance.incident.is_some() {
        incident::resolve(execution, instance.incident);
    }
}
