//! How the crate looks at the tree of a file.

use std::borrow::Cow;

use model_file::{Advice, ZEEBE_NAMESPACE};
use roxmltree::{Document, Node};

pub use model_file::{
    MAXIMUM_ATTRIBUTES_PER_ELEMENT, MAXIMUM_NAMESPACES_IN_ALL_SCOPES, MAXIMUM_NAMESPACES_IN_SCOPE,
    MAXIMUM_NESTING_LEVELS, MAXIMUM_NODES, MAXIMUM_RESOURCE_BYTES,
};
pub(crate) use model_file::{is_true, path, present, trimmed_text};

/// The namespaces of DMN 1.1 to 1.5.
pub(crate) const DMN_NAMESPACES: [&str; 6] = [
    "http://www.omg.org/spec/DMN/20151101/dmn.xsd",
    "http://www.omg.org/spec/DMN/20151101/dmn11.xsd",
    "http://www.omg.org/spec/DMN/20180521/MODEL/",
    "https://www.omg.org/spec/DMN/20191111/MODEL/",
    "https://www.omg.org/spec/DMN/20211108/MODEL/",
    "https://www.omg.org/spec/DMN/20230324/MODEL/",
];
const ADVICE: Advice =
    Advice { too_large: "Split the decisions into several files.", too_deep: "Make decisions of inner expressions." };

/// The text of a file.
pub(crate) fn decode(content: &[u8]) -> Result<Cow<'_, str>, String> {
    model_file::decode(content, &ADVICE)
}

/// The document tree.
pub(crate) fn parse(text: &str) -> Result<Document<'_>, String> {
    model_file::parse(text, &ADVICE)
}

/// Whether `node` is the DMN element `name`, of any version.
pub(crate) fn is_dmn(node: Node, name: &str) -> bool {
    node.is_element() && node.tag_name().name() == name && is_in_dmn(node)
}

/// Whether `node` is an element of DMN, of any version.
pub(crate) fn is_in_dmn(node: Node) -> bool {
    node.is_element() && node.tag_name().namespace().is_some_and(|found| DMN_NAMESPACES.contains(&found))
}

/// The children that are the DMN element `name`.
pub(crate) fn children<'a, 'input>(
    node: Node<'a, 'input>,
    name: &'static str,
) -> impl Iterator<Item = Node<'a, 'input>> {
    node.children().filter(move |child| is_dmn(*child, name))
}

/// The first child that is the DMN element `name`.
pub(crate) fn child<'a, 'input>(node: Node<'a, 'input>, name: &'static str) -> Option<Node<'a, 'input>> {
    children(node, name).next()
}

/// The version tag in the extension elements of `node`.
pub(crate) fn version_tag<'a>(node: Node<'a, '_>) -> Option<&'a str> {
    let tag = child(node, "extensionElements")?
        .children()
        .find(|child| child.has_tag_name((ZEEBE_NAMESPACE, "versionTag")))?;
    present(tag, "value")
}

/// The text in the child `text` of an expression, `None` if there is no such child.
pub(crate) fn expression_text(node: Node) -> Option<String> {
    child(node, "text").map(trimmed_text)
}
