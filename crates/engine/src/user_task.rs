//! User tasks that the engine leads through their life: one file per command. What an element makes of its user task is in
//! `element/user_task.rs`.

pub(crate) mod assign;
pub(crate) mod claim;
pub(crate) mod complete;
pub(crate) mod create;
pub(crate) mod listener;
pub(crate) mod update;

use std::sync::Arc;

use bpmn::model::ListenerEventType;
use bpmn::timer;
use protocol::{
    Key, Payload, Rejection, Request, Text, UserTaskIntent, UserTaskValue, VariableDocumentIntent,
    VariableDocumentUpdateSemantics,
};

use crate::element::finish_termination;
use crate::execution::step::Step;
use crate::execution::{Execution, Failure, Outcome};
use crate::name::start_of;
use crate::payload_bytes::user_task_bytes;
use crate::state::{ElementInstance, UserTaskRow, UserTaskState, VariableUpdate};
use crate::variable::document::{self, Reach};

/// The names of attributes in records.
pub(crate) const ASSIGNEE: &str = "assignee";
pub(crate) const VARIABLES: &str = "variables";

/// The highest priority; the lowest is 0.
pub(crate) const PRIORITY_MAX: i32 = 100;

/// The task that a command names, if commands may change it.
fn find(execution: &Execution<'_>, key: Key, action: &str) -> Result<Arc<UserTaskRow>, Failure> {
    let Some(task) = execution.state.user_task(key) else {
        return Err(Rejection::not_found(format!(
            "Expected to {action} user task with key '{key}', but no such user task was found"
        ))
        .into());
    };
    execution.check_not_banned(task.value.process_instance_key)?;
    if task.state != UserTaskState::Created {
        return Err(Rejection::invalid_state(format!(
            "Expected to {action} user task with key '{key}', but it is in state '{}'",
            task.state.name()
        ))
        .into());
    }
    Ok(task)
}

/// What the person did, in the words of the application or else of the command.
fn action_of(command: &UserTaskValue, otherwise: &str) -> Text {
    if command.action.is_empty() { otherwise.into() } else { command.action.clone() }
}

fn emit(execution: &mut Execution<'_>, intent: UserTaskIntent, value: UserTaskValue) -> Payload {
    let payload = Payload::UserTask(intent, Box::new(value.clone()));
    execution.emit(value.user_task_key, payload.clone());
    payload
}

/// A change of a task begins. It happens at once, or when its listeners are done; then `asking` is answered.
fn begin(
    execution: &mut Execution<'_>,
    intent: UserTaskIntent,
    value: UserTaskValue,
    asking: Option<Request>,
) -> Outcome {
    let key = value.user_task_key;
    let event = match intent {
        UserTaskIntent::Updating => ListenerEventType::Updating,
        UserTaskIntent::Completing => ListenerEventType::Completing,
        _ => ListenerEventType::Assigning,
    };
    let configuration = execution.state.counters.global_listeners;
    if !listener::has_any(execution, value.element_instance_key, event, configuration)? {
        emit(execution, intent, value);
        return finish(execution, key, asking);
    }
    emit(execution, intent, UserTaskValue { awaiting: asking, ..value });
    listener::go_on(execution, key)
}

/// The change that began happens, and who asked for it is told.
fn finish(execution: &mut Execution<'_>, key: Key, asking: Option<Request>) -> Outcome {
    let Some(task) = execution.state.user_task(key) else { return Ok(()) };
    let Some(transition) = &task.transition else { return Ok(()) };
    let mut value = transition.value.clone();
    if task.state == UserTaskState::Creating && !transition.initial_assignee.is_empty() {
        value.assignee = Text::default();
    }
    if transition.listeners_done > 0 {
        value.changed_attributes = listener::changed_attributes(&task.value, &value);
    }
    let element = value.element_instance_key;
    match task.state {
        UserTaskState::Creating => {
            let assignee = transition.initial_assignee.clone();
            emit(execution, UserTaskIntent::Created, value.clone());
            create::assign_created(execution, UserTaskValue { assignee, ..value })?;
        }
        UserTaskState::Assigning | UserTaskState::Claiming => {
            let payload = emit(execution, UserTaskIntent::Assigned, value);
            answer(execution, asking, key, payload);
        }
        UserTaskState::Updating => match &task.variable_update {
            Some(update) => finish_variables(execution, value, update, asking)?,
            None => {
                let payload = emit(execution, UserTaskIntent::Updated, value);
                answer(execution, asking, key, payload);
            }
        },
        UserTaskState::Completing => {
            let payload = emit(execution, UserTaskIntent::Completed, value);
            answer(execution, asking, key, payload);
            execution.steps.push_back(Step::Complete { key: element });
        }
        UserTaskState::Canceling => {
            emit(execution, UserTaskIntent::Canceled, value);
            finish_termination(execution, element)?;
        }
        UserTaskState::Created => {}
    }
    Ok(())
}

fn answer(execution: &mut Execution<'_>, asking: Option<Request>, key: Key, payload: Payload) {
    if let Some(request) = asking {
        execution.reply_to(request, key, payload);
    }
}

/// The variables that came with the update are set.
fn finish_variables(
    execution: &mut Execution<'_>,
    value: UserTaskValue,
    update: &VariableUpdate,
    asking: Option<Request>,
) -> Outcome {
    let entries = document::split(&update.value.variables, execution.limits.name_bytes_max)?;
    let reach = match update.value.update_semantics {
        VariableDocumentUpdateSemantics::Local => Reach::Local,
        VariableDocumentUpdateSemantics::Propagate => Reach::Outwards,
    };
    document::set_if_room(execution, update.value.scope_key, entries, reach).map_err(Rejection::invalid_state)?;
    emit(execution, UserTaskIntent::Updated, value);
    let updated = Payload::VariableDocument(VariableDocumentIntent::Updated, Box::new(update.value.clone()));
    execution.emit(update.key, updated.clone());
    answer(execution, asking, update.key, updated);
    Ok(())
}

/// The task ends with its element. Returns whether the end waits for listeners, which must not hold up the end of a banned
/// instance.
pub(crate) fn cancel(execution: &mut Execution<'_>, instance: &ElementInstance) -> Outcome<bool> {
    let Some(key) = begin_cancellation(execution, instance) else { return Ok(false) };
    let is_banned = execution.state.is_banned(instance.value.process_instance_key);
    let Some(task) = execution.state.user_task(key) else { return Ok(false) };
    let (element, event) = (task.value.element_instance_key, ListenerEventType::Canceling);
    let configuration = task.transition.as_ref().and_then(|transition| transition.listeners);
    if !is_banned && listener::has_any(execution, element, event, configuration)? {
        listener::go_on(execution, key)?;
        return Ok(true);
    }
    end_cancellation(execution, key);
    Ok(false)
}

/// The task ends with its element, whatever listens.
pub(crate) fn cancel_at_once(execution: &mut Execution<'_>, instance: &ElementInstance) {
    if let Some(key) = begin_cancellation(execution, instance) {
        end_cancellation(execution, key);
    }
}

/// CANCELING, unless that has begun; the task that ends.
fn begin_cancellation(execution: &mut Execution<'_>, instance: &ElementInstance) -> Option<Key> {
    // Most elements have none, and nothing is looked up for them.
    if instance.user_task.is_none() {
        return None;
    }
    let task = execution.state.user_task(instance.user_task)?;
    if task.state != UserTaskState::Canceling {
        listener::give_up(execution, &task);
        emit(execution, UserTaskIntent::Canceling, task.value.clone());
    }
    Some(instance.user_task)
}

fn end_cancellation(execution: &mut Execution<'_>, key: Key) {
    let Some(task) = execution.state.user_task(key) else { return };
    // Listeners may have corrected it before the end came from elsewhere.
    let corrected = match &task.transition {
        Some(transition) => UserTaskValue {
            changed_attributes: listener::changed_attributes(&task.value, &transition.value),
            ..transition.value.clone()
        },
        None => task.value.clone(),
    };
    emit(execution, UserTaskIntent::Canceled, corrected);
}

/// Gives an attribute the value that is wanted. Whether it has another one now.
fn set_attribute(task: &mut UserTaskValue, wanted: &UserTaskValue, attribute: &str) -> bool {
    fn set<T: Clone + PartialEq>(attribute: &mut T, wanted: &T) -> bool {
        let is_other = attribute != wanted;
        if is_other {
            attribute.clone_from(wanted);
        }
        is_other
    }
    match attribute {
        ASSIGNEE => set(&mut task.assignee, &wanted.assignee),
        "candidateGroupsList" => set(&mut task.candidate_groups_list, &wanted.candidate_groups_list),
        "candidateUsersList" => set(&mut task.candidate_users_list, &wanted.candidate_users_list),
        "dueDate" => set(&mut task.due_date, &wanted.due_date),
        "followUpDate" => set(&mut task.follow_up_date, &wanted.follow_up_date),
        "priority" => set(&mut task.priority, &wanted.priority),
        // As on the reference engine, what a task does not have is passed over.
        _ => false,
    }
}

/// What is wrong with the priority or the dates of a task, if anything is.
fn check_attributes(task: &UserTaskValue) -> Result<(), String> {
    if !(0..=PRIORITY_MAX).contains(&task.priority) {
        return Err(format!("its priority must be from 0 to {PRIORITY_MAX}, and not '{}'", task.priority));
    }
    for (name, date) in [("due date", &task.due_date), ("follow-up date", &task.follow_up_date)] {
        if !date.is_empty() && timer::date_text(date).is_none() {
            return Err(format!(
                "its {name} must be a date-time with offset, as in 2030-01-31T09:00:00Z, and not '{date}'"
            ));
        }
    }
    Ok(())
}

/// Why the attributes of a task are too long, if they are: each of them, or all together.
pub(crate) fn check_size(execution: &Execution<'_>, value: &UserTaskValue) -> Result<(), String> {
    let name_bytes_max = execution.limits.name_bytes_max;
    let names = [&value.assignee, &value.due_date, &value.follow_up_date, &value.external_form_reference];
    let mut names = names.into_iter().chain(&value.candidate_groups_list).chain(&value.candidate_users_list);
    if let Some(name) = names.find(|name| name.len() > name_bytes_max) {
        let start = start_of(name);
        return Err(format!(
            "the assignee, each candidate, the dates and the form reference of a user task have at most {name_bytes_max} bytes, \
             but '{start}…' has {}",
            name.len()
        ));
    }
    let bytes = user_task_bytes(value);
    let bytes_max = execution.limits.job_bytes_max;
    if bytes > bytes_max {
        return Err(format!(
            "the attributes and variables of a user task have at most {bytes_max} bytes together, but these have {bytes}; name \
             groups rather than all of their members"
        ));
    }
    Ok(())
}
