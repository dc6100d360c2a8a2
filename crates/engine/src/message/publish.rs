//! MESSAGE PUBLISH.

use std::sync::Arc;

use protocol::{
    Key, MessageIntent, MessageSubscriptionIntent, MessageSubscriptionValue, MessageValue, Payload, Rejection, Text,
};

use super::message_subscription::send_correlate;
use super::{is_here, start_event};
use crate::distribution::full_outbox;
use crate::execution::{Execution, Outcome};
use crate::name::too_long;
use crate::state::{MessageAddress, message_address};
use crate::variable::document;

pub(crate) fn publish(execution: &mut Execution<'_>, value: &MessageValue) -> Outcome {
    let address = message_address(&value.tenant_id, &value.name, &value.correlation_key);
    check(execution, "publish", value, &address)?;
    let key = execution.state.next_key();
    let message = MessageValue { deadline: execution.timestamp.saturating_add(value.time_to_live), ..value.clone() };
    let published = Payload::Message(MessageIntent::Published, Box::new(message.clone()));
    execution.emit(key, published.clone());
    execution.reply(key, published);
    let (correlating, _) = correlate_at_once(execution, key, &message, &address);
    for subscription in &correlating {
        send_correlate(execution, subscription);
    }
    if message.time_to_live <= 0 {
        // Later subscriptions must not find it.
        execution.emit(key, Payload::Message(MessageIntent::Expired, Box::new(message)));
    }
    Ok(())
}

/// The message goes to those that wait for it, to which it is yet to be sent, and starts instances; returns the first of them.
pub(super) fn correlate_at_once(
    execution: &mut Execution<'_>,
    key: Key,
    message: &MessageValue,
    address: &MessageAddress,
) -> (Vec<MessageSubscriptionValue>, Option<Key>) {
    let correlating = correlate_to_waiting(execution, key, message, address);
    let processes: Vec<Text> = correlating.iter().map(|subscription| subscription.bpmn_process_id.clone()).collect();
    let started = start_event::correlate(execution, key, message, processes);
    (correlating, started)
}

/// Whether a message can be published or correlated: `what` is to be done.
pub(super) fn check(
    execution: &Execution<'_>,
    what: &str,
    value: &MessageValue,
    address: &MessageAddress,
) -> Result<(), Rejection> {
    if !is_here(execution, &value.correlation_key) {
        return Err(Rejection::invalid_state(format!(
            "Expected to {what} a message with correlation key '{}' on the partition of this key, but it was sent to \
             partition {}; {what} it again, to a gateway that knows how many partitions there are",
            value.correlation_key, execution.state.partition
        )));
    }
    let bytes_max = execution.limits.name_bytes_max;
    let texts = [("name", &value.name), ("correlation key", &value.correlation_key), ("id", &value.message_id)];
    for (what, text) in texts {
        if let Some(but) = too_long(text, bytes_max) {
            return Err(Rejection::invalid_argument(format!("Expected the {what} of a message to have {but}")));
        }
    }
    document::split(&value.variables, bytes_max)?;
    check_receivers(execution, value, address)?;
    check_busy(execution, what, value, address)?;
    let id = (address.clone(), value.message_id.shared().clone());
    if !value.message_id.is_empty() && execution.state.tables.message_ids.contains(&id) {
        return Err(Rejection::already_exists(format!(
            "Expected to publish a new message with id '{}', but a message with that id was already published",
            value.message_id
        )));
    }
    Ok(())
}

/// If a message could go to more than this many, its receivers are not counted.
const RECEIVERS_UNCOUNTED: usize = 30_000;

/// Each receiver gets a copy of the variables, and all copies are written at once.
fn check_receivers(execution: &Execution<'_>, value: &MessageValue, address: &MessageAddress) -> Result<(), Rejection> {
    let bytes_max = execution.limits.message_correlations_bytes_max;
    let Some(receivers_max) = bytes_max.checked_div(value.variables.len()) else { return Ok(()) };
    if receivers_max > RECEIVERS_UNCOUNTED {
        return Ok(());
    }
    let tables = &execution.state.tables;
    let waiting = tables.waiting_processes.prefix(address).map(|_| ());
    let busy = oldest_busy(execution, address).take_while(|_| !is_kept(value)).map(|_| ());
    let name = (value.tenant_id.shared().clone(), value.name.shared().clone());
    let started = tables.message_started_processes.prefix(&name).map(|_| ());
    if waiting.chain(busy).chain(started).nth(receivers_max).is_none() {
        return Ok(());
    }
    Err(Rejection::invalid_argument(format!(
        "Expected the variables of a message to have at most {bytes_max} bytes in all process instances together to which it \
         is correlated at once, but with {} bytes they have more in the {} that wait for it; publish smaller variables",
        value.variables.len(),
        receivers_max.saturating_add(1)
    )))
}

/// Many messages may be on their way to one that waits, but not without end.
fn check_busy(
    execution: &Execution<'_>,
    what: &str,
    value: &MessageValue,
    address: &MessageAddress,
) -> Result<(), Rejection> {
    if is_kept(value) {
        return Ok(());
    }
    for element_instance in oldest_busy(execution, address) {
        let Some(partition) = Key::from_raw(element_instance).partition() else { continue };
        if let Some(waiting) = full_outbox(execution, partition) {
            return Err(Rejection::invalid_state(format!(
                "Expected to {what} message '{}' to an instance on partition {partition}, but {waiting} commands wait for that \
                 partition; look at its health, and {what} the message again when it is back",
                value.name
            )));
        }
    }
    Ok(())
}

/// Whether a message can wait for those that are not ready to take it.
fn is_kept(message: &MessageValue) -> bool {
    message.time_to_live > 0
}

/// The oldest busy element instance of each process that has none that waits: a message is on its way to it, and then it waits
/// for the next one. A message that is kept comes in its turn, and one that is not would be lost although it is waited for.
fn oldest_busy(execution: &Execution<'_>, address: &MessageAddress) -> impl Iterator<Item = i64> {
    let tables = &execution.state.tables;
    let mut next = (address.clone(), Arc::from(""), i64::MIN);
    let oldest = std::iter::from_fn(move || {
        let ((of, process_id, element_instance), _) = tables.busy_subscriptions.first_from(&next)?;
        next = (of.clone(), process_id.clone(), i64::MAX);
        Some((of, process_id, element_instance))
    });
    oldest
        .take_while(move |(of, ..)| of == address)
        .filter(|(of, process, _)| !tables.waiting_processes.contains(&(of.clone(), process.clone())))
        .map(|(.., element_instance)| element_instance)
}

/// The message goes to one element instance of each process, the oldest that waits.
fn correlate_to_waiting(
    execution: &mut Execution<'_>,
    key: Key,
    message: &MessageValue,
    address: &MessageAddress,
) -> Vec<MessageSubscriptionValue> {
    let tables = &execution.state.tables;
    let processes = tables.waiting_processes.prefix(address).map(|(process, _)| process);
    let oldest = processes.filter_map(|process| tables.waiting_subscriptions.first(&process));
    let mut oldest: Vec<i64> = oldest.map(|(element_instance, _)| element_instance).collect();
    if !is_kept(message) {
        oldest.extend(oldest_busy(execution, address));
    }
    oldest.sort_unstable();
    let mut correlating = Vec::with_capacity(oldest.len());
    for element_instance in oldest {
        let entry = (element_instance, message.name.shared().clone());
        let Some(row) = execution.state.tables.message_subscriptions.get(&entry) else { continue };
        let value =
            MessageSubscriptionValue { message_key: key, variables: message.variables.clone(), ..row.value.clone() };
        let payload = Payload::MessageSubscription(MessageSubscriptionIntent::Correlating, Box::new(value.clone()));
        execution.emit(row.key, payload);
        correlating.push(value);
    }
    correlating
}
