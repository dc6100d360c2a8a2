//! A compensation handler has completed.

use protocol::{BpmnEventType, CompensationSubscriptionIntent, Key};

use super::{emit, first_in_scope, row, throw};
use crate::execution::step::Step;
use crate::execution::token::Token;
use crate::execution::{Execution, Outcome};

/// What it undid is undone, and so is what contains that when nothing else is left in there. The event that threw completes
/// after the last one.
pub(crate) fn handler_completed(execution: &mut Execution<'_>, token: &Token) -> Outcome {
    if token.value().bpmn_event_type != BpmnEventType::Compensation {
        return Ok(());
    }
    // The events of compensation are of the same type, and a handler may have begun by a modification.
    let Some(subscription) = execution.state.tables.compensation_handlers.get(&token.key.raw()) else { return Ok(()) };
    let process_instance = token.value().process_instance_key;
    let Some(row) = row(&execution.state, process_instance, *subscription) else { return Ok(()) };
    emit(execution, *subscription, CompensationSubscriptionIntent::Completed, row.value.clone());
    complete_scopes(execution, process_instance, row.value.compensable_activity_scope_key);
    complete_throw_event(execution, row.value.throw_event_instance_key)
}

fn complete_scopes(execution: &mut Execution<'_>, process_instance: Key, mut scope: Key) {
    while first_in_scope(&execution.state, scope).is_none() {
        let Some(subscription) = execution.state.tables.compensation_activities.get(&scope.raw()) else { return };
        let Some(row) = row(&execution.state, process_instance, *subscription) else { return };
        if !row.value.compensation_handler_id.is_empty() {
            return;
        }
        emit(execution, *subscription, CompensationSubscriptionIntent::Completed, row.value.clone());
        scope = row.value.compensable_activity_scope_key;
    }
}

/// The event may have ended before by a modification.
fn complete_throw_event(execution: &mut Execution<'_>, throw_event: Key) -> Outcome {
    let is_left = execution.state.tables.compensation_throw_events.first(&throw_event.raw()).is_some();
    if is_left {
        return Ok(());
    }
    if let Some(token) = Token::find(execution, throw_event)?
        && throw::next(&execution.state, &token).is_none()
    {
        execution.steps.push_back(Step::Complete { key: throw_event });
    }
    Ok(())
}
