//! Timers of start events: they belong to the newest version of a process.

use std::sync::Arc;

use bpmn::model::{ExecutableProcess, Trigger};
use protocol::{Key, ProcessMetadata, Rejection, TimerValue, Timestamp};

use crate::event;
use crate::execution::Execution;

/// When the start events of a process are first due. Such timers cannot see variables.
pub(crate) fn prepare(
    execution: &Execution<'_>,
    process: &ExecutableProcess,
) -> Result<Vec<(Arc<str>, Timestamp, i32)>, Rejection> {
    let mut timers = Vec::new();
    for start in &process.triggered_start_events {
        let start = process.element(*start);
        let Some(Trigger::Timer(definition)) = start.catch_event().map(|event| &event.trigger) else { continue };
        let refused = |reason: &str| {
            Rejection::invalid_argument(format!(
                "Expected to deploy new resources, but encountered the following errors:\nInvalid timer expression of start \
                 event '{}' of process '{}' ({reason})",
                start.id, process.id
            ))
        };
        let timer = super::evaluate(execution, Key::NONE, definition).map_err(|problem| refused(&problem.message))?;
        let due = timer.first_due(execution.timestamp).ok_or_else(|| refused("it is never due"))?;
        timers.push((start.id.clone(), due, timer.repetitions()));
    }
    Ok(timers)
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
        event::subscribe_timer(execution, value);
    }
}

/// Cancels the timers of a version that is not the newest any more.
pub(crate) fn close(execution: &mut Execution<'_>, definition: Key) {
    event::cancel_timers(execution, definition, |_| true);
}
