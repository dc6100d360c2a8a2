//! One element instance becomes an instance of another element, with all that belongs to it.

use std::sync::Arc;

use protocol::{
    IncidentIntent, IncidentValue, JobIntent, JobValue, Key, Payload, ProcessInstanceIntent, ProcessInstanceValue,
    Text, VariableIntent, VariableValue,
};

use super::Migration;
use super::{catch_events, gateways, preconditions};
use crate::execution::{Execution, Outcome};
use crate::state::{ElementInstance, Lifecycle};

/// Returns whether tokens wait at gateways inside.
pub(super) fn migrate(execution: &mut Execution<'_>, migration: &Migration, key: Key) -> Outcome<bool> {
    let Some(instance) = execution.state.element_instance(key) else { return Ok(false) };
    let (_, source) = execution.element_of(&instance.value)?;
    let target = preconditions::target_of(execution, migration, &instance, source)?;
    preconditions::check_settled(execution, migration, key, &instance)?;
    let tokens = gateways::waiting_tokens(execution, migration, key, &instance)?;
    let metadata = &migration.target_metadata;
    let value = Arc::new(ProcessInstanceValue {
        bpmn_process_id: metadata.bpmn_process_id.clone(),
        version: metadata.version,
        process_definition_key: metadata.process_definition_key,
        element_id: (&migration.target.element(target).id).into(),
        ..(*instance.value).clone()
    });
    execution.emit(key, Payload::ProcessInstance(ProcessInstanceIntent::ElementMigrated, value.clone()));
    gateways::migrate(execution, key, &instance.value, &value, &tokens);
    migrate_job(execution, &instance, &value);
    migrate_incident(execution, instance.incident, &value);
    migrate_variables(execution, key, &value);
    // An element that has not begun yet waits for nothing so far.
    if instance.lifecycle != Lifecycle::Activating {
        catch_events::migrate(execution, migration, key)?;
    }
    Ok(!tokens.is_empty())
}

fn migrate_job(execution: &mut Execution<'_>, instance: &ElementInstance, value: &ProcessInstanceValue) {
    let Some(job) = execution.state.job(instance.job) else { return };
    let migrated = JobValue {
        bpmn_process_id: value.bpmn_process_id.clone(),
        process_definition_version: value.version,
        process_definition_key: value.process_definition_key,
        element_id: value.element_id.clone(),
        ..(*job.value).clone()
    };
    execution.emit(instance.job, Payload::Job(JobIntent::Migrated, Arc::new(migrated)));
    migrate_incident(execution, job.incident, value);
}

fn migrate_incident(execution: &mut Execution<'_>, key: Key, value: &ProcessInstanceValue) {
    let Some(row) = execution.state.tables.incidents.get(&key.raw()) else { return };
    let migrated = IncidentValue {
        bpmn_process_id: value.bpmn_process_id.clone(),
        process_definition_key: value.process_definition_key,
        element_id: value.element_id.clone(),
        ..row.value.clone()
    };
    execution.emit(key, Payload::Incident(IncidentIntent::Migrated, Box::new(migrated)));
}

/// The records name the variables; their values stay as they are and are left out.
fn migrate_variables(execution: &mut Execution<'_>, scope_key: Key, value: &ProcessInstanceValue) {
    let variables: Vec<(Arc<str>, Key)> =
        execution.state.variables_of(scope_key).map(|(name, row)| (name, row.key)).collect();
    for (name, key) in variables {
        let migrated = VariableValue {
            name: name.into(),
            value: Text::default(),
            scope_key,
            process_instance_key: value.process_instance_key,
            process_definition_key: value.process_definition_key,
            bpmn_process_id: value.bpmn_process_id.clone(),
            tenant_id: value.tenant_id.clone(),
        };
        execution.emit(key, Payload::Variable(VariableIntent::Migrated, Box::new(migrated)));
    }
}
