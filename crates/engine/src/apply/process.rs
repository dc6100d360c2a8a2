//! Events of definitions, and how many instances each of them has.

use protocol::{
    Key, ProcessInstanceValue, ProcessIntent, ProcessMetadata, ProcessValue, ResourceDeletionIntent,
    ResourceDeletionValue,
};

use super::change::{Name, broken, count_down, versions};
use crate::state::{DeletingProcess, LatestVersion, ProcessRow, State};

fn name_of(metadata: &ProcessMetadata) -> Name {
    (metadata.tenant_id.shared().clone(), metadata.bpmn_process_id.shared().clone())
}

pub(super) fn apply(state: &mut State, intent: ProcessIntent, value: &ProcessValue) {
    match intent {
        ProcessIntent::Created => created(state, value),
        ProcessIntent::Deleting => deleting(state, &value.metadata),
        ProcessIntent::Deleted => deleted(state, value.metadata.process_definition_key),
    }
}

fn created(state: &mut State, value: &ProcessValue) {
    let metadata = &value.metadata;
    let key = metadata.process_definition_key;
    let name = name_of(metadata);
    let row = ProcessRow { metadata: metadata.clone(), resource: value.resource.to_vec() };
    let by_deployment = (metadata.deployment_key.raw(), name.1.clone());
    state.tables.processes_by_deployment.insert_new(by_deployment, key.raw());
    if !metadata.version_tag.is_empty() {
        let by_tag = (name.0.clone(), name.1.clone(), metadata.version_tag.shared().clone());
        state.tables.processes_by_version_tag.put(by_tag, key.raw());
    }
    state.tables.processes.insert_new(key.raw(), row);
    state.tables.process_versions.insert_new((name.0.clone(), name.1.clone(), metadata.version), key.raw());
    if state.tables.deleted_versions.get(&name).is_some_and(|deleted| deleted.version < metadata.version) {
        state.tables.deleted_versions.delete(&name);
    }
    state.tables.latest_processes.put(name, LatestVersion { key, version: metadata.version });
}

/// Nothing finds the definition any more but by its key, so that what uses it can continue.
fn deleting(state: &mut State, metadata: &ProcessMetadata) {
    let key = metadata.process_definition_key;
    let name = name_of(metadata);
    state.tables.processes_by_deployment.delete(&(metadata.deployment_key.raw(), name.1.clone()));
    state.tables.process_versions.delete(&(name.0.clone(), name.1.clone(), metadata.version));
    forget_version_tag(state, &name, metadata);
    if state.tables.latest_processes.get(&name).is_some_and(|latest| latest.key == key) {
        let previous = versions(&state.tables.process_versions, &name).last();
        match previous {
            Some((version, key)) => state.tables.latest_processes.put(name.clone(), LatestVersion { key, version }),
            None => state.tables.latest_processes.delete(&name),
        }
        let is_known = |deleted: &LatestVersion| deleted.version > metadata.version;
        if !state.tables.deleted_versions.get(&name).is_some_and(|deleted| is_known(&deleted)) {
            state.tables.deleted_versions.put(name, LatestVersion { key, version: metadata.version });
        }
    }
}

/// The tag means the newest of the versions that are left with it.
fn forget_version_tag(state: &mut State, name: &Name, metadata: &ProcessMetadata) {
    let tag = &metadata.version_tag;
    let by_tag = (name.0.clone(), name.1.clone(), tag.shared().clone());
    let meant = state.tables.processes_by_version_tag.get(&by_tag);
    if meant.is_none_or(|key| *key != metadata.process_definition_key.raw()) {
        return;
    }
    let has_tag = |key: &Key| {
        let row = state.tables.processes.get(&key.raw());
        row.is_some_and(|row| row.metadata.version_tag == *tag)
    };
    let left = versions(&state.tables.process_versions, name).map(|(_, key)| key).filter(has_tag).last();
    match left {
        Some(key) => state.tables.processes_by_version_tag.put(by_tag, key.raw()),
        None => state.tables.processes_by_version_tag.delete(&by_tag),
    }
}

fn deleted(state: &mut State, definition: Key) {
    if !state.tables.processes.contains(&definition.raw()) {
        return broken(state, format!("definition {definition} is not there"));
    }
    state.tables.processes.delete(&definition.raw());
    state.definitions.forget_process(definition);
    if state.tables.deleting_processes.get(&definition.raw()).is_some_and(|row| row.is_unused) {
        count_down(state, "unused definitions", 1, |counters| &mut counters.unused_processes);
    }
    state.tables.deleting_processes.delete(&definition.raw());
}

pub(super) fn apply_deletion(
    state: &mut State,
    key: Key,
    intent: ResourceDeletionIntent,
    value: &ResourceDeletionValue,
) {
    // It may be a graph of decisions, which is deleted at once: nothing has to end before.
    let is_process = state.tables.processes.contains(&value.resource_key.raw());
    if intent == ResourceDeletionIntent::Deleting && is_process {
        let row = DeletingProcess { deletion: key, is_unused: false };
        state.tables.deleting_processes.insert_new(value.resource_key.raw(), row);
    }
}

/// An instance begins, or continues with another definition.
pub(super) fn instance_began(state: &mut State, definition: Key) {
    if !state.tables.living_instances.update(&definition.raw(), |count| *count += 1) {
        state.tables.living_instances.put(definition.raw(), 1);
    }
}

/// An instance ended, or went on with another definition.
pub(super) fn instance_left(state: &mut State, definition: Key) {
    let definition = definition.raw();
    let Some(left) = state.tables.living_instances.get(&definition).and_then(|count| count.checked_sub(1)) else {
        return broken(state, format!("no instance of definition {definition} lives"));
    };
    if left > 0 {
        state.tables.living_instances.put(definition, left);
        return;
    }
    state.tables.living_instances.delete(&definition);
    if state.tables.deleting_processes.get(&definition).is_some_and(|row| !row.is_unused) {
        state.tables.deleting_processes.update(&definition, |row| row.is_unused = true);
        state.counters.unused_processes += 1;
    }
}

pub(super) fn instance_ended(state: &mut State, key: Key, value: &ProcessInstanceValue) {
    if !is_not_counted(state, key, value) {
        instance_left(state, value.process_definition_key);
    }
    if state.is_banned(key) {
        state.tables.banned_instances.delete(&key.raw());
        count_down(state, "banned instances", 1, |counters| &mut counters.banned_instances);
    }
}

/// It is not counted any more, before it is banned.
pub(super) fn instance_banned(state: &mut State, key: Key) {
    // It may have ended before its failure was noted.
    if let Some(instance) = state.element_instance(key)
        && instance.value.parent_process_instance_key.is_none()
    {
        instance_left(state, instance.value.process_definition_key);
    }
}

/// A banned instance may never end; so it holds its definition only as long as the instance that called it.
fn is_not_counted(state: &State, key: Key, value: &ProcessInstanceValue) -> bool {
    state.is_banned(key) && value.parent_process_instance_key.is_none()
}
