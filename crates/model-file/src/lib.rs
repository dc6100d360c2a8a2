//! Files of models: from bytes to an XML document within limits, and what the kinds of models have in common when they look at
//! it and tell of problems.
//!
//! What is read comes from outside, so everything is limited before it costs anything.

#![deny(clippy::disallowed_methods, clippy::iter_over_hash_type)]

mod encoding;

use roxmltree::{Document, Node, ParsingOptions};

pub use encoding::decode;

/// Namespace of the `zeebe:` extension elements.
pub const ZEEBE_NAMESPACE: &str = "http://camunda.org/schema/zeebe/1.0";
/// The longest message of one problem: a model may quote itself at any length, and every problem should find room.
const MAXIMUM_MESSAGE_CHARACTERS: usize = 1_000;

/// What to do when a file of this kind exceeds a limit, each a sentence.
#[derive(Clone, Copy, Debug)]
pub struct Advice {
    /// There is too much in it.
    pub too_large: &'static str,
    /// Elements are inside each other too deeply.
    pub too_deep: &'static str,
}

/// The largest file that is read.
pub const MAXIMUM_RESOURCE_BYTES: usize = 4 * 1024 * 1024;
/// The deepest nesting of XML elements; it also bounds every recursion over them.
pub const MAXIMUM_NESTING_LEVELS: usize = 256;
/// The most attributes of one XML element, namespace declarations included.
pub const MAXIMUM_ATTRIBUTES_PER_ELEMENT: usize = 256;
/// The most namespace declarations of an XML element and those around it together.
pub const MAXIMUM_NAMESPACES_IN_SCOPE: usize = 64;
/// The most namespaces in scope, summed over all XML elements that declare one.
pub const MAXIMUM_NAMESPACES_IN_ALL_SCOPES: usize = 1_000_000;
/// The most nodes (elements, texts, comments) of a file.
pub const MAXIMUM_NODES: u32 = 1_000_000;

/// In which lines of a file elements begin; the ends of the lines are found when the first is asked for.
#[derive(Debug, Default)]
pub struct Lines {
    ends: Option<Vec<usize>>,
}

impl Lines {
    /// The line where an element begins, counted from 1. All elements must be of one document.
    pub fn of(&mut self, node: Node) -> u32 {
        let ends = self.ends.get_or_insert_with(|| {
            let text = node.document().input_text().as_bytes();
            text.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(position, _)| position).collect()
        });
        let before = ends.partition_point(|end| *end < node.range().start);
        u32::try_from(before).unwrap_or(u32::MAX).saturating_add(1)
    }
}

/// The document tree, without document type declarations and within the limits of this module.
///
/// # Errors
/// When it is not such a document, with a sentence for those who deploy it.
pub fn parse<'a>(text: &'a str, advice: &Advice) -> Result<Document<'a>, String> {
    check_limits(text.as_bytes(), advice)?;
    let options = ParsingOptions { nodes_limit: MAXIMUM_NODES, ..ParsingOptions::default() };
    Document::parse_with_options(text, options).map_err(|error| match error {
        roxmltree::Error::DtdDetected => {
            "The file has a document type declaration (DOCTYPE), which is not accepted for security. Remove it."
                .to_owned()
        }
        roxmltree::Error::NodesLimitReached => {
            format!("The file has more than {MAXIMUM_NODES} XML nodes. {}", advice.too_large)
        }
        error => format!("The file is not well-formed XML: {error}."),
    })
}

/// Walks over the tags once before a tree is built: what the tree costs grows with the product of attributes and of
/// namespaces in scope, so a hostile file must be refused first. Errors of syntax are left to the parser.
fn check_limits(text: &[u8], advice: &Advice) -> Result<(), String> {
    let mut namespaces_in_scope: Vec<usize> = Vec::new();
    let mut namespaces_in_all_scopes = 0;
    let mut rest = text;
    while let Some(start) = rest.iter().position(|byte| *byte == b'<') {
        rest = &rest[start..];
        let (is_markup, end) = match rest {
            [b'<', b'!', b'-', b'-', inside @ ..] => (false, find(inside, b"-->").map(|end| end + 4)),
            [b'<', b'!', b'[', inside @ ..] => (false, find(inside, b"]]>").map(|end| end + 3)),
            [b'<', b'?', inside @ ..] => (false, find(inside, b"?>").map(|end| end + 2)),
            [b'<', b'/', inside @ ..] => {
                namespaces_in_scope.pop();
                (false, find(inside, b">").map(|end| end + 2))
            }
            _ => (true, None),
        };
        if is_markup {
            let tag = scan_tag(rest);
            let namespaces = namespaces_in_scope.last().copied().unwrap_or(0) + tag.namespaces;
            if namespaces_in_scope.len() >= MAXIMUM_NESTING_LEVELS {
                return Err(format!(
                    "XML elements are nested deeper than {MAXIMUM_NESTING_LEVELS} levels. {}",
                    advice.too_deep
                ));
            }
            if tag.attributes > MAXIMUM_ATTRIBUTES_PER_ELEMENT || namespaces > MAXIMUM_NAMESPACES_IN_SCOPE {
                return Err(format!(
                    "An XML element has {} attributes and {namespaces} namespaces, but at most {MAXIMUM_ATTRIBUTES_PER_ELEMENT} \
                     attributes and {MAXIMUM_NAMESPACES_IN_SCOPE} namespaces are accepted.",
                    tag.attributes
                ));
            }
            if tag.namespaces > 0 {
                namespaces_in_all_scopes += namespaces;
            }
            if namespaces_in_all_scopes > MAXIMUM_NAMESPACES_IN_ALL_SCOPES {
                return Err(
                    "Too many XML elements declare namespaces. Declare them once, at the root element.".to_owned()
                );
            }
            if !tag.is_empty_element {
                namespaces_in_scope.push(namespaces);
            }
            rest = &rest[tag.length..];
        } else {
            match end {
                Some(end) => rest = &rest[end + 1..],
                None => return Ok(()),
            }
        }
    }
    Ok(())
}

struct Tag {
    length: usize,
    attributes: usize,
    namespaces: usize,
    is_empty_element: bool,
}

/// `text` begins with `<`; the tag ends with the next `>` outside quotes.
fn scan_tag(text: &[u8]) -> Tag {
    let mut tag = Tag { length: text.len(), attributes: 0, namespaces: 0, is_empty_element: false };
    let mut quote = None;
    for (position, &byte) in text.iter().enumerate() {
        match quote {
            Some(open) if byte == open => quote = None,
            Some(_) => {}
            None => match byte {
                b'"' | b'\'' => {
                    quote = Some(byte);
                    tag.attributes += 1;
                }
                b'x' if text[position..].starts_with(b"xmlns") => tag.namespaces += 1,
                b'>' => {
                    tag.length = position + 1;
                    tag.is_empty_element = position > 0 && text[position - 1] == b'/';
                    return tag;
                }
                _ => {}
            },
        }
    }
    tag
}

fn find(text: &[u8], pattern: &[u8]) -> Option<usize> {
    text.windows(pattern.len()).position(|window| window == pattern)
}

/// Whether the attribute `name` is the XML boolean true.
pub fn is_true(node: Node, name: &str) -> bool {
    matches!(node.attribute(name).map(str::trim), Some("true" | "1"))
}

/// The value of an attribute, `None` if it is absent or empty.
pub fn present<'a>(node: Node<'a, '_>, name: &str) -> Option<&'a str> {
    node.attribute(name).filter(|value| !value.is_empty())
}

/// The texts inside `node`, without white space around them.
pub fn trimmed_text(node: Node) -> String {
    let text: String = node.children().filter(Node::is_text).filter_map(|child| child.text()).collect();
    text.trim().to_owned()
}

/// The nearest id and the way from there to `node`: `task > extensionElements > taskDefinition`.
pub fn path(node: Node) -> (Option<String>, String) {
    let mut way = Vec::new();
    for ancestor in node.ancestors().filter(Node::is_element) {
        let identified = present(ancestor, "id");
        way.push(identified.unwrap_or(ancestor.tag_name().name()));
        if let Some(id) = identified {
            way.reverse();
            return (Some(id.to_owned()), way.join(" > "));
        }
    }
    way.reverse();
    (None, way.join(" > "))
}

/// The text with its middle left out if it is too long: places are named at the beginning, advice stands at the end.
pub fn shorten(text: String) -> String {
    let mut boundaries = text.char_indices().map(|(position, _)| position);
    let half = MAXIMUM_MESSAGE_CHARACTERS / 2;
    let (Some(first_half), Some(_)) = (boundaries.nth(half), boundaries.nth(half)) else {
        return text;
    };
    let second_half = text.char_indices().rev().nth(half - 1).map_or(0, |(position, _)| position);
    format!("{} ... {}", &text[..first_half], &text[second_half..])
}
