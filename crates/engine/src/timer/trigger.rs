//! TIMER TRIGGER: a timer is due.

use bpmn::model::{ElementIndex, ExecutableProcess, Trigger};
use protocol::{BpmnElementType, Key, Payload, ProcessInstanceValue, Rejection, Text, TimerIntent, TimerValue};

use super::subscription;
use crate::event;
use crate::execution::token::Token;
use crate::execution::{Execution, Outcome};
use crate::process_instance;

/// A cycle with more turns than [`QUICK_TURNS_MAX`] does not come more often: `R/PT0S` would come as fast as the machine can.
const LONG_CYCLE_INTERVAL_MIN_MILLISECONDS: i64 = 100;
const QUICK_TURNS_MAX: i32 = 1_000;

pub(crate) fn trigger(execution: &mut Execution<'_>, key: Key) -> Outcome {
    let Some(row) = execution.state.tables.timers.get(&key.raw()) else {
        return Err(Rejection::not_found(format!(
            "Expected to trigger a timer with key '{key}', but no such timer was found"
        ))
        .into());
    };
    let value = row.value.clone();
    drop(row);
    if execution.state.is_banned(value.process_instance_key) {
        // It must not stay due for ever.
        execution.emit(key, Payload::Timer(TimerIntent::Canceled, Box::new(value)));
        return Ok(());
    }
    if value.due_date > execution.timestamp {
        return Err(Rejection::invalid_state(format!(
            "Expected to trigger the timer with key '{key}', but it is not due before {}",
            value.due_date
        ))
        .into());
    }
    if value.element_instance_key.is_some() {
        trigger_element(execution, key, &value)
    } else {
        trigger_start_event(execution, key, &value)
    }
}

fn trigger_element(execution: &mut Execution<'_>, key: Key, value: &TimerValue) -> Outcome {
    let found = Token::find(execution, value.element_instance_key)?
        .and_then(|scope| event_of(&scope.process, value).map(|event| (scope, event)));
    let Some((scope, event)) = found else {
        execution.emit(key, Payload::Timer(TimerIntent::Canceled, Box::new(value.clone())));
        return Ok(());
    };
    let is_boundary_event = scope.element().boundary_events.contains(&event);
    if !event::can_trigger(&execution.state, &scope.instance, is_boundary_event) {
        // The scope is about to end, and with it the timer; until then it must not be due again and again.
        execution.emit(key, Payload::Timer(TimerIntent::Canceled, Box::new(value.clone())));
        return Ok(());
    }
    execution.emit(key, Payload::Timer(TimerIntent::Triggered, Box::new(value.clone())));
    event::trigger(execution, &scope, event, Text::default());
    repeat(execution, &scope.process, event, scope.key, value);
    Ok(())
}

fn event_of(process: &ExecutableProcess, value: &TimerValue) -> Option<ElementIndex> {
    process.find_event(&value.target_element_id)
}

/// A timer start event begins an instance.
fn trigger_start_event(execution: &mut Execution<'_>, key: Key, value: &TimerValue) -> Outcome {
    let definition = value.process_definition_key;
    let found = execution.state.process(definition).and_then(|process| {
        let metadata = execution.state.tables.processes.get(&definition.raw())?.metadata.clone();
        Some((metadata, event_of(&process, value)?, process))
    });
    let Some((metadata, event, process)) = found else {
        execution.emit(key, Payload::Timer(TimerIntent::Canceled, Box::new(value.clone())));
        return Ok(());
    };
    let instance = execution.state.next_key();
    let triggered = TimerValue { process_instance_key: instance, ..value.clone() };
    execution.emit(key, Payload::Timer(TimerIntent::Triggered, Box::new(triggered)));
    let instance: ProcessInstanceValue = process_instance::root_value(&metadata, instance);
    debug_assert_eq!(instance.bpmn_element_type, BpmnElementType::Process);
    event::trigger_process(execution, &process, instance, event, Text::default());
    repeat(execution, &process, event, Key::NONE, value);
    Ok(())
}

/// Opens the timer for its next turn, counted from the last due date and not from now, so that it does not drift.
fn repeat(
    execution: &mut Execution<'_>,
    process: &ExecutableProcess,
    event: ElementIndex,
    scope: Key,
    value: &TimerValue,
) {
    if value.repetitions == 0 || value.repetitions == 1 {
        return;
    }
    let Some(Trigger::Timer(definition)) = process.element(event).catch_event().map(|event| &event.trigger) else {
        return;
    };
    // A cycle that no longer evaluates ends; what it belongs to continues.
    let Ok(timer) = super::evaluate(execution, scope, definition) else { return };
    let Some(due_date) = timer.next_due(value.due_date, execution.timestamp) else { return };
    let is_endless = value.repetitions == bpmn::timer::ENDLESS;
    let due_date = if is_endless || value.repetitions > QUICK_TURNS_MAX {
        due_date.max(value.due_date.saturating_add(LONG_CYCLE_INTERVAL_MIN_MILLISECONDS))
    } else {
        due_date
    };
    let repetitions = if is_endless { value.repetitions } else { value.repetitions - 1 };
    subscription::create(execution, TimerValue { due_date, repetitions, ..value.clone() });
}
