//! Who a node is.

use std::fmt;
use std::num::NonZeroU64;

/// The number of a node in the list of members, from 0. It belongs to the place in the list, not to a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeNumber(pub u32);

impl fmt::Display for NodeNumber {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// The life of a data directory: a random number that is made with it and never used again. A wiped disk under the same
/// node number has another one, so it cannot vote for what it has forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DirectoryId(pub NonZeroU64);

impl fmt::Display for DirectoryId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:016x}", self.0)
    }
}

/// What a node says of itself to each other node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The place in the list of members.
    pub node: NodeNumber,
    /// The life of its data directory.
    pub directory: DirectoryId,
    /// How often the directory was started; grows with each start.
    pub boot: u64,
    /// A random number of this process. Two processes with one boot number run on copies of one directory.
    pub process: u64,
    /// The cluster that the directory belongs to; empty before it was founded.
    pub cluster: String,
    /// The version of the program.
    pub build: String,
    /// The newest feature level that the program knows.
    pub newest_level: u32,
}
