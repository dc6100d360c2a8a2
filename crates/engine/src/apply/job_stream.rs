//! Events of job streams.

use std::sync::Arc;

use protocol::{JobAmount, JobStreamIntent, JobStreamValue, StreamId, Text};

use super::change::{broken, count_down, not_an_event};
use crate::state::{JobStreamRow, ServedStream, State};

pub(super) fn apply(state: &mut State, intent: JobStreamIntent, value: &JobStreamValue) {
    let id = (value.stream.node, value.stream.number);
    match intent {
        JobStreamIntent::Added => {
            for entry in type_entries(value) {
                state.tables.job_streams_by_type.insert_new(entry, ());
            }
            state.tables.job_streams.insert_new(id, JobStreamRow { value: value.clone() });
            state.counters.job_streams += 1;
        }
        JobStreamIntent::Removed => match state.tables.job_streams.get(&id) {
            Some(row) => remove(state, &row.value),
            None => not_there(state, value.stream),
        },
        JobStreamIntent::Granted => {
            if !state.tables.job_streams.update(&id, |row| row.value.granted = value.granted) {
                not_there(state, value.stream);
            }
        }
        JobStreamIntent::Cleared => {
            let all: Vec<_> = state.tables.job_streams.iter().map(|(_, row)| row).collect();
            for row in all {
                remove(state, &row.value);
            }
        }
        JobStreamIntent::Add | JobStreamIntent::Remove | JobStreamIntent::Grant | JobStreamIntent::Clear => {
            not_an_event(state, intent.name());
        }
    }
}

fn not_there(state: &mut State, stream: StreamId) {
    broken(state, format!("job stream {stream:?} is not there"));
}

fn remove(state: &mut State, value: &JobStreamValue) {
    let id = (value.stream.node, value.stream.number);
    if !state.tables.job_streams.contains(&id) {
        return not_there(state, value.stream);
    }
    for entry in type_entries(value) {
        state.tables.job_streams_by_type.delete(&entry);
    }
    state.tables.job_streams.delete(&id);
    count_down(state, "job streams", 1, |counters| &mut counters.job_streams);
    for tenant in &value.tenant_ids {
        let queue = (tenant.shared().clone(), value.job_type.shared().clone());
        if state.tables.served_streams.get(&queue).is_some_and(|served| served.stream == value.stream) {
            state.tables.served_streams.delete(&queue);
        }
    }
}

fn type_entries(value: &JobStreamValue) -> Vec<(Arc<str>, Arc<str>, u32, u64)> {
    let mut type_entries: Vec<_> = value
        .tenant_ids
        .iter()
        .map(|tenant| {
            (tenant.shared().clone(), value.job_type.shared().clone(), value.stream.node, value.stream.number)
        })
        .collect();
    type_entries.sort();
    type_entries.dedup();
    type_entries
}

/// Pushed jobs take credit; the stream goes to the end of the turn.
pub(super) fn use_credit(state: &mut State, stream: StreamId, job_type: &Text, used: JobAmount) {
    let mut tenants = Vec::new();
    let mut is_covered = false;
    state.tables.job_streams.update(&(stream.node, stream.number), |row| {
        let credit = row.value.granted.minus(row.value.used);
        is_covered = row.value.has_credit() && used.jobs <= credit.jobs;
        row.value.used = row.value.used.plus(used);
        tenants.clone_from(&row.value.tenant_ids);
    });
    if !is_covered {
        broken(state, format!("job stream {stream:?} is not there, or has no credit for {} jobs", used.jobs));
    }
    for tenant in tenants {
        let queue = (tenant.shared().clone(), job_type.shared().clone());
        state.tables.served_streams.put(queue, ServedStream { stream });
    }
}
