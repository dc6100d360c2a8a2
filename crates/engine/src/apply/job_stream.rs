//! Events of job streams.

use std::sync::Arc;

use protocol::{JobStreamIntent, JobStreamValue, StreamId, Text};

use super::{broken, count_down, not_an_event};
use crate::state::{JobStreamRow, ServedStream, State};

pub(super) fn apply(state: &mut State, intent: JobStreamIntent, value: &JobStreamValue) {
    let id = (value.stream.node, value.stream.number);
    match intent {
        JobStreamIntent::Added => {
            for place in places(value) {
                state.tables.job_streams_by_type.insert_new(place, ());
            }
            state.tables.job_streams.insert_new(id, JobStreamRow { value: value.clone() });
            state.counters.job_streams += 1;
        }
        JobStreamIntent::Removed => remove(state, value),
        JobStreamIntent::Granted => {
            let streams = &mut state.tables.job_streams;
            if !streams.update(&id, |row| row.value.credit = row.value.credit.saturating_add(value.credit)) {
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
    for place in places(value) {
        state.tables.job_streams_by_type.delete(&place);
    }
    state.tables.job_streams.delete(&id);
    count_down(state, "job streams", |counters| &mut counters.job_streams);
    for tenant in &value.tenant_ids {
        let queue = (tenant.shared().clone(), value.job_type.shared().clone());
        if state.tables.served_streams.get(&queue).is_some_and(|served| served.stream == value.stream) {
            state.tables.served_streams.delete(&queue);
        }
    }
}

fn places(value: &JobStreamValue) -> Vec<(Arc<str>, Arc<str>, u32, u64)> {
    let mut places: Vec<_> = value
        .tenant_ids
        .iter()
        .map(|tenant| {
            (tenant.shared().clone(), value.job_type.shared().clone(), value.stream.node, value.stream.number)
        })
        .collect();
    places.sort();
    places.dedup();
    places
}

/// Every pushed job takes one credit; the stream goes to the end of the turn.
pub(super) fn use_credit(state: &mut State, stream: StreamId, job_type: &Text, used: u32) {
    let mut tenants = Vec::new();
    let mut is_covered = false;
    state.tables.job_streams.update(&(stream.node, stream.number), |row| {
        is_covered = used <= row.value.credit;
        row.value.credit = row.value.credit.saturating_sub(used);
        tenants.clone_from(&row.value.tenant_ids);
    });
    if !is_covered {
        broken(state, format!("job stream {stream:?} is not there, or has no credit for {used} jobs"));
    }
    for tenant in tenants {
        let queue = (tenant.shared().clone(), job_type.shared().clone());
        state.tables.served_streams.put(queue, ServedStream { stream });
    }
}
