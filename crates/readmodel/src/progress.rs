//! How far the records of a partition are in its read model, and those who wait for that.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use exporters::Controller;
use parking_lot::Mutex;

/// Who waits is told once.
type Told = Box<dyn FnOnce() + Send>;

/// So many may wait for a partition at once.
const WAITING_MAX: usize = 10_000;

/// What [`Progress::awaited`] is while nobody waits.
const NOBODY: u64 = u64::MAX;

/// How far a partition is folded.
pub struct Progress {
    position: AtomicU64,
    waiting: Mutex<Waiting>,
    /// The first position that somebody waits for, read without the lock.
    awaited: AtomicU64,
    /// Why nothing is folded until an operator changes something.
    trouble: Mutex<Option<String>>,
}

#[derive(Default)]
struct Waiting {
    /// By the order in which they came.
    those: BTreeMap<u64, (u64, Told)>,
    /// How many came.
    came: u64,
    /// To call the thread that folds.
    folds: Option<Controller>,
}

impl Waiting {
    fn first(&self) -> u64 {
        self.those.values().map(|(position, _)| *position).min().unwrap_or(NOBODY)
    }
}

/// Somebody who waits, until it is dropped.
#[must_use = "who drops it gives up"]
#[derive(Debug)]
pub struct Waiter {
    progress: Arc<Progress>,
    number: u64,
}

/// Nobody waits any more for what may never come, or the thread that folds would hurry for it for ever.
impl Drop for Waiter {
    fn drop(&mut self) {
        let mut waiting = self.progress.waiting.lock();
        let given_up = waiting.those.remove(&self.number);
        if given_up.is_some_and(|(position, _)| position == self.progress.awaited.load(Ordering::Relaxed)) {
            self.progress.awaited.store(waiting.first(), Ordering::Relaxed);
        }
    }
}

impl Default for Progress {
    fn default() -> Self {
        Progress {
            position: AtomicU64::new(0),
            waiting: Mutex::default(),
            awaited: AtomicU64::new(NOBODY),
            trouble: Mutex::default(),
        }
    }
}

impl Progress {
    /// The position up to which searches see what happened.
    pub fn position(&self) -> u64 {
        self.position.load(Ordering::Acquire)
    }

    /// Why nothing is folded until an operator changes something, in a sentence.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.trouble.lock().clone()
    }

    /// What is in the way until an operator changes something; none when nothing is.
    pub(crate) fn set_trouble(&self, trouble: Option<String>) {
        *self.trouble.lock() = trouble;
    }

    /// Whether somebody waits.
    pub(crate) fn is_awaited(&self) -> bool {
        self.awaited.load(Ordering::Relaxed) != NOBODY
    }

    /// Whether somebody waits for this position or one before it.
    pub(crate) fn is_awaited_at(&self, position: u64) -> bool {
        self.awaited.load(Ordering::Relaxed) <= position
    }

    /// Who begins to wait calls the thread that folds by this.
    pub(crate) fn folded_by(&self, controller: Controller) {
        self.waiting.lock().folds = Some(controller);
    }

    /// Everything up to this position can be found now.
    pub(crate) fn reached(&self, position: u64) {
        // Under the lock, so that nobody is added between the new position and the look at those who wait.
        let mut waiting = self.waiting.lock();
        self.position.store(position, Ordering::Release);
        if waiting.those.is_empty() {
            return;
        }
        let reached: Vec<Told> =
            waiting.those.extract_if(.., |_, (wanted, _)| *wanted <= position).map(|(_, (_, told))| told).collect();
        self.awaited.store(waiting.first(), Ordering::Relaxed);
        drop(waiting);
        for told in reached {
            told();
        }
    }

    /// Calls `told` when everything up to this position can be found, at once if it is so already. `told` is dropped uncalled when too
    /// many wait, or when who waits is dropped.
    pub fn when(self: &Arc<Self>, position: u64, told: impl FnOnce() + Send + 'static) -> Option<Waiter> {
        if self.position() < position {
            let mut waiting = self.waiting.lock();
            if self.position() < position {
                let longest = if waiting.those.len() >= WAITING_MAX { waiting.those.pop_first() } else { None };
                waiting.came += 1;
                let number = waiting.came;
                waiting.those.insert(number, (position, Box::new(told)));
                match longest {
                    None => drop(self.awaited.fetch_min(position, Ordering::Relaxed)),
                    Some(_) => self.awaited.store(waiting.first(), Ordering::Relaxed),
                }
                let folds = waiting.folds.clone();
                drop(waiting);
                drop(longest);
                if let Some(folds) = folds {
                    folds.wake();
                }
                return Some(Waiter { progress: self.clone(), number });
            }
        }
        told();
        None
    }
}

impl std::fmt::Debug for Progress {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Progress").field("position", &self.position).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use exporters::Kept;

    use super::*;

    #[test]
    fn who_waits_is_told_once_when_it_is_there() {
        let (progress, told) = (Arc::new(Progress::default()), Arc::new(AtomicU64::new(0)));
        let count = |by: u64| {
            let told = told.clone();
            move || {
                told.fetch_add(by, Ordering::Relaxed);
            }
        };
        let called = Arc::new(AtomicU64::new(0));
        let calls = called.clone();
        progress.folded_by(Controller::new(Kept::default(), move || {
            calls.fetch_add(1, Ordering::Relaxed);
        }));
        assert!(progress.when(0, count(1)).is_none());
        assert!(!progress.is_awaited());
        let six = progress.when(6, count(100));
        let five = progress.when(5, count(10));
        assert!(six.is_some() && five.is_some());
        assert_eq!(called.load(Ordering::Relaxed), 2, "the thread that folds knows that it is waited for");
        assert_eq!([4, 5, 6].map(|position| progress.is_awaited_at(position)), [false, true, true]);
        progress.reached(5);
        assert_eq!([5, 6].map(|position| progress.is_awaited_at(position)), [false, true]);
        assert_eq!(told.load(Ordering::Relaxed), 11);
        assert!(progress.when(3, count(1_000)).is_none());
        progress.reached(9);
        assert!(!progress.is_awaited());
        progress.reached(10);
        assert_eq!(told.load(Ordering::Relaxed), 1_111);
    }

    /// A position may never come: it is of a time before a restore, or was never given.
    #[test]
    fn who_gives_up_is_forgotten() {
        let progress = Arc::new(Progress::default());
        let [never, later, soon] =
            [u64::MAX - 1, 9, 5].map(|position| progress.when(position, || {}).expect("it waits"));
        assert!(progress.is_awaited_at(5));
        drop(soon);
        assert_eq!([8, 9].map(|position| progress.is_awaited_at(position)), [false, true]);
        progress.reached(9);
        drop(later);
        assert!(progress.is_awaited());
        drop(never);
        assert!(!progress.is_awaited());
        let mut waiters: Vec<_> = (1..=WAITING_MAX as u64).map(|number| progress.when(10 + number, || {})).collect();
        waiters.push(progress.when(1_000_000, || {}));
        assert_eq!([11, 12].map(|position| progress.is_awaited_at(position)), [false, true], "who waits longest goes");
        drop(waiters);
        assert!(!progress.is_awaited());
    }
}
