//! Why a gateway does not serve.

use std::net::SocketAddr;
use std::path::PathBuf;

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
