//! What can go wrong, said so that an operator knows what to do.

use std::path::PathBuf;

use crate::types::{GroupId, NodeId};

/// The log of a node cannot be opened, read or written.
#[derive(Debug, Clone, thiserror::Error)]
#[allow(missing_docs, reason = "the message says what each field is")]
pub enum LogError {
    /// Another process uses the directory.
    #[error(
        "The log directory {directory} is in use by another process: stop that process or choose another data directory."
    )]
    InUse { directory: PathBuf },
    /// The log was used before, and its files are missing.
    #[error(
        "The log directory {directory} has lost its directory 'files' with everything that was logged: put it back, or restore a backup."
    )]
    FilesMissing { directory: PathBuf },
    /// The directory holds something that this version does not understand.
    #[error(
        "The log directory {directory} has {found}, but this version understands only log format {supported}: start the version that wrote it, or restore a backup."
    )]
    UnknownFormat {
        directory: PathBuf,
        /// What is there instead.
        found: String,
        /// The format that this version reads and writes.
        supported: u32,
    },
    /// Bytes in the middle of the log changed after they were written.
    #[error(
        "The log file {file} is damaged at byte {offset}: {problem}. Entries behind this place were acknowledged, so the node does not start without them: restore this node's data from a backup. Only a node with other replicas may instead have its data removed and catch up as a new replica."
    )]
    Damaged {
        file: PathBuf,
        /// Where in the file the damaged record starts.
        offset: u64,
        /// What does not fit.
        problem: String,
    },
    /// A record of a group cannot be read back.
    #[error(
        "The log record {record} of group {group} cannot be read: {problem}. Restore this node's data from a backup. Only a node with other replicas may instead have its data removed and catch up as a new replica."
    )]
    Unreadable {
        group: GroupId,
        record: String,
        /// What does not fit.
        problem: String,
    },
    /// The entries asked for are no longer (or not yet) in the log.
    #[error("The log of group {group} holds the entries {first_index} to {last_index}, not {wanted}.")]
    OutOfRange {
        group: GroupId,
        /// The index that was asked for.
        wanted: u64,
        /// The first index in the log.
        first_index: u64,
        /// The last index in the log.
        last_index: u64,
    },
    /// The operating system refused. The same write may be tried again.
    #[error("{action} in {place} failed: {problem}.")]
    Io {
        action: &'static str,
        place: PathBuf,
        /// The operating system's words.
        problem: String,
    },
    /// A sync failed. What is on disk is unknown, so this log refuses everything from then on.
    #[error(
        "Syncing the log in {place} failed ({problem}): it is unknown what reached the disk, so this process must stop. Check the disk, then start again: the log is verified at the start."
    )]
    SyncFailed {
        place: PathBuf,
        /// What the sync answered.
        problem: String,
    },
    /// The (simulated) machine stopped in the middle of the write.
    #[error("The node crashed during the write.")]
    Crashed,
}

/// Replication cannot continue, for a group or for the node.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the message says what each field is")]
pub enum ReplicationError {
    /// The log failed.
    #[error(transparent)]
    Log(#[from] LogError),
    /// An option makes no sense.
    #[error("The replication option {option} is {value}, but {rule}.")]
    Option {
        option: &'static str,
        value: u64,
        /// What it must be.
        rule: &'static str,
    },
    /// The group is open on this node already.
    #[error("Group {0} is open on this node already.")]
    GroupExists(GroupId),
    /// The group is not open on this node.
    #[error("Group {0} is not open on this node.")]
    UnknownGroup(GroupId),
    /// The state machine's checkpoint lies before the first entry of the log.
    #[error(
        "The state of group {group} is at index {applied}, but its log starts after index {compacted}: install the snapshot of index {compacted} (or a newer one) before opening the group."
    )]
    StateBehindLog {
        group: GroupId,
        applied: u64,
        /// The last index that is not in the log any more.
        compacted: u64,
    },
    /// The state machine's checkpoint lies behind the end of the log.
    #[error(
        "The state of group {group} is at index {applied}, but its log ends at index {last_index}: log and state do not belong together. Restore both from the same backup. Only a node with other replicas may instead have both removed and catch up as a new replica."
    )]
    StateAheadOfLog {
        group: GroupId,
        applied: u64,
        /// The last index in the log.
        last_index: u64,
    },
    /// Raft refuses the stored state.
    #[error("Raft refuses the stored state of group {group}: {problem}.")]
    Raft { group: GroupId, problem: String },
}

/// A proposal was not accepted; nothing was appended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the message says what each field is")]
pub enum ProposeError {
    /// The group is not open on this node.
    #[error("Group {0} is not open on this node.")]
    UnknownGroup(GroupId),
    /// Another node leads the group, or none does at the moment.
    #[error("This node does not lead group {group}; the leader is {}.", leader.map_or_else(|| "not known at the moment".to_owned(), |node| format!("node {node}")))]
    NotLeader {
        group: GroupId,
        /// The leader, if known.
        leader: Option<NodeId>,
    },
    /// The leadership is being handed to another node.
    #[error("The leadership of group {group} is being transferred to node {to}.")]
    TransferInProgress { group: GroupId, to: NodeId },
    /// An entry without bytes looks like one of Raft's own.
    #[error("An entry must hold at least one byte.")]
    Empty,
    /// The entry exceeds the limit.
    #[error("The entry has {bytes} bytes, more than the {limit_bytes} bytes that one entry may have.")]
    TooLarge { bytes: usize, limit_bytes: usize },
    /// Too much was proposed that is not committed yet.
    #[error(
        "Group {group} has {limit_bytes} bytes of proposals that are not committed yet, which is the limit: propose again later."
    )]
    Backlog { group: GroupId, limit_bytes: u64 },
    /// A change of members is under way; only one is allowed at a time.
    #[error("A change of the members of group {0} is under way: try again when it is done.")]
    MembershipChangeInProgress(GroupId),
    /// The change makes no sense.
    #[error("The members of group {group} cannot be changed so: {problem}.")]
    InvalidMembershipChange { group: GroupId, problem: String },
    /// The last write failed and has to be repeated first.
    #[error("The log did not accept the last write, so nothing can be proposed until it does.")]
    LogUnavailable,
}

/// A message from another node was not processed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the message says what each field is")]
pub enum StepError {
    /// The group is not open on this node.
    #[error("Group {0} is not open on this node.")]
    UnknownGroup(GroupId),
    /// The message is for another node.
    #[error("A message for node {to} arrived at node {here}.")]
    WrongNode { to: NodeId, here: NodeId },
    /// The message is of a kind that never travels between nodes here.
    #[error("A message of kind {0} does not travel between nodes.")]
    UnexpectedKind(String),
    /// The leader knows entries as committed which this node acknowledged once and no longer has.
    #[error(
        "The leader of group {group} counts on this node for entry {commit}, but the log here ends at {last_index}: acknowledged entries were lost. Remove this replica and add it again."
    )]
    EntriesLost {
        group: GroupId,
        /// The commit index that the leader named.
        commit: u64,
        /// The end of the log here.
        last_index: u64,
    },
    /// Raft refused.
    #[error("Raft refused a message for group {group}: {problem}.")]
    Refused { group: GroupId, problem: String },
    /// The last write failed and has to be repeated first.
    #[error("The log did not accept the last write, so no message is taken until it does.")]
    LogUnavailable,
}

/// Bytes from another node are not what they should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the message says what each field is")]
pub enum DecodeError {
    /// More bytes than allowed.
    #[error("A frame of {bytes} bytes exceeds the limit of {limit_bytes} bytes.")]
    TooLarge { bytes: usize, limit_bytes: usize },
    /// The bytes are no frame of this protocol.
    #[error("The bytes from another node are not a valid frame: {0}.")]
    Malformed(String),
}
