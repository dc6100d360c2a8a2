//! A cursor over a JSON text: validates what it passes over.

use std::borrow::Cow;
use std::cell::Cell;
use std::sync::Arc;

use smallvec::SmallVec;

use super::canonical;
use super::{DEPTH_LIMIT, JsonError, Parsed};
use crate::number::Number;
use crate::value::Value;

/// A cursor over a JSON text.
pub(super) struct Reader<'a> {
    text: &'a str,
    pub(super) position: usize,
    depth: usize,
    /// Whether something was met since that is not written as it is kept.
    is_respelled: Cell<bool>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(text: &'a str) -> Reader<'a> {
        Reader { text, position: 0, depth: 0, is_respelled: Cell::new(false) }
    }

    #[inline]
    pub(super) fn bytes(&self) -> &'a [u8] {
        self.text.as_bytes()
    }

    #[inline]
    pub(super) fn peek(&self) -> Option<u8> {
        self.bytes().get(self.position).copied()
    }

    #[inline]
    pub(super) fn skip_space(&mut self) {
        self.position = self.behind_space(self.position);
    }

    #[inline]
    pub(super) fn behind_space(&self, at: usize) -> usize {
        // Mostly there is none.
        if self.bytes().get(at).is_some_and(|byte| *byte > b' ') { at } else { self.behind_blanks(at) }
    }

    #[inline(never)]
    fn behind_blanks(&self, mut at: usize) -> usize {
        self.is_respelled.set(true);
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.bytes().get(at) {
            at += 1;
        }
        at
    }

    #[cold]
    pub(super) fn expected(&self, expected: &'static str) -> Box<JsonError> {
        self.expected_at(self.position, expected)
    }

    #[cold]
    fn expected_at(&self, offset: usize, expected: &'static str) -> Box<JsonError> {
        let rest = self.text.get(offset..).unwrap_or("");
        let found = match rest.chars().next() {
            None => "the end of the text".to_owned(),
            Some(character) => format!("'{}'", character.escape_debug()),
        };
        Box::new(JsonError::Syntax { expected, found, offset })
    }

    pub(super) fn end(&mut self) -> Parsed<()> {
        self.skip_space();
        if self.peek().is_none() { Ok(()) } else { Err(self.expected("the end of the text")) }
    }

    /// Visits the members of the object at the cursor; `visit` must consume the value. The cursor ends behind the object.
    pub(super) fn members(&mut self, mut visit: impl FnMut(&mut Reader<'a>, Cow<'a, str>) -> Parsed<()>) -> Parsed<()> {
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

    /// Passes over the object at the cursor. `visit` gets the name of each member and may consume its value (true).
    #[inline]
    pub(super) fn select(&mut self, mut visit: impl FnMut(&mut Reader<'a>, &[u8]) -> Parsed<bool>) -> Parsed<()> {
        if self.open(b'}')? {
            return Ok(());
        }
        let bytes = self.bytes();
        loop {
            let start = self.position + 1;
            let plain = start + plain_bytes(bytes.get(start..).unwrap_or_default());
            let consumed = if self.peek() == Some(b'"') && bytes.get(plain) == Some(&b'"') {
                self.position = self.behind_colon(plain + 1)?;
                visit(self, &bytes[start..plain])?
            } else {
                let name = self.name()?;
                visit(self, name.as_bytes())?
            };
            if !consumed {
                self.skip_value()?;
            }
            if self.separator(b'}')? {
                return Ok(());
            }
        }
    }

    /// The text of the member of this name, if the text is an object that has one. The last one counts.
    pub(super) fn member(&mut self, wanted: &str) -> Parsed<Option<&'a str>> {
        self.skip_space();
        if self.peek() != Some(b'{') {
            return Ok(None);
        }
        let mut found = None;
        self.select(|reader, name| {
            let wanted = name == wanted.as_bytes();
            if wanted {
                let start = reader.position;
                reader.skip_value()?;
                found = Some(reader.since(start));
            }
            Ok(wanted)
        })?;
        Ok(found)
    }

    /// The text from there to the cursor.
    #[inline]
    pub(super) fn since(&self, start: usize) -> &'a str {
        &self.text[start..self.position]
    }

    /// Skips the bracket at the cursor, and the closing one if it follows immediately (true).
    #[inline]
    pub(super) fn open(&mut self, close: u8) -> Parsed<bool> {
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
    pub(super) fn name(&mut self) -> Parsed<Cow<'a, str>> {
        if self.peek() != Some(b'"') {
            return Err(self.expected("a name in quotes"));
        }
        let name = self.string()?;
        self.position = self.behind_colon(self.position)?;
        Ok(name)
    }

    /// Passes over a colon and the space around it.
    #[inline]
    pub(super) fn behind_colon(&self, at: usize) -> Parsed<usize> {
        let at = if self.bytes().get(at) == Some(&b':') { at } else { self.behind_space(at) };
        if self.bytes().get(at) != Some(&b':') {
            return Err(self.expected_at(at, "':'"));
        }
        Ok(self.behind_space(at + 1))
    }

    #[inline]
    fn behind_name(&self, at: usize) -> Parsed<usize> {
        if self.bytes().get(at) != Some(&b'"') {
            return Err(self.expected_at(at, "a name in quotes"));
        }
        self.behind_colon(self.behind_string(at)?)
    }

    /// Consumes a comma (false) or the closing character (true).
    #[inline]
    pub(super) fn separator(&mut self, close: u8) -> Parsed<bool> {
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
            _ => Err(self.no_separator(self.position, close)),
        }
    }

    /// Validates and passes over one value.
    #[inline]
    pub(super) fn skip_value(&mut self) -> Parsed<()> {
        self.position = match self.peek() {
            Some(b'"') => self.behind_string(self.position)?,
            Some(b'-' | b'0'..=b'9') => self.behind_number(self.position)?,
            _ => self.behind_nested(self.position)?,
        };
        Ok(())
    }

    /// Validates and passes over one value, and gives it in the spelling in which it is kept.
    pub(super) fn canonical_value(&mut self) -> Parsed<Cow<'a, str>> {
        let start = self.position;
        self.is_respelled.set(false);
        self.skip_value()?;
        let value = self.since(start);
        Ok(if self.is_respelled.get() { canonical::respelled(value).into() } else { value.into() })
    }

    /// Validates and passes over one value. Not recursive, because documents may be deeper than stacks.
    fn behind_nested(&self, mut at: usize) -> Parsed<usize> {
        let bytes = self.bytes();
        let mut open: SmallVec<[u8; 32]> = SmallVec::new();
        // The bracket that ends the innermost array or object; 0 outside of all.
        let mut close = 0;
        loop {
            at = match bytes.get(at) {
                Some(b'"') => self.behind_string(at)?,
                Some(b'-' | b'0'..=b'9') => self.behind_number(at)?,
                Some(bracket @ (b'{' | b'[')) => {
                    if self.depth + open.len() == DEPTH_LIMIT {
                        return Err(Box::new(JsonError::TooDeep { offset: at }));
                    }
                    // In ASCII the closing brackets are two after the opening ones.
                    let closing = bracket + 2;
                    at = self.behind_space(at + 1);
                    if bytes.get(at) != Some(&closing) {
                        open.push(close);
                        close = closing;
                        if close == b'}' {
                            at = self.behind_name(at)?;
                        }
                        continue;
                    }
                    at + 1
                }
                _ => self.word_at(at)?.1,
            };
            // The value is complete, and with it perhaps the ones around it.
            loop {
                if close == 0 {
                    return Ok(at);
                }
                at = self.behind_space(at);
                match bytes.get(at) {
                    Some(b',') => {
                        at = self.behind_space(at + 1);
                        if close == b'}' {
                            at = self.behind_name(at)?;
                        }
                        break;
                    }
                    Some(byte) if *byte == close => {
                        at += 1;
                        close = open.pop().unwrap_or(0);
                    }
                    _ => return Err(self.no_separator(at, close)),
                }
            }
        }
    }

    #[cold]
    fn no_separator(&self, at: usize, close: u8) -> Box<JsonError> {
        self.expected_at(at, if close == b'}' { "',' or '}'" } else { "',' or ']'" })
    }

    /// The value of the word at the cursor, and where it ends.
    fn word_at(&self, at: usize) -> Parsed<(Value, usize)> {
        let rest = self.bytes().get(at..).unwrap_or_default();
        for (word, value) in [("true", Value::Boolean(true)), ("false", Value::Boolean(false)), ("null", Value::Null)] {
            if rest.starts_with(word.as_bytes()) {
                return Ok((value, at + word.len()));
            }
        }
        Err(self.expected_at(at, "a JSON value"))
    }

    #[inline]
    fn behind_digits(&self, start: usize) -> Parsed<usize> {
        let mut at = start;
        while let Some(b'0'..=b'9') = self.bytes().get(at) {
            at += 1;
        }
        if at == start { Err(self.expected_at(at, "a digit")) } else { Ok(at) }
    }

    #[inline]
    fn behind_number(&self, start: usize) -> Parsed<usize> {
        let bytes = self.bytes();
        let mut at = start;
        if bytes.get(at) == Some(&b'-') {
            at += 1;
        }
        at = if bytes.get(at) == Some(&b'0') { at + 1 } else { self.behind_digits(at)? };
        if let Some(b'.' | b'e' | b'E') = bytes.get(at) {
            return self.behind_fraction(start, at);
        }
        if bytes[start..at] == *b"-0" {
            self.is_respelled.set(true);
        }
        Ok(at)
    }

    fn behind_fraction(&self, start: usize, mut at: usize) -> Parsed<usize> {
        let bytes = self.bytes();
        if bytes.get(at) == Some(&b'.') {
            at = self.behind_digits(at + 1)?;
        }
        if let Some(b'e' | b'E') = bytes.get(at) {
            at += 1;
            if let Some(b'+' | b'-') = bytes.get(at) {
                at += 1;
            }
            at = self.behind_digits(at)?;
        }
        if !canonical::is_canonical_fraction(&bytes[start..at]) {
            self.is_respelled.set(true);
        }
        Ok(at)
    }

    /// Validates and passes over the string that starts with the quote here.
    #[inline]
    fn behind_string(&self, at: usize) -> Parsed<usize> {
        let bytes = self.bytes();
        let end = at + 1 + plain_bytes(&bytes[at + 1..]);
        if bytes.get(end) == Some(&b'"') { Ok(end + 1) } else { self.behind_escapes(end) }
    }

    /// The same from the first byte inside of a string that is no ordinary text.
    fn behind_escapes(&self, mut at: usize) -> Parsed<usize> {
        let bytes = self.bytes();
        self.is_respelled.set(true);
        loop {
            match bytes.get(at) {
                None => return Err(self.expected_at(at, "the closing quote of a string")),
                Some(b'"') => return Ok(at + 1),
                Some(b'\\') => {
                    at += 1;
                    match bytes.get(at) {
                        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => at += 1,
                        Some(b'u') => {
                            let digits = bytes.get(at + 1..at + 5);
                            if !digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) {
                                return Err(self.expected_at(at, "'u' and four hexadecimal digits"));
                            }
                            at += 5;
                        }
                        _ => return Err(self.expected_at(at, "an escape sequence")),
                    }
                }
                Some(0..=0x1f) => return Err(self.expected_at(at, "a string without raw control characters")),
                Some(_) => at += plain_bytes(&bytes[at..]),
            }
        }
    }

    #[inline]
    pub(super) fn string(&mut self) -> Parsed<Cow<'a, str>> {
        let start = self.position + 1;
        let plain = start + plain_bytes(&self.bytes()[start..]);
        if self.bytes().get(plain) == Some(&b'"') {
            self.position = plain + 1;
            return Ok(Cow::Borrowed(&self.text[start..plain]));
        }
        self.position = self.behind_escapes(plain)?;
        Ok(Cow::Owned(unescape(&self.text[start..self.position - 1])))
    }
    #[inline]
    pub(super) fn scalar(&mut self) -> Parsed<Value> {
        let start = self.position;
        match self.peek() {
            Some(b'"') => Ok(Value::String(Arc::from(&*self.string()?))),
            Some(b'-' | b'0'..=b'9') => {
                self.position = self.behind_number(start)?;
                let number = Number::parse(&self.text[start..self.position]);
                number.map(Value::Number).ok_or_else(|| Box::new(JsonError::NumberTooLarge { offset: start }))
            }
            _ => {
                let (value, end) = self.word_at(start)?;
                self.position = end;
                Ok(value)
            }
        }
    }
}

/// Decodes the escapes of a validated string. A lone surrogate becomes the replacement character.
pub(super) fn unescape(raw: &str) -> String {
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
pub(super) fn plain_bytes(bytes: &[u8]) -> usize {
    const ONES: u64 = u64::MAX / 255;
    const HIGH: u64 = ONES << 7;
    let below = |word: u64, limit: u8| word.wrapping_sub(ONES * u64::from(limit)) & !word;
    let mut count = 0;
    while let Some(chunk) = bytes[count..].first_chunk::<8>() {
        let word = u64::from_le_bytes(*chunk);
        let quote = word ^ (ONES * u64::from(b'"'));
        let backslash = word ^ (ONES * u64::from(b'\\'));
        let special = (below(word, 0x20) | below(quote, 1) | below(backslash, 1)) & HIGH;
        if special != 0 {
            // Borrows of the subtraction can only mark bytes above a marked one, so the lowest mark is right.
            return count + special.trailing_zeros() as usize / 8;
        }
        count += 8;
    }
    count + bytes[count..].iter().take_while(|byte| !matches!(byte, b'"' | b'\\' | 0..=0x1f)).count()
}
