//! Hostile models, data and clients against a real node, each while ordinary instances run, which must not notice.
//!
//! A case sends something and says what became of it: the sentence of a refusal, an incident, or that it was carried out. A
//! wrong answer fails the case, and so does a node that ends, or takes more memory than [`MEMORY_MEBIBYTES_MAX`]. After each
//! group of cases the node is killed and started again, so that what is in the log of it is applied a second time.

mod bystander;
mod cases;
pub mod frames;
mod node;
mod run;
mod times;
mod victim;

pub use cases::{Case, all};
pub use run::{Options, Summary, run};

/// The private memory that the node may hold at any time. Mapped files are not counted: their pages are a cache of the
/// system, which drops them when the room is needed.
pub const MEMORY_MEBIBYTES_MAX: u64 = 512;
/// How late 99 of 100 ordinary instances may end, in milliseconds.
pub const BYSTANDER_P99_MILLISECONDS_MAX: u64 = 250;
