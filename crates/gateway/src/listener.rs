//! Takes connections and reads requests from them.
//!
//! The server of `tonic` hands each request to a task of its own before anything else sees it. Here a request is seen as it
//! comes off its connection, so that the connection is not read further when too much is unanswered (`starts.rs`).

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

use crate::answers::{Answers, ConnectionAnswers};
use crate::connection::{Connection, Greeting};
use crate::connections::{ConnectionPlace, Connections};
use crate::openings::Openings;
use crate::starts::{Gate, Starts};
use crate::{StartError, TlsFiles};

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
/// Frames that may come on streams that have ended here and are forgotten; one more closes the connection. They are on
/// their way when a request is refused before it has arrived, and are counted as long as the connection lives.
const LATE_FRAMES_MAX: usize = 16_384;
/// Bytes that a client may send ahead: one message of a stream, several of a connection.
const STREAM_WINDOW_BYTES: u32 = 1 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 8 << 20;

/// Answers requests.
pub(crate) trait Answer: Clone + Send + Sync + 'static {
    /// Begins to answer. Called as the request comes off the connection.
    fn answer(&self, request: Request<Body>, caller: &Caller) -> BoxFuture<Response<Body>, Infallible>;
}

/// What is counted of one connection. Clones share it.
#[derive(Clone)]
pub(crate) struct Caller {
    pub gate: Gate,
    pub answers: ConnectionAnswers,
    pub openings: Openings,
}

/// An open port.
pub(crate) struct Listener {
    pub listener: TcpListener,
    pub tls: Option<TlsAcceptor>,
    pub starts: Starts,
    pub answers: Answers,
    pub connections: Connections,
    /// Job streams of one connection.
    pub job_streams_max: usize,
}

impl Listener {
    /// Serves until `stopping` says so, and then until all connections have ended.
    pub(crate) async fn serve(self, answer: impl Answer, mut stopping: watch::Receiver<bool>) {
        let mut connections = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                accepted = self.connections.accept(&self.listener) => accepted,
                // A connection that ended by a panic has said so in the log.
                Some(_) = connections.join_next() => continue,
                () = stopped(&mut stopping) => break,
            };
            let caller = Caller {
                gate: self.starts.gate(),
                answers: self.answers.connection(),
                openings: Openings::new(self.job_streams_max),
            };
            connections.spawn(serve_connection(accepted, self.tls.clone(), caller, answer.clone(), stopping.clone()));
        }
        drop(self.listener);
        while connections.join_next().await.is_some() {}
    }
}

async fn stopped(stopping: &mut watch::Receiver<bool>) {
    // An error means that the gateway itself has ended.
    let _ = stopping.wait_for(|stopping| *stopping).await;
}

async fn serve_connection(
    (stream, _place): (TcpStream, ConnectionPlace),
    tls: Option<TlsAcceptor>,
    caller: Caller,
    answer: impl Answer,
    stopping: watch::Receiver<bool>,
) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a connection was closed as it was opened");
        return;
    }
    let connection = Connection::new(stream, caller.gate.clone());
    let Some(tls) = tls else { return serve_stream(connection, caller, answer, stopping).await };
    match tokio::time::timeout(HANDSHAKE_TIMEOUT, tls.accept(connection)).await {
        Ok(Ok(stream)) => serve_stream(stream, caller, answer, stopping).await,
        Ok(Err(error)) => tracing::debug!(%error, "a client did not agree on the encryption"),
        Err(_) => tracing::debug!("a client took too long to agree on the encryption"),
    }
}

async fn serve_stream(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    caller: Caller,
    answer: impl Answer,
    mut stopping: watch::Receiver<bool>,
) {
    let answers = caller.answers.clone();
    let service =
        hyper::service::service_fn(move |request: Request<Incoming>| answer.answer(request.map(Body::new), &caller));
    let connection = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_concurrent_streams(CONCURRENT_STREAMS_MAX)
        .max_pending_accept_reset_streams(UNREAD_CANCELLATIONS_MAX)
        .max_local_error_reset_streams(LATE_FRAMES_MAX)
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_TIMEOUT)
        .serve_connection(TokioIo::new(Greeting::new(stream)), service);
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = answers.stalled() => {
            metrics::counter!("osmia_gateway_stalled_connections_total").increment(1);
            tracing::info!("a connection is closed whose client asked for answers and reads none of them");
            return;
        }
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
