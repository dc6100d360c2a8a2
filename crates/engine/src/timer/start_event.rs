//! Timers of start events: they belong to the newest version of a process.

use std::sync::Arc;

use bpmn::model::{Element, ExecutableProcess, TimerDefinition, Trigger};
use protocol::{Key, ProcessMetadata, Rejection, TimerValue, Timestamp};

use super::subscription;
use crate::execution::Execution;

/// When the start events of a process are first due. Such timers cannot see variables.
pub(crate) fn prepare(
    execution: &Execution<'_>,
    process: &ExecutableProcess,
) -> Result<Vec<(Arc<str>, Timestamp, i32)>, Rejection> {
    let refused = |start: &Element, reason: String| {
        Rejection::invalid_argument(format!(
            "Expected to deploy new resources, but encountered the following errors:\nInvalid timer expression of start \
             event '{}' of process '{}' ({reason})",
            start.id, process.id
        ))
    };
    timers_of(process)
        .map(|(start, definition)| first_turn(execution, start, definition).map_err(|reason| refused(start, reason)))
        .collect()
}

/// The start events of a process that wait for a timer.
fn timers_of(process: &ExecutableProcess) -> impl Iterator<Item = (&Element, &TimerDefinition)> {
    let starts = process.triggered_start_events.iter().map(|start| process.element(*start));
    starts.filter_map(|start| match &start.catch_event()?.trigger {
        Trigger::Timer(definition) => Some((start, definition)),
        _ => None,
    })
}

fn first_turn(
    execution: &Execution<'_>,
    start: &Element,
    definition: &TimerDefinition,
) -> Result<(Arc<str>, Timestamp, i32), String> {
    let timer = super::evaluate(execution, Key::NONE, definition).map_err(|problem| problem.message)?;
    let due = timer.first_due(execution.timestamp).ok_or("it is never due")?;
    Ok((start.id.clone(), due, timer.repetitions()))
}

/// Opens the timers of a version that became the newest.
pub(crate) fn open(execution: &mut Execution<'_>, metadata: &ProcessMetadata, timers: Vec<(Arc<str>, Timestamp, i32)>) {
    for (start_event, due_date, repetitions) in timers {
        let value = TimerValue {
            process_definition_key: metadata.process_definition_key,
            element_instance_key: Key::NONE,
            process_instance_key: Key::NONE,
            due_date,
            target_element_id: start_event.into(),
            repetitions,
            tenant_id: metadata.tenant_id.clone(),
        };
        subscription::create(execution, value);
    }
}

/// Opens the timers of a version that is the newest again. Those that will never be due again stay closed.
pub(crate) fn reopen(execution: &mut Execution<'_>, metadata: &ProcessMetadata, process: &ExecutableProcess) {
    let turns = timers_of(process).filter_map(|(start, definition)| first_turn(execution, start, definition).ok());
    let turns = turns.collect();
    open(execution, metadata, turns);
}

/// Cancels the timers of a version that is no longer the newest.
pub(crate) fn close(execution: &mut Execution<'_>, definition: Key) {
    subscription::cancel(execution, definition, |_| true);
}
