//! PROCESS_MESSAGE_SUBSCRIPTION commands: sent to the partition of the instance by the partition of the message.

use std::sync::Arc;

use protocol::{
    Command, MessageSubscriptionIntent, MessageSubscriptionValue, Payload, ProcessMessageSubscriptionIntent,
    ProcessMessageSubscriptionValue, Rejection,
};

use super::send_to_message;
use crate::event;
use crate::execution::token::Token;
use crate::execution::{Execution, Outcome};
use crate::state::{ProcessMessageSubscriptionRow, SubscriptionState};

/// The subscription is open where the message arrives.
pub(crate) fn create(execution: &mut Execution<'_>, value: &ProcessMessageSubscriptionValue) -> Outcome {
    let expected = "create process message subscription";
    let row = find(execution, value).ok_or_else(|| not_found(expected, value))?;
    match row.state {
        SubscriptionState::Opening => {}
        SubscriptionState::Open => return Err(unexpected(expected, value, "it is already opened").into()),
        SubscriptionState::Closing => return Err(unexpected(expected, value, "it is already closing").into()),
    }
    emit(execution, &row, ProcessMessageSubscriptionIntent::Created);
    Ok(())
}

/// A message for the element instance. It is acknowledged, or rejected back, and then goes to another one.
pub(crate) fn correlate(
    execution: &mut Execution<'_>,
    command: &Command,
    value: &ProcessMessageSubscriptionValue,
) -> Outcome {
    let found = match find(execution, value) {
        None => Err(not_found(CORRELATE, value)),
        Some(row) if row.state == SubscriptionState::Closing => {
            Err(unexpected(CORRELATE, value, "it is already closing"))
        }
        Some(row) if row.value.correlation_key != value.correlation_key => {
            Err(unexpected(CORRELATE, value, "it waits for another correlation key"))
        }
        Some(row) => execution.check_not_banned(value.process_instance_key).map(|()| row),
    };
    let refusal = match found {
        Ok(row) if trigger(execution, &row, value)? => return Ok(()),
        Ok(_) => unexpected(CORRELATE, value, "the subscription is not active anymore"),
        Err(refusal) => refusal,
    };
    execution.emit_rejection(command.key, command.payload.clone(), refusal);
    let rejected = MessageSubscriptionValue { correlation_key: value.correlation_key.clone(), ..answer(value) };
    send_to_message(execution, &value.correlation_key, MessageSubscriptionIntent::Reject, rejected);
    Ok(())
}

const CORRELATE: &str = "correlate process message subscription";

/// Returns whether the element instance can take the message.
fn trigger(
    execution: &mut Execution<'_>,
    row: &ProcessMessageSubscriptionRow,
    value: &ProcessMessageSubscriptionValue,
) -> Outcome<bool> {
    let Some(scope) = Token::find(execution, value.element_instance_key)? else { return Ok(false) };
    let Some(event) = scope.process.find_event(&row.value.element_id) else { return Ok(false) };
    let is_boundary_event = scope.element().boundary_events.contains(&event);
    if !event::can_trigger(&execution.state, &scope.instance, is_boundary_event) {
        return Ok(false);
    }
    // The message may have been on its way while the instance migrated: it names the process of before, and so its definition.
    let is_of_present = row.value.bpmn_process_id == value.bpmn_process_id;
    let correlated = ProcessMessageSubscriptionValue {
        element_id: row.value.element_id.clone(),
        interrupting: row.value.interrupting,
        process_definition_key: match is_of_present {
            true => row.value.process_definition_key,
            false => value.process_definition_key,
        },
        business_id: row.value.business_id.clone(),
        ..value.clone()
    };
    let intent = ProcessMessageSubscriptionIntent::Correlated;
    execution.emit(row.key, Payload::ProcessMessageSubscription(intent, Box::new(correlated)));
    event::trigger(execution, &scope, event, value.variables.clone());
    send_to_message(execution, &value.correlation_key, MessageSubscriptionIntent::Correlate, answer(value));
    Ok(true)
}

/// The subscription is closed where messages arrive.
pub(crate) fn delete(execution: &mut Execution<'_>, value: &ProcessMessageSubscriptionValue) -> Outcome {
    let expected = "delete process message subscription";
    let row = find(execution, value).ok_or_else(|| not_found(expected, value))?;
    if row.state != SubscriptionState::Closing {
        return Err(unexpected(expected, value, "it was opened anew").into());
    }
    emit(execution, &row, ProcessMessageSubscriptionIntent::Deleted);
    Ok(())
}

fn emit(execution: &mut Execution<'_>, row: &ProcessMessageSubscriptionRow, intent: ProcessMessageSubscriptionIntent) {
    execution.emit(row.key, Payload::ProcessMessageSubscription(intent, Box::new(row.value.clone())));
}

fn find(
    execution: &Execution<'_>,
    value: &ProcessMessageSubscriptionValue,
) -> Option<Arc<ProcessMessageSubscriptionRow>> {
    let entry = (value.element_instance_key.raw(), value.message_name.shared().clone());
    execution.state.tables.process_message_subscriptions.get(&entry)
}

fn answer(value: &ProcessMessageSubscriptionValue) -> MessageSubscriptionValue {
    MessageSubscriptionValue {
        process_instance_key: value.process_instance_key,
        element_instance_key: value.element_instance_key,
        bpmn_process_id: value.bpmn_process_id.clone(),
        message_name: value.message_name.clone(),
        message_key: value.message_key,
        tenant_id: value.tenant_id.clone(),
        process_definition_key: value.process_definition_key,
        business_id: value.business_id.clone(),
        ..MessageSubscriptionValue::default()
    }
}

fn not_found(expected: &str, value: &ProcessMessageSubscriptionValue) -> Rejection {
    Rejection::not_found(text(expected, value, "no such subscription was found"))
}

fn unexpected(expected: &str, value: &ProcessMessageSubscriptionValue, but: &str) -> Rejection {
    Rejection::invalid_state(text(expected, value, but))
}

fn text(expected: &str, value: &ProcessMessageSubscriptionValue, but: &str) -> String {
    format!(
        "Expected to {expected} with element key '{}' and message name '{}', but {but}",
        value.element_instance_key, value.message_name
    )
}
