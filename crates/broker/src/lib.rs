//! A node: its partitions with their threads, the way in for commands and the way out for answers, jobs and records.
//!
//! ```text
//!  gateway ── Client ──► inbox ──► replication thread ──► log (one synced write per round for all partitions)
//!     ▲                    ▲               │ committed batches
//!     │ replies, jobs      │ due, outbox   ▼
//!     └────────────── processing threads (each owns some partitions: engine, records)
//!                                          │ segment files            │ frozen overlays
//!                                          ▼                          ▼
//!                                    exporter threads          maintenance thread (checkpoints, compaction)
//! ```
//!
//! Nothing here knows gRPC, HTTP or an async runtime: plain threads and channels.

mod client;
mod clock;
mod entrance;
mod flow_control;
mod inbox;
mod options;
mod record_log;
mod requests;
mod shared;
mod streams;

// The engine's own module until the engine exports it.
#[path = "../../engine/src/output.rs"]
mod output;

pub use client::{Client, ClusterView, NodeView, PartitionView, PendingRequest, SubmitError};
pub use clock::Clock;
pub use entrance::{Health, Role};
pub use flow_control::FlowControlOptions;
pub use options::NodeOptions;
pub use output::{JobsAvailable, Push, Reply};
pub use streams::{JobSink, StreamHandle, StreamSpecification};
