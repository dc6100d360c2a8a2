//! JOB_POLL YIELD and ACKNOWLEDGE: what becomes of the answers to polls.
//!
//! A job that is polled belongs to the request that polled it. Its gateway gives back what it cannot deliver, and acknowledges now and
//! then up to which request everything is delivered. So a leader knows what a gateway that is gone may not have delivered, and gives
//! it back in its place.

use protocol::{
    Command, JobOwner, JobPollIntent, JobPollValue, Key, NUMBER_BITS, Payload, Request, WorkValue, life_of,
};

use super::give_back::give_back;
use crate::execution::{Execution, Outcome};

/// Gives back jobs of a poll, all or those that are named. Without any nothing happens, so that it can be said again.
pub(crate) fn r#yield(execution: &mut Execution<'_>, value: &JobPollValue) -> Outcome {
    let poll = Request { node: value.node, number: value.number };
    let jobs =
        if value.job_keys.is_empty() { of_poll(execution, poll) } else { named(execution, poll, &value.job_keys) };
    let had_entries = execution.state.tables.polled_jobs.prefix(&(poll.node, poll.number)).next().is_some();
    let looked_at = give_back(execution, &jobs);
    let rest = &jobs[looked_at..];
    if !rest.is_empty() {
        let job_keys = if value.job_keys.is_empty() { Vec::new() } else { rest.iter().map(|(key, _)| *key).collect() };
        let value = JobPollValue { job_keys, ..value.clone() };
        let command = Command::new(Key::NONE, Payload::JobPoll(JobPollIntent::Yield, Box::new(value)));
        let commands = vec![command.following(&execution.origin)];
        execution.enqueue(WorkValue { commands, rounds: execution.rounds, ..WorkValue::default() });
    }
    let yielded = Payload::JobPoll(JobPollIntent::Yielded, Box::new(value.clone()));
    if rest.is_empty() && value.job_keys.is_empty() && had_entries {
        execution.emit(Key::NONE, yielded.clone());
    }
    execution.reply(Key::NONE, yielded);
    Ok(())
}

/// What still is activated for a poll. What has ended since is passed over: a slice of it would give back nothing, and be the
/// first slice again the next time, without end.
fn of_poll(execution: &Execution<'_>, poll: Request) -> Vec<(Key, JobOwner)> {
    let jobs = execution.state.tables.polled_jobs.prefix(&(poll.node, poll.number));
    let jobs = jobs.map(|((.., place), key)| (Key::from_raw(*key), JobOwner::Poll(poll, place)));
    jobs.filter(|(key, owner)| execution.state.job(*key).is_some_and(|job| job.owner == Some(*owner))).collect()
}

fn named(execution: &Execution<'_>, poll: Request, keys: &[Key]) -> Vec<(Key, JobOwner)> {
    let owned = |key: &Key| match execution.state.job(*key)?.owner? {
        owner @ JobOwner::Poll(of, _) if of == poll => Some((*key, owner)),
        _ => None,
    };
    keys.iter().filter_map(owned).collect()
}

/// All polls of a life of a node, up to this one, are delivered or given back.
pub(crate) fn acknowledge(execution: &mut Execution<'_>, value: &JobPollValue) -> Outcome {
    let first = (value.node, life_of(value.number) << NUMBER_BITS, 0);
    let oldest = execution.state.tables.polled_jobs.first_from(&first);
    let acknowledged = acknowledged(value.node, value.number);
    if oldest.is_some_and(|((node, number, _), _)| node == value.node && number <= value.number) {
        execution.emit(Key::NONE, acknowledged.clone());
    }
    execution.reply(Key::NONE, acknowledged);
    Ok(())
}

fn acknowledged(node: u32, number: u64) -> Payload {
    Payload::JobPoll(JobPollIntent::Acknowledged, Box::new(JobPollValue { node, number, ..JobPollValue::default() }))
}

/// After a poll: with too many jobs that nobody acknowledges, the oldest polls of this gateway count as delivered. Should it be gone, their
/// jobs wait for their time-out.
pub(super) fn forget_oldest(execution: &mut Execution<'_>, poll: Request) {
    let jobs_max = execution.limits.polled_jobs_max;
    let count = execution.state.counters.polled_jobs;
    if count <= jobs_max {
        return;
    }
    // More than must be, so that not each poll does it.
    let wanted = usize::try_from(count - jobs_max + jobs_max / 4).unwrap_or(usize::MAX);
    let first = (poll.node, life_of(poll.number) << NUMBER_BITS, 0);
    let own = (poll.node, poll.number, 0);
    if first < own
        && let Some(((_, number, _), _)) = execution.state.tables.polled_jobs.range(first..own).take(wanted).last()
    {
        execution.emit(Key::NONE, acknowledged(poll.node, number));
    }
}
