//! The read model: what searches see.
//!
//! A fold of each partition's records into an SQLite file, written by a consumer of the record stream, and read by searches
//! over all partitions at once. It knows nothing of protocols: searches are values (`query`), and answers are rows.

mod batch;
mod check;
mod comparable;
mod consumer;
mod dictionary;
pub mod enumerations;
mod fold;
mod migration;
mod model;
mod progress;
pub mod query;
mod retention;
mod schema;
mod store;

pub use consumer::NAME;
pub use model::{Busy, ReadModel};
pub use progress::Progress;
pub use retention::Retention;
pub use store::StoreError;
