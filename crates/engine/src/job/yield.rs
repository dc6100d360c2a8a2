//! JOB YIELD: a job that could not be delivered is given back; its retries stay.

use protocol::{JobIntent, Key, Rejection};

use crate::execution::{Execution, Outcome};
use crate::state::JobState;

pub(crate) fn r#yield(execution: &mut Execution<'_>, key: Key) -> Outcome {
    let job = super::find(execution, key, "yield")?;
    if job.state != JobState::Activated {
        return Err(Rejection::invalid_state(format!(
            "Expected to yield activated job with key '{key}', but it is in state '{}'",
            job.state.name()
        ))
        .into());
    }
    let (payload, queue) = super::emit_available(execution, key, JobIntent::Yielded, (*job.value).clone());
    execution.reply(key, payload);
    super::delivery::deliver(execution, &queue);
    Ok(())
}
