//! Compensation is thrown: the handlers of what was completed in the scope begin, in slices.

use std::sync::Arc;

use bpmn::model::Behavior;
use protocol::{
    BpmnElementType, BpmnEventType, CompensationSubscriptionIntent, CompensationSubscriptionValue, Key, Payload,
    ProcessInstanceIntent, ProcessInstanceValue,
};

use super::{SUBSCRIPTIONS_AT_ONCE_MAX, emit, row};
use crate::execution::step::Step;
use crate::execution::token::{Token, value_of};
use crate::execution::{Execution, Failure, Outcome};
use crate::state::{Lifecycle, State};

/// The event waits until everything is undone; without anything to undo it is done.
pub(crate) fn throw(execution: &mut Execution<'_>, token: &Token) -> Outcome {
    if next(&execution.state, token).is_none() {
        execution.steps.push_back(Step::Complete { key: token.key });
        return Ok(());
    }
    go_on(execution, token)
}

/// The next handlers begin.
pub(crate) fn go_on(execution: &mut Execution<'_>, token: &Token) -> Outcome {
    // It may be about to end since its first handlers began.
    if execution.state.element_instance(token.key).is_none_or(|event| event.lifecycle != Lifecycle::Activated) {
        return Ok(());
    }
    for _ in 0..execution.at_once(SUBSCRIPTIONS_AT_ONCE_MAX) {
        let Some(subscription) = next(&execution.state, token) else { return Ok(()) };
        let Some(row) = row(&execution.state, token.value().process_instance_key, subscription) else {
            return Err(broken(token, format!("compensation subscription {subscription} to be there, but it is not")));
        };
        trigger(execution, token, subscription, row.value.clone())?;
    }
    if next(&execution.state, token).is_some() {
        execution.steps.push_back(Step::ActivateBatch { of: token.key });
    }
    Ok(())
}

/// What is undone next: the first that was completed inside of what is being undone, else the first in the scope. Only what
/// was completed before the work of the event began.
pub(super) fn next(state: &State, token: &Token) -> Option<i64> {
    let event = state.tables.compensations.get(&token.key.raw())?;
    let before = |subscription: &i64| {
        let completed = row(state, token.value().process_instance_key, *subscription);
        completed.is_some_and(|completed| completed.created < event.begun)
    };
    let first = |scope: Key| {
        let found = state.tables.compensable.first(&scope.raw());
        found.map(|(subscription, _)| subscription).filter(before)
    };
    let inside = event.scopes.iter().rev();
    if let Some(found) = inside.copied().find_map(first) {
        return Some(found);
    }
    let activity = match token.element().behavior {
        Behavior::CompensationThrowEvent { activity } => activity,
        _ => return None,
    };
    let own = token.value().flow_scope_key;
    let scopes = [Some(own), scope_around_event_sub_process(state, own)];
    let found = scopes.into_iter().flatten().filter_map(|scope| match activity {
        None => first(scope),
        Some(activity) => {
            let of_activity = (scope.raw(), token.process.element(activity).id.clone());
            state.tables.compensable_activities.first(&of_activity).map(|(subscription, _)| subscription)
        }
    });
    found.min().filter(before)
}

/// An event sub-process has undone what was completed around it, too.
fn scope_around_event_sub_process(state: &State, scope: Key) -> Option<Key> {
    let scope = state.element_instance(scope)?;
    (scope.value.bpmn_element_type == BpmnElementType::EventSubProcess).then_some(scope.value.flow_scope_key)
}

fn trigger(
    execution: &mut Execution<'_>,
    token: &Token,
    subscription: i64,
    mut value: CompensationSubscriptionValue,
) -> Outcome {
    if !value.compensation_handler_id.is_empty() {
        value.compensation_handler_instance_key = begin_handler(execution, token, &value)?;
    }
    value.throw_event_id = token.value().element_id.clone();
    value.throw_event_instance_key = token.key;
    emit(execution, subscription, CompensationSubscriptionIntent::Triggered, value);
    Ok(())
}

/// The boundary event of the activity comes and goes, and its handler is about to begin, both in the scope of the event
/// that throws. Returns the key of the handler's instance.
fn begin_handler(
    execution: &mut Execution<'_>,
    token: &Token,
    subscription: &CompensationSubscriptionValue,
) -> Outcome<Key> {
    let activity_id = &subscription.compensable_activity_id;
    let activity = token.process.element_by_id.get(&**activity_id);
    let Some((event, handler)) = activity.and_then(|activity| token.process.compensation_of(*activity)) else {
        return Err(broken(token, format!("activity '{activity_id}' to have a compensation handler, but it has none")));
    };
    let scope = token.value().flow_scope_key;
    let event = Arc::new(value_of(&token.process, event, scope, token.value(), true));
    let key = execution.state.next_key();
    for intent in [
        ProcessInstanceIntent::ElementActivating,
        ProcessInstanceIntent::ElementActivated,
        ProcessInstanceIntent::ElementCompleting,
        ProcessInstanceIntent::ElementCompleted,
    ] {
        execution.emit(key, Payload::ProcessInstance(intent, event.clone()));
    }
    let key = execution.state.next_key();
    let value = ProcessInstanceValue {
        bpmn_event_type: BpmnEventType::Compensation,
        ..value_of(&token.process, handler, scope, token.value(), true)
    };
    execution.steps.push_back(Step::Activate { key: Some(key), value: Arc::new(value) });
    Ok(key)
}

fn broken(token: &Token, expected: String) -> Failure {
    Failure::Broken { process_instance: token.value().process_instance_key, reason: format!("Expected {expected}.") }
}
