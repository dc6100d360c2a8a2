//! Which jobs are activated for whom, until they are known to be delivered.

use std::ops::RangeInclusive;

use protocol::{JobOwner, JobPollIntent, JobPollValue, Key, NUMBER_BITS, StreamId, life_of};

use super::change::{count_down, not_an_event};
use crate::state::State;

/// A job was activated for its owner. The entry outlives the activation: whoever reads it looks at the job.
pub(super) fn note(state: &mut State, owner: JobOwner, key: Key) {
    match owner {
        JobOwner::Stream(stream, number) => {
            state.tables.pushed_jobs.insert_new((stream.node, stream.number, number), key.raw());
        }
        JobOwner::Poll(poll, place) => {
            let id = (poll.node, poll.number, place);
            state.counters.polled_jobs += u64::from(!state.tables.polled_jobs.contains(&id));
            state.tables.polled_jobs.put(id, key.raw());
        }
    }
}

/// A job is given back before anybody had it.
pub(super) fn given_back(state: &mut State, key: Key) {
    let Some(owner) = state.job(key).and_then(|row| row.owner) else { return };
    match owner {
        JobOwner::Stream(stream, number) => {
            state.tables.pushed_jobs.delete(&(stream.node, stream.number, number));
        }
        JobOwner::Poll(poll, place) => {
            let id = (poll.node, poll.number, place);
            forget_polled(state, id..=id);
        }
    }
}

/// The pushes of a stream after one number, up to another, are delivered or given back.
pub(super) fn forget_pushed(state: &mut State, stream: StreamId, after: u64, through: u64) {
    if after < through {
        let (first, last) = ((stream.node, stream.number, after + 1), (stream.node, stream.number, through));
        state.tables.pushed_jobs.remove_range(first..=last);
    }
}

fn forget_polled(state: &mut State, range: RangeInclusive<(u32, u64, u64)>) {
    let count = state.tables.polled_jobs.remove_range(range);
    count_down(state, "jobs of polls", count, |counters| &mut counters.polled_jobs);
}

pub(super) fn apply_poll(state: &mut State, intent: JobPollIntent, value: &JobPollValue) {
    let last = (value.node, value.number, u64::MAX);
    match intent {
        JobPollIntent::Yielded => forget_polled(state, (value.node, value.number, 0)..=last),
        JobPollIntent::Acknowledged => {
            // What earlier lives of the node were given is not its to acknowledge.
            let first_of_life = life_of(value.number) << NUMBER_BITS;
            forget_polled(state, (value.node, first_of_life, 0)..=last);
        }
        JobPollIntent::Yield | JobPollIntent::Acknowledge => not_an_event(state, intent.name()),
    }
}
