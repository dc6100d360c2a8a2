//! Events of job streams.

use std::sync::Arc;

use protocol::{JobAmount, JobStreamIntent, JobStreamValue, StreamId, Text};

use super::change::{broken, count_down, not_an_event};
use super::job_owner;
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
            Some(row) => {
                job_owner::forget_pushed(state, value.stream, row.value.delivered, value.delivered);
                remove(state, &row.value);
            }
            None => not_there(state, value.stream),
        },
        JobStreamIntent::Granted => granted(state, value),
        JobStreamIntent::Yielded => job_owner::forget_pushed(state, value.stream, value.delivered, value.used.jobs),
        JobStreamIntent::Add | JobStreamIntent::Remove | JobStreamIntent::Grant | JobStreamIntent::Yield => {
            not_an_event(state, intent.name());
        }
    }
}

fn granted(state: &mut State, value: &JobStreamValue) {
    let mut delivered_before = value.delivered;
    let is_there = state.tables.job_streams.update(&(value.stream.node, value.stream.number), |row| {
        delivered_before = std::mem::replace(&mut row.value.delivered, value.delivered);
        row.value.granted = value.granted;
        row.value.used = row.value.used.max(value.used);
    });
    if !is_there {
        return not_there(state, value.stream);
    }
    job_owner::forget_pushed(state, value.stream, delivered_before, value.delivered);
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
pub(super) fn use_credit(state: &mut State, stream: StreamId, first: u64, job_type: &Text, used: JobAmount) {
    let mut tenants = Vec::new();
    let mut is_covered = false;
    state.tables.job_streams.update(&(stream.node, stream.number), |row| {
        let credit = row.value.granted.minus(row.value.used);
        is_covered = row.value.has_credit() && used.jobs <= credit.jobs && first == row.value.used.jobs + 1;
        row.value.used = row.value.used.plus(used);
        tenants.clone_from(&row.value.tenant_ids);
    });
    if !is_covered {
        broken(
            state,
            format!("job stream {stream:?} is not there, or has no credit for {} jobs from push {first} on", used.jobs),
        );
    }
    for tenant in tenants {
        let queue = (tenant.shared().clone(), job_type.shared().clone());
        state.tables.served_streams.put(queue, ServedStream { stream });
    }
}
