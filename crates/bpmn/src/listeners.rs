//! Listeners of an element: `zeebe:executionListeners` and `zeebe:taskListeners`.
//!
//! Execution listeners of an activity that runs several times belong to each of its inner activities, not to the multi-instance
//! body.

use std::collections::BTreeSet;
use std::sync::Arc;

use roxmltree::Node;

use crate::draft::Draft;
use crate::extensions::{self, Extensions, zeebe_children};
use crate::model::{Behavior, Element, ElementIndex, ElementType, JobDefinition, Listener, ListenerEventType};
use crate::report::Problems;
use crate::xml::present;

/// The most listeners of an element that listen to one event.
pub const MAXIMUM_LISTENERS: usize = 100;

/// What listeners of a kind are called, and what they can listen to.
pub(crate) struct ListenerKind {
    /// The extension element of one.
    pub element: &'static str,
    /// How refusals begin that are about two alike.
    pub title: &'static str,
    /// The values of `eventType`, and what they mean.
    pub event_types: &'static [(&'static str, ListenerEventType)],
    /// What to listen to when nothing is said.
    pub default_event_type: Option<ListenerEventType>,
    /// Whether two may not have the same event type and job type.
    pub are_unique: bool,
}

/// `zeebe:executionListener`.
pub(crate) const EXECUTION_LISTENER: ListenerKind = ListenerKind {
    element: "executionListener",
    title: "execution listeners",
    event_types: &[("start", ListenerEventType::Start), ("end", ListenerEventType::End)],
    default_event_type: None,
    are_unique: true,
};

/// `zeebe:taskListener`, with the names of event types that the first models with listeners have.
pub(crate) const TASK_LISTENER: ListenerKind = ListenerKind {
    element: "taskListener",
    title: "task listeners",
    event_types: &[
        ("creating", ListenerEventType::Creating),
        ("assigning", ListenerEventType::Assigning),
        ("updating", ListenerEventType::Updating),
        ("completing", ListenerEventType::Completing),
        ("canceling", ListenerEventType::Canceling),
        ("create", ListenerEventType::Creating),
        ("assignment", ListenerEventType::Assigning),
        ("update", ListenerEventType::Updating),
        ("complete", ListenerEventType::Completing),
        ("cancel", ListenerEventType::Canceling),
    ],
    default_event_type: None,
    are_unique: false,
};

/// The listeners in `container`, in document order; those with a problem are left out.
/// Their headers are those of the element.
pub(crate) fn read<'a>(
    container: Node<'a, '_>,
    kind: &ListenerKind,
    headers: &Arc<str>,
    problems: &mut Problems,
) -> Vec<Listener> {
    let mut seen = BTreeSet::new();
    let mut listeners = Vec::new();
    for node in zeebe_children(container, kind.element) {
        let event_type = event_type(node, kind, problems);
        let job_type = extensions::job_type(node, problems);
        let retries = extensions::retries(node, problems);
        let Some(((event_type, job_type), retries)) = event_type.zip(job_type).zip(retries) else { continue };
        let text = node.attribute("type").unwrap_or_default();
        if kind.are_unique && !seen.insert((event_type, text)) {
            problems.add_for_new(
                container,
                format!(
                    "Must not have several {} with the event type '{}' and the type '{text}'. Keep one and remove the others.",
                    kind.title,
                    name_of(event_type, kind)
                ),
            );
        }
        let job = JobDefinition { job_type, retries, headers: headers.clone(), linked_resources: Vec::new() };
        listeners.push(Listener { event_type, job });
    }
    check_count(container, kind, &listeners, problems);
    listeners
}

/// Gives an element its execution listeners.
pub(crate) fn listen(draft: &mut Draft, index: ElementIndex, extensions: &Extensions, problems: &mut Problems) {
    let Some(container) = extensions.execution_listeners else { return };
    // Where the element itself has a job, what is wrong with the headers was told with that.
    let has_job = extensions.has_task_definition() || draft.element(index).element_type == ElementType::UserTask;
    let mut told_before = Problems::of_new_file();
    let headers = extensions.headers(if has_job { &mut told_before } else { &mut *problems });
    let headers = headers.unwrap_or_else(|| "{}".into());
    let listeners = read(container, &EXECUTION_LISTENER, &headers, problems);
    let (start, end): (Vec<_>, Vec<_>) =
        listeners.into_iter().partition(|listener| listener.event_type == ListenerEventType::Start);
    let element = draft.element(index);
    for (name, listeners) in [("start", &start), ("end", &end)] {
        if !listeners.is_empty() && !may_listen(element, name == "start") {
            problems.add_for_new(
                draft.node(index),
                format!(
                    "Execution listeners with the event type '{name}' are not supported by {}. Remove them.",
                    with_article(element)
                ),
            );
        }
    }
    let element = draft.element_mut(index);
    element.start_listeners = start;
    element.end_listeners = end;
}

/// What begins or ends in a moment that nobody can hold up has no listeners for it.
fn may_listen(element: &Element, at_start: bool) -> bool {
    match element.behavior {
        Behavior::ExclusiveGateway { .. }
        | Behavior::InclusiveGateway { .. }
        | Behavior::ParallelGateway
        | Behavior::EventBasedGateway { .. }
        | Behavior::ErrorEndEvent { .. } => at_start,
        Behavior::CompensationBoundaryEvent { .. } => false,
        _ => !at_start || !matches!(element.element_type, ElementType::StartEvent | ElementType::BoundaryEvent),
    }
}

fn with_article(element: &Element) -> &'static str {
    match (&element.behavior, element.element_type) {
        (Behavior::ErrorEndEvent { .. }, _) => "an error end event",
        (Behavior::CompensationBoundaryEvent { .. }, _) => "a compensation boundary event",
        (_, ElementType::StartEvent) => "a start event",
        (_, ElementType::BoundaryEvent) => "a boundary event",
        (_, ElementType::ExclusiveGateway) => "an exclusive gateway",
        (_, ElementType::InclusiveGateway) => "an inclusive gateway",
        (_, ElementType::ParallelGateway) => "a parallel gateway",
        _ => "an event-based gateway",
    }
}

fn check_count(container: Node, kind: &ListenerKind, listeners: &[Listener], problems: &mut Problems) {
    for (name, event_type) in kind.event_types {
        let count = listeners.iter().filter(|listener| listener.event_type == *event_type).count();
        if count > MAXIMUM_LISTENERS {
            problems.add_for_new(
                container,
                format!(
                    "Must have at most {MAXIMUM_LISTENERS} {} with the event type '{name}', but there are {count}. Let one worker do \
                     several things.",
                    kind.title
                ),
            );
        }
    }
}

fn name_of(event_type: ListenerEventType, kind: &ListenerKind) -> &'static str {
    let known = kind.event_types.iter().find(|(_, known)| *known == event_type);
    known.map_or("", |(name, _)| name)
}

fn event_type(node: Node, kind: &ListenerKind, problems: &mut Problems) -> Option<ListenerEventType> {
    let names = || kind.event_types.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    let Some(text) = present(node, "eventType") else {
        if kind.default_event_type.is_none() {
            problems.add(
                node,
                format!("Attribute 'eventType' must be present and not empty. Set it to one of: {}.", names()),
            );
        }
        return kind.default_event_type;
    };
    let known = kind.event_types.iter().find(|(name, _)| *name == text).map(|(_, event_type)| *event_type);
    if known.is_none() {
        problems.add(node, format!("Attribute 'eventType' must be one of {}, but is '{text}'.", names()));
    }
    known
}
