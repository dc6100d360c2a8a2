//! How many requests that start work are let in at once.
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
use std::sync::atomic::{AtomicUsize, Ordering};
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
/// Bounds of the number that is let in, its value at the start, and its growth at each measurement.
const LIMIT_MIN: usize = 32;
const LIMIT_MAX: usize = 10_000;
const LIMIT_START: usize = 256;
const LIMIT_GROWTH: usize = 4;

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
    unanswered: AtomicUsize,
    limit: AtomicUsize,
    /// Told when something is unanswered again.
    first: Notify,
    /// Connections that wait to be read, in the order in which they began to.
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
    /// Who reads the connection, while it stands in the queue of those that wait.
    reader: Mutex<Option<Waker>>,
}

/// A request that starts work and is not answered.
pub(crate) struct Start(Gate);

impl Starts {
    pub(crate) fn new() -> Self {
        Starts(Arc::new(Shared {
            unanswered: AtomicUsize::new(0),
            limit: AtomicUsize::new(LIMIT_START),
            first: Notify::new(),
            waiting: Mutex::default(),
        }))
    }

    /// For a new connection.
    pub(crate) fn gate(&self) -> Gate {
        Gate { starts: self.clone(), state: Arc::default() }
    }

    /// Measures the delay of the threads and adapts the limit to it, for ever. Nothing is measured while nothing is
    /// unanswered.
    pub(crate) async fn adapt(self) {
        let mut pause = 0;
        loop {
            if self.0.unanswered.load(Ordering::Relaxed) == 0 {
                self.0.first.notified().await;
            }
            tokio::time::sleep(MEASURE_INTERVAL).await;
            let ready = Instant::now();
            let_others_go_first().await;
            pause = self.observe(ready.elapsed(), pause);
        }
    }

    /// Adapts the limit after a measurement, and returns for how many more it must not shrink again.
    fn observe(&self, delay: Duration, pause: u32) -> u32 {
        let limit = self.0.limit.load(Ordering::Relaxed);
        if delay > TARGET_DELAY {
            if pause > 0 {
                return pause - 1;
            }
            self.0.limit.store((limit - limit.div_ceil(10)).max(LIMIT_MIN), Ordering::Relaxed);
            return DECREASE_PAUSE;
        }
        // A limit that nobody comes near says nothing about what the threads can do.
        if self.0.unanswered.load(Ordering::Relaxed) >= limit / 2 {
            let grown = (limit + LIMIT_GROWTH).min(LIMIT_MAX);
            self.0.limit.store(grown, Ordering::Relaxed);
            for _ in limit..grown {
                self.let_in();
            }
        }
        pause.saturating_sub(1)
    }

    fn has_room(&self) -> bool {
        self.0.unanswered.load(Ordering::Acquire) < self.0.limit.load(Ordering::Relaxed)
    }

    /// Lets the next connection be read, if there is room.
    fn let_in(&self) {
        while self.has_room() {
            let Some(next) = self.0.waiting.lock().pop_front() else { return };
            if let Some(reader) = next.reader.lock().take() {
                reader.wake();
                return;
            }
        }
    }
}

impl Gate {
    /// Counts a request until the answer is dropped.
    pub(crate) fn start(&self) -> Start {
        self.state.unanswered.fetch_add(1, Ordering::AcqRel);
        if self.starts.0.unanswered.fetch_add(1, Ordering::AcqRel) == 0 {
            self.starts.0.first.notify_one();
        }
        Start(self.clone())
    }

    /// Whether the connection may be read; if not, the reader is woken when it may. A connection that has nothing
    /// unanswered always may, so that whoever asks for one thing after the other is not held up by those who do not.
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

    /// Whether there is so much to start that the limit may be met soon.
    pub(crate) fn is_busy(&self) -> bool {
        let starts = &self.starts.0;
        starts.unanswered.load(Ordering::Relaxed) >= starts.limit.load(Ordering::Relaxed) / 2
    }

    fn is_open(&self) -> bool {
        self.state.unanswered.load(Ordering::Acquire) == 0 || self.starts.has_room()
    }
}

impl Drop for Start {
    fn drop(&mut self) {
        let Start(gate) = self;
        gate.starts.0.unanswered.fetch_sub(1, Ordering::AcqRel);
        if gate.state.unanswered.fetch_sub(1, Ordering::AcqRel) == 1
            && let Some(reader) = gate.state.reader.lock().take()
        {
            // Its place in the queue is found empty later.
            reader.wake();
        }
        gate.starts.let_in();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
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
        let mut unanswered: Vec<Start> = (0..LIMIT_START).map(|turn| gates[turn % 2].start()).collect();
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
