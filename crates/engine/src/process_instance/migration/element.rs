//! One element instance becomes an instance of another element, with all that belongs to it.

use std::sync::Arc;

use bpmn::model::{Behavior, ElementIndex};
use protocol::{
    IncidentIntent, IncidentValue, JobIntent, JobKind, JobValue, Key, Payload, ProcessInstanceIntent,
    ProcessInstanceValue, Text, VariableIntent, VariableValue,
};

use super::Migration;
use super::{catch_events, gateways, preconditions};
use crate::element::{cancel_job, continue_as_user_task, renew_choices};
use crate::execution::token::Token;
use crate::execution::{Execution, Outcome};
use crate::state::{ElementInstance, Lifecycle};
use crate::user_task::create;

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
    migrate_work(execution, migration, key, target)?;
    migrate_incident(execution, instance.incident, &value);
    migrate_variables(execution, key, &value);
    if let Behavior::AdHocSubProcess(ad_hoc) = &migration.target.element(target).behavior {
        renew_choices(execution, key, ad_hoc).map_err(|problem| migration.invalid_state(&problem.message))?;
    }
    // An element that has not begun yet waits for nothing so far, and one with listeners at its end for nothing any more.
    let is_over =
        instance.lifecycle == Lifecycle::Completing && (instance.job.is_some() || instance.listeners_done > 0);
    if instance.lifecycle != Lifecycle::Activating && !is_over {
        catch_events::migrate(execution, migration, key)?;
    }
    Ok(!tokens.is_empty())
}

/// What does the element's work does it on. The job of a user task becomes a task that the engine leads where the target says so.
fn migrate_work(execution: &mut Execution<'_>, migration: &Migration, key: Key, target: ElementIndex) -> Outcome {
    let Some(token) = Token::find(execution, key)? else { return Ok(()) };
    match &migration.target.element(target).behavior {
        // The job of a listener stays one.
        Behavior::UserTask(task) if task.is_native && has_own_job(execution, &token.instance) => {
            continue_as_user_task(execution, &token, task)
                .map_err(|problem| migration.invalid_state(&problem.message))?;
            cancel_job(execution, &token.instance);
        }
        _ => migrate_job(execution, &token.instance, token.value()),
    }
    if let Some(instance) = execution.state.element_instance(key) {
        create::migrate(execution, instance.user_task, token.value());
    }
    Ok(())
}

/// Whether a job does the work of the element, rather than what listens to it.
fn has_own_job(execution: &Execution<'_>, instance: &ElementInstance) -> bool {
    execution.state.job(instance.job).is_some_and(|job| job.value.job_kind == JobKind::BpmnElement)
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
