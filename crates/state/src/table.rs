//! A typed ordered table over the three layers.

use std::collections::BTreeMap;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use crate::checkpoint::{Batch, FrozenTable};
use crate::error::StoreError;
use crate::key::{LONGEST_KEY_BYTES, SmallKey, TableKey};
use crate::merge::{EndOfRange, FileScan, Merge, encode_bound};
use crate::overlay::{Entry, Overlay, Update};
use crate::store::{Store, TableId};
use crate::table_set::{AnyTable, EntryVisitor, LayerSizes};
use crate::value::TableValue;

/// Entries that a checkpoint is writing. Nothing changes them any more.
#[derive(Debug)]
pub(crate) struct Frozen<K, V> {
    table: TableId,
    pub(crate) entries: BTreeMap<K, Entry<V>>,
    bytes: u64,
}

impl<K: TableKey, V: TableValue> FrozenTable for Frozen<K, V> {
    fn write(&self, batch: &mut Batch<'_>) -> Result<(), StoreError> {
        for (key, entry) in &self.entries {
            match &entry.value {
                Some(value) => batch.put(self.table, key, value.as_ref())?,
                None => batch.delete(self.table, key)?,
            }
        }
        Ok(())
    }
}

/// A typed ordered table.
///
/// Reads see the overlay (what was written since the last freeze), then the frozen overlay (what a checkpoint is
/// writing), then the file. Writes go to the overlay only. A read that finds a damaged entry answers as if the entry did
/// not exist and records the damage in the [`Store`]; committing the command then fails.
#[derive(Debug)]
pub struct Table<K, V> {
    pub(crate) id: TableId,
    pub(crate) store: Store,
    pub(crate) overlay: Overlay<K, V>,
    pub(crate) frozen: Option<Arc<Frozen<K, V>>>,
}

impl<K: TableKey, V: TableValue> Table<K, V> {
    /// Opens the table. Used by [`tables!`](crate::tables).
    #[doc(hidden)]
    pub fn open(store: &Store, number: u8, name: &'static str) -> Self {
        let id = TableId { number, name };
        store.name_table(id);
        Self {
            id,
            store: store.clone(),
            overlay: Overlay::new(),
            frozen: None,
        }
    }

    /// The value of a key.
    #[inline]
    pub fn get(&self, key: &K) -> Option<Arc<V>> {
        match self.in_memory(key) {
            Some(entry) => entry.value.clone(),
            None => self.store.read(self.id, key).map(Arc::new),
        }
    }

    /// Whether the key has a value.
    #[inline]
    pub fn contains(&self, key: &K) -> bool {
        match self.in_memory(key) {
            Some(entry) => entry.value.is_some(),
            None => self.store.contains(self.id, key),
        }
    }

    /// What the layers in memory say about a key.
    #[inline]
    pub(crate) fn in_memory(&self, key: &K) -> Option<&Entry<V>> {
        self.overlay
            .entries
            .get(key)
            .or_else(|| self.frozen.as_ref()?.entries.get(key))
    }

    /// Writes a value under a key that has none at present, such as a freshly generated one. If it is deleted before the
    /// next checkpoint, nothing of it stays.
    ///
    /// Under a key that has a value, [`put`](Self::put) must be used: a later deletion would bring the old value back.
    #[inline]
    pub fn insert_new(&mut self, key: K, value: V) {
        debug_assert!(
            !self.contains(&key),
            "table {} already has the key {key:?}",
            self.id.name
        );
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
            let Self {
                overlay,
                frozen,
                store,
                ..
            } = self;
            overlay.put(key, value, |key| {
                may_exist_below(store, frozen.as_deref(), key)
            });
        }
    }

    /// Deletes the value of a key, if it has one.
    #[inline]
    pub fn delete(&mut self, key: &K) {
        let Self {
            overlay,
            frozen,
            store,
            ..
        } = self;
        overlay.delete(key, |key| may_exist_below(store, frozen.as_deref(), key));
    }

    /// Changes the value of a key; answers whether it has one.
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
        let Some(value) = self.get(key) else {
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

    /// All entries in the order of their keys.
    pub fn iter(&self) -> Entries<'_, K, V> {
        self.range(..)
    }

    /// The first entry whose key is not below `from`.
    pub fn first_from(&self, from: &K) -> Option<(K, Arc<V>)> {
        self.range(from..).next()
    }

    /// Whether the table has no entry.
    pub fn is_empty(&self) -> bool {
        self.range(..).next().is_none()
    }

    fn scan(&self, start: Bound<&K>, end: Bound<&K>) -> Merge<'_, K, V, EndOfRange> {
        if is_empty_range(start, end) {
            return Merge::new(None, None, None, EndOfRange);
        }
        let overlay = self.overlay.entries.range((start, end));
        let frozen = self
            .frozen
            .as_ref()
            .map(|frozen| frozen.entries.range((start, end)));
        let file = self
            .store
            .has_file()
            .then(|| FileScan::new(&self.store, self.id, encode_bound(start), encode_bound(end)));
        Merge::new(Some(overlay), frozen, file, EndOfRange)
    }

    /// Whether the key fits into the file; if not, the command at hand fails.
    #[inline]
    fn accepts(&self, key: &K) -> bool {
        if K::ENCODED_BYTES.is_some_and(|bytes| bytes <= LONGEST_KEY_BYTES) {
            return true;
        }
        let mut encoded = SmallKey::new();
        key.encode(&mut encoded);
        if encoded.len() > LONGEST_KEY_BYTES {
            self.store.fail(StoreError::KeyTooLong {
                table: self.id.name,
                bytes: encoded.len(),
            });
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

/// Whether a layer below the overlay may hold the key. The file is not asked: a mark that hides nothing costs less.
fn may_exist_below<K: TableKey, V>(store: &Store, frozen: Option<&Frozen<K, V>>, key: &K) -> bool {
    match frozen.and_then(|frozen| frozen.entries.get(key)) {
        Some(entry) => entry.value.is_some(),
        None => store.has_file(),
    }
}

fn is_empty_range<K: Ord>(start: Bound<&K>, end: Bound<&K>) -> bool {
    match (start, end) {
        (Bound::Included(start), Bound::Included(end)) => start > end,
        (
            Bound::Included(start) | Bound::Excluded(start),
            Bound::Included(end) | Bound::Excluded(end),
        ) => start >= end,
        _ => false,
    }
}

impl<K: TableKey, V: TableValue> AnyTable for Table<K, V> {
    fn id(&self) -> TableId {
        self.id
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
        debug_assert!(
            self.frozen.is_none(),
            "only one checkpoint is under way at a time"
        );
        let (entries, bytes) = self.overlay.take();
        if entries.is_empty() {
            return None;
        }
        let frozen = Arc::new(Frozen {
            table: self.id,
            entries,
            bytes,
        });
        self.frozen = Some(frozen.clone());
        Some(frozen)
    }

    fn release(&mut self) -> Option<Arc<dyn FrozenTable>> {
        self.frozen
            .take()
            .map(|frozen| frozen as Arc<dyn FrozenTable>)
    }

    fn layer_sizes(&self) -> LayerSizes {
        LayerSizes {
            overlay_entries: self.overlay.entries.len() as u64,
            overlay_bytes: self.overlay.bytes(),
            frozen_entries: self
                .frozen
                .as_ref()
                .map_or(0, |frozen| frozen.entries.len() as u64),
            frozen_bytes: self.frozen.as_ref().map_or(0, |frozen| frozen.bytes),
        }
    }

    fn visit(&self, visitor: &mut EntryVisitor<'_>) -> std::io::Result<()> {
        let (mut key_bytes, mut value_bytes) = (SmallKey::new(), Vec::new());
        for (key, value) in self.iter() {
            key_bytes.clear();
            value_bytes.clear();
            key.encode(&mut key_bytes);
            value.encode(&mut value_bytes);
            visitor(self.id, (&key, &key_bytes), (&value, &value_bytes))?;
        }
        Ok(())
    }
}
