//! What every exporter does.

use protocol::{PartitionId, Record};
use serde_json::{Map, Value};

use crate::{Controller, ExporterError, RecordFilter};

/// What an exporter learns when it is configured.
#[derive(Debug)]
pub struct Context {
    /// The exporter's name in the configuration.
    pub name: String,
    /// Its arguments.
    pub arguments: Map<String, Value>,
    /// The records it will get. The exporter may narrow it.
    pub filter: RecordFilter,
    /// Number of partitions of the node.
    pub partition_count: u16,
}

/// A consumer of the record stream. One thread drives an exporter for all partitions of a node.
pub trait Exporter: Send {
    /// Checks the arguments. An error ends the start of the node.
    ///
    /// # Errors
    /// When an argument is missing, unknown or wrong.
    fn configure(&mut self, context: &mut Context) -> Result<(), ExporterError>;

    /// Connects to the target. Called again, with growing pauses, until it succeeds, and again after an
    /// [`ExporterError::Lost`]: what is not acknowledged then comes again.
    ///
    /// # Errors
    /// When the target is not there.
    fn open(&mut self, controller: Controller) -> Result<(), ExporterError>;

    /// Takes the next record of a partition. It may be kept back to be sent with others; what must not be lost is
    /// acknowledged only when the target has it.
    ///
    /// # Errors
    /// When the record was not taken. It comes again, after a pause that grows.
    fn export(&mut self, partition: PartitionId, record: &Record) -> Result<(), ExporterError>;

    /// The exporter may flush now what it kept back. Called after at most 1,000 records of each partition, however many
    /// more wait and whether or not those of other partitions can be read, and about once a second while nothing happens.
    ///
    /// # Errors
    /// When the target does not take what was kept back. It is called again, after a pause that grows.
    fn flush(&mut self) -> Result<(), ExporterError>;

    /// Sends what was kept back and lets go of the target.
    ///
    /// # Errors
    /// When that fails. What was not acknowledged comes again with the next start.
    fn close(&mut self) -> Result<(), ExporterError>;
}
