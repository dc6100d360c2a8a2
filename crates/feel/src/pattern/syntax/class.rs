//! Classes of characters in brackets.

use regex_syntax::hir::ClassUnicode;

use super::escape::Escaped;
use super::{Fault, Parser};

impl Parser<'_> {
    /// What follows an opening bracket, up to the closing one. Recursion is bounded by the nesting that a pattern may have.
    pub(super) fn class(&mut self) -> Result<ClassUnicode, Fault> {
        self.enter()?;
        let is_negated = self.eat("^");
        let finished = |mut class: ClassUnicode| {
            if is_negated {
                class.negate();
            }
            class
        };
        // What is left of `&&`, and what was read since.
        let mut intersected: Option<ClassUnicode> = None;
        let (mut class, mut is_empty) = (ClassUnicode::empty(), true);
        let complete = |intersected: Option<ClassUnicode>, class: ClassUnicode, is_empty| match intersected {
            None => class,
            Some(left) if is_empty => left,
            Some(mut left) => {
                left.intersect(&class);
                left
            }
        };
        loop {
            if self.eat("&&") {
                if is_empty && intersected.is_none() {
                    return Err("a '&&' has nothing before it");
                }
                intersected =
                    Some(complete(intersected.take(), std::mem::replace(&mut class, ClassUnicode::empty()), is_empty));
                is_empty = true;
                continue;
            }
            match self.next().ok_or("a class is not closed with ']'")? {
                ']' if !is_empty || intersected.is_some() => {
                    self.leave();
                    return Ok(finished(complete(intersected, class, is_empty)));
                }
                '[' => class.union(&self.class()?),
                '-' if !is_empty && self.eat("[") => {
                    let inner = self.class()?;
                    if self.eat("]") {
                        self.leave();
                        let mut left = finished(complete(intersected, class, is_empty));
                        left.difference(&inner);
                        return Ok(left);
                    }
                    class.union(&self.range('-', '-'));
                    class.union(&inner);
                }
                '\\' if self.eat("Q") => self.quoted_in_class(&mut class),
                first => class.union(&self.item(first)?),
            }
            is_empty = false;
            self.charge(&class)?;
        }
    }

    fn quoted_in_class(&mut self, class: &mut ClassUnicode) {
        let quoted = self.rest().split("\\E").next().unwrap_or_default();
        self.at = self.text.len().min(self.at + quoted.len() + 2);
        for character in quoted.chars() {
            class.union(&self.range(character, character));
        }
    }

    /// A character, a range of characters or an escape.
    fn item(&mut self, first: char) -> Result<ClassUnicode, Fault> {
        let start = match first {
            '\\' => match self.escape_in_class()? {
                Ok(start) => start,
                Err(class) => return Ok(class),
            },
            other => other,
        };
        let after = self.rest().strip_prefix('-').and_then(|rest| rest.chars().next());
        if matches!(after, None | Some('[' | ']')) {
            return Ok(self.range(start, start));
        }
        self.at += 1;
        let end = match self.next() {
            Some('\\') => self.escape_in_class()?.map_err(|_| "a range ends with no character")?,
            Some(end) => end,
            None => return Err("a class is not closed with ']'"),
        };
        if end < start { Err("a range ends below its start") } else { Ok(self.range(start, end)) }
    }

    /// A character, or else a class.
    fn escape_in_class(&mut self) -> Result<Result<char, ClassUnicode>, Fault> {
        match self.escape()? {
            Escaped::Char(character) => Ok(Ok(character)),
            Escaped::Class(class) => {
                self.charge(&class)?;
                Ok(Err(class))
            }
            _ => Err("a class contains an escape that is no character"),
        }
    }
}
