//! CLOCK PIN: the clock of the cluster stands still, also for the next leader and after a restart.

use protocol::{ClockIntent, ClockValue, Key, Payload, Rejection};

use crate::execution::{Execution, Outcome};

pub(crate) fn pin(execution: &mut Execution<'_>, value: ClockValue) -> Outcome {
    if value.time < 0 {
        return Err(Rejection::invalid_argument(format!(
            "Expected pin time to be not negative but it was {}",
            value.time
        ))
        .into());
    }
    let pinned = Payload::Clock(ClockIntent::Pinned, value);
    execution.emit(Key::NONE, pinned.clone());
    execution.reply(Key::NONE, pinned);
    Ok(())
}
