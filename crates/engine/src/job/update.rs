//! JOB UPDATE_RETRIES, UPDATE_TIMEOUT and UPDATE (both at once).

use std::sync::Arc;

use protocol::{JobIntent, JobValue, Key, Payload, Rejection};

use crate::execution::{Execution, Outcome};
use crate::state::{JobRow, JobState};

pub(crate) fn update_retries(execution: &mut Execution<'_>, key: Key, command: &JobValue) -> Outcome {
    let job = super::find(execution, key, "update retries of")?;
    check_retries(key, command.retries)?;
    let updated = JobValue { retries: command.retries, ..(*job.value).clone() };
    finish(execution, key, JobIntent::RetriesUpdated, updated)
}

pub(crate) fn update_timeout(execution: &mut Execution<'_>, key: Key, command: &JobValue) -> Outcome {
    let job = super::find(execution, key, "update timeout of")?;
    let deadline = new_deadline(execution, key, &job, command)?;
    let updated = JobValue { deadline, timeout: command.timeout, ..(*job.value).clone() };
    finish(execution, key, JobIntent::TimeoutUpdated, updated)
}

/// Changes what `changed_attributes` names, all or nothing.
pub(crate) fn update(execution: &mut Execution<'_>, key: Key, command: &JobValue) -> Outcome {
    let job = super::find(execution, key, "update")?;
    let mut updated = (*job.value).clone();
    updated.changed_attributes.clone_from(&command.changed_attributes);
    for attribute in &command.changed_attributes {
        match attribute.as_str() {
            "retries" => {
                check_retries(key, command.retries)?;
                updated.retries = command.retries;
            }
            "timeout" => {
                updated.deadline = new_deadline(execution, key, &job, command)?;
                updated.timeout = command.timeout;
            }
            other => {
                return Err(Rejection::invalid_argument(format!(
                    "Expected to update the retries or the timeout of job with key '{key}', but '{other}' cannot be updated"
                ))
                .into());
            }
        }
    }
    finish(execution, key, JobIntent::Updated, updated)
}

fn finish(execution: &mut Execution<'_>, key: Key, intent: JobIntent, updated: JobValue) -> Outcome {
    let payload = Payload::Job(intent, Arc::new(updated));
    execution.emit(key, payload.clone());
    execution.reply(key, payload);
    Ok(())
}

fn check_retries(key: Key, retries: i32) -> Result<(), Rejection> {
    if retries < 1 {
        return Err(Rejection::invalid_argument(format!(
            "Expected to update retries for job with key '{key}' to a positive number, but got '{retries}'"
        )));
    }
    Ok(())
}

fn new_deadline(execution: &Execution<'_>, key: Key, job: &JobRow, command: &JobValue) -> Result<i64, Rejection> {
    if job.state != JobState::Activated {
        return Err(Rejection::invalid_state(format!(
            "Expected to update the timeout of activated job with key '{key}', but it is in state '{}'",
            job.state.name()
        )));
    }
    Ok(execution.timestamp.saturating_add(command.timeout.max(0)))
}
