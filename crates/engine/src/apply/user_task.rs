//! Events of user tasks.

use protocol::{Key, Text, UserTaskIntent, UserTaskValue, VariableDocumentIntent, VariableDocumentValue};

use super::change::{broken, change_element, not_an_event};
use super::global_listener;
use crate::state::{State, UserTaskRow, UserTaskState, UserTaskTransition, VariableUpdate};

/// The states that a change has which listeners can run in.
const CHANGING: [UserTaskState; 5] = [
    UserTaskState::Creating,
    UserTaskState::Assigning,
    UserTaskState::Claiming,
    UserTaskState::Updating,
    UserTaskState::Completing,
];

pub(super) fn apply(state: &mut State, key: Key, intent: UserTaskIntent, value: &UserTaskValue) {
    match intent {
        UserTaskIntent::Creating => create(state, key, value),
        UserTaskIntent::Created => settle(state, key, &[UserTaskState::Creating], value),
        UserTaskIntent::Assigning => begin(state, key, UserTaskState::Assigning, value),
        UserTaskIntent::Claiming => begin(state, key, UserTaskState::Claiming, value),
        UserTaskIntent::Assigned => settle(state, key, &[UserTaskState::Assigning, UserTaskState::Claiming], value),
        UserTaskIntent::AssignmentDenied => {
            settle(state, key, &[UserTaskState::Assigning, UserTaskState::Claiming], value)
        }
        UserTaskIntent::Updating => begin(state, key, UserTaskState::Updating, value),
        UserTaskIntent::Updated | UserTaskIntent::UpdateDenied => settle(state, key, &[UserTaskState::Updating], value),
        UserTaskIntent::Corrected => correct(state, key, value),
        UserTaskIntent::Migrated => migrate(state, key, value),
        UserTaskIntent::Completing => begin(state, key, UserTaskState::Completing, value),
        UserTaskIntent::CompletionDenied => settle(state, key, &[UserTaskState::Completing], value),
        UserTaskIntent::Completed => {
            remove(state, key, UserTaskState::Completing);
            change_element(state, value.element_instance_key.raw(), |instance| {
                instance.user_task = Key::NONE;
                instance.result = (!value.variables.is_empty()).then(|| value.variables.clone());
            });
        }
        UserTaskIntent::Canceling => cancel(state, key, value),
        UserTaskIntent::Canceled => {
            remove(state, key, UserTaskState::Canceling);
            change_element(state, value.element_instance_key.raw(), |instance| instance.user_task = Key::NONE);
        }
        UserTaskIntent::Create
        | UserTaskIntent::Complete
        | UserTaskIntent::Cancel
        | UserTaskIntent::Assign
        | UserTaskIntent::Claim
        | UserTaskIntent::Update
        | UserTaskIntent::CompleteTaskListener
        | UserTaskIntent::DenyTaskListener => not_an_event(state, intent.name()),
    }
}

/// What happens to the variables that a change of a user task brings.
pub(super) fn apply_variables(
    state: &mut State,
    key: Key,
    intent: VariableDocumentIntent,
    value: &VariableDocumentValue,
) {
    let Some(task) = state.element_instance(value.scope_key).map(|instance| instance.user_task) else { return };
    if task.is_none() {
        return;
    }
    let update =
        (intent == VariableDocumentIntent::Updating).then(|| Box::new(VariableUpdate { key, value: value.clone() }));
    state.tables.user_tasks.update(&task.raw(), |task| task.variable_update = update);
}

/// The job of a listener is done.
pub(super) fn listener_done(state: &mut State, element_instance: Key) {
    change_transition(state, element_instance, |transition| transition.listeners_done += 1);
}

/// The change stops with an incident; all of its listeners run again when that is resolved.
pub(super) fn restart_listeners(state: &mut State, element_instance: Key) {
    change_transition(state, element_instance, |transition| transition.listeners_done = 0);
}

fn change_transition(state: &mut State, element_instance: Key, change: impl FnOnce(&mut UserTaskTransition)) {
    let task = state.element_instance(element_instance).map_or(Key::NONE, |instance| instance.user_task);
    if task.is_some() {
        state.tables.user_tasks.update(&task.raw(), |task| {
            if let Some(transition) = &mut task.transition {
                change(transition);
            }
        });
    }
}

/// Nobody has it before it is assigned.
fn create(state: &mut State, key: Key, value: &UserTaskValue) {
    let listeners = global_listener::pin(state);
    let transition = UserTaskTransition { initial_assignee: value.assignee.clone(), listeners, ..transition_to(value) };
    let row = UserTaskRow {
        state: UserTaskState::Creating,
        value: UserTaskValue { assignee: Text::default(), ..kept(value) },
        transition: Some(Box::new(transition)),
        variable_update: None,
    };
    state.tables.user_tasks.insert_new(key.raw(), row);
    change_element(state, value.element_instance_key.raw(), |instance| instance.user_task = key);
}

fn transition_to(value: &UserTaskValue) -> UserTaskTransition {
    UserTaskTransition {
        value: UserTaskValue { awaiting: None, ..value.clone() },
        initial_assignee: Text::default(),
        awaiting: value.awaiting,
        listeners_done: 0,
        listeners: None,
    }
}

/// The record also says what was done and what came with it; the task does not keep that.
fn kept(value: &UserTaskValue) -> UserTaskValue {
    UserTaskValue {
        changed_attributes: Vec::new(),
        action: Text::default(),
        variables: Text::default(),
        denied_reason: Text::default(),
        awaiting: None,
        ..value.clone()
    }
}

/// The state of a task, which must be one of these.
fn check(state: &mut State, key: Key, expected: &[UserTaskState]) -> bool {
    let found = state.user_task(key).map(|task| task.state);
    let fits = found.is_some_and(|found| expected.contains(&found));
    if !fits {
        let found = found.map_or("not there", UserTaskState::name);
        broken(state, format!("user task {key} is {found}"));
    }
    fits
}

/// A transition of a task that rests begins.
fn begin(state: &mut State, key: Key, to: UserTaskState, value: &UserTaskValue) {
    if check(state, key, &[UserTaskState::Created]) {
        let listeners = global_listener::pin(state);
        state.tables.user_tasks.update(&key.raw(), |task| {
            task.state = to;
            task.transition = Some(Box::new(UserTaskTransition { listeners, ..transition_to(value) }));
        });
    }
}

/// The task is to end, whatever it is about to become.
fn cancel(state: &mut State, key: Key, value: &UserTaskValue) {
    if check(state, key, &[&CHANGING[..], &[UserTaskState::Created]].concat()) {
        unpin(state, key);
        let listeners = global_listener::pin(state);
        state.tables.user_tasks.update(&key.raw(), |task| {
            task.state = UserTaskState::Canceling;
            task.transition = Some(Box::new(UserTaskTransition { listeners, ..transition_to(value) }));
            task.variable_update = None;
        });
    }
}

/// A listener has corrected what the task is to be.
fn correct(state: &mut State, key: Key, value: &UserTaskValue) {
    if check(state, key, &[&CHANGING[..], &[UserTaskState::Canceling]].concat()) {
        state.tables.user_tasks.update(&key.raw(), |task| {
            if let Some(transition) = &mut task.transition {
                let changed_attributes = std::mem::take(&mut transition.value.changed_attributes);
                transition.value = UserTaskValue { changed_attributes, ..value.clone() };
            }
        });
    }
}

/// The task belongs to another element now, and so does what it is to be.
fn migrate(state: &mut State, key: Key, value: &UserTaskValue) {
    let migrated = state.tables.user_tasks.update(&key.raw(), |task| {
        task.value = kept(value);
        if let Some(transition) = &mut task.transition {
            let of = &mut transition.value;
            of.bpmn_process_id = value.bpmn_process_id.clone();
            of.process_definition_version = value.process_definition_version;
            of.process_definition_key = value.process_definition_key;
            of.element_id = value.element_id.clone();
        }
    });
    if !migrated {
        broken(state, format!("user task {key} is not there"));
    }
}

/// The task rests again, as it is now.
fn settle(state: &mut State, key: Key, from: &[UserTaskState], value: &UserTaskValue) {
    if check(state, key, from) {
        unpin(state, key);
        let value = kept(value);
        state.tables.user_tasks.update(&key.raw(), |task| {
            task.state = UserTaskState::Created;
            task.value = value;
            task.transition = None;
        });
    }
}

fn remove(state: &mut State, key: Key, from: UserTaskState) {
    if check(state, key, &[from]) {
        unpin(state, key);
        state.tables.user_tasks.delete(&key.raw());
    }
}

/// The change that was under way, if one was, needs its global listeners no more.
fn unpin(state: &mut State, key: Key) {
    let pinned = state.user_task(key).and_then(|task| task.transition.as_ref()?.listeners);
    global_listener::unpin(state, pinned);
}
