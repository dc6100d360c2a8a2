//! VARIABLE_DOCUMENT UPDATE: set variables from outside.

use protocol::{Payload, Rejection, VariableDocumentIntent, VariableDocumentUpdateSemantics, VariableDocumentValue};

use super::document::{self, Reach};
use crate::execution::{Execution, Outcome};

pub(crate) fn update(execution: &mut Execution<'_>, value: &VariableDocumentValue) -> Outcome {
    let Some(instance) = execution.state.element_instance(value.scope_key) else {
        return Err(Rejection::not_found(format!(
            "Expected to update variables for element with key '{}', but no such element was found",
            value.scope_key
        ))
        .into());
    };
    execution.check_not_banned(instance.value.process_instance_key)?;
    let entries = document::split(&value.variables, execution.limits.name_bytes_max)?;
    let reach = match value.update_semantics {
        VariableDocumentUpdateSemantics::Local => Reach::Local,
        VariableDocumentUpdateSemantics::Propagate => Reach::Outwards,
    };
    document::set_if_room(execution, value.scope_key, entries, reach).map_err(Rejection::invalid_state)?;
    let key = execution.state.next_key();
    let updated = Payload::VariableDocument(VariableDocumentIntent::Updated, Box::new(value.clone()));
    execution.emit(key, updated.clone());
    execution.reply(key, updated);
    Ok(())
}
