//! What was asked at the creation of an instance to happen on its way: it ends after a certain element.

use std::sync::Arc;

use protocol::{Key, Payload, RuntimeInstructionIntent, RuntimeInstructionValue};

use crate::execution::Execution;
use crate::execution::step::Step;
use crate::state::{ElementInstance, Lifecycle};

/// Carries out the instruction for what happens after an element, which has just ended. Returns whether it ends the
/// instance, so that nothing follows the element. Of an activity that runs several times, the multi-instance body
/// counts.
pub(super) fn carry_out(execution: &mut Execution<'_>, ended: &ElementInstance) -> bool {
    if execution.state.counters.runtime_instructions == 0 || ended.is_inner_instance() {
        return false;
    }
    let value = &ended.value;
    let wanted = (value.process_instance_key.raw(), value.element_id.shared().clone());
    let is_wanted = execution.state.tables.runtime_instructions.contains(&wanted);
    if !is_wanted || is_interrupted(execution, value.process_instance_key) {
        return false;
    }
    let process = execution.state.element_instance(value.process_instance_key);
    if process.is_none_or(|process| process.lifecycle == Lifecycle::Terminating) {
        return false;
    }
    let key = value.process_instance_key;
    let interrupted = RuntimeInstructionValue {
        process_instance_key: key,
        element_id: value.element_id.clone(),
        tenant_id: value.tenant_id.clone(),
    };
    execution.emit(key, Payload::RuntimeInstruction(RuntimeInstructionIntent::Interrupted, Box::new(interrupted)));
    execution.steps.push_back(Step::Terminate { key });
    true
}

/// Whether such an instruction is ending the instance, so that nothing more begins or completes in it.
pub(super) fn is_interrupted(execution: &Execution<'_>, process_instance: Key) -> bool {
    execution.state.counters.runtime_instructions > 0
        && execution.state.tables.runtime_instructions.contains(&(process_instance.raw(), Arc::default()))
}
