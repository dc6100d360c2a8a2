//! The durable log of a node, shared by all of its groups.

use std::time::Duration;

use raft::eraftpb::{ConfState, Entry, HardState};

use crate::error::{LogError, ReplicationError};
use crate::types::{GroupId, Position};

/// The durable log of a node: the entries and the Raft state of all its groups.
///
/// Implementations are shared with a background thread that calls [`LogStore::reclaim_space`], and with whoever reads about a
/// group that is not open yet; all other calls come from the one thread that drives [`crate::Replicas`].
pub trait LogStore: Send + Sync + 'static {
    /// The groups that the log knows, in ascending order.
    fn groups(&self) -> Result<Vec<GroupId>, LogError>;

    /// What the log knows about a group, without its entries.
    fn load(&self, group: GroupId) -> Result<Option<StoredGroup>, LogError>;

    /// Writes all of the batch or nothing of it, in order, and returns when it is durable: one write and one sync, however
    /// many groups take part. After an error nothing of the batch is visible, and the same batch may be written again,
    /// except after [`LogError::SyncFailed`], which is final.
    fn write(&self, batch: &WriteBatch) -> Result<WriteReport, LogError>;

    /// Reads the entries `from..to`, at most `max_bytes` of them but at least one.
    fn read(&self, group: GroupId, from: u64, to: u64, max_bytes: u64) -> Result<Vec<Entry>, LogError>;

    /// Gives the space of compacted entries back. Slow, so it is for a background thread; writes continue meanwhile.
    fn reclaim_space(&self) -> Result<SpaceReport, LogError>;
}

/// What a log knows about a group, besides its entries.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredGroup {
    /// Raft's term, vote and commit index.
    pub hard_state: HardState,
    /// The position before the log's first entry, and the members there.
    pub anchor: Anchor,
    /// The last index in the log; that of the anchor if there are no entries.
    pub last_index: u64,
}

impl StoredGroup {
    /// Whether a state machine that is durable up to `applied` can go on with this log.
    ///
    /// # Errors
    /// [`ReplicationError::StateBehindLog`] or [`ReplicationError::StateAheadOfLog`].
    pub fn check_applied(&self, group: GroupId, applied: u64) -> Result<(), ReplicationError> {
        let (compacted, last_index) = (self.anchor.compacted.index, self.last_index);
        if applied < compacted {
            return Err(ReplicationError::StateBehindLog { group, applied, compacted });
        }
        if applied > last_index {
            return Err(ReplicationError::StateAheadOfLog { group, applied, last_index });
        }
        Ok(())
    }
}

/// The state that a group's log builds on.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Anchor {
    /// The last position that is not in the log any more; entries follow from `compacted.index + 1`.
    pub compacted: Position,
    /// The members of the group ...
    pub membership: ConfState,
    /// ... as of this index. Changes up to this index must not be applied again.
    pub membership_index: u64,
}

/// What is written together.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct WriteBatch {
    /// The writes in order; a group may occur several times.
    pub writes: Vec<(GroupId, GroupWrite)>,
}

/// What is written for one group.
#[derive(Debug, Clone, PartialEq)]
pub enum GroupWrite {
    /// The group starts afresh: it was created, or it installs a snapshot. Whatever the log knew about it is dropped.
    Replace {
        /// Raft's term, vote and commit index.
        hard_state: HardState,
        /// What the log builds on.
        anchor: Anchor,
        /// The entries directly after the anchor.
        entries: Vec<Entry>,
    },
    /// The group continues.
    Append {
        /// New entries without gaps. They replace existing ones from the first one's index on.
        entries: Vec<Entry>,
        /// A new hard state, if it changed.
        hard_state: Option<HardState>,
        /// A new anchor, if it changed. Entries up to `compacted.index` are dropped.
        anchor: Option<Anchor>,
    },
    /// The group leaves this node.
    Remove,
}

/// What a write cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WriteReport {
    /// Bytes that were written.
    pub bytes: u64,
    /// How long writing and syncing took.
    pub duration: Duration,
}

/// What reclaiming space came to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SpaceReport {
    /// Groups whose old entries keep files alive: checkpoint their state and compact them.
    pub holding_space: Vec<GroupId>,
    /// Bytes of disk (or memory) that the log uses now.
    pub used_bytes: u64,
}
