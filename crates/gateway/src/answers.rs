//! Answers that clients have not read: bounded in bytes and time.
//!
//! A client that opens no window for its answers but keeps answering pings looks alive. What it has asked for stays in
//! memory here until it is read, so what is not read is counted for each connection and for the gateway, from the moment on
//! at which a partition is asked until the bytes are in the socket. A request without room waits, and nothing is done for
//! it meanwhile. A connection that has not read anything for a while is closed.
//!
//! How large an answer will be is not known when a partition is asked, so what is kept for it is what the last ones had.
//! One that is larger than that may pass the limit; at twice the limit it is refused.
//!
//! Jobs of streams are not counted here: they have their credit, and a worker may take as long as it likes for one.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http_body::{Body, Frame, SizeHint};
use hyper::body::Bytes;
use metrics::Gauge;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::outcome::Failure;

/// Unread answers of one connection.
const CONNECTION_BYTES_MAX: usize = 32 << 20;
/// Unread answers of all connections together.
const GATEWAY_BYTES_MAX: usize = 256 << 20;
/// How long a client may read nothing of what is ready for it.
const STALL_TIMEOUT: Duration = Duration::from_secs(60);
/// How often this is checked, and how long an answer may take while others wait for room.
const STALL_INTERVAL: Duration = Duration::from_secs(10);
/// What is kept for an answer at first, and the least later.
const EXPECTED_BYTES_START: usize = 512 << 10;
const EXPECTED_BYTES_MIN: usize = 16 << 10;
/// An answer goes out in pieces of this size; each piece shows that the client reads.
const CHUNK_BYTES: usize = 128 << 10;
/// By what part of the difference the expectation follows smaller answers.
const EXPECTATION_PART: usize = 32;

/// Kinds of answers that may be large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LargeAnswer {
    Jobs,
    ProcessInstanceResult,
    Deployment,
    DecisionEvaluation,
    Topology,
    Search,
}

impl LargeAnswer {
    const COUNT: usize = LargeAnswer::Search as usize + 1;
}

/// A sum of bytes and its limit.
struct Account {
    bytes: AtomicUsize,
    limit_bytes: usize,
    /// Notified when bytes are given back.
    room: Notify,
}

impl Account {
    fn new(limit_bytes: usize) -> Self {
        Account { bytes: AtomicUsize::new(0), limit_bytes, room: Notify::new() }
    }

    /// Adds bytes up to a limit. A single answer always fits, whatever its size.
    fn add(&self, bytes: usize, limit_bytes: usize) -> bool {
        let sum = |all: usize| (all == 0 || all.saturating_add(bytes) <= limit_bytes).then_some(all + bytes);
        self.bytes.fetch_update(Ordering::AcqRel, Ordering::Acquire, sum).is_ok()
    }

    fn give_back(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::AcqRel);
        self.room.notify_one();
    }

    fn is_full(&self) -> bool {
        self.bytes.load(Ordering::Acquire) >= self.limit_bytes / 8 * 7
    }
}

/// The unread answers of a gateway.
#[derive(Clone)]
pub(crate) struct Answers(Arc<Shared>);

struct Shared {
    account: Account,
    connection_bytes_max: usize,
    stall_interval: Duration,
    stall_timeout: Duration,
    /// By kind of answer.
    expected: [AtomicUsize; LargeAnswer::COUNT],
    gauge: Gauge,
}

/// The unread answers of one connection. Clones share the count.
#[derive(Clone)]
pub(crate) struct ConnectionAnswers(Arc<Connection>);

struct Connection {
    shared: Arc<Shared>,
    account: Account,
    /// Answers that are ready to be read.
    ready: AtomicUsize,
    /// Notified when the first is.
    first: Notify,
    /// How many pieces of them were read, or given up, so far.
    gone: AtomicU64,
}

/// A full account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Full {
    Connection,
    Gateway,
}

impl Answers {
    pub(crate) fn new() -> Self {
        let limits = (GATEWAY_BYTES_MAX, CONNECTION_BYTES_MAX);
        Self::with_limits(limits, EXPECTED_BYTES_START, STALL_TIMEOUT, STALL_INTERVAL)
    }

    fn with_limits(
        (gateway_bytes_max, connection_bytes_max): (usize, usize),
        expected_bytes: usize,
        stall_timeout: Duration,
        stall_interval: Duration,
    ) -> Self {
        Answers(Arc::new(Shared {
            stall_interval,
            stall_timeout,
            account: Account::new(gateway_bytes_max),
            connection_bytes_max,
            expected: std::array::from_fn(|_| AtomicUsize::new(expected_bytes)),
            gauge: metrics::gauge!("osmia_gateway_unread_answers_bytes"),
        }))
    }

    /// For a new connection.
    pub(crate) fn connection(&self) -> ConnectionAnswers {
        ConnectionAnswers(Arc::new(Connection {
            shared: self.0.clone(),
            account: Account::new(self.0.connection_bytes_max),
            ready: AtomicUsize::new(0),
            first: Notify::new(),
            gone: AtomicU64::new(0),
        }))
    }

    /// Brings the metric up to date.
    pub(crate) fn report(&self) {
        self.0.gauge.set(self.0.account.bytes.load(Ordering::Relaxed) as f64);
    }
}

impl ConnectionAnswers {
    /// For one request.
    pub(crate) fn slot(&self) -> AnswerSlot {
        AnswerSlot { connection: self.0.clone(), ready: Arc::default() }
    }

    /// Ends when the client has read nothing for too long, although something is ready for it.
    pub(crate) async fn stalled(&self) {
        let connection = &*self.0;
        let (interval, timeout) = (connection.shared.stall_interval, connection.shared.stall_timeout);
        let (mut gone, mut quiet) = (0, Duration::ZERO);
        loop {
            if connection.ready.load(Ordering::Acquire) == 0 {
                connection.first.notified().await;
                quiet = Duration::ZERO;
                gone = connection.gone.load(Ordering::Acquire);
            }
            tokio::time::sleep(interval).await;
            let before = std::mem::replace(&mut gone, connection.gone.load(Ordering::Acquire));
            let is_quiet = before == gone && connection.ready.load(Ordering::Acquire) > 0;
            quiet = if is_quiet { quiet + interval } else { Duration::ZERO };
            if is_quiet && (quiet >= timeout || connection.shared.account.is_full()) {
                return;
            }
        }
    }
}

impl Connection {
    fn add(&self, bytes: usize, times: usize) -> Result<(), Full> {
        let shared = &self.shared.account;
        if !self.account.add(bytes, self.account.limit_bytes * times) {
            return Err(Full::Connection);
        }
        if !shared.add(bytes, shared.limit_bytes * times) {
            self.account.give_back(bytes);
            return Err(Full::Gateway);
        }
        Ok(())
    }

    fn refusal(&self, full: Full) -> Failure {
        let (whose, limit_bytes) = match full {
            Full::Connection => ("this connection", self.account.limit_bytes),
            Full::Gateway => ("all connections together", self.shared.account.limit_bytes),
        };
        Failure::AnswersUnread { whose, limit_bytes }
    }
}

/// Where a request keeps what its answer takes until it is read. Clones share it.
#[derive(Clone)]
pub(crate) struct AnswerSlot {
    connection: Arc<Connection>,
    /// Of what goes out with the next bytes of the body.
    ready: Arc<Mutex<Vec<AnswerBytes>>>,
}

impl AnswerSlot {
    /// Waits for room for an answer of the expected size.
    ///
    /// # Errors
    /// When there is none for that long.
    pub(crate) async fn reserve(&self, kind: LargeAnswer, limit: Duration) -> Result<AnswerBytes, Failure> {
        let bytes = self.connection.shared.expected[kind as usize].load(Ordering::Relaxed);
        if self.connection.add(bytes, 1).is_ok() {
            return Ok(self.bytes(kind, bytes));
        }
        let reserved = tokio::time::timeout(limit, self.wait_for_room(bytes)).await;
        match reserved {
            Ok(()) => Ok(self.bytes(kind, bytes)),
            Err(_) => {
                let full = self.connection.add(0, 1).err().unwrap_or(Full::Connection);
                Err(self.connection.refusal(full))
            }
        }
    }

    async fn wait_for_room(&self, bytes: usize) {
        let (own, all) = (&self.connection.account.room, &self.connection.shared.account.room);
        loop {
            let (mut own_room, mut all_room) = (pin!(own.notified()), pin!(all.notified()));
            own_room.as_mut().enable();
            all_room.as_mut().enable();
            match self.connection.add(bytes, 1) {
                Ok(()) => break,
                // A waiter that was notified and is dropped passes it on.
                Err(Full::Connection) => own_room.await,
                Err(Full::Gateway) => all_room.await,
            }
        }
        // There may be room for more than one.
        own.notify_one();
        all.notify_one();
    }

    /// Counts an answer without a reservation.
    ///
    /// # Errors
    /// When it does not fit twice the limit.
    pub(crate) fn take(&self, kind: LargeAnswer, bytes: usize) -> Result<AnswerBytes, Failure> {
        match self.connection.add(bytes, 2) {
            Ok(()) => Ok(self.bytes(kind, bytes)),
            Err(full) => Err(self.connection.refusal(full)),
        }
    }

    /// The answer goes out with the next bytes of the body.
    pub(crate) fn put(&self, mut bytes: AnswerBytes) {
        if !std::mem::replace(&mut bytes.is_ready, true) && self.connection.ready.fetch_add(1, Ordering::AcqRel) == 0 {
            self.connection.first.notify_one();
        }
        self.ready.lock().push(bytes);
    }

    fn bytes(&self, kind: LargeAnswer, bytes: usize) -> AnswerBytes {
        AnswerBytes { connection: self.connection.clone(), kind, bytes, is_ready: false }
    }
}

impl Default for AnswerSlot {
    fn default() -> Self {
        Answers::new().connection().slot()
    }
}

/// What one answer takes, given back when it is dropped.
pub(crate) struct AnswerBytes {
    connection: Arc<Connection>,
    kind: LargeAnswer,
    bytes: usize,
    is_ready: bool,
}

impl AnswerBytes {
    /// The answer is there and has this size.
    ///
    /// # Errors
    /// When it does not fit twice the limit.
    pub(crate) fn settle(&mut self, bytes: usize) -> Result<(), Failure> {
        let expected = &self.connection.shared.expected[self.kind as usize];
        let before = expected.load(Ordering::Relaxed);
        let next = if bytes > before { bytes } else { before - (before - bytes) / EXPECTATION_PART };
        expected.store(next.max(EXPECTED_BYTES_MIN), Ordering::Relaxed);
        if bytes > self.bytes {
            let more = bytes - self.bytes;
            self.connection.add(more, 2).map_err(|full| self.connection.refusal(full))?;
        } else {
            self.give_back(self.bytes - bytes);
        }
        self.bytes = bytes;
        Ok(())
    }

    fn give_back(&self, bytes: usize) {
        if bytes > 0 {
            self.connection.account.give_back(bytes);
            self.connection.shared.account.give_back(bytes);
        }
    }
}

impl Drop for AnswerBytes {
    fn drop(&mut self) {
        self.give_back(self.bytes);
        if self.is_ready {
            self.connection.ready.fetch_sub(1, Ordering::AcqRel);
            self.connection.gone.fetch_add(1, Ordering::AcqRel);
        }
    }
}

/// The body of an answer. Each piece of it holds what it takes until it is in the socket.
pub(crate) struct Counted<B> {
    body: B,
    slot: AnswerSlot,
    /// What is left of the last piece of the body.
    rest: Bytes,
}

impl<B> Counted<B> {
    pub(crate) fn new(body: B, slot: AnswerSlot) -> Self {
        Counted { body, slot, rest: Bytes::new() }
    }

    /// What is not sent yet.
    pub(crate) fn body_mut(&mut self) -> &mut B {
        &mut self.body
    }

    fn next_chunk(&mut self) -> Frame<Bytes> {
        let bytes = self.rest.split_to(self.rest.len().min(CHUNK_BYTES));
        Frame::data(Bytes::from_owner(Chunk { bytes, connection: self.slot.connection.clone() }))
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Counted<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        if !self.rest.is_empty() {
            return Poll::Ready(Some(Ok(self.next_chunk())));
        }
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        let taken = std::mem::take(&mut *self.slot.ready.lock());
        match frame {
            Some(Ok(frame)) if !taken.is_empty() && frame.is_data() => {
                let bytes = frame.into_data().unwrap_or_default();
                self.rest = Bytes::from_owner(Piece { bytes, _taken: taken });
                Poll::Ready(Some(Ok(self.next_chunk())))
            }
            other => Poll::Ready(other),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        if self.rest.is_empty() { self.body.size_hint() } else { SizeHint::default() }
    }
}

/// A part of a piece on its way.
struct Chunk {
    bytes: Bytes,
    connection: Arc<Connection>,
}

impl AsRef<[u8]> for Chunk {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        self.connection.gone.fetch_add(1, Ordering::AcqRel);
    }
}

struct Piece {
    bytes: Bytes,
    _taken: Vec<AnswerBytes>,
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: LargeAnswer = LargeAnswer::DecisionEvaluation;
    const LONG: Duration = Duration::from_secs(60);
    const STALL: Duration = Duration::from_millis(200);

    fn answers(gateway_bytes_max: usize, connection_bytes_max: usize) -> Answers {
        Answers::with_limits((gateway_bytes_max, connection_bytes_max), EXPECTED_BYTES_MIN, STALL, STALL / 10)
    }

    fn unread(answers: &Answers) -> usize {
        answers.0.account.bytes.load(Ordering::Relaxed)
    }

    /// A body of one piece.
    struct Whole(Option<Bytes>);

    impl Body for Whole {
        type Data = Bytes;
        type Error = Failure;

        fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Failure>>> {
            Poll::Ready(self.0.take().map(|bytes| Ok(Frame::data(bytes))))
        }
    }

    async fn piece(slot: &AnswerSlot) -> Bytes {
        let mut body = Counted::new(Whole(Some(Bytes::from_static(b"answer"))), slot.clone());
        let frame = std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await;
        frame.expect("a piece").expect("no error").into_data().expect("data")
    }

    #[tokio::test]
    async fn what_is_not_read_is_counted_until_its_bytes_are_gone() {
        let answers = answers(1 << 20, 1 << 20);
        let slot = answers.connection().slot();
        let mut share = slot.reserve(KIND, LONG).await.unwrap();
        assert_eq!(unread(&answers), EXPECTED_BYTES_MIN);
        share.settle(100_000).unwrap();
        slot.put(share);
        assert_eq!(unread(&answers), 100_000);
        let bytes = piece(&slot).await;
        drop(slot);
        assert_eq!((&bytes[..], unread(&answers)), (&b"answer"[..], 100_000), "written, not read");
        drop(bytes);
        assert_eq!(unread(&answers), 0);
    }

    #[tokio::test]
    async fn a_large_answer_goes_out_in_chunks_that_show_who_reads() {
        let answers = answers(1 << 20, 1 << 20);
        let connection = answers.connection();
        let slot = connection.slot();
        slot.put(slot.take(KIND, 3 * CHUNK_BYTES).unwrap());
        let whole: Vec<u8> = (0..3 * CHUNK_BYTES).map(|index| (index % 251) as u8).collect();
        let mut body = Counted::new(Whole(Some(whole.clone().into())), slot);
        let mut read = Vec::new();
        let gone = || connection.0.gone.load(Ordering::Relaxed);
        for chunk in 0..3 {
            assert!(!body.is_end_stream());
            let frame = std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await;
            let bytes = frame.expect("more").expect("no error").into_data().expect("data");
            assert_eq!((bytes.len(), gone(), unread(&answers)), (CHUNK_BYTES, chunk, 3 * CHUNK_BYTES));
            read.extend_from_slice(&bytes);
        }
        assert_eq!(read, whole);
        assert!(std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await.is_none());
        assert_eq!(unread(&answers), 0, "nothing is left of it");
    }

    #[tokio::test]
    async fn who_asks_for_more_waits_until_something_is_read() {
        let answers = answers(1 << 20, 64 << 10);
        let connection = answers.connection();
        let mut first = connection.slot().reserve(KIND, LONG).await.unwrap();
        first.settle(64 << 10).unwrap();
        let slot = connection.slot();
        let mut second = Box::pin(slot.reserve(KIND, LONG));
        assert!(futures_poll(&mut second).await.is_pending(), "the connection is full");
        answers.connection().slot().reserve(KIND, LONG).await.expect("another one is not");
        drop(first);
        assert_eq!(second.await.unwrap().bytes, 64 << 10, "what the last one had");
    }

    #[tokio::test]
    async fn one_room_lets_in_all_that_fit() {
        let answers = answers(64 << 10, 1 << 20);
        let (big, small) = (answers.connection().slot(), answers.connection().slot());
        let all = big.take(KIND, 64 << 10).unwrap();
        let waiting: Vec<_> = (0..4)
            .map(|_| {
                let slot = small.clone();
                tokio::spawn(async move { slot.reserve(KIND, LONG).await })
            })
            .collect();
        tokio::task::yield_now().await;
        drop(all);
        let mut shares = Vec::new();
        for waiting in waiting {
            shares.push(waiting.await.unwrap().unwrap());
        }
        assert_eq!(unread(&answers), 64 << 10);
    }

    #[tokio::test]
    async fn without_room_for_long_the_limit_is_named() {
        let answers = answers(1 << 20, 64 << 10);
        let slot = answers.connection().slot();
        let _all = slot.take(KIND, 64 << 10).unwrap();
        let refusal = slot.reserve(KIND, STALL / 10).await.err().expect("no room");
        assert_eq!(refusal, Failure::AnswersUnread { whose: "this connection", limit_bytes: 64 << 10 });
        let message = refusal.message("EvaluateDecision");
        assert!(message.contains("this connection has more than 65536 bytes of answers"), "{message}");
    }

    #[tokio::test]
    async fn a_large_answer_may_pass_the_limit_but_not_twice() {
        let answers = answers(1 << 20, 100_000);
        let slot = answers.connection().slot();
        let mut alone = slot.reserve(KIND, LONG).await.unwrap();
        alone.settle(150_000).expect("it was let in");
        let refusal = slot.take(KIND, 60_000).err().expect("twice the limit");
        assert_eq!(refusal, Failure::AnswersUnread { whose: "this connection", limit_bytes: 100_000 });
        assert_eq!(unread(&answers), 150_000, "nothing is left of what was refused");
        drop(alone);
        drop(slot.take(KIND, 900_000).expect("whatever its size, it is alone"));
        assert_eq!(unread(&answers), 0);
    }

    #[tokio::test]
    async fn only_who_reads_nothing_of_what_is_ready_is_stalled() {
        let answers = answers(1 << 20, 1 << 20);
        let connection = answers.connection();
        let slot = connection.slot();
        let _asked = slot.reserve(KIND, LONG).await.unwrap();
        let stalled = tokio::spawn({
            let connection = connection.clone();
            async move { connection.stalled().await }
        });
        tokio::time::sleep(STALL * 2).await;
        assert!(!stalled.is_finished(), "nothing is ready");
        slot.put(slot.take(KIND, 10).unwrap());
        stalled.await.expect("it reads nothing");
    }

    #[tokio::test]
    async fn who_stalls_while_others_wait_is_closed_sooner() {
        let answers = Answers::with_limits((1_000, 1 << 20), EXPECTED_BYTES_MIN, LONG * 60, STALL / 10);
        let connection = answers.connection();
        let slot = connection.slot();
        slot.put(slot.take(KIND, 1_000).unwrap());
        tokio::time::timeout(LONG, connection.stalled()).await.expect("not after an hour");
    }

    async fn futures_poll<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
        std::future::poll_fn(|context| Poll::Ready(Pin::new(&mut *future).poll(context))).await
    }
}
