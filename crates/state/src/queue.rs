//! An ordered index that is read from the front.

use std::collections::BTreeMap;
use std::io;
use std::iter::Peekable;
use std::ops::Bound;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::checkpoint::FrozenTable;
use crate::key::{SmallKey, TableKey};
use crate::merge::{FileScan, Merge};
use crate::store::{Store, TableId};
use crate::table::Table;
use crate::table_set::{AnyTable, EntryVisitor, LayerSizes};
use crate::value::TableValue;

/// Fronts are remembered for at most this many prefixes; for a forgotten one the next look searches again.
const MOST_REMEMBERED_FRONTS: usize = 16_384;

/// What is known about the front of a prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Front<K> {
    /// No entry is below this key.
    From(K),
    /// There is no entry.
    Empty,
}

/// An ordered index per prefix, such as the available jobs of a type or the timers by due date, read from the front.
///
/// It remembers below which key of a prefix nothing is left. So finding the first entry does not depend on how many were
/// removed before it, although removed entries leave marks until the next checkpoint. Results never depend on what is
/// remembered.
#[derive(Debug)]
pub struct Queue<P, K, V> {
    table: Table<(P, K), V>,
    /// Behind a lock because reading improves it; there is never a second thread at it.
    fronts: Mutex<BTreeMap<P, Front<K>>>,
}

impl<P: TableKey, K: TableKey, V: TableValue> Queue<P, K, V> {
    /// Opens the queue. Used by [`tables!`](crate::tables).
    #[doc(hidden)]
    pub fn open(store: &Store, number: u8, name: &'static str) -> Self {
        Self {
            table: Table::open(store, number, name),
            fronts: Mutex::default(),
        }
    }

    /// Adds an entry that is not in the queue at present.
    pub fn insert(&mut self, prefix: P, key: K, value: V) {
        lower(self.fronts.get_mut(), &prefix, &key);
        self.table.insert_new((prefix, key), value);
    }

    /// Removes an entry, if it is there.
    pub fn remove(&mut self, prefix: &P, key: &K) {
        self.table.delete(&(prefix.clone(), key.clone()));
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
        self.iter(prefix).next()
    }

    /// Whether a prefix has no entry.
    pub fn is_empty(&self, prefix: &P) -> bool {
        self.first(prefix).is_none()
    }

    /// The entries of a prefix, from the front.
    pub fn iter(&self, prefix: &P) -> impl Iterator<Item = (K, Arc<V>)> {
        let front = self.fronts.lock().get(prefix).cloned();
        let entries = match front {
            Some(Front::Empty) => None,
            Some(Front::From(key)) => Some(self.scan_front(prefix, key)),
            None => Some(self.scan_front(prefix, K::least())),
        };
        entries
            .into_iter()
            .flatten()
            .map(|((_, key), value)| (key, value))
    }

    /// The entries at and behind a key below which nothing is; remembers the first of them.
    fn scan_front(&self, prefix: &P, from: K) -> Peekable<impl Iterator<Item = ((P, K), Arc<V>)>> {
        let mut entries = self.scan(prefix, Bound::Included(from)).peekable();
        let front = entries
            .peek()
            .map_or(Front::Empty, |((_, key), _)| Front::From(key.clone()));
        if !self.table.store.is_faulted() {
            let mut fronts = self.fronts.lock();
            fronts.insert(prefix.clone(), front);
            if fronts.len() > MOST_REMEMBERED_FRONTS {
                fronts.pop_first();
            }
        }
        entries
    }

    fn scan(
        &self,
        prefix: &P,
        start: Bound<K>,
    ) -> Merge<'_, (P, K), V, impl Fn(&(P, K)) -> bool + use<'_, P, K, V>> {
        let table = &self.table;
        let start = start.map(|key| (prefix.clone(), key));
        let range = (start.as_ref(), Bound::Unbounded);
        let overlay = table.overlay.entries.range(range);
        let frozen = table
            .frozen
            .as_ref()
            .map(|frozen| frozen.entries.range(range));
        let file = table.store.has_file().then(|| {
            let start = start.as_ref().map(|key| {
                let mut encoded = SmallKey::new();
                key.encode(&mut encoded);
                encoded
            });
            FileScan::new(&table.store, table.id, start, end_of(prefix))
        });
        let prefix = prefix.clone();
        Merge::new(Some(overlay), frozen, file, move |key: &(P, K)| {
            key.0 != prefix
        })
    }
}

/// A new entry below the remembered front becomes the front.
fn lower<P: TableKey, K: TableKey>(fronts: &mut BTreeMap<P, Front<K>>, prefix: &P, key: &K) {
    match fronts.get_mut(prefix) {
        Some(Front::From(front)) if *front <= *key => {}
        Some(front) => *front = Front::From(key.clone()),
        None => {}
    }
}

/// The end of the encoded keys that start with a prefix: its last byte that is not the greatest, plus one.
fn end_of<P: TableKey>(prefix: &P) -> Bound<SmallKey> {
    let mut end = SmallKey::new();
    prefix.encode(&mut end);
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return Bound::Excluded(end);
        }
    }
    Bound::Unbounded
}

impl<P: TableKey, K: TableKey, V: TableValue> AnyTable for Queue<P, K, V> {
    fn id(&self) -> TableId {
        self.table.id
    }

    fn is_command_open(&self) -> bool {
        self.table.is_command_open()
    }

    #[inline]
    fn commit(&mut self) {
        self.table.commit();
    }

    fn rollback(&mut self) {
        let fronts = self.fronts.get_mut();
        self.table
            .overlay
            .rollback(|(prefix, key)| lower(fronts, prefix, key));
    }

    fn freeze(&mut self) -> Option<Arc<dyn FrozenTable>> {
        self.table.freeze()
    }

    fn release(&mut self) -> Option<Arc<dyn FrozenTable>> {
        self.table.release()
    }

    fn layer_sizes(&self) -> LayerSizes {
        self.table.layer_sizes()
    }

    fn visit(&self, visitor: &mut EntryVisitor<'_>) -> io::Result<()> {
        self.table.visit(visitor)
    }
}
