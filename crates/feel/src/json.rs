//! JSON texts: validation, splitting by name, lazy access to one member, reading into values.
//!
//! Variables are kept as the text that came. [`split_object`] validates a whole document once; later accesses to the
//! parts may rely on that and only skip what they do not need.

use std::borrow::Cow;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::number::Number;
use crate::value::{Context, Value};

/// How many arrays and objects may be nested.
pub const DEPTH_LIMIT: usize = 1000;

/// Why a text is not accepted as JSON.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JsonError {
    /// The text does not follow the grammar.
    #[error("Expected {expected} at byte {offset} of the JSON text, but found {found}.")]
    Syntax {
        /// What could stand here.
        expected: &'static str,
        /// What stands here.
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
    /// A number does not fit the range of numbers.
    #[error("The number at byte {offset} of the JSON text is too large.")]
    NumberTooLarge {
        /// Where, counted in bytes from 0.
        offset: usize,
    },
}

/// Errors are boxed inside, because they are rare and would make every result large.
type Parsed<T> = Result<T, Box<JsonError>>;

/// Validates a JSON document and splits the object that it must be into its members: the decoded name and the text of the
/// value, in the order of first appearance. If a name occurs twice, the last value wins.
pub fn split_object(text: &str) -> Result<Vec<(Cow<'_, str>, &str)>, JsonError> {
    split(text).map_err(|error| *error)
}

fn split(text: &str) -> Parsed<Vec<(Cow<'_, str>, &str)>> {
    let mut reader = Reader::new(text);
    reader.skip_space();
    if reader.peek() != Some(b'{') {
        return Err(reader.expected("an object in braces"));
    }
    let mut members: Vec<(Cow<'_, str>, &str)> = Vec::new();
    let mut names = NameIndex::default();
    reader.members(|reader, name| {
        let start = reader.position;
        reader.skip_value()?;
        let value = &text[start..reader.position];
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

/// Appends `text` as a JSON string with quotes.
pub fn write_string(text: &str, out: &mut String) {
    out.reserve(text.len() + 2);
    out.push('"');
    let mut start = 0;
    for (index, byte) in text.bytes().enumerate() {
        let escape = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0x08 => "\\b",
            0x0c => "\\f",
            0..=0x1f => "",
            _ => continue,
        };
        out.push_str(&text[start..index]);
        if escape.is_empty() {
            out.push_str("\\u00");
            out.push(char::from(b'0' + (byte >> 4)));
            out.push(char::from(b"0123456789abcdef"[usize::from(byte & 15)]));
        } else {
            out.push_str(escape);
        }
        start = index + 1;
    }
    out.push_str(&text[start..]);
    out.push('"');
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

/// The bytes of a string that need a closer look: quote, backslash, control characters.
const ENDS_PLAIN_TEXT: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 0x20 {
        table[byte] = true;
        byte += 1;
    }
    table[b'"' as usize] = true;
    table[b'\\' as usize] = true;
    table
};

/// A cursor over a JSON text.
pub(crate) struct Reader<'a> {
    text: &'a str,
    position: usize,
    depth: usize,
    /// Names read before, to share their allocation between the objects of a list.
    names: Vec<Arc<str>>,
    next_name: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(text: &'a str) -> Reader<'a> {
        Reader { text, position: 0, depth: 0, names: Vec::new(), next_name: 0 }
    }

    /// How many names are remembered.
    const SHARED_NAMES: usize = 32;

    #[inline]
    fn bytes(&self) -> &'a [u8] {
        self.text.as_bytes()
    }

    #[inline]
    fn peek(&self) -> Option<u8> {
        self.bytes().get(self.position).copied()
    }

    #[inline]
    fn skip_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.position += 1;
        }
    }

    #[cold]
    fn expected(&self, expected: &'static str) -> Box<JsonError> {
        let rest = self.text.get(self.position..).unwrap_or("");
        let found = match rest.chars().next() {
            None => "the end of the text".to_owned(),
            Some(character) => format!("'{}'", character.escape_debug()),
        };
        Box::new(JsonError::Syntax { expected, found, offset: self.position })
    }

    fn end(&mut self) -> Parsed<()> {
        self.skip_space();
        if self.peek().is_none() { Ok(()) } else { Err(self.expected("the end of the text")) }
    }

    /// Visits the members of the object at the cursor; `visit` must consume the value. The cursor ends behind the object.
    fn members(&mut self, mut visit: impl FnMut(&mut Reader<'a>, Cow<'a, str>) -> Parsed<()>) -> Parsed<()> {
        if self.open(b'}')? {
            return Ok(());
        }
        loop {
            let name = self.name()?;
            visit(self, name)?;
            if self.separator(b'}')? {
                return Ok(());
            }
        }
    }

    /// Passes over the bracket at the cursor, and over the closing one if it follows at once (true).
    #[inline]
    fn open(&mut self, close: u8) -> Parsed<bool> {
        self.depth += 1;
        if self.depth > DEPTH_LIMIT {
            return Err(Box::new(JsonError::TooDeep { offset: self.position }));
        }
        self.position += 1;
        self.skip_space();
        let empty = self.peek() == Some(close);
        if empty {
            self.position += 1;
            self.depth -= 1;
        }
        Ok(empty)
    }

    /// The name of a member; the cursor ends at its value.
    #[inline]
    fn name(&mut self) -> Parsed<Cow<'a, str>> {
        if self.peek() != Some(b'"') {
            return Err(self.expected("a name in quotes"));
        }
        let name = self.string()?;
        self.colon()?;
        Ok(name)
    }

    #[inline]
    fn colon(&mut self) -> Parsed<()> {
        self.skip_space();
        if self.peek() != Some(b':') {
            return Err(self.expected("':'"));
        }
        self.position += 1;
        self.skip_space();
        Ok(())
    }

    /// Consumes a comma (false) or the closing character (true).
    #[inline]
    fn separator(&mut self, close: u8) -> Parsed<bool> {
        self.skip_space();
        match self.peek() {
            Some(b',') => {
                self.position += 1;
                self.skip_space();
                Ok(false)
            }
            Some(byte) if byte == close => {
                self.position += 1;
                self.depth -= 1;
                Ok(true)
            }
            _ => Err(self.expected(if close == b'}' { "',' or '}'" } else { "',' or ']'" })),
        }
    }

    /// Validates and passes over one value. Not recursive, because documents may be deeper than stacks.
    #[inline]
    fn skip_value(&mut self) -> Parsed<()> {
        match self.peek() {
            Some(b'"') => self.skip_string().map(|_| ()),
            Some(b'-' | b'0'..=b'9') => self.number_text().map(|_| ()),
            _ => self.skip_nested(),
        }
    }

    fn skip_nested(&mut self) -> Parsed<()> {
        let mut open: SmallVec<[u8; 32]> = SmallVec::new();
        loop {
            let opened = match self.peek() {
                Some(b'{') => (!self.open(b'}')?).then_some(b'}'),
                Some(b'[') => (!self.open(b']')?).then_some(b']'),
                Some(b'"') => self.skip_string().map(|_| None)?,
                Some(b'-' | b'0'..=b'9') => self.number_text().map(|_| None)?,
                _ => self.word().map(|_| None)?,
            };
            match opened {
                Some(close) => open.push(close),
                // The value is complete, and with it perhaps the ones around it.
                None => loop {
                    let Some(close) = open.last() else {
                        return Ok(());
                    };
                    if !self.separator(*close)? {
                        break;
                    }
                    open.pop();
                },
            }
            if open.last() == Some(&b'}') {
                self.name()?;
            }
        }
    }

    fn word(&mut self) -> Parsed<Value> {
        let rest = &self.bytes()[self.position..];
        for (word, value) in [("true", Value::Boolean(true)), ("false", Value::Boolean(false)), ("null", Value::Null)] {
            if rest.starts_with(word.as_bytes()) {
                self.position += word.len();
                return Ok(value);
            }
        }
        Err(self.expected("a JSON value"))
    }

    fn digits(&mut self) -> Parsed<()> {
        let start = self.position;
        while let Some(b'0'..=b'9') = self.peek() {
            self.position += 1;
        }
        if self.position == start { Err(self.expected("a digit")) } else { Ok(()) }
    }

    fn number_text(&mut self) -> Parsed<&'a str> {
        let start = self.position;
        if self.peek() == Some(b'-') {
            self.position += 1;
        }
        if self.peek() == Some(b'0') {
            self.position += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.position += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.position += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.position += 1;
            }
            self.digits()?;
        }
        Ok(&self.text[start..self.position])
    }

    /// Validates and passes over a string; the text between the quotes and whether it has escapes.
    fn skip_string(&mut self) -> Parsed<(&'a str, bool)> {
        self.position += 1;
        let start = self.position;
        let bytes = self.bytes();
        let mut escaped = false;
        loop {
            let plain = bytes[self.position..].iter().position(|byte| ENDS_PLAIN_TEXT[usize::from(*byte)]);
            self.position = plain.map_or(bytes.len(), |length| self.position + length);
            match bytes.get(self.position) {
                None => return Err(self.expected("the closing quote of a string")),
                Some(b'"') => {
                    let raw = &self.text[start..self.position];
                    self.position += 1;
                    return Ok((raw, escaped));
                }
                Some(b'\\') => {
                    escaped = true;
                    self.position += 1;
                    match bytes.get(self.position) {
                        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.position += 1,
                        Some(b'u') => {
                            let digits = bytes.get(self.position + 1..self.position + 5);
                            if !digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) {
                                return Err(self.expected("'u' and four hexadecimal digits"));
                            }
                            self.position += 5;
                        }
                        _ => return Err(self.expected("an escape sequence")),
                    }
                }
                Some(0..=0x1f) => return Err(self.expected("a string without raw control characters")),
                Some(_) => self.position += plain_bytes(&bytes[self.position..]).max(1),
            }
        }
    }

    #[inline]
    fn string(&mut self) -> Parsed<Cow<'a, str>> {
        let (raw, escaped) = self.skip_string()?;
        Ok(if escaped { Cow::Owned(unescape(raw)) } else { Cow::Borrowed(raw) })
    }

    #[inline]
    fn shared_name(&mut self, name: &str) -> Arc<str> {
        if let Some(index) = self.names.iter().position(|known| **known == *name) {
            self.next_name = (index + 1) % self.names.len();
            return self.names[index].clone();
        }
        let fresh: Arc<str> = Arc::from(name);
        // A name that needs escapes cannot be compared with the text as it stands.
        if self.names.len() < Self::SHARED_NAMES && !name.contains(['"', '\\']) {
            self.names.push(fresh.clone());
        }
        self.next_name = 0;
        fresh
    }

    /// Reads one value. Not recursive, because documents may be deeper than stacks.
    fn value(&mut self) -> Parsed<Value> {
        let mut open: Vec<Open> = Vec::new();
        loop {
            let mut complete = match self.peek() {
                Some(b'{') => {
                    if self.open(b'}')? {
                        Some(Value::context(Context::new()))
                    } else {
                        open.push(Open::Context(Context::new(), self.member_name()?));
                        None
                    }
                }
                Some(b'[') => {
                    if self.open(b']')? {
                        Some(Value::list(Vec::new()))
                    } else {
                        open.push(Open::List(Vec::new()));
                        None
                    }
                }
                _ => Some(self.scalar()?),
            };
            // A complete value goes into the one around it, which may be complete then.
            while let Some(value) = complete.take() {
                let close = match open.last_mut() {
                    None => return Ok(value),
                    Some(Open::List(items)) => {
                        items.push(value);
                        b']'
                    }
                    Some(Open::Context(context, name)) => {
                        context.put(name.clone(), value);
                        b'}'
                    }
                };
                if self.separator(close)? {
                    complete = open.pop().map(Open::complete);
                } else if let Some(Open::Context(_, name)) = open.last_mut() {
                    *name = self.member_name()?;
                }
            }
        }
    }

    #[inline]
    fn member_name(&mut self) -> Parsed<Arc<str>> {
        // Objects in a list mostly have the same names in the same order: the next name is guessed before it is read.
        if let Some(guess) = self.names.get(self.next_name)
            && self.peek() == Some(b'"')
            && self.bytes()[self.position + 1..].starts_with(guess.as_bytes())
            && self.bytes().get(self.position + 1 + guess.len()) == Some(&b'"')
        {
            let guess = guess.clone();
            self.position += guess.len() + 2;
            self.next_name = (self.next_name + 1) % self.names.len();
            self.colon()?;
            return Ok(guess);
        }
        let name = self.name()?;
        Ok(self.shared_name(&name))
    }

    #[inline]
    fn scalar(&mut self) -> Parsed<Value> {
        match self.peek() {
            Some(b'"') => Ok(Value::String(Arc::from(&*self.string()?))),
            Some(b'-' | b'0'..=b'9') => {
                let offset = self.position;
                let text = self.number_text()?;
                Number::parse(text).map(Value::Number).ok_or_else(|| Box::new(JsonError::NumberTooLarge { offset }))
            }
            _ => self.word(),
        }
    }
}

/// A value that is not complete yet; of a context, also the name of the entry to come.
enum Open {
    List(Vec<Value>),
    Context(Context, Arc<str>),
}

impl Open {
    fn complete(self) -> Value {
        match self {
            Open::List(items) => Value::list(items),
            Open::Context(context, _) => Value::context(context),
        }
    }
}

/// Reads a whole document.
pub(crate) fn read(text: &str) -> Parsed<Value> {
    let mut reader = Reader::new(text);
    reader.skip_space();
    let value = reader.value()?;
    reader.end()?;
    Ok(value)
}

/// What stands at a path of member names in a text.
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
        let mut reader = Reader::new(current);
        reader.skip_space();
        if reader.peek() != Some(b'{') {
            return Ok(Found::Other);
        }
        let mut found = None;
        let whole = current;
        reader.members(|reader, member| {
            let start = reader.position;
            reader.skip_value()?;
            if *member == **name {
                found = Some(&whole[start..reader.position]);
            }
            Ok(())
        })?;
        match found {
            Some(text) => current = text,
            None => return Ok(Found::Other),
        }
    }
    Ok(Found::Member(current))
}

/// Decodes the escapes of a validated string. A lone surrogate becomes the replacement character.
fn unescape(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let (character, used) = unescape_one(&rest[at..]);
        out.push(character);
        rest = &rest[at + used..];
    }
    out.push_str(rest);
    out
}

/// Decodes the escape at the start of `text`; the character and the number of bytes it took.
fn unescape_one(text: &str) -> (char, usize) {
    let unit = |at: usize| text.get(at..at + 4).and_then(|digits| u32::from_str_radix(digits, 16).ok());
    match text.as_bytes()[1] {
        b'b' => ('\u{8}', 2),
        b'f' => ('\u{c}', 2),
        b'n' => ('\n', 2),
        b'r' => ('\r', 2),
        b't' => ('\t', 2),
        b'u' => {
            let high = unit(2).unwrap_or(0xfffd);
            if (0xd800..0xdc00).contains(&high)
                && text.get(6..8) == Some("\\u")
                && let Some(low) = unit(8).filter(|low| (0xdc00..0xe000).contains(low))
            {
                let code = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
                return (char::from_u32(code).unwrap_or('\u{fffd}'), 12);
            }
            (char::from_u32(high).unwrap_or('\u{fffd}'), 6)
        }
        other => (char::from(other), 2),
    }
}

/// How many bytes from the front are ordinary text of a string: no quote, no backslash, no control character. Looks at
/// eight at a time, because variables are mostly long strings.
fn plain_bytes(bytes: &[u8]) -> usize {
    const ONES: u64 = u64::MAX / 255;
    const HIGH: u64 = ONES << 7;
    let below = |word: u64, limit: u8| word.wrapping_sub(ONES * u64::from(limit)) & !word & HIGH;
    let mut count = 0;
    while let Some(chunk) = bytes[count..].first_chunk::<8>() {
        let word = u64::from_le_bytes(*chunk);
        let quote = word ^ (ONES * u64::from(b'"'));
        let backslash = word ^ (ONES * u64::from(b'\\'));
        let special = below(word, 0x20) | below(quote, 1) | below(backslash, 1);
        if special != 0 {
            // Borrows of the subtraction can only mark bytes above a marked one, so the lowest mark is right.
            return count + special.trailing_zeros() as usize / 8;
        }
        count += 8;
    }
    count + bytes[count..].iter().take_while(|byte| !matches!(byte, b'"' | b'\\' | 0..=0x1f)).count()
}
