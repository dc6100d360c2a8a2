//! Opening the state of a partition, at the start of a node and when a received state took its place.

use std::path::PathBuf;

use engine::{Engine, EngineOptions, Fault};
use protocol::PartitionId;

use crate::data_directory::paths::Paths;

/// Opens the states of a node.
#[derive(Debug, Clone)]
pub(crate) struct StateOpener {
    /// Of any partition.
    options: EngineOptions,
    paths: Paths,
}

impl StateOpener {
    /// Of a data directory, with what is the same for all partitions.
    pub fn new(options: EngineOptions, paths: Paths) -> Self {
        StateOpener { options, paths }
    }

    /// Where the state of a partition is.
    pub fn directory(&self, partition: PartitionId) -> PathBuf {
        self.paths.state(partition)
    }

    /// Opens the state of a partition, which nobody else has open.
    ///
    /// # Errors
    /// When it cannot be read, or is of a later version.
    pub fn open(&self, partition: PartitionId) -> Result<Engine, Fault> {
        Engine::open(EngineOptions { partition, ..self.options }, &self.directory(partition))
    }
}
