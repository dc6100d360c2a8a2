//! VARIABLE_DOCUMENT UPDATE: set variables from outside.

use protocol::{Payload, Rejection, VariableDocumentIntent, VariableDocumentUpdateSemantics, VariableDocumentValue};

use super::document::{self, Reach};
use crate::execution::{Execution, Outcome};
use crate::state::Lifecycle;
use crate::user_task::update;

pub(crate) fn update(execution: &mut Execution<'_>, value: &VariableDocumentValue) -> Outcome {
    let Some(instance) = execution.state.element_instance(value.scope_key) else {
        return Err(Rejection::not_found(format!(
            "Expected to update variables for element with key '{}', but no such element was found",
            value.scope_key
        ))
        .into());
    };
    execution.check_not_banned(instance.value.process_instance_key)?;
    if instance.lifecycle == Lifecycle::Terminating {
        return Err(Rejection::not_found(format!(
            "Expected to update variables for element with key '{}', but it is being terminated; update those of an element around it",
            value.scope_key
        ))
        .into());
    }
    let entries = document::split(&value.variables, execution.limits.name_bytes_max)?;
    let reach = match value.update_semantics {
        VariableDocumentUpdateSemantics::Local => Reach::Local,
        VariableDocumentUpdateSemantics::Propagate => Reach::Outwards,
    };
    if instance.user_task.is_none() {
        let updated = Payload::VariableDocument(VariableDocumentIntent::Updated, Box::new(value.clone()));
        document::set_if_room(execution, value.scope_key, entries, reach).map_err(Rejection::invalid_state)?;
        let key = execution.state.next_key();
        execution.emit(key, updated.clone());
        execution.reply(key, updated);
        return Ok(());
    }
    // The user task is updated with the variables of its scope.
    document::check_room(execution, value.scope_key, &entries, reach).map_err(Rejection::invalid_state)?;
    update::update_with_variables(execution, instance.user_task, value, !entries.is_empty())
}
