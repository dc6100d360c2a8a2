//! Which catch events wait while an element is active.

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
