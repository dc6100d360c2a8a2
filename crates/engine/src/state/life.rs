//! Where scopes and process instances are in their lives.

use protocol::Key;

use super::{ElementInstance, Lifecycle, State};

/// Whether an element may begin or complete in a scope: the scope is active and not interrupted by another element.
pub(crate) fn is_open_for(scope: &ElementInstance, element_id: &str) -> bool {
    scope.lifecycle == Lifecycle::Activated
        && scope.interrupted_by.as_ref().is_none_or(|interrupted_by| **interrupted_by == *element_id)
}

/// Whether a process instance is ending: it takes as many steps as it has elements, and no more.
pub(crate) fn comes_to_an_end(state: &State, process_instance: Key) -> bool {
    let process = state.element_instance(process_instance);
    process.is_some_and(|process| process.lifecycle == Lifecycle::Terminating)
}

/// Whether a process instance is ending and another one called it, which cannot end before.
pub(crate) fn is_end_waited_for(state: &State, process_instance: Key) -> bool {
    state.element_instance(process_instance).is_some_and(|process| {
        process.lifecycle == Lifecycle::Terminating && process.value.parent_process_instance_key.is_some()
    })
}
