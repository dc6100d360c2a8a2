//! An ordered index that is read from the front.

use std::io;
use std::ops::Bound;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::checkpoint::FrozenTable;
use crate::fronts::{Front, Fronts, InFile};
use crate::key::{TableKey, end_of};
use crate::lower::FilePart;
use crate::merge::{EndOfPrefix, FileScan, Merge, Merged, encode_bound, part_of};
use crate::store::{Store, TableId};
use crate::table::{Table, is_behind};
use crate::table_set::{AnyTable, EntryVisitor, LayerSizes};
use crate::value::TableValue;

/// An ordered index per prefix, such as the available jobs of a type or the timers by due date, read from the front.
///
/// It remembers below which key of a prefix nothing is left, and which is the first key in the file that still counts. So
/// finding the first entry does not depend on how many were removed before it, although removed entries leave marks until
/// the next checkpoint. Results never depend on what is remembered.
#[derive(Debug)]
pub struct Queue<P, K, V> {
    table: Table<(P, K), V>,
    /// Behind a lock because reading improves it; there is never a second thread at it.
    fronts: Mutex<Fronts<P, K>>,
}

impl<P: TableKey, K: TableKey, V: TableValue> Queue<P, K, V> {
    /// Opens the queue. Used by [`tables!`](crate::tables).
    #[doc(hidden)]
    pub fn open(store: &Store, number: u8, name: &'static str) -> Self {
        Self { table: Table::open(store, number, name), fronts: Mutex::new(Fronts::new()) }
    }

    /// Adds an entry that is not in the queue at present.
    pub fn insert(&mut self, prefix: P, key: K, value: V) {
        self.fronts.get_mut().inserted(&prefix, &key);
        self.table.insert_new((prefix, key), value);
    }

    /// Writes an entry, whether or not it is in the queue.
    pub fn put(&mut self, prefix: P, key: K, value: V) {
        self.fronts.get_mut().inserted(&prefix, &key);
        self.table.put((prefix, key), value);
    }

    /// Removes an entry, if it is there.
    pub fn remove(&mut self, prefix: &P, key: &K) {
        self.table.delete(&(prefix.clone(), key.clone()));
    }

    /// Removes the entries of a prefix from the front up to a key.
    pub fn remove_up_to(&mut self, prefix: &P, last: &K) {
        let keys: Vec<K> = self.iter(prefix).map(|(key, _)| key).take_while(|key| key <= last).collect();
        for key in &keys {
            self.remove(prefix, key);
        }
    }

    /// Removes all entries.
    pub fn clear(&mut self) {
        self.table.clear();
    }

    /// The value of an entry.
    pub fn get(&self, prefix: &P, key: &K) -> Option<Arc<V>> {
        self.table.get(&(prefix.clone(), key.clone()))
    }

    /// Whether an entry is there.
    pub fn contains(&self, prefix: &P, key: &K) -> bool {
        self.table.contains(&(prefix.clone(), key.clone()))
    }

    /// The first entry of a prefix.
    pub fn first(&self, prefix: &P) -> Option<(K, Arc<V>)> {
        self.front_scan(prefix)?.next().map(|entry| (entry.key.1, entry.value))
    }

    /// Whether a prefix has no entry.
    pub fn is_empty(&self, prefix: &P) -> bool {
        self.first(prefix).is_none()
    }

    /// The entries of a prefix, from the front.
    pub fn iter<'a>(&'a self, prefix: &P) -> impl Iterator<Item = (K, Arc<V>)> + use<'a, P, K, V> {
        self.front_scan(prefix).into_iter().flatten().map(|entry| (entry.key.1, entry.value))
    }

    /// All entries in the order of their prefixes and keys.
    pub fn entries(&self) -> impl Iterator<Item = ((P, K), Arc<V>)> + use<'_, P, K, V> {
        self.table.iter()
    }

    /// The entries of a prefix behind a key, in order.
    pub fn iter_after<'a>(&'a self, prefix: &P, after: &K) -> impl Iterator<Item = (K, Arc<V>)> + use<'a, P, K, V> {
        let Front { lower_bound, in_file } = self.fronts.lock().get(prefix);
        let after = after.clone();
        let entries = lower_bound.map(|from| match from > after {
            true => self.scan_front(prefix, from, in_file),
            false => None.into_iter().chain(self.scan(prefix, after.clone(), InFile::Unknown)),
        });
        entries.into_iter().flatten().map(|entry| (entry.key.1, entry.value)).filter(move |(key, _)| *key > after)
    }

    /// The entries of a prefix; none where nothing has to be looked for.
    fn front_scan(&self, prefix: &P) -> Option<FrontScan<'_, P, K, V>> {
        if self.table.holds_nothing() {
            return None;
        }
        let Front { lower_bound, in_file } = self.fronts.lock().get(prefix);
        Some(self.scan_front(prefix, lower_bound?, in_file))
    }

    /// The entries at and behind a key below which nothing is; remembers what it learns about the front.
    fn scan_front(&self, prefix: &P, from: K, in_file: InFile<K>) -> FrontScan<'_, P, K, V> {
        let mut scan = self.scan(prefix, from, in_file);
        let first = scan.next();
        let in_file = match (&first, &mut scan.file) {
            (Some(Merged { key, is_from_file: true, .. }), _) => InFile::First(key.1.clone()),
            (Some(_), Some(file)) => file.peek().map_or(InFile::None, |key| InFile::First(key.1.clone())),
            (None, _) | (_, None) => InFile::None,
        };
        if !self.table.lower.store.is_faulted() {
            let lower_bound = first.as_ref().map(|entry| entry.key.1.clone());
            self.fronts.lock().remember(prefix, Front { lower_bound, in_file });
        }
        first.into_iter().chain(scan)
    }

    fn scan(&self, prefix: &P, from: K, in_file: InFile<K>) -> Merge<'_, (P, K), V, EndOfPrefix<P>> {
        let (overlay, lower) = (&self.table.overlay, &self.table.lower);
        let start = (prefix.clone(), from);
        let range = (Bound::Included(&start), Bound::Unbounded);
        let frozen = lower.frozen.as_ref().and_then(|frozen| part_of(&frozen.entries, range));
        let (small, last) = match lower.file_part() {
            FilePart::Small(entries) => (part_of(entries, range), None),
            FilePart::Large { last, .. } => (None, Some(last)),
        };
        let file = match in_file {
            _ if last.is_none_or(|last| is_behind(range.0, last)) => None,
            InFile::None => None,
            InFile::First(first) => {
                Some(FileScan::from_known(&lower.store, lower.table, (prefix.clone(), first), end_of(prefix)))
            }
            InFile::Unknown => Some(FileScan::new(&lower.store, lower.table, encode_bound(range.0), end_of(prefix))),
        };
        Merge::new([part_of(&overlay.entries, range), frozen, small], file, EndOfPrefix(start.0))
    }
}

/// The first entry and what follows it.
type FrontScan<'a, P, K, V> =
    std::iter::Chain<std::option::IntoIter<Merged<(P, K), V>>, Merge<'a, (P, K), V, EndOfPrefix<P>>>;

impl<P: TableKey, K: TableKey, V: TableValue> AnyTable for Queue<P, K, V> {
    fn id(&self) -> TableId {
        self.table.lower.table
    }

    fn longest_key_bytes(&self, text_bytes: usize) -> usize {
        <(P, K)>::longest_bytes(text_bytes)
    }

    #[inline]
    fn is_command_open(&self) -> bool {
        self.table.is_command_open()
    }

    #[inline]
    fn commit(&mut self) {
        self.table.commit();
    }

    fn rollback(&mut self) {
        let fronts = self.fronts.get_mut();
        self.table.overlay.rollback(|(prefix, key)| fronts.restored(prefix, key));
    }

    fn freeze(&mut self) -> Option<Arc<dyn FrozenTable>> {
        self.table.freeze()
    }

    fn release(&mut self) -> Option<Arc<dyn FrozenTable>> {
        self.fronts.get_mut().file_changed();
        self.table.release()
    }

    fn layer_sizes(&self) -> LayerSizes {
        self.table.layer_sizes()
    }

    fn visit(&self, visitor: &mut EntryVisitor<'_>) -> io::Result<()> {
        self.table.visit(visitor)
    }
}
