//! Opening and closing what waits for events.

use bpmn::model::{ElementIndex, MessageDefinition, TimerDefinition, Trigger};
use protocol::{ErrorType, Key, Payload, TimerIntent, TimerValue, Timestamp};

use super::events_of;
use crate::element::Token;
use crate::execution::Execution;
use crate::incident::Problem;
use crate::message::subscription::{self, Correlation};
use crate::timer;
use crate::variable::expression;

/// A subscription whose expressions are evaluated, so that opening it cannot fail.
enum Opening {
    Timer { event: ElementIndex, due_date: Timestamp, repetitions: i32 },
    Message { event: ElementIndex, correlation: Correlation },
}

/// Opens subscriptions for all events that wait while the element is active: all of them, or none and the problem.
pub(crate) fn subscribe(execution: &mut Execution<'_>, token: &Token) -> Result<(), Problem> {
    subscribe_only(execution, token, |_| true)
}

/// As [`subscribe`], for the events that `wanted` names.
pub(crate) fn subscribe_only(
    execution: &mut Execution<'_>,
    token: &Token,
    wanted: impl Fn(ElementIndex) -> bool,
) -> Result<(), Problem> {
    let events = events_of(&token.process, token.element);
    let mut openings = Vec::with_capacity(events.len());
    for event in events.into_iter().filter(|event| wanted(*event)) {
        let Some(catch_event) = token.process.element(event).catch_event() else { continue };
        match &catch_event.trigger {
            Trigger::Timer(definition) => openings.push(prepare_timer(execution, token, event, definition)?),
            Trigger::Message(definition) => openings.push(prepare_message(execution, token, event, definition)?),
            Trigger::Error { .. } | Trigger::Escalation { .. } => {}
        }
    }
    for opening in &openings {
        if let Opening::Message { event, correlation } = opening {
            subscription::open(execution, token, *event, correlation);
        }
    }
    for opening in &openings {
        if let Opening::Timer { event, due_date, repetitions } = opening {
            let value = TimerValue {
                process_definition_key: token.value().process_definition_key,
                element_instance_key: token.key,
                process_instance_key: token.value().process_instance_key,
                due_date: *due_date,
                target_element_id: (&token.process.element(*event).id).into(),
                repetitions: *repetitions,
                tenant_id: token.value().tenant_id.clone(),
            };
            subscribe_timer(execution, value);
        }
    }
    Ok(())
}

pub(crate) fn subscribe_timer(execution: &mut Execution<'_>, value: TimerValue) {
    let key = execution.state.next_key();
    execution.emit(key, Payload::Timer(TimerIntent::Created, Box::new(value)));
}

fn prepare_timer(
    execution: &Execution<'_>,
    token: &Token,
    event: ElementIndex,
    definition: &TimerDefinition,
) -> Result<Opening, Problem> {
    let timer = timer::evaluate(execution, token.key, definition)?;
    let due_date = timer.first_due(execution.timestamp).ok_or_else(|| {
        Problem::new(
            ErrorType::ExtractValueError,
            format!(
                "Expected the timer of '{}' to be due some time, but it never is, or beyond the year 9999",
                token.process.element(event).id
            ),
        )
    })?;
    Ok(Opening::Timer { event, due_date, repetitions: timer.repetitions() })
}

fn prepare_message(
    execution: &Execution<'_>,
    token: &Token,
    event: ElementIndex,
    definition: &MessageDefinition,
) -> Result<Opening, Problem> {
    let name = expression::text(execution, token.key, &definition.name)?;
    // A boundary event looks at the variables around its activity, as on the reference engine.
    let is_boundary_event = token.element().boundary_events.contains(&event);
    let scope = if is_boundary_event { token.value().flow_scope_key } else { token.key };
    let correlation = subscription::correlation(execution, scope, event, &token.process, &name, definition)?;
    Ok(Opening::Message { event, correlation })
}

/// Closes all subscriptions of an element instance.
pub(crate) fn unsubscribe(execution: &mut Execution<'_>, element_instance: Key) {
    close(execution, element_instance, |_| true);
}

/// Closes the subscriptions of the event sub-processes of a scope, because one of them interrupts it.
pub(crate) fn unsubscribe_event_sub_processes(execution: &mut Execution<'_>, token: &Token) {
    close(execution, token.key, |event_id| {
        let event = token.process.find_event(event_id);
        event.is_some_and(|event| token.process.event_sub_process_of(event).is_some())
    });
}

fn close(execution: &mut Execution<'_>, element_instance: Key, is_closed: impl Fn(&str) -> bool) {
    let instance = execution.state.element_instance(element_instance);
    if instance.is_some_and(|instance| instance.has_subscriptions) {
        cancel_timers(execution, element_instance, &is_closed);
        subscription::close(execution, element_instance, &is_closed);
    }
}

/// Cancels the timers of an element instance, or of the start events of a definition.
pub(crate) fn cancel_timers(execution: &mut Execution<'_>, owner: Key, is_cancelled: impl Fn(&str) -> bool) {
    let keys: Vec<i64> = execution.state.tables.timers_by_owner.prefix(&owner.raw()).map(|((_, key), _)| key).collect();
    for key in keys {
        let Some(row) = execution.state.tables.timers.get(&key) else { continue };
        if is_cancelled(&row.value.target_element_id) {
            let value = Box::new(row.value.clone());
            drop(row);
            execution.emit(Key::from_raw(key), Payload::Timer(TimerIntent::Canceled, value));
        }
    }
}
