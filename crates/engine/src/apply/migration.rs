//! Events of migrations.

use std::sync::Arc;

use protocol::{BpmnElementType, Key, ProcessInstanceValue};

use super::change::{broken, change_element, count_down, take_one};
use super::process_instance::{process_of, take_tokens};
use super::{business_id, process};
use crate::state::State;

pub(super) fn element_migrated(state: &mut State, key: Key, value: &Arc<ProcessInstanceValue>) {
    let Some(before) = state.element_instance(key) else {
        return broken(state, format!("element instance {key} is not there"));
    };
    if value.bpmn_element_type == BpmnElementType::Process {
        migrate_message_lock(state, key, &before.value, value);
        business_id::instance_migrated(state, key, &before.value, value);
        process::instance_began(state, value.process_definition_key);
        process::instance_left(state, before.value.process_definition_key);
    }
    // A process has no scope. An event sub-process that interrupted its scope continues under another id.
    let scope = value.flow_scope_key;
    let interrupted_by = state.element_instance(scope).and_then(|scope| scope.interrupted_by.clone());
    if interrupted_by.is_some_and(|element_id| element_id == before.value.element_id) {
        let element_id = value.element_id.clone();
        change_element(state, scope.raw(), |scope| scope.interrupted_by = Some(element_id));
    }
    change_element(state, key.raw(), |instance| instance.value = value.clone());
}

/// What a message with a correlation key started holds that key for its new process, if messages start that too.
fn migrate_message_lock(state: &mut State, key: Key, before: &ProcessInstanceValue, value: &ProcessInstanceValue) {
    if state.counters.message_locks == 0 {
        return;
    }
    // It may have been started without a message, or by one without a correlation key.
    let Some(correlation_key) = state.tables.message_lock_keys.get(&key.raw()) else { return };
    let lock = |of: &ProcessInstanceValue| {
        (of.tenant_id.shared().clone(), of.bpmn_process_id.shared().clone(), (*correlation_key).clone())
    };
    let keeps = state.process(value.process_definition_key).is_some_and(|process| process.is_started_by_message());
    if keeps && before.bpmn_process_id == value.bpmn_process_id {
        return;
    }
    state.tables.message_locks.delete(&lock(before));
    count_down(state, "message locks", 1, |counters| &mut counters.message_locks);
    if !keeps {
        state.tables.message_lock_keys.delete(&key.raw());
        return;
    }
    match state.tables.message_locks.get(&lock(value)) {
        // It passes from an instance that is banned, and so never ends.
        Some(banned) => state.tables.message_lock_keys.delete(&banned),
        None => state.counters.message_locks += 1,
    }
    state.tables.message_locks.put(lock(value), key.raw());
}

/// A token that waited at a gateway is taken back.
pub(super) fn flow_deleted(state: &mut State, value: &ProcessInstanceValue) {
    let scope = value.flow_scope_key.raw();
    take_tokens(state, scope, 1);
    let Some(process) = process_of(state, value) else { return };
    let Some(flow) = process.flow_by_id.get(&*value.element_id).map(|flow| process.flow(*flow)) else {
        return broken(state, format!("the process has no sequence flow '{}'", value.element_id));
    };
    let token = (scope, process.element(flow.target).id.clone(), flow.id.clone());
    if !take_one(&mut state.tables.waiting_tokens, &token) {
        broken(state, format!("no token waits at '{}' in scope {scope}", token.1));
    }
}
