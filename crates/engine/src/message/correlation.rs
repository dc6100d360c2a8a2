//! MESSAGE_CORRELATION CORRELATE: a message that is not kept, whose sender waits until it is known which instance takes it.

use protocol::{
    Key, MessageCorrelationIntent, MessageCorrelationValue, MessageIntent, MessageSubscriptionValue, MessageValue,
    Payload, Rejection, Text,
};

use super::message_subscription::send_correlate;
use super::publish;
use crate::execution::{Execution, Outcome};
use crate::state::message_address;

/// A message that is not kept has expired before it comes.
const NOT_KEPT: i64 = -1;

pub(crate) fn correlate(execution: &mut Execution<'_>, value: &MessageCorrelationValue) -> Outcome {
    let message = MessageValue {
        name: value.name.clone(),
        correlation_key: value.correlation_key.clone(),
        time_to_live: NOT_KEPT,
        deadline: execution.timestamp.saturating_add(NOT_KEPT),
        variables: value.variables.clone(),
        tenant_id: value.tenant_id.clone(),
        ..MessageValue::default()
    };
    let address = message_address(&message.tenant_id, &message.name, &message.correlation_key);
    publish::check(execution, "correlate", &message, &address)?;
    let key = execution.state.next_key();
    let value = MessageCorrelationValue { message_key: key, awaiting: execution.request, ..value.clone() };
    emit(execution, MessageCorrelationIntent::Correlating, value.clone());
    execution.emit(key, Payload::Message(MessageIntent::Published, Box::new(message.clone())));
    let (correlating, started) = publish::correlate_at_once(execution, key, &message, &address);
    if started.is_some() || correlating.is_empty() {
        end(execution, value, started);
    }
    for subscription in &correlating {
        send_correlate(execution, subscription);
    }
    // Later subscriptions must not find it.
    let message = MessageValue { variables: Text::default(), ..message };
    execution.emit(key, Payload::Message(MessageIntent::Expired, Box::new(message)));
    Ok(())
}

/// An element instance took a message. The first one is what its sender waits for; returns whether it did.
pub(super) fn correlated(execution: &mut Execution<'_>, subscription: &MessageSubscriptionValue) -> bool {
    let Some((value, _)) = awaited(execution, subscription.message_key) else { return false };
    end(execution, value, Some(subscription.process_instance_key));
    true
}

/// An element instance did not take a message. The last one to which it was on its way decides.
pub(super) fn rejected(execution: &mut Execution<'_>, subscription: &MessageSubscriptionValue) {
    if let Some((value, 0)) = awaited(execution, subscription.message_key) {
        end(execution, value, None);
    }
}

/// What the sender of a message asked for, if it waits, and to how many element instances the message is on its way.
fn awaited(execution: &Execution<'_>, message: Key) -> Option<(MessageCorrelationValue, u32)> {
    if execution.state.counters.awaited_correlations == 0 {
        return None;
    }
    let row = execution.state.tables.awaited_correlations.get(&message.raw())?;
    Some((row.value.clone(), row.under_way))
}

/// Tells the sender which instance took the message, or that none did.
fn end(execution: &mut Execution<'_>, value: MessageCorrelationValue, taken_by: Option<Key>) {
    let request = value.awaiting;
    let key = value.message_key;
    let value = MessageCorrelationValue { awaiting: None, ..value };
    let Some(process_instance_key) = taken_by else {
        let reason = format!(
            "Expected to find subscription for message with name '{}' and correlation key '{}', but none was found.",
            value.name, value.correlation_key
        );
        emit(execution, MessageCorrelationIntent::NotCorrelated, value.clone());
        if let Some(request) = request {
            let command = Payload::MessageCorrelation(MessageCorrelationIntent::Correlate, Box::new(value));
            execution.refuse_request(request, key, command, Rejection::not_found(reason));
        }
        return;
    };
    let value = MessageCorrelationValue { process_instance_key, ..value };
    emit(execution, MessageCorrelationIntent::Correlated, value.clone());
    if let Some(request) = request {
        let correlated = Payload::MessageCorrelation(MessageCorrelationIntent::Correlated, Box::new(value));
        execution.reply_to(request, key, correlated);
    }
}

fn emit(execution: &mut Execution<'_>, intent: MessageCorrelationIntent, value: MessageCorrelationValue) {
    execution.emit(value.message_key, Payload::MessageCorrelation(intent, Box::new(value)));
}
