//! CLOCK RESET: the clock of the cluster goes with that of its leader again.

use protocol::{ClockIntent, ClockValue, Key, Payload};

use crate::execution::{Execution, Outcome};

pub(crate) fn reset(execution: &mut Execution<'_>) -> Outcome {
    let reset = Payload::Clock(ClockIntent::Resetted, ClockValue::default());
    execution.emit(Key::NONE, reset.clone());
    execution.reply(Key::NONE, reset);
    Ok(())
}
