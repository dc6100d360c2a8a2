//! What element instances do to wait for conditions.

use bpmn::model::{ConditionDefinition, ElementIndex};
use protocol::{
    ConditionalPlace, ConditionalSubscriptionIntent, ConditionalSubscriptionValue, ErrorType, Key, Payload,
    ProcessInstanceValue, Text,
};

use super::change;
use crate::execution::Execution;
use crate::execution::problem::Problem;
use crate::execution::token::Token;
use crate::state::State;

/// Checks that the process instance may wait for so many more conditions.
pub(crate) fn check_room(execution: &Execution<'_>, token: &Token, more: usize) -> Result<(), Problem> {
    let waiting = count_of(&execution.state, token.value().process_instance_key);
    let waiting_max = execution.limits.conditional_subscriptions_max;
    if (waiting as usize).saturating_add(more) <= waiting_max {
        return Ok(());
    }
    let message = format!(
        "Expected process instance '{}' to wait for at most {waiting_max} conditions at once, but '{}' would make them more. Let \
         fewer of its elements wait for conditions at the same time.",
        token.value().process_instance_key,
        token.element().id
    );
    Err(Problem::new(ErrorType::ExtractValueError, message))
}

/// How many conditions an instance waits for.
pub(crate) fn count_of(state: &State, process_instance: Key) -> u32 {
    state.tables.conditional_counts.get(&process_instance.raw()).map_or(0, |count| *count)
}

/// Opens a subscription of an element instance, and looks whether its condition holds already.
pub(crate) fn open(
    execution: &mut Execution<'_>,
    token: &Token,
    event: ElementIndex,
    definition: &ConditionDefinition,
) {
    let of = token.value();
    let value = ConditionalSubscriptionValue {
        scope_key: token.key,
        element_instance_key: token.key,
        process_instance_key: of.process_instance_key,
        interrupting: token.process.is_interrupting(event),
        catch_event_id: (&token.process.element(event).id).into(),
        ..value_of(of, definition)
    };
    let key = execution.state.next_key();
    emit(execution, key, ConditionalSubscriptionIntent::Created, value);
    let place = ConditionalPlace { scope_key: token.key, subscription_key: key };
    change::look_at(execution, of.process_instance_key, place);
}

/// What a definition says of its condition.
pub(super) fn value_of(of: &ProcessInstanceValue, definition: &ConditionDefinition) -> ConditionalSubscriptionValue {
    ConditionalSubscriptionValue {
        process_definition_key: of.process_definition_key,
        bpmn_process_id: of.bpmn_process_id.clone(),
        tenant_id: of.tenant_id.clone(),
        interrupting: true,
        condition: (&definition.text).into(),
        variable_names: definition.condition.variables().iter().map(Text::from).collect(),
        variable_events: definition.variable_events.iter().map(|event| event.name().into()).collect(),
        ..ConditionalSubscriptionValue::default()
    }
}

/// Closes the subscriptions of an element instance, or of the start events of a definition, whose event `is_closed` names.
pub(crate) fn close(execution: &mut Execution<'_>, owner: Key, is_closed: impl Fn(&str) -> bool) {
    for (key, value) in of(&execution.state, owner) {
        if is_closed(&value.catch_event_id) {
            emit(execution, key, ConditionalSubscriptionIntent::Deleted, value);
        }
    }
}

/// The subscriptions of an element instance or of the start events of a definition, oldest first.
pub(crate) fn of(state: &State, owner: Key) -> Vec<(Key, ConditionalSubscriptionValue)> {
    let rows = state.tables.conditional_subscriptions.prefix(&owner.raw());
    rows.map(|((_, key), row)| (Key::from_raw(key), row.value.clone())).collect()
}

pub(super) fn emit(
    execution: &mut Execution<'_>,
    key: Key,
    intent: ConditionalSubscriptionIntent,
    value: ConditionalSubscriptionValue,
) {
    execution.emit(key, Payload::ConditionalSubscription(intent, Box::new(value)));
}
