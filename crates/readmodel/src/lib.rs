//! The read model: what searches see.
//!
//! A fold of each partition's records into an SQLite file, or into a schema of a PostgreSQL server, written by a consumer of the
//! record stream, and read by searches over all partitions at once. It knows nothing of protocols: searches are values (`query`), and answers are rows.

mod audited;
mod batch;
mod check;
mod comparable;
mod consumer;
mod database;
mod dictionary;
pub mod enumerations;
mod file;
mod fold;
mod follower;
mod gate;
mod migration;
mod model;
mod pattern;
mod progress;
pub mod query;
mod queue;
mod rebuild;
mod retention;
mod schema;
mod source;
mod store;

#[cfg(test)]
#[path = "../tests/support/postgresql.rs"]
mod postgresql;
#[cfg(test)]
mod testing;

pub use audited::{Audited, Noted};
pub use consumer::NAME;
pub use database::{Looked, ServerError};
pub use model::{Busy, READERS, ReadModel};
pub use pattern::{Late, Pattern};
pub use progress::{Progress, Waiter};
pub use queue::{Cost, Place, SenderId};
pub use retention::Retention;
pub use source::PostgreSql;
