//! FEATURE_LEVEL RAISE: from now on commands are processed by the rules of a newer level.

use protocol::{FeatureLevelIntent, FeatureLevelValue, Key, Payload, Rejection};

use crate::execution::{Execution, Outcome};

pub(crate) fn raise(execution: &mut Execution<'_>, value: FeatureLevelValue) -> Outcome {
    let level = execution.state.counters.feature_level;
    if value.level <= level.number() {
        return Err(Rejection::invalid_state(format!(
            "Expected to raise the feature level of the partition to {}, but it is at level {level} already, and a level is never \
             lowered",
            value.level
        ))
        .into());
    }
    let raised = Payload::FeatureLevel(FeatureLevelIntent::Raised, value);
    execution.emit(Key::NONE, raised.clone());
    execution.reply(Key::NONE, raised);
    Ok(())
}
