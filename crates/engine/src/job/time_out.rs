//! JOB TIME_OUT: the activation ended without an answer from the worker.

use protocol::{JobIntent, Key, Rejection};

use crate::execution::{Execution, Outcome};
use crate::state::JobState;

pub(crate) fn time_out(execution: &mut Execution<'_>, key: Key) -> Outcome {
    if super::is_cancelled_as_banned(execution, key) {
        return Ok(());
    }
    let job = super::find(execution, key, "time out")?;
    if job.state != JobState::Activated || job.value.deadline > execution.timestamp {
        return Err(Rejection::invalid_state(format!(
            "Expected to time out activated job with key '{key}', but it is in state '{}' until {}",
            job.state.name(),
            job.value.deadline
        ))
        .into());
    }
    super::make_available(execution, key, JobIntent::TimedOut, (*job.value).clone());
    Ok(())
}
