//! Events of messages and their subscriptions.

use std::sync::Arc;

use protocol::{
    Key, MessageCorrelationIntent, MessageCorrelationValue, MessageIntent, MessageStartEventSubscriptionIntent,
    MessageStartEventSubscriptionValue, MessageSubscriptionIntent, MessageSubscriptionValue, MessageValue,
    ProcessInstanceValue, ProcessMessageSubscriptionIntent, ProcessMessageSubscriptionValue, Text,
};

use super::change::{broken, change_element, count_down, count_up, not_an_event, take_one};
use super::message_buffer as buffer;
use crate::state::{
    AwaitedCorrelation, MessageAddress, MessageRow, MessageStartEventSubscriptionRow, MessageSubscriptionRow,
    ProcessMessageSubscriptionRow, State, SubscriptionState, message_address,
};

pub(super) fn apply(state: &mut State, key: Key, intent: MessageIntent, value: &MessageValue) {
    match intent {
        MessageIntent::Published => published(state, key, value),
        MessageIntent::Expired => expired(state, key),
        MessageIntent::Publish | MessageIntent::Expire => not_an_event(state, intent.name()),
    }
}

/// A sender begins to wait, or learns the end.
pub(super) fn apply_correlation(
    state: &mut State,
    key: Key,
    intent: MessageCorrelationIntent,
    value: &MessageCorrelationValue,
) {
    match intent {
        MessageCorrelationIntent::Correlating => {
            let value = MessageCorrelationValue { variables: Text::default(), ..value.clone() };
            state.tables.awaited_correlations.insert_new(key.raw(), AwaitedCorrelation { value, under_way: 0 });
            state.counters.awaited_correlations += 1;
        }
        MessageCorrelationIntent::Correlated | MessageCorrelationIntent::NotCorrelated => {
            if !state.tables.awaited_correlations.contains(&key.raw()) {
                return broken(state, format!("nobody waits for the correlation of message {key}"));
            }
            state.tables.awaited_correlations.delete(&key.raw());
            count_down(state, "awaited correlations", 1, |counters| &mut counters.awaited_correlations);
        }
        MessageCorrelationIntent::Correlate => not_an_event(state, intent.name()),
    }
}

/// Counts to how many element instances a message is on its way whose sender waits, if its sender does.
fn change_under_way(state: &mut State, message: Key, change: impl FnOnce(u32) -> Option<u32>) {
    if state.counters.awaited_correlations == 0 {
        return;
    }
    let mut is_right = true;
    state.tables.awaited_correlations.update(&message.raw(), |row| match change(row.under_way) {
        Some(under_way) => row.under_way = under_way,
        None => is_right = false,
    });
    if !is_right {
        broken(state, format!("message {message} is on its way to nobody"));
    }
}

fn published(state: &mut State, key: Key, value: &MessageValue) {
    let address = message_address(&value.tenant_id, &value.name, &value.correlation_key);
    if !value.message_id.is_empty() {
        state.tables.message_ids.insert_new((address.clone(), value.message_id.shared().clone()), ());
    }
    state.tables.messages_by_address.insert_new((address, key.raw()), ());
    state.tables.message_deadlines.insert((), (value.deadline, key.raw()), ());
    state.tables.messages.insert_new(key.raw(), MessageRow { value: value.clone() });
    state.counters.messages += 1;
}

fn expired(state: &mut State, key: Key) {
    let raw = key.raw();
    let Some(row) = state.tables.messages.get(&raw) else {
        return broken(state, format!("message {key} is not there"));
    };
    let value = &row.value;
    let address = message_address(&value.tenant_id, &value.name, &value.correlation_key);
    buffer::forget(state, key, &row);
    if !value.message_id.is_empty() {
        state.tables.message_ids.delete(&(address.clone(), value.message_id.shared().clone()));
    }
    state.tables.messages_by_address.delete(&(address, raw));
    state.tables.message_deadlines.remove(&(), &(value.deadline, raw));
    state.tables.messages.delete(&raw);
    count_down(state, "messages", 1, |counters| &mut counters.messages);
}

pub(super) fn apply_subscription(
    state: &mut State,
    key: Key,
    intent: MessageSubscriptionIntent,
    value: &MessageSubscriptionValue,
) {
    let entry = (value.element_instance_key.raw(), value.message_name.shared().clone());
    match intent {
        MessageSubscriptionIntent::Created => {
            wait(state, value);
            let row = MessageSubscriptionRow { key, value: value.clone(), is_correlating: false };
            state.tables.message_subscriptions.insert_new(entry, row);
            state.counters.message_subscriptions += 1;
        }
        MessageSubscriptionIntent::Correlating => {
            // It may take a message that is not kept while another one is on its way to it.
            if !is_correlating(state, &entry) {
                wait_no_more(state, value);
                change(state, &entry, |row| {
                    row.value = value.clone();
                    row.is_correlating = true;
                });
                set_busy(state, value, true);
            }
            buffer::correlated(state, value.message_key, &value.bpmn_process_id);
            change_under_way(state, value.message_key, |count| count.checked_add(1));
        }
        MessageSubscriptionIntent::Correlated if value.interrupting => remove(state, &entry),
        MessageSubscriptionIntent::Correlated => {
            let row = state.tables.message_subscriptions.get(&entry);
            if row.is_some_and(|row| row.is_correlating && row.value.message_key == value.message_key) {
                set_busy(state, value, false);
                wait(state, value);
                change(state, &entry, |row| row.is_correlating = false);
            }
        }
        MessageSubscriptionIntent::Rejected => rejected(state, &entry, value),
        MessageSubscriptionIntent::Deleted => remove(state, &entry),
        MessageSubscriptionIntent::Migrated => migrated(state, &entry, value),
        MessageSubscriptionIntent::Create
        | MessageSubscriptionIntent::Correlate
        | MessageSubscriptionIntent::Reject
        | MessageSubscriptionIntent::Delete
        | MessageSubscriptionIntent::Migrate => not_an_event(state, intent.name()),
    }
}

/// Changes a subscription, which must be there.
fn change(state: &mut State, entry: &(i64, Arc<str>), change: impl FnOnce(&mut MessageSubscriptionRow)) {
    if !state.tables.message_subscriptions.update(entry, change) {
        not_subscribed(state, entry);
    }
}

fn not_subscribed(state: &mut State, (element_instance, name): &(i64, Arc<str>)) {
    broken(state, format!("element instance {element_instance} has no subscription to message '{name}'"));
}

fn is_correlating(state: &State, entry: &(i64, Arc<str>)) -> bool {
    state.tables.message_subscriptions.get(entry).is_some_and(|row| row.is_correlating)
}

/// Notes whether a subscription takes messages that are not kept while one is on its way to it.
fn set_busy(state: &mut State, value: &MessageSubscriptionValue, is_busy: bool) {
    if value.interrupting {
        return;
    }
    let (address, process_id) = process_at(value);
    let entry = (address, process_id, value.element_instance_key.raw());
    if is_busy {
        state.tables.busy_subscriptions.insert_new(entry, ());
    } else {
        state.tables.busy_subscriptions.delete(&entry);
    }
}

/// The subscription takes the next message.
fn wait(state: &mut State, value: &MessageSubscriptionValue) {
    let process = process_at(value);
    count_up(&mut state.tables.waiting_processes, process.clone());
    state.tables.waiting_subscriptions.insert(process, value.element_instance_key.raw(), ());
}

fn wait_no_more(state: &mut State, value: &MessageSubscriptionValue) {
    let process = process_at(value);
    state.tables.waiting_subscriptions.remove(&process, &value.element_instance_key.raw());
    if !take_one(&mut state.tables.waiting_processes, &process) {
        broken(state, format!("nobody waits for message '{}'", value.message_name));
    }
}

fn process_at(value: &MessageSubscriptionValue) -> (MessageAddress, Arc<str>) {
    let address = message_address(&value.tenant_id, &value.message_name, &value.correlation_key);
    (address, value.bpmn_process_id.shared().clone())
}

fn remove(state: &mut State, entry: &(i64, Arc<str>)) {
    let Some(row) = state.tables.message_subscriptions.get(entry) else { return not_subscribed(state, entry) };
    if row.is_correlating {
        set_busy(state, &row.value, false);
    } else {
        wait_no_more(state, &row.value);
    }
    state.tables.message_subscriptions.delete(entry);
    count_down(state, "message subscriptions", 1, |counters| &mut counters.message_subscriptions);
}

/// The message may go to another instance of the process. The subscription that it went to may be gone, or may wait for
/// another one already.
fn rejected(state: &mut State, entry: &(i64, Arc<str>), value: &MessageSubscriptionValue) {
    let row = state.tables.message_subscriptions.get(entry);
    if row.is_some_and(|row| row.is_correlating && row.value.message_key == value.message_key) {
        remove(state, entry);
    }
    buffer::released(state, value.message_key, &value.bpmn_process_id);
    change_under_way(state, value.message_key, |count| count.checked_sub(1));
}

fn migrated(state: &mut State, entry: &(i64, Arc<str>), value: &MessageSubscriptionValue) {
    let Some(row) = state.tables.message_subscriptions.get(entry) else { return not_subscribed(state, entry) };
    if row.is_correlating {
        set_busy(state, &row.value, false);
        set_busy(state, value, true);
    } else {
        wait_no_more(state, &row.value);
        wait(state, value);
    }
    change(state, entry, |row| row.value = value.clone());
}

pub(super) fn apply_process_subscription(
    state: &mut State,
    key: Key,
    intent: ProcessMessageSubscriptionIntent,
    value: &ProcessMessageSubscriptionValue,
) {
    let element_instance = value.element_instance_key.raw();
    let entry = (element_instance, value.message_name.shared().clone());
    let changed = state.counters.timestamp;
    let row = |state| ProcessMessageSubscriptionRow { key, value: value.clone(), state, changed };
    let subscriptions = &mut state.tables.process_message_subscriptions;
    match intent {
        ProcessMessageSubscriptionIntent::Creating => {
            // One with the same name may still be closing.
            subscriptions.put(entry, row(SubscriptionState::Opening));
            change_element(state, element_instance, |instance| instance.has_subscriptions = true);
        }
        ProcessMessageSubscriptionIntent::Created => subscriptions.put(entry, row(SubscriptionState::Open)),
        ProcessMessageSubscriptionIntent::Correlated if value.interrupting => subscriptions.delete(&entry),
        ProcessMessageSubscriptionIntent::Correlated => subscriptions.put(entry, row(SubscriptionState::Open)),
        ProcessMessageSubscriptionIntent::Deleting => subscriptions.put(entry, row(SubscriptionState::Closing)),
        ProcessMessageSubscriptionIntent::Deleted => subscriptions.delete(&entry),
        ProcessMessageSubscriptionIntent::Migrated => {
            if !subscriptions.update(&entry, |row| row.value = value.clone()) {
                not_subscribed(state, &entry);
            }
        }
        ProcessMessageSubscriptionIntent::Create
        | ProcessMessageSubscriptionIntent::Correlate
        | ProcessMessageSubscriptionIntent::Delete => not_an_event(state, intent.name()),
    }
}

pub(super) fn apply_start_event(
    state: &mut State,
    key: Key,
    intent: MessageStartEventSubscriptionIntent,
    value: &MessageStartEventSubscriptionValue,
) {
    let definition = value.process_definition_key.raw();
    let entry = (definition, value.message_name.shared().clone());
    let by_name = (value.tenant_id.shared().clone(), value.message_name.shared().clone(), definition);
    match intent {
        MessageStartEventSubscriptionIntent::Created => {
            let row = MessageStartEventSubscriptionRow { key, value: value.clone(), created: state.counters.timestamp };
            state.tables.message_start_subscriptions.put(entry, row);
            state.tables.message_started_processes.put(by_name, ());
        }
        MessageStartEventSubscriptionIntent::Deleted => {
            state.tables.message_start_subscriptions.delete(&entry);
            state.tables.message_started_processes.delete(&by_name);
        }
        MessageStartEventSubscriptionIntent::Correlated => {
            buffer::correlated(state, value.message_key, &value.bpmn_process_id);
            if !value.correlation_key.is_empty() {
                lock(state, value);
            }
        }
    }
}

/// Until the instance ends, no other message with this correlation key starts one of the process.
fn lock(state: &mut State, value: &MessageStartEventSubscriptionValue) {
    let correlation_key = value.correlation_key.shared().clone();
    let lock = (value.tenant_id.shared().clone(), value.bpmn_process_id.shared().clone(), correlation_key.clone());
    let instance = value.process_instance_key.raw();
    match state.tables.message_locks.get(&lock) {
        // It passes from an instance that is banned, and so never ends.
        Some(before) => {
            state.tables.message_lock_keys.delete(&before);
            state.tables.message_locks.put(lock, instance);
        }
        None => {
            state.tables.message_locks.insert_new(lock, instance);
            state.counters.message_locks += 1;
        }
    }
    state.tables.message_lock_keys.insert_new(instance, correlation_key);
}

/// A process instance ended.
pub(super) fn release_lock(state: &mut State, key: Key, value: &ProcessInstanceValue) {
    if state.counters.message_locks == 0 {
        return;
    }
    // It may have been started without a message, or by one without a correlation key.
    let Some(correlation_key) = state.tables.message_lock_keys.get(&key.raw()) else { return };
    let lock = (value.tenant_id.shared().clone(), value.bpmn_process_id.shared().clone(), (*correlation_key).clone());
    state.tables.message_lock_keys.delete(&key.raw());
    state.tables.message_locks.delete(&lock);
    count_down(state, "message locks", 1, |counters| &mut counters.message_locks);
}
