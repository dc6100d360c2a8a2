//! How far clients of this gateway know what happened.
//!
//! Who asks for what is stored expects to find everything that was acknowledged before. So what answers such questions must
//! have read the records up to the positions that are kept here.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::RwLock;
use protocol::PartitionId;

use crate::outcome::RecordPosition;

/// The newest acknowledged position of each partition. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Acknowledged(Arc<RwLock<BTreeMap<PartitionId, AtomicU64>>>);

impl Acknowledged {
    /// A client is told of what happened up to this position.
    pub(crate) fn note(&self, RecordPosition { partition, position }: RecordPosition) {
        if let Some(newest) = self.0.read().get(&partition) {
            newest.fetch_max(position, Ordering::AcqRel);
            return;
        }
        self.0.write().entry(partition).or_default().fetch_max(position, Ordering::AcqRel);
    }

    /// The positions that whoever answers a question of a client must have read, by partition.
    pub fn positions(&self) -> Vec<RecordPosition> {
        let partitions = self.0.read();
        let position = |(partition, newest): (&PartitionId, &AtomicU64)| RecordPosition {
            partition: *partition,
            position: newest.load(Ordering::Acquire),
        };
        partitions.iter().map(position).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_position_of_each_partition_is_kept() {
        let acknowledged = Acknowledged::default();
        let at = |partition, position| RecordPosition { partition: PartitionId(partition), position };
        for place in [at(2, 7), at(1, 5), at(2, 3), at(1, 6)] {
            acknowledged.clone().note(place);
        }
        assert_eq!(acknowledged.positions(), [at(1, 6), at(2, 7)]);
    }
}
