//! JOB THROW_ERROR: the work ended in a BPMN error.

use std::sync::Arc;

use protocol::{ErrorType, JobIntent, JobValue, Key, Payload};

use crate::execution::{Execution, Outcome};
use crate::incident::{self, Problem};
use crate::variable::document;

pub(crate) fn throw_error(execution: &mut Execution<'_>, key: Key, command: &JobValue) -> Outcome {
    let job = super::find(execution, key, "throw an error for")?;
    super::check_workable(key, &job, "throw an error for")?;
    document::split(&command.variables, execution.limits.name_bytes_max)?;
    let thrown = Arc::new(JobValue {
        error_code: command.error_code.clone(),
        error_message: command.error_message.clone(),
        variables: command.variables.clone(),
        deadline: -1,
        ..(*job.value).clone()
    });
    let payload = Payload::Job(JobIntent::ErrorThrown, thrown.clone());
    execution.emit(key, payload.clone());
    execution.reply(key, payload);
    // No element that this version executes can catch an error.
    let message = format!(
        "Expected to throw an error event with the code '{}'{}, but it was not caught. No error events are available in the scope.",
        thrown.error_code,
        if thrown.error_message.is_empty() {
            String::new()
        } else {
            format!(" with message '{}'", thrown.error_message)
        },
    );
    incident::raise_for_job(execution, key, &thrown, Problem::new(ErrorType::UnhandledErrorEvent, message));
    Ok(())
}
