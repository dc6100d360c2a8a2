//! What undoes what: compensation boundary events with their handlers, and the activities that throw events name.

use std::collections::HashMap;

use roxmltree::Node;

use crate::draft::Draft;
use crate::events;
use crate::model::{Behavior, ElementIndex, ElementType, SequenceFlow};
use crate::report::Problems;
use crate::roots::local_part;
use crate::vocabulary::{self, NodeKind};
use crate::xml::{is_bpmn, is_true_or_absent, present};

/// A throw event always waits until everything is undone.
pub(crate) fn check_waits(node: Node, kind: NodeKind, definition: Node, problems: &mut Problems) {
    if is_true_or_absent(definition, "waitForCompletion") {
        return;
    }
    let event = if kind == NodeKind::EndEvent { "end event" } else { "intermediate throwing event" };
    problems.add(
        node,
        format!(
            "A compensation {event} waitForCompletion attribute must be true or not present. The event waits until all \
             handlers have completed: remove the attribute."
        ),
    );
}

/// Leads compensation boundary events to their handlers and throw events to the activities that they name. `flows` are
/// connected already.
pub(crate) fn connect(draft: &mut Draft, flows: &[SequenceFlow], problems: &mut Problems) {
    let indexes: Vec<ElementIndex> = draft.elements_with_indexes().map(|(index, _)| index).collect();
    let mut associations = None;
    for index in indexes {
        match draft.element(index).behavior {
            Behavior::CompensationBoundaryEvent { attached_to, .. } => {
                let associations = associations.get_or_insert_with(|| associations_of(draft.node(index)));
                let handler = handler_of(draft, index, associations, problems).unwrap_or(attached_to);
                draft.element_mut(index).behavior = Behavior::CompensationBoundaryEvent { attached_to, handler };
            }
            Behavior::CompensationThrowEvent { .. } => {
                let activity = referenced_activity(draft, index, problems);
                draft.element_mut(index).behavior = Behavior::CompensationThrowEvent { activity };
            }
            _ => {}
        }
        check_handler(draft, index, flows, problems);
    }
}

/// The targets of the associations in the file, by their sources; the first of several.
fn associations_of<'a>(node: Node<'a, '_>) -> HashMap<&'a str, &'a str> {
    let mut associations = HashMap::new();
    for association in node.document().descendants().filter(|node| is_bpmn(*node, "association")) {
        if let (Some(source), Some(target)) = (present(association, "sourceRef"), present(association, "targetRef")) {
            associations.entry(local_part(source)).or_insert_with(|| local_part(target));
        }
    }
    associations
}

/// The handler of a compensation boundary event; `None` after a problem.
fn handler_of(
    draft: &Draft,
    boundary_event: ElementIndex,
    associations: &HashMap<&str, &str>,
    problems: &mut Problems,
) -> Option<ElementIndex> {
    let event = draft.element(boundary_event);
    let target = associations.get(&*event.id).and_then(|id| draft.index_by_id.get(id)).copied();
    let handler = target.filter(|index| vocabulary::is_activity(draft.element(*index).element_type));
    if handler.is_none() || !event.outgoing.is_empty() {
        problems.add(
            draft.node(boundary_event),
            "Compensation boundary events must have a compensation association and no outgoing sequence flows. Connect the \
             event with the activity that undoes what was done by an association, and by nothing else.",
        );
        return None;
    }
    handler
}

/// The activity that a compensation throw event names, if it does.
fn referenced_activity(draft: &Draft, throw_event: ElementIndex, problems: &mut Problems) -> Option<ElementIndex> {
    let definition = events::definitions(draft.node(throw_event)).next()?;
    let id = local_part(present(definition, "activityRef")?);
    let activity = draft.index_by_id.get(id).copied();
    let Some(activity) = activity.filter(|index| vocabulary::is_activity(draft.element(*index).element_type)) else {
        problems.add(
            definition,
            format!("The referenced compensation activity '{id}' doesn't exist. Choose an activity of the process."),
        );
        return None;
    };
    let element = draft.element(activity);
    let can_be_undone = is_embedded_sub_process(draft, activity)
        || element
            .boundary_events
            .iter()
            .any(|event| matches!(draft.element(*event).behavior, Behavior::CompensationBoundaryEvent { .. }));
    if !can_be_undone {
        problems.add(
            definition,
            format!(
                "The referenced compensation activity '{id}' must have either a compensation boundary event or be a \
                 subprocess. Attach a compensation boundary event to it."
            ),
        );
    }
    let scope = draft.element(throw_event).flow_scope;
    let around = scope.map(|scope| draft.element(scope));
    let around = around.filter(|scope| scope.element_type == ElementType::EventSubProcess);
    let is_in_reach =
        element.flow_scope == scope || around.is_some_and(|around| around.flow_scope == element.flow_scope);
    if !is_in_reach {
        problems.add(
            definition,
            format!(
                "The referenced compensation activity '{id}' must be in the same scope as the compensation throw event. Move \
                 the event to where its activity is."
            ),
        );
    }
    Some(activity)
}

fn is_embedded_sub_process(draft: &Draft, activity: ElementIndex) -> bool {
    let inner = match &draft.element(activity).behavior {
        Behavior::MultiInstanceBody(body) => body.inner,
        _ => activity,
    };
    draft.element(inner).element_type == ElementType::SubProcess
}

/// No token reaches a task that is a compensation handler, none leaves it, and nothing is attached to it.
fn check_handler(draft: &Draft, index: ElementIndex, flows: &[SequenceFlow], problems: &mut Problems) {
    let element = draft.element(index);
    let node = draft.node(index);
    let is_task = node.tag_name().name().ends_with("ask");
    if !element.is_for_compensation || !is_task || draft.index_by_id.get(&*element.id) != Some(&index) {
        return;
    }
    let ids = |flows_of: &[crate::model::FlowIndex]| {
        let ids: Vec<&str> = flows_of.iter().map(|flow| &*flows[flow.0 as usize].id).collect();
        ids.join(", ")
    };
    if !element.incoming.is_empty() {
        problems.add(
            node,
            format!(
                "A compensation handler should have no incoming sequence flows, but {} leads to it. It begins when its activity \
                 is to be undone: remove the flow.",
                ids(&element.incoming)
            ),
        );
    }
    if !element.outgoing.is_empty() {
        problems.add(
            node,
            format!(
                "A compensation handler should have no outgoing sequence flows, but {} leaves it. The event that throws \
                 continues: remove the flow.",
                ids(&element.outgoing)
            ),
        );
    }
    if !element.boundary_events.is_empty() {
        problems.add(
            node,
            format!(
                "A compensation handler should have no boundary events, but {} is attached to it. Remove it.",
                draft.ids(&element.boundary_events)
            ),
        );
    }
}
