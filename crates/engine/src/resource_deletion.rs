//! RESOURCE_DELETION DELETE: a version of a process, of a graph of decisions, of a form or of another resource goes, here
//! and on every other partition.
//!
//! Partition 1 decides, and refuses while instances of the definition live there. Another partition that hears of the
//! decision closes the definition at once, so that nothing new begins with it, but keeps it until the last instance that it
//! runs there has ended: a definition in use never goes.

use std::collections::BTreeSet;

use protocol::{
    Command, DecisionIntent, DecisionRequirementsIntent, DecisionRequirementsMetadata, DecisionRequirementsValue,
    FormIntent, FormValue, Key, PartitionId, Payload, ProcessInstanceIntent, ProcessIntent, ProcessMetadata,
    ProcessValue, Rejection, Request, ResourceDeletionIntent, ResourceDeletionValue, ResourceIntent, ResourceValue,
    Text, WorkValue,
};

use crate::execution::{Execution, Outcome};
use crate::state::State;
use crate::{conditional, distribution, message, routing, signal, timer};

pub(crate) fn delete(execution: &mut Execution<'_>, command: &Command, value: &ResourceDeletionValue) -> Outcome {
    if command.source.is_none() {
        distribution::check_distributions(execution)?;
    }
    let definition = value.resource_key;
    if let Some(row) = execution.state.tables.decision_requirements.get(&definition.raw())
        && (value.tenant_id.is_empty() || value.tenant_id == row.metadata.tenant_id)
    {
        delete_decisions(execution, command, &row.metadata);
        return Ok(());
    }
    if let Some((deleted, tenant)) = document(execution, value) {
        delete_document(execution, command, definition, tenant, deleted);
        return Ok(());
    }
    let metadata = find(&execution.state, value).ok_or_else(|| {
        Rejection::not_found(format!("Expected to delete resource but no resource found with key `{definition}`"))
    })?;
    let is_decided = command.source.is_some();
    let has_waiting_work = has_waiting_work(&execution.state, definition);
    let is_in_use = has_waiting_work || has_living_instances(&execution.state, definition);
    if is_in_use && !is_decided {
        return Err(Rejection::invalid_state(format!(
            "Expected to delete resource with key `{definition}` but there are still running instances of process '{}' \
             version {}. Cancel them or let them end first.",
            metadata.bpmn_process_id, metadata.version
        ))
        .into());
    }
    if has_waiting_work {
        wait_behind_work(execution, command);
        return Ok(());
    }
    let key = if is_decided { command.key } else { execution.state.next_key() };
    let value = ResourceDeletionValue { resource_key: definition, tenant_id: metadata.tenant_id.clone() };
    let deletion = |intent| Payload::ResourceDeletion(intent, Box::new(value.clone()));
    execution.emit(key, deletion(ResourceDeletionIntent::Deleting));
    close(execution, &metadata);
    if !is_in_use {
        finish(execution, definition);
    }
    if !is_decided {
        answer(execution, key, deletion);
    }
    Ok(())
}

/// A graph of decisions goes with all of them. Nothing keeps them: what evaluates one later finds the version before, or an
/// incident says that there is none.
fn delete_decisions(execution: &mut Execution<'_>, command: &Command, metadata: &DecisionRequirementsMetadata) {
    let graph = metadata.decision_requirements_key;
    let key = if command.source.is_some() { command.key } else { execution.state.next_key() };
    let value = ResourceDeletionValue { resource_key: graph, tenant_id: metadata.tenant_id.clone() };
    let deletion = |intent| Payload::ResourceDeletion(intent, Box::new(value.clone()));
    execution.emit(key, deletion(ResourceDeletionIntent::Deleting));
    let tables = &execution.state.tables;
    let keys = tables.decisions_by_requirements.prefix(&graph.raw());
    let decisions: Vec<_> = keys.filter_map(|((_, key), _)| tables.decisions.get(&key)).collect();
    let resource = tables.decision_requirements.get(&graph.raw()).map(|row| row.resource.clone());
    // Under their own keys, so that whoever follows the records knows what goes.
    for row in decisions {
        let deleted = Payload::Decision(DecisionIntent::Deleted, Box::new(row.value.clone()));
        execution.emit(row.value.decision_key, deleted);
    }
    let resource = resource.unwrap_or_default().into();
    let value = DecisionRequirementsValue { metadata: metadata.clone(), resource };
    execution.emit(graph, Payload::DecisionRequirements(DecisionRequirementsIntent::Deleted, Box::new(value)));
    execution.emit(key, deletion(ResourceDeletionIntent::Deleted));
    if command.source.is_none() {
        answer(execution, key, deletion);
    }
}

/// The form, or the resource that is only kept, as deleted, and its tenant.
fn document(execution: &Execution<'_>, value: &ResourceDeletionValue) -> Option<(Payload, Text)> {
    let tables = &execution.state.tables;
    let key = value.resource_key.raw();
    let (deleted, tenant) = if let Some(row) = tables.forms.get(&key) {
        let form = FormValue { metadata: row.metadata.clone(), resource: row.resource.clone().into() };
        (Payload::Form(FormIntent::Deleted, Box::new(form)), row.metadata.tenant_id.clone())
    } else {
        let row = tables.resources.get(&key)?;
        let resource = ResourceValue { metadata: row.metadata.clone(), resource_prop: row.resource.clone() };
        (Payload::Resource(ResourceIntent::Deleted, Box::new(resource)), row.metadata.tenant_id.clone())
    };
    (value.tenant_id.is_empty() || value.tenant_id == tenant).then_some((deleted, tenant))
}

/// Nothing keeps a document either: whoever has its key finds that it is gone.
fn delete_document(execution: &mut Execution<'_>, command: &Command, document: Key, tenant: Text, deleted: Payload) {
    let key = if command.source.is_some() { command.key } else { execution.state.next_key() };
    let value = ResourceDeletionValue { resource_key: document, tenant_id: tenant };
    let deletion = |intent| Payload::ResourceDeletion(intent, Box::new(value.clone()));
    execution.emit(key, deletion(ResourceDeletionIntent::Deleting));
    execution.emit(document, deleted);
    execution.emit(key, deletion(ResourceDeletionIntent::Deleted));
    if command.source.is_none() {
        answer(execution, key, deletion);
    }
}

/// The deleting client is answered when every partition knows of it.
fn answer(execution: &mut Execution<'_>, key: Key, deletion: impl Fn(ResourceDeletionIntent) -> Payload) {
    if routing::has_other_partitions(execution) {
        distribution::start(execution, key, deletion(ResourceDeletionIntent::Delete));
    } else {
        execution.reply(key, deletion(ResourceDeletionIntent::Deleted));
    }
}

/// Every partition knows: the waiting client is answered.
pub(crate) fn fully_distributed(
    execution: &mut Execution<'_>,
    key: Key,
    value: &ResourceDeletionValue,
    request: Option<Request>,
) {
    if let Some(request) = request {
        let deleted = Payload::ResourceDeletion(ResourceDeletionIntent::Deleted, Box::new(value.clone()));
        execution.reply_to(request, key, deleted);
    }
}

/// The definition, unless it is deleted or being deleted.
fn find(state: &State, value: &ResourceDeletionValue) -> Option<ProcessMetadata> {
    let row = state.tables.processes.get(&value.resource_key.raw())?;
    let is_of_tenant = value.tenant_id.is_empty() || value.tenant_id == row.metadata.tenant_id;
    (is_of_tenant && !state.is_deleting(value.resource_key)).then(|| row.metadata.clone())
}

fn has_living_instances(state: &State, definition: Key) -> bool {
    state.tables.living_instances.contains(&definition.raw())
}

/// Whether an element of the definition, perhaps a whole instance, is yet to begin by interrupted work. There is little of
/// that, if any at all.
fn has_waiting_work(state: &State, definition: Key) -> bool {
    definitions_of_waiting_work(state).contains(&definition)
}

/// What is decided cannot be refused: the deletion waits its turn behind the work.
fn wait_behind_work(execution: &mut Execution<'_>, command: &Command) {
    execution.enqueue(WorkValue { commands: vec![command.clone()], ..WorkValue::default() });
}

/// Nothing begins with the definition any more. If it was the newest version, the one before is the newest again.
fn close(execution: &mut Execution<'_>, metadata: &ProcessMetadata) {
    let definition = metadata.process_definition_key;
    let was_newest = newest(&execution.state, metadata) == Some(definition);
    emit(execution, ProcessIntent::Deleting, metadata);
    if !was_newest {
        return;
    }
    timer::start_event::close(execution, definition);
    message::start_event::close(execution, definition);
    signal::start_event::close(execution, definition);
    conditional::start_event::close(execution, definition);
    let Some(previous) = newest(&execution.state, metadata) else { return };
    let Some(row) = execution.state.tables.processes.get(&previous.raw()) else { return };
    let Some(process) = execution.state.process(previous) else { return };
    message::start_event::open(execution, &row.metadata, &process);
    signal::start_event::open(execution, &row.metadata, &process);
    conditional::start_event::open(execution, &row.metadata, &process);
    // The timers of start events are kept where versions are decided.
    if execution.state.partition == PartitionId::DEPLOYMENT {
        timer::start_event::reopen(execution, &row.metadata, &process);
    }
}

fn newest(state: &State, metadata: &ProcessMetadata) -> Option<Key> {
    let name = (metadata.tenant_id.shared().clone(), metadata.bpmn_process_id.shared().clone());
    state.tables.latest_processes.get(&name).map(|latest| latest.key)
}

/// The resource is left out: the record names what goes.
fn emit(execution: &mut Execution<'_>, intent: ProcessIntent, metadata: &ProcessMetadata) {
    let value = ProcessValue { metadata: metadata.clone(), resource: [].into() };
    execution.emit(metadata.process_definition_key, Payload::Process(intent, Box::new(value)));
}

/// The definition goes: nothing uses it any more.
fn finish(execution: &mut Execution<'_>, definition: Key) {
    let tables = &execution.state.tables;
    let (Some(deleting), Some(row)) =
        (tables.deleting_processes.get(&definition.raw()), tables.processes.get(&definition.raw()))
    else {
        return;
    };
    emit(execution, ProcessIntent::Deleted, &row.metadata);
    let value = ResourceDeletionValue { resource_key: definition, tenant_id: row.metadata.tenant_id.clone() };
    let deleted = Payload::ResourceDeletion(ResourceDeletionIntent::Deleted, Box::new(value));
    execution.emit(deleting.deletion, deleted);
}

/// At the end of a command: definitions go whose last instance has ended.
pub(crate) fn finish_unused(execution: &mut Execution<'_>) {
    if execution.state.counters.unused_processes == 0 {
        return;
    }
    let deleting = execution.state.tables.deleting_processes.iter();
    let unused: Vec<Key> =
        deleting.filter(|(_, row)| row.is_unused).map(|(definition, _)| Key::from_raw(definition)).collect();
    // Looked for once, however many they are.
    let awaited = definitions_of_waiting_work(&execution.state);
    for definition in unused {
        if !has_living_instances(&execution.state, definition) && !awaited.contains(&definition) {
            finish(execution, definition);
        }
    }
}

/// The definitions of which an element is yet to begin by interrupted work.
fn definitions_of_waiting_work(state: &State) -> BTreeSet<Key> {
    if state.counters.work_entries == 0 {
        return BTreeSet::new();
    }
    let definition = |command: &Command| match &command.payload {
        Payload::ProcessInstance(ProcessInstanceIntent::ActivateElement, value) => Some(value.process_definition_key),
        _ => None,
    };
    let rows = state.tables.work.iter();
    rows.flat_map(|(_, row)| row.commands.iter().filter_map(definition).collect::<Vec<_>>()).collect()
}
