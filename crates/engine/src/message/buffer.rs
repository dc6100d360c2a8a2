//! Messages that are kept until they expire.
//!
//! A message goes to a process once, and stays for other processes. So that finding the next one does not pass all that went
//! to the process before, a cursor is kept for a process that took several messages of a place. What was rejected behind the
//! cursor is kept apart.

use std::sync::Arc;

use protocol::{Key, Text, Timestamp};

use super::place;
use crate::state::{MessagePlace, MessageRow, State};

/// Messages that are passed one by one before the cursor moves.
const STEP: usize = 4;

/// The oldest message of a place that was not correlated to a process and has not expired.
pub(crate) fn next_message(state: &State, place: MessagePlace, process_id: &Text, now: Timestamp) -> Option<Key> {
    let is_kept = |message: &i64| state.tables.messages.get(message).is_some_and(|row| row.value.deadline > now);
    let process = (place, process_id.shared().clone());
    let released = (process.clone(), i64::MIN)..=(process.clone(), i64::MAX);
    let released = state.tables.released_messages.range(released).map(|((_, message), _)| message);
    let mut others = behind_cursor(state, &process)
        .filter(|message| !state.tables.message_correlations.contains(&(*message, process.1.clone())));
    released.into_iter().find(is_kept).or_else(|| others.find(is_kept)).map(Key::from_raw)
}

fn behind_cursor<'a>(state: &'a State, process: &(MessagePlace, Arc<str>)) -> impl Iterator<Item = i64> + use<'a> {
    let from = state.tables.message_cursors.get(process).map_or(i64::MIN, |cursor| cursor.saturating_add(1));
    let range = (process.0.clone(), from)..=(process.0.clone(), i64::MAX);
    state.tables.messages_by_place.range(range).map(|((_, message), _)| message)
}

/// Notes that a message went to a process. What is not kept cannot go anywhere again.
pub(crate) fn correlated(state: &mut State, message: Key, process_id: &Text) {
    let Some(row) = state.tables.messages.get(&message.raw()) else { return };
    let process = process_at(&row, process_id.shared());
    state.tables.message_correlations.put((message.raw(), process.1.clone()), ());
    state.tables.released_messages.delete(&(process.clone(), message.raw()));
    let is_correlated = |message: &i64| state.tables.message_correlations.contains(&(*message, process.1.clone()));
    let mut passed = behind_cursor(state, &process).take_while(is_correlated);
    if let Some(cursor) = passed.by_ref().nth(STEP - 1) {
        let cursor = passed.last().unwrap_or(cursor);
        state.tables.message_cursors.put(process, cursor);
    }
}

/// Notes that a message did not arrive, and so may go to the process again.
pub(crate) fn released(state: &mut State, message: Key, process_id: &Text) {
    let Some(row) = state.tables.messages.get(&message.raw()) else { return };
    let process = process_at(&row, process_id.shared());
    if state.tables.message_cursors.get(&process).is_some_and(|cursor| message.raw() <= *cursor) {
        state.tables.released_messages.put((process, message.raw()), ());
    } else {
        state.tables.message_correlations.delete(&(message.raw(), process.1));
    }
}

/// Forgets where a message went.
pub(crate) fn forget(state: &mut State, message: Key, row: &MessageRow) {
    let (raw, nothing) = (message.raw(), Arc::<str>::default());
    let correlations = state.tables.message_correlations.range((raw, nothing.clone())..(raw + 1, nothing));
    let correlations: Vec<_> = correlations.map(|(correlation, _)| correlation).collect();
    for correlation in correlations {
        let process = process_at(row, &correlation.1);
        state.tables.message_correlations.delete(&correlation);
        if state.tables.message_cursors.get(&process).is_some_and(|cursor| *cursor == raw) {
            // What is before it is about to expire too, mostly.
            state.tables.message_cursors.delete(&process);
        }
        state.tables.released_messages.delete(&(process, raw));
    }
}

fn process_at(row: &MessageRow, process_id: &Arc<str>) -> (MessagePlace, Arc<str>) {
    (place(&row.value.tenant_id, &row.value.name, &row.value.correlation_key), process_id.clone())
}
