//! The state of a partition for those who read its checkpoints, also after a received state has taken its place.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use protocol::PartitionId;
use state::StoreHandle;

/// The states of all partitions of a node. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct StateHandles(Arc<RwLock<BTreeMap<PartitionId, StateHandle>>>);

impl StateHandles {
    /// That of a partition, if the node holds it.
    pub fn of(&self, partition: PartitionId) -> Option<StateHandle> {
        self.0.read().get(&partition).cloned()
    }

    /// The node holds a partition.
    pub fn add(&self, partition: PartitionId, state: StateHandle) {
        self.0.write().insert(partition, state);
    }
}

/// A state that may be replaced. Clones share it.
#[derive(Debug, Clone)]
pub struct StateHandle(Arc<Mutex<Current>>);

#[derive(Debug)]
struct Current {
    /// None while it is being replaced.
    store: Option<StoreHandle>,
    /// Counts how often it was.
    replaced: u64,
}

impl StateHandle {
    /// Of a state that is open.
    pub fn new(store: StoreHandle) -> Self {
        StateHandle(Arc::new(Mutex::new(Current { store: Some(store), replaced: 0 })))
    }

    /// The state as it is now, with a number that is another one as soon as the state is to be replaced: whoever holds a checkpoint
    /// of it has to let go of that then. None while it is being replaced.
    pub fn get(&self) -> Option<(StoreHandle, u64)> {
        let current = self.0.lock();
        current.store.clone().map(|store| (store, current.replaced))
    }

    /// Whether what came with this number is still the state.
    pub fn is_current(&self, number: u64) -> bool {
        self.0.lock().replaced == number
    }

    /// The state is being replaced: nobody gets it any more.
    pub fn take_away(&self) {
        let mut current = self.0.lock();
        (current.store, current.replaced) = (None, current.replaced + 1);
    }

    /// Another state took its place.
    pub fn put(&self, store: StoreHandle) {
        self.0.lock().store = Some(store);
    }
}
