//! What Raft sees of one group's log: its newest entries in memory, the older ones in the shared log.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::Arc;

use raft::eraftpb::{ConfState, Entry, HardState, Snapshot};
use raft::{GetEntriesContext, RaftState, Storage, StorageError};

use crate::error::LogError;
use crate::log_store::{Anchor, LogStore};
use crate::types::{GroupId, Position};

/// One group's log as Raft reads it. Only what is durable (or in the round's batch that is being made durable) is here.
pub(crate) struct GroupStorage<L> {
    group: GroupId,
    log: Arc<L>,
    pub(crate) hard_state: HardState,
    /// Whether `hard_state` has something that the log does not have yet (the commit index may lag behind).
    pub(crate) hard_state_changed: bool,
    pub(crate) anchor: Anchor,
    last_index: u64,
    /// The newest entries, without gaps, up to `last_index`.
    recent: VecDeque<Entry>,
    recent_bytes: u64,
    /// The members at and after the checkpoint: each configuration with the index from which it is valid.
    membership_history: Vec<(u64, ConfState)>,
    /// The newest durable state of the state machine, from which a snapshot can be sent.
    checkpoint: Option<(Position, ConfState)>,
    /// Raft asked for a snapshot that the checkpoint cannot give.
    newer_checkpoint_wanted: Cell<bool>,
    /// A read that failed. Raft has no way to carry it, so the round picks it up here.
    failure: RefCell<Option<LogError>>,
    /// Up to this index entries may be unreadable that only followers need: snapshots must include them.
    unreadable: Cell<u64>,
}

impl<L: LogStore> GroupStorage<L> {
    pub(crate) fn new(group: GroupId, log: Arc<L>, hard_state: HardState, anchor: Anchor, last_index: u64) -> Self {
        let membership_history = vec![(anchor.membership_index, anchor.membership.clone())];
        Self {
            group,
            log,
            hard_state,
            hard_state_changed: false,
            anchor,
            last_index,
            recent: VecDeque::new(),
            recent_bytes: 0,
            membership_history,
            checkpoint: None,
            newer_checkpoint_wanted: Cell::new(false),
            failure: RefCell::new(None),
            unreadable: Cell::new(0),
        }
    }

    pub(crate) fn first(&self) -> u64 {
        self.anchor.compacted.index + 1
    }

    pub(crate) fn take_failure(&self) -> Option<LogError> {
        self.failure.borrow_mut().take()
    }

    pub(crate) fn take_newer_checkpoint_wanted(&self) -> bool {
        self.newer_checkpoint_wanted.take()
    }

    /// Takes entries in that are durable now. They replace what was there from the first one's index on.
    pub(crate) fn append(&mut self, entries: Vec<Entry>) {
        let (Some(first), Some(last)) = (entries.first(), entries.last()) else {
            return;
        };
        assert!(
            first.index > self.anchor.compacted.index && first.index <= self.last_index + 1,
            "Raft appends without a gap and never rewrites compacted entries"
        );
        while let Some(entry) = self.recent.pop_back_if(|entry| entry.index >= first.index) {
            self.recent_bytes -= footprint(&entry);
        }
        let last_index = last.index;
        self.recent_bytes += entries.iter().map(footprint).sum::<u64>();
        self.recent.extend(entries);
        self.last_index = last_index;
    }

    /// The group starts afresh from a snapshot.
    pub(crate) fn replace(&mut self, anchor: Anchor) {
        self.last_index = anchor.compacted.index;
        self.recent.clear();
        self.recent_bytes = 0;
        self.membership_history = vec![(anchor.membership_index, anchor.membership.clone())];
        self.checkpoint = None;
        self.unreadable.set(0);
        self.anchor = anchor;
    }

    /// Forgets entries in memory up to `handed_out` (they are no longer needed here) while they exceed the limit.
    pub(crate) fn trim_recent(&mut self, handed_out: u64, limit_bytes: u64) {
        while self.recent_bytes > limit_bytes {
            let Some(entry) = self.recent.pop_front_if(|entry| entry.index <= handed_out) else {
                return;
            };
            self.recent_bytes -= footprint(&entry);
        }
    }

    /// Notes that the members changed with the entry at `index`.
    pub(crate) fn membership_changed(&mut self, index: u64, membership: ConfState) {
        self.anchor.membership = membership.clone();
        self.anchor.membership_index = index;
        self.membership_history.push((index, membership));
    }

    /// Notes that the state machine is durable up to `index`.
    pub(crate) fn set_checkpoint(&mut self, index: u64) -> Result<(), LogError> {
        let term = self.stored_term(index)?;
        let Some(membership) = self.membership_at(index).cloned() else {
            // Only after a restart, when the members changed behind the checkpoint: the older members are not known any
            // more, so snapshots have to wait for the next checkpoint.
            return Ok(());
        };
        self.checkpoint = Some((Position { index, term }, membership));
        let current = self.membership_history.partition_point(|(from, _)| *from <= index) - 1;
        self.membership_history.drain(..current);
        Ok(())
    }

    pub(crate) fn checkpoint_index(&self) -> u64 {
        self.checkpoint.as_ref().map_or(0, |(position, _)| position.index)
    }

    /// Drops the entries up to `index`. `true` when there was something to drop: the anchor is to be written.
    pub(crate) fn compact(&mut self, index: u64) -> Result<bool, LogError> {
        if index <= self.anchor.compacted.index {
            return Ok(false);
        }
        let term = self.stored_term(index)?;
        self.anchor.compacted = Position { index, term };
        while let Some(entry) = self.recent.pop_front_if(|entry| entry.index <= index) {
            self.recent_bytes -= footprint(&entry);
        }
        Ok(true)
    }

    /// A snapshot's description at `index`, if the log can still vouch for it.
    pub(crate) fn snapshot_at(&self, index: u64) -> Result<Option<Snapshot>, LogError> {
        if index < self.anchor.compacted.index || index > self.last_index {
            return Ok(None);
        }
        let term = self.stored_term(index)?;
        Ok(self.membership_at(index).map(|membership| describe(Position { index, term }, membership)))
    }

    fn membership_at(&self, index: u64) -> Option<&ConfState> {
        self.membership_history.iter().rev().find(|(from, _)| *from <= index).map(|(_, membership)| membership)
    }

    fn recent_from(&self) -> u64 {
        self.recent.front().map_or(self.last_index + 1, |entry| entry.index)
    }

    fn recent_position(&self, index: u64) -> usize {
        usize::try_from(index - self.recent_from()).expect("entries in memory fit into memory")
    }

    fn stored_term(&self, index: u64) -> Result<u64, LogError> {
        if index == self.anchor.compacted.index {
            return Ok(self.anchor.compacted.term);
        }
        if index < self.anchor.compacted.index || index > self.last_index {
            let (first_index, last_index) = (self.first(), self.last_index);
            return Err(LogError::OutOfRange { group: self.group, wanted: index, first_index, last_index });
        }
        if index >= self.recent_from() {
            return Ok(self.recent[self.recent_position(index)].term);
        }
        let entries = self.log.read(self.group, index, index + 1, u64::MAX)?;
        Ok(entries.first().expect("a read of an existing entry returns it").term)
    }

    fn note_failure(&self, error: LogError) {
        self.failure.borrow_mut().get_or_insert(error);
    }

    /// A follower needs entries that cannot be read: it gets a snapshot that includes them.
    fn note_unreadable(&self, up_to: u64, error: &LogError) {
        if up_to > self.unreadable.replace(self.unreadable.get().max(up_to)) {
            tracing::warn!(
                group = self.group.0, up_to, %error,
                "entries of the log that a follower needs cannot be read, so it gets a snapshot in their place"
            );
        }
    }
}

/// About what an entry costs in memory and in a message.
fn footprint(entry: &Entry) -> u64 {
    const OVERHEAD_BYTES: u64 = 64;
    u64::try_from(entry.data.len()).map_or(u64::MAX, |bytes| bytes.saturating_add(OVERHEAD_BYTES))
}

fn describe(position: Position, membership: &ConfState) -> Snapshot {
    let mut snapshot = Snapshot::default();
    let metadata = snapshot.mut_metadata();
    metadata.index = position.index;
    metadata.term = position.term;
    metadata.set_conf_state(membership.clone());
    snapshot
}

impl<L: LogStore> Storage for GroupStorage<L> {
    fn initial_state(&self) -> raft::Result<RaftState> {
        Ok(RaftState::new(self.hard_state.clone(), self.anchor.membership.clone()))
    }

    fn entries(
        &self,
        low: u64,
        high: u64,
        max_size: impl Into<Option<u64>>,
        context: GetEntriesContext,
    ) -> raft::Result<Vec<Entry>> {
        // Reading below the first index would panic in the log (or return what was replaced since): never ask for it.
        if low < self.first() {
            return Err(StorageError::Compacted.into());
        }
        assert!(high <= self.last_index + 1, "Raft reads no entries behind the end of its log");
        let max_bytes = max_size.into().unwrap_or(u64::MAX);
        let recent_from = self.recent_from();
        if low < recent_from {
            // A part of what was asked for is allowed: Raft asks again for the rest.
            return match self.log.read(self.group, low, high.min(recent_from), max_bytes) {
                Ok(entries) => Ok(entries),
                // Only what is sent to followers may be fetched later, and they can be helped with a snapshot. A failed sync
                // concerns the whole log.
                Err(error) if context.can_async() && !matches!(error, LogError::SyncFailed { .. }) => {
                    self.note_unreadable(high.min(recent_from) - 1, &error);
                    Err(StorageError::Compacted.into())
                }
                Err(error) => {
                    // Raft would panic on any error. No entries make it wait, and the round reports the failure.
                    self.note_failure(error);
                    Ok(Vec::new())
                }
            };
        }
        let mut bytes = 0u64;
        let range = self.recent_position(low)..self.recent_position(high);
        let fitting = self.recent.range(range.clone()).take_while(|entry| {
            let first = bytes == 0;
            bytes = bytes.saturating_add(footprint(entry));
            first || bytes <= max_bytes
        });
        Ok(fitting.cloned().collect())
    }

    fn term(&self, index: u64) -> raft::Result<u64> {
        if index < self.anchor.compacted.index {
            return Err(StorageError::Compacted.into());
        }
        if index > self.last_index {
            return Err(StorageError::Unavailable.into());
        }
        self.stored_term(index).map_err(|error| {
            // What the state holds matters to nobody but a follower that lacks it.
            if index <= self.checkpoint_index() && !matches!(error, LogError::SyncFailed { .. }) {
                self.note_unreadable(index, &error);
                return StorageError::Compacted.into();
            }
            self.note_failure(error);
            StorageError::Unavailable.into()
        })
    }

    fn first_index(&self) -> raft::Result<u64> {
        Ok(self.first())
    }

    fn last_index(&self) -> raft::Result<u64> {
        Ok(self.last_index)
    }

    fn snapshot(&self, request_index: u64, to: u64) -> raft::Result<Snapshot> {
        match &self.checkpoint {
            // A follower ignores a snapshot that does not list it among the members.
            Some((position, membership))
                if position.index > 0
                    && position.index >= request_index.max(self.unreadable.get())
                    && [
                        &membership.voters,
                        &membership.learners,
                        &membership.voters_outgoing,
                        &membership.learners_next,
                    ]
                    .into_iter()
                    .any(|members| members.contains(&to)) =>
            {
                Ok(describe(*position, membership))
            }
            _ => {
                self.newer_checkpoint_wanted.set(true);
                Err(StorageError::SnapshotTemporarilyUnavailable.into())
            }
        }
    }
}
