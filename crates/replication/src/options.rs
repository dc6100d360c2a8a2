//! The limits and the timing of replication.

use crate::error::ReplicationError;

/// The limits and the timing of all groups of a node. Time is counted in calls of [`crate::Replicas::tick`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Where the jitter of elections comes from. Different nodes need different seeds.
    pub seed: u64,
    /// Ticks between two heartbeats of a leader.
    pub heartbeat_ticks: u32,
    /// Ticks without a leader after which a follower asks for votes, at least; at most twice as many.
    pub election_ticks: u32,
    /// The most bytes that one entry may have.
    pub max_entry_bytes: usize,
    /// The most bytes of entries in one message to a follower (one entry always fits).
    pub max_append_message_bytes: u64,
    /// The most messages with entries that are on their way to one follower.
    pub max_inflight_messages: usize,
    /// The most bytes of proposals in a group that are not committed yet.
    pub max_uncommitted_bytes: u64,
    /// The most bytes of committed entries that a group hands out in one step of a round (one entry always fits).
    pub max_committed_bytes: u64,
    /// The most bytes of entries that all groups together keep in memory for followers that lag behind a little.
    pub recent_entries_bytes: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            seed: 0,
            heartbeat_ticks: 2,
            election_ticks: 10,
            max_entry_bytes: 16 << 20,
            max_append_message_bytes: 1 << 20,
            max_inflight_messages: 256,
            max_uncommitted_bytes: 64 << 20,
            max_committed_bytes: 16 << 20,
            recent_entries_bytes: 64 << 20,
        }
    }
}

impl Options {
    /// The most bytes that a [`crate::Frame`] with a message may have, for the transport to refuse more unseen. (How large
    /// a chunk of a snapshot is, is up to the caller.)
    #[must_use]
    pub fn max_frame_bytes(&self) -> usize {
        // Terms, indexes and tags of each entry, of which even the smallest has a byte of its own to count; and the rest of
        // the message, a list of members included.
        const OVERHEAD_BYTES: usize = 64 << 10;
        let entries = usize::try_from(self.max_append_message_bytes).unwrap_or(usize::MAX);
        entries.max(self.max_entry_bytes).saturating_add(OVERHEAD_BYTES)
    }

    pub(crate) fn validate(&self) -> Result<(), ReplicationError> {
        let refuse = |option, value, rule| Err(ReplicationError::Option { option, value, rule });
        if self.heartbeat_ticks == 0 {
            return refuse("heartbeat_ticks", 0, "it must be at least 1");
        }
        if self.election_ticks <= self.heartbeat_ticks {
            return refuse("election_ticks", self.election_ticks.into(), "it must be more than heartbeat_ticks");
        }
        if self.max_inflight_messages == 0 {
            return refuse("max_inflight_messages", 0, "it must be at least 1");
        }
        let max_entry_bytes = self.max_entry_bytes as u64;
        if max_entry_bytes == 0 || max_entry_bytes > 1 << 30 {
            return refuse("max_entry_bytes", max_entry_bytes, "it must be between 1 and 1 GiB");
        }
        if self.max_uncommitted_bytes < max_entry_bytes {
            return refuse("max_uncommitted_bytes", self.max_uncommitted_bytes, "it must be at least max_entry_bytes");
        }
        if self.max_uncommitted_bytes < self.max_append_message_bytes {
            let rule = "it must be at least max_append_message_bytes";
            return refuse("max_uncommitted_bytes", self.max_uncommitted_bytes, rule);
        }
        Ok(())
    }
}
