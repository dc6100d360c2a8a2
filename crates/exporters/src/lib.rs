//! Exporters: consumers of the record stream outside the engine.
//!
//! The life of an exporter: [`configure`](Exporter::configure) checks the arguments once at the start of the node;
//! [`partition`](Exporter::partition) gives a consumer for each partition, which has a thread of its own;
//! [`open`](PartitionExporter::open) connects, and says where to go on; [`export`](PartitionExporter::export) gets every
//! record that the filter lets through, in order; [`flush`](PartitionExporter::flush) comes at the time that the exporter
//! chooses; [`Controller::acknowledge`] says up to where nothing is needed again; [`close`](PartitionExporter::close) ends
//! it. What was exported but not acknowledged comes again after a restart (at least once), so targets should treat
//! partition, incarnation and position as the identity of a record.

mod arguments;
mod configuration;
mod controller;
mod durable;
mod elasticsearch;
mod error;
mod exporter;
mod filter;
mod in_flight;
mod json_lines;
mod written_file;

pub use arguments::Arguments;
pub use configuration::{ExporterConfiguration, ExporterFactory};
pub use controller::{Controller, Kept, METADATA_LIMIT_BYTES, MetadataTooLong};
pub use elasticsearch::Elasticsearch;
pub use error::ExporterError;
pub use exporter::{Context, Delivery, Exporter, Opening, PartitionExporter, Resume, Role};
pub use filter::{RecordFilter, RecordKind};
pub use in_flight::{InFlight, Ticket};
pub use json_lines::JsonLines;
pub use written_file::{WrittenFile, check_written_files};
