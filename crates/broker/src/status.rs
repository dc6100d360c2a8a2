//! How a partition is.

use protocol::PartitionId;

/// What a replica does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It takes commands and carries out their effects.
    Leader,
    /// It follows the leader.
    Follower,
    /// It does neither: it is starting or has stopped.
    Inactive,
}

/// How a replica is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    /// It works.
    Healthy,
    /// It does not make progress now and tries again: for example, the disk is full.
    Unhealthy,
    /// It stopped because its state cannot be trusted.
    Dead,
    /// The node started without it, because its process ended repeatedly while something of it was applied. Another
    /// start changes nothing, so the node continues with the others until an operator decides.
    LeftOut,
}

impl Health {
    /// Whether nothing more happens here until the node is started again.
    pub fn has_stopped(self) -> bool {
        matches!(self, Health::Dead | Health::LeftOut)
    }
}

/// A replica of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartitionView {
    /// The partition.
    pub id: PartitionId,
    /// What the replica does.
    pub role: Role,
    /// How it is.
    pub health: Health,
}

/// What a partition needs and can wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Trouble {
    /// Writing the log.
    Log = 1,
    /// Writing the record stream.
    Records = 2,
    /// Writing a checkpoint of the state.
    Checkpoint = 4,
}
