//! Jobs: one file per command.

pub(crate) mod activate_batch;
pub(crate) mod complete;
pub(crate) mod delivery;
pub(crate) mod fail;
pub(crate) mod give_back;
pub(crate) mod poll;
pub(crate) mod recur_after_backoff;
pub(crate) mod throw_error;
pub(crate) mod time_out;
pub(crate) mod update;
pub(crate) mod r#yield;

use std::sync::Arc;

use protocol::{JobIntent, JobValue, Key, Payload, Rejection, Text};

use crate::execution::{Execution, Failure};
use crate::incident;
use crate::state::{JobRow, JobState};
use delivery::JobQueue;

/// The job that a command names.
fn find(execution: &Execution<'_>, key: Key, action: &str) -> Result<Arc<JobRow>, Failure> {
    let Some(job) = execution.state.job(key) else {
        return Err(Rejection::not_found(format!(
            "Expected to {action} job with key '{key}', but no such job was found"
        ))
        .into());
    };
    execution.check_not_banned(job.value.process_instance_key)?;
    Ok(job)
}

/// Whether the job belongs to a banned instance. Such a job is cancelled when its turn or its time comes: it must
/// neither go to a worker, which could not complete it, nor stay due for ever.
fn is_cancelled_as_banned(execution: &mut Execution<'_>, key: Key) -> bool {
    let Some(job) = execution.state.job(key) else { return false };
    if !execution.state.is_banned(job.value.process_instance_key) {
        return false;
    }
    execution.emit(key, Payload::Job(JobIntent::Canceled, job.value.clone()));
    true
}

/// Refuses commands on jobs that nobody may work on at the moment.
fn check_workable(key: Key, job: &JobRow, action: &str) -> Result<(), Rejection> {
    match job.state {
        JobState::Activatable | JobState::Activated => Ok(()),
        JobState::Failed if job.value.recurring_time >= 0 => Err(Rejection::invalid_state(format!(
            "Expected to {action} job with key '{key}', but it is in state 'FAILED'; it can be activated again when its \
             back-off ends"
        ))),
        state => Err(Rejection::invalid_state(format!(
            "Expected to {action} job with key '{key}', but it is in state '{}'; resolve its incident first",
            state.name()
        ))),
    }
}

/// The message with which a worker ends its work on a job. A part of a long one is better than none.
fn error_message(execution: &Execution<'_>, command: &JobValue) -> Text {
    let (message, bytes_max) = (&command.error_message, execution.limits.job_error_message_bytes_max);
    if message.len() > bytes_max { incident::cut(message.to_string(), bytes_max).into() } else { message.clone() }
}

/// Emits an event that makes a job available again, and hands it out.
fn make_available(execution: &mut Execution<'_>, key: Key, intent: JobIntent, value: JobValue) {
    let (_, queue) = emit_available(execution, key, intent, value);
    delivery::deliver(execution, &queue);
}

/// Emits an event that makes a job available again; the queue is to be delivered.
pub(crate) fn emit_available(
    execution: &mut Execution<'_>,
    key: Key,
    intent: JobIntent,
    mut value: JobValue,
) -> (Payload, JobQueue) {
    value.deadline = -1;
    value.recurring_time = -1;
    let queue = JobQueue::of(&value);
    let had_jobs = queue.has_jobs(&execution.state);
    let payload = Payload::Job(intent, Arc::new(value));
    execution.emit(key, payload.clone());
    (payload, queue.after_insertion(had_jobs))
}
