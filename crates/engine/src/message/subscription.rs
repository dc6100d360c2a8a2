//! What element instances do to wait for messages, on the partition where they live.

use std::sync::Arc;

use bpmn::model::{ElementIndex, ExecutableProcess, MessageDefinition};
use protocol::{
    ErrorType, Key, MessageSubscriptionIntent, MessageSubscriptionValue, Payload, ProcessMessageSubscriptionIntent,
    ProcessMessageSubscriptionValue, Text,
};

use super::send_to_message;
use crate::distribution;
use crate::execution::Execution;
use crate::execution::problem::Problem;
use crate::execution::token::Token;
use crate::name::too_long;
use crate::routing;
use crate::state::SubscriptionState;
use crate::variable::expression;

/// What a message must match.
pub(crate) struct Correlation {
    pub message_name: Text,
    pub correlation_key: Text,
}

/// Evaluates what a message must match.
pub(crate) fn correlation(
    execution: &Execution<'_>,
    scope: Key,
    event: ElementIndex,
    process: &ExecutableProcess,
    name: &Arc<str>,
    definition: &MessageDefinition,
) -> Result<Correlation, Problem> {
    let correlation_key = match &definition.correlation_key {
        Some(key) => expression::correlation_key(execution, scope, key)?,
        None => {
            let message = format!(
                "Expected the message '{name}' of '{}' to have a correlation key, but its model has no zeebe:subscription. \
                 Deploy a version with one, and migrate the instance to it.",
                process.element(event).id
            );
            return Err(Problem::new(ErrorType::ExtractValueError, message));
        }
    };
    for (what, text) in [("message name", &**name), ("correlation key", &*correlation_key)] {
        if let Some(but) = too_long(text, execution.limits.name_bytes_max) {
            let message = format!("Expected the {what} of '{}' to have {but}", process.element(event).id);
            return Err(Problem::new(ErrorType::ExtractValueError, message));
        }
    }
    let partition = routing::correlation_partition(execution, &correlation_key);
    distribution::check_outbox(execution, partition)
        .map_err(|message| Problem::new(ErrorType::ExtractValueError, message))?;
    Ok(Correlation { message_name: name.into(), correlation_key })
}

/// Opens a subscription of an element instance. It has at most one for a message name; a second one would never get a
/// message before the first, and so is not opened.
pub(crate) fn open(execution: &mut Execution<'_>, token: &Token, event: ElementIndex, correlation: &Correlation) {
    let Correlation { message_name, correlation_key } = correlation;
    let entry = (token.key.raw(), message_name.shared().clone());
    let before = execution.state.tables.process_message_subscriptions.get(&entry);
    if before.is_some_and(|before| before.state != SubscriptionState::Closing) {
        return;
    }
    let of = token.value();
    let interrupting = token.process.is_interrupting(event);
    let (process_definition_key, business_id) = (of.process_definition_key, of.business_id.clone());
    let value = ProcessMessageSubscriptionValue {
        process_instance_key: of.process_instance_key,
        element_instance_key: token.key,
        bpmn_process_id: of.bpmn_process_id.clone(),
        message_name: message_name.clone(),
        correlation_key: correlation_key.clone(),
        element_id: (&token.process.element(event).id).into(),
        interrupting,
        tenant_id: of.tenant_id.clone(),
        process_definition_key,
        business_id: business_id.clone(),
        ..ProcessMessageSubscriptionValue::default()
    };
    let key = execution.state.next_key();
    let creating = ProcessMessageSubscriptionIntent::Creating;
    execution.emit(key, Payload::ProcessMessageSubscription(creating, Box::new(value)));
    let value = MessageSubscriptionValue {
        process_instance_key: of.process_instance_key,
        element_instance_key: token.key,
        bpmn_process_id: of.bpmn_process_id.clone(),
        message_name: message_name.clone(),
        correlation_key: correlation_key.clone(),
        interrupting,
        tenant_id: of.tenant_id.clone(),
        process_definition_key,
        business_id,
        ..MessageSubscriptionValue::default()
    };
    send_to_message(execution, correlation_key, MessageSubscriptionIntent::Create, value);
}

/// Closes the subscriptions of an element instance whose event `is_closed` names.
pub(crate) fn close(execution: &mut Execution<'_>, element_instance: Key, is_closed: impl Fn(&str) -> bool) {
    let rows = execution.state.tables.process_message_subscriptions.prefix(&element_instance.raw()).map(|(_, row)| row);
    let rows: Vec<_> =
        rows.filter(|row| row.state != SubscriptionState::Closing && is_closed(&row.value.element_id)).collect();
    for row in rows {
        let deleting = ProcessMessageSubscriptionIntent::Deleting;
        execution.emit(row.key, Payload::ProcessMessageSubscription(deleting, Box::new(row.value.clone())));
        let value = MessageSubscriptionValue {
            process_instance_key: row.value.process_instance_key,
            element_instance_key: row.value.element_instance_key,
            message_name: row.value.message_name.clone(),
            tenant_id: row.value.tenant_id.clone(),
            ..MessageSubscriptionValue::default()
        };
        send_to_message(execution, &row.value.correlation_key, MessageSubscriptionIntent::Delete, value);
    }
}
