//! Streams of workers: JOB_STREAM ADD, REMOVE, GRANT and CLEAR.
//!
//! Streams are part of the replicated state, so that the choice of the stream that gets a job is the same on every
//! replica. Credit is what a stream's connection can take, in jobs and in bytes: each job uses some of both, and the leader
//! grants more as the connection drains. A stream without credit gets nothing, so nothing ever has to be taken back for lack
//! of room. A grant names the total that the stream may have taken since it was opened, so one that is lost is made up for by
//! the next, and one that comes twice or late changes nothing.

use protocol::{JobStreamIntent, JobStreamValue, Key, Payload, Rejection};

use crate::execution::{Execution, Outcome};
use crate::job::delivery::{self, JobQueue};
use crate::name::too_long;

/// Streams that a partition knows at most.
const JOB_STREAMS_MAX: u64 = 100_000;

pub(crate) fn add(execution: &mut Execution<'_>, value: &JobStreamValue) -> Outcome {
    let id = (value.stream.node, value.stream.number);
    if execution.state.tables.job_streams.contains(&id) {
        return Err(Rejection::already_exists(format!(
            "Expected to add job stream {id:?}, but it is registered already"
        ))
        .into());
    }
    if let Some(but) = too_long(&value.job_type, execution.limits.name_bytes_max) {
        return Err(Rejection::invalid_argument(format!("Expected to add a job stream for a type of {but}")).into());
    }
    if execution.state.counters.job_streams >= JOB_STREAMS_MAX {
        return Err(Rejection::invalid_state(format!(
            "Expected to add a job stream for type '{}', but {JOB_STREAMS_MAX} streams are registered, which is the limit; \
             close streams that are not needed",
            value.job_type
        ))
        .into());
    }
    emit(execution, JobStreamIntent::Added, value);
    deliver(execution, value);
    Ok(())
}

pub(crate) fn remove(execution: &mut Execution<'_>, value: &JobStreamValue) -> Outcome {
    let registered = registered(execution, value, "remove")?;
    let removed = JobStreamValue { stream: registered.stream, ..JobStreamValue::default() };
    emit(execution, JobStreamIntent::Removed, &removed);
    Ok(())
}

pub(crate) fn grant(execution: &mut Execution<'_>, value: &JobStreamValue) -> Outcome {
    let registered = registered(execution, value, "grant credit to")?;
    let granted = registered.granted.max(value.granted);
    let grant = JobStreamValue { stream: registered.stream, granted, ..JobStreamValue::default() };
    emit(execution, JobStreamIntent::Granted, &grant);
    deliver(execution, &registered);
    Ok(())
}

/// A new leader knows no connections: gateways register their streams again.
pub(crate) fn clear(execution: &mut Execution<'_>, value: &JobStreamValue) -> Outcome {
    emit(execution, JobStreamIntent::Cleared, value);
    Ok(())
}

fn registered(execution: &Execution<'_>, value: &JobStreamValue, action: &str) -> Result<JobStreamValue, Rejection> {
    let id = (value.stream.node, value.stream.number);
    match execution.state.tables.job_streams.get(&id) {
        Some(row) => Ok(row.value.clone()),
        None => {
            Err(Rejection::not_found(format!("Expected to {action} job stream {id:?}, but no such stream was found")))
        }
    }
}

/// Later records of a stream only name it: what it wants was recorded when it was added, and may be long.
fn emit(execution: &mut Execution<'_>, intent: JobStreamIntent, value: &JobStreamValue) {
    let payload = Payload::JobStream(intent, Box::new(value.clone()));
    execution.emit(Key::NONE, payload.clone());
    execution.reply(Key::NONE, payload);
}

fn deliver(execution: &mut Execution<'_>, value: &JobStreamValue) {
    for tenant in &value.tenant_ids {
        delivery::deliver(execution, &JobQueue::of_names(tenant, &value.job_type));
    }
}
