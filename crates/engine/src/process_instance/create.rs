//! PROCESS_INSTANCE_CREATION CREATE and CREATE_WITH_AWAITING_RESULT.

use std::sync::Arc;

use bpmn::model::{ElementIndex, ExecutableProcess};
use protocol::{
    Key, Payload, ProcessInstanceCreationIntent, ProcessInstanceCreationValue, ProcessInstanceValue, ProcessMetadata,
    Rejection, Text,
};

use super::target;
use crate::element::{ActivateInstruction, Activations};
use crate::execution::step::Step;
use crate::execution::{Execution, Outcome};
use crate::variable::document;

/// Version that means the newest one.
const LATEST: i32 = -1;

pub(crate) fn create(
    execution: &mut Execution<'_>,
    intent: ProcessInstanceCreationIntent,
    value: &ProcessInstanceCreationValue,
) -> Outcome {
    check_business_id(execution, &value.business_id)?;
    let metadata = find_definition(execution, value)?;
    check_is_new(execution, &metadata, &value.business_id)?;
    let process = execution.state.process(metadata.process_definition_key);
    let process = process.ok_or_else(|| {
        Rejection::not_found(format!(
            "Expected to find process definition with key '{}', but its resource cannot be read",
            metadata.process_definition_key
        ))
    })?;
    let starts_max = execution.limits.elements_per_operation_max;
    if value.start_instructions.len() > starts_max {
        return Err(Rejection::invalid_argument(format!(
            "Expected to create instance of process '{}' with at most {starts_max} start instructions, but there are {}",
            process.id,
            value.start_instructions.len()
        ))
        .into());
    }
    let starts = find_starts(&process, value)?;
    let entries = document::split(&value.variables, execution.limits.name_bytes_max)?;
    let key = execution.state.next_key();
    let instance = ProcessInstanceValue {
        tags: value.tags.clone(),
        business_id: value.business_id.clone(),
        ..super::root_value(&metadata, key)
    };
    document::set_initial(execution, &instance, entries);
    let instance = Arc::new(instance);
    let activations = begin_scopes(execution, &process, &instance, &starts)?;
    let created = created(execution, intent, value, &metadata, key);
    let creation_key = execution.state.next_key();
    execution.emit(creation_key, created.clone());
    if intent == ProcessInstanceCreationIntent::Create {
        execution.reply(creation_key, created);
    }
    if starts.is_empty() {
        execution.steps.push_back(Step::Activate { key: Some(key), value: instance.clone() });
    }
    activations.begin_targets(execution)
}

fn check_business_id(execution: &Execution<'_>, business_id: &str) -> Result<(), Rejection> {
    let characters_max = execution.limits.business_id_characters_max;
    let characters = business_id.chars().count();
    if characters > characters_max {
        return Err(Rejection::invalid_argument(format!(
            "Expected to create instance of process with a valid business id, but the business id exceeds the max length of \
             {characters_max}: it has {characters} characters"
        )));
    }
    Ok(())
}

/// No other living instance of the process has the business id, when that is wanted. Those that were called do not count: they have
/// that of their caller.
fn check_is_new(execution: &Execution<'_>, metadata: &ProcessMetadata, business_id: &Text) -> Result<(), Rejection> {
    let state = &execution.state;
    if !state.counters.business_ids_are_unique || business_id.is_empty() {
        return Ok(());
    }
    let process_id = metadata.bpmn_process_id.shared().clone();
    let id = (metadata.tenant_id.shared().clone(), process_id, business_id.shared().clone());
    match state.tables.business_ids.prefix(&id).next() {
        None => Ok(()),
        Some(((_, instance), _)) => Err(Rejection::already_exists(format!(
            "Expected to create instance of process with business id '{business_id}', but an instance with this business id \
             already exists for process definition '{}': '{instance}'",
            metadata.bpmn_process_id
        ))),
    }
}

/// The elements to start at; none for the none start event, which must be there then.
fn find_starts(
    process: &ExecutableProcess,
    value: &ProcessInstanceCreationValue,
) -> Result<Vec<ElementIndex>, Rejection> {
    if value.start_instructions.is_empty() && process.none_start_event().is_none() {
        return Err(Rejection::invalid_state(format!(
            "Expected to create instance of process '{}' with none start event, but there is no such event",
            process.id
        )));
    }
    let refused = |reason: String| {
        Rejection::invalid_argument(format!(
            "Expected to create instance of process '{}' with start instructions, but {reason}",
            process.id
        ))
    };
    // Each check is made for all elements before the next one, as on the reference engine.
    let mut starts = Vec::with_capacity(value.start_instructions.len());
    for id in &value.start_instructions {
        let Some(element) = target::find(process, id) else {
            return Err(refused(format!("no element found with id '{id}'")));
        };
        starts.push(element);
    }
    for element in starts.iter().filter_map(|target| target.index()) {
        if target::is_inside_multi_instance(process, element) {
            return Err(refused(format!(
                "the element with id '{}' is inside a multi-instance subprocess. The creation of elements inside a \
                 multi-instance subprocess is not supported.",
                process.element(element).id
            )));
        }
    }
    for element in starts.iter().filter_map(|target| target.index()) {
        if target::is_inside_ad_hoc_sub_process(process, element) {
            return Err(refused(format!(
                "the element with id '{}' is inside an ad-hoc subprocess. The creation of elements inside an ad-hoc subprocess \
                 is not supported.",
                process.element(element).id
            )));
        }
    }
    let mut elements = Vec::with_capacity(starts.len());
    for (target, id) in starts.iter().zip(&value.start_instructions) {
        let element = target.supported(process).map_err(|unsupported| {
            refused(format!("the element with id '{id}' targets unsupported element type '{unsupported}'"))
        })?;
        elements.push(element);
    }
    for element in &elements {
        if target::follows_event_based_gateway(process, *element) {
            return Err(refused(format!(
                "the element with id '{}' belongs to an event-based gateway. The creation of elements belonging to an \
                 event-based gateway is not supported.",
                process.element(*element).id
            )));
        }
    }
    Ok(elements)
}

/// The flow scopes of the elements to start at; nothing when the instance starts at its start event.
fn begin_scopes<'a>(
    execution: &mut Execution<'_>,
    process: &'a Arc<ExecutableProcess>,
    instance: &'a Arc<ProcessInstanceValue>,
    starts: &[ElementIndex],
) -> Outcome<Activations<'a>> {
    let instructions = format!(
        "Expected to create instance of process '{}' with start instructions, but it contains one or more start instructions",
        process.id
    );
    let mut activations = Activations::new(instance, process);
    for element in starts {
        let instruction = ActivateInstruction { element: *element, ancestor: Key::NONE, variables: &[] };
        activations.begin_scopes(execution, &instruction).map_err(|obstacle| obstacle.refuse(&instructions))?;
    }
    Ok(activations)
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
        Some(row)
            if row.metadata.tenant_id == value.tenant_id
                && !execution.state.is_deleting(row.metadata.process_definition_key) =>
        {
            Ok(row.metadata.clone())
        }
        _ => Err(Rejection::not_found(format!("Expected to find process definition with {missing}, but none found"))),
    }
}
