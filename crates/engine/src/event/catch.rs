//! Who catches an error or an escalation: the nearest scope with an event for its code, or else for any code; from a
//! called process on in the caller.

use std::sync::Arc;

use bpmn::model::{CatchEvent, ElementIndex, Trigger};
use protocol::{ErrorType, Key};

use crate::event::events::events_of;
use crate::execution::problem::Problem;
use crate::execution::token::Token;
use crate::execution::{Execution, Outcome};
use crate::state::Lifecycle;

/// The event that catches, and the element instance it belongs to.
pub(crate) struct Catcher {
    pub scope: Token,
    pub event: ElementIndex,
}

impl Catcher {
    /// Whether the event is attached to the activity, not inside it.
    pub fn is_boundary_event(&self) -> bool {
        self.scope.element().boundary_events.contains(&self.event)
    }
}

/// What is thrown.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Error,
    Escalation,
}

/// Looks for the event that catches an error thrown at `from`, that scope included.
pub(crate) fn find_error(
    execution: &Execution<'_>,
    from: Key,
    code: &str,
    message: &str,
) -> Outcome<Result<Catcher, Problem>> {
    let mut available = Vec::new();
    if let Some(catcher) = find(execution, from, code, Kind::Error, &mut available)? {
        return Ok(Ok(catcher));
    }
    let with_message = if message.is_empty() { String::new() } else { format!(" with message '{message}'") };
    let alternatives = if available.is_empty() {
        "No error events are available in the scope.".to_owned()
    } else {
        format!("Available error events are [{}]", available.join(", "))
    };
    let text = format!(
        "Expected to throw an error event with the code '{code}'{with_message}, but it was not caught. {alternatives}"
    );
    Ok(Err(Problem::new(ErrorType::UnhandledErrorEvent, text)))
}

/// Looks for the event that catches an escalation thrown inside `from`.
pub(crate) fn find_escalation(execution: &Execution<'_>, from: Key, code: &str) -> Outcome<Option<Catcher>> {
    find(execution, from, code, Kind::Escalation, &mut Vec::new())
}

fn find(
    execution: &Execution<'_>,
    from: Key,
    code: &str,
    kind: Kind,
    available: &mut Vec<String>,
) -> Outcome<Option<Catcher>> {
    let mut next = from;
    // What is thrown inside of an event sub-process does not start the same one again.
    let mut came_from = None;
    // Each step goes outwards, and calls are limited in depth, so this ends.
    while let Some(scope) = Token::find(execution, next)? {
        let is_banned = execution.state.is_banned(scope.value().process_instance_key);
        if scope.instance.lifecycle != Lifecycle::Activated || is_banned {
            return Ok(None);
        }
        let is_interrupted = scope.instance.interrupted_by.is_some();
        // What an error leaves behind is looked at no more when it is interrupted; an escalation is still seen there.
        if (!is_interrupted || kind == Kind::Escalation)
            && let Some(event) = matching_event(&scope, came_from, code, kind, available)
        {
            return Ok(Some(Catcher { scope, event }));
        }
        let value = scope.value();
        let is_outermost = is_interrupted || value.flow_scope_key.is_none();
        came_from = (!is_outermost).then_some(scope.element);
        next = if is_outermost { caller_of(execution, &scope) } else { value.flow_scope_key };
    }
    Ok(None)
}

/// The call activity that called the process of this scope.
fn caller_of(execution: &Execution<'_>, scope: &Token) -> Key {
    let process = execution.state.element_instance(scope.value().process_instance_key);
    process.map_or(Key::NONE, |process| process.value.parent_element_instance_key)
}

/// The event for exactly this code, else the one for any.
fn matching_event(
    scope: &Token,
    came_from: Option<ElementIndex>,
    code: &str,
    kind: Kind,
    available: &mut Vec<String>,
) -> Option<ElementIndex> {
    let mut for_any = None;
    for event in events_of(&scope.process, scope.element) {
        if came_from.is_some() && scope.process.event_sub_process_of(event) == came_from {
            continue;
        }
        let Some(event_code) = scope.process.element(event).catch_event().and_then(|event| code_of(event, kind)) else {
            continue;
        };
        match event_code {
            Some(event_code) if **event_code == *code => return Some(event),
            Some(event_code) => available.push(event_code.to_string()),
            None => for_any = for_any.or(Some(event)),
        }
    }
    for_any
}

/// The code of an event that catches what is thrown; `None` when it catches something else.
fn code_of(event: &CatchEvent, kind: Kind) -> Option<Option<&Arc<str>>> {
    match &event.trigger {
        Trigger::Error { code } if kind == Kind::Error => Some(code.as_ref()),
        Trigger::Escalation { code } if kind == Kind::Escalation => Some(code.as_ref()),
        _ => None,
    }
}
