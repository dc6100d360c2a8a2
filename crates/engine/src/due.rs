//! What becomes due with time.

use std::sync::Arc;

use protocol::{
    Command, JobIntent, JobValue, Key, MessageBatchIntent, MessageBatchValue, Payload, TimerIntent, Timestamp,
};

use crate::state::State;

/// Messages that expire by one command; the next ones by the next, so that others have their turn between.
const MESSAGES_PER_COMMAND_MAX: usize = 500;

/// Commands for everything due at `now`, oldest due date first.
pub(crate) fn commands(state: &State, now: Timestamp, limit: usize) -> Vec<Command> {
    let tables = &state.tables;
    let is_due = |((due, _), _): &((Timestamp, i64), Due)| *due <= now;
    let queues = [
        (&tables.job_deadlines, Due::JobTimeOut),
        (&tables.job_backoffs, Due::JobBackoff),
        (&tables.due_timers, Due::Timer),
        // One command for all of them.
        (&tables.message_deadlines, Due::Messages),
    ];
    let mut due = Vec::new();
    for (queue, kind) in queues {
        let limit = if let Due::Messages = kind { limit.min(1) } else { limit };
        due.extend(queue.iter(&()).map(|(due, _)| (due, kind)).take_while(is_due).take(limit));
    }
    // Timers that are due together come in the order of what waits for them, as on the reference engine.
    due.sort_by_cached_key(|((due, key), kind)| (*due, kind.waiting(state, *key), *key));
    due.truncate(limit);
    due.into_iter().map(|((_, key), kind)| kind.command(state, Key::from_raw(key), now)).collect()
}

/// What can be due.
#[derive(Clone, Copy)]
enum Due {
    JobTimeOut,
    JobBackoff,
    Timer,
    Messages,
}

impl Due {
    /// What it is due for, among all that is due at the same time.
    fn waiting(self, state: &State, key: i64) -> i64 {
        match self {
            Due::Timer => state.tables.timers.get(&key).map_or(key, |row| row.value.element_instance_key.raw()),
            Due::JobTimeOut | Due::JobBackoff | Due::Messages => key,
        }
    }

    fn command(self, state: &State, key: Key, now: Timestamp) -> Command {
        let job = |intent| Payload::Job(intent, Arc::new(JobValue::default()));
        let payload = match self {
            Due::JobTimeOut => job(JobIntent::TimeOut),
            Due::JobBackoff => job(JobIntent::RecurAfterBackoff),
            Due::Timer => Payload::Timer(TimerIntent::Trigger, Box::default()),
            Due::Messages => return expiry(state, now),
        };
        Command::new(key, payload)
    }
}

fn expiry(state: &State, now: Timestamp) -> Command {
    let due = state.tables.message_deadlines.iter(&()).map(|(due, _)| due).take_while(|(due, _)| *due <= now);
    let message_keys = due.take(MESSAGES_PER_COMMAND_MAX).map(|(_, key)| Key::from_raw(key)).collect();
    let value = MessageBatchValue { message_keys };
    Command::new(Key::NONE, Payload::MessageBatch(MessageBatchIntent::Expire, Box::new(value)))
}

/// The earliest due date.
pub(crate) fn next(state: &State) -> Option<Timestamp> {
    let tables = &state.tables;
    let queues = [&tables.job_deadlines, &tables.job_backoffs, &tables.due_timers, &tables.message_deadlines];
    queues.into_iter().filter_map(|queue| queue.first(&())).map(|((due, _), _)| due).min()
}
