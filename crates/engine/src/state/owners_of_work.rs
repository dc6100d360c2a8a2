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

    /// How many entries an instance has.
    pub fn count(&self, process_instance: Key, work: &state::Table<u64, WorkRow>) -> u64 {
        let mut owners = self.0.borrow_mut();
        let mut still_there = BTreeMap::new();
        let mut count = 0;
        for sequence in work.keys() {
            let known = owners.remove(&sequence);
            let Some(owner) = known.or_else(|| Some(work.get(&sequence)?.process_instance_key)) else { continue };
            count += u64::from(owner == process_instance);
            still_there.insert(sequence, owner);
        }
        *owners = still_there;
        count
    }
}

#[cfg(test)]
mod tests {
    use protocol::PartitionId;

    use super::*;
    use crate::state::{Counters, FeatureLevel, State, Tables};

    fn key(number: u64) -> Key {
        Key::new(PartitionId(1), number)
    }

    fn put(state: &mut State, process_instance_key: Key) {
        state.counters.work_in += 1;
        let row = WorkRow { process_instance_key, commands: Vec::new(), rounds: 0, is_part: false };
        state.tables.work.insert_new(state.counters.work_in, row);
        state.owners_of_work.enqueued(state.counters.work_in, process_instance_key);
    }

    #[test]
    fn entries_are_counted_as_they_come_and_go() {
        let directory = tempfile::tempdir().unwrap();
        let store = ::state::Store::open(directory.path(), &crate::store_options(1)).unwrap();
        let counters = Counters::new(FeatureLevel::NEWEST);
        let mut state = State::new(Tables::open(&store), counters, PartitionId(1));
        let (one, other) = (key(1), key(2));
        for commits in [false, true, false, true] {
            let before = (state.entries_of_work(one), state.entries_of_work(other));
            state.begin();
            put(&mut state, one);
            put(&mut state, other);
            put(&mut state, one);
            assert_eq!((state.entries_of_work(one), state.entries_of_work(other)), (before.0 + 2, before.1 + 1));
            if commits {
                state.commit().unwrap();
            } else {
                state.rollback();
                assert_eq!((state.entries_of_work(one), state.entries_of_work(other)), before);
                // The numbers are given again, to others.
                state.begin();
                put(&mut state, other);
                assert_eq!((state.entries_of_work(one), state.entries_of_work(other)), (before.0, before.1 + 1));
                state.rollback();
            }
        }
        state.begin();
        state.tables.work.delete(&1);
        state.owners_of_work.dequeued(1);
        assert_eq!((state.entries_of_work(one), state.entries_of_work(other)), (3, 2));
        state.rollback();
        assert_eq!((state.entries_of_work(one), state.entries_of_work(other)), (4, 2));
        // As after a start.
        state.owners_of_work = OwnersOfWork::default();
        assert_eq!((state.entries_of_work(one), state.entries_of_work(other)), (4, 2));
    }
}
