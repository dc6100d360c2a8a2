//! How the crate looks at the tree of a file.

use std::borrow::Cow;

use model_file::Advice;
use roxmltree::{Document, Node};

pub use model_file::{
    MAXIMUM_ATTRIBUTES_PER_ELEMENT, MAXIMUM_NAMESPACES_IN_ALL_SCOPES, MAXIMUM_NAMESPACES_IN_SCOPE,
    MAXIMUM_NESTING_LEVELS, MAXIMUM_NODES, MAXIMUM_RESOURCE_BYTES,
};
pub(crate) use model_file::{ZEEBE_NAMESPACE, is_true, path, present, trimmed_text};

/// Namespace of BPMN 2.0.
pub(crate) const BPMN_NAMESPACE: &str = "http://www.omg.org/spec/BPMN/20100524/MODEL";
const ADVICE: Advice =
    Advice { too_large: "Split the process into smaller ones.", too_deep: "Take inner sub-processes out." };

/// The text of a file.
pub(crate) fn decode(content: &[u8]) -> Result<Cow<'_, str>, String> {
    model_file::decode(content, &ADVICE)
}

/// The document tree.
pub(crate) fn parse(text: &str) -> Result<Document<'_>, String> {
    model_file::parse(text, &ADVICE)
}

/// Whether `node` is an element of `namespace`.
pub(crate) fn is_in(node: Node, namespace: &str) -> bool {
    node.is_element() && node.tag_name().namespace() == Some(namespace)
}

/// Whether `node` is the BPMN element `name`.
pub(crate) fn is_bpmn(node: Node, name: &str) -> bool {
    is_in(node, BPMN_NAMESPACE) && node.tag_name().name() == name
}

/// Whether the attribute `name` is the XML boolean true, or absent.
pub(crate) fn is_true_or_absent(node: Node, name: &str) -> bool {
    node.attribute(name).is_none() || is_true(node, name)
}

/// Whether `text` can be an id: an XML name without a colon.
pub(crate) fn is_name(text: &str) -> bool {
    let mut characters = text.chars();
    characters.next().is_some_and(|first| first.is_alphabetic() || first == '_')
        && characters.all(|character| character.is_alphanumeric() || matches!(character, '_' | '-' | '.' | '\u{B7}'))
}
