//! Message start events: each message starts an instance; those with the same correlation key run one at a time.

use std::collections::BTreeSet;
use std::sync::Arc;

use bpmn::model::{ExecutableProcess, StaticOrExpression, Trigger};
use protocol::{
    Key, MessageStartEventSubscriptionIntent, MessageStartEventSubscriptionValue, MessageValue, Payload,
    ProcessInstanceValue, ProcessMetadata, Text,
};

use super::buffer;
use crate::event;
use crate::execution::Execution;
use crate::process_instance;
use crate::state::{MessageStartEventSubscriptionRow, State, message_address};

/// Opens the subscriptions of a version that became the newest. They get the messages that come from now on, not those
/// that are buffered, as on the reference engine.
pub(crate) fn open(execution: &mut Execution<'_>, metadata: &ProcessMetadata, process: &ExecutableProcess) {
    for start in &process.triggered_start_events {
        let start = process.element(*start);
        let Some(Trigger::Message(definition)) = start.catch_event().map(|event| &event.trigger) else { continue };
        // Without an instance there are no variables, so deployments with other names were refused.
        let StaticOrExpression::Static(message_name) = &definition.name else { continue };
        let value = MessageStartEventSubscriptionValue {
            process_definition_key: metadata.process_definition_key,
            bpmn_process_id: metadata.bpmn_process_id.clone(),
            start_event_id: (&start.id).into(),
            message_name: message_name.into(),
            tenant_id: metadata.tenant_id.clone(),
            ..MessageStartEventSubscriptionValue::default()
        };
        let key = execution.state.next_key();
        emit(execution, key, MessageStartEventSubscriptionIntent::Created, value);
    }
}

/// Closes the subscriptions of a version that is no longer the newest.
pub(crate) fn close(execution: &mut Execution<'_>, definition: Key) {
    for row in subscriptions_of(&execution.state, definition) {
        emit(execution, row.key, MessageStartEventSubscriptionIntent::Deleted, row.value.clone());
    }
}

fn emit(
    execution: &mut Execution<'_>,
    key: Key,
    intent: MessageStartEventSubscriptionIntent,
    value: MessageStartEventSubscriptionValue,
) {
    execution.emit(key, Payload::MessageStartEventSubscription(intent, Box::new(value)));
}

fn subscriptions_of(state: &State, definition: Key) -> Vec<Arc<MessageStartEventSubscriptionRow>> {
    state.tables.message_start_subscriptions.prefix(&definition.raw()).map(|(_, row)| row).collect()
}

/// A published message starts an instance of each process with a start event for it, except those that it was
/// correlated to, and those with a living instance of its correlation key. Returns the first of these instances.
pub(super) fn correlate(
    execution: &mut Execution<'_>,
    key: Key,
    message: &MessageValue,
    correlated_processes: Vec<Text>,
) -> Option<Key> {
    let mut correlated_processes: BTreeSet<Text> = correlated_processes.into_iter().collect();
    let name = message.name.shared();
    let tables = &execution.state.tables;
    let rows = tables.message_started_processes.prefix(&(message.tenant_id.shared().clone(), name.clone()));
    let rows: Vec<_> = rows
        .filter_map(|((.., definition), _)| tables.message_start_subscriptions.get(&(definition, name.clone())))
        .collect();
    let mut first = None;
    for row in rows {
        let process_id = &row.value.bpmn_process_id;
        if correlated_processes.contains(process_id) || is_locked(&execution.state, &row.value, message) {
            continue;
        }
        correlated_processes.insert(process_id.clone());
        let started = start(execution, &row, key, message);
        first = first.or(started);
    }
    first
}

/// Whether an instance of the process that a message with this correlation key started still lives. A banned one never
/// ends, and so does not count.
fn is_locked(state: &State, subscription: &MessageStartEventSubscriptionValue, message: &MessageValue) -> bool {
    if message.correlation_key.is_empty() || state.counters.message_locks == 0 {
        return false;
    }
    let lock = (
        subscription.tenant_id.shared().clone(),
        subscription.bpmn_process_id.shared().clone(),
        message.correlation_key.shared().clone(),
    );
    state.tables.message_locks.get(&lock).is_some_and(|instance| !state.is_banned(Key::from_raw(*instance)))
}

fn start(
    execution: &mut Execution<'_>,
    row: &MessageStartEventSubscriptionRow,
    message_key: Key,
    message: &MessageValue,
) -> Option<Key> {
    let definition = row.value.process_definition_key;
    let process = execution.state.process(definition)?;
    let metadata = execution.state.tables.processes.get(&definition.raw())?;
    let start_event = process.find_event(&row.value.start_event_id)?;
    let instance = execution.state.next_key();
    let value = MessageStartEventSubscriptionValue {
        process_instance_key: instance,
        correlation_key: message.correlation_key.clone(),
        message_key,
        message_name: message.name.clone(),
        variables: message.variables.clone(),
        ..row.value.clone()
    };
    emit(execution, row.key, MessageStartEventSubscriptionIntent::Correlated, value);
    let root = process_instance::root_value(&metadata.metadata, instance);
    event::trigger_process(execution, &process, root, start_event, message.variables.clone());
    Some(instance)
}

/// Ends an instance by `end`, and starts the next one for a buffered message if it held the lock of its correlation key.
pub(crate) fn release_after(
    execution: &mut Execution<'_>,
    process_instance: Key,
    value: &ProcessInstanceValue,
    end: impl FnOnce(&mut Execution<'_>),
) {
    let correlation_key = match execution.state.counters.message_locks {
        0 => None,
        _ => execution.state.tables.message_lock_keys.get(&process_instance.raw()),
    };
    end(execution);
    if let Some(correlation_key) = correlation_key {
        start_next(execution, &value.tenant_id, &value.bpmn_process_id, &(&*correlation_key).into());
    }
}

/// What the look for a buffered message of a start event is charged.
const START_LOOK_STEPS: u64 = 100;

/// Starts an instance of the newest version for the oldest buffered message among those of all of its start events.
fn start_next(execution: &mut Execution<'_>, tenant_id: &Text, process_id: &Text, correlation_key: &Text) {
    let state = &*execution.state;
    let name = (tenant_id.shared().clone(), process_id.shared().clone());
    let Some(latest) = state.tables.latest_processes.get(&name) else { return };
    let next = subscriptions_of(state, latest.key).into_iter().filter_map(|row| {
        execution.used.count_reads(START_LOOK_STEPS);
        let address = message_address(tenant_id, &row.value.message_name, correlation_key);
        let message = buffer::next_message(state, address, process_id, execution.timestamp)?;
        Some((message, row))
    });
    let Some((message_key, row)) = next.min_by_key(|(message, _)| *message) else { return };
    let Some(message) = execution.state.tables.messages.get(&message_key.raw()) else { return };
    start(execution, &row, message_key, &message.value);
}
