//! What a queue remembers about the fronts of its prefixes.

use std::collections::BTreeMap;

use crate::key::TableKey;

/// Fronts are remembered for at most this many prefixes; for a forgotten one the next look searches again.
const MOST_REMEMBERED_FRONTS: usize = 16_384;

/// What is known about the entries of a prefix that lie in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum InFile<K> {
    /// Nothing: look from the front's lower bound.
    Unknown,
    /// Of the keys below this one, none counts: the layers above hide each. The file has this key, and it is not below
    /// the front's lower bound.
    First(K),
    /// None counts.
    None,
}

/// What is known about the front of a prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Front<K> {
    /// No entry is below this key; without a key, there is no entry.
    pub(crate) lower_bound: Option<K>,
    /// Where the file's part begins.
    pub(crate) in_file: InFile<K>,
}

/// Fronts by prefix. Forgetting any of them never changes a result.
#[derive(Debug)]
pub(crate) struct Fronts<P, K> {
    by_prefix: BTreeMap<P, (Front<K>, u64)>,
    /// Counts the changes of the file; what was remembered about an earlier one's entries is void.
    file_generation: u64,
}

impl<P: TableKey, K: TableKey> Fronts<P, K> {
    pub(crate) fn new() -> Self {
        Self { by_prefix: BTreeMap::new(), file_generation: 0 }
    }

    /// What is known about a prefix; of an unknown one, that nothing is below the least key.
    pub(crate) fn get(&self, prefix: &P) -> Front<K> {
        match self.by_prefix.get(prefix) {
            Some((front, generation)) if *generation == self.file_generation => front.clone(),
            Some((front, _)) => Front { lower_bound: front.lower_bound.clone(), in_file: InFile::Unknown },
            None => Front { lower_bound: Some(K::least()), in_file: InFile::Unknown },
        }
    }

    pub(crate) fn remember(&mut self, prefix: &P, front: Front<K>) {
        let remembered = (front, self.file_generation);
        match self.by_prefix.get_mut(prefix) {
            Some(known) => *known = remembered,
            None => {
                self.by_prefix.insert(prefix.clone(), remembered);
            }
        }
        if self.by_prefix.len() > MOST_REMEMBERED_FRONTS {
            self.by_prefix.pop_first();
        }
    }

    /// A new entry below the front becomes the front. What is known about the file stays true, because the new entry lies
    /// above it.
    pub(crate) fn inserted(&mut self, prefix: &P, key: &K) {
        if let Some((front, _)) = self.by_prefix.get_mut(prefix)
            && front.lower_bound.as_ref().is_none_or(|bound| bound > key)
        {
            front.lower_bound = Some(key.clone());
        }
    }

    /// An entry that a rollback may have brought back, also one in the file that was hidden until now.
    pub(crate) fn restored(&mut self, prefix: &P, key: &K) {
        self.inserted(prefix, key);
        if let Some((front, _)) = self.by_prefix.get_mut(prefix) {
            front.in_file = InFile::Unknown;
        }
    }

    /// The file changed, and the layer that hid its entries is gone.
    pub(crate) fn file_changed(&mut self) {
        self.file_generation += 1;
    }
}
