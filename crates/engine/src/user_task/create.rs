//! A user task begins: CREATING, CREATED, and then ASSIGNING, ASSIGNED if somebody is to do it.

use protocol::{Key, ProcessInstanceValue, Text, UserTaskIntent, UserTaskValue};

use super::{ASSIGNEE, begin, emit, listener};
use crate::execution::token::Token;
use crate::execution::{Execution, Outcome};
use crate::job::delivery::{self, JobQueue};

/// What is left to do for a task that began, once its element is activated.
pub(crate) enum Creation {
    /// It is there, and goes to its assignee.
    Assign(Box<UserTaskValue>),
    /// The job of its first listener is handed out, unless it stopped with an incident.
    Wait(Option<JobQueue>),
}

/// Creates the task, or begins to when it has listeners; [`end`] does what is left.
pub(crate) fn create(execution: &mut Execution<'_>, token: &Token, value: UserTaskValue) -> Creation {
    let value = creating(execution, value);
    match listener::begin_creation(execution, token, value.user_task_key) {
        Some(queue) => Creation::Wait(queue),
        None => Creation::Assign(Box::new(created(execution, value))),
    }
}

/// Creates the task, whatever listens.
pub(crate) fn create_at_once(execution: &mut Execution<'_>, value: UserTaskValue) {
    let value = creating(execution, value);
    let value = created(execution, value);
    if let Some(value) = assigning(value) {
        emit(execution, UserTaskIntent::Assigning, value.clone());
        emit(execution, UserTaskIntent::Assigned, value);
    }
}

pub(crate) fn end(execution: &mut Execution<'_>, creation: Creation) -> Outcome {
    match creation {
        Creation::Assign(value) => assign_created(execution, *value),
        Creation::Wait(Some(queue)) => {
            delivery::deliver(execution, &queue);
            Ok(())
        }
        Creation::Wait(None) => Ok(()),
    }
}

fn creating(execution: &mut Execution<'_>, mut value: UserTaskValue) -> UserTaskValue {
    value.user_task_key = execution.state.next_key();
    value.creation_timestamp = execution.timestamp;
    emit(execution, UserTaskIntent::Creating, value.clone());
    value
}

fn created(execution: &mut Execution<'_>, value: UserTaskValue) -> UserTaskValue {
    // As on the reference engine, nobody has it before it is assigned.
    emit(execution, UserTaskIntent::Created, UserTaskValue { assignee: Text::default(), ..value.clone() });
    value
}

/// Gives a task that was just created to its assignee, if it has one.
pub(super) fn assign_created(execution: &mut Execution<'_>, value: UserTaskValue) -> Outcome {
    match assigning(value) {
        Some(value) => begin(execution, UserTaskIntent::Assigning, value, None),
        None => Ok(()),
    }
}

fn assigning(value: UserTaskValue) -> Option<UserTaskValue> {
    (!value.assignee.is_empty()).then(|| UserTaskValue { changed_attributes: vec![ASSIGNEE.into()], ..value })
}

/// The same task at an element of another definition.
pub(crate) fn migrate(execution: &mut Execution<'_>, key: Key, of: &ProcessInstanceValue) {
    let Some(task) = execution.state.user_task(key) else { return };
    let migrated = UserTaskValue {
        bpmn_process_id: of.bpmn_process_id.clone(),
        process_definition_version: of.version,
        process_definition_key: of.process_definition_key,
        element_id: of.element_id.clone(),
        ..task.value.clone()
    };
    emit(execution, UserTaskIntent::Migrated, migrated);
}
