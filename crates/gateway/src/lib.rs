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
mod outcome;
mod request;
mod rest;
mod starts;
mod tenants;
mod topology;
mod undelivered;
mod validation;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use readmodel::ReadModel;

pub use acknowledged::Acknowledged;
pub use connections::{ConnectionPlace, Connections, ManagementConnection};
pub use gateway::{Gateway, check_addresses};
pub use guard::{AllowedHosts, Guard, Refusal, protect};
pub use job_stream::{JobStreamView, JobStreams};
pub use outcome::RecordPosition;

/// The largest message in either direction.
pub const MESSAGE_BYTES_MAX: usize = 4 << 20;

/// How long a search waits until it sees what was acknowledged before it, unless another time is set.
pub const SEARCH_WAIT_MAX: Duration = Duration::from_secs(1);

/// How a gateway serves.
#[derive(Debug, Clone)]
pub struct GatewayOptions {
    /// Where to listen for gRPC; port 0 takes a free one.
    pub grpc_address: SocketAddr,
    /// Where to listen for HTTP; port 0 takes a free one.
    pub http_address: SocketAddr,
    /// Names by which clients may ask for HTTP, besides those of this machine itself.
    pub allowed_hosts: AllowedHosts,
    /// Certificate and key, when connections are encrypted.
    pub tls: Option<TlsFiles>,
    /// How long a partition may take to answer.
    pub request_timeout: Duration,
    /// How long a request for jobs waits that does not say how long.
    pub long_polling_timeout: Duration,
    /// How many requests may wait for jobs at once.
    pub parked_polls_max: usize,
    /// How many job streams may be open at once.
    pub job_streams_max: usize,
    /// What searches read; none if nothing can be searched.
    pub read_model: Option<Arc<ReadModel>>,
    /// How long a search waits until it sees what was acknowledged before it.
    pub search_wait_max: Duration,
    /// The connections of the node, counted together with those of other ports.
    pub connections: Connections,
}

impl GatewayOptions {
    /// The usual options.
    pub fn new(grpc_address: SocketAddr, http_address: SocketAddr) -> Self {
        GatewayOptions {
            grpc_address,
            http_address,
            allowed_hosts: AllowedHosts::default(),
            tls: None,
            request_timeout: Duration::from_secs(15),
            long_polling_timeout: Duration::from_secs(10),
            parked_polls_max: 20_000,
            job_streams_max: 20_000,
            read_model: None,
            search_wait_max: SEARCH_WAIT_MAX,
            connections: Connections::new(1_024),
        }
    }
}

/// PEM files of an encrypted port.
#[derive(Debug, Clone)]
pub struct TlsFiles {
    /// The certificate, followed by those that it depends on.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

impl TlsFiles {
    /// Whether a server can be started with them.
    ///
    /// # Errors
    /// When the files cannot be read, or are not a certificate with its key.
    pub fn check(&self) -> Result<(), StartError> {
        listener::tls(self, listener::Speech::Http).map(drop)
    }
}

/// Why a gateway does not serve.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the message says what each field is")]
pub enum StartError {
    /// The address cannot be used.
    #[error(
        "Cannot listen for {protocol} clients on {address}: {source}. Choose another port, where 0 takes a free one."
    )]
    Bind { protocol: &'static str, address: SocketAddr, source: std::io::Error },
    /// A file cannot be read.
    #[error("Cannot read the TLS file {path}: {source}")]
    TlsFile { path: PathBuf, source: std::io::Error },
    /// The content of the files is not what it should be.
    #[error(
        "Cannot use the TLS file {path}: {reason}. Certificate and key must be PEM files, and the key must belong to the certificate"
    )]
    Tls { path: PathBuf, reason: String },
}
