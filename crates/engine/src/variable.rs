//! Variables: how they are found, set, mapped and joined. They are kept as the JSON texts that came.

pub(crate) mod document;
pub(crate) mod expression;
pub(crate) mod long;
pub(crate) mod mapping;
pub(crate) mod own;
pub(crate) mod update_document;

use std::sync::Arc;

use protocol::Key;

use crate::execution::Execution;
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

/// Scopes that are looked through for a variable without a charge: few models nest deeper.
const SCOPES_UNCHARGED: usize = 10;
/// What each further one is charged.
const SCOPE_STEPS: usize = 10;

/// The same for expressions, which look at long variables again and again.
pub(crate) fn find_long(execution: &Execution<'_>, mut scope: Key, name: &Arc<str>) -> Option<Arc<VariableRow>> {
    let known = &execution.used.long_variables;
    let mut scopes = 0;
    while let Some(instance) = execution.state.element_instance(scope) {
        scopes += 1;
        if scopes > SCOPES_UNCHARGED {
            execution.used.budget.charge(SCOPE_STEPS);
        }
        if instance.has_variables {
            if let Some(row) = known.get(scope, name) {
                return Some(row);
            }
            if let Some(row) = execution.state.tables.variables.get(&(scope.raw(), name.clone())) {
                known.keep(scope, name, &row);
                return Some(row);
            }
        }
        scope = instance.value.flow_scope_key;
    }
    None
}
