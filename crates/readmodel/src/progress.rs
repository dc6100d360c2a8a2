//! How far the records of a partition are in its read model, and those who wait for that.

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
}

#[derive(Default)]
struct Waiting {
    those: Vec<(u64, Told)>,
    /// To call the thread that folds.
    folds: Option<Controller>,
}

impl Waiting {
    fn first(&self) -> u64 {
        self.those.iter().map(|(position, _)| *position).min().unwrap_or(NOBODY)
    }
}

impl Default for Progress {
    fn default() -> Self {
        Progress { position: AtomicU64::new(0), waiting: Mutex::default(), awaited: AtomicU64::new(NOBODY) }
    }
}

impl Progress {
    /// The position up to which searches see what happened.
    pub fn position(&self) -> u64 {
        self.position.load(Ordering::Acquire)
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
        let (reached, rest) = waiting.those.drain(..).partition(|(wanted, _)| *wanted <= position);
        waiting.those = rest;
        self.awaited.store(waiting.first(), Ordering::Relaxed);
        drop(waiting);
        for (_, told) in reached {
            told();
        }
    }

    /// Calls `told` when everything up to this position can be found, at once if it is so already. `told` is dropped uncalled when too
    /// many wait.
    pub fn when(&self, position: u64, told: impl FnOnce() + Send + 'static) {
        if self.position() < position {
            let mut waiting = self.waiting.lock();
            if self.position() < position {
                // Those who gave up have dropped nothing here, so the oldest go first.
                if waiting.those.len() >= WAITING_MAX {
                    drop(waiting.those.remove(0));
                }
                waiting.those.push((position, Box::new(told)));
                self.awaited.fetch_min(position, Ordering::Relaxed);
                let folds = waiting.folds.clone();
                drop(waiting);
                if let Some(folds) = folds {
                    folds.wake();
                }
                return;
            }
        }
        told();
    }
}

impl std::fmt::Debug for Progress {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Progress").field("position", &self.position).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use exporters::Kept;

    use super::*;

    #[test]
    fn who_waits_is_told_once_when_it_is_there() {
        let (progress, told) = (Progress::default(), Arc::new(AtomicU64::new(0)));
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
        progress.when(0, count(1));
        assert!(!progress.is_awaited());
        progress.when(6, count(100));
        progress.when(5, count(10));
        assert_eq!(called.load(Ordering::Relaxed), 2, "the thread that folds knows that it is waited for");
        assert_eq!([4, 5, 6].map(|position| progress.is_awaited_at(position)), [false, true, true]);
        progress.reached(5);
        assert_eq!([5, 6].map(|position| progress.is_awaited_at(position)), [false, true]);
        assert_eq!(told.load(Ordering::Relaxed), 11);
        progress.when(3, count(1_000));
        progress.reached(9);
        assert!(!progress.is_awaited());
        progress.reached(10);
        assert_eq!(told.load(Ordering::Relaxed), 1_111);
    }
}
