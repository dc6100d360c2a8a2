//! Elements of XML as text.

/// An element on a line of its own.
pub fn tag(name: &str, attributes: &[(&str, &str)], content: &str) -> String {
    let attributes: String = attributes.iter().map(|(name, value)| format!(" {name}=\"{}\"", escape(value))).collect();
    if content.is_empty() {
        return format!("\n<{name}{attributes}/>");
    }
    format!("\n<{name}{attributes}>{content}</{name}>")
}

/// An element without attributes, or nothing if it has no content.
pub fn optional(name: &str, content: &str) -> String {
    if content.is_empty() { String::new() } else { tag(name, &[], content) }
}

/// An element whose content is an expression.
pub fn expression(name: &str, text: &str) -> String {
    tag(name, &[("xsi:type", "bpmn:tFormalExpression")], &escape(text))
}

/// A BPMN file with these root elements.
pub fn definitions(content: &str) -> String {
    let attributes = [
        ("xmlns:bpmn", "http://www.omg.org/spec/BPMN/20100524/MODEL"),
        ("xmlns:zeebe", "http://camunda.org/schema/zeebe/1.0"),
        ("xmlns:xsi", "http://www.w3.org/2001/XMLSchema-instance"),
        ("id", "definitions"),
        ("targetNamespace", "http://bpmn.io/schema/bpmn"),
    ];
    format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>{}\n", tag("bpmn:definitions", &attributes, content))
}

/// Text as it is written in content and attributes; a reader would turn a tab in an attribute into a blank.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;").replace('\t', "&#9;")
}
