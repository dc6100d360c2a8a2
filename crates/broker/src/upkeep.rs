//! What is done for a partition beside its processing, driven by calls: its checkpoints are written, and record segments
//! that nobody needs any more are deleted.
//!
//! Nothing here has a thread or a clock of its own, so a simulation drives the same code as production.

use std::sync::Arc;
use std::time::Duration;

use state::{Checkpoint, StoreError, Written};

use crate::record_log::{RecordLog, RecordLogError};

/// Pause before a failed checkpoint is tried again, at first and at most.
const RETRY_PAUSE: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(10));

/// The upkeep of one partition.
pub struct Upkeep {
    records: Arc<RecordLog>,
    /// A checkpoint that is to be written.
    waiting: Option<Waiting>,
    /// Position of the last record of the newest checkpoint.
    checkpointed: u64,
}

struct Waiting {
    checkpoint: Checkpoint,
    /// Position of the last record that is part of it.
    position: u64,
    retry_at: Duration,
    pause: Duration,
}

/// A checkpoint was not written.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// Its records are not on the disk.
    #[error(transparent)]
    Records(RecordLogError),
    /// The state is not on the disk.
    #[error(transparent)]
    State(StoreError),
}

impl CheckpointError {
    /// Whether it is in vain to try again before the node was started again: from the log, lost records can be derived only
    /// then, and the file of the state has to be opened anew.
    pub fn needs_restart(&self) -> bool {
        match self {
            CheckpointError::Records(error) => matches!(error, RecordLogError::Damaged { .. }),
            CheckpointError::State(error) => error.needs_reopening(),
        }
    }
}

impl Upkeep {
    /// Of a partition whose newest checkpoint ends with the record at a position.
    pub fn new(records: Arc<RecordLog>, checkpointed: u64) -> Self {
        Upkeep { records, waiting: None, checkpointed }
    }

    /// The record stream.
    pub fn records(&self) -> &Arc<RecordLog> {
        &self.records
    }

    /// A state is frozen, whose last record has a position: it is to be written.
    pub fn begin(&mut self, checkpoint: Checkpoint, position: u64, now: Duration) {
        self.waiting = Some(Waiting { checkpoint, position, retry_at: now, pause: RETRY_PAUSE.0 });
    }

    /// When a checkpoint is to be written; none while there is none.
    pub fn retry_at(&self) -> Option<Duration> {
        self.waiting.as_ref().map(|waiting| waiting.retry_at)
    }

    /// What failed may work now.
    pub fn try_again(&mut self, now: Duration) {
        if let Some(waiting) = &mut self.waiting {
            (waiting.retry_at, waiting.pause) = (now, RETRY_PAUSE.0);
        }
    }

    /// Writes the checkpoint that waits, if its time has come. After an error it waits to be tried again.
    pub fn write(&mut self, now: Duration) -> Option<Result<Written, CheckpointError>> {
        let waiting = self.waiting.as_mut().filter(|waiting| waiting.retry_at <= now)?;
        let written = write(&self.records, &waiting.checkpoint);
        if written.is_ok() {
            self.checkpointed = waiting.position;
            self.waiting = None;
        } else {
            waiting.retry_at = now + waiting.pause;
            waiting.pause = (waiting.pause * 2).min(RETRY_PAUSE.1);
        }
        Some(written)
    }

    /// Deletes the segments that are part of a checkpoint and acknowledged by whoever reads them. Returns how many.
    ///
    /// # Errors
    /// When a file cannot be deleted. It can be tried again.
    pub fn delete_records(&self, acknowledged: u64) -> Result<usize, RecordLogError> {
        self.records.delete_up_to(self.checkpointed.min(acknowledged))
    }
}

/// The records first: what the state holds is never derived again, so its records must not be lost.
fn write(records: &RecordLog, checkpoint: &Checkpoint) -> Result<Written, CheckpointError> {
    records.sync().map_err(CheckpointError::Records)?;
    checkpoint.write().map_err(CheckpointError::State)
}
