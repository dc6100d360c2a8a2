//! Conditional start events: clients have their conditions evaluated, see [`super::evaluation`].

use bpmn::model::{ExecutableProcess, Trigger};
use protocol::{ConditionalSubscriptionIntent, ConditionalSubscriptionValue, Key, ProcessMetadata};

use super::subscription;
use crate::execution::Execution;
use crate::process_instance;

/// Opens the subscriptions of a version that became the newest.
pub(crate) fn open(execution: &mut Execution<'_>, metadata: &ProcessMetadata, process: &ExecutableProcess) {
    for start in &process.triggered_start_events {
        let start = process.element(*start);
        let Some(Trigger::Condition(definition)) = start.catch_event().map(|event| &event.trigger) else { continue };
        let of = process_instance::root_value(metadata, Key::NONE);
        let value = ConditionalSubscriptionValue {
            catch_event_id: (&start.id).into(),
            ..subscription::value_of(&of, definition)
        };
        let key = execution.state.next_key();
        subscription::emit(execution, key, ConditionalSubscriptionIntent::Created, value);
    }
}

/// Closes the subscriptions of a version that is no longer the newest.
pub(crate) fn close(execution: &mut Execution<'_>, definition: Key) {
    subscription::close(execution, definition, |_| true);
}
