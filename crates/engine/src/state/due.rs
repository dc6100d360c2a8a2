//! What becomes due with time, in queues by its time.

use std::collections::BTreeSet;

use ::state::Queue;
use protocol::{JobIntent, Key, MessageBatchIntent, Payload, TimerIntent, Timestamp};

use super::{State, Tables};

/// How far at the front of its queue what a refused command was about is looked for: commands are made from there.
const FRONT_ENTRIES_MAX: usize = 1_000;

/// Entries by the time at which they are due.
type DueQueue = Queue<(), (Timestamp, i64), ()>;

/// The queue that a command was made from, if it was made for something that is due.
pub(crate) fn queue_of(payload: &Payload) -> Option<Due> {
    match payload {
        Payload::Timer(TimerIntent::Trigger, _) => Some(Due::Timer),
        Payload::Job(JobIntent::TimeOut, _) => Some(Due::JobTimeOut),
        Payload::Job(JobIntent::RecurAfterBackoff, _) => Some(Due::JobBackoff),
        Payload::MessageBatch(MessageBatchIntent::Expire, _) => Some(Due::Messages),
        _ => None,
    }
}

/// What is still due of what a command for something due is about: its entries in the queue.
pub(crate) fn still_due(state: &State, payload: &Payload, key: Key, now: Timestamp) -> Vec<(Timestamp, i64)> {
    let Some(queue) = queue_of(payload) else { return Vec::new() };
    let keys: BTreeSet<i64> = match payload {
        Payload::MessageBatch(_, batch) => batch.message_keys.iter().map(|key| key.raw()).collect(),
        _ => BTreeSet::from([key.raw()]),
    };
    let front = queue.of(&state.tables).iter(&()).map(|(entry, _)| entry).take_while(|(due, _)| *due <= now);
    front.take(FRONT_ENTRIES_MAX).filter(|(_, key)| keys.contains(key)).take(keys.len()).collect()
}

/// What can be due.
#[derive(Clone, Copy)]
pub(crate) enum Due {
    JobTimeOut,
    JobBackoff,
    Timer,
    Messages,
}

impl Due {
    pub const ALL: [Due; 4] = [Due::JobTimeOut, Due::JobBackoff, Due::Timer, Due::Messages];

    pub fn of(self, tables: &Tables) -> &DueQueue {
        match self {
            Due::JobTimeOut => &tables.job_deadlines,
            Due::JobBackoff => &tables.job_backoffs,
            Due::Timer => &tables.due_timers,
            Due::Messages => &tables.message_deadlines,
        }
    }

    pub fn of_mut(self, tables: &mut Tables) -> &mut DueQueue {
        match self {
            Due::JobTimeOut => &mut tables.job_deadlines,
            Due::JobBackoff => &mut tables.job_backoffs,
            Due::Timer => &mut tables.due_timers,
            Due::Messages => &mut tables.message_deadlines,
        }
    }
}
