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

mod applying;
mod client;
mod clock;
mod cluster;
mod data_directory;
mod delivery;
mod disk;
pub mod doctor;
mod entrance;
mod entrances;
pub mod exporting;
mod feature_levels;
mod flow_control;
mod forwarding;
mod handover;
mod held;
mod inbox;
mod maintenance;
mod member;
mod members;
mod metrics;
mod node;
mod options;
pub mod partition;
pub mod partition_loop;
mod partition_time;
mod polls;
mod processing_thread;
mod purge;
pub mod reception;
pub mod record_log;
pub mod replaced_state;
mod replacement_thread;
pub mod replication_loop;
mod replication_thread;
mod requests;
mod restored;
pub mod retention;
mod shared;
mod snapshot_host;
pub mod snapshot_transfer;
pub mod snapshots;
pub mod state_handle;
mod state_opener;
mod status;
mod streams;
mod submit_error;
mod turns;
pub mod upkeep;
mod write_throttle;

pub use client::{Client, ClusterView, NodeView, PendingPositions, PendingRequest};
pub use clock::{Clock, NotControllable};
pub use cluster::{JoinError, Joining, MemberReport, Positions, ReplaceError, ReplicaReport};
pub use data_directory::{DataDirectoryError, check_data_directory, stored_cluster_id, stored_partition_count};
pub use delivery::Delivery;
pub use disk::{DiskOptions, DiskState, DiskView};
pub use engine::{FeatureLevel, JobsAvailable, Push, Reply};
pub use exporting::{ExporterPosition, ExporterState, ExporterStatus, Exporters, Pause, check_exporters};
pub use feature_levels::{PartitionLevel, RaiseError};
pub use flow_control::{FlowControlOptions, Permit};
pub use member::Member;
pub use node::{Node, StartError, StopError};
pub use options::{ClusterOptions, NodeOptions};
pub use record_log::RecordLogError;
pub use shared::JobsAvailableListener;
pub use status::{Health, PartitionView, Role};
pub use streams::{JobSink, StreamHandle, StreamSpecification, StreamWindow};
pub use submit_error::SubmitError;
pub use write_throttle::WriteThrottleOptions;
