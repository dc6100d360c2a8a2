//! Events of jobs.

use std::sync::Arc;

use protocol::{JobAmount, JobBatchValue, JobIntent, JobKind, JobOwner, JobValue, Key, Text, Timestamp};

use super::change::{broken, change_element, not_an_event};
use crate::state::{JobRow, JobState, NO_CATCH_EVENT_FOUND, State};

pub(super) fn apply(state: &mut State, key: Key, intent: JobIntent, value: &Arc<JobValue>) {
    match intent {
        JobIntent::Created => {
            let row = JobRow {
                state: JobState::Activatable,
                value: value.clone(),
                incident: Key::NONE,
                created: state.counters.timestamp,
                changed: None,
                last_event: None,
                owner: None,
            };
            state.tables.jobs.insert_new(key.raw(), row);
            state.tables.available_jobs.insert(queue_of(value), key.raw(), ());
            change_element(state, value.element_instance_key.raw(), |instance| instance.job = key);
        }
        JobIntent::Completed => {
            remove(state, key);
            change_element(state, value.element_instance_key.raw(), |instance| {
                instance.job = Key::NONE;
                match value.job_kind {
                    JobKind::BpmnElement => {
                        instance.result = (!value.variables.is_empty()).then(|| value.variables.clone());
                    }
                    JobKind::ExecutionListener => instance.listeners_done += 1,
                    // Their variables are set at once: the element goes on.
                    JobKind::AdHocSubProcess | JobKind::TaskListener => {}
                }
            });
            if value.job_kind == JobKind::TaskListener {
                super::user_task::listener_done(state, value.element_instance_key);
            }
        }
        JobIntent::Canceled => {
            remove(state, key);
            change_element(state, value.element_instance_key.raw(), |instance| instance.job = Key::NONE);
        }
        JobIntent::Failed if value.retries > 0 && value.recurring_time >= 0 => {
            change(state, key, JobState::Failed, value);
            state.tables.job_backoffs.insert((), (value.recurring_time, key.raw()), ());
        }
        JobIntent::Failed if value.retries <= 0 => change(state, key, JobState::Failed, value),
        JobIntent::Failed | JobIntent::TimedOut | JobIntent::RecurredAfterBackoff => {
            change(state, key, JobState::Activatable, value);
        }
        JobIntent::Yielded => {
            super::job_owner::given_back(state, key);
            change(state, key, JobState::Activatable, value);
        }
        JobIntent::ErrorThrown => error_thrown(state, key, value),
        JobIntent::RetriesUpdated | JobIntent::TimeoutUpdated | JobIntent::Updated | JobIntent::Migrated => {
            updated(state, key, value)
        }
        JobIntent::Complete
        | JobIntent::TimeOut
        | JobIntent::Fail
        | JobIntent::UpdateRetries
        | JobIntent::Cancel
        | JobIntent::ThrowError
        | JobIntent::RecurAfterBackoff
        | JobIntent::Yield
        | JobIntent::UpdateTimeout
        | JobIntent::Update => not_an_event(state, intent.name()),
    }
    note_event(state, key, intent);
}

/// Keeps of the events that say how a job is the last one: searches show it.
fn note_event(state: &mut State, key: Key, intent: JobIntent) {
    let says_how_it_is = matches!(
        intent,
        JobIntent::Failed
            | JobIntent::TimedOut
            | JobIntent::RetriesUpdated
            | JobIntent::TimeoutUpdated
            | JobIntent::ErrorThrown
            | JobIntent::Migrated
    );
    if says_how_it_is {
        // It is gone when its error was caught.
        state.tables.jobs.update(&key.raw(), |row| row.last_event = Some(intent));
    }
    // Its error stays what searches show, but it has not ended with it.
    if matches!(intent, JobIntent::RecurredAfterBackoff | JobIntent::Yielded)
        && state.job(key).is_some_and(|row| row.last_event == Some(JobIntent::ErrorThrown))
    {
        state.tables.jobs.update(&key.raw(), |row| row.last_event = Some(JobIntent::RecurredAfterBackoff));
    }
}

/// An error that was caught ends the job; without that, it waits for its incident to be resolved.
fn error_thrown(state: &mut State, key: Key, value: &Arc<JobValue>) {
    if value.element_id != *NO_CATCH_EVENT_FOUND {
        remove(state, key);
        change_element(state, value.element_instance_key.raw(), |instance| instance.job = Key::NONE);
        return;
    }
    let Some(row) = state.job(key) else { return not_there(state, key) };
    let value = JobValue { element_id: row.value.element_id.clone(), ..(**value).clone() };
    change(state, key, JobState::ErrorThrown, &Arc::new(value));
}

/// Jobs were handed to a worker.
pub(super) fn apply_batch(state: &mut State, value: &JobBatchValue) {
    for (place, (key, job)) in value.job_keys.iter().zip(&value.jobs).enumerate() {
        // The record shows the job with its variables; the job itself does not keep them.
        let mut kept = job.clone();
        kept.variables = Text::default();
        let owner = value.owner.map(|first| first.after(place));
        activate(state, *key, &Arc::new(kept), owner);
    }
    if let Some(JobOwner::Stream(stream, first)) = value.owner {
        let used = value.jobs.iter().map(JobAmount::of).fold(JobAmount::default(), JobAmount::plus);
        super::job_stream::use_credit(state, stream, first, &value.job_type, used);
    }
}

pub(super) fn queue_of(value: &JobValue) -> (Arc<str>, Arc<str>) {
    (value.tenant_id.shared().clone(), value.job_type.shared().clone())
}

/// Takes the job out of the index that its present state has it in.
fn leave_index(state: &mut State, key: Key, row: &JobRow) {
    match row.state {
        JobState::Activatable => state.tables.available_jobs.remove(&queue_of(&row.value), &key.raw()),
        JobState::Activated => state.tables.job_deadlines.remove(&(), &(row.value.deadline, key.raw())),
        JobState::Failed if row.value.recurring_time >= 0 => {
            state.tables.job_backoffs.remove(&(), &(row.value.recurring_time, key.raw()));
        }
        JobState::Failed | JobState::ErrorThrown => {}
    }
}

fn remove(state: &mut State, key: Key) {
    let Some(row) = state.job(key) else { return not_there(state, key) };
    leave_index(state, key, &row);
    state.tables.jobs.delete(&key.raw());
}

fn not_there(state: &mut State, key: Key) {
    broken(state, format!("job {key} is not there"));
}

fn change(state: &mut State, key: Key, to: JobState, value: &Arc<JobValue>) {
    let changed = Some(state.counters.timestamp);
    move_to(state, key, to, value, changed, None);
}

fn activate(state: &mut State, key: Key, value: &Arc<JobValue>, owner: Option<JobOwner>) {
    let changed = Some(state.counters.timestamp);
    move_to(state, key, JobState::Activated, value, changed, owner);
    if let Some(owner) = owner {
        super::job_owner::note(state, owner, key);
    }
}

/// An incident stops the job, or lets it go on. That is no event of the job, which keeps the time of its last one: an event follows
/// a resolution, and has its own time.
pub(super) fn change_by_incident(state: &mut State, key: Key, to: JobState) {
    let Some(row) = state.job(key) else { return not_there(state, key) };
    let changed = row.changed;
    let value = row.value.clone();
    drop(row);
    move_to(state, key, to, &value, changed, None);
}

/// Moves the job to another state, and so from one index to another.
fn move_to(
    state: &mut State,
    key: Key,
    to: JobState,
    value: &Arc<JobValue>,
    changed: Option<Timestamp>,
    owner: Option<JobOwner>,
) {
    let Some(row) = state.job(key) else { return not_there(state, key) };
    leave_index(state, key, &row);
    drop(row);
    match to {
        JobState::Activatable => state.tables.available_jobs.insert(queue_of(value), key.raw(), ()),
        JobState::Activated => state.tables.job_deadlines.insert((), (value.deadline, key.raw()), ()),
        JobState::Failed | JobState::ErrorThrown => {}
    }
    state.tables.jobs.update(&key.raw(), |row| {
        row.state = to;
        row.owner = owner;
        row.value = value.clone();
        row.changed = changed;
    });
}

/// New retries or a new deadline; the state stays.
fn updated(state: &mut State, key: Key, value: &Arc<JobValue>) {
    let Some(row) = state.job(key) else { return not_there(state, key) };
    if row.state == JobState::Activated && row.value.deadline != value.deadline {
        state.tables.job_deadlines.remove(&(), &(row.value.deadline, key.raw()));
        state.tables.job_deadlines.insert((), (value.deadline, key.raw()), ());
    }
    drop(row);
    let changed = Some(state.counters.timestamp);
    state.tables.jobs.update(&key.raw(), |row| {
        row.value = value.clone();
        row.changed = changed;
    });
}
