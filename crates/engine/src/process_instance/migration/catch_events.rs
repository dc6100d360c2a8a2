//! What an element instance waits for: mapped events keep waiting, events that are not mapped are closed, and new ones
//! of the target are opened.

use std::sync::Arc;

use bpmn::model::{ElementIndex, Trigger};
use protocol::{
    ConditionalSubscriptionIntent, ConditionalSubscriptionValue, Key, MessageSubscriptionIntent,
    MessageSubscriptionValue, Payload, ProcessMessageSubscriptionIntent, ProcessMessageSubscriptionValue, Rejection,
    SignalSubscriptionIntent, SignalSubscriptionValue, TimerIntent, TimerValue,
};

use super::Migration;
use crate::conditional;
use crate::event;
use crate::execution::token::Token;
use crate::execution::{Execution, Outcome};
use crate::message;
use crate::signal;
use crate::state::{ProcessMessageSubscriptionRow, SubscriptionState};
use crate::timer;
use crate::variable::expression;

pub(super) fn migrate(execution: &mut Execution<'_>, migration: &Migration, key: Key) -> Outcome {
    let Some(token) = Token::find(execution, key)? else { return Ok(()) };
    let is_unmapped = |event_id: &str| migration.mapped(event_id).is_none();
    if token.instance.has_subscriptions {
        message::subscription::close(execution, key, is_unmapped);
        timer::subscription::cancel(execution, key, is_unmapped);
        signal::subscription::close(execution, key, is_unmapped);
        conditional::subscription::close(execution, key, is_unmapped);
    }
    // The ones that continue are collected before others open, because their events may have the same ids.
    let messages = mapped_messages(execution, key);
    let timers = mapped_timers(execution, key);
    let signals = signal::subscription::of(&execution.state, key);
    let conditions = conditional::subscription::of(&execution.state, key);
    subscribe(execution, migration, &token)?;
    for row in messages {
        migrate_message(execution, migration, &token, &row);
    }
    for (key, value) in timers {
        migrate_timer(execution, migration, key, &value);
    }
    for (key, value) in signals {
        migrate_signal(execution, migration, key, &value);
    }
    for (key, value) in conditions {
        migrate_condition(execution, migration, key, &value);
    }
    Ok(())
}

fn mapped_messages(execution: &Execution<'_>, owner: Key) -> Vec<Arc<ProcessMessageSubscriptionRow>> {
    let rows = execution.state.tables.process_message_subscriptions.prefix(&owner.raw()).map(|(_, row)| row);
    rows.filter(|row| row.state != SubscriptionState::Closing).collect()
}

fn mapped_timers(execution: &Execution<'_>, owner: Key) -> Vec<(Key, TimerValue)> {
    let tables = &execution.state.tables;
    let timers = tables.timers_by_owner.prefix(&owner.raw());
    timers.filter_map(|((_, key), _)| Some((Key::from_raw(key), tables.timers.get(&key)?.value.clone()))).collect()
}

/// Opens what waits in the target and is no mapped event, unless the element instance was interrupted.
fn subscribe(execution: &mut Execution<'_>, migration: &Migration, token: &Token) -> Outcome {
    if token.instance.interrupted_by.is_some() {
        return Ok(());
    }
    let process = &token.process;
    let is_new = |event: ElementIndex| !migration.is_target(&process.element(event).id);
    for event in event::events::events_of(process, token.element).into_iter().filter(|event| is_new(*event)) {
        check_message_name(execution, migration, token, event)?;
    }
    event::subscribe_only(execution, token, is_new)
        .map_err(|problem| cannot_wait(migration, token, &problem.message).into())
}

fn cannot_wait(migration: &Migration, token: &Token, problem: &str) -> Rejection {
    migration.invalid_state(&format!(
        "active element is mapped to element with id '{}' that must be subscribed to a catch event. {problem}",
        token.element().id
    ))
}

/// An element instance waits once for a message of a name.
fn check_message_name(
    execution: &Execution<'_>,
    migration: &Migration,
    token: &Token,
    event: ElementIndex,
) -> Result<(), Rejection> {
    let event = token.process.element(event);
    let Some(Trigger::Message(definition)) = event.catch_event().map(|event| &event.trigger) else { return Ok(()) };
    let name = expression::text(execution, token.key, &definition.name)
        .map_err(|problem| cannot_wait(migration, token, &problem.message))?;
    if !execution.state.tables.process_message_subscriptions.contains(&(token.key.raw(), name.clone())) {
        return Ok(());
    }
    Err(migration.invalid_state(&format!(
        "active element with id '{}' is already subscribed to the same message name '{name}'. Currently, migrating message \
         subscriptions to the same message name isn't supported without a mapping. Provide a mapping instruction from the \
         message catch event that waits for it to the target message catch event with id '{}'.",
        token.element().id,
        event.id
    )))
}

/// The due date stays the same.
fn migrate_timer(execution: &mut Execution<'_>, migration: &Migration, key: Key, value: &TimerValue) {
    let Some(event) = migration.mapped(&value.target_element_id) else { return };
    let migrated = TimerValue {
        process_definition_key: migration.target_metadata.process_definition_key,
        target_element_id: event.clone(),
        ..value.clone()
    };
    execution.emit(key, Payload::Timer(TimerIntent::Migrated, Box::new(migrated)));
}

/// The name stays the same.
fn migrate_signal(execution: &mut Execution<'_>, migration: &Migration, key: Key, value: &SignalSubscriptionValue) {
    let Some(event) = migration.mapped(&value.catch_event_id) else { return };
    let migrated = SignalSubscriptionValue {
        process_definition_key: migration.target_metadata.process_definition_key,
        bpmn_process_id: migration.target_metadata.bpmn_process_id.clone(),
        catch_event_id: event.clone(),
        ..value.clone()
    };
    execution.emit(key, Payload::SignalSubscription(SignalSubscriptionIntent::Migrated, Box::new(migrated)));
}

/// It waits for the condition of the source.
fn migrate_condition(
    execution: &mut Execution<'_>,
    migration: &Migration,
    key: Key,
    value: &ConditionalSubscriptionValue,
) {
    let Some(event) = migration.mapped(&value.catch_event_id) else { return };
    let migrated = ConditionalSubscriptionValue {
        process_definition_key: migration.target_metadata.process_definition_key,
        bpmn_process_id: migration.target_metadata.bpmn_process_id.clone(),
        catch_event_id: event.clone(),
        ..value.clone()
    };
    let intent = ConditionalSubscriptionIntent::Migrated;
    execution.emit(key, Payload::ConditionalSubscription(intent, Box::new(migrated)));
}

fn migrate_message(
    execution: &mut Execution<'_>,
    migration: &Migration,
    token: &Token,
    row: &ProcessMessageSubscriptionRow,
) {
    let Some(event_id) = migration.mapped(&row.value.element_id) else { return };
    let Some(event) = migration.target.find_event(event_id) else { return };
    let bpmn_process_id = &migration.target_metadata.bpmn_process_id;
    let process_definition_key = migration.target_metadata.process_definition_key;
    let business_id = row.value.business_id.clone();
    let migrated = ProcessMessageSubscriptionValue {
        bpmn_process_id: bpmn_process_id.clone(),
        process_definition_key,
        element_id: event_id.clone(),
        interrupting: migration.target.is_interrupting(event),
        ..row.value.clone()
    };
    let elsewhere = MessageSubscriptionValue {
        process_instance_key: token.value().process_instance_key,
        element_instance_key: token.key,
        bpmn_process_id: bpmn_process_id.clone(),
        message_name: migrated.message_name.clone(),
        correlation_key: migrated.correlation_key.clone(),
        interrupting: migrated.interrupting,
        tenant_id: migrated.tenant_id.clone(),
        process_definition_key,
        business_id,
        ..MessageSubscriptionValue::default()
    };
    let correlation_key = migrated.correlation_key.clone();
    let intent = ProcessMessageSubscriptionIntent::Migrated;
    execution.emit(row.key, Payload::ProcessMessageSubscription(intent, Box::new(migrated)));
    message::send_to_message(execution, &correlation_key, MessageSubscriptionIntent::Migrate, elsewhere);
}
