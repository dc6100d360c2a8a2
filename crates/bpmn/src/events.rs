//! What an event waits for or does, as its event definition says.

use std::sync::Arc;

use roxmltree::Node;

use crate::compensation;
use crate::conditions;
use crate::draft::Draft;
use crate::extensions::Extensions;
use crate::model::{
    Behavior, CatchEvent, ElementType, EventType, MessageDefinition, PROCESS, SignalDefinition, StaticOrExpression,
    Trigger,
};
use crate::names;
use crate::report::Problems;
use crate::roots::{Coded, Message, MessageUse, Reference, Signal, local_part};
use crate::timer_definitions::{self, TimerPlace};
use crate::vocabulary::{self, NodeKind};
use crate::xml::{BPMN_NAMESPACE, is_bpmn, is_in, is_true_or_absent, present};

/// The kind of scope that a start event belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StartPlace {
    Process,
    SubProcess,
    EventSubProcess,
}

/// The message about an event that has too many or too few definitions, or one of a wrong type.
struct Rule {
    types: &'static [EventType],
    /// `None` where an event needs no definition.
    missing: Option<&'static str>,
    several: &'static str,
    wrong_type: &'static str,
}

const PROCESS_START_EVENT: Rule = Rule {
    types: &[EventType::Timer, EventType::Message, EventType::Signal, EventType::Conditional],
    missing: None,
    several: "Start event can't have more than one type. Keep one event definition and remove the others.",
    wrong_type: "Start events of a process must be one of: none, message, timer, conditional or signal. Use one of them, or move \
                 the event into an event sub-process.",
};
const EVENT_SUB_PROCESS_START_EVENT: Rule = Rule {
    types: &[
        EventType::Timer,
        EventType::Message,
        EventType::Signal,
        EventType::Conditional,
        EventType::Error,
        EventType::Escalation,
    ],
    missing: Some(WRONG_START_OF_EVENT_SUB_PROCESS),
    several: PROCESS_START_EVENT.several,
    wrong_type: WRONG_START_OF_EVENT_SUB_PROCESS,
};
const WRONG_START_OF_EVENT_SUB_PROCESS: &str = "Start events in event subprocesses must be one of: message, timer, error, signal, conditional or escalation. Use one of them.";
const INTERMEDIATE_CATCH_EVENT: Rule = Rule {
    types: &[EventType::Timer, EventType::Message, EventType::Signal, EventType::Conditional, EventType::Link],
    missing: Some("Must have exactly one event definition. Use a message, timer, signal, conditional or link event."),
    several: "Must have exactly one event definition. Use a message, timer, signal, conditional or link event.",
    wrong_type: "Event definition must be one of: message, timer, signal, conditional or link. Use one of them.",
};
const INTERMEDIATE_THROW_EVENT: Rule = Rule {
    types: &[EventType::Message, EventType::Link, EventType::Escalation, EventType::Signal, EventType::Compensation],
    missing: None,
    several: "Must have at most one event definition. Keep one and remove the others.",
    wrong_type: "Intermediate throw events must be one of: none, message, link, signal, escalation or compensation. Use one of \
                 them.",
};
const BOUNDARY_EVENT: Rule = Rule {
    types: &[
        EventType::Timer,
        EventType::Message,
        EventType::Signal,
        EventType::Conditional,
        EventType::Error,
        EventType::Escalation,
        EventType::Compensation,
    ],
    missing: Some(
        "Must have exactly one event definition. Use a timer, message, error, signal, escalation, conditional or compensation event.",
    ),
    several: "Must have exactly one event definition. Use a timer, message, error, signal, escalation, conditional or compensation event.",
    wrong_type: "Boundary events must be one of: timer, message, error, signal, escalation, conditional or compensation. Use one of them.",
};
const END_EVENT: Rule = Rule {
    types: &[
        EventType::Message,
        EventType::Error,
        EventType::Escalation,
        EventType::Signal,
        EventType::Terminate,
        EventType::Compensation,
    ],
    missing: None,
    several: "Must have at most one event definition. Keep one and remove the others.",
    wrong_type: "End events must be one of: none, error, message, terminate, signal, escalation or compensation. Use one of them.",
};

/// The event definitions of `event`, also those that this version does not execute.
pub(crate) fn definitions<'a, 'input>(event: Node<'a, 'input>) -> impl Iterator<Item = Node<'a, 'input>> {
    event
        .children()
        .filter(|node| is_in(*node, BPMN_NAMESPACE) && vocabulary::is_event_definition(node.tag_name().name()))
}

/// Whether `event` has no event definition.
pub(crate) fn is_none_event(event: Node) -> bool {
    definitions(event).next().is_none()
}

/// The id of the message that an event refers to.
pub(crate) fn message_reference<'a>(event: Node<'a, '_>) -> Option<&'a str> {
    definitions(event).find_map(|definition| present(definition, "messageRef")).map(local_part)
}

/// The name of a link event.
pub(crate) fn link_name<'a>(event: Node<'a, '_>) -> Option<&'a str> {
    definitions(event).find_map(|definition| present(definition, "name"))
}

/// What the event `node` does. After a problem it is something that takes its place.
pub(crate) fn behavior(
    draft: &Draft,
    node: Node,
    kind: NodeKind,
    place: StartPlace,
    extensions: &Extensions,
    problems: &mut Problems,
) -> (Behavior, EventType) {
    let rule = match (kind, place) {
        (NodeKind::StartEvent, StartPlace::Process) => &PROCESS_START_EVENT,
        (NodeKind::StartEvent, StartPlace::EventSubProcess) => &EVENT_SUB_PROCESS_START_EVENT,
        (NodeKind::StartEvent, StartPlace::SubProcess) => {
            // The report about the sub-process says that it must be a none event.
            definitions(node)
                .filter(|definition| !is_executed(*definition))
                .for_each(|it| problems.refuse_element_type(it));
            return (Behavior::NoneStartEvent, EventType::None);
        }
        (NodeKind::IntermediateCatchEvent, _) => &INTERMEDIATE_CATCH_EVENT,
        (NodeKind::IntermediateThrowEvent, _) => &INTERMEDIATE_THROW_EVENT,
        (NodeKind::BoundaryEvent, _) => &BOUNDARY_EVENT,
        _ => &END_EVENT,
    };
    let replacement = (Behavior::PassThrough, EventType::None);
    match single_definition(node, rule, problems) {
        Err(()) => replacement,
        Ok(None) => (none_behavior(kind), EventType::None),
        Ok(Some((event_type, definition))) => {
            let own = Extensions::read(definition, problems);
            let behavior = match kind {
                NodeKind::IntermediateThrowEvent | NodeKind::EndEvent => {
                    throw_behavior(draft, node, kind, (event_type, definition), (extensions, &own), problems)
                }
                NodeKind::BoundaryEvent if event_type == EventType::Compensation => {
                    // The activity and the handler are found when all elements are known.
                    Some(Behavior::CompensationBoundaryEvent { attached_to: PROCESS, handler: PROCESS })
                }
                _ if event_type == EventType::Link => link(definition, Behavior::LinkCatchEvent, problems),
                _ => catch_event(draft, node, kind, place, (event_type, definition, &own), problems)
                    .map(|event| catch_behavior(kind, event)),
            };
            behavior.map_or(replacement, |behavior| (behavior, event_type))
        }
    }
}

fn none_behavior(kind: NodeKind) -> Behavior {
    match kind {
        NodeKind::StartEvent => Behavior::NoneStartEvent,
        NodeKind::EndEvent => Behavior::NoneEndEvent,
        _ => Behavior::PassThrough,
    }
}

fn catch_behavior(kind: NodeKind, event: CatchEvent) -> Behavior {
    match kind {
        NodeKind::StartEvent => Behavior::StartEvent(event),
        // The activity is found when all elements are known.
        NodeKind::BoundaryEvent => Behavior::BoundaryEvent { attached_to: PROCESS, event },
        _ => Behavior::IntermediateCatchEvent(event),
    }
}

/// The type of event that the XML name of an event definition stands for, if this version executes it somewhere.
fn event_type(definition: Node) -> Option<EventType> {
    match definition.tag_name().name() {
        "timerEventDefinition" => Some(EventType::Timer),
        "messageEventDefinition" => Some(EventType::Message),
        "errorEventDefinition" => Some(EventType::Error),
        "escalationEventDefinition" => Some(EventType::Escalation),
        "signalEventDefinition" => Some(EventType::Signal),
        "conditionalEventDefinition" => Some(EventType::Conditional),
        "linkEventDefinition" => Some(EventType::Link),
        "terminateEventDefinition" => Some(EventType::Terminate),
        "compensateEventDefinition" => Some(EventType::Compensation),
        _ => None,
    }
}

fn is_executed(definition: Node) -> bool {
    event_type(definition).is_some()
}

/// The event definition of `event`, checked against `rule`.
fn single_definition<'a, 'input>(
    event: Node<'a, 'input>,
    rule: &Rule,
    problems: &mut Problems,
) -> Result<Option<(EventType, Node<'a, 'input>)>, ()> {
    let mut found = definitions(event);
    let (first, second) = (found.next(), found.next());
    let mut result = Ok(None);
    for definition in definitions(event) {
        match event_type(definition) {
            None => {
                problems.refuse_element_type(definition);
                result = Err(());
            }
            Some(event_type) if !rule.types.contains(&event_type) => {
                problems.add(event, rule.wrong_type);
                result = Err(());
            }
            Some(event_type) => result = result.map(|_| Some((event_type, definition))),
        }
    }
    let wrong_count = if second.is_some() {
        Some(rule.several)
    } else if first.is_none() {
        rule.missing
    } else {
        None
    };
    if let Some(message) = wrong_count {
        problems.add(event, message);
        return Err(());
    }
    result
}

/// What the event waits for; `None` after a problem.
fn catch_event(
    draft: &Draft,
    node: Node,
    kind: NodeKind,
    place: StartPlace,
    (event_type, definition, extensions): (EventType, Node, &Extensions),
    problems: &mut Problems,
) -> Option<CatchEvent> {
    let is_interrupting = match (kind, place) {
        (NodeKind::BoundaryEvent, _) => is_true_or_absent(node, "cancelActivity"),
        (NodeKind::StartEvent, StartPlace::EventSubProcess) => is_true_or_absent(node, "isInterrupting"),
        _ => true,
    };
    let timer_place = match (kind, place) {
        (NodeKind::StartEvent, StartPlace::Process) => TimerPlace::ProcessStart,
        (NodeKind::IntermediateCatchEvent, _) => TimerPlace::IntermediateCatch,
        _ if is_interrupting => TimerPlace::Interrupting,
        _ => TimerPlace::NonInterrupting,
    };
    let trigger = match event_type {
        EventType::Timer => timer_definitions::compile(node, definition, timer_place, problems).map(Trigger::Timer),
        EventType::Message => {
            let used_as = match place {
                _ if timer_place == TimerPlace::ProcessStart => MessageUse::ProcessStart,
                StartPlace::EventSubProcess if is_in_a_sub_process(node) => MessageUse::NestedEventSubProcess,
                _ => MessageUse::Catch,
            };
            message(draft, node, definition, used_as, problems).map(Trigger::Message)
        }
        EventType::Signal => {
            let is_process_start = timer_place == TimerPlace::ProcessStart;
            signal(draft, node, definition, is_process_start, problems).map(Trigger::Signal)
        }
        EventType::Conditional => conditions::condition(definition, extensions, problems).map(Trigger::Condition),
        EventType::Error => {
            if !is_interrupting {
                problems.add(
                    node,
                    "Non-Interrupting event of this type is not allowed. An error always interrupts: make the event interrupting.",
                );
            }
            let error = draft.roots.error(definition);
            caught_code(definition, error, "error", problems).map(|code| Trigger::Error { code })
        }
        _ => {
            let escalation = draft.roots.escalation(definition);
            caught_code(definition, escalation, "escalation", problems).map(|code| Trigger::Escalation { code })
        }
    };
    Some(CatchEvent { trigger: trigger?, is_interrupting })
}

/// Whether the event sub-process of a start event is inside of another sub-process. The reference looks for the correlation
/// keys of messages only at the event sub-processes that lie directly in a process.
fn is_in_a_sub_process(start_event: Node) -> bool {
    let around = start_event.parent().and_then(|event_sub_process| event_sub_process.parent());
    around.is_some_and(|around| is_bpmn(around, "subProcess"))
}

/// What a receive task waits for; `None` after a problem.
pub(crate) fn receive_task(draft: &Draft, task: Node, problems: &mut Problems) -> Option<CatchEvent> {
    let message = message(draft, task, task, MessageUse::Catch, problems)?;
    Some(CatchEvent { trigger: Trigger::Message(message), is_interrupting: true })
}

/// The message that `node` waits for, to which `referrer` (its event definition or itself) refers; `None` after a problem.
fn message(
    draft: &Draft,
    node: Node,
    referrer: Node,
    used_as: MessageUse,
    problems: &mut Problems,
) -> Option<MessageDefinition> {
    let message: &Message = referenced(referrer, draft.roots.message(referrer), "message", problems)?;
    if used_as == MessageUse::ProcessStart {
        let name = constant_name(node, "message", message.name(used_as, problems)?, problems)?;
        return Some(MessageDefinition { name, correlation_key: None });
    }
    let name = message.name(used_as, problems);
    if used_as == MessageUse::NestedEventSubProcess && !message.has_subscription() {
        return Some(MessageDefinition { name: name?, correlation_key: None });
    }
    let correlation_key = message.correlation_key(problems);
    Some(MessageDefinition { name: name?, correlation_key: Some(correlation_key?) })
}

/// The signal that the event `node` waits for; `None` after a problem.
fn signal(
    draft: &Draft,
    node: Node,
    definition: Node,
    is_process_start: bool,
    problems: &mut Problems,
) -> Option<SignalDefinition> {
    let signal: &Signal = referenced(definition, draft.roots.signal(definition), "signal", problems)?;
    let name = signal.name(problems)?;
    let name = if is_process_start { constant_name(node, "signal", name, problems)? } else { name };
    Some(SignalDefinition { name })
}

/// The name of a message or signal that starts a process: there are no variables yet to compute it from.
fn constant_name(
    node: Node,
    kind: &str,
    name: StaticOrExpression,
    problems: &mut Problems,
) -> Option<StaticOrExpression> {
    let StaticOrExpression::Expression(expression) = &name else {
        return Some(name);
    };
    let advice = "Write the name as plain text.";
    match expression.constant() {
        Some(feel::Value::String(text)) if !text.is_empty() => {
            names::check(node, "name", &text, problems);
            return Some(StaticOrExpression::Static(text));
        }
        Some(feel::Value::String(_)) => problems.add(
            node,
            format!("Name must be present and not empty, but the expression '={}' is empty. {advice}", expression.text()),
        ),
        Some(value) => problems.add(
            node,
            format!(
                "Expected constant expression of type String for {kind} name '={}', but was {}. {advice}",
                expression.text(),
                value.kind()
            ),
        ),
        None => problems.add(
            node,
            format!(
                "Expected constant expression but found '={}', which could not be evaluated without context: it starts a \
                 process, where there are no variables yet. {advice}",
                expression.text()
            ),
        ),
    }
    None
}

/// The code that an event catches, `Some(None)` for any; `None` after a problem.
fn caught_code(
    definition: Node,
    reference: Reference<Coded>,
    kind: &str,
    problems: &mut Problems,
) -> Option<Option<Arc<str>>> {
    if matches!(reference, Reference::Absent) {
        return Some(None);
    }
    let code = referenced(definition, reference, kind, problems)?.code_text();
    if code.is_some_and(|code| code.starts_with('=')) {
        problems.add(
            definition,
            format!(
                "The {kind}Code of the {kind} catch event is not allowed to be an expression. Write the code as plain text, \
                 or leave it out to catch every {kind}."
            ),
        );
        return None;
    }
    code.iter().for_each(|code| names::check(definition, &format!("{kind}Code"), code, problems));
    Some(code.map(Arc::from))
}

/// The root element of `kind` that `node` refers to; `None` after a problem.
fn referenced<'r, T>(node: Node, reference: Reference<'r, T>, kind: &str, problems: &mut Problems) -> Option<&'r T> {
    let article = if matches!(kind, "message" | "signal") { "a" } else { "an" };
    match reference {
        Reference::Found(target) => return Some(target),
        Reference::Absent => problems.add(
            node,
            format!(
                "Must reference {article} {kind}. Choose or create {article} {kind} for it (attribute '{kind}Ref')."
            ),
        ),
        Reference::Dangling(id) => problems.add(
            node,
            format!(
                "Must reference {article} {kind}, but there is none with the id '{id}' in this file. Choose or create \
                 {article} {kind} for it (attribute '{kind}Ref')."
            ),
        ),
    }
    None
}

/// What a throw or end event with an event definition does; `None` after a problem.
fn throw_behavior(
    draft: &Draft,
    node: Node,
    kind: NodeKind,
    (event_type, definition): (EventType, Node),
    (extensions, own_extensions): (&Extensions, &Extensions),
    problems: &mut Problems,
) -> Option<Behavior> {
    match event_type {
        EventType::Message => {
            check_thrown_message(draft, definition, problems);
            extensions.job_definition(node, kind.element_type(), own_extensions, problems).map(Behavior::JobWorker)
        }
        EventType::Link => link(definition, Behavior::LinkThrowEvent { target: PROCESS }, problems),
        EventType::Error => {
            let error = referenced(definition, draft.roots.error(definition), "error", problems)?;
            Some(Behavior::ErrorEndEvent { code: error.thrown_code(problems)? })
        }
        EventType::Escalation => {
            let escalation = referenced(definition, draft.roots.escalation(definition), "escalation", problems)?;
            Some(Behavior::EscalationThrowEvent { code: escalation.thrown_code(problems)? })
        }
        EventType::Signal => {
            let signal = referenced(definition, draft.roots.signal(definition), "signal", problems)?;
            Some(Behavior::SignalThrowEvent { name: signal.name(problems)? })
        }
        EventType::Compensation => {
            compensation::check_waits(node, kind, definition, problems);
            // The activity that it names is found when all elements are known.
            Some(Behavior::CompensationThrowEvent { activity: None })
        }
        _ => Some(Behavior::TerminateEndEvent),
    }
}

/// What a throw event or send task says about its message is for people and for the job worker; but if it names one, it
/// must be one.
pub(crate) fn check_thrown_message(draft: &Draft, node: Node, problems: &mut Problems) {
    if let Reference::Found(message) = draft.roots.message(node) {
        message.check_thrown(problems);
    }
}

/// A link event; `None` after a problem. Which event a throw event leads to is found when all elements are known.
fn link(definition: Node, behavior: Behavior, problems: &mut Problems) -> Option<Behavior> {
    if present(definition, "name").is_none() {
        problems.add(
            definition,
            "Link name must be present and not empty. Give the throw events and the catch event of a link the same name.",
        );
        return None;
    }
    Some(behavior)
}

/// Whether an escalation can come out of an element of this type.
pub(crate) fn can_escalate(element_type: ElementType) -> bool {
    matches!(element_type, ElementType::SubProcess | ElementType::AdHocSubProcess | ElementType::CallActivity)
}
