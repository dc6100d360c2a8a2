//! Events of operations on instances as a whole.

use std::sync::Arc;

use protocol::{
    Key, ProcessInstanceCreationValue, ProcessInstanceModificationIntent, ProcessInstanceModificationValue,
    RuntimeInstructionIntent, RuntimeInstructionValue,
};

use crate::state::State;

/// What was asked at a creation to happen on the way is kept until the instance ends.
pub(super) fn keep_runtime_instructions(state: &mut State, value: &ProcessInstanceCreationValue) {
    for instruction in &value.runtime_instructions {
        keep(state, value.process_instance_key, instruction.after_element_id.shared().clone());
    }
}

pub(super) fn apply_runtime_instruction(
    state: &mut State,
    intent: RuntimeInstructionIntent,
    value: &RuntimeInstructionValue,
) {
    let RuntimeInstructionIntent::Interrupted = intent;
    keep(state, value.process_instance_key, Arc::default());
}

/// Scopes in which something began go on, whatever interrupted them before.
pub(super) fn apply_modification(
    state: &mut State,
    intent: ProcessInstanceModificationIntent,
    value: &ProcessInstanceModificationValue,
) {
    if intent != ProcessInstanceModificationIntent::Modified {
        return super::not_an_event(state, intent.name());
    }
    for scope in &value.ancestor_scope_keys {
        // A scope may have ended by what else was modified.
        if state.element_instance(*scope).is_some_and(|instance| instance.interrupted_by.is_some()) {
            state.tables.element_instances.update(&scope.raw(), |instance| instance.interrupted_by = None);
        }
    }
}

fn keep(state: &mut State, process_instance: Key, element_id: Arc<str>) {
    let place = (process_instance.raw(), element_id);
    if !state.tables.runtime_instructions.contains(&place) {
        state.tables.runtime_instructions.insert_new(place, ());
        state.counters.runtime_instructions += 1;
    }
}

/// What was kept for an instance goes with it.
pub(super) fn process_ended(state: &mut State, key: Key) {
    if state.counters.runtime_instructions > 0 {
        forget_runtime_instructions(state, key);
    }
}

fn forget_runtime_instructions(state: &mut State, process_instance: Key) {
    let forgotten = state.tables.runtime_instructions.remove_prefix(&process_instance.raw());
    super::count_down(state, "runtime instructions", forgotten, |counters| &mut counters.runtime_instructions);
}
