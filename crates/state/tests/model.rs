//! Random work on the tables, compared with plain ordered maps after every step.

use std::collections::BTreeMap;
use std::path::Path;

use proptest::prelude::*;
use state::{Checkpoint, Queue, Retired, Store, StoreError, StoreOptions, Table, Written};

#[derive(Clone, Debug, PartialEq, Eq, minicbor::Encode, minicbor::Decode)]
struct Item {
    #[n(0)]
    number: u64,
    #[n(1)]
    text: String,
}

state::cbor_values!(Item => |item| item.text.len());

state::tables! {
    struct Tables {
        items: Table<(u8, u8), Item> = 1,
        queue: Queue<u8, u8, u64> = 2,
        /// Lies behind the queue in the file, so that a scan which runs too far would find it.
        behind: Table<u64, u64> = 3,
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Model {
    items: BTreeMap<(u8, u8), Item>,
    queue: BTreeMap<(u8, u8), u64>,
}

#[derive(Clone, Debug)]
enum Step {
    InsertItem(u8, u8, u64),
    PutItem(u8, u8, u64),
    DeleteItem(u8, u8),
    UpdateItem(u8, u8, u64),
    RangeOfItems((u8, u8), (u8, u8)),
    RemoveRangeOfItems((u8, u8), (u8, u8)),
    RemovePrefixOfItems(u8),
    Enqueue(u8, u8, u64),
    PutInQueue(u8, u8, u64),
    Dequeue(u8),
    RemoveUpTo(u8, u8),
    Remove(u8, u8),
    Commit,
    Rollback,
    Freeze,
    Write,
    Release,
    Kill,
}

/// Few keys, so that the steps meet.
fn step() -> impl Strategy<Value = Step> {
    let (part, key) = (0u8..3, 0u8..6);
    prop_oneof![
        6 => (part.clone(), key.clone(), any::<u64>()).prop_map(|(a, b, value)| Step::InsertItem(a, b, value)),
        3 => (part.clone(), key.clone(), any::<u64>()).prop_map(|(a, b, value)| Step::PutItem(a, b, value)),
        6 => (part.clone(), key.clone()).prop_map(|(a, b)| Step::DeleteItem(a, b)),
        4 => (part.clone(), key.clone(), any::<u64>()).prop_map(|(a, b, value)| Step::UpdateItem(a, b, value)),
        2 => ((part.clone(), key.clone()), (part.clone(), key.clone())).prop_map(|(a, b)| Step::RangeOfItems(a, b)),
        1 => ((part.clone(), key.clone()), (part.clone(), key.clone())).prop_map(|(a, b)| Step::RemoveRangeOfItems(a, b)),
        1 => part.clone().prop_map(Step::RemovePrefixOfItems),
        6 => (part.clone(), key.clone(), any::<u64>()).prop_map(|(a, b, value)| Step::Enqueue(a, b, value)),
        3 => (part.clone(), key.clone(), any::<u64>()).prop_map(|(a, b, value)| Step::PutInQueue(a, b, value)),
        5 => part.clone().prop_map(Step::Dequeue),
        2 => (part.clone(), key.clone()).prop_map(|(a, b)| Step::RemoveUpTo(a, b)),
        3 => (part, key).prop_map(|(a, b)| Step::Remove(a, b)),
        6 => Just(Step::Commit),
        2 => Just(Step::Rollback),
        3 => Just(Step::Freeze),
        3 => Just(Step::Write),
        3 => Just(Step::Release),
        1 => Just(Step::Kill),
    ]
}

enum Progress {
    Idle,
    Frozen(Checkpoint, Model),
    Written(Written),
}

struct World<'a> {
    directory: &'a Path,
    small_table_entries: usize,
    tables: Tables,
    at_hand: Model,
    committed: Model,
    durable: Model,
    progress: Progress,
    applied: u64,
    durable_applied: u64,
    dirty: bool,
}

/// Some are larger than what is read of the file at once.
fn item(number: u64) -> Item {
    let length = if number.is_multiple_of(50) { 300_000 } else { number % 40 };
    Item { number, text: "x".repeat(length as usize) }
}

fn open(directory: &Path, small_table_entries: usize) -> Tables {
    let options = StoreOptions { map_size_bytes: 1 << 30, small_table_entries, ..StoreOptions::default() };
    Tables::open(&Store::open(directory, &options).expect("the store opens"))
}

impl World<'_> {
    fn take(&mut self, step: Step) {
        match step {
            Step::InsertItem(a, b, value) if !self.at_hand.items.contains_key(&(a, b)) => {
                self.tables.items.insert_new((a, b), item(value));
                self.at_hand.items.insert((a, b), item(value));
                self.dirty = true;
            }
            Step::InsertItem(a, b, value) | Step::PutItem(a, b, value) => {
                self.tables.items.put((a, b), item(value));
                self.at_hand.items.insert((a, b), item(value));
                self.dirty = true;
            }
            Step::DeleteItem(a, b) => {
                self.tables.items.delete(&(a, b));
                self.at_hand.items.remove(&(a, b));
                self.dirty = true;
            }
            Step::UpdateItem(a, b, value) => {
                let change = |item: &mut Item| item.number = item.number.wrapping_add(value);
                let found = self.tables.items.update(&(a, b), change);
                let expected = self.at_hand.items.get_mut(&(a, b));
                assert_eq!(found, expected.is_some());
                expected.into_iter().for_each(change);
                self.dirty = true;
            }
            Step::RangeOfItems(from, to) => {
                let expected: Vec<_> = if from <= to { self.at_hand.items.range(from..to).collect() } else { vec![] };
                let found: Vec<_> = self.tables.items.range(from..to).collect();
                assert!(found.iter().map(|(key, value)| (key, value.as_ref())).eq(expected));
                let first = self.tables.items.first_from(&from).map(|(key, _)| key);
                assert_eq!(first, self.at_hand.items.range(from..).next().map(|(key, _)| *key));
            }
            Step::RemoveRangeOfItems(from, to) => self.remove_range(from, to),
            Step::RemovePrefixOfItems(part) => {
                let before = self.at_hand.items.len();
                self.at_hand.items.retain(|key, _| key.0 != part);
                let removed = self.tables.items.remove_prefix(&part);
                assert_eq!(removed, (before - self.at_hand.items.len()) as u64);
                self.dirty = true;
            }
            Step::Enqueue(prefix, key, value) => {
                if self.at_hand.queue.insert((prefix, key), value).is_some() {
                    self.tables.queue.remove(&prefix, &key);
                }
                self.tables.queue.insert(prefix, key, value);
                self.dirty = true;
            }
            Step::PutInQueue(prefix, key, value) => {
                self.tables.queue.put(prefix, key, value);
                self.at_hand.queue.insert((prefix, key), value);
                self.dirty = true;
            }
            Step::RemoveUpTo(prefix, last) => {
                self.tables.queue.remove_up_to(&prefix, &last);
                self.at_hand.queue.retain(|(of, key), _| *of != prefix || *key > last);
                self.dirty = true;
            }
            Step::Dequeue(prefix) => {
                if let Some((key, _)) = self.tables.queue.first(&prefix) {
                    self.tables.queue.remove(&prefix, &key);
                    self.at_hand.queue.remove(&(prefix, key));
                    self.dirty = true;
                }
            }
            Step::Remove(prefix, key) => {
                self.tables.queue.remove(&prefix, &key);
                self.at_hand.queue.remove(&(prefix, key));
                self.dirty = true;
            }
            Step::Commit => self.commit(),
            Step::Rollback => {
                self.tables.rollback();
                self.at_hand = self.committed.clone();
                self.dirty = false;
            }
            Step::Freeze => self.freeze(),
            Step::Write => {
                if let Progress::Frozen(checkpoint, model) = &self.progress {
                    let written = checkpoint.write().expect("the checkpoint is written");
                    self.durable = model.clone();
                    self.durable_applied = checkpoint.applied();
                    self.progress = Progress::Written(written);
                }
            }
            Step::Release => {
                self.progress = match std::mem::replace(&mut self.progress, Progress::Idle) {
                    Progress::Written(written) => {
                        let _: Retired = self.tables.release(written).expect("the checkpoint is released");
                        Progress::Idle
                    }
                    unfinished => unfinished,
                }
            }
            Step::Kill => self.kill(),
        }
    }

    fn remove_range(&mut self, from: (u8, u8), to: (u8, u8)) {
        let before = self.at_hand.items.len();
        self.at_hand.items.retain(|key, _| *key < from || *key >= to);
        let removed = self.tables.items.remove_range(from..to);
        assert_eq!(removed, (before - self.at_hand.items.len()) as u64);
        self.dirty = true;
    }

    fn commit(&mut self) {
        self.tables.commit().expect("the command commits");
        self.committed = self.at_hand.clone();
        self.dirty = false;
        self.applied += 1;
        self.tables.begin();
    }

    fn freeze(&mut self) {
        let frozen = self.tables.freeze(self.applied, self.applied.to_string().into_bytes());
        match (&self.progress, frozen) {
            (Progress::Idle, Ok(checkpoint)) => {
                // A command that only deleted what was not there leaves no trace, so the freeze may pass.
                assert_eq!(self.at_hand, self.committed, "a freeze must not see an open command");
                self.progress = Progress::Frozen(checkpoint, self.committed.clone());
            }
            (Progress::Idle, Err(StoreError::CommandOpen)) => assert!(self.dirty),
            (Progress::Frozen(..) | Progress::Written(_), Err(StoreError::CheckpointUnderWay)) => {}
            (_, Ok(_)) => panic!("a second checkpoint started while one is under way"),
            (_, Err(error)) => panic!("the freeze failed: {error}"),
        }
    }

    /// What was not checkpointed is lost, whatever was under way.
    fn kill(&mut self) {
        self.progress = Progress::Idle;
        self.tables = Tables::in_memory();
        self.tables = open(self.directory, self.small_table_entries);
        let recovered = self.tables.store().recovered();
        assert_eq!(recovered.applied, self.durable_applied);
        if self.durable_applied > 0 {
            assert_eq!(recovered.metadata, self.durable_applied.to_string().into_bytes());
        }
        self.at_hand = self.durable.clone();
        self.committed = self.durable.clone();
        self.applied = self.durable_applied;
        self.dirty = false;
    }

    fn check(&self) {
        let items = self.tables.items.iter().map(|(key, value)| (key, value.as_ref().clone()));
        assert!(items.eq(self.at_hand.items.clone()), "the items differ from the model");
        for part in 0..3 {
            let expected =
                self.at_hand.items.range((part, 0)..=(part, u8::MAX)).map(|(key, item)| (*key, item.clone()));
            let keys = self.at_hand.items.range((part, 0)..=(part, u8::MAX)).map(|(key, _)| *key);
            assert!(self.tables.items.prefix_keys(&part).eq(keys), "the keys of part {part}");
            let found = self.tables.items.prefix(&part).map(|(key, value)| (key, value.as_ref().clone()));
            assert!(found.eq(expected), "the items of {part} differ from the model");
            for key in 0..6 {
                let expected = self.at_hand.items.get(&(part, key));
                assert_eq!(self.tables.items.get(&(part, key)).as_deref(), expected);
                assert_eq!(self.tables.items.contains(&(part, key)), expected.is_some());
                assert_eq!(self.tables.queue.get(&part, &key).as_deref(), self.at_hand.queue.get(&(part, key)));
            }
        }
        let queued = self.tables.queue.entries().map(|(key, value)| (key, *value));
        assert!(queued.eq(self.at_hand.queue.clone()), "the entries of the queue differ from the model");
        assert!(self.tables.fault().is_none());
    }

    fn check_queue(&self) {
        for prefix in 0..3 {
            let expected =
                self.at_hand.queue.range((prefix, 0)..=(prefix, u8::MAX)).map(|((_, key), value)| (*key, *value));
            let found = self.tables.queue.iter(&prefix).map(|(key, value)| (key, *value));
            assert!(found.eq(expected.clone()), "the queue differs from the model");
            assert_eq!(self.tables.queue.first(&prefix).map(|(key, value)| (key, *value)), expected.clone().next());
            assert_eq!(self.tables.queue.is_empty(&prefix), expected.clone().next().is_none());
            let behind = self.tables.queue.iter_after(&prefix, &2).map(|(key, value)| (key, *value));
            assert!(behind.eq(expected.filter(|(key, _)| *key > 2)), "the queue behind a key differs from the model");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn tables_behave_like_ordered_maps(
        steps in prop::collection::vec((step(), any::<bool>()), 1..150),
        small_table_entries in prop_oneof![Just(0_usize), Just(4), Just(32)],
    ) {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut world = World {
            directory: directory.path(),
            small_table_entries,
            tables: open(directory.path(), small_table_entries),
            at_hand: Model::default(),
            committed: Model::default(),
            durable: Model::default(),
            progress: Progress::Idle,
            applied: 0,
            durable_applied: 0,
            dirty: false,
        };
        world.tables.behind.put(0, 0);
        world.commit();
        world.freeze();
        world.take(Step::Write);
        world.take(Step::Release);
        for (step, looks_at_queue) in steps {
            world.take(step);
            world.check();
            // Looking moves the queue's remembered fronts, so some steps must do without.
            if looks_at_queue {
                world.check_queue();
            }
        }
        world.check_queue();
    }
}
