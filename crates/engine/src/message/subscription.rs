//! What element instances do to wait for messages, on the partition where they live.

use std::sync::Arc;

use bpmn::model::{ElementIndex, ExecutableProcess, MessageDefinition};
use protocol::{Key, Text};

use crate::element::Token;
use crate::execution::Execution;
use crate::incident::Problem;
use crate::variable::expression;

/// What a message must have to be meant.
pub(crate) struct Correlation {
    pub message_name: Text,
    pub correlation_key: Text,
}

/// Evaluates what a message must have.
pub(crate) fn correlation(
    execution: &Execution<'_>,
    scope: Key,
    _event: ElementIndex,
    _process: &ExecutableProcess,
    name: &Arc<str>,
    definition: &MessageDefinition,
) -> Result<Correlation, Problem> {
    let correlation_key = match &definition.correlation_key {
        Some(key) => expression::correlation_key(execution, scope, key)?,
        None => Text::default(),
    };
    Ok(Correlation { message_name: name.into(), correlation_key })
}

/// Opens a subscription of an element instance.
pub(crate) fn open(_execution: &mut Execution<'_>, _token: &Token, _event: ElementIndex, _correlation: &Correlation) {}

/// Closes the subscriptions of an element instance whose event `is_closed` names.
pub(crate) fn close(_execution: &mut Execution<'_>, _element_instance: Key, _is_closed: impl Fn(&str) -> bool) {}
