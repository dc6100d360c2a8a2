//! JOB FAIL: the work could not be done; it is tried again, or becomes an incident.

use std::sync::Arc;

use protocol::{ErrorType, JobIntent, JobKind, JobValue, Key, Payload, Rejection};

use crate::execution::problem::Problem;
use crate::execution::{Execution, Outcome};
use crate::incident;
use crate::job::delivery;
use crate::variable::document::{self, Reach};

pub(crate) fn fail(execution: &mut Execution<'_>, key: Key, command: &JobValue) -> Outcome {
    let job = super::find(execution, key, "fail")?;
    super::check_workable(key, &job, "fail")?;
    let variables = document::split(&command.variables, execution.limits.name_bytes_max)?;
    document::check_room(execution, job.value.element_instance_key, &variables, Reach::Local)
        .map_err(Rejection::invalid_state)?;
    let mut failed = JobValue {
        retries: command.retries,
        retry_backoff: command.retry_backoff.max(0),
        error_message: super::error_message(execution, command),
        variables: command.variables.clone(),
        deadline: -1,
        recurring_time: -1,
        ..(*job.value).clone()
    };
    drop(job);
    let element = failed.element_instance_key;
    if failed.retries > 0 && failed.retry_backoff == 0 {
        let (payload, queue) = super::emit_available(execution, key, JobIntent::Failed, failed);
        execution.reply(key, payload);
        document::set_local(execution, element, variables);
        delivery::deliver(execution, &queue);
        return Ok(());
    }
    if failed.retries > 0 {
        failed.recurring_time = execution.timestamp.saturating_add(failed.retry_backoff);
    }
    let failed = Arc::new(failed);
    let payload = Payload::Job(JobIntent::Failed, failed.clone());
    execution.emit(key, payload.clone());
    execution.reply(key, payload);
    document::set_local(execution, element, variables);
    if failed.retries <= 0 {
        let message = if failed.error_message.is_empty() { "No more retries left." } else { &failed.error_message };
        let error_type = match failed.job_kind {
            JobKind::BpmnElement => ErrorType::JobNoRetries,
            JobKind::ExecutionListener => ErrorType::ExecutionListenerNoRetries,
            JobKind::TaskListener => ErrorType::TaskListenerNoRetries,
            JobKind::AdHocSubProcess => ErrorType::AdHocSubProcessNoRetries,
        };
        incident::raise_for_job(execution, key, &failed, Problem::new(error_type, message));
    }
    Ok(())
}
