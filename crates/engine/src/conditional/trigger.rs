//! CONDITIONAL_SUBSCRIPTION TRIGGER: a condition holds.

use protocol::{ConditionalSubscriptionIntent, ConditionalSubscriptionValue, Key, Rejection, Text};

use super::subscription;
use crate::event;
use crate::execution::token::Token;
use crate::execution::{Execution, Outcome};

pub(crate) fn trigger(execution: &mut Execution<'_>, key: Key, value: &ConditionalSubscriptionValue) -> Outcome {
    let row = execution.state.tables.conditional_subscriptions.get(&(value.scope_key.raw(), key.raw()));
    let Some(row) = row else {
        return Err(Rejection::not_found(format!(
            "Expected to trigger condition subscription with key '{key}', but no such subscription was found for process instance \
             with key '{}' and catch event id '{}'.",
            value.process_instance_key, value.catch_event_id
        ))
        .into());
    };
    let value = row.value.clone();
    drop(row);
    execution.check_not_banned(value.process_instance_key)?;
    let scope = Token::find(execution, value.element_instance_key)?;
    let event = scope.as_ref().and_then(|scope| scope.process.find_event(&value.catch_event_id));
    let (Some(scope), Some(event)) = (scope, event) else { return Err(not_active(key, &value).into()) };
    let is_boundary_event = scope.element().boundary_events.contains(&event);
    if !event::can_trigger(&execution.state, &scope.instance, is_boundary_event) {
        return Err(not_active(key, &value).into());
    }
    subscription::emit(execution, key, ConditionalSubscriptionIntent::Triggered, value);
    event::trigger(execution, &scope, event, Text::default());
    Ok(())
}

fn not_active(key: Key, value: &ConditionalSubscriptionValue) -> Rejection {
    Rejection::invalid_state(format!(
        "Expected to trigger condition subscription with key '{key}', but the element with key '{}' is not active anymore for \
         process instance with key '{}' and catch event id '{}'.",
        value.element_instance_key, value.process_instance_key, value.catch_event_id
    ))
}
