//! What belongs together inside a process or sub-process: start events, boundary events and links.

use std::collections::BTreeMap;

use crate::draft::Draft;
use crate::events::{self, is_none_event, link_name};
use crate::model::{Behavior, ElementIndex, ElementType, PROCESS, Trigger};
use crate::report::Problems;
use crate::roots::local_part;
use crate::vocabulary;
use crate::xml::present;

/// The start events of `scope`. The content of a scope follows it, so the search begins there.
fn start_events(draft: &Draft, scope: ElementIndex) -> Vec<ElementIndex> {
    draft
        .elements_with_indexes()
        .skip(scope.0 as usize)
        .filter(|(_, element)| element.flow_scope == Some(scope) && element.element_type == ElementType::StartEvent)
        .map(|(index, _)| index)
        .collect()
}

/// Finds the none start event of the process.
pub(crate) fn check_process_start(draft: &mut Draft, problems: &mut Problems) {
    let process = draft.node(PROCESS);
    let mut starts = start_events(draft, PROCESS);
    if starts.is_empty() {
        problems.add_for_new(process, "Must have at least one start event. Draw a none start event in the process.");
    }
    starts.retain(|index| is_none_event(draft.node(*index)));
    match starts.as_slice() {
        [] => {}
        [start] => set_none_start(draft, PROCESS, *start),
        _ => problems.add(
            process,
            format!(
                "Multiple none start events are not allowed, but there are {}: {}. Keep one and remove the others.",
                starts.len(),
                draft.ids(&starts)
            ),
        ),
    }
}

/// Finds the none start event of an embedded sub-process.
pub(crate) fn check_sub_process_start(draft: &mut Draft, sub_process: ElementIndex, problems: &mut Problems) {
    let starts = start_events(draft, sub_process);
    let node = draft.node(sub_process);
    match starts.as_slice() {
        [start] if is_none_event(draft.node(*start)) => set_none_start(draft, sub_process, *start),
        [_] => problems.add(
            node,
            "Start events in subprocesses must be of type none. Remove the event definition from the start event.",
        ),
        _ => problems.add(
            node,
            format!(
                "Must have exactly one start event, but there are {}. A sub-process begins at its one none start event.",
                starts.len()
            ),
        ),
    }
}

/// Finds the start event of an event sub-process. Whether it is of a fitting type was checked when it was read.
pub(crate) fn check_event_sub_process_start(draft: &mut Draft, sub_process: ElementIndex, problems: &mut Problems) {
    let starts = start_events(draft, sub_process);
    let node = draft.node(sub_process);
    match starts.as_slice() {
        [start] => draft.element_mut(sub_process).behavior = Behavior::EventSubProcess { start_event: *start },
        _ => problems.add(
            node,
            format!(
                "Must have exactly one start event, but there are {}. An event sub-process begins at its one start event.",
                starts.len()
            ),
        ),
    }
}

fn set_none_start(draft: &mut Draft, scope: ElementIndex, start: ElementIndex) {
    draft.element_mut(scope).behavior = Behavior::Container { none_start_event: Some(start) };
}

/// Tells boundary events and activities of each other.
pub(crate) fn attach_boundary_events(draft: &mut Draft, problems: &mut Problems) {
    let boundary_events: Vec<ElementIndex> = draft
        .elements_with_indexes()
        .filter(|(_, element)| element.element_type == ElementType::BoundaryEvent)
        .map(|(index, _)| index)
        .collect();
    for index in boundary_events {
        let Some(activity) = activity_of(draft, index, problems) else {
            continue;
        };
        draft.element_mut(activity).boundary_events.push(index);
        if let Behavior::BoundaryEvent { attached_to, .. } | Behavior::CompensationBoundaryEvent { attached_to, .. } =
            &mut draft.element_mut(index).behavior
        {
            *attached_to = activity;
        }
        check_escalation(draft, index, activity, problems);
    }
}

/// The activity that a boundary event is attached to; `None` after a problem.
fn activity_of(draft: &Draft, boundary_event: ElementIndex, problems: &mut Problems) -> Option<ElementIndex> {
    let node = draft.node(boundary_event);
    let Some(reference) = present(node, "attachedToRef") else {
        problems.add(
            node,
            "Must be attached to an activity. Move the event to the border of one (attribute 'attachedToRef').",
        );
        return None;
    };
    let id = local_part(reference);
    let activity = draft.index_by_id.get(id).copied();
    let Some(activity) = activity.filter(|index| vocabulary::is_activity(draft.element(*index).element_type)) else {
        problems.add(
            node,
            format!(
                "Must be attached to an activity, but the process has no task, call activity or embedded sub-process with \
                 the id '{id}'. Move the event to the border of one."
            ),
        );
        return None;
    };
    if draft.element(activity).flow_scope != draft.element(boundary_event).flow_scope {
        problems.add(
            node,
            format!(
                "Must be attached to an activity of the same process or sub-process, but '{id}' is in a different one. Move \
                 the event to where its activity is."
            ),
        );
        return None;
    }
    Some(activity)
}

fn check_escalation(draft: &Draft, boundary_event: ElementIndex, activity: ElementIndex, problems: &mut Problems) {
    let is_escalation = draft
        .element(boundary_event)
        .catch_event()
        .is_some_and(|event| matches!(event.trigger, Trigger::Escalation { .. }));
    let inner = match &draft.element(activity).behavior {
        Behavior::MultiInstanceBody(body) => body.inner,
        _ => activity,
    };
    if is_escalation && !draft.is_unsupported(activity) && !events::can_escalate(draft.element(inner).element_type) {
        problems.add_for_new(
            draft.node(boundary_event),
            "An escalation boundary event should only be attached to a subprocess, or a call activity. No escalation comes \
             out of another activity: move or remove the event.",
        );
    }
}

/// Leads every link throw event to the catch event of its name in its scope.
pub(crate) fn connect_links(draft: &mut Draft, problems: &mut Problems) {
    let mut catch_events = BTreeMap::new();
    let mut throw_events = Vec::new();
    for (index, element) in draft.elements_with_indexes() {
        let node = draft.node(index);
        let (Some(scope), Some(name)) = (element.flow_scope, link_name(node)) else {
            continue;
        };
        match element.behavior {
            Behavior::LinkCatchEvent => {
                if let Some(first) = catch_events.insert((scope, name), index) {
                    problems.add(
                        draft.node(scope),
                        format!(
                            "Multiple intermediate catch link event definitions with the same name '{name}' are not allowed, \
                             but '{}' and '{}' have it. Keep one, or give the other another name.",
                            draft.element(first).id,
                            element.id
                        ),
                    );
                }
            }
            Behavior::LinkThrowEvent { .. } => throw_events.push((index, scope, name)),
            _ => {}
        }
    }
    for (index, scope, name) in throw_events {
        match catch_events.get(&(scope, name)) {
            Some(&target) => draft.element_mut(index).behavior = Behavior::LinkThrowEvent { target },
            None => problems.add(
                draft.node(index),
                format!(
                    "Can't find an catch link event for the throw link event with the name '{name}' in the same process or \
                     sub-process. Draw one with this name there, or correct the name."
                ),
            ),
        }
    }
}
