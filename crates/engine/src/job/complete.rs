//! JOB COMPLETE: the work is done.

use std::sync::Arc;

use protocol::{JobIntent, JobKind, JobValue, Key, Payload, Rejection};

use crate::element::ad_hoc_sub_process;
use crate::execution::step::Step;
use crate::execution::{Execution, Outcome};
use crate::listener;
use crate::user_task;
use crate::variable::document::{self, Reach};

pub(crate) fn complete(execution: &mut Execution<'_>, key: Key, command: &JobValue) -> Outcome {
    let job = super::find(execution, key, "complete")?;
    super::check_workable(key, &job, "complete")?;
    // Refused here rather than as an incident later, because the worker can fix it.
    let variables = document::split(&command.variables, execution.limits.name_bytes_max)?;
    let element = job.value.element_instance_key;
    let kind = job.value.job_kind;
    match kind {
        JobKind::BpmnElement => {}
        JobKind::ExecutionListener => listener::execution::check_completion(execution, &job.value, &variables)?,
        JobKind::TaskListener => {
            user_task::listener::check_completion(execution, key, &job.value, command.result.as_deref(), &variables)?;
        }
        JobKind::AdHocSubProcess => {
            document::check_room(execution, element, &variables, Reach::Outwards).map_err(Rejection::invalid_state)?;
            ad_hoc_sub_process::check_result(execution, element, command.result.as_deref())?;
        }
    }
    let has_result = matches!(kind, JobKind::AdHocSubProcess | JobKind::TaskListener);
    let result = if has_result { command.result.clone() } else { None };
    let completed = JobValue { variables: command.variables.clone(), result, ..(*job.value).clone() };
    let completed = Arc::new(completed);
    let payload = Payload::Job(JobIntent::Completed, completed.clone());
    execution.emit(key, payload.clone());
    execution.reply(key, payload);
    match kind {
        JobKind::BpmnElement => execution.steps.push_back(Step::Complete { key: element }),
        JobKind::ExecutionListener => listener::execution::job_completed(execution, &completed, variables),
        JobKind::TaskListener => user_task::listener::job_completed(execution, &completed)?,
        JobKind::AdHocSubProcess => ad_hoc_sub_process::job_completed(execution, &completed, variables)?,
    }
    Ok(())
}
