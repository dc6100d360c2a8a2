//! Reads of one log that do not get the blocks of another.
//!
//! `raft-engine` keeps for each thread the last block that was read there, and knows it by the number of its file and the
//! place in that, which another log in the same process (or the same directory, opened again after a crash) has too, with
//! something else in it. One node has one log and reads it with one thread. Where several are in a process, each thread
//! belongs to the first log that it reads, and other logs are read by a thread for the time of the read.

use std::cell::Cell;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU64, Ordering};

static OPENED: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// The log that this thread belongs to; 0 for none yet.
    static LOG: Cell<u64> = const { Cell::new(0) };
}

/// An opened log, told from all others of this process.
#[derive(Debug)]
pub(super) struct Blocks(u64);

impl Blocks {
    pub fn new() -> Self {
        Blocks(OPENED.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Calls what reads blocks of this log.
    pub fn read<T: Send>(&self, call: impl FnOnce() -> T + Send) -> T {
        if LOG.get() == 0 {
            LOG.set(self.0);
        }
        if LOG.get() == self.0 {
            return call();
        }
        std::thread::scope(|scope| scope.spawn(call).join().unwrap_or_else(|panic| resume_unwind(panic)))
    }
}
