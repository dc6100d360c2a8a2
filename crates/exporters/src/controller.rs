//! What an exporter reports about its progress.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use protocol::PartitionId;

/// Keeps the position up to which an exporter needs no record again, for each partition. Clones share it, so an exporter
/// may acknowledge from threads of its own.
#[derive(Clone, Debug)]
pub struct Controller {
    acknowledged: Arc<[AtomicU64]>,
}

impl Controller {
    /// Starts from the positions of partition 1, 2 and so on.
    pub fn new(acknowledged: impl IntoIterator<Item = u64>) -> Self {
        Controller { acknowledged: acknowledged.into_iter().map(AtomicU64::new).collect() }
    }

    /// The exporter needs no record of the partition up to this position again. A lower position than before, or a
    /// partition that does not exist, changes nothing.
    pub fn acknowledge(&self, partition: PartitionId, position: u64) {
        if let Some(acknowledged) = self.slot(partition) {
            acknowledged.fetch_max(position, Ordering::AcqRel);
        }
    }

    /// The acknowledged position of a partition; 0 when nothing is acknowledged.
    pub fn acknowledged(&self, partition: PartitionId) -> u64 {
        self.slot(partition).map_or(0, |acknowledged| acknowledged.load(Ordering::Acquire))
    }

    fn slot(&self, partition: PartitionId) -> Option<&AtomicU64> {
        usize::from(partition.0).checked_sub(1).and_then(|index| self.acknowledged.get(index))
    }
}
