//! Whose the entries of the work queue are.

use std::cell::RefCell;
use std::collections::BTreeMap;

use protocol::Key;

use super::WorkRow;

/// The instance of each entry of the work queue, as far as it is known without a look into the queue.
///
/// An entry holds up to a thousand steps, so to read all of them takes long. Whose one is does not change, and its number is not
/// given again, unless the command that put it in fails.
#[derive(Debug, Default)]
pub(crate) struct OwnersOfWork(RefCell<BTreeMap<u64, Key>>);

impl OwnersOfWork {
    pub fn enqueued(&mut self, sequence: u64, process_instance: Key) {
        self.0.get_mut().insert(sequence, process_instance);
    }

    /// If the command fails the entry is there again, and read when it is asked for.
    pub fn dequeued(&mut self, sequence: u64) {
        self.0.get_mut().remove(&sequence);
    }

    /// The entries after this one do not come to be.
    pub fn rolled_back(&mut self, last: u64) {
        let owners = self.0.get_mut();
        while owners.last_entry().is_some_and(|entry| *entry.key() > last) {
            owners.pop_last();
        }
    }

    /// The entries of an instance, oldest first.
    pub fn entries(&self, process_instance: Key, work: &state::Table<u64, WorkRow>) -> Vec<u64> {
        let mut owners = self.0.borrow_mut();
        let mut still_there = BTreeMap::new();
        let mut entries = Vec::new();
        for sequence in work.keys() {
            let known = owners.remove(&sequence);
            let Some(owner) = known.or_else(|| Some(work.get(&sequence)?.process_instance_key)) else { continue };
            if owner == process_instance {
                entries.push(sequence);
            }
            still_there.insert(sequence, owner);
        }
        *owners = still_there;
        entries
    }
}
