//! Why a command is refused before it reaches the log.

use std::borrow::Cow;

use protocol::PartitionId;

/// Why a command did not get as far as the log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// A limit is reached. The command was not taken; it may be sent again after a growing pause.
    #[error("{reason}")]
    ResourceExhausted {
        /// The partition that refused.
        partition: PartitionId,
        /// The sentence that names the limit, its value and the partition.
        reason: String,
    },
    /// The partition cannot take commands now. If the command was already on its way, it may still be carried out.
    #[error("partition {partition} cannot take the command: {reason}; try again")]
    Unavailable {
        /// The partition.
        partition: PartitionId,
        /// Why.
        reason: Cow<'static, str>,
    },
    /// The command was given to a leader, and this node will not hear what became of it.
    #[error(
        "the outcome of the command for partition {partition} is not known: {reason}; look whether it was carried out before you send it again"
    )]
    Unknown {
        /// The partition.
        partition: PartitionId,
        /// Why.
        reason: &'static str,
    },
    /// The command is larger than the log takes.
    #[error(
        "the command takes {bytes} bytes, and at most {limit_bytes} bytes are allowed; send less data, for example \
         fewer or smaller variables"
    )]
    PayloadTooLarge {
        /// Size of the encoded command.
        bytes: usize,
        /// The limit.
        limit_bytes: usize,
    },
    /// There is no such partition.
    #[error(
        "there is no partition {partition}, the partitions are 1 to {partition_count}; check the key or the partition \
         number in the request"
    )]
    NoSuchPartition {
        /// The number that was asked for.
        partition: PartitionId,
        /// How many partitions there are.
        partition_count: u16,
    },
    /// The node is stopping.
    #[error(
        "the node is stopping; try again when it runs again (a command that was under way may have been carried out)"
    )]
    Stopped,
}
