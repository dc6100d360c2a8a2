//! Ordered iteration over the three layers.

use std::collections::VecDeque;
use std::collections::btree_map::Range;
use std::iter::Peekable;
use std::ops::Bound;
use std::sync::Arc;

use crate::key::{SmallKey, TableKey};
use crate::overlay::Entry;
use crate::store::{Store, TableId};
use crate::value::TableValue;

/// The file is read in chunks that double in size up to this many entries, so that a look at the first entry stays cheap
/// and a long scan does not search the tree again for each entry.
const LARGEST_CHUNK_ENTRIES: usize = 128;

/// A lazy scan of the file's part of one table.
pub(crate) struct FileScan<'a, K> {
    store: &'a Store,
    table: TableId,
    /// Where the next chunk starts; without the table's prefix.
    start: Bound<SmallKey>,
    end: Bound<SmallKey>,
    /// Keys with the encoded values, decoded only if no layer above hides them.
    chunk: VecDeque<(K, Vec<u8>)>,
    chunk_entries: usize,
    finished: bool,
}

impl<'a, K: TableKey> FileScan<'a, K> {
    pub(crate) fn new(
        store: &'a Store,
        table: TableId,
        start: Bound<SmallKey>,
        end: Bound<SmallKey>,
    ) -> Self {
        Self {
            store,
            table,
            start,
            end,
            chunk: VecDeque::new(),
            chunk_entries: 1,
            finished: false,
        }
    }

    fn peek(&mut self) -> Option<&K> {
        if self.chunk.is_empty() && !self.finished {
            let read = self.store.read_chunk(
                self.table,
                &self.start,
                &self.end,
                self.chunk_entries,
                &mut self.chunk,
            );
            match read {
                Some(last) => self.start = Bound::Excluded(last),
                None => self.finished = true,
            }
            self.chunk_entries = (self.chunk_entries * 4).min(LARGEST_CHUNK_ENTRIES);
        }
        self.chunk.front().map(|(key, _)| key)
    }

    fn next_if(&mut self, key: &K) -> Option<Vec<u8>> {
        if self.peek()? != key {
            return None;
        }
        self.chunk.pop_front().map(|(_, value)| value)
    }
}

/// The merge of the layers: of equal keys the uppermost layer's entry counts, and deletions are left out.
pub(crate) struct Merge<'a, K, V, E> {
    overlay: Option<Peekable<Range<'a, K, Entry<V>>>>,
    frozen: Option<Peekable<Range<'a, K, Entry<V>>>>,
    file: Option<FileScan<'a, K>>,
    /// Whether a key lies beyond the end. Asked for deleted keys too, so that the deletions of a neighbour cost nothing.
    beyond: E,
}

impl<'a, K: TableKey, V: TableValue, E: Fn(&K) -> bool> Merge<'a, K, V, E> {
    pub(crate) fn new(
        overlay: Option<Range<'a, K, Entry<V>>>,
        frozen: Option<Range<'a, K, Entry<V>>>,
        file: Option<FileScan<'a, K>>,
        beyond: E,
    ) -> Self {
        Self {
            overlay: overlay.map(Iterator::peekable),
            frozen: frozen.map(Iterator::peekable),
            file,
            beyond,
        }
    }
}

impl<'a, K: TableKey, V: TableValue, E: Fn(&K) -> bool> Iterator for Merge<'a, K, V, E> {
    type Item = (K, Arc<V>);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let in_overlay = self
                .overlay
                .as_mut()
                .and_then(|layer| layer.peek())
                .map(|(key, _)| *key);
            let in_frozen = self
                .frozen
                .as_mut()
                .and_then(|layer| layer.peek())
                .map(|(key, _)| *key);
            let in_file = self.file.as_mut().and_then(FileScan::peek);
            let key = [in_overlay, in_frozen, in_file]
                .into_iter()
                .flatten()
                .min()?
                .clone();
            if (self.beyond)(&key) {
                return None;
            }
            let is_next = |next: &(&K, &Entry<V>)| *next.0 == key;
            let upper = self
                .overlay
                .as_mut()
                .and_then(|layer| layer.next_if(is_next));
            let lower = self
                .frozen
                .as_mut()
                .and_then(|layer| layer.next_if(is_next));
            let stored = self.file.as_mut().and_then(|file| {
                file.next_if(&key)
                    .map(|bytes| (file.store, file.table, bytes))
            });
            let value = match (upper.or(lower), stored) {
                (Some((_, entry)), _) => entry.value.clone(),
                (None, Some((store, table, bytes))) => {
                    Some(Arc::new(store.decode(table, &key, &bytes)?))
                }
                (None, None) => unreachable!("the smallest key comes from one of the layers"),
            };
            if let Some(value) = value {
                return Some((key, value));
            }
        }
    }
}
