//! What is to happen to instances on their way.

use std::sync::Arc;

use protocol::{Key, ProcessInstanceCreationValue, RuntimeInstructionIntent, RuntimeInstructionValue};

use crate::state::State;

/// What was asked at a creation to happen on the way is kept until the instance ends.
pub(super) fn keep_runtime_instructions(state: &mut State, value: &ProcessInstanceCreationValue) {
    for instruction in &value.runtime_instructions {
        keep(state, value.process_instance_key, instruction.after_element_id.shared().clone());
    }
}

pub(super) fn apply(state: &mut State, intent: RuntimeInstructionIntent, value: &RuntimeInstructionValue) {
    let RuntimeInstructionIntent::Interrupted = intent;
    keep(state, value.process_instance_key, Arc::default());
}

fn keep(state: &mut State, process_instance: Key, element_id: Arc<str>) {
    let wanted = (process_instance.raw(), element_id);
    if !state.tables.runtime_instructions.contains(&wanted) {
        state.tables.runtime_instructions.insert_new(wanted, ());
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
    super::change::count_down(state, "runtime instructions", forgotten, |counters| &mut counters.runtime_instructions);
}
