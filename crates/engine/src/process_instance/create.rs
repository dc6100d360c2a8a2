//! PROCESS_INSTANCE_CREATION CREATE and CREATE_WITH_AWAITING_RESULT.

use std::sync::Arc;

use protocol::{
    Key, Payload, ProcessInstanceCreationIntent, ProcessInstanceCreationValue, ProcessInstanceValue, ProcessMetadata,
    Rejection,
};

use crate::element::Step;
use crate::execution::{Execution, Outcome};
use crate::variable::document;

/// Version that means the newest one.
const LATEST: i32 = -1;

pub(crate) fn create(
    execution: &mut Execution<'_>,
    intent: ProcessInstanceCreationIntent,
    value: &ProcessInstanceCreationValue,
) -> Outcome {
    let metadata = find_definition(execution, value)?;
    let process = execution.state.process(metadata.process_definition_key);
    let process = process.ok_or_else(|| {
        Rejection::not_found(format!(
            "Expected to find process definition with key '{}', but its resource cannot be read",
            metadata.process_definition_key
        ))
    })?;
    if process.none_start_event().is_none() {
        return Err(Rejection::invalid_state(format!(
            "Expected to create instance of process '{}' with none start event, but there is no such event",
            metadata.bpmn_process_id
        ))
        .into());
    }
    if !value.start_instructions.is_empty() {
        return Err(Rejection::invalid_argument(
            "Expected to create an instance at its none start event, but start instructions were given; this version does \
             not support them yet",
        )
        .into());
    }
    let entries = document::split(&value.variables, execution.limits.name_bytes_max)?;
    let key = execution.state.next_key();
    let instance = ProcessInstanceValue { tags: value.tags.clone(), ..super::root_value(&metadata, key) };
    document::set_initial(execution, &instance, entries);
    let created = created(execution, intent, value, &metadata, key);
    let creation_key = execution.state.next_key();
    execution.emit(creation_key, created.clone());
    if intent == ProcessInstanceCreationIntent::Create {
        execution.reply(creation_key, created);
    }
    execution.steps.push_back(Step::Activate { key: Some(key), value: Arc::new(instance) });
    Ok(())
}

fn created(
    execution: &Execution<'_>,
    intent: ProcessInstanceCreationIntent,
    value: &ProcessInstanceCreationValue,
    metadata: &ProcessMetadata,
    key: Key,
) -> Payload {
    let awaiting = match intent {
        ProcessInstanceCreationIntent::CreateWithAwaitingResult => execution.request,
        _ => None,
    };
    let created = ProcessInstanceCreationValue {
        bpmn_process_id: metadata.bpmn_process_id.clone(),
        version: metadata.version,
        process_definition_key: metadata.process_definition_key,
        process_instance_key: key,
        tenant_id: metadata.tenant_id.clone(),
        awaiting,
        ..value.clone()
    };
    Payload::ProcessInstanceCreation(ProcessInstanceCreationIntent::Created, Box::new(created))
}

/// The definition that the command names: by key, by id and version, or the newest of an id.
fn find_definition(
    execution: &Execution<'_>,
    value: &ProcessInstanceCreationValue,
) -> Result<ProcessMetadata, Rejection> {
    let tables = &execution.state.tables;
    let tenant = value.tenant_id.shared().clone();
    let (key, missing) = if !value.bpmn_process_id.is_empty() {
        let id = value.bpmn_process_id.shared().clone();
        if value.version == LATEST {
            let latest = tables.latest_processes.get(&(tenant, id.clone())).map(|latest| latest.key);
            (latest, format!("process ID '{id}'"))
        } else {
            let key = tables.process_versions.get(&(tenant, id.clone(), value.version)).map(|key| Key::from_raw(*key));
            (key, format!("process ID '{id}' and version '{}'", value.version))
        }
    } else if value.process_definition_key.is_some() {
        (Some(value.process_definition_key), format!("key '{}'", value.process_definition_key))
    } else {
        return Err(Rejection::invalid_argument("Expected either a bpmnProcessId or a key, but neither given"));
    };
    let row = key.and_then(|key| tables.processes.get(&key.raw()));
    match row {
        Some(row) if row.metadata.tenant_id == value.tenant_id => Ok(row.metadata.clone()),
        _ => Err(Rejection::not_found(format!("Expected to find process definition with {missing}, but none found"))),
    }
}
