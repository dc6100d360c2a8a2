//! The thread that looks at the disk.
//!
//! It does nothing else that waits, so that no long checkpoint delays the news that the disk fills up. Between two looks it names
//! commands that take long, which needs a thread that none of them can hold up.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};

use super::reserve::Reserve;
use super::space::Space;
use super::{Disk, DiskState, Plan};
use crate::applying::Watcher;
use crate::maintenance::Maintenance;
use crate::metrics::DiskMetrics;
use crate::shared::Shared;

/// Time between two looks: shorter than the pause before a retry of whatever failed for lack of room.
const INTERVAL: Duration = Duration::from_millis(100);
/// Pause before the reserve is allocated again after that failed.
const ALLOCATION_PAUSE: Duration = Duration::from_secs(10);

pub(crate) struct DiskThread {
    disk: Arc<Disk>,
    directory: PathBuf,
    reserve: Reserve,
    /// Notified when room becomes available.
    maintenance: Sender<Maintenance>,
    /// Closed when the node stops.
    stop: Receiver<()>,
    metrics: DiskMetrics,
    allocate_from: Instant,
    /// Whether the last look failed.
    blind: bool,
    shared: Arc<Shared>,
    watcher: Watcher,
}

impl DiskThread {
    pub fn new(shared: Arc<Shared>, maintenance: Sender<Maintenance>, stop: Receiver<()>) -> Self {
        let disk = shared.disk.clone();
        let directory = disk.directory.clone();
        let reserve = Reserve::of(&directory);
        let (metrics, allocate_from) = (DiskMetrics::new(), Instant::now());
        let watcher = Watcher::default();
        DiskThread {
            disk,
            directory,
            reserve,
            maintenance,
            stop,
            metrics,
            allocate_from,
            blind: false,
            shared,
            watcher,
        }
    }

    /// Runs until the node stops.
    pub fn run(mut self) {
        while matches!(self.stop.recv_timeout(INTERVAL), Err(RecvTimeoutError::Timeout)) {
            self.watcher.name(&self.shared.notes, Instant::now());
            match self.look() {
                Ok(()) => self.blind = false,
                Err(error) => self.fails(&error),
            }
        }
    }

    /// Measures, adjusts the reserve, and publishes the result.
    fn look(&mut self) -> io::Result<()> {
        let mut free = Space::of(&self.directory)?.free_bytes;
        let room = match self.disk.plan(free, self.reserve.left_bytes()) {
            Plan::Nothing => false,
            Plan::GiveUp(bytes) => {
                self.reserve.give_up(bytes)?;
                tracing::warn!(
                    given_up_bytes = bytes, left_bytes = self.reserve.left_bytes(), free_bytes = free,
                    directory = %self.directory.display(), "giving up a piece of the reserve, because the disk is full"
                );
                true
            }
            Plan::Allocate(bytes) => self.allocate(bytes),
        };
        if room {
            free = Space::of(&self.directory)?.free_bytes;
        }
        let changed = self.disk.note(free, self.reserve.left_bytes());
        self.metrics.publish(&self.disk.view());
        if let Some(state) = changed {
            let view = self.disk.view();
            match state {
                DiskState::Enough => tracing::info!("new work is taken again: {view}"),
                DiskState::Low => tracing::warn!("no new work is taken: {view}"),
                DiskState::Full => tracing::error!("no work is taken: {view}"),
            }
        }
        if room || changed.is_some_and(|state| state != DiskState::Full) {
            drop(self.maintenance.send(Maintenance::TryAgain));
        }
        Ok(())
    }

    /// Whether the reserve was changed.
    fn allocate(&mut self, bytes: u64) -> bool {
        if Instant::now() < self.allocate_from {
            return false;
        }
        match self.reserve.allocate(bytes) {
            Ok(()) => true,
            Err(error) => {
                self.allocate_from = Instant::now() + ALLOCATION_PAUSE;
                tracing::warn!(
                    bytes, directory = %self.directory.display(), %error,
                    "the reserve for a full disk cannot be allocated; it is tried again, and without it a full disk leaves \
                     no room for ending work"
                );
                false
            }
        }
    }

    fn fails(&mut self, error: &io::Error) {
        if !std::mem::replace(&mut self.blind, true) {
            tracing::warn!(
                directory = %self.directory.display(), %error,
                "the disk of the data directory cannot be looked at; it is tried again until it works"
            );
        }
    }
}
