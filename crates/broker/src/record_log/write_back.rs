//! Bringing records to the disk in small pieces.

use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::Receiver;
use parking_lot::RwLock;

use super::{RecordLog, RecordLogError};
use crate::shared::Shared;

/// Bytes of a segment after which a piece is brought to the disk.
pub(super) const PIECE_BYTES: u64 = 512 << 10;
/// Pause between two pieces, in which the log of commands has the disk to itself.
const PAUSE: Duration = Duration::from_millis(10);

/// The record streams of the partitions that a node holds.
pub(crate) type RecordLogs = Arc<RwLock<Vec<Arc<RecordLog>>>>;

/// Syncs the segments of all partitions piece by piece, long before a checkpoint needs them.
pub(crate) struct WriteBackThread {
    pub shared: Arc<Shared>,
    /// Of all partitions of the node, to which may come more.
    pub records: RecordLogs,
    /// Told that a piece is there.
    pub pieces: Receiver<()>,
    /// Closed when the node stops.
    pub stop: Receiver<()>,
}

impl WriteBackThread {
    /// Runs until the node stops.
    pub fn run(self) {
        loop {
            crossbeam_channel::select! {
                recv(self.pieces) -> piece => if piece.is_err() { return },
                recv(self.stop) -> _ => return,
            }
            // Not locked while they are synced: a partition may come meanwhile.
            let logs = self.records.read().clone();
            for log in logs {
                if self.shared.is_crashed() {
                    return;
                }
                if log.unsynced_bytes() >= PIECE_BYTES {
                    self.sync(&log);
                }
            }
            // The pieces of this time are larger if more comes meanwhile.
            if self.stop.recv_timeout(PAUSE).is_err_and(|error| error.is_disconnected()) {
                return;
            }
        }
    }

    fn sync(&self, log: &RecordLog) {
        match log.sync() {
            Ok(()) => {}
            Err(error @ RecordLogError::Damaged { .. }) => {
                // From the log they can be derived again, but only by a start.
                self.shared.fail(&format!("records are lost that were not on the disk yet: {error}"));
            }
            // The checkpoint that needs them tries again, and says so if it cannot be made.
            Err(error) => {
                tracing::debug!(partition = %log.partition(), %error, "a piece of the record stream was not synced");
            }
        }
    }
}
