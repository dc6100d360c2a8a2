//! Events of modifications.

use super::change::change_element;
use protocol::{ProcessInstanceModificationIntent, ProcessInstanceModificationValue};

use crate::state::State;

/// Scopes in which something began continue, whatever interrupted them before.
pub(super) fn apply(
    state: &mut State,
    intent: ProcessInstanceModificationIntent,
    value: &ProcessInstanceModificationValue,
) {
    if intent != ProcessInstanceModificationIntent::Modified {
        return super::change::not_an_event(state, intent.name());
    }
    for scope in &value.ancestor_scope_keys {
        // A scope may have ended by what else was modified.
        if state.element_instance(*scope).is_some_and(|instance| instance.interrupted_by.is_some()) {
            state.tables.element_instances.update(&scope.raw(), |instance| instance.interrupted_by = None);
        }
    }
    for scope in &value.scopes_that_pass_on_tokens {
        change_element(state, scope.raw(), |scope| scope.tokens_passed_on += 1);
    }
}
