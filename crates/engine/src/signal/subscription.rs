//! What element instances do to wait for signals.

use bpmn::model::{ElementIndex, StaticOrExpression};
use protocol::{ErrorType, Key, Payload, SignalSubscriptionIntent, SignalSubscriptionValue, Text};

use crate::execution::Execution;
use crate::execution::problem::Problem;
use crate::execution::token::Token;
use crate::name::key_bytes;
use crate::state::State;
use crate::variable::expression;

/// Evaluates the name of the signal that an event waits for or throws.
pub(crate) fn name(
    execution: &Execution<'_>,
    token: &Token,
    event: ElementIndex,
    name: &StaticOrExpression,
) -> Result<Text, Problem> {
    let name: Text = expression::text(execution, token.key, name)?.into();
    let bytes_max = execution.limits.name_bytes_max;
    if (1..=bytes_max).contains(&key_bytes(&name)) {
        return Ok(name);
    }
    let message = format!(
        "Expected the signal name of '{}' to have 1 to {bytes_max} bytes, but it has {}",
        token.process.element(event).id,
        key_bytes(&name)
    );
    Err(Problem::new(ErrorType::ExtractValueError, message))
}

/// Opens a subscription of an element instance.
pub(crate) fn open(execution: &mut Execution<'_>, token: &Token, event: ElementIndex, signal_name: Text) {
    let of = token.value();
    let value = SignalSubscriptionValue {
        process_definition_key: of.process_definition_key,
        bpmn_process_id: of.bpmn_process_id.clone(),
        catch_event_id: (&token.process.element(event).id).into(),
        catch_event_instance_key: token.key,
        signal_name,
        tenant_id: of.tenant_id.clone(),
    };
    let key = execution.state.next_key();
    emit(execution, key, SignalSubscriptionIntent::Created, value);
}

/// Closes the subscriptions of an element instance, or of the start events of a definition, whose event `is_closed` names.
pub(crate) fn close(execution: &mut Execution<'_>, owner: Key, is_closed: impl Fn(&str) -> bool) {
    for (key, value) in of(&execution.state, owner) {
        if is_closed(&value.catch_event_id) {
            emit(execution, key, SignalSubscriptionIntent::Deleted, value);
        }
    }
}

/// The subscriptions of an element instance or of the start events of a definition, in the order of the reference engine: by
/// the length of their names, then by the names.
pub(crate) fn of(state: &State, owner: Key) -> Vec<(Key, SignalSubscriptionValue)> {
    let rows = state.tables.signal_subscriptions.prefix(&owner.raw());
    let mut rows: Vec<_> = rows.map(|((_, key), row)| (Key::from_raw(key), row.value.clone())).collect();
    rows.sort_by(|(_, left), (_, right)| {
        let (left, right) = (&left.signal_name, &right.signal_name);
        left.len().cmp(&right.len()).then_with(|| left.cmp(right))
    });
    rows
}

pub(super) fn emit(
    execution: &mut Execution<'_>,
    key: Key,
    intent: SignalSubscriptionIntent,
    value: SignalSubscriptionValue,
) {
    execution.emit(key, Payload::SignalSubscription(intent, Box::new(value)));
}
