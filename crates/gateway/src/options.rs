//! How a gateway serves.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use readmodel::ReadModel;

use crate::connections::Connections;
use crate::guard::AllowedHosts;

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
