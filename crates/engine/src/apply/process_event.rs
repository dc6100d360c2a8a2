//! Events of triggers, and of the items of multi-instance bodies.

use protocol::{Key, MultiInstanceIntent, MultiInstanceValue, ProcessEventIntent, ProcessEventValue};

use super::change::{broken, change_element};
use super::usage;
use crate::state::{EventGate, EventTriggerRow, State, Usage, item_bytes};

pub(super) fn apply(state: &mut State, key: Key, intent: ProcessEventIntent, value: &ProcessEventValue) {
    // Before a process begins, its trigger waits for it under its own key.
    let is_start = value.scope_key == value.process_definition_key;
    let scope = if is_start { value.process_instance_key } else { value.scope_key };
    match intent {
        ProcessEventIntent::Triggering if is_start => insert(state, scope, key, value),
        ProcessEventIntent::Triggering => triggering(state, scope, key, value),
        ProcessEventIntent::Triggered => state.tables.event_triggers.delete(&(scope.raw(), key.raw())),
    }
}

fn insert(state: &mut State, scope: Key, key: Key, value: &ProcessEventValue) {
    let row =
        EventTriggerRow { target_element_id: value.target_element_id.clone(), variables: value.variables.clone() };
    state.tables.event_triggers.insert_new((scope.raw(), key.raw()), row);
}

fn triggering(state: &mut State, scope: Key, key: Key, value: &ProcessEventValue) {
    let Some(instance) = state.element_instance(scope) else {
        return broken(state, format!("element instance {scope} is not there"));
    };
    let Some(process) = state.process(value.process_definition_key) else {
        return broken(state, format!("definition {} cannot be read", value.process_definition_key));
    };
    let Some(event) = process.find_event(&value.target_element_id) else {
        return broken(state, format!("the process has no event '{}'", value.target_element_id));
    };
    let own = instance.value.element_id == value.target_element_id;
    let interrupting_event_sub_process = process.event_sub_process_of(event).filter(|_| process.is_interrupting(event));
    let gate = match process.element(event).behavior {
        bpmn::model::Behavior::BoundaryEvent { .. } if process.is_interrupting(event) => EventGate::Closed,
        _ if process.is_interrupting(event) => EventGate::BoundaryOnly,
        _ => EventGate::Open,
    };
    change_element(state, scope.raw(), |instance| {
        if gate != EventGate::Open && instance.gate != EventGate::Closed {
            instance.gate = gate;
        }
        if let Some(event_sub_process) = interrupting_event_sub_process {
            instance.interrupted_by = Some((&process.element(event_sub_process).id).into());
        }
        if own {
            // The instance waits for this event itself; what it brings is its result.
            instance.result = (!value.variables.is_empty()).then(|| value.variables.clone());
        } else {
            instance.has_triggers = true;
        }
    });
    if !own {
        insert(state, scope, key, value);
    }
}

pub(super) fn apply_loop(state: &mut State, key: Key, intent: MultiInstanceIntent, value: &MultiInstanceValue) {
    match intent {
        MultiInstanceIntent::InputCollectionEvaluated => {
            evaluated(state, key, value);
        }
        MultiInstanceIntent::OutputElementEvaluated => {
            output_evaluated(state, key, value);
        }
        MultiInstanceIntent::OutputCollectionWritten => {
            collection_written(state, key);
        }
    }
}

/// A result that waits for the end: at the place of its item, or behind all others if it is of an ad-hoc sub-process.
fn output_evaluated(state: &mut State, key: Key, value: &MultiInstanceValue) {
    let Some(inner) = state.element_instance(key) else {
        return broken(state, format!("element instance {key} is not there"));
    };
    let Some(holder) = state.element_instance(inner.value.flow_scope_key) else {
        return broken(state, format!("element instance {} is not there", inner.value.flow_scope_key));
    };
    let place = if inner.is_inner_instance() { inner.loop_counter } else { holder.outputs + 1 };
    let output = (inner.value.flow_scope_key.raw(), place);
    // A result is given again when what follows it was an incident.
    let before = state.tables.loop_outputs.get(&output).map(|before| before.len() as u64);
    let bytes = value.output_element.len() as u64;
    change_element(state, inner.value.flow_scope_key.raw(), |holder| {
        holder.outputs += u32::from(before.is_none());
        holder.output_bytes = holder.output_bytes.saturating_sub(before.unwrap_or(0)).saturating_add(bytes);
    });
    usage::change(state, inner.value.process_instance_key, |usage| {
        usage.take(Usage { living: 0, bytes: before.unwrap_or(0) });
        usage.add(Usage { living: 0, bytes });
    });
    state.tables.loop_outputs.put(output, value.output_element.shared().clone());
}

/// The collection has the results that waited: they wait no more.
fn collection_written(state: &mut State, key: Key) {
    let Some(holder) = state.element_instance(key) else {
        return broken(state, format!("element instance {key} is not there"));
    };
    state.tables.loop_outputs.remove_prefix(&key.raw());
    change_element(state, key.raw(), |holder| {
        holder.outputs = 0;
        holder.output_bytes = 0;
    });
    usage::take(state, holder.value.process_instance_key, Usage { living: 0, bytes: holder.output_bytes });
}

/// The items of a loop. After an incident they are evaluated again, and there may be fewer of them.
fn evaluated(state: &mut State, key: Key, value: &MultiInstanceValue) {
    let Some(body) = state.element_instance(key) else {
        return broken(state, format!("element instance {key} is not there"));
    };
    let count = u32::try_from(value.input_collection.len()).unwrap_or(u32::MAX);
    let went = if body.items > 0 { remove_items(state, key.raw()) } else { Usage::default() };
    let mut came = Usage { living: u64::from(count), bytes: 0 };
    for (counter, item) in (1..=count).zip(&value.input_collection) {
        came.bytes += item_bytes(item);
        state.tables.loop_items.put((key.raw(), counter), item.shared().clone());
    }
    change_element(state, key.raw(), |body| body.items = count);
    usage::change(state, body.value.process_instance_key, |usage| {
        usage.take(went);
        usage.add(came);
    });
}

/// Takes the items of a loop away; returns what they took.
pub(super) fn remove_items(state: &mut State, body: i64) -> Usage {
    let mut went = Usage::default();
    let items: Vec<(i64, u32)> = state
        .tables
        .loop_items
        .prefix(&body)
        .map(|(counter, item)| {
            went.add(Usage { living: 1, bytes: item_bytes(&item) });
            counter
        })
        .collect();
    for item in items {
        state.tables.loop_items.delete(&item);
    }
    went
}
