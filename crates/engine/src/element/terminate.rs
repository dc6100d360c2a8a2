//! An element is to end early: TERMINATING, its job, incident, subscriptions and children with it, TERMINATED.

use bpmn::model::Behavior;
use protocol::{BpmnElementType, JobIntent, Key, Payload, ProcessInstanceIntent};

use super::{
    INTERRUPTED_CHILDREN_AT_ONCE_MAX, Step, Token, complete, inclusive_gateway, multi_instance, runtime_instruction,
};
use crate::event;
use crate::execution::{Execution, Outcome};
use crate::message;
use crate::state::{ElementInstance, Lifecycle};

pub(super) fn terminate(execution: &mut Execution<'_>, key: Key) -> Outcome {
    let Some(token) = Token::find(execution, key)? else { return Ok(()) };
    if token.instance.lifecycle == Lifecycle::Terminating {
        return Ok(());
    }
    begin(execution, &token)
}

/// From TERMINATING on; the cancellation of an instance starts here with the process itself.
pub(crate) fn begin(execution: &mut Execution<'_>, token: &Token) -> Outcome {
    token.transition(execution, ProcessInstanceIntent::ElementTerminating);
    cancel_job(execution, token);
    event::unsubscribe(execution, token);
    if token.instance.children > 0 {
        if !matches!(token.element().behavior, Behavior::MultiInstanceBody(_)) {
            resolve_incident(execution, token);
        }
        execution.steps.push_back(Step::TerminateChildren { scope: token.key, after: Key::NONE });
        return Ok(());
    }
    if !resolves_after_end(token) {
        resolve_incident(execution, token);
    }
    if execution.state.element_instance(token.instance.called_instance).is_some() {
        execution.steps.push_back(Step::Terminate { key: token.instance.called_instance });
        return Ok(());
    }
    finish(execution, token)
}

/// The next child of a scope is to end, and after it the others, one step each.
pub(super) fn terminate_children(execution: &mut Execution<'_>, scope: Key, after: Key) -> Outcome {
    let children = children_after(execution, scope, after, 2);
    if let Some(child) = children.first() {
        execution.steps.push_back(Step::Terminate { key: *child });
    }
    if let [child, _] = children.as_slice() {
        execution.steps.push_back(Step::TerminateChildren { scope, after: *child });
    }
    Ok(())
}

/// The children of a scope are to end because an event interrupts it: all at once, as on the reference engine, unless they
/// are many.
pub(crate) fn interrupt_children(execution: &mut Execution<'_>, scope: Key) {
    let children = children_after(execution, scope, Key::NONE, INTERRUPTED_CHILDREN_AT_ONCE_MAX);
    execution.steps.extend(children.iter().map(|child| Step::Terminate { key: *child }));
    if let Some(last) = children.last()
        && children.len() == INTERRUPTED_CHILDREN_AT_ONCE_MAX
    {
        execution.steps.push_back(Step::TerminateChildren { scope, after: *last });
    }
}

fn children_after(execution: &Execution<'_>, scope: Key, after: Key, count_max: usize) -> Vec<Key> {
    let range = (scope.raw(), after.raw().saturating_add(1).max(0))..(scope.raw(), i64::MAX);
    let children = execution.state.tables.children.range(range).map(|((_, child), _)| Key::from_raw(child));
    let can_end = |child: &Key| {
        execution.state.element_instance(*child).is_some_and(|child| child.lifecycle != Lifecycle::Terminating)
    };
    children.filter(can_end).take(count_max).collect()
}

/// TERMINATED, and so on outwards as long as what is around was only waiting for this. A loop, because calls can be nested
/// deeper than a stack is.
fn finish(execution: &mut Execution<'_>, token: &Token) -> Outcome {
    let mut around = finish_one(execution, token)?;
    runtime_instruction::carry_out(execution, token);
    while let Some(token) = around {
        if let Behavior::MultiInstanceBody(_) = token.element().behavior {
            resolve_incident(execution, &token);
        }
        around = finish_one(execution, &token)?;
        runtime_instruction::carry_out(execution, &token);
    }
    Ok(())
}

/// Answers what is around and ends with it.
fn finish_one(execution: &mut Execution<'_>, token: &Token) -> Outcome<Option<Token>> {
    let value = token.value();
    if value.bpmn_element_type == BpmnElementType::Process {
        return finish_process(execution, token);
    }
    let scope = value.flow_scope_key;
    let is_open = |scope: &ElementInstance| scope.lifecycle == Lifecycle::Activated && scope.interrupted_by.is_none();
    let goes_on = execution.state.element_instance(scope).is_some_and(|scope| is_open(&scope));
    // When a boundary event was the reason, it begins now, unless what is around is ending too.
    let boundary_event = if goes_on { event::find_boundary_trigger(&execution.state, token) } else { None };
    token.transition(execution, ProcessInstanceIntent::ElementTerminated);
    if resolves_after_end(token) {
        resolve_incident(execution, token);
    }
    if let Some(pending) = boundary_event {
        event::activate(execution, token, scope, &pending);
        return Ok(None);
    }
    let Some(scope) = Token::find(execution, scope)? else { return Ok(None) };
    match scope.instance.lifecycle {
        Lifecycle::Terminating => Ok((scope.instance.children == 0).then_some(scope)),
        Lifecycle::Activated => {
            if scope.instance.children == 0 {
                interrupted_or_complete(execution, &scope);
            }
            inclusive_gateway::look_again(execution, scope.key, value)?;
            Ok(None)
        }
        Lifecycle::Activating | Lifecycle::Completing => Ok(None),
    }
}

fn finish_process(execution: &mut Execution<'_>, token: &Token) -> Outcome<Option<Token>> {
    message::start_event::release_after(execution, token, |execution| {
        token.transition(execution, ProcessInstanceIntent::ElementTerminated);
    });
    let caller = Token::find(execution, token.value().parent_element_instance_key)?;
    Ok(caller.filter(|caller| caller.instance.lifecycle == Lifecycle::Terminating))
}

/// Nothing lives any more in a scope that is not ending: what interrupted it begins, or it completes.
fn interrupted_or_complete(execution: &mut Execution<'_>, scope: &Token) {
    if let Behavior::MultiInstanceBody(_) = scope.element().behavior {
        multi_instance::inner_terminated(execution, scope);
        return;
    }
    match event::find_interrupting_trigger(&execution.state, scope) {
        Some(pending) => event::activate(execution, scope, scope.key, &pending),
        None => complete::complete_scope_without_tokens(execution, scope.key),
    }
}

pub(super) fn cancel_job(execution: &mut Execution<'_>, token: &Token) {
    if !token.instance.job.is_some() {
        return;
    }
    let Some(job) = execution.state.job(token.instance.job) else { return };
    execution.emit(token.instance.job, Payload::Job(JobIntent::Canceled, job.value.clone()));
    if job.incident.is_some() {
        crate::incident::resolve(execution, job.incident);
    }
}

/// The order of records on the reference engine: the incident of a start or throw event is resolved after its end.
fn resolves_after_end(token: &Token) -> bool {
    matches!(token.value().bpmn_element_type, BpmnElementType::StartEvent | BpmnElementType::IntermediateThrowEvent)
}

pub(super) fn resolve_incident(execution: &mut Execution<'_>, token: &Token) {
    if token.instance.incident.is_some() {
        crate::incident::resolve(execution, token.instance.incident);
    }
}
