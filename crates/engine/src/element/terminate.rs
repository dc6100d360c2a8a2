//! An element is to end early: TERMINATING, its job, incident, subscriptions and children with it, TERMINATED.

use bpmn::model::Behavior;
use protocol::{BpmnElementType, JobIntent, Key, Payload, ProcessInstanceIntent};

use super::{Step, TERMINATED_CHILDREN_PER_STEP_MAX, Token, complete, inclusive_gateway, multi_instance};
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
    resolve_incident(execution, token);
    if execution.state.element_instance(token.instance.called_instance).is_some() {
        execution.steps.push_back(Step::Terminate { key: token.instance.called_instance });
        return Ok(());
    }
    finish(execution, token)
}

pub(super) fn terminate_children(execution: &mut Execution<'_>, scope: Key, after: Key) -> Outcome {
    let range = (scope.raw(), after.raw().saturating_add(1).max(0))..(scope.raw(), i64::MAX);
    let children: Vec<Key> = execution
        .state
        .tables
        .children
        .range(range)
        .take(TERMINATED_CHILDREN_PER_STEP_MAX)
        .map(|((_, child), _)| Key::from_raw(child))
        .collect();
    execution.steps.extend(children.iter().map(|child| Step::Terminate { key: *child }));
    if let Some(last) = children.last()
        && children.len() == TERMINATED_CHILDREN_PER_STEP_MAX
    {
        execution.steps.push_back(Step::TerminateChildren { scope, after: *last });
    }
    Ok(())
}

/// TERMINATED. When a boundary event was the reason, it begins now, unless what is around is ending too.
fn finish(execution: &mut Execution<'_>, token: &Token) -> Outcome {
    let value = token.value();
    if value.bpmn_element_type == BpmnElementType::Process {
        return finish_process(execution, token);
    }
    let scope = value.flow_scope_key;
    let is_open = |scope: &ElementInstance| scope.lifecycle == Lifecycle::Activated && scope.interrupted_by.is_none();
    let goes_on = execution.state.element_instance(scope).is_some_and(|scope| is_open(&scope));
    let boundary_event = if goes_on { event::find_boundary_trigger(execution.state, token) } else { None };
    token.transition(execution, ProcessInstanceIntent::ElementTerminated);
    if let Some(pending) = boundary_event {
        event::activate(execution, token, scope, &pending);
        return Ok(());
    }
    if let Some(scope) = Token::find(execution, scope)? {
        child_terminated(execution, &scope)?;
        if scope.instance.lifecycle == Lifecycle::Activated {
            inclusive_gateway::look_again(execution, scope.key, value)?;
        }
    }
    Ok(())
}

fn finish_process(execution: &mut Execution<'_>, token: &Token) -> Outcome {
    message::start_event::release_after(execution, token, |execution| {
        token.transition(execution, ProcessInstanceIntent::ElementTerminated);
    });
    match Token::find(execution, token.value().parent_element_instance_key)? {
        Some(caller) if caller.instance.lifecycle == Lifecycle::Terminating => finish(execution, &caller),
        _ => Ok(()),
    }
}

/// A scope whose child was terminated: it ends too, or what interrupted it begins, or it goes on without the child.
fn child_terminated(execution: &mut Execution<'_>, scope: &Token) -> Outcome {
    if scope.instance.children > 0 {
        return Ok(());
    }
    match scope.instance.lifecycle {
        Lifecycle::Terminating => {
            if let Behavior::MultiInstanceBody(_) = scope.element().behavior {
                resolve_incident(execution, scope);
            }
            finish(execution, scope)
        }
        Lifecycle::Activated => {
            interrupted_or_complete(execution, scope);
            Ok(())
        }
        Lifecycle::Activating | Lifecycle::Completing => Ok(()),
    }
}

fn interrupted_or_complete(execution: &mut Execution<'_>, scope: &Token) {
    if let Behavior::MultiInstanceBody(_) = scope.element().behavior {
        multi_instance::inner_terminated(execution, scope);
        return;
    }
    let event_sub_process = scope.instance.interrupted_by.as_ref().and_then(|interrupted_by| {
        let pending = event::find_trigger(execution.state, &scope.process, scope.key)?;
        let event_sub_process = event::event_sub_process_of(&scope.process, pending.event)?;
        (*scope.process.element(event_sub_process).id == **interrupted_by).then_some(pending)
    });
    match event_sub_process {
        Some(pending) => event::activate(execution, scope, scope.key, &pending),
        None => complete::complete_scope_without_tokens(execution, scope.key),
    }
}

fn cancel_job(execution: &mut Execution<'_>, token: &Token) {
    if !token.instance.job.is_some() {
        return;
    }
    let Some(job) = execution.state.job(token.instance.job) else { return };
    execution.emit(token.instance.job, Payload::Job(JobIntent::Canceled, job.value.clone()));
    if job.incident.is_some() {
        crate::incident::resolve(execution, job.incident);
    }
}

fn resolve_incident(execution: &mut Execution<'_>, token: &Token) {
    if token.instance.incident.is_some() {
        crate::incident::resolve(execution, token.instance.incident);
    }
}
