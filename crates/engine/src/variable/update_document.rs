//! VARIABLE_DOCUMENT UPDATE: set variables from outside.

use protocol::{Payload, Rejection, VariableDocumentIntent, VariableDocumentUpdateSemantics, VariableDocumentValue};

use super::document;
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
    match value.update_semantics {
        VariableDocumentUpdateSemantics::Local => document::set_local(execution, value.scope_key, entries),
        VariableDocumentUpdateSemantics::Propagate => document::propagate(execution, value.scope_key, entries),
    }
    let key = execution.state.next_key();
    let updated = Payload::VariableDocument(VariableDocumentIntent::Updated, Box::new(value.clone()));
    execution.emit(key, updated.clone());
    execution.reply(key, updated);
    Ok(())
}
