//! USER_TASK UPDATE: attributes of the task change, all or nothing.

use protocol::{
    Key, Payload, Rejection, Text, UserTaskIntent, UserTaskValue, VariableDocumentIntent, VariableDocumentValue,
};

use super::{VARIABLES, action_of, begin, check_attributes, check_size, find, set_attribute};
use crate::execution::{Execution, Outcome};
use crate::state::UserTaskState;

/// Changes what `changed_attributes` names, and says which of it is another value than before.
pub(crate) fn update(execution: &mut Execution<'_>, key: Key, command: &UserTaskValue) -> Outcome {
    let task = find(execution, key, "update")?;
    let mut updated = task.value.clone();
    let mut changed: Vec<Text> = Vec::new();
    for attribute in &command.changed_attributes {
        if !changed.contains(attribute) && set_attribute(&mut updated, command, attribute) {
            changed.push(attribute.clone());
        }
    }
    updated.changed_attributes = changed;
    updated.action = action_of(command, "update");
    check_attributes(&updated).and_then(|()| check_size(execution, &updated)).map_err(|reason| {
        Rejection::invalid_argument(format!("Expected to update user task with key '{key}', but {reason}"))
    })?;
    begin(execution, UserTaskIntent::Updating, updated, execution.request)
}

/// Variables of the task's scope, if the document has any, are about to be set: the task is updated with them.
pub(crate) fn update_with_variables(
    execution: &mut Execution<'_>,
    key: Key,
    document: &VariableDocumentValue,
    sets_some: bool,
) -> Outcome {
    let Some(task) = execution.state.user_task(key) else { return Ok(()) };
    if task.state != UserTaskState::Created {
        return Err(Rejection::invalid_state(format!(
            "Expected to trigger update transition for user task with key '{key}', but it is in state '{}'",
            task.state.name()
        ))
        .into());
    }
    let value = UserTaskValue {
        changed_attributes: if sets_some { vec![VARIABLES.into()] } else { Vec::new() },
        variables: document.variables.clone(),
        ..task.value.clone()
    };
    drop(task);
    let key = execution.state.next_key();
    execution.emit(key, Payload::VariableDocument(VariableDocumentIntent::Updating, Box::new(document.clone())));
    begin(execution, UserTaskIntent::Updating, value, execution.request)
}
