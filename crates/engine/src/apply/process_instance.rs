//! Events of element instances and sequence flows.

use std::sync::Arc;

use protocol::{BpmnElementType, Key, ProcessInstanceIntent, ProcessInstanceValue};

use crate::state::{ElementInstance, Lifecycle, State};

pub(super) fn apply(state: &mut State, key: Key, intent: ProcessInstanceIntent, value: &Arc<ProcessInstanceValue>) {
    match intent {
        ProcessInstanceIntent::ElementActivating => activating(state, key, value),
        ProcessInstanceIntent::ElementActivated => set_lifecycle(state, key, Lifecycle::Activated),
        ProcessInstanceIntent::ElementCompleting => set_lifecycle(state, key, Lifecycle::Completing),
        ProcessInstanceIntent::ElementTerminating => set_lifecycle(state, key, Lifecycle::Terminating),
        ProcessInstanceIntent::ElementCompleted | ProcessInstanceIntent::ElementTerminated => ended(state, key, value),
        ProcessInstanceIntent::SequenceFlowTaken => flow_taken(state, value),
        // The others are commands, or belong to elements that this version refuses at deployment.
        _ => {}
    }
}

fn activating(state: &mut State, key: Key, value: &Arc<ProcessInstanceValue>) {
    let is_process = value.bpmn_element_type == BpmnElementType::Process;
    let instance = ElementInstance {
        lifecycle: Lifecycle::Activating,
        value: value.clone(),
        children: 0,
        tokens: 0,
        job: Key::NONE,
        incident: Key::NONE,
        // Variables given at creation are there before the process itself.
        has_variables: is_process,
        result: None,
    };
    state.tables.element_instances.insert_new(key.raw(), instance);
    if is_process {
        return;
    }
    let consumed = consume_tokens(state, value);
    let scope = value.flow_scope_key.raw();
    state.tables.children.insert_new((scope, key.raw()), ());
    state.tables.element_instances.update(&scope, |scope| {
        scope.children += 1;
        scope.tokens -= consumed.min(scope.tokens);
    });
}

/// The tokens that entering the element uses up: one of each incoming flow at a parallel gateway, none at a start event.
fn consume_tokens(state: &mut State, value: &ProcessInstanceValue) -> u32 {
    match value.bpmn_element_type {
        BpmnElementType::StartEvent => 0,
        BpmnElementType::ParallelGateway => {
            let Some(process) = state.process(value.process_definition_key) else { return 0 };
            let Some(element) = process.element_by_id.get(&*value.element_id).map(|index| process.element(*index))
            else {
                return 0;
            };
            for flow in &element.incoming {
                let place = (value.flow_scope_key.raw(), element.id.clone(), process.flow(*flow).id.clone());
                match state.tables.waiting_tokens.get(&place).map_or(0, |count| *count) {
                    0 | 1 => state.tables.waiting_tokens.delete(&place),
                    count => state.tables.waiting_tokens.put(place, count - 1),
                }
            }
            element.incoming.len() as u32
        }
        _ => 1,
    }
}

fn set_lifecycle(state: &mut State, key: Key, lifecycle: Lifecycle) {
    state.tables.element_instances.update(&key.raw(), |instance| instance.lifecycle = lifecycle);
}

fn ended(state: &mut State, key: Key, value: &ProcessInstanceValue) {
    let raw = key.raw();
    if let Some(instance) = state.element_instance(key) {
        if instance.has_variables {
            super::variable::remove_scope(state, raw);
        }
        if instance.tokens > 0 {
            remove_waiting_tokens(state, raw);
        }
    }
    state.tables.element_instances.delete(&raw);
    if value.bpmn_element_type == BpmnElementType::Process {
        if state.counters.awaited_results > 0 && state.tables.awaited_results.contains(&raw) {
            state.tables.awaited_results.delete(&raw);
            state.counters.awaited_results -= 1;
        }
        return;
    }
    let scope = value.flow_scope_key.raw();
    state.tables.children.delete(&(scope, raw));
    state.tables.element_instances.update(&scope, |scope| scope.children -= 1);
}

fn remove_waiting_tokens(state: &mut State, scope: i64) {
    let empty: Arc<str> = Arc::default();
    let places: Vec<_> = state
        .tables
        .waiting_tokens
        .range((scope, empty.clone(), empty.clone())..(scope + 1, empty.clone(), empty))
        .map(|(place, _)| place)
        .collect();
    for place in places {
        state.tables.waiting_tokens.delete(&place);
    }
}

fn flow_taken(state: &mut State, value: &ProcessInstanceValue) {
    let scope = value.flow_scope_key.raw();
    state.tables.element_instances.update(&scope, |scope| scope.tokens += 1);
    let Some(process) = state.process(value.process_definition_key) else { return };
    let Some(flow) = process.flow_by_id.get(&*value.element_id).map(|index| process.flow(*index)) else { return };
    let target = process.element(flow.target);
    if target.element_type == BpmnElementType::ParallelGateway {
        let place = (scope, target.id.clone(), flow.id.clone());
        let count = state.tables.waiting_tokens.get(&place).map_or(0, |count| *count);
        state.tables.waiting_tokens.put(place, count + 1);
    }
}
