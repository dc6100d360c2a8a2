//! Events of what ad-hoc sub-processes were told.

use protocol::{AdHocSubProcessInstructionIntent, AdHocSubProcessInstructionValue};

use super::change::{change_element, not_an_event};
use crate::state::State;

pub(super) fn apply(
    state: &mut State,
    intent: AdHocSubProcessInstructionIntent,
    value: &AdHocSubProcessInstructionValue,
) {
    match intent {
        // What begins has events of its own.
        AdHocSubProcessInstructionIntent::Activated => {}
        AdHocSubProcessInstructionIntent::Completed => {
            change_element(state, value.ad_hoc_sub_process_instance_key.raw(), |instance| {
                instance.is_completion_condition_fulfilled = true;
            });
        }
        AdHocSubProcessInstructionIntent::Activate | AdHocSubProcessInstructionIntent::Complete => {
            not_an_event(state, intent.name());
        }
    }
}
