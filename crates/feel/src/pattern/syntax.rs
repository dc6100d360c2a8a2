//! What patterns may contain that the library for regular expressions writes in another way.

use std::borrow::Cow;
use std::fmt::Write;

use super::blocks;

/// The pattern in the syntax of the library: blocks of Unicode (`\p{InBasicLatin}`, `\p{IsBasicLatin}`) become ranges, and
/// a class that is subtracted at the end of another one (`[A-Z-[OI]]`) a difference.
pub(super) fn translated(pattern: &str) -> Cow<'_, str> {
    let has_block = |start: &str| pattern.contains(start);
    if !pattern.contains("-[") && !has_block("\\p{I") && !has_block("\\P{I") {
        return Cow::Borrowed(pattern);
    }
    let mut translation = Translation { out: String::with_capacity(pattern.len() * 2), classes: Vec::new() };
    let mut rest = pattern;
    while let Some(character) = rest.chars().next() {
        rest = translation.step(rest, character);
    }
    Cow::Owned(translation.out)
}

struct Translation {
    out: String,
    /// The classes that are open, from the outside to the inside.
    classes: Vec<Class>,
}

struct Class {
    /// Where it begins in the output.
    start: usize,
    /// Where the hyphen is before an inner class that may be the end of it.
    hyphen: Option<usize>,
}

impl Translation {
    /// Takes the next character, or the escape that starts with it; returns the rest.
    fn step<'a>(&mut self, rest: &'a str, character: char) -> &'a str {
        let after = &rest[character.len_utf8()..];
        match character {
            '\\' => return self.escape(rest),
            '[' => self.classes.push(Class { start: self.out.len(), hyphen: None }),
            ']' if self.closes() => {
                self.classes.pop();
                self.out.push(']');
                if after.starts_with(']') {
                    self.subtract();
                } else if let Some(around) = self.classes.last_mut() {
                    around.hyphen = None;
                }
                return after;
            }
            '-' => {
                let at = self.out.len();
                if let Some(class) = self.classes.last_mut() {
                    class.hyphen = after.starts_with('[').then_some(at);
                }
            }
            _ => {}
        }
        self.out.push(character);
        after
    }

    /// Whether a closing bracket ends a class: as its first character it is literal.
    fn closes(&self) -> bool {
        self.classes.last().is_some_and(|class| !matches!(&self.out[class.start..], "[" | "[^"))
    }

    /// The class that encloses the one that just ended ends too. If there was a hyphen before, `[^a-z-[x]` becomes
    /// `[[^a-z]--[x]`.
    fn subtract(&mut self) {
        if let Some(Class { start, hyphen: Some(hyphen) }) = self.classes.last_mut()
            && !matches!(&self.out[*start..*hyphen], "[" | "[^")
        {
            self.out.replace_range(*hyphen..=*hyphen, "]--");
            self.out.insert(*start, '[');
        }
    }

    fn escape<'a>(&mut self, rest: &'a str) -> &'a str {
        if let Some((block, negated, after)) = block(rest) {
            let sign = if negated { "^" } else { "" };
            // Letter case is nothing that blocks know; a class cannot contain a flag, though.
            let (open, close) = if self.classes.is_empty() { ("(?-i:", ")") } else { ("", "") };
            let _ = write!(self.out, "{open}[{sign}\\x{{{:x}}}-\\x{{{:x}}}]{close}", block.first, block.last);
            return after;
        }
        let length = rest.char_indices().nth(2).map_or(rest.len(), |(at, _)| at);
        self.out.push_str(&rest[..length]);
        &rest[length..]
    }
}

/// The block in `\p{In…}`, `\p{Is…}` or, negated, `\P{…}`. `Is` means a script if there is one of this name.
fn block(rest: &str) -> Option<(&'static blocks::Block, bool, &str)> {
    let (negated, named) = match rest.strip_prefix("\\p{") {
        Some(named) => (false, named),
        None => (true, rest.strip_prefix("\\P{")?),
    };
    let (name, after) = named.split_once('}')?;
    let found = match name.strip_prefix("In") {
        Some(name) => blocks::find(name)?,
        None => blocks::find(name.strip_prefix("Is")?).filter(|block| !block.is_script_too)?,
    };
    Some((found, negated, after))
}
