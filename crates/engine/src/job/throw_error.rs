//! JOB THROW_ERROR: the work ended in a BPMN error.

use std::sync::Arc;

use protocol::{JobIntent, JobKind, JobValue, Key, Payload, Rejection};

use crate::event::{self, catch};
use crate::execution::{Execution, Outcome};
use crate::incident;
use crate::state::NO_CATCH_EVENT_FOUND;
use crate::variable::document;

pub(crate) fn throw_error(execution: &mut Execution<'_>, key: Key, command: &JobValue) -> Outcome {
    let job = super::find(execution, key, "throw an error for")?;
    super::check_workable(key, &job, "throw an error for")?;
    if let JobKind::ExecutionListener | JobKind::TaskListener = job.value.job_kind {
        return Err(Rejection::invalid_state(format!(
            "Expected to throw an error for job with key '{key}', but it is of the kind '{}', and what listens to an element throws \
             no errors for it; fail the job instead",
            job.value.job_kind.name()
        ))
        .into());
    }
    document::split(&command.variables, execution.limits.name_bytes_max)?;
    let thrown = Arc::new(JobValue {
        error_code: command.error_code.clone(),
        error_message: super::error_message(execution, command),
        variables: command.variables.clone(),
        deadline: -1,
        ..(*job.value).clone()
    });
    let found = catch::find_error(execution, thrown.element_instance_key, &thrown.error_code, &thrown.error_message)?;
    if let Ok(catcher) = &found
        && !event::can_trigger(&execution.state, &catcher.scope.instance, catcher.is_boundary_event())
    {
        return Err(Rejection::invalid_state(format!(
            "Expected to throw an error for job with key '{key}', but '{}', which would catch it, is being interrupted already",
            catcher.scope.element().id
        ))
        .into());
    }
    let event = match &found {
        Ok(_) => thrown.clone(),
        Err(_) => Arc::new(JobValue { element_id: NO_CATCH_EVENT_FOUND.into(), ..(*thrown).clone() }),
    };
    let payload = Payload::Job(JobIntent::ErrorThrown, event);
    execution.emit(key, payload.clone());
    execution.reply(key, payload);
    match found {
        Ok(catcher) => event::trigger(execution, &catcher.scope, catcher.event, thrown.variables.clone()),
        Err(problem) => incident::raise_for_job(execution, key, &thrown, problem),
    }
    Ok(())
}
