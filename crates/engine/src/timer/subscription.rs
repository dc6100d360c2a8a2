//! Opening and cancelling the timers that element instances and start events wait for.

use bpmn::model::{ElementIndex, TimerDefinition};
use protocol::{ErrorType, Key, Payload, TimerIntent, TimerValue, Timestamp};

use crate::execution::Execution;
use crate::execution::problem::Problem;
use crate::execution::token::Token;

/// The first turn of a timer, whose definition is evaluated, so that opening it cannot fail.
pub(crate) struct FirstTurn {
    due_date: Timestamp,
    repetitions: i32,
}

/// Evaluates when the timer of an event is first due.
pub(crate) fn first_turn(
    execution: &Execution<'_>,
    token: &Token,
    event: ElementIndex,
    definition: &TimerDefinition,
) -> Result<FirstTurn, Problem> {
    let timer = super::evaluate(execution, token.key, definition)?;
    let due_date = timer.first_due(execution.timestamp).ok_or_else(|| {
        Problem::new(
            ErrorType::ExtractValueError,
            format!(
                "Expected the timer of '{}' to be due some time, but it never is, or beyond the year 9999",
                token.process.element(event).id
            ),
        )
    })?;
    Ok(FirstTurn { due_date, repetitions: timer.repetitions() })
}

/// Opens the timer of an event that an element instance waits for.
pub(crate) fn open(execution: &mut Execution<'_>, token: &Token, event: ElementIndex, first_turn: &FirstTurn) {
    let value = TimerValue {
        process_definition_key: token.value().process_definition_key,
        element_instance_key: token.key,
        process_instance_key: token.value().process_instance_key,
        due_date: first_turn.due_date,
        target_element_id: (&token.process.element(event).id).into(),
        repetitions: first_turn.repetitions,
        tenant_id: token.value().tenant_id.clone(),
    };
    create(execution, value);
}

/// Opens a timer of an element instance or of a start event.
pub(super) fn create(execution: &mut Execution<'_>, value: TimerValue) {
    let key = execution.state.next_key();
    execution.emit(key, Payload::Timer(TimerIntent::Created, Box::new(value)));
}

/// Cancels the timers of an element instance, or of the start events of a definition, whose event `is_cancelled` names.
pub(crate) fn cancel(execution: &mut Execution<'_>, owner: Key, is_cancelled: impl Fn(&str) -> bool) {
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
