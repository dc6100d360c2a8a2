//! What becomes due with time.

use std::sync::Arc;

use protocol::{Command, JobIntent, JobValue, Key, Payload, TimerIntent, Timestamp};

use crate::state::State;

/// Commands for everything due at `now`, oldest due date first.
pub(crate) fn commands(state: &State, now: Timestamp, limit: usize) -> Vec<Command> {
    let tables = &state.tables;
    let is_due = |((due, _), _): &((Timestamp, i64), Due)| *due <= now;
    let queues = [
        (&tables.job_deadlines, Due::JobTimeOut),
        (&tables.job_backoffs, Due::JobBackoff),
        (&tables.due_timers, Due::Timer),
    ];
    let mut due = Vec::new();
    for (queue, kind) in queues {
        due.extend(queue.iter(&()).map(|(place, _)| (place, kind)).take_while(is_due).take(limit));
    }
    due.sort_by_key(|(place, _)| *place);
    due.truncate(limit);
    due.into_iter().map(|((_, key), kind)| kind.command(Key::from_raw(key))).collect()
}

/// What can be due.
#[derive(Clone, Copy)]
enum Due {
    JobTimeOut,
    JobBackoff,
    Timer,
}

impl Due {
    fn command(self, key: Key) -> Command {
        let job = |intent| Payload::Job(intent, Arc::new(JobValue::default()));
        let payload = match self {
            Due::JobTimeOut => job(JobIntent::TimeOut),
            Due::JobBackoff => job(JobIntent::RecurAfterBackoff),
            Due::Timer => Payload::Timer(TimerIntent::Trigger, Box::default()),
        };
        Command::new(key, payload)
    }
}

/// The earliest due date.
pub(crate) fn next(state: &State) -> Option<Timestamp> {
    let tables = &state.tables;
    let queues = [&tables.job_deadlines, &tables.job_backoffs, &tables.due_timers];
    queues.into_iter().filter_map(|queue| queue.first(&())).map(|((due, _), _)| due).min()
}
