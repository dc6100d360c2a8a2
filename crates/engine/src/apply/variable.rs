//! Events of variables.

use protocol::{Key, VariableIntent, VariableValue};

use super::usage;
use crate::state::{State, Usage, VariableRow, append_variable, variable_bytes};

pub(super) fn apply(state: &mut State, key: Key, intent: VariableIntent, value: &VariableValue) {
    let scope = value.scope_key.raw();
    let variable = (scope, value.name.shared().clone());
    let row = VariableRow { key, value: value.value.clone() };
    let bytes = variable_bytes(&value.name, &value.value);
    match intent {
        VariableIntent::Created => {
            state.tables.variables.insert_new(variable, row);
            created(state, value.scope_key, bytes);
        }
        VariableIntent::Updated => {
            let mut bytes_before = 0;
            let change = |before: &mut VariableRow| {
                bytes_before = variable_bytes(&value.name, &before.value);
                *before = row;
            };
            if !state.tables.variables.update(&variable, change) {
                return super::change::broken(state, format!("scope {scope} has no variable '{}'", value.name));
            }
            let Some(instance) = state.element_instance(value.scope_key) else {
                return state.note_changed_early_variable(value.scope_key, bytes_before, bytes);
            };
            let of = instance.value.process_instance_key;
            if bytes > bytes_before {
                usage::add(state, of, Usage { living: 0, bytes: bytes - bytes_before });
            } else {
                usage::take(state, of, Usage { living: 0, bytes: bytes_before - bytes });
            }
        }
        // It goes with its scope, and says nothing of a definition.
        VariableIntent::Migrated => {}
    }
}

/// A scope may get variables before it is there; they are counted when it begins, and it has some from the start then.
fn created(state: &mut State, scope: Key, bytes: u64) {
    let Some(instance) = state.element_instance(scope) else { return state.note_early_variable(scope, bytes) };
    if !instance.has_variables {
        state.tables.element_instances.update(&scope.raw(), |instance| instance.has_variables = true);
    }
    usage::add(state, instance.value.process_instance_key, Usage { living: 0, bytes });
}

/// Takes the variables of a scope away that is not a root process; returns what they took.
pub(super) fn remove_all(state: &mut State, scope: Key) -> u64 {
    let variables: Vec<_> =
        state.variables_of(scope).map(|(name, row)| (variable_bytes(&name, &row.value), name)).collect();
    let mut bytes = 0;
    for (taken, name) in variables {
        bytes += taken;
        state.tables.variables.delete(&(scope.raw(), name));
    }
    bytes
}

/// The variables of a scope as one document.
pub(super) fn document_of(state: &State, scope: Key) -> String {
    let mut document = String::from("{");
    for (name, row) in state.variables_of(scope) {
        append_variable(&mut document, &name, &row.value);
    }
    document.push('}');
    document
}
