//! Incidents: why an element instance cannot continue, and how it continues afterwards.

use crate::execution::problem::Problem;
use protocol::{
    ElementPath, IncidentIntent, IncidentValue, JobIntent, JobValue, Key, Payload, ProcessInstanceValue, Rejection,
    Text,
};

use crate::element_path;
use crate::execution::step::Step;
use crate::execution::token::Token;
use crate::execution::{Execution, Outcome};
use crate::job;
use crate::job::delivery::{self, JobQueue};
use crate::state::Lifecycle;
use crate::user_task::listener;

/// Stops an element instance.
pub(crate) fn raise_for_element(execution: &mut Execution<'_>, token: &Token, problem: Problem) {
    let scope = token.key;
    raise(execution, token.key, token.value(), Key::NONE, scope, problem);
}

/// Stops a job.
pub(crate) fn raise_for_job(execution: &mut Execution<'_>, job_key: Key, job: &JobValue, problem: Problem) {
    let element = job.element_instance_key;
    if let Some(instance) = execution.state.element_instance(element) {
        raise(execution, element, &instance.value, job_key, element, problem);
    }
}

fn raise(
    execution: &mut Execution<'_>,
    element_instance_key: Key,
    of: &ProcessInstanceValue,
    job_key: Key,
    variable_scope_key: Key,
    problem: Problem,
) {
    let value = IncidentValue {
        error_type: problem.error_type,
        error_message: cut(problem.message, execution.limits.incident_message_bytes_max).into(),
        bpmn_process_id: of.bpmn_process_id.clone(),
        process_definition_key: of.process_definition_key,
        process_instance_key: of.process_instance_key,
        element_id: of.element_id.clone(),
        element_instance_key,
        job_key,
        variable_scope_key,
        tenant_id: of.tenant_id.clone(),
    };
    let key = execution.state.next_key();
    execution.emit(key, Payload::Incident(IncidentIntent::Created, Box::new(value)));
}

/// A message that is no longer than this, and ends with three dots if it was.
pub(crate) fn cut(mut message: String, bytes_max: usize) -> String {
    if message.len() > bytes_max {
        let end = (0..=bytes_max).rev().find(|end| message.is_char_boundary(*end)).unwrap_or(0);
        message.truncate(end);
        message.push('…');
    }
    message
}

/// The problem is solved, or its element is about to end.
pub(crate) fn resolve(execution: &mut Execution<'_>, key: Key) {
    if let Some(resolved) = resolved(execution, key) {
        execution.emit(key, resolved);
    }
}

/// As [`resolve`], of an element that has ended: nobody finds the way to it any more, so its record says `path`.
pub(crate) fn resolve_after_end(execution: &mut Execution<'_>, key: Key, path: Option<Box<ElementPath>>) {
    if let Some(resolved) = resolved(execution, key) {
        execution.emit_at(key, resolved, path);
    }
}

fn resolved(execution: &Execution<'_>, key: Key) -> Option<Payload> {
    let row = execution.state.tables.incidents.get(&key.raw())?;
    Some(Payload::Incident(IncidentIntent::Resolved, Box::new(row.value.clone())))
}

/// What the record of the end of an incident says of the way to it, as long as its element is there.
pub(crate) fn path(execution: &mut Execution<'_>, key: Key) -> Option<Box<ElementPath>> {
    let resolved = resolved(execution, key)?;
    element_path::of(&mut execution.last_path, &execution.state, key, &resolved)
}

/// INCIDENT RESOLVE: the failed step is taken again, or the job handed out again.
pub(crate) fn resolve_command(execution: &mut Execution<'_>, key: Key) -> Outcome {
    let Some(row) = execution.state.tables.incidents.get(&key.raw()) else {
        return Err(Rejection::not_found(format!(
            "Expected to resolve incident with key '{key}', but no such incident was found"
        ))
        .into());
    };
    let value = &row.value;
    execution.check_not_banned(value.process_instance_key)?;
    if value.job_key.is_some() {
        check_job_has_retries(execution, key, value)?;
    }
    let queue = JobQueue::of_names(&value.tenant_id, &job_type(execution, value.job_key));
    let had_jobs = queue.has_jobs(&execution.state);
    let resolved = Payload::Incident(IncidentIntent::Resolved, Box::new(value.clone()));
    execution.emit(key, resolved.clone());
    execution.reply(key, resolved);
    if value.job_key.is_some() {
        tell_of_the_job(execution, value.job_key);
        delivery::deliver(execution, &queue.after_insertion(had_jobs));
        return Ok(());
    }
    if let Some(instance) = execution.state.element_instance(value.element_instance_key) {
        let key = value.element_instance_key;
        if listener::resume(execution, instance.user_task)? {
            return Ok(());
        }
        match instance.lifecycle {
            Lifecycle::Activating => execution.steps.push_back(Step::ContinueActivation { key }),
            Lifecycle::Activated | Lifecycle::Completing => execution.steps.push_back(Step::Complete { key }),
            Lifecycle::Terminating => {}
        }
    }
    Ok(())
}

/// The job is available again, as after the end of a back-off. Who follows the records of jobs learns it from one of theirs.
fn tell_of_the_job(execution: &mut Execution<'_>, key: Key) {
    if let Some(row) = execution.state.job(key) {
        job::emit_available(execution, key, JobIntent::RecurredAfterBackoff, (*row.value).clone());
    }
}

fn job_type(execution: &Execution<'_>, job: Key) -> Text {
    execution.state.job(job).map(|row| row.value.job_type.clone()).unwrap_or_default()
}

fn check_job_has_retries(execution: &Execution<'_>, key: Key, value: &IncidentValue) -> Result<(), Rejection> {
    match execution.state.job(value.job_key) {
        Some(job) if job.value.retries <= 0 => Err(Rejection::invalid_state(format!(
            "Expected to resolve incident with key '{key}' of job '{}', but the job has no retries left; \
             update the retries of the job first",
            value.job_key
        ))),
        _ => Ok(()),
    }
}
