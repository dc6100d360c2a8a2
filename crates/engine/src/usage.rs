//! What a root process instance may take with all processes that it called: so many element instances, and so many bytes of
//! variables. It is looked at before more is made.

use protocol::{ErrorType, Key, Rejection};

use crate::execution::Execution;
use crate::execution::problem::Problem;
use crate::state::Usage;

/// Checks that the root of a process instance has room for so many more element instances.
pub(crate) fn check_living(
    execution: &Execution<'_>,
    process_instance: Key,
    more: u64,
    error_type: ErrorType,
) -> Result<(), Problem> {
    let usage = execution.state.usage_of(process_instance);
    let living = usage.living.saturating_add(more);
    if living <= execution.limits.root_element_instances_max {
        return Ok(());
    }
    Err(too_many(execution, execution.state.root_of(process_instance), living, error_type))
}

/// Checks that the element instance that has just begun is not one too many.
pub(crate) fn check_begun(execution: &Execution<'_>) -> Result<(), Problem> {
    match execution.state.grown {
        Some((root, Usage { living, .. })) if living > execution.limits.root_element_instances_max => {
            Err(too_many(execution, root, living, ErrorType::Unknown))
        }
        _ => Ok(()),
    }
}

#[cold]
fn too_many(execution: &Execution<'_>, root: Key, living: u64, error_type: ErrorType) -> Problem {
    let living_max = execution.limits.root_element_instances_max;
    Problem::new(
        error_type,
        format!(
            "Expected the root process instance with key '{root}' and all that it called to have at most {living_max} living \
             element instances, tokens and items of loops, but with this there are {living}. Look for processes that call each \
             other or flows that multiply. Cancel the root process instance if this was unintentional; else resolve the \
             incident when others of its element instances have ended."
        ),
    )
}

/// Checks that the root of a process instance has room for so many more bytes of variables.
pub(crate) fn check_bytes(execution: &Execution<'_>, process_instance: Key, more: u64) -> Result<(), String> {
    let bytes = execution.state.usage_of(process_instance).bytes.saturating_add(more);
    if bytes <= execution.root_variable_bytes_max() {
        return Ok(());
    }
    Err(too_large(execution, execution.state.root_of(process_instance), bytes))
}

/// Why a command cannot be carried out that has made a root process instance take too much. Commands of users are held to the
/// limit. What other partitions and time bring is taken up to twice as much: whatever goes on with it then is an incident.
#[cold]
pub(crate) fn excess(execution: &Execution<'_>) -> Option<Rejection> {
    let (root, Usage { bytes, .. }) = execution.state.grown?;
    let bytes_max = execution.root_variable_bytes_max();
    let is_of_user = execution.request.is_some() && execution.at.is_none();
    let bytes_max = if is_of_user { bytes_max } else { bytes_max.saturating_mul(2) };
    (bytes > bytes_max).then(|| Rejection::invalid_state(too_large(execution, root, bytes)))
}

#[cold]
fn too_large(execution: &Execution<'_>, root: Key, bytes: u64) -> String {
    format!(
        "Expected the variables of the root process instance with key '{root}', of all that it called and of their loops to \
         have at most {} bytes together, but with this there are about {bytes}. Make variables smaller that are not needed any \
         more, or keep large documents elsewhere and their ids in variables.",
        execution.root_variable_bytes_max()
    )
}
