//! The gateway: what clients talk to.
//!
//! Two protocols, gRPC (`grpc`) and REST (`rest`), make requests from what clients send and render what becomes of them.
//! All else knows neither: what a request needs no state for is checked (`request`, `validation`, `tenants`), its command
//! goes to a partition (`executor`), and the outcome comes back (`outcome`). Connections of both are read through one
//! intake (`listener`, `starts`, `intake`, `answers`). Nothing here knows the state or the log.
//!
//! ```text
//!  request for one partition ─► validation ─► command ─► answer
//!  request for jobs ─► hints (where may jobs be?) ─► activation command ─► jobs, or parked until a partition reports some
//!  stream of jobs ─► stream with credit ─► bounded queue ─► connection
//! ```

mod acknowledged;
mod activation;
mod answers;
mod connection;
mod connections;
mod executor;
mod gateway;
mod grpc;
mod guard;
mod intake;
mod job_stream;
mod job_type;
mod listener;
mod long_polling;
mod openings;
mod options;
mod outcome;
mod request;
mod rest;
mod start_error;
mod starts;
mod tenants;
mod topology;
mod undelivered;
mod validation;

pub use acknowledged::Acknowledged;
pub use connections::{ConnectionPlace, Connections, ManagementConnection};
pub use gateway::{Gateway, check_addresses};
pub use guard::{AllowedHosts, Guard, Refusal, protect};
pub use job_stream::{JobStreamView, JobStreams};
pub use options::{GatewayOptions, MESSAGE_BYTES_MAX, SEARCH_WAIT_MAX, TlsFiles};
pub use outcome::RecordPosition;
pub use start_error::StartError;
