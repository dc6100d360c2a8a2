//! When nobody reads in the files, so that their write-ahead logs can begin anew.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Searches go through it to the files of a node.
///
/// SQLite begins a write-ahead log anew only while nobody reads in it. Searches that overlap without a pause leave no such moment,
/// and the log would grow until the disk is full: whoever writes then closes the gate for one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Gate(Arc<RwLock<()>>);

impl Gate {
    /// Keeps it open as long as somebody reads; none if it is closed until the deadline.
    pub fn read(&self, deadline: Instant) -> Option<RwLockReadGuard<'_, ()>> {
        self.0.try_read_until(deadline)
    }

    /// Lets nobody new in, and waits until those who are in have left; none if that takes longer than the patience.
    pub fn close(&self, patience: Duration) -> Option<RwLockWriteGuard<'_, ()>> {
        self.0.try_write_for(patience)
    }
}
