//! Events of compensation.

use std::sync::Arc;

use protocol::{
    BpmnElementType, BpmnEventType, CompensationSubscriptionIntent, CompensationSubscriptionValue, Key,
    ProcessInstanceValue,
};

use super::change::broken;
use super::usage;
use crate::state::{CompensationRow, CompensationSubscriptionRow, State, Usage};

pub(super) fn apply(
    state: &mut State,
    key: Key,
    intent: CompensationSubscriptionIntent,
    value: &CompensationSubscriptionValue,
) {
    let before = state.tables.compensation_subscriptions.get(&value.process_instance_key.raw(), &key.raw());
    let Some(before) = before else {
        match intent {
            CompensationSubscriptionIntent::Created => created(state, key, value),
            _ => broken(state, format!("compensation subscription {key} is not there")),
        }
        return;
    };
    match intent {
        CompensationSubscriptionIntent::Created => {
            broken(state, format!("compensation subscription {key} is there already"));
        }
        CompensationSubscriptionIntent::Triggered => triggered(state, key, &before, value),
        CompensationSubscriptionIntent::Completed | CompensationSubscriptionIntent::Deleted => {
            ended(state, key, &before.value);
        }
        CompensationSubscriptionIntent::Migrated => migrated(state, key, &before, value),
    }
}

/// Where the subscription is found by its activity as long as that is not being undone.
fn by_activity(value: &CompensationSubscriptionValue) -> (i64, Arc<str>) {
    (value.compensable_activity_scope_key.raw(), value.compensable_activity_id.shared().clone())
}

fn put(state: &mut State, key: Key, value: &CompensationSubscriptionValue, created: u64) {
    let row = CompensationSubscriptionRow { value: value.clone(), created };
    state.tables.compensation_subscriptions.put(value.process_instance_key.raw(), key.raw(), row);
}

fn created(state: &mut State, key: Key, value: &CompensationSubscriptionValue) {
    let (scope, activity) = (value.compensable_activity_scope_key.raw(), value.compensable_activity_instance_key.raw());
    put(state, key, value, state.counters.position);
    state.tables.compensation_scopes.insert(scope, key.raw(), ());
    state.tables.compensable.insert(scope, key.raw(), ());
    state.tables.compensable_activities.insert(by_activity(value), key.raw(), ());
    state.tables.compensation_activities.insert_new(activity, key.raw());
    usage::add(state, value.process_instance_key, Usage::OF_COMPENSATION_SUBSCRIPTION);
}

/// An element begins its work. If it is an event that has something undone, that is what was completed before.
pub(super) fn begun(state: &mut State, key: Key, value: &ProcessInstanceValue) {
    let is_event =
        matches!(value.bpmn_element_type, BpmnElementType::IntermediateThrowEvent | BpmnElementType::EndEvent);
    if value.bpmn_event_type != BpmnEventType::Compensation || !is_event {
        return;
    }
    let row = CompensationRow { scopes: Vec::new(), begun: state.counters.position };
    state.tables.compensations.put(key.raw(), row);
}

fn is_triggered(value: &CompensationSubscriptionValue) -> bool {
    !value.throw_event_id.is_empty()
}

fn no_longer_compensable(state: &mut State, key: Key, value: &CompensationSubscriptionValue) {
    state.tables.compensable.remove(&value.compensable_activity_scope_key.raw(), &key.raw());
    state.tables.compensable_activities.remove(&by_activity(value), &key.raw());
}

fn triggered(state: &mut State, key: Key, before: &CompensationSubscriptionRow, value: &CompensationSubscriptionValue) {
    if is_triggered(&before.value) {
        return broken(state, format!("compensation subscription {key} is triggered already"));
    }
    no_longer_compensable(state, key, &before.value);
    put(state, key, value, before.created);
    let throw_event = value.throw_event_instance_key.raw();
    state.tables.compensation_throw_events.insert(throw_event, key.raw(), ());
    if value.compensation_handler_instance_key.is_some() {
        state.tables.compensation_handlers.insert_new(value.compensation_handler_instance_key.raw(), key.raw());
    }
    go_inside(state, value);
}

/// The event that throws goes on inside of the activity, if there is what may be undone, and then with what is around.
fn go_inside(state: &mut State, value: &CompensationSubscriptionValue) {
    let throw_event = value.throw_event_instance_key.raw();
    let Some(row) = state.tables.compensations.get(&throw_event) else {
        return broken(state, format!("compensation event {throw_event} has not begun its work"));
    };
    let CompensationRow { mut scopes, begun } = (*row).clone();
    drop(row);
    while scopes.last().is_some_and(|scope| *scope != value.compensable_activity_scope_key) {
        scopes.pop();
    }
    let activity = value.compensable_activity_instance_key;
    if state.tables.compensable.first(&activity.raw()).is_some() {
        scopes.push(activity);
    }
    state.tables.compensations.put(throw_event, CompensationRow { scopes, begun });
}

fn ended(state: &mut State, key: Key, value: &CompensationSubscriptionValue) {
    state.tables.compensation_subscriptions.remove(&value.process_instance_key.raw(), &key.raw());
    state.tables.compensation_scopes.remove(&value.compensable_activity_scope_key.raw(), &key.raw());
    state.tables.compensation_activities.delete(&value.compensable_activity_instance_key.raw());
    if is_triggered(value) {
        state.tables.compensation_throw_events.remove(&value.throw_event_instance_key.raw(), &key.raw());
        if value.compensation_handler_instance_key.is_some() {
            state.tables.compensation_handlers.delete(&value.compensation_handler_instance_key.raw());
        }
    } else {
        no_longer_compensable(state, key, value);
    }
    usage::take(state, value.process_instance_key, Usage::OF_COMPENSATION_SUBSCRIPTION);
}

fn migrated(state: &mut State, key: Key, before: &CompensationSubscriptionRow, value: &CompensationSubscriptionValue) {
    if !is_triggered(&before.value) {
        state.tables.compensable_activities.remove(&by_activity(&before.value), &key.raw());
        state.tables.compensable_activities.insert(by_activity(value), key.raw(), ());
    }
    put(state, key, value, before.created);
}
