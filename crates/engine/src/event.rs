//! Events: what waits for them, and what happens when they come.
//!
//! A catch event belongs to a scope: the element instance that opens its subscription. That is the event's own instance
//! (intermediate catch event, receive task), the event-based gateway before it, the activity it is attached to
//! (boundary event), or the enclosing process or sub-process (start event of an event sub-process).

pub(crate) mod catch;
mod subscribe;
mod trigger;

pub(crate) use subscribe::{subscribe, subscribe_only, unsubscribe, unsubscribe_event_sub_processes};
pub(crate) use trigger::{
    activate, bring_result, can_trigger, find_boundary_trigger, find_interrupting_trigger, find_trigger, trigger,
    trigger_process,
};

use bpmn::model::{Behavior, ElementIndex, ExecutableProcess};

/// The catch events that wait while an element is active, each once, in the order in which the reference engine opens them:
/// starts of event sub-processes, then boundary events or the events behind a gateway, last in the document first.
pub(crate) fn events_of(process: &ExecutableProcess, element: ElementIndex) -> Vec<ElementIndex> {
    let definition = process.element(element);
    let starts = definition.event_sub_processes.iter();
    let mut events: Vec<ElementIndex> = starts.filter_map(|inner| process.start_event_of(*inner)).collect();
    match &definition.behavior {
        Behavior::IntermediateCatchEvent(_) | Behavior::ReceiveTask(_) => events.push(element),
        Behavior::EventBasedGateway { events: targets } => {
            for target in targets.iter().rev() {
                if !events.contains(target) {
                    events.push(*target);
                }
            }
        }
        _ => {}
    }
    events.extend(definition.boundary_events.iter().rev());
    events
}
