//! What becomes due with time.

use std::sync::Arc;

use protocol::{
    Command, JobIntent, JobValue, Key, MessageBatchIntent, MessageBatchValue, Payload, TimerIntent, Timestamp,
};

use crate::state::{Due, State};

/// Messages that expire by one command; the next ones by the next, so that others have their turn between.
const MESSAGES_PER_COMMAND_MAX: usize = 500;

/// Commands for everything due at `now`, oldest due date first.
pub(crate) fn commands(state: &State, now: Timestamp, limit: usize) -> Vec<Command> {
    let is_due = |((due, _), _): &((Timestamp, i64), Due)| *due <= now;
    let mut due = Vec::new();
    for kind in Due::ALL {
        // One command for all messages.
        let limit = if let Due::Messages = kind { limit.min(1) } else { limit };
        let queue = kind.of(&state.tables);
        due.extend(queue.iter(&()).map(|(due, _)| (due, kind)).take_while(is_due).take(limit));
    }
    // Timers that are due together come in the order of what waits for them, as on the reference engine.
    due.sort_by_cached_key(|((due, key), kind)| (*due, kind.waiting(state, *key), *key));
    due.truncate(limit);
    due.into_iter().map(|((_, key), kind)| kind.command(state, Key::from_raw(key), now)).collect()
}

impl Due {
    /// The key that orders what is due at the same time.
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
        Command::of_system(key, payload)
    }
}

/// The command by which messages expire.
pub(crate) fn expire(message_keys: Vec<Key>) -> Command {
    let value = MessageBatchValue { message_keys };
    Command::of_system(Key::NONE, Payload::MessageBatch(MessageBatchIntent::Expire, Box::new(value)))
}

fn expiry(state: &State, now: Timestamp) -> Command {
    let due = state.tables.message_deadlines.iter(&()).map(|(due, _)| due).take_while(|(due, _)| *due <= now);
    expire(due.take(MESSAGES_PER_COMMAND_MAX).map(|(_, key)| Key::from_raw(key)).collect())
}

/// The earliest due date.
pub(crate) fn next(state: &State) -> Option<Timestamp> {
    let queues = Due::ALL.into_iter().map(|kind| kind.of(&state.tables));
    queues.filter_map(|queue| queue.first(&())).map(|((due, _), _)| due).min()
}
