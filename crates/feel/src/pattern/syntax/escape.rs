//! What a backslash begins.

use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};

use super::{Fault, Parser, property};
use crate::pattern::tree::Anchor;

/// What an escape stands for.
pub(super) enum Escaped {
    Char(char),
    Class(ClassUnicode),
    Anchor(Anchor),
    Reference(u32),
    /// A line end of two characters, or one of the class.
    LineEnd(ClassUnicode),
}

/// Characters that end a line, the vertical ones of all.
const VERTICAL: &[(char, char)] = &[('\n', '\r'), ('\u{85}', '\u{85}'), ('\u{2028}', '\u{2029}')];
const HORIZONTAL: &[(char, char)] = &[
    ('\t', '\t'),
    (' ', ' '),
    ('\u{a0}', '\u{a0}'),
    ('\u{1680}', '\u{1680}'),
    ('\u{180e}', '\u{180e}'),
    ('\u{2000}', '\u{200a}'),
    ('\u{202f}', '\u{202f}'),
    ('\u{205f}', '\u{205f}'),
    ('\u{3000}', '\u{3000}'),
];

/// A class of ranges.
pub(super) fn class_of(ranges: &[(char, char)]) -> ClassUnicode {
    ClassUnicode::new(ranges.iter().map(|(start, end)| ClassUnicodeRange::new(*start, *end)))
}

fn negated(mut class: ClassUnicode, is_negated: bool) -> ClassUnicode {
    if is_negated {
        class.negate();
    }
    class
}

impl Parser<'_> {
    /// After the backslash.
    pub(super) fn escape(&mut self) -> Result<Escaped, Fault> {
        let letter = self.next().ok_or("it ends with a '\\'")?;
        let is_upper = letter.is_ascii_uppercase();
        Ok(match letter {
            't' => Escaped::Char('\t'),
            'n' => Escaped::Char('\n'),
            'r' => Escaped::Char('\r'),
            'f' => Escaped::Char('\u{c}'),
            'a' => Escaped::Char('\u{7}'),
            'e' => Escaped::Char('\u{1b}'),
            '0' => Escaped::Char(self.octal()?),
            'x' => Escaped::Char(self.hexadecimal()?),
            'u' => Escaped::Char(self.unit()?),
            'c' => Escaped::Char(self.control()?),
            'd' | 'D' => Escaped::Class(negated(property::perl(r"\d"), is_upper)),
            's' | 'S' => Escaped::Class(negated(property::perl(r"\s"), is_upper)),
            'w' | 'W' => Escaped::Class(negated(property::perl(r"\w"), is_upper)),
            'h' | 'H' => Escaped::Class(negated(class_of(HORIZONTAL), is_upper)),
            'v' | 'V' => Escaped::Class(negated(class_of(VERTICAL), is_upper)),
            'p' | 'P' => Escaped::Class(self.property(is_upper)?),
            'R' => Escaped::LineEnd(class_of(VERTICAL)),
            'A' => Escaped::Anchor(Anchor::TextStart),
            'z' => Escaped::Anchor(Anchor::TextEnd),
            'Z' => Escaped::Anchor(Anchor::LastLineEnd(self.flags.lines())),
            'G' => Escaped::Anchor(Anchor::MatchEnd),
            'b' if !self.rest().starts_with('{') => Escaped::Anchor(Anchor::WordBoundary),
            'B' => Escaped::Anchor(Anchor::NoWordBoundary),
            'k' if self.eat("<") => {
                let name = self.group_name()?;
                let known = self.names.iter().find(|(known, _)| **known == *name);
                Escaped::Reference(known.ok_or("a reference names no group before it")?.1)
            }
            '1'..='9' => Escaped::Reference(self.reference(letter)?),
            other if other.is_ascii_alphanumeric() => return Err("a '\\' is before a letter without a meaning"),
            other => Escaped::Char(other),
        })
    }

    /// As many digits count as name a group that was opened.
    fn reference(&mut self, first: char) -> Result<u32, Fault> {
        let mut group = first.to_digit(10).unwrap_or(0);
        while let Some(digit) = self.peek().and_then(|next| next.to_digit(10)) {
            let next = group.saturating_mul(10).saturating_add(digit);
            if next >= self.groups {
                break;
            }
            group = next;
            self.at += 1;
        }
        if group < self.groups { Ok(group) } else { Err("a reference names no group before it") }
    }

    /// `\0` with one to three digits.
    fn octal(&mut self) -> Result<char, Fault> {
        const FAULT: Fault = "a '\\0' has no octal digits after it";
        let rest = self.rest();
        let digits = rest.bytes().take(3).take_while(|byte| matches!(byte, b'0'..=b'7')).count();
        let digits = if digits == 3 && rest.as_bytes()[0] > b'3' { 2 } else { digits };
        let code = u32::from_str_radix(&rest[..digits], 8).map_err(|_| FAULT)?;
        self.at += digits;
        char::from_u32(code).ok_or(FAULT)
    }

    fn digits(&mut self, count: usize) -> Option<u32> {
        let digits = self.rest().get(..count)?;
        if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        self.at += count;
        u32::from_str_radix(digits, 16).ok()
    }

    /// `\x41` or `\x{41}`.
    fn hexadecimal(&mut self) -> Result<char, Fault> {
        const FAULT: Fault = "a '\\x' has no hexadecimal digits of a character after it";
        let code = if self.eat("{") {
            let length = self.rest().find('}').filter(|length| (1..=6).contains(length)).ok_or(FAULT)?;
            let code = self.digits(length);
            self.at += 1;
            code
        } else {
            self.digits(2)
        };
        code.and_then(char::from_u32).ok_or(FAULT)
    }

    /// `\u0041`, or two of them that are one character.
    fn unit(&mut self) -> Result<char, Fault> {
        const FAULT: Fault = "a '\\u' has no four hexadecimal digits of a character after it";
        let code = self.digits(4).ok_or(FAULT)?;
        if (0xd800..0xdc00).contains(&code) && self.eat("\\u") {
            let low = self.digits(4).filter(|low| (0xdc00..0xe000).contains(low)).ok_or(FAULT)?;
            return char::from_u32(0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00)).ok_or(FAULT);
        }
        char::from_u32(code).ok_or(FAULT)
    }

    fn control(&mut self) -> Result<char, Fault> {
        let letter = self.next().filter(char::is_ascii).ok_or("a '\\c' has no character after it")?;
        Ok(char::from(letter as u8 ^ 64))
    }

    /// `\pL` or `\p{Lu}`. Letter case is nothing that blocks know.
    fn property(&mut self, is_negated: bool) -> Result<ClassUnicode, Fault> {
        const FAULT: Fault = "a '\\p' has no name of a property after it that is known";
        let name = if self.eat("{") {
            let name = self.rest().split_once('}').ok_or(FAULT)?.0;
            self.at += name.len() + 1;
            name
        } else {
            let length = self.peek().ok_or(FAULT)?.len_utf8();
            self.at += length;
            &self.text[self.at - length..self.at]
        };
        let found = property::find(name).ok_or(FAULT)?;
        let class = match found {
            property::Found::Block(class) => class,
            property::Found::Property(mut class) => {
                if self.flags.ignores_case {
                    class.case_fold_simple();
                }
                class
            }
        };
        Ok(negated(class, is_negated))
    }
}
