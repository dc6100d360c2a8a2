//! Exporters: consumers of the record stream outside the engine.
//!
//! The life of an exporter: [`configure`](Exporter::configure) checks the arguments once at the start of the node;
//! [`open`](Exporter::open) connects; [`export`](Exporter::export) gets every record that the filter lets through, in the
//! order of each partition; [`Controller::acknowledge`] says up to where nothing is needed again; [`close`](Exporter::close)
//! ends it. What was exported but not acknowledged comes again after a restart (at least once), so targets should treat
//! partition and position as the identity of a record.

mod configuration;
mod controller;
mod error;
mod exporter;
mod filter;
mod json_lines;

pub use configuration::{ExporterConfiguration, ExporterFactory};
pub use controller::Controller;
pub use error::ExporterError;
pub use exporter::{Context, Exporter};
pub use filter::{RecordFilter, RecordKind};
pub use json_lines::JsonLines;
