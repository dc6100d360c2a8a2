//! Execution listeners: jobs that run before the work of an element begins and after it is done.

use bpmn::model::Listener;
use protocol::{JobKind, JobValue, Key, Rejection};

use super::{create, evaluate};
use crate::execution::problem::Problem;
use crate::execution::step::Step;
use crate::execution::token::Token;
use crate::execution::{Execution, Outcome};
use crate::state::Lifecycle;
use crate::variable::document::{self, Entry, Reach};

/// Creates the job of the listener that comes after those that are done. Returns whether there is one.
pub(crate) fn begin_next(
    execution: &mut Execution<'_>,
    token: &Token,
    listeners: &[Listener],
    done: u32,
) -> Result<bool, Problem> {
    let Some(listener) = listeners.get(done as usize) else { return Ok(false) };
    let job = evaluate(execution, token, JobKind::ExecutionListener, listener)?;
    create(execution, job);
    Ok(true)
}

/// There is room for the variables. Refuses before anything changes.
pub(crate) fn check_completion(execution: &Execution<'_>, job: &JobValue, variables: &[Entry]) -> Outcome {
    if let Some((scope, _)) = goes_on(execution, job) {
        document::check_room(execution, scope, variables, Reach::Local).map_err(Rejection::invalid_state)?;
    }
    Ok(())
}

/// Its variables are set, and the element goes on where it stopped.
pub(crate) fn job_completed(execution: &mut Execution<'_>, job: &JobValue, variables: Vec<Entry>) {
    if let Some((scope, step)) = goes_on(execution, job) {
        document::set_local(execution, scope, variables);
        execution.steps.push_back(step);
    }
}

/// Where the variables of a listener go, and how its element goes on. When it begins they are its own; when its work is done,
/// they belong to what encloses it, which for a process is itself.
fn goes_on(execution: &Execution<'_>, job: &JobValue) -> Option<(Key, Step)> {
    let key = job.element_instance_key;
    let instance = execution.state.element_instance(key)?;
    let enclosing = instance.value.flow_scope_key;
    match instance.lifecycle {
        Lifecycle::Activating => Some((key, Step::ContinueActivation { key })),
        Lifecycle::Completing if enclosing.is_none() => Some((key, Step::Complete { key })),
        Lifecycle::Completing => Some((enclosing, Step::Complete { key })),
        Lifecycle::Activated | Lifecycle::Terminating => None,
    }
}
