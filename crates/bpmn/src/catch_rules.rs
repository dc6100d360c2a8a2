//! Events that would compete for the same message, signal, condition, error or escalation.
//!
//! Of the events that wait at the same time in one scope, each must catch something else: otherwise it would be chance
//! which of them is triggered.

use std::collections::{BTreeMap, HashSet};

use roxmltree::Node;

use crate::draft::Draft;
use crate::events::message_reference;
use crate::model::{Behavior, ElementIndex, PROCESS, StaticOrExpression, Trigger};
use crate::report::Problems;

/// Reports events of one scope if several would catch the same.
pub(crate) fn check(draft: &Draft, problems: &mut Problems) {
    for (index, element) in draft.elements_with_indexes() {
        let node = draft.node(index);
        check_events(draft, node, &element.boundary_events, problems);
        check_receive_task(draft, index, problems);
        let starts: Vec<ElementIndex> = element
            .event_sub_processes
            .iter()
            .filter_map(|sub_process| match draft.element(*sub_process).behavior {
                Behavior::EventSubProcess { start_event } => Some(start_event),
                _ => None,
            })
            .collect();
        check_events(draft, node, &starts, problems);
        check_conditions(draft, node, &starts, problems);
        if let Behavior::EventBasedGateway { events } = &element.behavior {
            check_events(draft, node, events, problems);
        }
    }
    check_process_starts(draft, problems);
}

/// What an event catches, so that equal ones compete.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Caught<'a> {
    /// The name, and whether it is an expression.
    Message(&'a str, bool),
    Signal(&'a str, bool),
    Error(Option<&'a str>),
    Escalation(Option<&'a str>),
}

impl<'a> Caught<'a> {
    fn by(trigger: &'a Trigger) -> Option<Self> {
        match trigger {
            Trigger::Timer(_) | Trigger::Condition(_) => None,
            Trigger::Message(message) => Some(Self::named(&message.name, Self::Message)),
            Trigger::Signal(signal) => Some(Self::named(&signal.name, Self::Signal)),
            Trigger::Error { code } => Some(Self::Error(code.as_deref())),
            Trigger::Escalation { code } => Some(Self::Escalation(code.as_deref())),
        }
    }

    /// Expressions compete when they have the same text; what they evaluate to is not known yet.
    fn named(name: &'a StaticOrExpression, caught: fn(&'a str, bool) -> Self) -> Self {
        match name {
            StaticOrExpression::Static(name) => caught(name, false),
            StaticOrExpression::Expression(expression) => caught(expression.text(), true),
        }
    }

    /// `ids` compete for this.
    fn problem(&self, ids: &str) -> String {
        match self {
            Self::Message(name, is_expression) => format!(
                "Multiple message event definitions with the same name '{}{name}' are not allowed, but {ids} have it. Give \
                 each its own message name, or keep one of them.",
                if *is_expression { "=" } else { "" }
            ),
            Self::Signal(name, is_expression) => format!(
                "Multiple signal event definitions with the same name '{}{name}' are not allowed, but {ids} have it. Give \
                 each its own signal name, or keep one of them.",
                if *is_expression { "=" } else { "" }
            ),
            Self::Error(Some(code)) => format!(
                "Multiple error catch events with the same error code '{code}' are not supported on the same scope, but \
                 {ids} have it. Give each its own code, or keep one of them."
            ),
            Self::Error(None) => format!(
                "The same scope can not contain more than one error catch event without error code, but {ids} have none. \
                 Such an event catches all errors: give each its own code, or keep one of them."
            ),
            Self::Escalation(Some(code)) => format!(
                "Multiple escalation catch events with the same escalation code '{code}' are not supported on the same \
                 scope, but {ids} have it. Give each its own code, or keep one of them."
            ),
            Self::Escalation(None) => format!(
                "The same scope can not contain more than one escalation catch event without escalation code, but {ids} \
                 have none. Such an event catches all escalations: give each its own code, or keep one of them."
            ),
        }
    }
}

fn check_events(draft: &Draft, place: Node, events: &[ElementIndex], problems: &mut Problems) {
    let mut by_caught: BTreeMap<Caught, Vec<ElementIndex>> = BTreeMap::new();
    for &index in events {
        let event = draft.element(index).catch_event();
        if let Some(caught) = event.and_then(|event| Caught::by(&event.trigger)) {
            by_caught.entry(caught).or_default().push(index);
        }
    }
    for (caught, events) in by_caught.into_iter().filter(|(_, events)| events.len() > 1) {
        problems.add_for_new(place, caught.problem(&draft.ids(&events)));
    }
}

/// Start events of a process that refer to one and the same message are reported at the message.
fn check_process_starts(draft: &Draft, problems: &mut Problems) {
    if draft.elements.is_empty() {
        return;
    }
    let mut messages = HashSet::new();
    let starts: Vec<ElementIndex> = draft
        .elements_with_indexes()
        .filter(|(_, element)| {
            element.flow_scope == Some(PROCESS) && matches!(element.behavior, Behavior::StartEvent(_))
        })
        .map(|(index, _)| index)
        .filter(|index| message_reference(draft.node(*index)).is_none_or(|message| messages.insert(message)))
        .collect();
    check_events(draft, draft.node(PROCESS), &starts, problems);
    check_conditions(draft, draft.node(PROCESS), &starts, problems);
}

/// Start events with one condition would always come together. Events at a border or behind a gateway may, as on the reference
/// engine.
fn check_conditions(draft: &Draft, place: Node, starts: &[ElementIndex], problems: &mut Problems) {
    let mut by_condition: BTreeMap<&str, Vec<ElementIndex>> = BTreeMap::new();
    for &index in starts {
        let event = draft.element(index).catch_event();
        if let Some(Trigger::Condition(definition)) = event.map(|event| &event.trigger) {
            by_condition.entry(&definition.text).or_default().push(index);
        }
    }
    for (condition, events) in by_condition.into_iter().filter(|(_, events)| events.len() > 1) {
        problems.add_for_new(
            place,
            format!(
                "Duplicate condition expression '{condition}' found in conditional start events: {} have it. Give each its own \
                 condition, or keep one of them.",
                draft.ids(&events)
            ),
        );
    }
}

fn check_receive_task(draft: &Draft, index: ElementIndex, problems: &mut Problems) {
    let element = draft.element(index);
    let task = match &element.behavior {
        Behavior::MultiInstanceBody(body) => draft.elements.get(body.inner.0 as usize),
        _ => Some(element),
    };
    let Some(Behavior::ReceiveTask(event)) = task.map(|task| &task.behavior) else {
        return;
    };
    let own = Caught::by(&event.trigger);
    for boundary_event in element.boundary_events.iter().map(|index| draft.element(*index)) {
        let caught = boundary_event.catch_event().and_then(|event| Caught::by(&event.trigger));
        if caught.is_some() && caught == own {
            problems.add_for_new(
                draft.node(index),
                format!(
                    "Cannot reference the same message name as a boundary event, but '{}' waits for it, too. Use another \
                     message for one of them.",
                    boundary_event.id
                ),
            );
        }
    }
}
