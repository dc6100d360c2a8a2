//! How rows and counters change, and what is said when an event does not fit them.

use std::sync::Arc;

use protocol::Key;

use crate::state::{Counters, ElementInstance, Misfit, State};

/// A tenant and the id of a process, decision or graph of decisions.
pub(super) type Name = (Arc<str>, Arc<str>);

/// The versions of a definition in a table by tenant, id and version, oldest first.
pub(super) fn versions<'a>(
    table: &'a state::Table<(Arc<str>, Arc<str>, i32), i64>,
    name: &Name,
) -> impl Iterator<Item = (i32, Key)> + use<'a> {
    table.prefix(name).map(|((.., version), key)| (version, Key::from_raw(*key)))
}

/// The current event does not fit the state. The first misfit of a command is kept.
#[cold]
#[inline(never)]
pub(super) fn broken(state: &mut State, reason: String) {
    state.misfit.get_or_insert(Misfit { event: String::new(), reason });
}

/// What is a command, or belongs to what this version does not process, is never emitted as an event.
pub(super) fn not_an_event(state: &mut State, intent: &str) {
    broken(state, format!("{intent} is no event that this version emits"));
}

/// Changes an element instance, which must be there.
pub(super) fn change_element(state: &mut State, key: i64, change: impl FnOnce(&mut ElementInstance)) {
    if !state.tables.element_instances.update(&key, change) {
        broken(state, format!("element instance {key} is not there"));
    }
}

/// Takes what went from a counter, which counts what is there.
pub(super) fn count_down(state: &mut State, what: &str, went: u64, counter: impl FnOnce(&mut Counters) -> &mut u64) {
    let counter = counter(&mut state.counters);
    match counter.checked_sub(went) {
        Some(left) => *counter = left,
        None => {
            let counted = *counter;
            broken(state, format!("{went} {what} went, but only {counted} were counted"));
        }
    }
}

/// One more under a key.
pub(super) fn count_up<K: state::TableKey>(table: &mut state::Table<K, u32>, key: K) {
    if !table.update(&key, |count| *count += 1) {
        table.put(key, 1);
    }
}

/// Counts down under a key and removes the entry at zero. Returns whether there was one.
pub(super) fn take_one<K: state::TableKey>(table: &mut state::Table<K, u32>, key: &K) -> bool {
    match table.get(key).map_or(0, |count| *count) {
        0 => return false,
        1 => table.delete(key),
        count => table.put(key.clone(), count - 1),
    }
    true
}
