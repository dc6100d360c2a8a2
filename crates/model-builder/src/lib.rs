//! Writes BPMN files: small processes for tests, benchmarks, load and hostile cases, and the XML that every writer needs.
//!
//! Each element is connected to the one before it; [`ProcessBuilder::move_to`] goes back to an element to continue there.
//! Elements name their incoming and outgoing flows, as modelers write them and as other engines expect them.
//!
//! ```
//! let xml = model_builder::ProcessBuilder::new("order")
//!     .start("received")
//!     .exclusive_gateway("large")
//!     .condition("=total > 100").service_task("check", "check-order").end("checked")
//!     .move_to("large").default_flow().end("accepted")
//!     .to_xml();
//! assert_eq!(xml.matches("<bpmn:sequenceFlow").count(), 4);
//! ```

mod events;
mod file;
mod process;
pub mod xml;

pub use events::Event;
pub use file::to_xml;
pub use process::ProcessBuilder;
