//! Messages that are kept until they expire.

use std::sync::Arc;

use protocol::{Key, Timestamp};

use crate::state::{MessagePlace, State};

/// The oldest message of a place that was not correlated to a process and has not expired.
pub(crate) fn next_message(state: &State, place: &MessagePlace, process_id: &Arc<str>, now: Timestamp) -> Option<Key> {
    let range = (place.clone(), i64::MIN)..=(place.clone(), i64::MAX);
    state.tables.messages_by_place.range(range).map(|((_, message), _)| message).find_map(|message| {
        let is_expired = state.tables.messages.get(&message).is_none_or(|row| row.value.deadline <= now);
        let is_correlated = state.tables.message_correlations.contains(&(message, process_id.clone()));
        (!is_expired && !is_correlated).then(|| Key::from_raw(message))
    })
}
