//! USER_TASK COMPLETE: the person is done.

use protocol::{Key, Rejection, UserTaskIntent, UserTaskValue};

use super::{action_of, begin, check_size, find};
use crate::execution::{Execution, Outcome};
use crate::variable::document;

pub(crate) fn complete(execution: &mut Execution<'_>, key: Key, command: &UserTaskValue) -> Outcome {
    let task = find(execution, key, "complete")?;
    // Refused here rather than as an incident later, because the person can put it right.
    document::split(&command.variables, execution.limits.name_bytes_max)?;
    let completed = UserTaskValue {
        variables: command.variables.clone(),
        action: action_of(command, "complete"),
        ..task.value.clone()
    };
    check_size(execution, &completed).map_err(|reason| {
        Rejection::invalid_argument(format!("Expected to complete user task with key '{key}', but {reason}"))
    })?;
    begin(execution, UserTaskIntent::Completing, completed, execution.request)
}
