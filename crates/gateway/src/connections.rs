//! How many connections a node has.
//!
//! Every connection is an open file, and so are the segments of the log and the state: a node whose clients use up all
//! descriptors could not write any more. So connections have a limit below that of open files, and those above it are
//! closed as they come. A few of them are for the management port alone, so that the health of a node under attack can be
//! seen.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use metrics::{Counter, Gauge};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Sleep;

/// Descriptors that connections may not use: a quarter of all, but at least this many.
const KEPT_BACK_MIN: u64 = 256;
/// The most connections that a node takes by default.
const USUAL_MAX: u64 = 16_384;
/// Connections that only the management port may take.
const MANAGEMENT_CONNECTIONS: usize = 16;
/// Time between two lines of the log about the same trouble.
const REPORT_INTERVAL: Duration = Duration::from_secs(30);
/// Pause when there are no file descriptors for another connection: accepting would fail again at once.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How long a client of the management port may say nothing.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(60);

/// The connections of a node. Clones share the count.
#[derive(Debug, Clone)]
pub struct Connections(Arc<Shared>);

struct Shared {
    limit: usize,
    open: AtomicUsize,
    gauge: Gauge,
    refused: Counter,
    reported: Mutex<Option<Instant>>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Connections").field("limit", &self.limit).field("open", &self.open).finish()
    }
}

/// A connection among those that are open, until it is dropped.
#[derive(Debug)]
pub struct ConnectionPlace(Arc<Shared>);

impl Connections {
    /// At most this many at once.
    pub fn new(limit: usize) -> Self {
        let gauge = metrics::gauge!("osmia_open_connections");
        metrics::gauge!("osmia_connections_limit").set(limit as f64);
        let refused = metrics::counter!("osmia_connections_refused_total");
        Connections(Arc::new(Shared { limit, open: AtomicUsize::new(0), gauge, refused, reported: Mutex::new(None) }))
    }

    /// How many connections a process with this many descriptors takes by default.
    pub fn usual_limit(open_files_max: u64) -> usize {
        let kept_back = KEPT_BACK_MIN.max(open_files_max / 4);
        let limit = open_files_max.saturating_sub(kept_back).max(open_files_max / 4).min(USUAL_MAX);
        usize::try_from(limit).unwrap_or(usize::MAX).max(1)
    }

    /// How many may be open at once.
    pub fn limit(&self) -> usize {
        self.0.limit
    }

    /// For a client. None at the limit.
    pub(crate) fn place(&self) -> Option<ConnectionPlace> {
        // Of a small limit, half is for clients all the same.
        let kept = MANAGEMENT_CONNECTIONS.min(self.0.limit / 2);
        self.take(self.0.limit - kept)
    }

    fn take(&self, limit: usize) -> Option<ConnectionPlace> {
        let shared = &self.0;
        let more = |open: usize| (open < limit).then_some(open + 1);
        match shared.open.fetch_update(Ordering::AcqRel, Ordering::Acquire, more) {
            Ok(before) => {
                shared.gauge.set((before + 1) as f64);
                Some(ConnectionPlace(shared.clone()))
            }
            Err(open) => {
                shared.refused.increment(1);
                if is_time(&shared.reported) {
                    tracing::warn!(
                        open,
                        limit = shared.limit,
                        "connections are refused, because the limit (connections-max) is reached; let fewer clients connect, or raise it together with the limit of open files"
                    );
                }
                None
            }
        }
    }

    /// The next connection that has a place. `take` says how it takes one.
    async fn accept_with(
        &self,
        listener: &TcpListener,
        take: impl Fn(&Self) -> Option<ConnectionPlace>,
    ) -> (TcpStream, ConnectionPlace) {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    if let Some(place) = take(self) {
                        return (stream, place);
                    }
                }
                Err(error) => {
                    if is_time(&self.0.reported) {
                        tracing::warn!(%error, "cannot accept a connection");
                    }
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    /// The next connection of a client. Those above the limit are closed at once.
    pub(crate) async fn accept(&self, listener: &TcpListener) -> (TcpStream, ConnectionPlace) {
        self.accept_with(listener, Self::place).await
    }

    /// The next connection of the management port.
    pub async fn accept_for_management(&self, listener: &TcpListener) -> ManagementConnection {
        let (stream, place) = self.accept_with(listener, |all| all.take(all.0.limit)).await;
        ManagementConnection::new(stream, place, SILENCE_TIMEOUT)
    }
}

impl Drop for ConnectionPlace {
    fn drop(&mut self) {
        let before = self.0.open.fetch_sub(1, Ordering::AcqRel);
        self.0.gauge.set(before.saturating_sub(1) as f64);
    }
}

/// Whether the last line about a trouble is long enough ago.
fn is_time(reported: &Mutex<Option<Instant>>) -> bool {
    let (mut reported, now) = (reported.lock(), Instant::now());
    let is_time = reported.is_none_or(|last| now.duration_since(last) >= REPORT_INTERVAL);
    if is_time {
        *reported = Some(now);
    }
    is_time
}

/// A connection of the management port. It ends when its client says nothing for a while.
#[derive(Debug)]
pub struct ManagementConnection {
    stream: TcpStream,
    silence: Pin<Box<Sleep>>,
    timeout: Duration,
    _place: ConnectionPlace,
}

impl ManagementConnection {
    fn new(stream: TcpStream, place: ConnectionPlace, timeout: Duration) -> Self {
        ManagementConnection { stream, silence: Box::pin(tokio::time::sleep(timeout)), timeout, _place: place }
    }

    /// Where the client is.
    ///
    /// # Errors
    /// When the connection is closed already.
    pub fn peer_address(&self) -> std::io::Result<SocketAddr> {
        self.stream.peer_addr()
    }
}

impl AsyncRead for ManagementConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_read(context, buffer);
        if outcome.is_ready() {
            let until = tokio::time::Instant::now() + self.timeout;
            self.silence.as_mut().reset(until);
            return outcome;
        }
        // As if the client had ended it.
        self.silence.as_mut().poll(context).map(|()| Ok(()))
    }
}

impl AsyncWrite for ManagementConnection {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    #[test]
    fn storage_keeps_its_descriptors() {
        assert_eq!(Connections::usual_limit(1_024), 768);
        assert_eq!(Connections::usual_limit(4_096), 3_072);
        assert_eq!(Connections::usual_limit(1 << 20), 16_384);
        assert_eq!(Connections::usual_limit(300), 75, "a quarter even where hardly any are left");
        assert_eq!(Connections::usual_limit(0), 1);
    }

    #[tokio::test]
    async fn connections_above_the_limit_are_closed_as_they_come() {
        let connections = Connections::new(4);
        let listener = Arc::new(TcpListener::bind("127.0.0.1:0").await.unwrap());
        let address = listener.local_addr().unwrap();
        let mut clients = Vec::new();
        for _ in 0..3 {
            clients.push(TcpStream::connect(address).await.unwrap());
        }
        let (first, second) = (connections.accept(&listener).await, connections.accept(&listener).await);
        let third = tokio::spawn({
            let (connections, listener) = (connections.clone(), listener.clone());
            async move { connections.accept(&listener).await }
        });
        assert_eq!(clients[2].read(&mut [0; 1]).await.unwrap_or(0), 0, "it is closed");
        drop(first);
        let _client = TcpStream::connect(address).await.unwrap();
        let third = third.await.expect("there is room again");
        let _client = TcpStream::connect(address).await.unwrap();
        let management = connections.accept_for_management(&listener).await;
        assert_eq!(connections.0.open.load(Ordering::Relaxed), 3, "the rest is for the management port");
        drop((second, third, management));
        assert_eq!(connections.0.open.load(Ordering::Relaxed), 0);
    }

    #[tokio::test]
    async fn a_silent_connection_of_the_management_port_ends() {
        let connections = Connections::new(4);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let _client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, place) = connections.accept(&listener).await;
        let mut connection = ManagementConnection::new(stream, place, Duration::from_millis(20));
        assert_eq!(connection.read(&mut [0; 1]).await.unwrap(), 0);
    }
}
