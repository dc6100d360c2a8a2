//! MESSAGE_SUBSCRIPTION commands: sent to the partition of the message by the partition of the instance.

use std::sync::Arc;

use protocol::{
    Command, Key, MessageSubscriptionIntent, MessageSubscriptionValue, Payload, ProcessMessageSubscriptionIntent,
    ProcessMessageSubscriptionValue, Rejection, Text,
};

use super::{buffer, correlation, send_to_instance};
use crate::execution::{Execution, Outcome};
use crate::state::{MessageSubscriptionRow, SubscriptionState, message_address};

/// An element instance starts to wait. The oldest matching buffered message goes to it at once.
pub(crate) fn create(execution: &mut Execution<'_>, command: &Command, value: &MessageSubscriptionValue) -> Outcome {
    if command.source.is_none() {
        check_is_opening(execution, value)?;
    }
    if find(execution, value).is_some() {
        acknowledge(execution, value, ProcessMessageSubscriptionIntent::Create);
        let reason = format!(
            "Expected to open a new message subscription for element with key '{}' and message name '{}', but there is \
             already one",
            value.element_instance_key, value.message_name
        );
        execution.emit_rejection(command.key, command.payload.clone(), Rejection::invalid_state(reason));
        return Ok(());
    }
    let key = execution.state.next_key();
    let created = Payload::MessageSubscription(MessageSubscriptionIntent::Created, Box::new(value.clone()));
    execution.emit(key, created);
    if !correlate_next_message(execution, key, value) {
        acknowledge(execution, value, ProcessMessageSubscriptionIntent::Create);
    }
    Ok(())
}

/// A command of this partition to itself may have waited in the work queue, and its closing overtaken it.
fn check_is_opening(execution: &Execution<'_>, value: &MessageSubscriptionValue) -> Result<(), Rejection> {
    let entry = (value.element_instance_key.raw(), value.message_name.shared().clone());
    let row = execution.state.tables.process_message_subscriptions.get(&entry);
    if row.is_some_and(|row| row.state == SubscriptionState::Opening) {
        return Ok(());
    }
    Err(Rejection::invalid_state(format!(
        "Expected to open a new message subscription for element with key '{}' and message name '{}', but the element does \
         not wait any more",
        value.element_instance_key, value.message_name
    )))
}

/// The message arrived at the element instance.
pub(crate) fn correlate(execution: &mut Execution<'_>, command: &Command, value: &MessageSubscriptionValue) -> Outcome {
    let Some(row) = find(execution, value) else {
        let rejection = Rejection::not_found(format!(
            "Expected to correlate subscription for element with key '{}' and message name '{}', but no such message \
             subscription exists",
            value.element_instance_key, value.message_name
        ));
        // The element instance took the message, although it waits no more.
        if !correlation::correlated(execution, value) {
            return Err(rejection.into());
        }
        execution.emit_rejection(command.key, command.payload.clone(), rejection);
        return Ok(());
    };
    let is_expected = row.is_correlating && row.value.message_key == value.message_key;
    if is_expected {
        emit(execution, &row, MessageSubscriptionIntent::Correlated);
        correlation::correlated(execution, value);
        if !row.value.interrupting {
            correlate_next_message(execution, row.key, &row.value);
        }
        return Ok(());
    }
    if !row.value.interrupting {
        // A message that is not kept, and went to it while another one was on its way.
        let message_key = value.message_key;
        let taken = MessageSubscriptionValue { message_key, variables: Text::default(), ..row.value.clone() };
        execution.emit(row.key, Payload::MessageSubscription(MessageSubscriptionIntent::Correlated, Box::new(taken)));
        correlation::correlated(execution, value);
        return Ok(());
    }
    correlation::correlated(execution, value);
    let reason = format!(
        "Expected to acknowledge correlating message with key '{}' to subscription with key '{}', but that is not the message \
         on its way",
        value.message_key, row.key
    );
    execution.emit_rejection(command.key, command.payload.clone(), Rejection::invalid_state(reason));
    if row.value.interrupting && !row.is_correlating {
        // The element instance opened its subscription again and then took a message of the one before: it waits no more.
        emit(execution, &row, MessageSubscriptionIntent::Deleted);
    }
    Ok(())
}

/// The element instance does not wait any more, so the message goes to another one of the process.
pub(crate) fn reject(execution: &mut Execution<'_>, value: &MessageSubscriptionValue) -> Outcome {
    let key = find(execution, value).map_or(Key::NONE, |row| row.key);
    let rejected = Payload::MessageSubscription(MessageSubscriptionIntent::Rejected, Box::new(value.clone()));
    execution.emit(key, rejected);
    correlation::rejected(execution, value);
    let tables = &execution.state.tables;
    let Some(message) = tables.messages.get(&value.message_key.raw()) else { return Ok(()) };
    let process = (
        message_address(&value.tenant_id, &value.message_name, &value.correlation_key),
        value.bpmn_process_id.shared().clone(),
    );
    let other = tables.waiting_subscriptions.first(&process).and_then(|(element_instance, _)| {
        tables.message_subscriptions.get(&(element_instance, value.message_name.shared().clone()))
    });
    if let Some(other) = other {
        let value = MessageSubscriptionValue {
            message_key: value.message_key,
            variables: message.value.variables.clone(),
            ..other.value.clone()
        };
        begin_correlation(execution, other.key, value);
    }
    Ok(())
}

/// The element instance waits no more.
pub(crate) fn delete(execution: &mut Execution<'_>, command: &Command, value: &MessageSubscriptionValue) -> Outcome {
    match find(execution, value) {
        Some(row) => emit(execution, &row, MessageSubscriptionIntent::Deleted),
        None => {
            let reason = format!(
                "Expected to close message subscription for element with key '{}' and message name '{}', but no such message \
                 subscription exists",
                value.element_instance_key, value.message_name
            );
            execution.emit_rejection(command.key, command.payload.clone(), Rejection::not_found(reason));
        }
    }
    acknowledge(execution, value, ProcessMessageSubscriptionIntent::Delete);
    Ok(())
}

/// The element instance belongs to another process from now on.
pub(crate) fn migrate(execution: &mut Execution<'_>, value: &MessageSubscriptionValue) -> Outcome {
    let Some(row) = find(execution, value) else {
        return Err(Rejection::not_found(format!(
            "Expected to migrate a message subscription for element with key '{}' and message name '{}', but no such message \
             subscription exists",
            value.element_instance_key, value.message_name
        ))
        .into());
    };
    let migrated = MessageSubscriptionValue {
        bpmn_process_id: value.bpmn_process_id.clone(),
        interrupting: value.interrupting,
        process_definition_key: value.process_definition_key,
        ..row.value.clone()
    };
    let payload = Payload::MessageSubscription(MessageSubscriptionIntent::Migrated, Box::new(migrated));
    execution.emit(row.key, payload);
    Ok(())
}

fn emit(execution: &mut Execution<'_>, row: &MessageSubscriptionRow, intent: MessageSubscriptionIntent) {
    execution.emit(row.key, Payload::MessageSubscription(intent, Box::new(row.value.clone())));
}

fn find(execution: &Execution<'_>, value: &MessageSubscriptionValue) -> Option<Arc<MessageSubscriptionRow>> {
    let entry = (value.element_instance_key.raw(), value.message_name.shared().clone());
    execution.state.tables.message_subscriptions.get(&entry)
}

/// Returns whether there was a message.
fn correlate_next_message(execution: &mut Execution<'_>, key: Key, value: &MessageSubscriptionValue) -> bool {
    let address = message_address(&value.tenant_id, &value.message_name, &value.correlation_key);
    let process_id = &value.bpmn_process_id;
    let Some(message_key) = buffer::next_message(&execution.state, address, process_id, execution.timestamp) else {
        return false;
    };
    let Some(message) = execution.state.tables.messages.get(&message_key.raw()) else { return false };
    let variables = message.value.variables.clone();
    begin_correlation(execution, key, MessageSubscriptionValue { message_key, variables, ..value.clone() });
    true
}

fn begin_correlation(execution: &mut Execution<'_>, key: Key, value: MessageSubscriptionValue) {
    let payload = Payload::MessageSubscription(MessageSubscriptionIntent::Correlating, Box::new(value.clone()));
    execution.emit(key, payload);
    send_correlate(execution, &value);
}

/// Sends the message on its way to the element instance.
pub(super) fn send_correlate(execution: &mut Execution<'_>, value: &MessageSubscriptionValue) {
    let value = ProcessMessageSubscriptionValue {
        process_instance_key: value.process_instance_key,
        element_instance_key: value.element_instance_key,
        bpmn_process_id: value.bpmn_process_id.clone(),
        message_key: value.message_key,
        message_name: value.message_name.clone(),
        variables: value.variables.clone(),
        correlation_key: value.correlation_key.clone(),
        tenant_id: value.tenant_id.clone(),
        process_definition_key: value.process_definition_key,
        business_id: value.business_id.clone(),
        ..ProcessMessageSubscriptionValue::default()
    };
    send_to_instance(execution, ProcessMessageSubscriptionIntent::Correlate, value);
}

/// Tells the partition of the instance that its subscription was opened or closed.
fn acknowledge(
    execution: &mut Execution<'_>,
    value: &MessageSubscriptionValue,
    intent: ProcessMessageSubscriptionIntent,
) {
    let value = ProcessMessageSubscriptionValue {
        process_instance_key: value.process_instance_key,
        element_instance_key: value.element_instance_key,
        message_name: value.message_name.clone(),
        interrupting: value.interrupting,
        tenant_id: value.tenant_id.clone(),
        ..ProcessMessageSubscriptionValue::default()
    };
    send_to_instance(execution, intent, value);
}
