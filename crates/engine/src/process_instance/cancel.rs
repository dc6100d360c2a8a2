//! PROCESS_INSTANCE CANCEL.

use crate::state::life::is_end_waited_for;
use protocol::{Key, Payload, ProcessInstanceIntent, Rejection};

use crate::element;
use crate::execution::{Execution, Outcome};
use crate::state::Lifecycle;

pub(crate) fn cancel(execution: &mut Execution<'_>, key: Key) -> Outcome {
    let not_found = || {
        Rejection::not_found(format!(
            "Expected to cancel a process instance with key '{key}', but no such process was found"
        ))
    };
    let instance = execution.state.element_instance(key).ok_or_else(not_found)?;
    if instance.value.flow_scope_key.is_some() {
        return Err(not_found().into());
    }
    let parent = instance.value.parent_process_instance_key;
    if parent.is_some() && !is_stuck(execution, key) {
        return Err(Rejection::invalid_state(format!(
            "Expected to cancel a process instance with key '{key}', but it is created by a parent process instance. Cancel \
             the root process instance '{}' instead.",
            root_of(execution, parent)
        ))
        .into());
    }
    if instance.lifecycle == Lifecycle::Terminating && !can_begin_again(execution, key) {
        let reason = format!(
            "Expected to cancel a process instance with key '{key}', but it is in state '{}': a cancellation is in progress already",
            instance.lifecycle.name()
        );
        return Err(Rejection::not_found(reason).into());
    }
    execution.reply(key, Payload::ProcessInstance(ProcessInstanceIntent::ElementTerminating, instance.value.clone()));
    element::begin_termination(execution, key, instance)
}

/// A banned instance can be cancelled again when its end was interrupted by what it is banned for. As long as steps of its end
/// wait to be taken, each cancellation would take all of them once more.
fn can_begin_again(execution: &Execution<'_>, key: Key) -> bool {
    execution.state.is_banned(key) && !execution.state.has_waiting_work(key)
}

/// Whether what called an instance waits for its end, which was lost. The caller cannot be cancelled a second time.
fn is_stuck(execution: &Execution<'_>, key: Key) -> bool {
    is_end_waited_for(&execution.state, key) && can_begin_again(execution, key)
}

/// The instance that no other one created.
fn root_of(execution: &Execution<'_>, mut key: Key) -> Key {
    while let Some(instance) = execution.state.element_instance(key)
        && instance.value.parent_process_instance_key.is_some()
    {
        key = instance.value.parent_process_instance_key;
    }
    key
}
