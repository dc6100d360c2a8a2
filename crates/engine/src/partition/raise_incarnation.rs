//! INCARNATION RAISE: the partition's data was restored, and begins another life.
//!
//! What happened between the backup and its restoring is gone, but others may remember it: keys and positions of it are not
//! given away again, and no partition takes commands of the old life for those of the new one.

use protocol::{IncarnationIntent, IncarnationValue, Key, Payload, Rejection};

use crate::execution::{Execution, Outcome};

pub(crate) fn raise(execution: &mut Execution<'_>, value: &IncarnationValue) -> Outcome {
    let incarnation = execution.state.counters.incarnation;
    if value.incarnation <= incarnation {
        return Err(Rejection::invalid_state(format!(
            "Expected to raise the incarnation of the partition to {}, but it is at incarnation {incarnation} already; take a higher \
             number than any life of its data had",
            value.incarnation
        ))
        .into());
    }
    if value.key_counter >= Key::LAST_COUNTER || value.position >= u64::MAX / 2 {
        return Err(Rejection::invalid_argument(format!(
            "Expected to go on behind key counter {} and position {}, but there would be none left",
            value.key_counter, value.position
        ))
        .into());
    }
    let raised = Payload::Incarnation(IncarnationIntent::Raised, Box::new(*value));
    execution.emit(Key::NONE, raised.clone());
    execution.reply(Key::NONE, raised);
    Ok(())
}
