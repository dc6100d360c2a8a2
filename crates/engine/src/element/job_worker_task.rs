//! Tasks whose work is done by job workers.

use std::sync::Arc;

use bpmn::model::JobDefinition;
use protocol::{ErrorType, JobIntent, JobKind, JobValue, Payload, Text};

use super::linked_resources;
use crate::execution::Execution;
use crate::execution::problem::Problem;
use crate::execution::token::Token;
use crate::job::delivery::JobQueue;
use crate::name::key_bytes;
use crate::variable::expression;

/// The job of a task, evaluated; creating it cannot fail any more.
pub(crate) fn evaluate(
    execution: &Execution<'_>,
    token: &Token,
    definition: &JobDefinition,
) -> Result<JobValue, Problem> {
    let job_type: Text = expression::text(execution, token.key, &definition.job_type)?.into();
    if job_type.is_empty() || key_bytes(&job_type) > execution.limits.name_bytes_max {
        return Err(Problem::new(
            ErrorType::ExtractValueError,
            format!(
                "Expected the job type of '{}' to have 1 to {} bytes, but it has {}",
                token.element().id,
                execution.limits.name_bytes_max,
                key_bytes(&job_type)
            ),
        ));
    }
    let retries = expression::integer(execution, token.key, &definition.retries)?;
    let retries = i32::try_from(retries).map_err(|_| {
        Problem::new(
            ErrorType::ExtractValueError,
            format!("Expected the retries of '{}' to be a 32-bit number, but they are {retries}", token.element().id),
        )
    })?;
    let headers = linked_resources::add(execution, token, &definition.headers, &definition.linked_resources)?;
    Ok(job_of(token, job_type, retries, headers))
}

/// The job of the element.
pub(crate) fn job_of(token: &Token, job_type: Text, retries: i32, custom_headers: Text) -> JobValue {
    let value = token.value();
    JobValue {
        job_type,
        custom_headers,
        retries,
        recurring_time: -1,
        deadline: -1,
        timeout: -1,
        element_id: value.element_id.clone(),
        element_instance_key: token.key,
        bpmn_process_id: value.bpmn_process_id.clone(),
        process_definition_version: value.version,
        process_definition_key: value.process_definition_key,
        job_kind: JobKind::BpmnElement,
        tags: value.tags.clone(),
        business_id: value.business_id.clone(),
        process_instance_key: value.process_instance_key,
        tenant_id: value.tenant_id.clone(),
        ..JobValue::default()
    }
}

/// Creates the job and answers where it waits.
pub(crate) fn create_job(execution: &mut Execution<'_>, job: JobValue) -> JobQueue {
    let queue = JobQueue::of(&job);
    let had_jobs = queue.has_jobs(&execution.state);
    let key = execution.state.next_key();
    execution.emit(key, Payload::Job(JobIntent::Created, Arc::new(job)));
    queue.after_insertion(had_jobs)
}
