//! Where everything is in a data directory.

use std::path::{Path, PathBuf};

use protocol::PartitionId;

use super::names::{EXPORTERS, LOG, PARTITIONS};
use crate::applying;

/// Where things are in a data directory.
#[derive(Debug, Clone)]
pub(crate) struct Paths(pub(super) PathBuf);

impl Paths {
    /// The directory itself.
    pub fn directory(&self) -> &Path {
        &self.0
    }

    /// The shared log of all partitions.
    pub fn log(&self) -> PathBuf {
        self.0.join(LOG)
    }

    /// The state of a partition.
    pub fn state(&self, partition: PartitionId) -> PathBuf {
        self.partition(partition).join("state")
    }

    /// The record stream of a partition.
    pub fn records(&self, partition: PartitionId) -> PathBuf {
        self.partition(partition).join("records")
    }

    /// The note of what a partition applies.
    pub fn applying(&self, partition: PartitionId) -> PathBuf {
        self.partition(partition).join(applying::FILE_NAME)
    }

    /// The commands of a partition that an operator had refused.
    pub fn refused(&self, partition: PartitionId) -> PathBuf {
        self.partition(partition).join("refused")
    }

    /// Where an exporter's positions are kept.
    pub fn exporter_positions(&self, name: &str) -> PathBuf {
        self.exporters().join(format!("{name}.positions"))
    }

    /// Whether exporting is paused.
    pub fn exporting_pause(&self) -> PathBuf {
        self.exporters().join("pause")
    }

    /// The directory that has one directory for each partition.
    pub fn partitions(&self) -> PathBuf {
        self.0.join(PARTITIONS)
    }

    fn partition(&self, partition: PartitionId) -> PathBuf {
        self.partitions().join(partition.to_string())
    }

    /// What exporters keep.
    pub fn exporters(&self) -> PathBuf {
        Self::exporters_in(&self.0)
    }

    /// The same of a data directory that may not be there yet.
    pub fn exporters_in(directory: &Path) -> PathBuf {
        directory.join(EXPORTERS)
    }
}
