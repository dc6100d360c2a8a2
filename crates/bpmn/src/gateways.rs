//! The events that an event-based gateway waits for.

use std::collections::BTreeSet;

use roxmltree::Node;

use crate::draft::Draft;
use crate::model::{Behavior, ElementIndex, ElementType, SequenceFlow};
use crate::report::Problems;

/// Tells every event-based gateway the events behind it.
pub(crate) fn connect_events(draft: &mut Draft, flows: &[SequenceFlow], problems: &mut Problems) {
    let gateways: Vec<ElementIndex> = draft
        .elements_with_indexes()
        .filter(|(_, element)| matches!(element.behavior, Behavior::EventBasedGateway { .. }))
        .map(|(index, _)| index)
        .collect();
    for gateway in gateways {
        let outgoing = &draft.element(gateway).outgoing;
        let events: Vec<ElementIndex> = outgoing.iter().map(|flow| flows[flow.0 as usize].target).collect();
        let node = draft.node(gateway);
        if events.len() < 2 {
            problems.add_for_new(
                node,
                format!(
                    "Event-based gateway must have at least 2 outgoing sequence flows, but has {}. Connect it to the events \
                     of which the first is to be taken.",
                    events.len()
                ),
            );
        }
        for event in BTreeSet::from_iter(events.iter().copied()) {
            check_event(draft, flows, gateway, event, node, problems);
        }
        draft.element_mut(gateway).behavior = Behavior::EventBasedGateway { events };
    }
}

fn check_event(
    draft: &Draft,
    flows: &[SequenceFlow],
    gateway: ElementIndex,
    event: ElementIndex,
    node: Node,
    problems: &mut Problems,
) {
    let target = draft.element(event);
    match target.behavior {
        Behavior::IntermediateCatchEvent(_) => {}
        // It has already been reported.
        Behavior::PassThrough if target.element_type == ElementType::IntermediateCatchEvent => return,
        _ => {
            problems.add(
                node,
                format!(
                    "Event-based gateway must not have an outgoing sequence flow to other elements than \
                     message/timer/signal/conditional intermediate catch events, but one leads to '{}'. Put such an event in \
                     between.",
                    target.id
                ),
            );
            return;
        }
    }
    if target.incoming.iter().any(|flow| flows[flow.0 as usize].source != gateway) {
        problems.add_for_new(
            node,
            format!(
                "Target elements of an event gateway must not have any additional incoming sequence flows other than that \
                 from the event gateway, but '{}' has. Remove the other flows, or draw another event for them.",
                target.id
            ),
        );
    }
}
