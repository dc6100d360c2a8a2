//! Messages that are kept until they expire.
//!
//! A message goes to a process once and stays for other processes. A cursor is kept for a process that took several
//! messages of an address, so that finding the next one does not pass over all earlier ones. Messages behind the cursor
//! that were rejected are kept separately.

use protocol::{Key, Text, Timestamp};

use crate::state::{MessageAddress, State};

/// The oldest message of an address that was not correlated to a process and has not expired.
pub(crate) fn next_message(state: &State, address: MessageAddress, process_id: &Text, now: Timestamp) -> Option<Key> {
    let is_kept = |message: &i64| state.tables.messages.get(message).is_some_and(|row| row.value.deadline > now);
    let process = (address, process_id.shared().clone());
    let released = state.tables.released_messages.prefix(&process).map(|((_, message), _)| message);
    let mut others = state
        .messages_behind_cursor(&process)
        .filter(|message| !state.tables.message_correlations.contains(&(*message, process.1.clone())));
    released.into_iter().find(is_kept).or_else(|| others.find(is_kept)).map(Key::from_raw)
}
