//! Streams of workers: JOB_STREAM ADD, REMOVE, GRANT and YIELD.
//!
//! Streams are part of the replicated state, so that the choice of the stream that gets a job is the same on every
//! replica. Credit is what a stream's connection can take, in jobs and in bytes: each job uses some of both, and the leader
//! grants more as the connection drains. A stream without credit gets nothing, so nothing ever has to be taken back for lack
//! of room. A grant names the total that the stream may have taken since it was opened, so one that is lost is made up for by
//! the next, and one that comes twice or late changes nothing.
//!
//! The jobs of a stream are pushed in the order of their numbers, and its connection takes them in this order. So one number says
//! which of them are delivered. A grant brings it along; what was pushed after it is kept by its number, and is given back when the
//! stream ends, whoever says that it does.

use protocol::{
    Command, JobAmount, JobOwner, JobStreamIntent, JobStreamValue, Key, Payload, Rejection, StreamId, WorkValue,
};

use crate::execution::{Execution, Outcome};
use crate::job::delivery::{self, JobQueue};
use crate::job::give_back::give_back;
use crate::name::too_long;

/// Streams that a partition knows at most.
const JOB_STREAMS_MAX: u64 = 100_000;
/// Pushes that are looked at together when they are given back.
const PUSHES_LOOKED_AT_MAX: usize = 10_000;

pub(crate) fn add(execution: &mut Execution<'_>, value: &JobStreamValue) -> Outcome {
    let id = (value.stream.node, value.stream.number);
    if let Some(row) = execution.state.tables.job_streams.get(&id) {
        return add_again(execution, &row.value, value);
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
    // Its next pushes would have the numbers of these.
    if pushed(execution, value.stream, value.used.jobs, u64::MAX).next().is_some() {
        return Err(Rejection::invalid_state(format!(
            "Expected to add job stream {id:?}, but jobs that were pushed to it before are still being given back; add it again later"
        ))
        .into());
    }
    let delivered = value.delivered.min(value.used.jobs);
    emit(execution, JobStreamIntent::Added, &JobStreamValue { delivered, ..value.clone() });
    deliver(execution, value);
    Ok(())
}

/// A gateway that does not know whether a stream is registered adds it again. It may know of more than the partition does.
fn add_again(execution: &mut Execution<'_>, registered: &JobStreamValue, value: &JobStreamValue) -> Outcome {
    if !registered.wants_the_same(value) {
        let id = (value.stream.node, value.stream.number);
        return Err(Rejection::already_exists(format!(
            "Expected to add job stream {id:?}, but it is registered already and wants other jobs; give each stream a number of its own"
        ))
        .into());
    }
    let used = registered.used.max(value.used);
    let totals = JobStreamValue {
        stream: registered.stream,
        granted: registered.granted.max(value.granted),
        used,
        delivered: registered.delivered.max(value.delivered.min(used.jobs)),
        ..JobStreamValue::default()
    };
    let known = (registered.granted, registered.used, registered.delivered);
    let is_new = (totals.granted, totals.used, totals.delivered) != known;
    let (granted, delivered) = (totals.granted, totals.delivered);
    if is_new {
        execution.emit(Key::NONE, Payload::JobStream(JobStreamIntent::Granted, Box::new(totals)));
    }
    let answer = JobStreamValue { granted, used, delivered, ..registered.clone() };
    execution.reply(Key::NONE, Payload::JobStream(JobStreamIntent::Added, Box::new(answer)));
    if is_new {
        deliver(execution, registered);
    }
    Ok(())
}

/// Closed by its gateway, or lost with it. What its connection did not take is given back: its gateway says up to which push it took
/// all, and for a lost stream its grants have said so.
pub(crate) fn remove(execution: &mut Execution<'_>, value: &JobStreamValue) -> Outcome {
    let registered = registered(execution, value, "remove")?;
    let JobStreamValue { stream, used, .. } = registered;
    let delivered = registered.delivered.max(value.delivered.min(used.jobs));
    emit(execution, JobStreamIntent::Removed, &JobStreamValue { stream, delivered, ..JobStreamValue::default() });
    give_back_pushed(execution, stream, delivered, used.jobs);
    Ok(())
}

pub(crate) fn grant(execution: &mut Execution<'_>, value: &JobStreamValue) -> Outcome {
    let registered = registered(execution, value, "grant credit to")?;
    let granted = registered.granted.max(value.granted);
    let delivered = registered.delivered.max(value.delivered.min(registered.used.jobs));
    let grant = JobStreamValue { stream: registered.stream, granted, delivered, ..JobStreamValue::default() };
    emit(execution, JobStreamIntent::Granted, &grant);
    deliver(execution, &registered);
    Ok(())
}

/// Gives back what was pushed after the number `delivered`, up to `used.jobs`, whether the stream is still registered or not: a gateway
/// did not get it, or it is the rest of a removal.
pub(crate) fn r#yield(execution: &mut Execution<'_>, value: &JobStreamValue) -> Outcome {
    let (stream, after, through) = (value.stream, value.delivered, value.used.jobs);
    if pushed(execution, stream, after, through).next().is_none() {
        let id = (stream.node, stream.number);
        return Err(Rejection::not_found(format!(
            "Expected to give back jobs that were pushed to job stream {id:?} after push {after}, up to push {through}, but none of \
             them waits to be delivered"
        ))
        .into());
    }
    give_back_pushed(execution, stream, after, through);
    let yielded = JobStreamValue { stream, delivered: after, used: value.used, ..JobStreamValue::default() };
    execution.reply(Key::NONE, Payload::JobStream(JobStreamIntent::Yielded, Box::new(yielded)));
    Ok(())
}

/// The jobs that were pushed to a stream after one number, up to another, and are not known to be delivered.
fn pushed(
    execution: &Execution<'_>,
    stream: StreamId,
    after: u64,
    through: u64,
) -> impl Iterator<Item = (Key, JobOwner)> {
    let first = (stream.node, stream.number, after.saturating_add(1));
    let last = (stream.node, stream.number, through.max(after.saturating_add(1)));
    let jobs = execution.state.tables.pushed_jobs.range(first..=last);
    let jobs = jobs.take_while(move |((.., number), _)| after < *number && *number <= through);
    jobs.map(move |((.., number), key)| (Key::from_raw(*key), JobOwner::Stream(stream, number)))
}

/// Some at once; the rest waits its turn in the work queue.
fn give_back_pushed(execution: &mut Execution<'_>, stream: StreamId, after: u64, through: u64) {
    let jobs: Vec<_> = pushed(execution, stream, after, through).take(PUSHES_LOOKED_AT_MAX).collect();
    let looked_at = give_back(execution, &jobs);
    let Some((_, JobOwner::Stream(_, last))) = looked_at.checked_sub(1).and_then(|last| jobs.get(last)).copied() else {
        return;
    };
    let has_more = pushed(execution, stream, last, through).next().is_some();
    let range = |after, through| JobStreamValue {
        stream,
        delivered: after,
        used: JobAmount { jobs: through, bytes: 0 },
        ..JobStreamValue::default()
    };
    let done = Box::new(range(after, if has_more { last } else { through }));
    execution.emit(Key::NONE, Payload::JobStream(JobStreamIntent::Yielded, done));
    if has_more {
        let rest = Payload::JobStream(JobStreamIntent::Yield, Box::new(range(last, through)));
        let commands = vec![Command::new(Key::NONE, rest).following(&execution.origin)];
        execution.enqueue(WorkValue { commands, rounds: execution.rounds, ..WorkValue::default() });
    }
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
