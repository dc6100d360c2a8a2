//! Listeners: jobs that do something besides the work of an element, before it goes on.

pub(crate) mod execution;

use bpmn::model::Listener;
use protocol::{JobKind, JobListenerEventType, JobValue};

use crate::element::{create_job, evaluate_job};
use crate::execution::Execution;
use crate::execution::problem::Problem;
use crate::execution::token::Token;
use crate::job::delivery;

/// The job of a listener, evaluated; creating it cannot fail any more.
pub(crate) fn evaluate(
    execution: &Execution<'_>,
    token: &Token,
    kind: JobKind,
    listener: &Listener,
) -> Result<JobValue, Problem> {
    let job = evaluate_job(execution, token, &listener.job)?;
    Ok(JobValue { job_kind: kind, job_listener_event_type: listener.event_type, ..job })
}

/// Creates the job of a listener and hands it out.
pub(crate) fn create(execution: &mut Execution<'_>, job: JobValue) {
    debug_assert_ne!(job.job_listener_event_type, JobListenerEventType::Unspecified, "only listeners have such jobs");
    let queue = create_job(execution, job);
    delivery::deliver(execution, &queue);
}
