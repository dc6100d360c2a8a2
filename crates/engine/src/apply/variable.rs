//! Events of variables.

use protocol::{Key, VariableIntent, VariableValue};

use crate::state::{State, VariableRow, append_variable};

pub(super) fn apply(state: &mut State, key: Key, intent: VariableIntent, value: &VariableValue) {
    let scope = value.scope_key.raw();
    let variable = (scope, value.name.shared().clone());
    let row = VariableRow { key, value: value.value.clone() };
    match intent {
        VariableIntent::Created => {
            state.tables.variables.insert_new(variable, row);
            // A scope may get variables before it is there; it counts as having some from the start then.
            if state.tables.element_instances.get(&scope).is_some_and(|instance| !instance.has_variables) {
                state.tables.element_instances.update(&scope, |instance| instance.has_variables = true);
            }
        }
        VariableIntent::Updated => {
            if !state.tables.variables.update(&variable, |before| *before = row) {
                super::broken(state, format!("scope {scope} has no variable '{}'", value.name));
            }
        }
        // It goes with its scope, and says nothing of a definition.
        VariableIntent::Migrated => {}
    }
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
