//! Where the messages that are kept went, and which of them may go there again: see [`crate::message::buffer`].

use std::sync::Arc;

use protocol::{Key, Text};

use crate::state::{MessageAddress, MessageRow, State, message_address};

/// Messages that are passed one by one before the cursor moves.
const STEP: usize = 4;

/// Notes that a message went to a process.
pub(super) fn correlated(state: &mut State, message: Key, process_id: &Text) {
    let Some(row) = state.tables.messages.get(&message.raw()) else {
        return super::change::broken(state, format!("message {message} is not there"));
    };
    let process = process_at(&row, process_id.shared());
    state.tables.message_correlations.put((message.raw(), process.1.clone()), ());
    state.tables.released_messages.delete(&(process.clone(), message.raw()));
    let is_correlated = |message: &i64| state.tables.message_correlations.contains(&(*message, process.1.clone()));
    let mut passed = state.messages_behind_cursor(&process).take_while(is_correlated);
    if let Some(cursor) = passed.by_ref().nth(STEP - 1) {
        let cursor = passed.last().unwrap_or(cursor);
        state.tables.message_cursors.put(process, cursor);
    }
}

/// Notes that a message did not arrive, and so may go to the process again. It may have expired on the way.
pub(super) fn released(state: &mut State, message: Key, process_id: &Text) {
    let Some(row) = state.tables.messages.get(&message.raw()) else { return };
    let process = process_at(&row, process_id.shared());
    if state.tables.message_cursors.get(&process).is_some_and(|cursor| message.raw() <= *cursor) {
        state.tables.released_messages.put((process, message.raw()), ());
    } else {
        state.tables.message_correlations.delete(&(message.raw(), process.1));
    }
}

/// Forgets where a message went.
pub(super) fn forget(state: &mut State, message: Key, row: &MessageRow) {
    let raw = message.raw();
    let correlations: Vec<_> =
        state.tables.message_correlations.prefix(&raw).map(|(correlation, _)| correlation).collect();
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

fn process_at(row: &MessageRow, process_id: &Arc<str>) -> (MessageAddress, Arc<str>) {
    (message_address(&row.value.tenant_id, &row.value.name, &row.value.correlation_key), process_id.clone())
}
