//! Variables: how they are found, set, mapped and joined. They are kept as the JSON texts that came.

pub(crate) mod document;
pub(crate) mod expression;
pub(crate) mod mapping;
pub(crate) mod update_document;

use std::sync::Arc;

use protocol::Key;

use crate::state::{State, VariableRow};

/// The variable that `name` means in a scope: the nearest one, looking outwards.
pub(crate) fn find(state: &State, mut scope: Key, name: &Arc<str>) -> Option<Arc<VariableRow>> {
    while let Some(instance) = state.element_instance(scope) {
        if instance.has_variables
            && let Some(row) = state.tables.variables.get(&(scope.raw(), name.clone()))
        {
            return Some(row);
        }
        scope = instance.value.flow_scope_key;
    }
    None
}
