//! Takes connections and reads requests from them.
//!
//! The server of `tonic` hands each request to a task of its own before anything else sees it. Here a request is seen as it
//! comes off its connection, so that the connection is not read further when too much is unanswered (`starts.rs`).

use std::convert::Infallible;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use http_body::Body;
use hyper::body::{Bytes, Incoming};
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ServerConfig, crypto};
use tracing::Instrument;

use crate::answers::{Answers, ConnectionAnswers};
use crate::connection::{Connection, Greeting, ReadTurn};
use crate::connections::{ConnectionPlace, Connections};
use crate::openings::Openings;
use crate::options::TlsFiles;
use crate::start_error::StartError;
use crate::starts::{Gate, Starts};

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

/// How long a request of HTTP/1.1 may take until its headers are there, and the connection may be without one before. Clients
/// close theirs after 30 s.
const HEADERS_TIMEOUT: Duration = Duration::from_secs(60);
/// The headers of a request of HTTP/1.1. What more is read or written at once waits in the socket.
const HEADER_BYTES_MAX: usize = 64 << 10;
/// The same of HTTP/2, as it is counted there.
const HEADER_LIST_BYTES_MAX: u32 = 16 << 10;

/// What clients of a port may speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Speech {
    /// HTTP/2.
    Http2,
    /// HTTP/2 for those who begin with it, HTTP/1.1 for all others.
    Http,
}

impl Speech {
    /// What TLS calls it, best first.
    fn names(self) -> &'static [&'static [u8]] {
        match self {
            Speech::Http2 => &[b"h2"],
            Speech::Http => &[b"h2", b"http/1.1"],
        }
    }
}

/// An answer on its way, whatever becomes of it.
pub(crate) type Answering<B> = Pin<Box<dyn Future<Output = Result<Response<B>, Infallible>> + Send>>;

/// Answers the requests of a connection.
pub(crate) trait Answer: Send + Sync + 'static {
    /// The body of an answer.
    type Body: Body<Data = Bytes, Error: Into<Box<dyn std::error::Error + Send + Sync>>> + Send + 'static;

    /// Begins to answer. Called as the request comes off the connection.
    fn answer(&self, request: Request<Incoming>, caller: &Caller) -> Answering<Self::Body>;
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
    pub speech: Speech,
    pub tls: Option<TlsAcceptor>,
    pub starts: Starts,
    pub answers: Answers,
    pub connections: Connections,
    /// Job streams of one connection.
    pub job_streams_max: usize,
}

impl Listener {
    /// Serves until `stopping` says so, and then until all connections have ended. Each of them gets what `answer` makes.
    pub(crate) async fn serve<A: Answer>(self, answer: impl Fn() -> A, mut stopping: watch::Receiver<bool>) {
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
            let (tls, answer, stopping) = (self.tls.clone(), answer(), stopping.clone());
            let peer = accepted.0.peer_addr().ok().map(tracing::field::display);
            let span = tracing::debug_span!("connection", peer);
            let turn = ReadTurn::default();
            let connection = serve_connection(accepted, turn.clone(), tls, self.speech, caller, answer, stopping);
            connections.spawn(turn.by(connection).instrument(span));
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
    turn: ReadTurn,
    tls: Option<TlsAcceptor>,
    speech: Speech,
    caller: Caller,
    answer: impl Answer,
    stopping: watch::Receiver<bool>,
) {
    tracing::debug!("a client has connected");
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a connection was closed as it was opened");
        return;
    }
    let connection = Connection::new(stream, caller.gate.clone(), turn);
    let Some(tls) = tls else { return serve_stream(connection, speech, caller, answer, stopping).await };
    match tokio::time::timeout(HANDSHAKE_TIMEOUT, tls.accept(connection)).await {
        Ok(Ok(stream)) => serve_stream(stream, speech, caller, answer, stopping).await,
        Ok(Err(error)) => tracing::debug!(%error, "a client did not agree on the encryption"),
        Err(_) => tracing::debug!("a client took too long to agree on the encryption"),
    }
}

async fn serve_stream(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    speech: Speech,
    caller: Caller,
    answer: impl Answer,
    mut stopping: watch::Receiver<bool>,
) {
    let answers = caller.answers.clone();
    let service = hyper::service::service_fn(move |request: Request<Incoming>| answer.answer(request, &caller));
    let builder = builder(speech);
    let connection = builder.serve_connection(TokioIo::new(Greeting::new(stream)), service);
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
    match ended {
        Ok(()) => tracing::debug!("the client has ended its connection"),
        Err(error) => tracing::debug!(%error, "a connection ended"),
    }
}

fn builder(speech: Speech) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http2()
        .timer(TokioTimer::new())
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_concurrent_streams(CONCURRENT_STREAMS_MAX)
        .max_pending_accept_reset_streams(UNREAD_CANCELLATIONS_MAX)
        .max_local_error_reset_streams(LATE_FRAMES_MAX)
        .max_header_list_size(HEADER_LIST_BYTES_MAX)
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_TIMEOUT);
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEADERS_TIMEOUT).max_buf_size(HEADER_BYTES_MAX);
    match speech {
        Speech::Http2 => builder.http2_only(),
        Speech::Http => builder,
    }
}

/// What encrypts the connections.
///
/// # Errors
/// When the files cannot be read, or are not a certificate with its key.
pub(crate) fn tls(files: &TlsFiles, speech: Speech) -> Result<TlsAcceptor, StartError> {
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
    config.alpn_protocols = speech.names().iter().map(|name| name.to_vec()).collect();
    Ok(TlsAcceptor::from(Arc::new(config)))
}

impl TlsFiles {
    /// Whether a server can be started with them.
    ///
    /// # Errors
    /// When the files cannot be read, or are not a certificate with its key.
    pub fn check(&self) -> Result<(), StartError> {
        tls(self, Speech::Http).map(drop)
    }
}
