//! For whom jobs are activated: what leaders and gateways read of it.

use protocol::{
    Command, JobAmount, JobPollIntent, JobPollValue, JobStreamIntent, JobStreamValue, Key, NUMBER_BITS, Payload,
    Request, StreamId, life_of,
};

use crate::state::{JobState, State};

/// How far a stream has come on a partition, since it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamTotals {
    /// The stream.
    pub stream: StreamId,
    /// What it may have taken.
    pub granted: JobAmount,
    /// What was pushed to it: the last push has the number `used.jobs`.
    pub used: JobAmount,
    /// Number of the last push up to which the partition knows that all are delivered.
    pub delivered: u64,
}

impl StreamTotals {
    fn of(value: &JobStreamValue) -> Self {
        StreamTotals { stream: value.stream, granted: value.granted, used: value.used, delivered: value.delivered }
    }
}

pub(crate) fn job_stream(state: &State, stream: StreamId) -> Option<StreamTotals> {
    let row = state.tables.job_streams.get(&(stream.node, stream.number))?;
    Some(StreamTotals::of(&row.value))
}

pub(crate) fn job_streams_of(state: &State, node: u32) -> impl Iterator<Item = StreamTotals> + use<'_> {
    state.tables.job_streams.prefix(&node).map(|(_, row)| StreamTotals::of(&row.value))
}

pub(crate) fn pushed_after(state: &State, stream: StreamId, number: u64) -> impl Iterator<Item = (u64, Key)> + use<'_> {
    let first = (stream.node, stream.number, number.saturating_add(1));
    let pushed = state.tables.pushed_jobs.range(first..=(stream.node, stream.number, u64::MAX));
    pushed.map(|((.., number), key)| (number, Key::from_raw(*key)))
}

pub(crate) fn has_poll(state: &State, poll: Request) -> bool {
    state.tables.polled_jobs.prefix(&(poll.node, poll.number)).next().is_some()
}

pub(crate) fn oldest_poll(state: &State, node: u32, life: u64) -> Option<Request> {
    let first = (node, life << NUMBER_BITS, 0);
    let ((of, number, _), _) = state.tables.polled_jobs.first_from(&first)?;
    (of == node && life_of(number) == life).then_some(Request { node, number })
}

pub(crate) fn lost_streams(state: &State, life: impl Fn(u32) -> Option<u64>) -> impl Iterator<Item = StreamId> {
    let next = |from| state.tables.job_streams.first_from(&from).map(|(id, _)| id);
    lost(next, life).map(|(node, number)| StreamId { node, number })
}

pub(crate) fn lost_polls(state: &State, life: impl Fn(u32) -> Option<u64>) -> impl Iterator<Item = Request> {
    let next = |(node, number)| {
        let ((node, number, _), _) = state.tables.polled_jobs.first_from(&(node, number, 0))?;
        Some((node, number))
    };
    lost(next, life).map(|(node, number)| Request { node, number })
}

/// What belongs to no living node, by the first that is not below a node and number.
fn lost(
    next: impl Fn((u32, u64)) -> Option<(u32, u64)>,
    life: impl Fn(u32) -> Option<u64>,
) -> impl Iterator<Item = (u32, u64)> {
    let mut from = Some((0, 0));
    std::iter::from_fn(move || {
        loop {
            let (node, number) = next(from?)?;
            if is_lost(number, life(node)) {
                from = after(node, number);
                return Some((node, number));
            }
            from = node.checked_add(1).map(|node| (node, 0));
        }
    })
}

/// Numbers of one node are in the order of its lives, so what follows the first one that is not lost is not lost.
fn is_lost(number: u64, life: Option<u64>) -> bool {
    life.is_none_or(|life| life_of(number) < life)
}

fn after(node: u32, number: u64) -> Option<(u32, u64)> {
    match number.checked_add(1) {
        Some(number) => Some((node, number)),
        None => node.checked_add(1).map(|node| (node, 0)),
    }
}

/// For a leader: the command that removes a lost stream and gives back what was pushed to it and is not known to be delivered.
pub fn remove_lost_stream(stream: StreamId) -> Command {
    let value = JobStreamValue { stream, ..JobStreamValue::default() };
    Command::of_system(Key::NONE, Payload::JobStream(JobStreamIntent::Remove, Box::new(value)))
}

/// The command that says that all polls of a life of a node up to this one are delivered or given back.
pub fn acknowledge_polls(last: Request) -> Command {
    let value = JobPollValue { node: last.node, number: last.number, ..JobPollValue::default() };
    Command::of_system(Key::NONE, Payload::JobPoll(JobPollIntent::Acknowledge, Box::new(value)))
}

/// The command that gives back all jobs of a poll whose answer was not delivered.
pub fn give_back_poll(poll: Request) -> Command {
    let value = JobPollValue { node: poll.node, number: poll.number, ..JobPollValue::default() };
    Command::of_system(Key::NONE, Payload::JobPoll(JobPollIntent::Yield, Box::new(value)))
}

/// Compares what is kept by owner with the jobs.
pub(crate) fn audit(state: &State) -> Result<(), String> {
    let tables = &state.tables;
    let polled = tables.polled_jobs.keys().count() as u64;
    if polled != state.counters.polled_jobs {
        return Err(format!("{polled} jobs of polls are kept, but {} are counted", state.counters.polled_jobs));
    }
    for (key, job) in tables.jobs.iter() {
        if job.owner.is_some() && job.state != JobState::Activated {
            return Err(format!("job {} has an owner and is not activated", Key::from_raw(key)));
        }
    }
    for (node, number, push) in tables.pushed_jobs.keys() {
        let stream = StreamId { node, number };
        let Some(row) = tables.job_streams.get(&(node, number)) else { continue };
        let (delivered, used) = (row.value.delivered, row.value.used.jobs);
        if push <= delivered || push > used {
            return Err(format!(
                "push {push} to {stream:?} is kept, and {delivered} of its {used} pushes are delivered"
            ));
        }
    }
    Ok(())
}
