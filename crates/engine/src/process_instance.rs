//! Process instances: one file per command.

pub(crate) mod cancel;
pub(crate) mod create;
pub(crate) mod migration;
pub(crate) mod modification;
mod target;

use protocol::{BpmnElementType, Key, ProcessInstanceValue, ProcessMetadata};

/// The value of the process itself, of a new instance with this key.
pub(crate) fn root_value(metadata: &ProcessMetadata, key: Key) -> ProcessInstanceValue {
    ProcessInstanceValue {
        bpmn_process_id: metadata.bpmn_process_id.clone(),
        version: metadata.version,
        process_definition_key: metadata.process_definition_key,
        process_instance_key: key,
        element_id: metadata.bpmn_process_id.clone(),
        flow_scope_key: Key::NONE,
        bpmn_element_type: BpmnElementType::Process,
        parent_process_instance_key: Key::NONE,
        parent_element_instance_key: Key::NONE,
        tenant_id: metadata.tenant_id.clone(),
        ..ProcessInstanceValue::default()
    }
}
