//! Events of global listeners, and which of their configurations are kept.
//!
//! There is a row for each configuration that something goes by: the current one, and those in which changes of user tasks began
//! that are not over. The latter are counted.

use protocol::{GlobalListenerBatchIntent, GlobalListenerIntent, GlobalListenerValue, Key};

use super::change::{broken, count_up, not_an_event, take_one};
use crate::state::{GlobalListenersRow, State};

pub(super) fn apply(state: &mut State, intent: GlobalListenerIntent, value: &GlobalListenerValue) {
    match intent {
        GlobalListenerIntent::Created => change(state, value, false, Some(value)),
        GlobalListenerIntent::Updated => change(state, value, true, Some(value)),
        GlobalListenerIntent::Deleted => change(state, value, true, None),
        GlobalListenerIntent::Create | GlobalListenerIntent::Update | GlobalListenerIntent::Delete => {
            not_an_event(state, intent.name());
        }
    }
}

/// The events of the listeners said it all.
pub(super) fn apply_batch(state: &mut State, intent: GlobalListenerBatchIntent) {
    match intent {
        GlobalListenerBatchIntent::Configured => {}
        GlobalListenerBatchIntent::Configure => not_an_event(state, intent.name()),
    }
}

/// The listeners become others by one of them, as a new configuration; several changes may make the same one.
fn change(state: &mut State, of: &GlobalListenerValue, is_there: bool, becomes: Option<&GlobalListenerValue>) {
    let current = state.counters.global_listeners;
    let mut listeners = state.global_listeners(current).map_or_else(Vec::new, |row| row.listeners.clone());
    let before = listeners.len();
    listeners.retain(|listener| listener.id != of.id);
    if (listeners.len() < before) != is_there {
        let state_of_it = if is_there { "is not there" } else { "is there already" };
        return broken(state, format!("global listener '{}' {state_of_it}", of.id));
    }
    listeners.extend(becomes.cloned());
    state.counters.global_listeners = (!listeners.is_empty()).then_some(of.config_key);
    if let Some(replaced) = current {
        drop_unused(state, replaced);
    }
    if !listeners.is_empty() {
        state.tables.global_listeners.put(of.config_key.raw(), GlobalListenersRow::of(listeners));
    }
}

/// A change of a user task begins: it goes by the configuration that there is.
pub(super) fn pin(state: &mut State) -> Option<Key> {
    let current = state.counters.global_listeners?;
    count_up(&mut state.tables.pinned_global_listeners, current.raw());
    Some(current)
}

/// It is over.
pub(super) fn unpin(state: &mut State, pinned: Option<Key>) {
    let Some(pinned) = pinned else { return };
    if !take_one(&mut state.tables.pinned_global_listeners, &pinned.raw()) {
        return broken(state, format!("nothing goes by the global listeners {pinned}"));
    }
    drop_unused(state, pinned);
}

fn drop_unused(state: &mut State, configuration: Key) {
    let is_current = state.counters.global_listeners == Some(configuration);
    if !is_current && !state.tables.pinned_global_listeners.contains(&configuration.raw()) {
        state.tables.global_listeners.delete(&configuration.raw());
    }
}
