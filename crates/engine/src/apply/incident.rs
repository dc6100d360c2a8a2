//! Events of incidents.

use protocol::{IncidentIntent, IncidentValue, Key};

use super::job;
use crate::state::{IncidentRow, JobState, Lifecycle, State};

pub(super) fn apply(state: &mut State, key: Key, intent: IncidentIntent, value: &IncidentValue) {
    match intent {
        IncidentIntent::Created => created(state, key, value),
        IncidentIntent::Resolved => resolved(state, key, value),
        IncidentIntent::Migrated => {
            state.tables.incidents.update(&key.raw(), |row| row.value = value.clone());
        }
        IncidentIntent::Resolve => {}
    }
}

fn created(state: &mut State, key: Key, value: &IncidentValue) {
    state.tables.incidents.insert_new(key.raw(), IncidentRow { value: value.clone() });
    state.counters.incidents += 1;
    if value.job_key.is_some() {
        // A job with an incident is nobody's until the incident is resolved.
        if let Some(row) = state.job(value.job_key)
            && row.state == JobState::Activatable
        {
            job::change(state, value.job_key, JobState::Failed, &row.value.clone());
        }
        state.tables.jobs.update(&value.job_key.raw(), |row| row.incident = key);
    } else {
        set_element_incident(state, value.element_instance_key, key);
        forget_result(state, value.element_instance_key);
    }
}

/// What stops while it completes has taken the result of its work into variables: they may change until it goes on.
fn forget_result(state: &mut State, element_instance: Key) {
    let instance = state.element_instance(element_instance);
    if instance.is_some_and(|instance| instance.lifecycle == Lifecycle::Completing && instance.result.is_some()) {
        state.tables.element_instances.update(&element_instance.raw(), |instance| instance.result = None);
    }
}

fn resolved(state: &mut State, key: Key, value: &IncidentValue) {
    state.tables.incidents.delete(&key.raw());
    state.counters.incidents -= 1;
    if !value.job_key.is_some() {
        set_element_incident(state, value.element_instance_key, Key::NONE);
        return;
    }
    // When the job was cancelled or completed, it is gone already.
    if let Some(row) = state.job(value.job_key) {
        state.tables.jobs.update(&value.job_key.raw(), |row| row.incident = Key::NONE);
        job::change(state, value.job_key, JobState::Activatable, &row.value.clone());
    }
}

fn set_element_incident(state: &mut State, element_instance: Key, incident: Key) {
    state.tables.element_instances.update(&element_instance.raw(), |instance| instance.incident = incident);
}
