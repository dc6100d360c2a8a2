//! The ways into the partitions that a node holds.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::RwLock;
use protocol::PartitionId;

use crate::entrance::Entrance;

/// All of them at one time.
pub(crate) type Held = Arc<BTreeMap<PartitionId, Arc<Entrance>>>;

/// The partitions that a node holds a replica of. One may be added while the node runs; whoever goes through them sees those
/// that there were at the beginning.
#[derive(Debug, Default)]
pub(crate) struct Entrances(RwLock<Held>);

impl Entrances {
    /// All that there are now.
    pub fn all(&self) -> Held {
        self.0.read().clone()
    }

    /// The way into a partition, if this node holds it.
    pub fn get(&self, partition: PartitionId) -> Option<Arc<Entrance>> {
        self.0.read().get(&partition).cloned()
    }

    /// The way into a partition that this node holds.
    pub fn of(&self, partition: PartitionId) -> Arc<Entrance> {
        self.get(partition).expect("a partition of this node")
    }

    /// The node holds one more partition.
    pub fn add(&self, entrance: Arc<Entrance>) {
        Arc::make_mut(&mut self.0.write()).insert(entrance.id, entrance);
    }
}

impl FromIterator<Entrance> for Entrances {
    fn from_iter<T: IntoIterator<Item = Entrance>>(entrances: T) -> Self {
        let entrances = entrances.into_iter().map(|entrance| (entrance.id, Arc::new(entrance)));
        Entrances(RwLock::new(Arc::new(entrances.collect())))
    }
}
