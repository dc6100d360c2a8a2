//! USER_TASK CLAIM: somebody takes a task that nobody else has.

use protocol::{Key, Rejection, UserTaskIntent, UserTaskValue};

use super::assign::assigned;
use super::{begin, check_size, find};
use crate::execution::{Execution, Outcome};

pub(crate) fn claim(execution: &mut Execution<'_>, key: Key, command: &UserTaskValue) -> Outcome {
    let task = find(execution, key, "claim")?;
    if command.assignee.is_empty() {
        return Err(Rejection::invalid_state(format!(
            "Expected to claim user task with key '{key}', but provided assignee is empty"
        ))
        .into());
    }
    let assignee = &task.value.assignee;
    if !assignee.is_empty() && *assignee != *command.assignee {
        return Err(Rejection::invalid_state(format!(
            "Expected to claim user task with key '{key}', but it has already been assigned"
        ))
        .into());
    }
    let value = assigned(&task.value, command, "claim");
    check_size(execution, &value).map_err(|reason| {
        Rejection::invalid_argument(format!("Expected to claim user task with key '{key}', but {reason}"))
    })?;
    begin(execution, UserTaskIntent::Claiming, value, execution.request)
}
