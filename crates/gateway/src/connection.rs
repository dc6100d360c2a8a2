//! Connections of clients that say nothing are closed, so that they cannot use up the file descriptors. Those of clients
//! that start more than can be done are not read for a while (`starts.rs`), and those of clients that do not read what they
//! are sent are not read either: nothing more is asked for than is taken away. Who takes nothing for a minute is closed.
//!
//! After the first bytes, the pings of HTTP/2 find out whether the client is alive.

use std::io::{Error, ErrorKind, IoSlice, Result};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;

use crate::starts::Gate;

/// How long a client may take to send its first bytes.
const FIRST_BYTES_TIMEOUT: Duration = Duration::from_secs(20);
/// What every client sends first: the preface of HTTP/2.
const FIRST_BYTES: usize = 24;

/// How long a client may take nothing of what is written.
const BLOCKED_TIMEOUT: Duration = Duration::from_secs(60);

/// What is read each time that the task of a connection runs. HTTP/2 reads as long as there is something, and hands on the
/// requests only then: as long as a client sends faster, they would not be counted. And it tries to read again behind each
/// request that it hands on. Each request is a task: more of them at once than the 256 for which the runtime's queue of a
/// thread has room would go to another queue, which is seldom looked at, and there the answers to all other clients would wait
/// behind them.
const TURN_BYTES: usize = 16 << 10;
/// The same while there is much to start already.
const BUSY_TURN_BYTES: usize = 4 << 10;

/// A connection as it comes from the network.
pub(crate) struct Connection {
    stream: TcpStream,
    gate: Gate,
    turn: ReadTurn,
    /// Set while the client does not take what is written: when it is given up.
    blocked: Option<Pin<Box<Sleep>>>,
    blocked_timeout: Duration,
    /// The task that wants to read in the meantime.
    reader: Option<Waker>,
}

/// How many bytes a connection has read since its task began to run. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct ReadTurn(Arc<AtomicUsize>);

impl ReadTurn {
    /// Carries out all that reads the connection. Each time that this is woken, another turn begins.
    pub(crate) async fn by<F: Future>(self, reads: F) -> F::Output {
        let mut reads = std::pin::pin!(reads);
        std::future::poll_fn(|context| {
            self.0.store(0, Ordering::Relaxed);
            reads.as_mut().poll(context)
        })
        .await
    }

    fn bytes(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    fn add(&self, bytes: usize) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// A stream of bytes, encrypted or not, that is watched until its first bytes are there.
pub(crate) struct Greeting<S> {
    stream: S,
    watch: Option<Watch>,
}

struct Watch {
    bytes: usize,
    timeout: Pin<Box<Sleep>>,
}

impl Connection {
    pub(crate) fn new(stream: TcpStream, gate: Gate, turn: ReadTurn) -> Self {
        let blocked_timeout = BLOCKED_TIMEOUT;
        Connection { stream, gate, turn, blocked: None, blocked_timeout, reader: None }
    }

    /// Notes whether the client takes what is written.
    fn written(&mut self, context: &mut Context<'_>, outcome: Poll<Result<usize>>) -> Poll<Result<usize>> {
        if outcome.is_pending() {
            let timeout = self.blocked_timeout;
            let blocked = self.blocked.get_or_insert_with(|| Box::pin(tokio::time::sleep(timeout)));
            let given_up = || Err(Error::new(ErrorKind::TimedOut, "the client does not take what is written"));
            return blocked.as_mut().poll(context).map(|()| given_up());
        }
        self.blocked = None;
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
        outcome
    }
}

impl<S> Greeting<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self::with_timeout(stream, FIRST_BYTES_TIMEOUT)
    }

    fn with_timeout(stream: S, timeout: Duration) -> Self {
        let watch = Watch { bytes: 0, timeout: Box::pin(tokio::time::sleep(timeout)) };
        Greeting { stream, watch: Some(watch) }
    }
}

impl AsyncRead for Connection {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<Result<()>> {
        let turn = if self.gate.is_busy() { BUSY_TURN_BYTES } else { TURN_BYTES };
        if self.turn.bytes() >= turn {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        if self.blocked.is_some() {
            self.reader = Some(context.waker().clone());
            return Poll::Pending;
        }
        if self.gate.poll_open(context).is_pending() {
            return Poll::Pending;
        }
        let before = buffer.filled().len();
        let outcome = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.turn.add(buffer.filled().len() - before);
        outcome
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Greeting<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<Result<()>> {
        let before = buffer.filled().len();
        let outcome = Pin::new(&mut self.stream).poll_read(context, buffer);
        let Some(watch) = &mut self.watch else { return outcome };
        watch.bytes += buffer.filled().len() - before;
        if watch.bytes >= FIRST_BYTES {
            self.watch = None;
        } else if outcome.is_pending() && watch.timeout.as_mut().poll(context).is_ready() {
            return Poll::Ready(Err(Error::new(ErrorKind::TimedOut, "the client did not say what it wants")));
        }
        outcome
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.written(context, outcome)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        self.written(context, outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Greeting<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use crate::starts::{Start, Starts};

    use super::*;

    async fn pair(timeout: Duration) -> (TcpStream, Greeting<Connection>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let connection = Connection::new(listener.accept().await.unwrap().0, Starts::new().gate(), ReadTurn::default());
        (client, Greeting::with_timeout(connection, timeout))
    }

    #[tokio::test]
    async fn a_client_that_does_not_read_is_not_read() {
        let (mut client, mut connection) = pair(Duration::from_secs(60)).await;
        client.write_all(&[1; FIRST_BYTES]).await.unwrap();
        // More than any socket keeps.
        let mut left = vec![0; 64 << 20];
        while let Ok(written) = tokio::time::timeout(Duration::from_millis(200), connection.write(&left)).await {
            left.truncate(left.len() - written.unwrap());
        }
        assert!(!left.is_empty());
        let mut bytes = [0; 100];
        let reading = tokio::time::timeout(Duration::from_millis(50), connection.read(&mut bytes));
        assert!(reading.await.is_err(), "nothing is read");
        let (mut reader, mut writer) = tokio::io::split(connection);
        let reader = tokio::spawn(async move { reader.read(&mut bytes).await.unwrap() });
        let writer = tokio::spawn(async move { writer.write_all(&left).await });
        tokio::spawn(async move { tokio::io::copy(&mut client, &mut tokio::io::sink()).await });
        assert_eq!(reader.await.unwrap(), FIRST_BYTES, "it is read as soon as it reads");
        writer.abort();
    }

    #[tokio::test]
    async fn a_client_that_takes_nothing_is_given_up() {
        let (_client, mut connection) = pair(Duration::from_secs(60)).await;
        connection.stream.blocked_timeout = Duration::from_millis(50);
        let error = connection.write_all(&vec![0; 64 << 20]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn a_client_that_says_nothing_is_not_waited_for() {
        let (mut client, mut connection) = pair(Duration::from_millis(30)).await;
        client.write_all(b"PRI *").await.unwrap();
        let mut bytes = [0; 100];
        assert_eq!(connection.read(&mut bytes).await.unwrap(), 5);
        assert_eq!(connection.read(&mut bytes).await.unwrap_err().kind(), ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn a_client_that_sends_fast_is_read_in_turns() {
        let (mut client, connection) = pair(Duration::from_secs(60)).await;
        let (turn, sent) = (connection.stream.turn.clone(), 10 * TURN_BYTES);
        let sending = tokio::spawn(async move { client.write_all(&vec![1; sent]).await.map(|()| client) });
        let (mut read, mut connection) = (0, std::pin::pin!(connection));
        let reads = std::future::poll_fn(|context| {
            let before = read;
            // HTTP/2 tries again behind each request.
            for _ in 0..1_000 {
                let mut bytes = [0; 1_000];
                let mut buffer = ReadBuf::new(&mut bytes);
                if connection.as_mut().poll_read(context, &mut buffer).is_ready() {
                    read += buffer.filled().len();
                }
            }
            assert!(read - before < TURN_BYTES + 1_000, "{} bytes at once", read - before);
            if read == sent { Poll::Ready(()) } else { Poll::Pending }
        });
        turn.by(reads).await;
        sending.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn what_was_decrypted_is_watched_as_well() {
        // As after a TLS handshake: its bytes do not count as a request.
        let (_client, decrypted) = tokio::io::duplex(100);
        let mut greeting = Greeting::with_timeout(decrypted, Duration::from_millis(30));
        assert_eq!(greeting.read(&mut [0; 100]).await.unwrap_err().kind(), ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn a_client_with_too_much_unanswered_is_not_read() {
        let (mut client, mut connection) = pair(Duration::from_secs(60)).await;
        let gate = connection.stream.gate.clone();
        let unanswered: Vec<Start> = (0..1_000).map(|_| gate.start()).collect();
        client.write_all(&[1; FIRST_BYTES]).await.unwrap();
        let mut bytes = [0; 100];
        let reading = tokio::time::timeout(Duration::from_millis(100), connection.read(&mut bytes));
        assert!(reading.await.is_err(), "nothing is read");
        let reader = tokio::spawn(async move { connection.read(&mut bytes).await.unwrap() });
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert!(!reader.is_finished());
        drop(unanswered);
        assert_eq!(reader.await.unwrap(), FIRST_BYTES);
    }

    #[tokio::test]
    async fn a_client_that_began_may_be_silent() {
        let (mut client, mut connection) = pair(Duration::from_millis(30)).await;
        client.write_all(&[1; FIRST_BYTES]).await.unwrap();
        let mut bytes = [0; 100];
        assert_eq!(connection.read(&mut bytes).await.unwrap(), FIRST_BYTES);
        let silent = tokio::time::timeout(Duration::from_millis(100), connection.read(&mut bytes));
        assert!(silent.await.is_err(), "it goes on waiting");
        client.write_all(b"more").await.unwrap();
        assert_eq!(connection.read(&mut bytes).await.unwrap(), 4);
    }
}
