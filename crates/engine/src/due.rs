//! What becomes due with time.

use std::sync::Arc;

use protocol::{Command, JobIntent, JobValue, Key, Payload, Timestamp};

use crate::state::State;

/// Commands for everything due at `now`, oldest due date first.
pub(crate) fn commands(state: &State, now: Timestamp, limit: usize) -> Vec<Command> {
    let tables = &state.tables;
    let deadlines = tables.job_deadlines.iter(&()).map(|(due, _)| (due, JobIntent::TimeOut));
    let backoffs = tables.job_backoffs.iter(&()).map(|(due, _)| (due, JobIntent::RecurAfterBackoff));
    let is_due = |((due, _), _): &((Timestamp, i64), JobIntent)| *due <= now;
    let mut due: Vec<_> = deadlines.take_while(is_due).take(limit).collect();
    due.extend(backoffs.take_while(is_due).take(limit));
    due.sort_by_key(|(due, _)| *due);
    due.truncate(limit);
    due.into_iter()
        .map(|((_, key), intent)| Command::new(Key::from_raw(key), Payload::Job(intent, Arc::new(JobValue::default()))))
        .collect()
}

/// The earliest due date.
pub(crate) fn next(state: &State) -> Option<Timestamp> {
    let deadline = state.tables.job_deadlines.first(&()).map(|((due, _), _)| due);
    let backoff = state.tables.job_backoffs.first(&()).map(|((due, _), _)| due);
    deadline.into_iter().chain(backoff).min()
}
