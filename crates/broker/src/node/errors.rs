//! Why a node does not start, or did not stop as it should.

use std::path::PathBuf;

use engine::Fault;
use exporters::ExporterError;
use protocol::PartitionId;
use replication::{LogError, ReplicationError};

use super::PARTITION_COUNT_MAX;
use crate::applying::RefusedError;
use crate::cluster::JoinError;
use crate::data_directory::error::DataDirectoryError;
use crate::exporting::SHARED_EXPORTERS_MAX;
use crate::record_log::RecordLogError;
use crate::replaced_state::ReplaceError;

/// A node could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The number of partitions makes no sense.
    #[error(
        "The partition count is {0}, and it must be between 1 and {PARTITION_COUNT_MAX}. Change the partition count."
    )]
    PartitionCount(u16),
    /// The node cannot join its cluster.
    #[error(transparent)]
    Join(#[from] JoinError),
    /// A member does not start alone.
    #[error(
        "The node is a member of a cluster, which it has to join before it starts. Leave out the list of members to start it alone."
    )]
    NotJoined,
    /// The node belongs to no cluster.
    #[error("The node belongs to no cluster yet. Give it the list of members, and wait until the cluster is founded.")]
    NoCluster,
    /// There is no such partition.
    #[error("There is no partition {partition}; the partitions are 1 to {partition_count}. Name one of these.")]
    NoSuchPartition {
        /// The partition.
        partition: PartitionId,
        /// Number of partitions.
        partition_count: u16,
    },
    /// The partition is there already.
    #[error("Partition {0} cannot be added, because this node holds it already. Name one that it does not hold.")]
    AlreadyHeld(PartitionId),
    /// The node ended meanwhile.
    #[error("The node stopped before it took part in its partitions. The log lines before this one say why.")]
    Stopped,
    /// A command that is allowed would not fit an entry of the log.
    #[error(
        "The command limit is {command_limit_bytes} bytes and the batch limit is {batch_limit_bytes} bytes. Both must be \
         at least 1 and at most {max_bytes}. Change them."
    )]
    BatchLimit {
        /// The limit of a command.
        command_limit_bytes: usize,
        /// The limit of a batch.
        batch_limit_bytes: usize,
        /// The most that the log takes.
        max_bytes: usize,
    },
    /// Two exporters have the same name.
    #[error("There are two exporters with the name '{0}'. Give each exporter a name of its own.")]
    DuplicateExporter(String),
    /// More exporters than a node may have.
    #[error(
        "There are {0} exporters, and a node has at most {SHARED_EXPORTERS_MAX}. Take some out of the configuration."
    )]
    TooManyExporters(usize),
    /// The data directory cannot be used.
    #[error(transparent)]
    DataDirectory(#[from] DataDirectoryError),
    /// The log cannot be opened.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The log and the state do not fit each other.
    #[error(transparent)]
    Replication(#[from] ReplicationError),
    /// The state of a partition is missing, or older than its log.
    #[error(
        "The state of partition {partition} in {} holds everything up to entry {applied}, but its log begins after entry \
         {compacted}: the state is missing, empty or of an older copy. Put that directory back as it was. If it is gone, restore \
         the data of a node alone from a backup, and replace a member of a cluster with 'osmia cluster replace'.", path.display()
    )]
    StateLost {
        /// The partition.
        partition: PartitionId,
        /// Where its state should be.
        path: PathBuf,
        /// The last entry of the log that is in the state.
        applied: u64,
        /// The last entry that is not in the log any more.
        compacted: u64,
    },
    /// The list of a partition's refused commands cannot be used.
    #[error(transparent)]
    Refused(#[from] RefusedError),
    /// The state of a partition cannot be opened.
    #[error(transparent)]
    State(#[from] Fault),
    /// The record stream of a partition cannot be opened.
    #[error(transparent)]
    Records(#[from] RecordLogError),
    /// A state that another node sent cannot take its place.
    #[error(transparent)]
    Received(#[from] ReplaceError),
    /// An exporter refuses its configuration.
    #[error(transparent)]
    Exporter(#[from] ExporterError),
    /// The operating system gives no thread.
    #[error("Could not start the thread '{name}': {source}")]
    Thread {
        /// The thread's name.
        name: String,
        /// The operating system's words.
        source: std::io::Error,
    },
}

/// A node did not stop cleanly. Nothing acknowledged is lost: the next start replays the log.
#[derive(Debug, thiserror::Error)]
pub enum StopError {
    /// A thread ended with a panic.
    #[error("The thread '{0}' ended with a panic. The log has the details.")]
    Panicked(String),
    /// The log could not be trusted any more.
    #[error("The node had stopped before, because its log cannot be trusted any more: {0}")]
    Failed(String),
}
