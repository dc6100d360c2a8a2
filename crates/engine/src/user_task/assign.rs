//! USER_TASK ASSIGN: the task is given to somebody, whoever has it, or to nobody.

use protocol::{Key, Rejection, UserTaskIntent, UserTaskValue};

use super::{ASSIGNEE, action_of, begin, check_size, find};
use crate::execution::{Execution, Outcome};

pub(crate) fn assign(execution: &mut Execution<'_>, key: Key, command: &UserTaskValue) -> Outcome {
    let task = find(execution, key, "assign")?;
    let value = assigned(&task.value, command, "assign");
    check_size(execution, &value).map_err(|reason| {
        Rejection::invalid_argument(format!("Expected to assign user task with key '{key}', but {reason}"))
    })?;
    begin(execution, UserTaskIntent::Assigning, value, execution.request)
}

/// The task with another assignee.
pub(super) fn assigned(task: &UserTaskValue, command: &UserTaskValue, action: &str) -> UserTaskValue {
    let is_changed = task.assignee != *command.assignee;
    UserTaskValue {
        assignee: command.assignee.clone(),
        changed_attributes: if is_changed { vec![ASSIGNEE.into()] } else { Vec::new() },
        action: action_of(command, action),
        ..task.clone()
    }
}
