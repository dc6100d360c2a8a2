//! Takes connections and reads requests from them.
//!
//! The server of `tonic` hands each request to a task of its own before anybody sees it. Here a request is seen as it comes
//! off its connection, so that the connection is not read further when too much is unanswered (`starts.rs`).

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ServerConfig, crypto};
use tonic::body::Body;
use tonic::codegen::BoxFuture;
use tonic::codegen::http::{Request, Response};

use crate::connection::Connection;
use crate::starts::{Gate, Starts};
use crate::{StartError, TlsFiles};

/// Pause when there are no files for another connection: accepting fails at once, again and again.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How long a client may take to agree on the encryption.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(20);
/// A connection whose client answers no ping is closed, so that its streams stop taking jobs.
const PING_INTERVAL: Duration = Duration::from_secs(30);
const PING_TIMEOUT: Duration = Duration::from_secs(15);
/// One client may hold many idle streams and polls on one connection.
const CONCURRENT_STREAMS_MAX: u32 = 65_536;
/// How many requests of a connection may be cancelled before they are even read; one more closes the connection. A client
/// with many workers that stops, or gives up while this machine is busy, cancels them all at once.
const UNREAD_CANCELLATIONS_MAX: usize = 4_096;
/// Bytes that a client may send ahead: one message of a stream, several of a connection.
const STREAM_WINDOW_BYTES: u32 = 1 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 8 << 20;

/// Answers requests.
pub(crate) trait Answer: Clone + Send + Sync + 'static {
    /// Begins to answer. Called as the request comes off the connection of the gate.
    fn answer(&self, request: Request<Body>, gate: &Gate) -> BoxFuture<Response<Body>, Infallible>;
}

/// An open port.
pub(crate) struct Listener {
    pub listener: TcpListener,
    pub tls: Option<TlsAcceptor>,
    pub starts: Starts,
}

impl Listener {
    /// Serves until `stopping` says so, and then until all connections have ended.
    pub(crate) async fn serve(self, answer: impl Answer, mut stopping: watch::Receiver<bool>) {
        let mut connections = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                // A connection that ended by a panic has said so in the log.
                Some(_) = connections.join_next() => continue,
                () = stopped(&mut stopping) => break,
            };
            match accepted {
                Ok((stream, _)) => {
                    let (tls, gate) = (self.tls.clone(), self.starts.gate());
                    connections.spawn(serve_connection(stream, tls, gate, answer.clone(), stopping.clone()));
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
        drop(self.listener);
        while connections.join_next().await.is_some() {}
    }
}

async fn stopped(stopping: &mut watch::Receiver<bool>) {
    // An error means that the gateway itself is gone.
    let _ = stopping.wait_for(|stopping| *stopping).await;
}

async fn serve_connection(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    gate: Gate,
    answer: impl Answer,
    stopping: watch::Receiver<bool>,
) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a connection was closed as it was opened");
        return;
    }
    let connection = Connection::new(stream, gate.clone());
    let Some(tls) = tls else { return serve_stream(connection, gate, answer, stopping).await };
    match tokio::time::timeout(HANDSHAKE_TIMEOUT, tls.accept(connection)).await {
        Ok(Ok(stream)) => serve_stream(stream, gate, answer, stopping).await,
        Ok(Err(error)) => tracing::debug!(%error, "a client did not agree on the encryption"),
        Err(_) => tracing::debug!("a client took too long to agree on the encryption"),
    }
}

async fn serve_stream(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    gate: Gate,
    answer: impl Answer,
    mut stopping: watch::Receiver<bool>,
) {
    let service =
        hyper::service::service_fn(move |request: Request<Incoming>| answer.answer(request.map(Body::new), &gate));
    let connection = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_concurrent_streams(CONCURRENT_STREAMS_MAX)
        .max_pending_accept_reset_streams(UNREAD_CANCELLATIONS_MAX)
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_TIMEOUT)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stopped(&mut stopping) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended");
    }
}

/// What encrypts the connections.
///
/// # Errors
/// When the files cannot be read, or are not a certificate with its key.
pub(crate) fn tls(files: &TlsFiles) -> Result<TlsAcceptor, StartError> {
    let read =
        |path: &Path| std::fs::read(path).map_err(|source| StartError::TlsFile { path: path.to_owned(), source });
    let invalid = |path: &Path, reason: String| StartError::Tls { path: path.to_owned(), reason };
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&read(&files.certificate)?).collect();
    let certificates = certificates.map_err(|error| invalid(&files.certificate, error.to_string()))?;
    let key = PrivateKeyDer::from_pem_slice(&read(&files.key)?);
    let key = key.map_err(|error| invalid(&files.key, error.to_string()))?;
    let provider = Arc::new(crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|config| config.with_no_client_auth().with_single_cert(certificates, key));
    let mut config = config.map_err(|error| invalid(&files.certificate, error.to_string()))?;
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
