//! How many requests that start work are admitted at once.
//!
//! All requests of this gateway share its threads, first come, first served. With thousands of creations waiting there,
//! each completion and each pushed job would wait behind them at every step it takes, and less would be completed the more
//! is to be started. So while the threads are behind, connections that have such requests unanswered are not read: what
//! else their clients want to start waits there, where it costs nothing.
//!
//! How far behind the threads are is measured: the time until a task that is ready gets its turn. The number of unanswered
//! requests that is allowed shrinks while that takes too long and grows while it does not and the number is in use.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicIsize, AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::Notify;

/// Time until a ready task gets its turn, above which less is let in.
const TARGET_DELAY: Duration = Duration::from_millis(5);
/// Time between two measurements.
const MEASURE_INTERVAL: Duration = Duration::from_millis(5);
/// Measurements between two decreases: it takes a while until one shows.
const DECREASE_PAUSE: u32 = 4;
/// A waiting connection is still read a little after this many measurements, so that the pings of HTTP/2 are answered.
const PASS_MEASUREMENTS: u32 = 200;
/// Bounds of the number that is let in, its value at the start, and its growth at each measurement.
const LIMIT_MIN: isize = 32;
const LIMIT_MAX: isize = 10_000;
const LIMIT_START: isize = 256;
const LIMIT_GROWTH: isize = 4;

/// Puts the task behind all others of its thread that are ready. `yield_now` of the runtime may run it before them.
async fn let_others_go_first() {
    let mut waited = false;
    std::future::poll_fn(|context| {
        if std::mem::replace(&mut waited, true) {
            return Poll::Ready(());
        }
        // Woken while it runs, a task goes to the end of the queue.
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// The unanswered requests of a gateway that start work. Clones share everything.
#[derive(Clone)]
pub(crate) struct Starts(Arc<Shared>);

struct Shared {
    /// Those whose bytes are not all there do not count: their clients may take long.
    unanswered: AtomicIsize,
    limit: AtomicIsize,
    /// Notified when something is unanswered again.
    first: Notify,
    /// Connections that wait to be read, longest first.
    waiting: Mutex<VecDeque<Arc<GateState>>>,
}

/// The unanswered requests of one connection. Clones share the count.
#[derive(Clone)]
pub(crate) struct Gate {
    starts: Starts,
    state: Arc<GateState>,
}

#[derive(Default)]
struct GateState {
    unanswered: AtomicUsize,
    /// It may be read once, regardless of the limit.
    pass: AtomicBool,
    /// The task that reads the connection, while the connection is in the queue.
    reader: Mutex<Option<Waker>>,
}

/// A request that starts work and is not answered.
pub(crate) struct Start(Gate);

/// The bytes of a request on their way. While some are waited for, it does not count: its client may take long, and what
/// counts must be answered without anything being read, or nothing would be read any more.
pub(crate) struct Arrival {
    /// None for requests that do not start work.
    starts: Option<Starts>,
    waits: bool,
}

impl Starts {
    pub(crate) fn new() -> Self {
        Starts(Arc::new(Shared {
            unanswered: AtomicIsize::new(0),
            limit: AtomicIsize::new(LIMIT_START),
            first: Notify::new(),
            waiting: Mutex::default(),
        }))
    }

    /// For a new connection.
    pub(crate) fn gate(&self) -> Gate {
        Gate { starts: self.clone(), state: Arc::default() }
    }

    /// Measures the delay of the threads and adapts the limit to it, for ever. Nothing is measured while nothing is
    /// unanswered and nobody waits.
    pub(crate) async fn adapt(self) {
        let (mut pause, mut measurements) = (0, 0_u32);
        loop {
            if self.is_idle() {
                self.0.first.notified().await;
            }
            tokio::time::sleep(MEASURE_INTERVAL).await;
            let ready = Instant::now();
            let_others_go_first().await;
            pause = self.observe(ready.elapsed(), pause);
            // An answer lets in one connection, which may have nothing to read: then the next one must not wait for ever.
            self.let_in();
            measurements = measurements.wrapping_add(1);
            if measurements % PASS_MEASUREMENTS == 0 {
                self.pass_all();
            }
        }
    }

    /// Adapts the limit after a measurement, and returns for how many more it must not shrink again.
    fn observe(&self, delay: Duration, pause: u32) -> u32 {
        let limit = self.0.limit.load(Ordering::Relaxed);
        if delay > TARGET_DELAY {
            if pause > 0 {
                return pause - 1;
            }
            self.0.limit.store((limit - limit / 10 - 1).max(LIMIT_MIN), Ordering::Relaxed);
            return DECREASE_PAUSE;
        }
        // A limit that is never reached says nothing about what the threads can do.
        if self.0.unanswered.load(Ordering::Relaxed) >= limit / 2 {
            let grown = (limit + LIMIT_GROWTH).min(LIMIT_MAX);
            self.0.limit.store(grown, Ordering::Relaxed);
            for _ in limit..grown {
                self.let_in();
            }
        }
        pause.saturating_sub(1)
    }

    fn is_idle(&self) -> bool {
        self.0.unanswered.load(Ordering::Relaxed) <= 0 && self.0.waiting.lock().is_empty()
    }

    fn add(&self) {
        if self.0.unanswered.fetch_add(1, Ordering::AcqRel) == 0 {
            self.0.first.notify_one();
        }
    }

    /// Counts one more if there is room for it.
    fn try_add(&self) -> bool {
        let starts = &self.0;
        let limit = starts.limit.load(Ordering::Relaxed);
        let more = |unanswered: isize| (unanswered < limit).then_some(unanswered + 1);
        let before = starts.unanswered.fetch_update(Ordering::AcqRel, Ordering::Acquire, more);
        if before == Ok(0) {
            starts.first.notify_one();
        }
        before.is_ok()
    }

    fn has_room(&self) -> bool {
        self.0.unanswered.load(Ordering::Acquire) < self.0.limit.load(Ordering::Relaxed)
    }

    /// Lets every connection that waits be read once.
    fn pass_all(&self) {
        let waiting = std::mem::take(&mut *self.0.waiting.lock());
        for state in waiting {
            state.pass.store(true, Ordering::Release);
            state.wake();
        }
    }

    /// Lets the next connection be read, if there is room.
    fn let_in(&self) {
        while self.has_room() {
            let Some(next) = self.0.waiting.lock().pop_front() else { return };
            if next.wake() {
                return;
            }
        }
    }
}

impl Gate {
    /// Counts a request until the answer is dropped.
    pub(crate) fn start(&self) -> Start {
        self.state.unanswered.fetch_add(1, Ordering::AcqRel);
        self.starts.add();
        Start(self.clone())
    }

    /// Counts a request as soon as there is room for it. For connections that have one request at a time: not to read them
    /// while something on them is unanswered holds up nothing, however many there are, so their requests wait here. Those
    /// that came first go first.
    pub(crate) async fn turn(&self) -> Start {
        let (place, mut has_waited) = (Arc::new(GateState::default()), false);
        std::future::poll_fn(|context| self.poll_turn(&place, &mut has_waited, context)).await;
        self.state.unanswered.fetch_add(1, Ordering::AcqRel);
        Start(self.clone())
    }

    fn poll_turn(&self, place: &Arc<GateState>, has_waited: &mut bool, context: &Context<'_>) -> Poll<()> {
        let starts = &self.starts.0;
        let is_queued = place.reader.lock().is_some();
        // Who was woken has had its turn in the queue.
        let is_first = !is_queued && (*has_waited || starts.waiting.lock().is_empty());
        if is_first && self.starts.try_add() {
            return Poll::Ready(());
        }
        let before = place.reader.lock().replace(context.waker().clone());
        if before.is_none() {
            starts.waiting.lock().push_back(place.clone());
            *has_waited = true;
            // What would have woken it may have happened in between.
            self.starts.let_in();
        }
        Poll::Pending
    }

    /// Watches the bytes of a request as they arrive.
    pub(crate) fn arrival(&self, starts: bool) -> Arrival {
        Arrival { starts: starts.then(|| self.starts.clone()), waits: false }
    }

    /// Whether the connection may be read; if not, the reader is woken when it may. A connection that has nothing
    /// unanswered always may, so that clients that send one request at a time are not delayed by those that do not.
    pub(crate) fn poll_open(&self, context: &Context<'_>) -> Poll<()> {
        if self.is_open() {
            return Poll::Ready(());
        }
        let before = self.state.reader.lock().replace(context.waker().clone());
        if before.is_none() {
            self.starts.0.waiting.lock().push_back(self.state.clone());
        }
        // What would have woken it may have happened in between.
        if self.is_open() { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Whether so much is being started that the limit may be reached soon.
    pub(crate) fn is_busy(&self) -> bool {
        let starts = &self.starts.0;
        starts.unanswered.load(Ordering::Relaxed) >= starts.limit.load(Ordering::Relaxed) / 2
    }

    fn is_open(&self) -> bool {
        let GateState { unanswered, pass, .. } = &*self.state;
        unanswered.load(Ordering::Acquire) == 0 || self.starts.has_room() || pass.swap(false, Ordering::AcqRel)
    }
}

impl GateState {
    /// Wakes the task that waits to read the connection, if any. Its entry in the queue is skipped later.
    fn wake(&self) -> bool {
        let reader = self.reader.lock().take();
        let waited = reader.is_some();
        reader.into_iter().for_each(Waker::wake);
        waited
    }
}

impl Drop for Start {
    fn drop(&mut self) {
        let Start(gate) = self;
        gate.starts.0.unanswered.fetch_sub(1, Ordering::AcqRel);
        if gate.state.unanswered.fetch_sub(1, Ordering::AcqRel) == 1 {
            gate.state.wake();
        }
        gate.starts.let_in();
    }
}

impl Arrival {
    /// Whether more bytes are waited for now.
    pub(crate) fn waits(&mut self, waits: bool) {
        let changed = std::mem::replace(&mut self.waits, waits) != waits;
        let Some(starts) = self.starts.as_ref().filter(|_| changed) else { return };
        if waits {
            starts.0.unanswered.fetch_sub(1, Ordering::AcqRel);
            starts.let_in();
        } else {
            starts.add();
        }
    }
}

impl Drop for Arrival {
    fn drop(&mut self) {
        self.waits(false);
    }
}

#[cfg(test)]
impl Starts {
    /// As many unanswered requests as are ever let in at once.
    pub(crate) fn used_up(&self) -> Vec<Start> {
        let gate = self.gate();
        (0..LIMIT_MAX).map(|_| gate.start()).collect()
    }

    pub(crate) fn unanswered(&self) -> isize {
        self.0.unanswered.load(Ordering::Acquire)
    }

    /// How many wait to be let in.
    pub(crate) fn waiting(&self) -> usize {
        self.0.waiting.lock().len()
    }
}

#[cfg(test)]
mod tests {
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Reader(AtomicBool);

    impl Wake for Reader {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    impl Reader {
        fn reads(self: &Arc<Self>, gate: &Gate) -> bool {
            gate.poll_open(&Context::from_waker(&self.clone().into())).is_ready()
        }

        fn was_woken(&self) -> bool {
            self.0.swap(false, Ordering::Relaxed)
        }
    }

    #[test]
    fn connections_are_read_by_turns_as_room_is_given_back() {
        let starts = Starts::new();
        let gates = [starts.gate(), starts.gate(), starts.gate()];
        let readers = [Arc::new(Reader::default()), Arc::new(Reader::default()), Arc::new(Reader::default())];
        let mut unanswered: Vec<Start> =
            (0..LIMIT_START).map(|turn| gates[usize::from(turn % 2 == 1)].start()).collect();
        assert!(!readers[0].reads(&gates[0]) && !readers[1].reads(&gates[1]));
        assert!(readers[2].reads(&gates[2]), "it has nothing unanswered");
        unanswered.pop();
        assert!(readers[0].was_woken() && !readers[1].was_woken(), "the first that waits");
        assert!(readers[0].reads(&gates[0]));
        unanswered.pop();
        assert!(readers[1].was_woken());
        drop(unanswered);
        assert!(starts.0.waiting.lock().is_empty());
    }

    #[test]
    fn a_connection_whose_last_request_was_answered_is_read_again() {
        let starts = Starts::new();
        let (busy, calm) = (starts.gate(), starts.gate());
        let _unanswered: Vec<Start> = (0..LIMIT_START).map(|_| busy.start()).collect();
        let only = calm.start();
        let reader = Arc::new(Reader::default());
        assert!(!reader.reads(&calm));
        drop(only);
        assert!(reader.was_woken() && reader.reads(&calm));
    }

    #[test]
    fn a_request_does_not_count_while_its_rest_is_waited_for() {
        let starts = Starts::new();
        let gate = starts.gate();
        let _unanswered: Vec<Start> = (0..LIMIT_START).map(|_| gate.start()).collect();
        let reader = Arc::new(Reader::default());
        assert!(!reader.reads(&gate));
        let (mut creation, mut completion) = (gate.arrival(true), gate.arrival(false));
        completion.waits(true);
        assert!(!reader.was_woken() && !reader.reads(&gate));
        creation.waits(true);
        assert!(reader.was_woken() && reader.reads(&gate));
        creation.waits(false);
        assert!(!reader.reads(&gate));
        creation.waits(true);
        drop(creation);
        assert_eq!(starts.0.unanswered.load(Ordering::Relaxed), LIMIT_START);
    }

    #[tokio::test]
    async fn those_that_wait_for_the_rest_of_a_request_are_let_in_when_nothing_else_is_unanswered() {
        let starts = Starts::new();
        let gates: Vec<Gate> = (0..LIMIT_MIN + 8).map(|_| starts.gate()).collect();
        let readers: Vec<Arc<Reader>> = gates.iter().map(|_| Arc::default()).collect();
        let _halves: Vec<Start> = gates.iter().map(Gate::start).collect();
        let others: Vec<Start> = (0..LIMIT_START).map(|_| starts.gate().start()).collect();
        assert!(readers.iter().zip(&gates).all(|(reader, gate)| !reader.reads(gate)));
        let mut arrivals: Vec<Arrival> = gates.iter().map(|gate| gate.arrival(true)).collect();
        arrivals.iter_mut().for_each(|arrival| arrival.waits(true));
        // Those that are let in with the answers have nothing to read, and so nothing more is answered.
        starts.0.limit.store(LIMIT_MIN, Ordering::Relaxed);
        drop(others);
        assert!(readers.iter().any(|reader| !reader.0.load(Ordering::Relaxed)), "one answer lets in one");
        starts.0.first.notified().await;
        let adapting = tokio::spawn(starts.clone().adapt());
        let all = async {
            while readers.iter().any(|reader| !reader.0.load(Ordering::Relaxed)) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), all).await.expect("all are let in");
        adapting.abort();
    }

    #[test]
    fn who_waits_long_is_read_a_little() {
        let starts = Starts::new();
        let gate = starts.gate();
        let _unanswered: Vec<Start> = (0..LIMIT_START).map(|_| gate.start()).collect();
        let reader = Arc::new(Reader::default());
        assert!(!reader.reads(&gate));
        starts.pass_all();
        assert!(reader.was_woken() && reader.reads(&gate));
        assert!(!reader.reads(&gate), "once");
    }

    #[tokio::test]
    async fn requests_that_come_alone_wait_for_their_turn_in_order() {
        let starts = Starts::new();
        let mut unanswered: Vec<Start> = (0..LIMIT_START).map(|_| starts.gate().start()).collect();
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut waiting = Vec::new();
        for number in 0..3 {
            let (gate, order) = (starts.gate(), order.clone());
            waiting.push(tokio::spawn(async move {
                let start = gate.turn().await;
                order.lock().push(number);
                start
            }));
            tokio::task::yield_now().await;
        }
        assert!(waiting.iter().all(|one| !one.is_finished()), "there is no room");
        let mut answered = Vec::new();
        for one in waiting {
            unanswered.pop();
            answered.push(one.await.unwrap());
            assert_eq!(starts.0.unanswered.load(Ordering::Relaxed), LIMIT_START);
        }
        assert_eq!(*order.lock(), [0, 1, 2]);
        drop((unanswered, answered));
        assert_eq!(starts.0.unanswered.load(Ordering::Relaxed), 0);
        drop(starts.gate().turn().await);
    }

    #[test]
    fn the_limit_follows_the_delay() {
        let starts = Starts::new();
        let limit = || starts.0.limit.load(Ordering::Relaxed);
        starts.observe(Duration::ZERO, 0);
        assert_eq!(limit(), LIMIT_START, "it is not in use");
        let slow = TARGET_DELAY * 2;
        let mut pause = starts.observe(slow, 0);
        assert_eq!(limit(), LIMIT_START - 26);
        pause = starts.observe(slow, pause);
        assert_eq!((limit(), pause), (LIMIT_START - 26, DECREASE_PAUSE - 1), "not twice for the same delay");
        for _ in 0..1_000 {
            pause = starts.observe(slow, pause);
        }
        assert_eq!(limit(), LIMIT_MIN);
        let gate = starts.gate();
        let _unanswered: Vec<Start> = (0..LIMIT_MIN).map(|_| gate.start()).collect();
        let reader = Arc::new(Reader::default());
        assert!(!reader.reads(&gate));
        starts.observe(Duration::ZERO, 0);
        assert_eq!(limit(), LIMIT_MIN + LIMIT_GROWTH);
        assert!(reader.was_woken() && reader.reads(&gate));
    }
}
