//! An element is to end early: TERMINATING, its job, incident and children with it, TERMINATED.

use bpmn::model::Behavior;
use protocol::{JobIntent, Key, Payload, ProcessInstanceIntent};

use super::{Step, TERMINATED_CHILDREN_PER_STEP_MAX, Token, complete};
use crate::execution::{Execution, Outcome};
use crate::state::Lifecycle;

pub(super) fn terminate(execution: &mut Execution<'_>, key: Key) -> Outcome {
    let Some(token) = Token::find(execution, key)? else { return Ok(()) };
    if token.instance.lifecycle == Lifecycle::Terminating {
        return Ok(());
    }
    begin(execution, &token);
    Ok(())
}

/// From TERMINATING on; the cancellation of an instance starts here with the process itself.
pub(crate) fn begin(execution: &mut Execution<'_>, token: &Token) {
    token.transition(execution, ProcessInstanceIntent::ElementTerminating);
    if let Behavior::Container { .. } = token.element().behavior
        && token.instance.children > 0
    {
        resolve_incident(execution, token);
        execution.steps.push_back(Step::TerminateChildren { scope: token.key, after: Key::NONE });
        return;
    }
    finish(execution, token);
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

fn finish(execution: &mut Execution<'_>, token: &Token) {
    if token.instance.job.is_some()
        && let Some(job) = execution.state.job(token.instance.job)
    {
        execution.emit(token.instance.job, Payload::Job(JobIntent::Canceled, job.value.clone()));
        if job.incident.is_some() {
            crate::incident::resolve(execution, job.incident);
        }
    }
    resolve_incident(execution, token);
    token.transition(execution, ProcessInstanceIntent::ElementTerminated);
    let scope = token.value().flow_scope_key;
    let Some(parent) = execution.state.element_instance(scope) else { return };
    if parent.children > 0 {
        return;
    }
    match parent.lifecycle {
        Lifecycle::Terminating => {
            if let Ok(Some(parent)) = Token::find(execution, scope) {
                finish(execution, &parent);
            }
        }
        _ => complete::complete_scope_without_tokens(execution, scope),
    }
}

fn resolve_incident(execution: &mut Execution<'_>, token: &Token) {
    if token.instance.incident.is_some() {
        crate::incident::resolve(execution, token.instance.incident);
    }
}
