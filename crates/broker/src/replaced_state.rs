//! A state that another replica sent takes the place of the one that a partition has: at the start of a node that stopped in
//! between, and while a node runs.
//!
//! Nothing here has a thread or a clock of its own, so a simulation drives the same code as production.

use std::io;
use std::path::Path;

use engine::{Engine, Fault};
use protocol::PartitionId;

use crate::partition_loop::{EmptyLoop, PartitionLoop};
use crate::record_log::{RecordLog, RecordLogError, RecordLogOptions};
use crate::snapshots::ReceivedStates;

/// A received state could not take its place. The next start tries it again.
#[derive(Debug, thiserror::Error)]
pub enum ReplaceError {
    /// The records of the old state are not on the disk, or those of the new one cannot follow them.
    #[error(transparent)]
    Records(#[from] RecordLogError),
    /// The file could not be moved.
    #[error("The received state {index} of partition {partition} cannot be installed: {source}.")]
    File {
        /// The partition.
        partition: PartitionId,
        /// The last log index that is part of the state.
        index: u64,
        /// Why.
        source: io::Error,
    },
    /// The state cannot be opened.
    #[error(transparent)]
    State(#[from] Fault),
    /// It is another state than the log builds on.
    #[error(
        "The received state of partition {partition} holds everything up to entry {applied}, and its log builds on entry {index}. \
         Remove the data of this node, so that it gets everything again from the others."
    )]
    OtherState {
        /// The partition.
        partition: PartitionId,
        /// The entry that the log builds on.
        index: u64,
        /// The last entry in the state.
        applied: u64,
    },
}

/// Where a partition has its state, and where one comes from.
#[derive(Debug, Clone, Copy)]
pub struct Places<'a> {
    /// What was received.
    pub received: &'a ReceivedStates,
    /// The directory of the state that is used.
    pub state: &'a Path,
}

impl Places<'_> {
    /// At a start: the received state of this index takes the place of `old`, whose records are set up by `records`.
    ///
    /// # Errors
    /// When the records cannot be synced, or the state cannot be moved or opened.
    pub fn install_at_start(
        self,
        old: Engine,
        index: u64,
        records: RecordLogOptions,
        open: impl FnOnce() -> Result<Engine, Fault>,
    ) -> Result<Engine, ReplaceError> {
        let (partition, place) = (records.partition, old.record_place());
        drop(old);
        RecordLog::settle(records, place)?;
        self.put(partition, index, open)
    }

    /// While the node runs: the received state of this index takes the place of the one that was closed. Nothing may hold that
    /// any more ([`state::Store::wait_until_closed`]).
    ///
    /// # Errors
    /// When the records cannot be synced, or the state cannot be moved or opened. The node has to be started again then.
    pub fn install<P>(
        self,
        empty: EmptyLoop,
        index: u64,
        open: impl FnOnce() -> Result<Engine, Fault>,
    ) -> Result<PartitionLoop<P>, ReplaceError> {
        empty.records().sync()?;
        let engine = self.put(empty.id(), index, open)?;
        Ok(empty.with_engine(engine)?)
    }

    fn put(
        self,
        partition: PartitionId,
        index: u64,
        open: impl FnOnce() -> Result<Engine, Fault>,
    ) -> Result<Engine, ReplaceError> {
        let installed = self.received.install(partition, index, self.state);
        installed.map_err(|source| ReplaceError::File { partition, index, source })?;
        let engine = open()?;
        match engine.applied() {
            applied if applied == index => Ok(engine),
            applied => Err(ReplaceError::OtherState { partition, index, applied }),
        }
    }
}
