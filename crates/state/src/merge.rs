//! Ordered iteration over the three layers.

use std::collections::btree_map::Range;
use std::collections::{BTreeMap, VecDeque};
use std::iter::Peekable;
use std::ops::Bound;
use std::sync::Arc;

use crate::key::{PrefixedKey, SmallKey, TableKey};
use crate::overlay::Entry;
use crate::store::{ChunkSize, Content, Store, TableId};
use crate::value::TableValue;

/// The file is read in chunks that grow up to this many entries, so that a look at the first entry stays cheap and a long
/// scan does not search the tree again for each entry.
const LARGEST_CHUNK_ENTRIES: usize = 128;
/// The same in bytes of values, which can be large.
const LARGEST_CHUNK_BYTES: usize = 256 << 10;

/// A lazy scan of the file's part of one table.
pub(crate) struct FileScan<'a, K> {
    store: &'a Store,
    table: TableId,
    /// The first key of the range, if it is known already; the file is not read before it is reached.
    known_first: Option<K>,
    /// Where the next chunk starts; without the table's prefix.
    start: Bound<SmallKey>,
    end: Bound<SmallKey>,
    /// Keys with the encoded values, decoded only if no layer above hides them.
    chunk: VecDeque<(K, Vec<u8>)>,
    chunk_entries: usize,
    content: Content,
    finished: bool,
}

impl<'a, K: TableKey> FileScan<'a, K> {
    pub(crate) fn new(store: &'a Store, table: TableId, start: Bound<SmallKey>, end: Bound<SmallKey>) -> Self {
        let (known_first, chunk, content) = (None, VecDeque::new(), Content::Values);
        Self { store, table, known_first, start, end, chunk, chunk_entries: 1, content, finished: false }
    }

    /// A scan from a key that the file is known to have.
    pub(crate) fn from_known(store: &'a Store, table: TableId, first: K, end: Bound<SmallKey>) -> Self {
        let start = encode_bound(Bound::Included(&first));
        Self { known_first: Some(first), ..Self::new(store, table, start, end) }
    }

    pub(crate) fn peek(&mut self) -> Option<&K> {
        if self.known_first.is_some() {
            return self.known_first.as_ref();
        }
        self.fill();
        self.chunk.front().map(|(key, _)| key)
    }

    fn fill(&mut self) {
        if !self.chunk.is_empty() || self.finished {
            return;
        }
        let size = ChunkSize { content: self.content, entries: self.chunk_entries, bytes: LARGEST_CHUNK_BYTES };
        match self.store.read_chunk(self.table, (&self.start, &self.end), size, &mut self.chunk) {
            Some(last) => self.start = Bound::Excluded(last),
            None => self.finished = true,
        }
        self.chunk_entries = (self.chunk_entries * 4).min(LARGEST_CHUNK_ENTRIES);
    }

    fn next_if(&mut self, key: &K) -> Option<Vec<u8>> {
        if self.peek()? != key {
            return None;
        }
        self.known_first = None;
        self.fill();
        self.chunk.pop_front().map(|(_, value)| value)
    }
}

pub(crate) fn encode_bound<K: TableKey>(bound: Bound<&K>) -> Bound<SmallKey> {
    bound.map(|key| {
        let mut encoded = SmallKey::new();
        key.encode(&mut encoded);
        encoded
    })
}

/// Where a scan ends, besides the ends of the layers' own ranges. It is asked for deleted keys too, so that a neighbour's
/// deletions cost nothing.
pub(crate) trait ScanEnd<K> {
    fn is_beyond(&self, key: &K) -> bool;
}

/// The layers' own ranges end the scan.
pub(crate) struct EndOfRange;

impl<K> ScanEnd<K> for EndOfRange {
    fn is_beyond(&self, _: &K) -> bool {
        false
    }
}

/// Ends a scan where another prefix begins.
pub(crate) struct EndOfPrefix<P>(pub(crate) P);

impl<P: TableKey, K: PrefixedKey<P>> ScanEnd<K> for EndOfPrefix<P> {
    fn is_beyond(&self, key: &K) -> bool {
        !key.begins_with(&self.0)
    }
}

/// The part of a layer in memory that a scan has not passed yet.
type Rest<'a, K, V> = Peekable<Range<'a, K, Entry<V>>>;

/// The part of a layer in memory between two bounds; `None` of an empty layer, which a scan then need not carry along.
#[inline]
pub(crate) fn part_of<'a, K: Ord, V>(
    entries: &'a BTreeMap<K, Entry<V>>,
    bounds: (Bound<&K>, Bound<&K>),
) -> Option<Rest<'a, K, V>> {
    (!entries.is_empty()).then(|| entries.range(bounds).peekable())
}

/// The merge of the layers: of equal keys the uppermost layer's entry counts, and deletions are left out.
pub(crate) struct Merge<'a, K, V, E> {
    /// The layers in memory, the uppermost first.
    layers: [Option<Rest<'a, K, V>>; 3],
    pub(crate) file: Option<FileScan<'a, K>>,
    end: E,
}

/// An entry of a merge.
pub(crate) struct Merged<K, V> {
    pub(crate) key: K,
    pub(crate) value: Arc<V>,
    /// Whether a scan of the file has delivered it.
    pub(crate) is_from_file: bool,
}

impl<'a, K: TableKey, V: TableValue, E: ScanEnd<K>> Merge<'a, K, V, E> {
    #[inline]
    pub(crate) fn new(layers: [Option<Rest<'a, K, V>>; 3], file: Option<FileScan<'a, K>>, end: E) -> Self {
        Self { layers, file, end }
    }

    /// The smallest key that the scan has not passed yet.
    fn peek_key(&mut self) -> Option<&K> {
        let in_file = self.file.as_mut().and_then(FileScan::peek);
        let layers = self.layers.iter_mut().flatten();
        layers.filter_map(|layer| layer.peek().map(|(key, _)| *key)).chain(in_file).min()
    }

    /// The keys, without reading values from the file.
    pub(crate) fn keys(mut self) -> Keys<'a, K, V, E> {
        if let Some(file) = &mut self.file {
            file.content = Content::Keys;
        }
        Keys(self)
    }

    /// The next key with its value in the layers in memory, or else its encoded value in the file.
    fn next_entry(&mut self) -> Option<(K, Found<'a, V>)> {
        loop {
            let key = self.peek_key()?.clone();
            if self.end.is_beyond(&key) {
                return None;
            }
            let mut uppermost = None;
            for layer in self.layers.iter_mut().flatten() {
                let found = layer.next_if(|(next, _)| **next == key);
                uppermost = uppermost.or(found);
            }
            let stored = self.file.as_mut().and_then(|file| Some((file.next_if(&key)?, file.store, file.table)));
            let Some((_, entry)) = uppermost else {
                return stored.map(|(bytes, store, table)| (key, Found::Stored { bytes, store, table }));
            };
            if let Some(value) = entry.value.clone() {
                return Some((key, Found::InMemory(value)));
            }
        }
    }
}

/// Where the value of an entry is.
enum Found<'a, V> {
    InMemory(Arc<V>),
    Stored { bytes: Vec<u8>, store: &'a Store, table: TableId },
}

impl<K: TableKey, V: TableValue, E: ScanEnd<K>> Iterator for Merge<'_, K, V, E> {
    type Item = Merged<K, V>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(match self.next_entry()? {
            (key, Found::InMemory(value)) => Merged { key, value, is_from_file: false },
            (key, Found::Stored { bytes, store, table }) => {
                // A damaged entry ends the scan; the store has recorded it.
                let value = Arc::new(store.decode(table, &key, &bytes)?);
                Merged { key, value, is_from_file: true }
            }
        })
    }
}

/// The keys of a merge.
pub(crate) struct Keys<'a, K, V, E>(Merge<'a, K, V, E>);

impl<K: TableKey, V: TableValue, E: ScanEnd<K>> Iterator for Keys<'_, K, V, E> {
    type Item = K;

    fn next(&mut self) -> Option<K> {
        self.0.next_entry().map(|(key, _)| key)
    }
}
