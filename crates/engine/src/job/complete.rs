//! JOB COMPLETE: the work is done.

use std::sync::Arc;

use protocol::{JobIntent, JobValue, Key, Payload};

use crate::element::Step;
use crate::execution::{Execution, Outcome};
use crate::variable::document;

pub(crate) fn complete(execution: &mut Execution<'_>, key: Key, command: &JobValue) -> Outcome {
    let job = super::find(execution, key, "complete")?;
    super::check_workable(key, &job, "complete")?;
    // Refused here rather than as an incident later, because the worker can fix it.
    document::split(&command.variables, execution.limits.name_bytes_max)?;
    let completed = JobValue { variables: command.variables.clone(), ..(*job.value).clone() };
    let element = completed.element_instance_key;
    let payload = Payload::Job(JobIntent::Completed, Arc::new(completed));
    execution.emit(key, payload.clone());
    execution.reply(key, payload);
    execution.steps.push_back(Step::Complete { key: element });
    Ok(())
}
