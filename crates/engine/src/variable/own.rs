//! What an expression sees before the variables of its scope.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::document::Entry;

/// Entries in the order in which they came. Of those with the same name the last is seen, and finding it takes no longer the
/// more there are.
#[derive(Debug)]
pub(crate) struct OwnEntries<T, N = Arc<str>> {
    entries: Vec<OwnEntry<T, N>>,
    /// Where the last entry of each name is.
    last: BTreeMap<N, usize>,
}

#[derive(Debug)]
struct OwnEntry<T, N> {
    name: N,
    value: T,
    /// The entry of the same name that this one hides.
    hidden: Option<usize>,
}

impl<T, N: Ord + Clone> OwnEntries<T, N> {
    /// None.
    pub const fn new() -> Self {
        OwnEntries { entries: Vec::new(), last: BTreeMap::new() }
    }

    /// How many there are, hidden ones included.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Adds an entry, which hides those of its name.
    pub fn push(&mut self, name: N, value: T) {
        let hidden = self.last.insert(name.clone(), self.entries.len());
        self.entries.push(OwnEntry { name, value, hidden });
    }

    /// Takes away what came after the first `len` entries; what it hid is seen again.
    pub fn truncate(&mut self, len: usize) {
        while self.entries.len() > len {
            let Some(OwnEntry { name, hidden, .. }) = self.entries.pop() else { return };
            match hidden {
                Some(hidden) => self.last.insert(name, hidden),
                None => self.last.remove(&name),
            };
        }
    }

    /// The last entry of a name.
    pub fn get<Q: Ord + ?Sized>(&self, name: &Q) -> Option<&T>
    where
        N: std::borrow::Borrow<Q>,
    {
        self.last.get(name).map(|last| &self.entries[*last].value)
    }
}

impl<T> FromIterator<Entry> for OwnEntries<T>
where
    T: From<protocol::Text>,
{
    fn from_iter<I: IntoIterator<Item = Entry>>(entries: I) -> Self {
        let mut own = OwnEntries::new();
        for (name, text) in entries {
            own.push(name, T::from(text));
        }
        own
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::cmp::Ordering;

    use super::*;

    #[test]
    fn what_was_hidden_is_seen_again_when_what_hid_it_is_gone() {
        let mut own: OwnEntries<u32, &str> = OwnEntries::new();
        own.push("a", 1);
        own.push("b", 2);
        own.push("a", 3);
        own.push("c", 4);
        own.push("a", 5);
        assert_eq!((own.get("a"), own.get("b"), own.get("c")), (Some(&5), Some(&2), Some(&4)));
        own.truncate(3);
        assert_eq!((own.get("a"), own.get("b"), own.get("c")), (Some(&3), Some(&2), None));
        own.truncate(1);
        assert_eq!((own.get("a"), own.get("b")), (Some(&1), None));
        own.truncate(0);
        assert_eq!(own.get("a"), None);
    }

    thread_local! {
        static COMPARISONS: Cell<u64> = const { Cell::new(0) };
    }

    /// A name that counts how often it is compared.
    #[derive(Clone, Debug)]
    struct Counted(u32);

    impl Ord for Counted {
        fn cmp(&self, other: &Self) -> Ordering {
            COMPARISONS.set(COMPARISONS.get() + 1);
            self.0.cmp(&other.0)
        }
    }

    impl PartialOrd for Counted {
        fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
            Some(self.cmp(other))
        }
    }

    impl PartialEq for Counted {
        fn eq(&self, other: &Self) -> bool {
            self.cmp(other) == Ordering::Equal
        }
    }

    impl Eq for Counted {}

    #[test]
    fn an_entry_is_found_without_a_look_at_most_of_the_others() {
        const COUNT: u32 = 5_000;
        let mut own = OwnEntries::new();
        for number in 0..COUNT {
            own.push(Counted(number), number);
            assert_eq!(own.get(&Counted(number / 2)), Some(&(number / 2)));
            assert_eq!(own.get(&Counted(COUNT)), None);
        }
        own.truncate(1);
        let comparisons = COMPARISONS.get() / u64::from(COUNT);
        assert!(
            comparisons < 200,
            "{comparisons} comparisons for each entry, to add it, find it, miss one and take it away"
        );
    }
}
