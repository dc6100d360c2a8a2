//! How far the records of a partition are in its read model, and those who wait for that.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;

/// Who waits is told once.
type Told = Box<dyn FnOnce() + Send>;

/// So many may wait for a partition at once.
const WAITING_MAX: usize = 10_000;

/// How far a partition is folded.
#[derive(Default)]
pub struct Progress {
    position: AtomicU64,
    waiting: Mutex<Vec<(u64, Told)>>,
    /// Whether somebody waits, read without the lock.
    is_awaited: AtomicBool,
}

impl Progress {
    /// The position up to which searches see what happened.
    pub fn position(&self) -> u64 {
        self.position.load(Ordering::Acquire)
    }

    /// Whether somebody waits.
    pub(crate) fn is_awaited(&self) -> bool {
        self.is_awaited.load(Ordering::Relaxed)
    }

    /// Everything up to this position can be found now.
    pub(crate) fn reached(&self, position: u64) {
        // Under the lock, so that nobody is added between the new position and the look at those who wait.
        let mut waiting = self.waiting.lock();
        self.position.store(position, Ordering::Release);
        if waiting.is_empty() {
            return;
        }
        let (reached, rest) = waiting.drain(..).partition(|(wanted, _)| *wanted <= position);
        *waiting = rest;
        self.is_awaited.store(!waiting.is_empty(), Ordering::Relaxed);
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
                if waiting.len() >= WAITING_MAX {
                    drop(waiting.remove(0));
                }
                waiting.push((position, Box::new(told)));
                self.is_awaited.store(true, Ordering::Relaxed);
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
        progress.when(0, count(1));
        progress.when(5, count(10));
        progress.when(6, count(100));
        progress.reached(5);
        assert_eq!(told.load(Ordering::Relaxed), 11);
        progress.when(3, count(1_000));
        progress.reached(9);
        progress.reached(10);
        assert_eq!(told.load(Ordering::Relaxed), 1_111);
    }
}
