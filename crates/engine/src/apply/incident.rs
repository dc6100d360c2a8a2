//! Events of incidents.

use protocol::{IncidentIntent, IncidentValue, Key};

use super::change::{broken, change_element, count_down, not_an_event};
use super::{job, user_task};
use crate::state::{IncidentRow, JobState, Lifecycle, State};

pub(super) fn apply(state: &mut State, key: Key, intent: IncidentIntent, value: &IncidentValue) {
    match intent {
        IncidentIntent::Created => created(state, key, value),
        IncidentIntent::Resolved => resolved(state, key, value),
        IncidentIntent::Migrated => {
            if !state.tables.incidents.update(&key.raw(), |row| row.value = value.clone()) {
                broken(state, format!("incident {key} is not there"));
            }
        }
        IncidentIntent::Resolve => not_an_event(state, intent.name()),
    }
}

fn created(state: &mut State, key: Key, value: &IncidentValue) {
    let row = IncidentRow { value: value.clone(), created: state.counters.timestamp };
    state.tables.incidents.insert_new(key.raw(), row);
    state.counters.incidents += 1;
    if value.job_key.is_some() {
        let Some(row) = state.job(value.job_key) else {
            return broken(state, format!("job {} is not there", value.job_key));
        };
        // Nobody can activate a job with an incident until the incident is resolved.
        if row.state == JobState::Activatable {
            job::change_by_incident(state, value.job_key, JobState::Failed);
        }
        state.tables.jobs.update(&value.job_key.raw(), |row| row.incident = key);
    } else {
        change_element(state, value.element_instance_key.raw(), |instance| instance.incident = key);
        forget_result(state, value.element_instance_key);
        user_task::restart_listeners(state, value.element_instance_key);
    }
}

/// An element that stops while it completes has already taken the result of its work into variables, which may change
/// until it continues.
fn forget_result(state: &mut State, element_instance: Key) {
    let instance = state.element_instance(element_instance);
    if instance.is_some_and(|instance| instance.lifecycle == Lifecycle::Completing && instance.result.is_some()) {
        state.tables.element_instances.update(&element_instance.raw(), |instance| instance.result = None);
    }
}

fn resolved(state: &mut State, key: Key, value: &IncidentValue) {
    if !state.tables.incidents.contains(&key.raw()) {
        return broken(state, format!("incident {key} is not there"));
    }
    state.tables.incidents.delete(&key.raw());
    count_down(state, "incidents", 1, |counters| &mut counters.incidents);
    if value.job_key.is_none() {
        // The incident of a start or throw event is resolved after its end: the element instance may be gone.
        let element_instance = value.element_instance_key.raw();
        state.tables.element_instances.update(&element_instance, |instance| instance.incident = Key::NONE);
        return;
    }
    // A cancelled or completed job is already gone.
    if state.tables.jobs.update(&value.job_key.raw(), |row| row.incident = Key::NONE) {
        job::change_by_incident(state, value.job_key, JobState::Activatable);
    }
}
