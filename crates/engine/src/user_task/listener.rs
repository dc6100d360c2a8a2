//! Task listeners: jobs that run one after the other while a task changes. When the last one is done the change happens, unless
//! one of them denies it. Who asked for the change is answered then.

use std::sync::Arc;

use bpmn::model::{Behavior, Listener, ListenerEventType};
use feel::json;
use protocol::{
    GlobalListenerValue, JobKind, JobResult, JobResultType, JobValue, Key, Payload, Rejection, Request, Text,
    UserTaskIntent, UserTaskValue, VariableDocumentIntent,
};

use super::{ASSIGNEE, VARIABLES, check_attributes, check_size, emit, set_attribute};
use crate::element::{create_job, job_of, list_text};
use crate::execution::token::Token;
use crate::execution::{Execution, Failure, Outcome};
use crate::global_listener;
use crate::incident;
use crate::job::delivery::{self, JobQueue};
use crate::listener;
use crate::state::{GlobalListenersRow, State, UserTaskRow, UserTaskState, UserTaskTransition};
use crate::variable::document::Entry;

/// What the headers of the engine are called.
const HEADER_PREFIX: &str = "io.camunda.zeebe:";

/// What listeners may correct, by the names in records.
const CORRECTABLE: [&str; 6] =
    [ASSIGNEE, "candidateGroupsList", "candidateUsersList", "dueDate", "followUpDate", "priority"];

/// What is listened to in a state of a task; nothing while it rests.
const fn event_type(state: UserTaskState) -> ListenerEventType {
    match state {
        UserTaskState::Creating => ListenerEventType::Creating,
        UserTaskState::Assigning | UserTaskState::Claiming => ListenerEventType::Assigning,
        UserTaskState::Updating => ListenerEventType::Updating,
        UserTaskState::Completing => ListenerEventType::Completing,
        UserTaskState::Canceling => ListenerEventType::Canceling,
        UserTaskState::Created => ListenerEventType::Unspecified,
    }
}

/// What listens to a change of a user task.
#[derive(Clone, Copy)]
enum TaskListener<'a> {
    OfModel(&'a Listener),
    Global(&'a GlobalListenerValue),
}

/// The listeners to an event in the order in which they run: global ones, those of the model, and global ones that run behind
/// these.
fn listeners<'a>(
    token: &'a Token,
    global: &'a [GlobalListenerValue],
    event: ListenerEventType,
) -> impl Iterator<Item = TaskListener<'a>> {
    let of_model = match &token.element().behavior {
        Behavior::UserTask(task) => &task.listeners[..],
        _ => &[],
    };
    let of_model = of_model.iter().filter(move |listener| listener.event_type == event);
    let before = global_listener::listening(global, event, false).map(TaskListener::Global);
    let after = global_listener::listening(global, event, true).map(TaskListener::Global);
    before.chain(of_model.map(TaskListener::OfModel)).chain(after)
}

/// The global listeners that a change goes by.
fn global_listeners(row: Option<&Arc<GlobalListenersRow>>) -> &[GlobalListenerValue] {
    row.map_or(&[], |row| &row.listeners)
}

/// Whether anything listens to what happens to the task of an element instance, by a configuration of global listeners.
pub(super) fn has_any(
    execution: &Execution<'_>,
    element_instance: Key,
    event: ListenerEventType,
    configuration: Option<Key>,
) -> Outcome<bool> {
    let token = Token::find(execution, element_instance)?;
    let global = execution.state.global_listeners(configuration);
    Ok(token.is_some_and(|token| listeners(&token, global_listeners(global.as_ref()), event).next().is_some()))
}

/// The next listener of the change runs; when there is none any more, the change happens.
pub(super) fn go_on(execution: &mut Execution<'_>, key: Key) -> Outcome {
    let Some(task) = execution.state.user_task(key) else { return Ok(()) };
    let Some(transition) = &task.transition else { return Ok(()) };
    let Some(token) = Token::find(execution, task.value.element_instance_key)? else { return Ok(()) };
    let (done, event) = (transition.listeners_done as usize, event_type(task.state));
    let global = execution.state.global_listeners(transition.listeners);
    let Some(listener) = listeners(&token, global_listeners(global.as_ref()), event).nth(done) else {
        return super::finish(execution, key, transition.awaiting);
    };
    if let Some(queue) = create(execution, &token, (listener, event), &task.value, transition) {
        delivery::deliver(execution, &queue);
    }
    Ok(())
}

/// The first listener to the creation of a task runs; the queue of its job is to be delivered. `None` when it has none.
pub(super) fn begin_creation(execution: &mut Execution<'_>, token: &Token, key: Key) -> Option<Option<JobQueue>> {
    let event = ListenerEventType::Creating;
    let task = execution.state.user_task(key)?;
    let transition = task.transition.as_ref()?;
    let global = execution.state.global_listeners(transition.listeners);
    let listener = listeners(token, global_listeners(global.as_ref()), event).next()?;
    Some(create(execution, token, (listener, event), &task.value, transition))
}

/// The job of a listener; without one when it stops with an incident.
fn create(
    execution: &mut Execution<'_>,
    token: &Token,
    (listener, event): (TaskListener<'_>, ListenerEventType),
    resting: &UserTaskValue,
    transition: &UserTaskTransition,
) -> Option<JobQueue> {
    let job = match listener {
        TaskListener::OfModel(listener) => listener::evaluate(execution, token, JobKind::TaskListener, listener),
        TaskListener::Global(listener) => {
            let job = job_of(token, listener.job_type.clone(), listener.retries, Text::default());
            Ok(JobValue { job_kind: JobKind::TaskListener, job_listener_event_type: event, ..job })
        }
    };
    match job {
        Ok(job) => {
            let custom_headers = headers(resting, transition);
            Some(create_job(execution, JobValue { custom_headers, ..job }))
        }
        Err(problem) => {
            incident::raise_for_element(execution, token, problem);
            None
        }
    }
}

/// The change stopped with an incident that is resolved now. Returns whether there was such a change.
pub(crate) fn resume(execution: &mut Execution<'_>, key: Key) -> Outcome<bool> {
    let waits = execution.state.user_task(key).is_some_and(|task| task.transition.is_some());
    if waits {
        go_on(execution, key)?;
    }
    Ok(waits)
}

/// What listeners learn of the task: the headers of the model, and behind them how the task is to be.
fn headers(resting: &UserTaskValue, transition: &UserTaskTransition) -> Text {
    let value = &transition.value;
    let mut changed = match transition.listeners_done {
        0 => value.changed_attributes.clone(),
        _ => changed_attributes(resting, value),
    };
    changed.sort_unstable();
    let given = |text: &Text| (!text.is_empty()).then(|| text.to_string());
    let list = |names: &[Text]| (!names.is_empty()).then(|| list_text(names));
    let entries = [
        ("userTaskKey", Some(value.user_task_key.to_string())),
        ("action", given(&value.action)),
        ("assignee", given(&value.assignee)),
        ("candidateGroups", list(&value.candidate_groups_list)),
        ("candidateUsers", list(&value.candidate_users_list)),
        ("changedAttributes", list(&changed)),
        ("dueDate", given(&value.due_date)),
        ("followUpDate", given(&value.follow_up_date)),
        ("formKey", value.form_key.is_some().then(|| value.form_key.to_string())),
        ("priority", Some(value.priority.to_string())),
    ];
    let mut headers = value.custom_headers.strip_suffix('}').unwrap_or("{").to_owned();
    for (name, text) in entries {
        let Some(text) = text else { continue };
        if headers.len() > 1 {
            headers.push(',');
        }
        json::write_string(&format!("{HEADER_PREFIX}{name}"), &mut headers);
        headers.push(':');
        json::write_string(&text, &mut headers);
    }
    headers.push('}');
    headers.into()
}

/// In which attributes the two differ, in ascending order.
pub(super) fn changed_attributes(before: &UserTaskValue, after: &UserTaskValue) -> Vec<Text> {
    let brings_variables = !matches!(&*after.variables, "" | "{}");
    let differs = CORRECTABLE.into_iter().filter(|name| differ(before, after, name));
    differs.chain(brings_variables.then_some(VARIABLES)).map(Text::from).collect()
}

fn differ(before: &UserTaskValue, after: &UserTaskValue, attribute: &str) -> bool {
    match attribute {
        ASSIGNEE => before.assignee != after.assignee,
        "candidateGroupsList" => before.candidate_groups_list != after.candidate_groups_list,
        "candidateUsersList" => before.candidate_users_list != after.candidate_users_list,
        "dueDate" => before.due_date != after.due_date,
        "followUpDate" => before.follow_up_date != after.follow_up_date,
        "priority" => before.priority != after.priority,
        _ => false,
    }
}

/// The variables that come with the change of a task are there for its listeners before they are set.
pub(crate) fn variables_of_change(state: &State, element_instance: Key) -> Text {
    let instance = state.element_instance(element_instance);
    let task = instance.and_then(|instance| state.user_task(instance.user_task));
    task.and_then(|task| task.transition.as_ref().map(|transition| transition.value.variables.clone()))
        .unwrap_or_default()
}

/// The task that the job of a listener is about, and what it is to be.
fn task_of(execution: &Execution<'_>, job: &JobValue) -> Option<Arc<UserTaskRow>> {
    let instance = execution.state.element_instance(job.element_instance_key)?;
    execution.state.user_task(instance.user_task)
}

/// Whether the worker of a listener may say this. Refuses before anything changes.
pub(crate) fn check_completion(
    execution: &Execution<'_>,
    key: Key,
    job: &JobValue,
    result: Option<&JobResult>,
    variables: &[Entry],
) -> Outcome {
    let refuse = |but: String| -> Result<(), Failure> {
        let reason = format!("Expected to complete task listener job with key '{key}', but {but}");
        Err(Rejection::invalid_argument(reason).into())
    };
    if !variables.is_empty() {
        return refuse("it has variables, which task listeners cannot set yet; complete it without them".to_owned());
    }
    let Some(result) = result else { return Ok(()) };
    if result.result_type != JobResultType::UserTask {
        return refuse("its result is that of an ad-hoc sub-process; give the result of a user task".to_owned());
    }
    let event_type = job.job_listener_event_type;
    let can_deny = !matches!(event_type, ListenerEventType::Creating | ListenerEventType::Canceling);
    if result.denied && !can_deny {
        return refuse(format!(
            "a denied result is not possible for the event type '{}'; only listeners to ASSIGNING, UPDATING and COMPLETING can \
             deny",
            event_type.name()
        ));
    }
    let Some(corrected) = task_of(execution, job).and_then(|task| corrected(&task, result)) else { return Ok(()) };
    let corrections = &corrected.changed_attributes;
    if corrections.is_empty() {
        return Ok(());
    }
    if result.denied {
        return refuse("it has corrections and a denied result, which would undo them; give one of the two".to_owned());
    }
    if let Some(other) = corrections.iter().find(|name| !CORRECTABLE.contains(&&***name)) {
        let known = CORRECTABLE.join(", ");
        return refuse(format!("the attribute '{other}' of a user task cannot be corrected, only one of [{known}]"));
    }
    let is_assigned = |task: &UserTaskRow| task.transition.as_ref().is_some_and(|of| !of.initial_assignee.is_empty());
    if event_type == ListenerEventType::Creating
        && corrections.iter().any(|name| &**name == ASSIGNEE)
        && task_of(execution, job).is_some_and(|task| is_assigned(&task))
    {
        return refuse(
            "the assignee cannot be corrected on the event 'CREATING' when the model names one; correct it on the event \
             'ASSIGNING'"
                .to_owned(),
        );
    }
    match check_attributes(&corrected).and_then(|()| check_size(execution, &corrected)) {
        Ok(()) => Ok(()),
        Err(reason) => refuse(reason),
    }
}

/// The task as a listener wants it to be; its changed attributes are those that the listener names.
fn corrected(task: &UserTaskRow, result: &JobResult) -> Option<UserTaskValue> {
    let corrections = result.corrections.as_ref()?;
    let mut value = task.transition.as_ref()?.value.clone();
    let wanted = UserTaskValue {
        assignee: corrections.assignee.clone(),
        due_date: corrections.due_date.clone(),
        follow_up_date: corrections.follow_up_date.clone(),
        candidate_users_list: corrections.candidate_users_list.clone(),
        candidate_groups_list: corrections.candidate_groups_list.clone(),
        priority: corrections.priority,
        ..UserTaskValue::default()
    };
    for attribute in &corrections.corrected_attributes {
        set_attribute(&mut value, &wanted, attribute);
    }
    value.changed_attributes.clone_from(&corrections.corrected_attributes);
    Some(value)
}

/// A listener is done: it denies the change, or may correct it, and the next one runs.
pub(crate) fn job_completed(execution: &mut Execution<'_>, job: &JobValue) -> Outcome {
    let Some(task) = task_of(execution, job) else { return Ok(()) };
    let key = task.value.user_task_key;
    let result = job.result.as_deref();
    if let Some(result) = result.filter(|result| result.denied) {
        return deny(execution, &task, &result.denied_reason);
    }
    if let Some((transition, mut corrected)) = task.transition.as_ref().zip(result.and_then(|of| corrected(&task, of)))
    {
        let before = &transition.value;
        let value = corrected.clone();
        corrected.changed_attributes.retain(|name| differ(before, &value, name));
        if !corrected.changed_attributes.is_empty() {
            emit(execution, UserTaskIntent::Corrected, corrected);
        }
    }
    drop(task);
    go_on(execution, key)
}

/// The change does not happen.
fn deny(execution: &mut Execution<'_>, task: &UserTaskRow, reason: &Text) -> Outcome {
    let (intent, asked, what) = match task.state {
        UserTaskState::Assigning | UserTaskState::Claiming => {
            (UserTaskIntent::AssignmentDenied, UserTaskIntent::Assign, "Assignment")
        }
        UserTaskState::Updating => (UserTaskIntent::UpdateDenied, UserTaskIntent::Update, "Update"),
        UserTaskState::Completing => (UserTaskIntent::CompletionDenied, UserTaskIntent::Complete, "Completion"),
        UserTaskState::Creating | UserTaskState::Created | UserTaskState::Canceling => return Ok(()),
    };
    let key = task.value.user_task_key;
    emit(execution, intent, UserTaskValue { denied_reason: reason.clone(), ..task.value.clone() });
    let awaiting = task.transition.as_ref().and_then(|transition| transition.awaiting);
    let update = task.variable_update.as_ref();
    if let Some(update) = update {
        let payload = Payload::VariableDocument(VariableDocumentIntent::UpdateDenied, Box::new(update.value.clone()));
        execution.emit(update.key, payload);
    }
    let Some(request) = awaiting else { return Ok(()) };
    let by = format!("was denied by a task listener. Reason to deny: '{reason}'");
    match update {
        Some(update) => {
            let scope = update.value.scope_key;
            let rejection =
                Rejection::invalid_state(format!("Update of variables of user task instance with key '{scope}' {by}"));
            let payload = Payload::VariableDocument(VariableDocumentIntent::Update, Box::new(update.value.clone()));
            execution.refuse_request(request, Key::NONE, payload, rejection);
        }
        None => {
            let rejection = Rejection::invalid_state(format!("{what} of user task with key '{key}' {by}"));
            let payload = Payload::UserTask(asked, Box::new(task.value.clone()));
            execution.refuse_request(request, key, payload, rejection);
        }
    }
    Ok(())
}

/// The change is given up, because the task ends.
pub(super) fn give_up(execution: &mut Execution<'_>, task: &UserTaskRow) {
    let Some(request) = task.transition.as_ref().and_then(|transition| transition.awaiting) else { return };
    refuse_as_canceled(execution, task, request);
}

fn refuse_as_canceled(execution: &mut Execution<'_>, task: &UserTaskRow, request: Request) {
    let key = task.value.user_task_key;
    let (intent, action) = match task.state {
        UserTaskState::Completing => (UserTaskIntent::Complete, "complete"),
        UserTaskState::Claiming => (UserTaskIntent::Claim, "claim"),
        UserTaskState::Updating => (UserTaskIntent::Update, "update"),
        _ => (UserTaskIntent::Assign, "assign"),
    };
    let rejection = Rejection::invalid_state(format!(
        "Expected to {action} user task with key '{key}', but it was canceled before its listeners were done"
    ));
    let payload = match &task.variable_update {
        Some(update) => Payload::VariableDocument(VariableDocumentIntent::Update, Box::new(update.value.clone())),
        None => Payload::UserTask(intent, Box::new(task.value.clone())),
    };
    execution.refuse_request(request, key, payload, rejection);
}
