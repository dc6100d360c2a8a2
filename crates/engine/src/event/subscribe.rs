//! Opening and closing what waits for events.

use bpmn::model::{ElementIndex, MessageDefinition, Trigger};
use protocol::{Key, Text};

use crate::conditional::subscription as conditional_subscription;
use crate::event::events::events_of;
use crate::execution::Execution;
use crate::execution::problem::Problem;
use crate::execution::token::Token;
use crate::message::subscription::{self as message_subscription, Correlation};
use crate::signal::subscription as signal_subscription;
use crate::timer::subscription::{self as timer_subscription, FirstTurn};
use crate::variable::expression;

/// A subscription whose expressions are evaluated, so that opening it cannot fail.
enum Opening {
    Timer { event: ElementIndex, first_turn: FirstTurn },
    Message { event: ElementIndex, correlation: Correlation },
    Signal { event: ElementIndex, name: Text },
    Condition { event: ElementIndex },
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
            Trigger::Timer(definition) => {
                let first_turn = timer_subscription::first_turn(execution, token, event, definition)?;
                openings.push(Opening::Timer { event, first_turn });
            }
            Trigger::Message(definition) => openings.push(prepare_message(execution, token, event, definition)?),
            Trigger::Signal(definition) => {
                let name = signal_subscription::name(execution, token, event, &definition.name)?;
                openings.push(Opening::Signal { event, name });
            }
            Trigger::Condition(_) => openings.push(Opening::Condition { event }),
            Trigger::Error { .. } | Trigger::Escalation { .. } => {}
        }
    }
    let conditions = openings.iter().filter(|opening| matches!(opening, Opening::Condition { .. })).count();
    if conditions > 0 {
        conditional_subscription::check_room(execution, token, conditions)?;
    }
    open(execution, token, openings);
    Ok(())
}

/// Opens what is evaluated: messages first, then timers, signals and conditions, as the reference engine does.
fn open(execution: &mut Execution<'_>, token: &Token, openings: Vec<Opening>) {
    for opening in &openings {
        if let Opening::Message { event, correlation } = opening {
            message_subscription::open(execution, token, *event, correlation);
        }
    }
    for opening in &openings {
        if let Opening::Timer { event, first_turn } = opening {
            timer_subscription::open(execution, token, *event, first_turn);
        }
    }
    let mut conditions = Vec::new();
    for opening in openings {
        match opening {
            Opening::Signal { event, name } => signal_subscription::open(execution, token, event, name),
            Opening::Condition { event } => conditions.push(event),
            Opening::Message { .. } | Opening::Timer { .. } => {}
        }
    }
    for event in conditions {
        let Some(catch_event) = token.process.element(event).catch_event() else { continue };
        if let Trigger::Condition(definition) = &catch_event.trigger {
            conditional_subscription::open(execution, token, event, definition);
        }
    }
}

fn prepare_message(
    execution: &Execution<'_>,
    token: &Token,
    event: ElementIndex,
    definition: &MessageDefinition,
) -> Result<Opening, Problem> {
    let name = expression::text(execution, token.key, &definition.name)?;
    // A boundary event sees the variables outside of its activity, as on the reference engine.
    let is_boundary_event = token.element().boundary_events.contains(&event);
    let scope = if is_boundary_event { token.value().flow_scope_key } else { token.key };
    let correlation = message_subscription::correlation(execution, scope, event, &token.process, &name, definition)?;
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
        timer_subscription::cancel(execution, element_instance, &is_closed);
        message_subscription::close(execution, element_instance, &is_closed);
        signal_subscription::close(execution, element_instance, &is_closed);
        conditional_subscription::close(execution, element_instance, &is_closed);
    }
}
