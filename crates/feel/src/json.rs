//! JSON texts: validation, splitting by name, lazy access to one member, reading into values.
//!
//! Variables are kept as texts, in one spelling ([`canonical`]). [`split_object`] validates a whole document once and spells
//! its values so; later accesses to the parts may rely on that and only skip what they do not need.

mod build;
mod canonical;
mod reader;

use std::borrow::Cow;
use std::sync::Arc;

use crate::value::Value;

use build::SharedNames;
pub use canonical::{canonical, comparable};
use reader::Reader;

/// How many arrays and objects may be nested.
pub const DEPTH_LIMIT: usize = 1000;

/// Why a text is not accepted as JSON.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JsonError {
    /// The text does not follow the grammar.
    #[error("Expected {expected} at byte {offset} of the JSON text, but found {found}.")]
    Syntax {
        /// What is allowed here.
        expected: &'static str,
        /// What was found here.
        found: String,
        /// Where, counted in bytes from 0.
        offset: usize,
    },
    /// Arrays and objects are nested too deeply.
    #[error("The JSON text is nested more than {DEPTH_LIMIT} levels deep at byte {offset}.")]
    TooDeep {
        /// Where, counted in bytes from 0.
        offset: usize,
    },
    /// The values would take more memory than there is left.
    #[error("The values of the JSON text would take more memory than there is left. Let it be shorter.")]
    OutOfRoom,
    /// A number does not fit the range of numbers.
    #[error("The number at byte {offset} of the JSON text is too large.")]
    NumberTooLarge {
        /// Where, counted in bytes from 0.
        offset: usize,
    },
}

/// Errors are boxed inside, because they are rare and would make every result large.
type Parsed<T> = Result<T, Box<JsonError>>;

/// A member of an object: its decoded name, and the text of its value.
pub type Member<'a> = (Cow<'a, str>, Cow<'a, str>);

/// Validates a JSON document and splits the object that it must be into its members: the decoded name and the value in the
/// spelling of [`canonical`], in the order of first appearance. If a name occurs twice, the last value wins.
pub fn split_object(text: &str) -> Result<Vec<Member<'_>>, JsonError> {
    split(text).map_err(|error| *error)
}

fn split(text: &str) -> Parsed<Vec<Member<'_>>> {
    let mut reader = Reader::new(text);
    reader.skip_space();
    if reader.peek() != Some(b'{') {
        return Err(reader.expected("an object in braces"));
    }
    let mut members: Vec<Member<'_>> = Vec::new();
    let mut names = NameIndex::default();
    reader.members(|reader, name| {
        let value = reader.canonical_value()?;
        match names.find_or_insert(&members, &name) {
            Some(index) => members[index].1 = value,
            None => members.push((name, value)),
        }
        Ok(())
    })?;
    reader.end()?;
    Ok(members)
}

/// Checks that the text is one valid JSON document within the depth limit.
pub fn validate(text: &str) -> Result<(), JsonError> {
    let mut reader = Reader::new(text);
    reader.skip_space();
    reader.skip_value().and_then(|()| reader.end()).map_err(|error| *error)
}

/// The text that a JSON string with quotes stands for; `None` if `json` is no such string.
pub fn read_string(json: &str) -> Option<Cow<'_, str>> {
    let mut reader = Reader::new(json);
    if reader.peek() != Some(b'"') {
        return None;
    }
    let text = reader.string().ok()?;
    reader.end().is_ok().then_some(text)
}

/// Appends `text` as a JSON string with quotes.
pub fn write_string(text: &str, out: &mut String) {
    out.reserve(text.len() + 2);
    out.push('"');
    let mut start = 0;
    while let Some((index, byte)) = next_escaped(text.as_bytes(), start) {
        out.push_str(&text[start..index]);
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            0x08 => out.push_str("\\b"),
            0x0c => out.push_str("\\f"),
            _ => {
                out.push_str("\\u00");
                out.push(char::from(b'0' + (byte >> 4)));
                out.push(char::from(b"0123456789abcdef"[usize::from(byte & 15)]));
            }
        }
        start = index + 1;
    }
    out.push_str(&text[start..]);
    out.push('"');
}

/// The next byte, from a place on, that does not stand for itself in a JSON string, and where it is.
fn next_escaped(bytes: &[u8], start: usize) -> Option<(usize, u8)> {
    /// So many are looked at together, without a branch for each, which the compiler makes a few instructions of.
    const TOGETHER: usize = 32;

    let is_escaped = |byte: u8| byte < 0x20 || byte == b'"' || byte == b'\\';
    let mut rest = &bytes[start..];
    while let Some((together, behind)) = rest.split_first_chunk::<TOGETHER>() {
        if together.iter().fold(false, |any, byte| any | is_escaped(*byte)) {
            break;
        }
        rest = behind;
    }
    let found = rest.iter().position(|byte| is_escaped(*byte))?;
    Some((bytes.len() - rest.len() + found, rest[found]))
}

/// Finds names among many members without comparing each with all: a sorted index once there are more than a few.
#[derive(Default)]
struct NameIndex {
    sorted: std::collections::BTreeMap<String, usize>,
}

impl NameIndex {
    const SMALL: usize = 16;

    /// The position of `name`; `None` if it is new and will be pushed next.
    fn find_or_insert<V>(&mut self, members: &[(Cow<'_, str>, V)], name: &str) -> Option<usize> {
        if members.len() < Self::SMALL {
            return members.iter().position(|(known, _)| known == name);
        }
        if self.sorted.is_empty() {
            self.sorted = members.iter().enumerate().map(|(index, (known, _))| (known.to_string(), index)).collect();
        }
        if let Some(index) = self.sorted.get(name) {
            return Some(*index);
        }
        self.sorted.insert(name.to_owned(), members.len());
        None
    }
}

/// Reads a whole document.
pub(crate) fn read(text: &str) -> Parsed<Value> {
    read_within(text, &mut usize::MAX.clone())
}

/// Reads a whole document; the memory that its values take is taken from `room`.
pub(crate) fn read_within(text: &str, room: &mut usize) -> Parsed<Value> {
    let mut reader = Reader::new(text);
    reader.skip_space();
    let value = match reader.peek() {
        Some(b'{' | b'[') => build::value(&mut reader, &mut SharedNames::default(), room)?,
        _ => build::scalar(&mut reader, room)?,
    };
    reader.end()?;
    Ok(value)
}

/// The value at a path of member names in a text.
pub(crate) enum Found<'a> {
    /// The text of the member.
    Member(&'a str),
    /// No such member, or something on the way that is not an object: the caller reads the whole text to say why.
    Other,
}

/// Finds the text of the member at `path` without reading the rest into values.
pub(crate) fn find<'a>(text: &'a str, path: &[Arc<str>]) -> Parsed<Found<'a>> {
    let mut current = text;
    for name in path {
        match Reader::new(current).member(name)? {
            Some(member) => current = member,
            None => return Ok(Found::Other),
        }
    }
    Ok(Found::Member(current))
}

/// An item of a list in a text.
pub(crate) enum Item<'a> {
    /// An object: its text.
    Object(&'a str),
    Other(Value),
}

/// The items of a list in a text, read one at a time; only the wanted members of objects are read.
pub(crate) struct Items<'a> {
    reader: Reader<'a>,
    names: SharedNames,
    started: bool,
}

impl<'a> Items<'a> {
    /// `None` if the text is not that of a list with items.
    pub(crate) fn of(text: &'a str) -> Parsed<Option<Items<'a>>> {
        let mut reader = Reader::new(text);
        reader.skip_space();
        if reader.peek() != Some(b'[') || reader.open(b']')? {
            return Ok(None);
        }
        Ok(Some(Items { reader, names: SharedNames::default(), started: false }))
    }

    /// The next item, `None` behind the last. Of an object, the members of these names are put into `members`, each at
    /// the place of its name.
    pub(crate) fn next(
        &mut self,
        wanted: &[Arc<str>],
        members: &mut [Option<Value>],
        room: &mut usize,
    ) -> Parsed<Option<Item<'a>>> {
        if self.started && self.reader.separator(b']')? {
            return Ok(None);
        }
        self.started = true;
        if self.reader.peek() != Some(b'{') {
            return Ok(Some(Item::Other(build::value(&mut self.reader, &mut self.names, room)?)));
        }
        let start = self.reader.position;
        let names = &mut self.names;
        self.reader.select(|reader, name| {
            let place = wanted.iter().position(|wanted| wanted.as_bytes() == name);
            let Some(member) = place.and_then(|place| members.get_mut(place)) else {
                return Ok(false);
            };
            *member = Some(build::value(reader, names, room)?);
            Ok(true)
        })?;
        Ok(Some(Item::Object(self.reader.since(start))))
    }

    /// Reads the text of an item.
    pub(crate) fn read(&mut self, text: &str, room: &mut usize) -> Parsed<Value> {
        build::value(&mut Reader::new(text), &mut self.names, room)
    }
}
