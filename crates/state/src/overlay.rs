//! The layer in memory: what was written since the last checkpoint, and how to take a command back.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry as MapEntry;
use std::sync::Arc;

use crate::key::TableKey;
use crate::value::TableValue;

/// What an entry costs besides its key and value: the map's node, the reference counts and the allocator's rounding.
const ENTRY_OVERHEAD_BYTES: usize = 64;

/// What the layer says about a key.
#[derive(Debug)]
pub(crate) struct Entry<V> {
    /// The value, or `None` for a deletion that hides what the layers below hold.
    pub(crate) value: Option<Arc<V>>,
    /// The command that wrote this entry; the undo list already holds what was there before it.
    command: u64,
    bytes: u32,
    /// Whether a layer below may hold the key. Only if it certainly does not, a deletion may drop the entry.
    below: bool,
}

impl<V: TableValue> Entry<V> {
    fn new<K>(value: Option<Arc<V>>, command: u64, below: bool) -> Self {
        let bytes = Self::size::<K>(value.as_deref());
        Self { value, command, bytes, below }
    }

    /// An entry that lies in the file.
    pub(crate) fn stored(value: Arc<V>) -> Self {
        Self { value: Some(value), command: 0, bytes: 0, below: true }
    }

    fn size<K>(value: Option<&V>) -> u32 {
        let value_bytes = value.map_or(0, |value| size_of::<V>().saturating_add(value.heap_bytes()));
        u32::try_from(value_bytes.saturating_add(size_of::<K>() + ENTRY_OVERHEAD_BYTES)).unwrap_or(u32::MAX)
    }
}

/// The outcome of changing a value in place.
pub(crate) enum Update<F> {
    /// The value was changed.
    Done,
    /// The layer says that the key is deleted.
    Deleted,
    /// The layer says nothing about the key; here is the change back.
    Unknown(F),
}

#[derive(Debug)]
pub(crate) struct Overlay<K, V> {
    pub(crate) entries: BTreeMap<K, Entry<V>>,
    /// What was there before, for every key that the current command wrote, in order.
    undo: Vec<(K, Option<Entry<V>>)>,
    /// Counts the commands that wrote here; entries compare theirs with it, so that one undo record per command suffices.
    command: u64,
    bytes: u64,
}

impl<K: TableKey, V: TableValue> Overlay<K, V> {
    pub(crate) fn new() -> Self {
        Self { entries: BTreeMap::new(), undo: Vec::new(), command: 1, bytes: 0 }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn is_command_open(&self) -> bool {
        !self.undo.is_empty()
    }

    /// Writes a value. `below` is asked only if the layer says nothing about the key yet.
    #[inline]
    pub(crate) fn put(&mut self, key: K, value: Arc<V>, below: impl FnOnce(&K) -> bool) {
        match self.entries.entry(key) {
            MapEntry::Vacant(vacant) => {
                let below = below(vacant.key());
                let entry = Entry::new::<K>(Some(value), self.command, below);
                self.bytes += u64::from(entry.bytes);
                self.undo.push((vacant.key().clone(), None));
                vacant.insert(entry);
            }
            MapEntry::Occupied(mut occupied) => {
                let below = occupied.get().below;
                let entry = Entry::new::<K>(Some(value), self.command, below);
                self.bytes += u64::from(entry.bytes);
                let prior = occupied.insert(entry);
                self.bytes -= u64::from(prior.bytes);
                if prior.command != self.command {
                    self.undo.push((occupied.key().clone(), Some(prior)));
                }
            }
        }
    }

    /// Deletes a key. An entry that no layer below can hold vanishes; otherwise a mark remains that hides what is below.
    #[inline]
    pub(crate) fn delete(&mut self, key: &K, below: impl FnOnce(&K) -> bool) {
        match self.entries.entry(key.clone()) {
            MapEntry::Vacant(vacant) => {
                if below(vacant.key()) {
                    let entry = Entry::new::<K>(None, self.command, true);
                    self.bytes += u64::from(entry.bytes);
                    self.undo.push((vacant.key().clone(), None));
                    vacant.insert(entry);
                }
            }
            MapEntry::Occupied(occupied) if !occupied.get().below => {
                let (key, prior) = occupied.remove_entry();
                self.bytes -= u64::from(prior.bytes);
                if prior.command != self.command {
                    self.undo.push((key, Some(prior)));
                }
            }
            MapEntry::Occupied(mut occupied) => {
                if occupied.get().value.is_none() {
                    return;
                }
                let entry = Entry::new::<K>(None, self.command, true);
                self.bytes += u64::from(entry.bytes);
                let prior = occupied.insert(entry);
                self.bytes -= u64::from(prior.bytes);
                if prior.command != self.command {
                    self.undo.push((occupied.key().clone(), Some(prior)));
                }
            }
        }
    }

    /// Changes the value of a key that this layer holds. The first change within a command works on a copy, because the
    /// undo list keeps the value as it was; later ones work in place unless a reader still holds the value.
    #[inline]
    pub(crate) fn update<F: FnOnce(&mut V)>(&mut self, key: &K, change: F) -> Update<F>
    where
        V: Clone,
    {
        let Some(entry) = self.entries.get_mut(key) else {
            return Update::Unknown(change);
        };
        let Some(value) = &mut entry.value else {
            return Update::Deleted;
        };
        let prior_bytes = entry.bytes;
        if entry.command == self.command {
            change(Arc::make_mut(value));
            entry.bytes = Entry::size::<K>(Some(value.as_ref()));
            self.bytes += u64::from(entry.bytes);
        } else {
            let mut changed = V::clone(value);
            change(&mut changed);
            let changed = Entry::new::<K>(Some(Arc::new(changed)), self.command, entry.below);
            self.bytes += u64::from(changed.bytes);
            let prior = std::mem::replace(entry, changed);
            self.undo.push((key.clone(), Some(prior)));
        }
        self.bytes -= u64::from(prior_bytes);
        Update::Done
    }

    /// Keeps what the current command wrote.
    #[inline]
    pub(crate) fn commit(&mut self) {
        if !self.undo.is_empty() {
            self.undo.clear();
            self.command += 1;
        }
    }

    /// Undoes what the current command wrote and reports each key. No entry of the command is left afterwards, so the next
    /// command can have the same number.
    pub(crate) fn rollback(&mut self, mut restored: impl FnMut(&K)) {
        while let Some((key, prior)) = self.undo.pop() {
            restored(&key);
            let replaced = match prior {
                Some(prior) => {
                    self.bytes += u64::from(prior.bytes);
                    self.entries.insert(key, prior)
                }
                None => self.entries.remove(&key),
            };
            self.bytes -= replaced.map_or(0, |entry| u64::from(entry.bytes));
        }
    }

    /// Hands out all entries and starts empty.
    pub(crate) fn take(&mut self) -> (BTreeMap<K, Entry<V>>, u64) {
        debug_assert!(self.undo.is_empty(), "a layer is only frozen between two commands");
        (std::mem::take(&mut self.entries), std::mem::take(&mut self.bytes))
    }
}
