//! What a round brings.

use raft::eraftpb;

use crate::error::LogError;
use crate::log_store::WriteReport;
use crate::types::{Entry, GroupId, Membership, NodeId, Position, Role};

/// What a round brought.
#[derive(Debug, Default)]
pub struct Round {
    /// Newly committed entries per group, to be applied in this order. Snapshots of the same group come first.
    pub committed: Vec<Committed>,
    /// Snapshots that Raft accepted: the state that was staged for them must replace the group's state now.
    pub snapshots_to_install: Vec<(GroupId, Position)>,
    /// Followers that need a snapshot from this node.
    pub snapshots_to_send: Vec<SnapshotRequest>,
    /// Groups that cannot send the snapshot a follower needs before their state machine makes a newer checkpoint.
    pub checkpoints_wanted: Vec<GroupId>,
    /// Changes of role, leader or term.
    pub role_changes: Vec<RoleChange>,
    /// Groups that this node leads (in this term) and whose state, once `committed` is applied, includes everything that
    /// was acknowledged by earlier leaders.
    pub caught_up: Vec<(GroupId, u64)>,
    /// Groups whose members changed, with the members that they have now.
    pub membership_changes: Vec<(GroupId, Membership)>,
    /// Groups whose log cannot be read: they take no part in anything any more until they are opened again.
    pub failed: Vec<(GroupId, LogError)>,
    /// What was written, and how long it took.
    pub write: WriteReport,
    /// How many synced writes the round needed: 0 if there was nothing to write; 2 if members changed.
    pub syncs: u32,
    /// There is more to do already: call again without waiting for anything.
    pub more: bool,
}

/// Committed entries of one group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed {
    /// The group.
    pub group: GroupId,
    /// The entries that were proposed by callers. May be empty.
    pub entries: Vec<Entry>,
    /// The index that a state machine has reached after these entries (Raft's own included).
    pub up_to: u64,
}

/// What this node is in a group from now on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleChange {
    /// The group.
    pub group: GroupId,
    /// This node's role.
    pub role: Role,
    /// The leader, if known.
    pub leader: Option<NodeId>,
    /// The term.
    pub term: u64,
}

/// A follower needs a snapshot: open the newest durable state of the group, get the message for it from
/// [`crate::Replicas::snapshot_message`], send both, and report with [`crate::Replicas::snapshot_sent`].
#[derive(Debug, Clone, PartialEq)]
pub struct SnapshotRequest {
    /// The group.
    pub group: GroupId,
    /// Who needs it.
    pub to: NodeId,
    /// The oldest state that helps.
    pub at_least: Position,
    pub(crate) message: eraftpb::Message,
}

impl Round {
    pub(crate) fn note_write(&mut self, report: WriteReport) {
        self.write.bytes += report.bytes;
        self.write.duration += report.duration;
        self.syncs += 1;
    }
}
