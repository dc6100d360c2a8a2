//! What was completed and may be undone, from its completion to the end of its scope.

use protocol::{BpmnElementType, CompensationSubscriptionIntent, CompensationSubscriptionValue, Key};

use super::{SUBSCRIPTIONS_AT_ONCE_MAX, emit, first_in_scope, row};
use crate::execution::Execution;
use crate::execution::token::Token;
use crate::state::{ElementInstance, Lifecycle};

/// An activity completes: it may be undone if it has a handler, or contains what has one.
pub(crate) fn subscribe(execution: &mut Execution<'_>, token: &Token) {
    let element = token.element();
    let handler = token.process.compensation_of(token.element);
    let contains_some = |execution: &Execution<'_>| {
        is_container(element.element_type) && first_in_scope(&execution.state, token.key).is_some()
    };
    if handler.is_none() && !contains_some(execution) {
        return;
    }
    let value = token.value();
    if is_ending(execution, value.flow_scope_key) {
        return;
    }
    let subscription = CompensationSubscriptionValue {
        tenant_id: value.tenant_id.clone(),
        process_instance_key: value.process_instance_key,
        process_definition_key: value.process_definition_key,
        compensable_activity_id: value.element_id.clone(),
        compensation_handler_id: handler
            .map(|(_, handler)| (&token.process.element(handler).id).into())
            .unwrap_or_default(),
        compensable_activity_scope_key: value.flow_scope_key,
        compensable_activity_instance_key: token.key,
        ..CompensationSubscriptionValue::default()
    };
    let key = execution.state.next_key();
    emit(execution, key.raw(), CompensationSubscriptionIntent::Created, subscription);
}

/// Whether a scope, or one around it, is being terminated: what it had to undo went when that began, and an activity may complete
/// before the slice of the work comes that ends it.
fn is_ending(execution: &Execution<'_>, mut scope: Key) -> bool {
    while let Some(instance) = execution.state.element_instance(scope) {
        if instance.lifecycle == Lifecycle::Terminating {
            return true;
        }
        scope = instance.value.flow_scope_key;
    }
    false
}

/// Whether what was completed inside of an activity is undone with it.
fn is_container(element_type: BpmnElementType) -> bool {
    matches!(
        element_type,
        BpmnElementType::SubProcess
            | BpmnElementType::MultiInstanceBody
            | BpmnElementType::AdHocSubProcess
            | BpmnElementType::AdHocSubProcessInnerInstance
    )
}

/// What was completed in an element instance that ends early will not be undone any more. Returns whether there is more that
/// is deleted before the children end.
pub(crate) fn delete_of(execution: &mut Execution<'_>, key: Key, instance: &ElementInstance) -> bool {
    match instance.value.bpmn_element_type {
        BpmnElementType::Process => delete_of_process(execution, key),
        BpmnElementType::SubProcess | BpmnElementType::AdHocSubProcess => {
            delete_inside(execution, key, instance.value.process_instance_key);
            false
        }
        _ => false,
    }
}

/// The same of a process instance that is ending, where more is left.
pub(crate) fn delete_of_ending(execution: &mut Execution<'_>, key: Key) -> bool {
    let instance = execution.state.element_instance(key);
    let ending = instance.filter(|instance| instance.lifecycle == Lifecycle::Terminating);
    let is_process = |instance: &ElementInstance| instance.value.bpmn_element_type == BpmnElementType::Process;
    ending.is_some_and(|instance| is_process(&instance) && delete_of_process(execution, key))
}

/// The next subscriptions of a process instance go. Returns whether there are more.
pub(crate) fn delete_of_process(execution: &mut Execution<'_>, process_instance: Key) -> bool {
    delete_some(execution, process_instance, SUBSCRIPTIONS_AT_ONCE_MAX);
    first_of_process(execution, process_instance).is_some()
}

/// All subscriptions of a process instance go if there are at most so many. Returns how many there were, or nothing if they
/// were more.
pub(crate) fn delete_all_of_process(
    execution: &mut Execution<'_>,
    process_instance: Key,
    count_max: usize,
) -> Option<usize> {
    let count = delete_some(execution, process_instance, count_max);
    first_of_process(execution, process_instance).is_none().then_some(count)
}

fn delete_some(execution: &mut Execution<'_>, process_instance: Key, count_max: usize) -> usize {
    for count in 0..count_max {
        let Some(subscription) = first_of_process(execution, process_instance) else { return count };
        delete(execution, process_instance, subscription);
    }
    count_max
}

fn first_of_process(execution: &Execution<'_>, process_instance: Key) -> Option<i64> {
    let subscriptions = &execution.state.tables.compensation_subscriptions;
    subscriptions.first(&process_instance.raw()).map(|(subscription, _)| subscription)
}

/// Those of what was completed in a scope go, and of what was completed inside of that, from the outside in. What is more
/// than goes at once is out of reach and goes with the process instance.
fn delete_inside(execution: &mut Execution<'_>, scope: Key, process_instance: Key) {
    let mut scopes = vec![scope];
    for _ in 0..SUBSCRIPTIONS_AT_ONCE_MAX {
        let next = loop {
            let Some(scope) = scopes.last() else { return };
            match first_in_scope(&execution.state, *scope) {
                Some(subscription) => break subscription,
                None => scopes.pop(),
            };
        };
        scopes.extend(delete(execution, process_instance, next));
    }
}

/// Returns the instance of the activity that will not be undone.
fn delete(execution: &mut Execution<'_>, process_instance: Key, subscription: i64) -> Option<Key> {
    let value = row(&execution.state, process_instance, subscription)?.value.clone();
    let activity = value.compensable_activity_instance_key;
    emit(execution, subscription, CompensationSubscriptionIntent::Deleted, value);
    Some(activity)
}
