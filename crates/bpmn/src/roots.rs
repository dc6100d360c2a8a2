//! Messages, signals, errors and escalations: the root elements that events refer to.

use std::cell::{Cell, OnceCell};
use std::collections::HashMap;

use feel::Expression;
use roxmltree::Node;

use crate::expressions::{required_expression, static_or_expression};
use crate::extensions::{Extensions, zeebe_children};
use crate::model::StaticOrExpression;
use crate::names;
use crate::report::Problems;
use crate::xml::{is_bpmn, present};

/// The root elements of a file by id. Each is compiled when it is first used, and only once.
#[derive(Default)]
pub(crate) struct Roots<'a, 'input> {
    messages: HashMap<&'a str, Message<'a, 'input>>,
    signals: HashMap<&'a str, Signal<'a, 'input>>,
    errors: HashMap<&'a str, Coded<'a, 'input>>,
    escalations: HashMap<&'a str, Coded<'a, 'input>>,
    /// The messages in document order.
    message_ids: Vec<&'a str>,
}

/// What refers to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MessageUse {
    /// A start event of a process: the name is a constant, and there is no correlation key.
    ProcessStart,
    /// The start event of an event sub-process inside of another sub-process: it need not have a correlation key.
    NestedEventSubProcess,
    /// Any other event or task that waits for it.
    Catch,
}

/// A `message` element.
pub(crate) struct Message<'a, 'input> {
    node: Node<'a, 'input>,
    name: OnceCell<Option<StaticOrExpression>>,
    correlation_key: OnceCell<Option<Expression>>,
    process_start_events: Cell<u32>,
    is_caught: Cell<bool>,
}

/// A `signal` element.
pub(crate) struct Signal<'a, 'input> {
    node: Node<'a, 'input>,
    name: OnceCell<Option<StaticOrExpression>>,
}

/// An `error` or `escalation` element.
pub(crate) struct Coded<'a, 'input> {
    node: Node<'a, 'input>,
    code_attribute: &'static str,
    code: OnceCell<Option<StaticOrExpression>>,
}

impl<'a, 'input> Roots<'a, 'input> {
    /// The root elements below `definitions`.
    pub(crate) fn read(definitions: Node<'a, 'input>) -> Self {
        let mut roots = Self::default();
        for node in definitions.children() {
            let Some(id) = present(node, "id") else {
                continue;
            };
            if is_bpmn(node, "message") {
                roots.message_ids.push(id);
                roots.messages.entry(id).or_insert_with(|| Message::new(node));
            } else if is_bpmn(node, "signal") {
                roots.signals.entry(id).or_insert_with(|| Signal { node, name: OnceCell::new() });
            } else if is_bpmn(node, "error") {
                roots.errors.entry(id).or_insert_with(|| Coded::new(node, "errorCode"));
            } else if is_bpmn(node, "escalation") {
                roots.escalations.entry(id).or_insert_with(|| Coded::new(node, "escalationCode"));
            }
        }
        roots
    }

    /// The message that the attribute `messageRef` of `node` names.
    pub(crate) fn message(&self, node: Node) -> Reference<'_, Message<'a, 'input>> {
        resolve(node, "messageRef", &self.messages)
    }

    /// The signal that the attribute `signalRef` of `definition` names.
    pub(crate) fn signal(&self, definition: Node) -> Reference<'_, Signal<'a, 'input>> {
        resolve(definition, "signalRef", &self.signals)
    }

    /// The error that the attribute `errorRef` of `definition` names.
    pub(crate) fn error(&self, definition: Node) -> Reference<'_, Coded<'a, 'input>> {
        resolve(definition, "errorRef", &self.errors)
    }

    /// The escalation that the attribute `escalationRef` of `definition` names.
    pub(crate) fn escalation(&self, definition: Node) -> Reference<'_, Coded<'a, 'input>> {
        resolve(definition, "escalationRef", &self.escalations)
    }

    /// What can only be seen when all processes are read.
    pub(crate) fn check(&self, problems: &mut Problems) {
        for message in self.message_ids.iter().filter_map(|id| self.messages.get(id)) {
            let start_events = message.process_start_events.replace(0);
            if start_events > 1 && !message.is_caught.get() {
                problems.add_for_new(
                    message.node,
                    format!(
                        "A message cannot be referred by more than one start event, but {start_events} start events of \
                         processes refer to this one. Give each of them a message of its own, with a name of its own."
                    ),
                );
            }
        }
    }
}

/// Where an attribute leads that refers to a root element.
pub(crate) enum Reference<'r, T> {
    /// There is no such attribute.
    Absent,
    /// There is no root element with this id.
    Dangling(String),
    Found(&'r T),
}

fn resolve<'r, T>(node: Node, attribute: &str, targets: &'r HashMap<&str, T>) -> Reference<'r, T> {
    let Some(reference) = present(node, attribute) else {
        return Reference::Absent;
    };
    let id = local_part(reference);
    targets.get(id).map_or_else(|| Reference::Dangling(id.to_owned()), Reference::Found)
}

/// The id in a reference to an element, which may have a namespace prefix.
pub(crate) fn local_part(reference: &str) -> &str {
    let reference = reference.trim();
    reference.rsplit_once(':').map_or(reference, |(_, local)| local)
}

impl<'a, 'input> Message<'a, 'input> {
    fn new(node: Node<'a, 'input>) -> Self {
        Self {
            node,
            name: OnceCell::new(),
            correlation_key: OnceCell::new(),
            process_start_events: Cell::new(0),
            is_caught: Cell::new(false),
        }
    }

    /// The name, for an event that waits for the message; `None` after a problem.
    pub(crate) fn name(&self, used_as: MessageUse, problems: &mut Problems) -> Option<StaticOrExpression> {
        match used_as {
            MessageUse::ProcessStart => {
                self.process_start_events.set(self.process_start_events.get().saturating_add(1))
            }
            MessageUse::Catch | MessageUse::NestedEventSubProcess => self.is_caught.set(true),
        }
        self.compiled_name(problems)
    }

    /// Checks the name, for an event or task that sends the message: its job worker knows what to do with it.
    pub(crate) fn check_thrown(&self, problems: &mut Problems) {
        if !problems.is_deployed() {
            self.compiled_name(problems);
        }
    }

    fn compiled_name(&self, problems: &mut Problems) -> Option<StaticOrExpression> {
        let name = self.name.get_or_init(|| match present(self.node, "name") {
            Some(text) => {
                let name = static_or_expression(self.node, text, problems);
                name.iter().for_each(|name| names::check_static(self.node, "name", name, problems));
                name
            }
            None => {
                problems.add(
                    self.node,
                    "Name must be present and not empty. Set the attribute 'name' to the name with which the message is published.",
                );
                None
            }
        });
        name.clone()
    }

    /// Whether it says how messages are correlated.
    pub(crate) fn has_subscription(&self) -> bool {
        let extensions = self.node.children().filter(|child| is_bpmn(*child, "extensionElements"));
        extensions.flat_map(|extensions| zeebe_children(extensions, "subscription")).next().is_some()
    }

    /// The correlation key; `None` after a problem.
    pub(crate) fn correlation_key(&self, problems: &mut Problems) -> Option<Expression> {
        let key = self.correlation_key.get_or_init(|| {
            let extensions = Extensions::read(self.node, problems);
            let Some(subscription) = extensions.subscription else {
                problems.add(
                    self.node,
                    "Must have exactly one zeebe:subscription extension element, because an event or task of a running \
                     instance waits for this message. Set its correlationKey to an expression that starts with '='.",
                );
                return None;
            };
            let Some(text) = present(subscription, "correlationKey") else {
                problems.add(
                    subscription,
                    "Expected expression but not found. Attribute 'correlationKey' must be present and not empty: \
                     set it to an expression that starts with '='.",
                );
                return None;
            };
            required_expression(subscription, text, problems)
        });
        key.clone()
    }
}

impl Signal<'_, '_> {
    /// The name; `None` after a problem.
    pub(crate) fn name(&self, problems: &mut Problems) -> Option<StaticOrExpression> {
        let name = self.name.get_or_init(|| match present(self.node, "name") {
            Some(text) => {
                let name = static_or_expression(self.node, text, problems);
                name.iter().for_each(|name| names::check_static(self.node, "name", name, problems));
                name
            }
            None => {
                problems.add(
                    self.node,
                    "Name must be present and not empty. Set the attribute 'name' to the name with which the signal is broadcast.",
                );
                None
            }
        });
        name.clone()
    }
}

impl<'a, 'input> Coded<'a, 'input> {
    fn new(node: Node<'a, 'input>, code_attribute: &'static str) -> Self {
        Self { node, code_attribute, code: OnceCell::new() }
    }

    /// The code as it is written, `None` if it is absent or empty.
    pub(crate) fn code_text(&self) -> Option<&'a str> {
        present(self.node, self.code_attribute)
    }

    /// The code for a throw event; `None` after a problem.
    pub(crate) fn thrown_code(&self, problems: &mut Problems) -> Option<StaticOrExpression> {
        let code = self.code.get_or_init(|| match self.code_text() {
            Some(text) => {
                let code = static_or_expression(self.node, text, problems);
                code.iter().for_each(|code| names::check_static(self.node, self.code_attribute, code, problems));
                code
            }
            None => {
                let mut name = self.code_attribute.to_owned();
                if let Some(first) = name.get_mut(..1) {
                    first.make_ascii_uppercase();
                }
                problems.add(
                    self.node,
                    format!(
                        "{name} must be present and not empty, because an event throws it. Set the attribute '{}' to \
                         the code, or to an expression that starts with '='.",
                        self.code_attribute
                    ),
                );
                None
            }
        });
        code.clone()
    }
}
