//! A typed ordered table over the three layers.

use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use crate::checkpoint::FrozenTable;
use crate::error::StoreError;
use crate::key::{LONGEST_KEY_BYTES, PrefixedKey, SmallKey, TableKey, end_of};
use crate::lower::{FilePart, LowerLayers};
use crate::merge::{EndOfPrefix, EndOfRange, FileScan, Merge, encode_bound, part_of};
use crate::overlay::{Overlay, Update};
use crate::store::{Store, TableId};
use crate::table_set::{AnyTable, EntryVisitor, LayerSizes};
use crate::value::TableValue;

/// A typed ordered table.
///
/// Reads see the overlay (what was written since the last freeze), then the frozen overlay (what a checkpoint is
/// writing), then the file. Writes go to the overlay only. A read that finds a damaged entry answers as if the entry did
/// not exist and records the damage in the [`Store`]; committing the command then fails.
#[derive(Debug)]
pub struct Table<K, V> {
    pub(crate) overlay: Overlay<K, V>,
    pub(crate) lower: LowerLayers<K, V>,
}

impl<K: TableKey, V: TableValue> Table<K, V> {
    /// Opens the table. Used by [`tables!`](crate::tables).
    #[doc(hidden)]
    pub fn open(store: &Store, number: u8, name: &'static str) -> Self {
        let id = TableId { number, name };
        store.name_table(id);
        Self { overlay: Overlay::new(), lower: LowerLayers::new(id, store.clone()) }
    }

    /// The value of a key.
    #[inline]
    pub fn get(&self, key: &K) -> Option<Arc<V>> {
        match self.overlay.entries.get(key) {
            Some(entry) => entry.value.clone(),
            None => self.lower.get(key),
        }
    }

    /// Whether the key has a value.
    #[inline]
    pub fn contains(&self, key: &K) -> bool {
        match self.overlay.entries.get(key) {
            Some(entry) => entry.value.is_some(),
            None => self.lower.contains(key),
        }
    }

    /// Writes a value under a key that has none at present, such as a freshly generated one. If it is deleted before the
    /// next checkpoint, nothing of it stays.
    ///
    /// Under a key that has a value, [`put`](Self::put) must be used: a later deletion would bring the old value back.
    #[inline]
    pub fn insert_new(&mut self, key: K, value: V) {
        debug_assert!(!self.contains(&key), "table {} already has the key {key:?}", self.lower.table.name);
        if self.accepts(&key) {
            self.overlay.put(key, Arc::new(value), |_| false);
        }
    }

    /// Writes a value, whether or not the key has one.
    #[inline]
    pub fn put(&mut self, key: K, value: V) {
        self.put_shared(key, Arc::new(value));
    }

    fn put_shared(&mut self, key: K, value: Arc<V>) {
        if self.accepts(&key) {
            self.overlay.put(key, value, |key| self.lower.may_contain(key));
        }
    }

    /// Deletes the value of a key, if it has one.
    #[inline]
    pub fn delete(&mut self, key: &K) {
        self.overlay.delete(key, |key| self.lower.may_contain(key));
    }

    /// Changes the value of a key; returns whether it has one.
    #[inline]
    pub fn update(&mut self, key: &K, change: impl FnOnce(&mut V)) -> bool
    where
        V: Clone,
    {
        let change = match self.overlay.update(key, change) {
            Update::Done => return true,
            Update::Deleted => return false,
            Update::Unknown(change) => change,
        };
        let Some(value) = self.lower.get(key) else {
            return false;
        };
        let mut value = Arc::unwrap_or_clone(value);
        change(&mut value);
        self.put(key.clone(), value);
        true
    }

    /// The entries of a range in the order of their keys. They are read as the iterator is asked for them.
    pub fn range(&self, range: impl RangeBounds<K>) -> Entries<'_, K, V> {
        Entries(self.scan(range.start_bound(), range.end_bound()))
    }

    /// The entries whose keys begin with `prefix`, in the order of their keys.
    pub fn prefix<P: TableKey>(&self, prefix: &P) -> impl Iterator<Item = (K, Arc<V>)> + use<'_, P, K, V>
    where
        K: PrefixedKey<P>,
    {
        self.scan_prefix(prefix).map(|entry| (entry.key, entry.value))
    }

    /// The keys that begin with `prefix`, in order. No value is read, however large.
    pub fn prefix_keys<P: TableKey>(&self, prefix: &P) -> impl Iterator<Item = K> + use<'_, P, K, V>
    where
        K: PrefixedKey<P>,
    {
        self.scan_prefix(prefix).keys()
    }

    fn scan_prefix<P: TableKey>(&self, prefix: &P) -> Merge<'_, K, V, EndOfPrefix<P>>
    where
        K: PrefixedKey<P>,
    {
        if self.holds_nothing() {
            return Merge::new([None, None, None], None, EndOfPrefix(prefix.clone()));
        }
        let first = K::least_with(prefix);
        let start = Bound::Included(&first);
        let range = (start, Bound::Unbounded);
        let overlay = part_of(&self.overlay.entries, range);
        let frozen = self.lower.frozen.as_ref().and_then(|frozen| part_of(&frozen.entries, range));
        let (small, file) = match self.lower.file_part() {
            FilePart::Small(entries) => (part_of(entries, range), None),
            FilePart::Large { last, .. } if is_behind(start, last) => (None, None),
            FilePart::Large { first: Some(in_file), .. } if first < *in_file && !in_file.begins_with(prefix) => {
                (None, None)
            }
            FilePart::Large { .. } => {
                (None, Some(FileScan::new(&self.lower.store, self.lower.table, encode_bound(start), end_of(prefix))))
            }
        };
        Merge::new([overlay, frozen, small], file, EndOfPrefix(prefix.clone()))
    }

    /// Deletes the entries whose keys begin with `prefix`; returns how many there were.
    pub fn remove_prefix<P: TableKey>(&mut self, prefix: &P) -> u64
    where
        K: PrefixedKey<P>,
    {
        let keys: Vec<K> = self.prefix_keys(prefix).collect();
        self.remove_all(keys)
    }

    /// Deletes the entries of a range; returns how many there were.
    pub fn remove_range(&mut self, range: impl RangeBounds<K>) -> u64 {
        let keys: Vec<K> = self.scan(range.start_bound(), range.end_bound()).keys().collect();
        self.remove_all(keys)
    }

    /// Deletes all entries.
    pub fn clear(&mut self) {
        self.remove_range(..);
    }

    fn remove_all(&mut self, keys: Vec<K>) -> u64 {
        for key in &keys {
            self.delete(key);
        }
        keys.len() as u64
    }

    /// All entries in the order of their keys.
    pub fn iter(&self) -> Entries<'_, K, V> {
        self.range(..)
    }

    /// All keys in order. No value is read, however large.
    pub fn keys(&self) -> impl Iterator<Item = K> + use<'_, K, V> {
        self.scan(Bound::Unbounded, Bound::Unbounded).keys()
    }

    /// The first entry whose key is not below `from`.
    pub fn first_from(&self, from: &K) -> Option<(K, Arc<V>)> {
        self.range(from..).next()
    }

    /// Whether the table has no entry.
    pub fn is_empty(&self) -> bool {
        self.keys().next().is_none()
    }

    /// Whether no layer has anything, not even a deletion, so that no key has to be looked for.
    #[inline]
    pub(crate) fn holds_nothing(&self) -> bool {
        self.overlay.entries.is_empty() && self.lower.is_empty()
    }

    fn scan(&self, start: Bound<&K>, end: Bound<&K>) -> Merge<'_, K, V, EndOfRange> {
        if is_empty_range(start, end) {
            return Merge::new([None, None, None], None, EndOfRange);
        }
        let overlay = part_of(&self.overlay.entries, (start, end));
        let frozen = self.lower.frozen.as_ref().and_then(|frozen| part_of(&frozen.entries, (start, end)));
        let (small, file) = match self.lower.file_part() {
            FilePart::Small(entries) => (part_of(entries, (start, end)), None),
            FilePart::Large { last, .. } if is_behind(start, last) => (None, None),
            FilePart::Large { first: Some(first), .. } if is_before(end, first) => (None, None),
            FilePart::Large { .. } => {
                (None, Some(FileScan::new(&self.lower.store, self.lower.table, encode_bound(start), encode_bound(end))))
            }
        };
        Merge::new([overlay, frozen, small], file, EndOfRange)
    }

    /// Whether the key fits into the file; if not, the current command fails.
    #[inline]
    fn accepts(&self, key: &K) -> bool {
        if K::ENCODED_BYTES.is_some_and(|bytes| bytes <= LONGEST_KEY_BYTES) {
            return true;
        }
        let mut encoded = SmallKey::new();
        key.encode(&mut encoded);
        if encoded.len() > LONGEST_KEY_BYTES {
            self.lower.store.fail(StoreError::KeyTooLong { table: self.lower.table.name, bytes: encoded.len() });
            return false;
        }
        true
    }
}

/// The entries of a range, in the order of their keys.
pub struct Entries<'a, K, V>(Merge<'a, K, V, EndOfRange>);

impl<K: TableKey, V: TableValue> Iterator for Entries<'_, K, V> {
    type Item = (K, Arc<V>);

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|entry| (entry.key, entry.value))
    }
}

/// Whether a range that starts here has nothing up to the last key.
pub(crate) fn is_behind<K: Ord>(start: Bound<&K>, last: &K) -> bool {
    match start {
        Bound::Included(start) => start > last,
        Bound::Excluded(start) => start >= last,
        Bound::Unbounded => false,
    }
}

/// Whether a range that ends here has nothing down to the first key.
pub(crate) fn is_before<K: Ord>(end: Bound<&K>, first: &K) -> bool {
    match end {
        Bound::Included(end) => end < first,
        Bound::Excluded(end) => end <= first,
        Bound::Unbounded => false,
    }
}

fn is_empty_range<K: Ord>(start: Bound<&K>, end: Bound<&K>) -> bool {
    match (start, end) {
        (Bound::Included(start), Bound::Included(end)) => start > end,
        (Bound::Included(start) | Bound::Excluded(start), Bound::Included(end) | Bound::Excluded(end)) => start >= end,
        _ => false,
    }
}

impl<K: TableKey, V: TableValue> AnyTable for Table<K, V> {
    fn id(&self) -> TableId {
        self.lower.table
    }

    fn longest_key_bytes(&self, text_bytes: usize) -> usize {
        K::longest_bytes(text_bytes)
    }

    fn is_command_open(&self) -> bool {
        self.overlay.is_command_open()
    }

    #[inline]
    fn commit(&mut self) {
        self.overlay.commit();
    }

    fn rollback(&mut self) {
        self.overlay.rollback(|_| ());
    }

    fn freeze(&mut self) -> Option<Arc<dyn FrozenTable>> {
        let (entries, bytes) = self.overlay.take();
        self.lower.freeze(entries, bytes)
    }

    fn release(&mut self) -> Option<Arc<dyn FrozenTable>> {
        self.lower.release()
    }

    fn layer_sizes(&self) -> LayerSizes {
        LayerSizes {
            overlay_entries: self.overlay.entries.len() as u64,
            overlay_bytes: self.overlay.bytes(),
            frozen_entries: self.lower.frozen.as_ref().map_or(0, |frozen| frozen.entries.len() as u64),
            frozen_bytes: self.lower.frozen.as_ref().map_or(0, |frozen| frozen.bytes),
        }
    }

    fn visit(&self, visitor: &mut EntryVisitor<'_>) -> std::io::Result<()> {
        let (mut key_bytes, mut value_bytes) = (SmallKey::new(), Vec::new());
        for (key, value) in self.iter() {
            key_bytes.clear();
            value_bytes.clear();
            key.encode(&mut key_bytes);
            value.encode(&mut value_bytes);
            visitor(self.lower.table, (&key, &key_bytes), (&value, &value_bytes))?;
        }
        Ok(())
    }
}
