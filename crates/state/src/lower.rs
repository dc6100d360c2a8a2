//! The layers below the overlay: what a checkpoint is writing, and the file.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::{Arc, OnceLock};

use crate::checkpoint::{Batch, FrozenTable};
use crate::error::StoreError;
use crate::key::TableKey;
use crate::overlay::Entry;
use crate::store::{ChunkSize, Content, Store, TableId};
use crate::value::TableValue;

/// A table whose part of the file has at most this many encoded bytes, and few enough entries, is read from memory.
const SMALL_TABLE_BYTES: usize = 64 << 10;

/// Entries that a checkpoint is writing. Nothing changes them any more.
#[derive(Debug)]
pub(crate) struct Frozen<K, V> {
    pub(crate) table: TableId,
    pub(crate) entries: BTreeMap<K, Entry<V>>,
    pub(crate) bytes: u64,
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

/// What is known about a table's part of the file without looking into it.
///
/// Keys are mostly generated in ascending order, so nearly all looks for what a young instance does not have end here. So
/// do those for what is due soon, in indexes whose part in the file is due later.
#[derive(Debug)]
pub(crate) enum FilePart<K, V> {
    /// All of it: there are few entries, or none.
    Small(BTreeMap<K, Entry<V>>),
    /// There are more entries.
    Large {
        /// Nothing is before it. `None` if it could not be read.
        first: Option<K>,
        /// Nothing is behind it.
        last: K,
    },
}

impl<K: TableKey, V: TableValue> FilePart<K, V> {
    /// Whether the key may be in the file, as far as that is known without reading it.
    fn may_contain(&self, key: &K) -> bool {
        match self {
            Self::Small(entries) => entries.contains_key(key),
            Self::Large { first, last } => key <= last && first.as_ref().is_none_or(|first| first <= key),
        }
    }
}

/// The layers of one table below its overlay.
#[derive(Debug)]
pub(crate) struct LowerLayers<K, V> {
    pub(crate) table: TableId,
    pub(crate) store: Store,
    pub(crate) frozen: Option<Arc<Frozen<K, V>>>,
    /// Found out at the first use after the file changed.
    file_part: OnceLock<FilePart<K, V>>,
}

impl<K: TableKey, V: TableValue> LowerLayers<K, V> {
    pub(crate) fn new(table: TableId, store: Store) -> Self {
        Self { table, store, frozen: None, file_part: OnceLock::new() }
    }

    fn in_frozen(&self, key: &K) -> Option<&Entry<V>> {
        self.frozen.as_ref()?.entries.get(key)
    }

    pub(crate) fn get(&self, key: &K) -> Option<Arc<V>> {
        if let Some(entry) = self.in_frozen(key) {
            return entry.value.clone();
        }
        match self.file_part() {
            FilePart::Small(entries) => entries.get(key)?.value.clone(),
            part if !part.may_contain(key) => None,
            FilePart::Large { .. } => self.store.read(self.table, key).map(Arc::new),
        }
    }

    pub(crate) fn contains(&self, key: &K) -> bool {
        if let Some(entry) = self.in_frozen(key) {
            return entry.value.is_some();
        }
        let part = self.file_part();
        part.may_contain(key) && (matches!(part, FilePart::Small(_)) || self.store.contains(self.table, key))
    }

    /// Whether there is nothing below the overlay, not even a deletion. A few entries in the file are not looked through.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.frozen.as_ref().is_none_or(|frozen| frozen.entries.is_empty())
            && matches!(self.file_part(), FilePart::Small(entries) if entries.is_empty())
    }

    /// Whether the key may have a value here. The file itself is not asked: a mark that hides nothing costs less.
    pub(crate) fn may_contain(&self, key: &K) -> bool {
        if let Some(entry) = self.in_frozen(key) {
            return entry.value.is_some();
        }
        self.file_part().may_contain(key)
    }

    pub(crate) fn freeze(&mut self, entries: BTreeMap<K, Entry<V>>, bytes: u64) -> Option<Arc<dyn FrozenTable>> {
        debug_assert!(self.frozen.is_none(), "only one checkpoint is under way at a time");
        if entries.is_empty() {
            return None;
        }
        let frozen = Arc::new(Frozen { table: self.table, entries, bytes });
        self.frozen = Some(frozen.clone());
        Some(frozen)
    }

    /// The file now holds what was frozen.
    pub(crate) fn release(&mut self) -> Option<Arc<dyn FrozenTable>> {
        let frozen = self.frozen.take()?;
        self.file_part = OnceLock::new();
        Some(frozen)
    }

    pub(crate) fn file_part(&self) -> &FilePart<K, V> {
        self.file_part.get_or_init(|| self.find_file_part())
    }

    fn find_file_part(&self) -> FilePart<K, V> {
        let Some(last) = self.store.last_key(self.table) else {
            return FilePart::Small(BTreeMap::new());
        };
        // A table with one entry or byte more is not small.
        let (entries, bytes) = (self.store.small_table_entries() + 1, SMALL_TABLE_BYTES + 1);
        let mut chunk = VecDeque::new();
        let size = ChunkSize { content: Content::Values, entries, bytes };
        let behind = self.store.read_chunk(self.table, (&Bound::Unbounded, &Bound::Unbounded), size, &mut chunk);
        if behind.is_some() || self.store.is_faulted() {
            let first = chunk.pop_front().map(|(key, _)| key);
            return FilePart::Large { first, last };
        }
        let decode = |(key, bytes): (K, Vec<u8>)| {
            let value = self.store.decode(self.table, &key, &bytes)?;
            Some((key, Entry::stored(Arc::new(value))))
        };
        chunk
            .into_iter()
            .map(decode)
            .collect::<Option<_>>()
            .map_or(FilePart::Large { first: None, last }, FilePart::Small)
    }
}
