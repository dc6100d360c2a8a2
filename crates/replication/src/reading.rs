//! Reading a log whose groups do not run.

use raft::eraftpb::EntryType;

use crate::error::LogError;
use crate::log_store::LogStore;
use crate::types::{Entry, GroupId, Position};

/// Where the log of a group begins and ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogRange {
    /// Index of the first entry; one more than `last` when there is none.
    pub first_index: u64,
    /// The last entry, or the entry before the log if it is empty.
    pub last: Position,
    /// Index up to which entries were known to be committed when the log was last written.
    pub committed_index: u64,
    /// The term of the group.
    pub term: u64,
}

/// Where the log of a group begins and ends; none if the log does not know the group.
pub fn range(log: &impl LogStore, group: GroupId) -> Result<Option<LogRange>, LogError> {
    let Some(stored) = log.load(group)? else { return Ok(None) };
    let (first_index, end) = (stored.anchor.compacted.index + 1, stored.last_index + 1);
    let last = match first_index < end {
        true => log.read(group, stored.last_index, end, 0)?.pop().map(|entry| entry.term),
        false => None,
    };
    let term = last.unwrap_or(stored.anchor.compacted.term);
    let hard_state = stored.hard_state;
    Ok(Some(LogRange {
        first_index,
        last: Position { index: stored.last_index, term },
        committed_index: hard_state.commit,
        term: hard_state.term,
    }))
}

/// Some of the entries `from..to`, without Raft's own, and the index from which to read on; at most about `max_bytes`.
pub fn proposed(
    log: &impl LogStore,
    group: GroupId,
    from: u64,
    to: u64,
    max_bytes: u64,
) -> Result<(Vec<Entry>, u64), LogError> {
    let entries = log.read(group, from, to, max_bytes)?;
    let next = entries.last().map_or(to, |entry| entry.index + 1);
    let is_proposed =
        |entry: &raft::eraftpb::Entry| entry.get_entry_type() == EntryType::EntryNormal && !entry.data.is_empty();
    let proposed = entries.into_iter().filter(is_proposed);
    Ok((proposed.map(|entry| Entry { index: entry.index, term: entry.term, data: entry.data }).collect(), next))
}
