//! JOB RECUR_AFTER_BACKOFF: the wait after a failure is over.

use protocol::{JobIntent, Key, Rejection};

use crate::execution::{Execution, Outcome};
use crate::state::JobState;

pub(crate) fn recur(execution: &mut Execution<'_>, key: Key) -> Outcome {
    if super::is_cancelled_as_banned(execution, key) {
        return Ok(());
    }
    let job = super::find(execution, key, "make available again the")?;
    let due = job.value.recurring_time;
    if job.state != JobState::Failed || due < 0 || due > execution.timestamp {
        return Err(Rejection::invalid_state(format!(
            "Expected to end the back-off of job with key '{key}', but it is in state '{}' and its back-off ends at {due}",
            job.state.name()
        ))
        .into());
    }
    super::make_available(execution, key, JobIntent::RecurredAfterBackoff, (*job.value).clone());
    Ok(())
}
