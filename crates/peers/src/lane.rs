//! Lanes: connections for traffic of different urgency.

/// A connection of its own in each direction between two nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lane {
    /// Raft messages and beats: small, urgent, and sent again by Raft.
    Consensus,
    /// Commands, answers and pushed jobs of clients.
    Requests,
    /// Snapshots and record segments.
    Bulk,
}

/// The most bytes that wait for one peer on the lane of consensus: two full windows of Raft batches.
const CONSENSUS_QUEUE_BYTES_MAX: usize = 32 * 1024 * 1024;
/// The most bytes of requests and answers that wait for one peer.
const REQUESTS_QUEUE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The most bytes of a snapshot that wait for one peer.
const BULK_QUEUE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The largest payload of a frame of consensus: a Raft message with its entries.
const CONSENSUS_FRAME_BYTES_MAX: usize = 36 * 1024 * 1024;
/// The largest payload of a frame of requests: the largest command or answer, and what identifies it.
const REQUESTS_FRAME_BYTES_MAX: usize = 36 * 1024 * 1024;
/// The largest payload of a frame of bulk data.
const BULK_FRAME_BYTES_MAX: usize = 2 * 1024 * 1024;

impl Lane {
    /// All lanes.
    pub const ALL: [Lane; 3] = [Lane::Consensus, Lane::Requests, Lane::Bulk];

    /// The number of the lane in a hello.
    pub(crate) fn number(self) -> u8 {
        match self {
            Lane::Consensus => 1,
            Lane::Requests => 2,
            Lane::Bulk => 3,
        }
    }

    pub(crate) fn of_number(number: u8) -> Option<Lane> {
        Lane::ALL.into_iter().find(|lane| lane.number() == number)
    }

    /// Bytes that may wait for one peer.
    pub fn queue_bytes_max(self) -> usize {
        match self {
            Lane::Consensus => CONSENSUS_QUEUE_BYTES_MAX,
            Lane::Requests => REQUESTS_QUEUE_BYTES_MAX,
            Lane::Bulk => BULK_QUEUE_BYTES_MAX,
        }
    }

    /// Bytes of the largest payload of a frame.
    pub fn frame_bytes_max(self) -> usize {
        match self {
            Lane::Consensus => CONSENSUS_FRAME_BYTES_MAX,
            Lane::Requests => REQUESTS_FRAME_BYTES_MAX,
            Lane::Bulk => BULK_FRAME_BYTES_MAX,
        }
    }
}

impl std::fmt::Display for Lane {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Lane::Consensus => "consensus",
            Lane::Requests => "requests",
            Lane::Bulk => "bulk",
        })
    }
}
