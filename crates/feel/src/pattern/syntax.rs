//! Reads patterns as `java.util.regex` writes them.
//!
//! Two things are those of the standard instead: `\w`, `\d`, `\s` and letter case mean all scripts, and a class can be
//! subtracted at the end of another one (`[A-Z-[OI]]`).

mod class;
mod escape;
mod property;

use std::sync::Arc;

use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};

use super::NESTING_LIMIT;
use super::tree::{Anchor, Around, LINE_ENDS, Lines, Repeat, Tree};
use escape::Escaped;

/// How many ranges of characters the classes of a pattern may have together.
const CLASS_RANGES_MAX: usize = 100_000;

/// Why a pattern cannot be read.
pub(super) type Fault = &'static str;

/// What the flags of a pattern say.
#[derive(Clone, Copy, Default)]
pub(super) struct Flags {
    pub(super) dot_matches_all: bool,
    pub(super) multi_line: bool,
    pub(super) ignores_case: bool,
    pub(super) has_comments: bool,
    pub(super) unix_lines: bool,
}

impl Flags {
    /// Sets or clears a flag; `false` if there is none of this letter.
    pub(super) fn set(&mut self, letter: char, on: bool) -> bool {
        match letter {
            's' => self.dot_matches_all = on,
            'm' => self.multi_line = on,
            'i' => self.ignores_case = on,
            'x' => self.has_comments = on,
            'd' => self.unix_lines = on,
            // Letter case and classes are those of Unicode anyway.
            'u' | 'U' => {}
            _ => return false,
        }
        true
    }

    fn lines(self) -> Lines {
        if self.unix_lines { Lines::Unix } else { Lines::Any }
    }
}

/// A pattern that was read.
pub(super) struct Parsed {
    pub(super) tree: Tree,
    /// How many groups there are, the whole match included.
    pub(super) groups: u32,
    pub(super) names: Vec<(Box<str>, u32)>,
    /// It looks for the end of the text before a last line end.
    pub(super) has_last_line_end: bool,
    /// It looks for starts or ends of lines.
    pub(super) has_line_anchors: bool,
}

/// Reads a pattern, or says what is wrong with it.
pub(super) fn parse(pattern: &str, flags: Flags) -> Result<Parsed, Fault> {
    let mut parser = Parser {
        text: pattern,
        at: 0,
        flags,
        groups: 1,
        names: Vec::new(),
        depth: 0,
        ranges: 0,
        has_last_line_end: false,
        has_line_anchors: false,
    };
    let tree = parser.choice()?;
    if parser.at < pattern.len() {
        return Err("a ')' closes no group");
    }
    let Parser { groups, names, has_last_line_end, has_line_anchors, .. } = parser;
    Ok(Parsed { tree, groups, names, has_last_line_end, has_line_anchors })
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    flags: Flags,
    groups: u32,
    names: Vec<(Box<str>, u32)>,
    depth: u32,
    ranges: usize,
    has_last_line_end: bool,
    has_line_anchors: bool,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    fn eat(&mut self, expected: &str) -> bool {
        let found = self.rest().starts_with(expected);
        if found {
            self.at += expected.len();
        }
        found
    }

    /// Goes into a group or class; [`Parser::leave`] comes back.
    fn enter(&mut self) -> Result<(), Fault> {
        self.depth += 1;
        if self.depth > NESTING_LIMIT { Err("its groups or classes are nested too deeply") } else { Ok(()) }
    }

    fn leave(&mut self) {
        self.depth -= 1;
    }

    /// Counts what a class takes.
    fn charge(&mut self, class: &ClassUnicode) -> Result<(), Fault> {
        self.ranges += class.ranges().len();
        if self.ranges > CLASS_RANGES_MAX { Err("its classes are too large") } else { Ok(()) }
    }

    /// Recursion is bounded by the nesting that a pattern may have.
    fn choice(&mut self) -> Result<Tree, Fault> {
        let first = self.sequence()?;
        if self.peek() != Some('|') {
            return Ok(first);
        }
        let mut branches = vec![first];
        while self.eat("|") {
            branches.push(self.sequence()?);
        }
        Ok(Tree::Choice(branches))
    }

    fn sequence(&mut self) -> Result<Tree, Fault> {
        let mut parts = Vec::new();
        loop {
            self.skip_comments();
            match self.peek() {
                None | Some('|' | ')') => break,
                Some('\\') if self.eat("\\Q") => self.quoted(&mut parts)?,
                Some(_) => {
                    if let Some(part) = self.atom()? {
                        parts.push(self.quantified(part)?);
                    }
                }
            }
        }
        Ok(match parts.len() {
            0 => Tree::Empty,
            1 => parts.remove(0),
            _ => Tree::Sequence(parts),
        })
    }

    /// With the flag for comments blanks have no meaning outside of classes, nor has what is between `#` and the end of a line.
    fn skip_comments(&mut self) {
        while self.flags.has_comments {
            match self.peek() {
                Some(blank) if blank.is_whitespace() => self.at += blank.len_utf8(),
                Some('#') => self.at += self.rest().find(LINE_ENDS).unwrap_or(self.rest().len()),
                _ => return,
            }
        }
    }

    /// Text up to `\E` in which nothing has a meaning; what repeats is its last character.
    fn quoted(&mut self, parts: &mut Vec<Tree>) -> Result<(), Fault> {
        let rest = self.rest();
        let quoted = rest.split("\\E").next().unwrap_or(rest);
        self.at = self.text.len().min(self.at + quoted.len() + 2);
        for character in quoted.chars() {
            let part = self.literal(character)?;
            parts.push(part);
        }
        match parts.pop() {
            Some(last) if !quoted.is_empty() => parts.push(self.quantified(last)?),
            last => parts.extend(last),
        }
        Ok(())
    }

    fn literal(&mut self, character: char) -> Result<Tree, Fault> {
        if !self.flags.ignores_case {
            return Ok(Tree::Char(character));
        }
        let class = self.range(character, character);
        match class.ranges() {
            [one] if one.start() == one.end() => Ok(Tree::Char(character)),
            _ => self.class_tree(class),
        }
    }

    fn range(&self, start: char, end: char) -> ClassUnicode {
        let mut class = ClassUnicode::new([ClassUnicodeRange::new(start, end)]);
        if self.flags.ignores_case {
            class.case_fold_simple();
        }
        class
    }

    fn class_tree(&mut self, class: ClassUnicode) -> Result<Tree, Fault> {
        self.charge(&class)?;
        Ok(Tree::Class(Arc::new(class)))
    }

    /// `None` for what only changes the flags.
    fn atom(&mut self) -> Result<Option<Tree>, Fault> {
        let Some(character) = self.next() else { return Ok(None) };
        Ok(Some(match character {
            '(' => return self.group(),
            '[' => {
                let class = self.class()?;
                self.class_tree(class)?
            }
            '.' => {
                let class = self.dot();
                self.class_tree(class)?
            }
            '^' if self.flags.multi_line => self.anchor(Anchor::LineStart(self.flags.lines())),
            '^' => Tree::Anchor(Anchor::TextStart),
            '$' if self.flags.multi_line => self.anchor(Anchor::LineEnd(self.flags.lines())),
            '$' => self.anchor(Anchor::LastLineEnd(self.flags.lines())),
            '\\' => self.escaped()?,
            '*' | '+' | '?' | '{' => return Err("a quantifier has nothing to repeat; write '\\' before a literal one"),
            other => self.literal(other)?,
        }))
    }

    fn anchor(&mut self, anchor: Anchor) -> Tree {
        match anchor {
            Anchor::LastLineEnd(_) => self.has_last_line_end = true,
            Anchor::LineStart(_) | Anchor::LineEnd(_) => self.has_line_anchors = true,
            _ => {}
        }
        Tree::Anchor(anchor)
    }

    fn dot(&self) -> ClassUnicode {
        let excluded: &[char] = match self.flags {
            Flags { dot_matches_all: true, .. } => &[],
            Flags { unix_lines: true, .. } => &LINE_ENDS[..1],
            _ => &LINE_ENDS,
        };
        let mut class = ClassUnicode::new(excluded.iter().map(|end| ClassUnicodeRange::new(*end, *end)));
        class.negate();
        class
    }

    fn escaped(&mut self) -> Result<Tree, Fault> {
        Ok(match self.escape()? {
            Escaped::Char(character) => self.literal(character)?,
            Escaped::Class(class) => self.class_tree(class)?,
            Escaped::Anchor(anchor) => self.anchor(anchor),
            Escaped::Reference(group) => Tree::Reference { group, ignores_case: self.flags.ignores_case },
            Escaped::LineEnd(class) => {
                Tree::Choice(vec![Tree::Sequence(vec![Tree::Char('\r'), Tree::Char('\n')]), self.class_tree(class)?])
            }
        })
    }

    fn quantified(&mut self, part: Tree) -> Result<Tree, Fault> {
        self.skip_comments();
        let (min, max) = if self.rest().starts_with('{') {
            self.counts()?
        } else if self.eat("?") {
            (0, Some(1))
        } else if self.eat("*") {
            (0, None)
        } else if self.eat("+") {
            (1, None)
        } else {
            return Ok(part);
        };
        let is_greedy = !self.eat("?");
        let repeated = Tree::Repeat(Box::new(part), Repeat { min, max, is_greedy });
        Ok(if is_greedy && self.eat("+") { Tree::Atomic(Box::new(repeated)) } else { repeated })
    }

    /// `{2}`, `{2,}` or `{2,5}`.
    fn counts(&mut self) -> Result<(u32, Option<u32>), Fault> {
        const FAULT: Fault = "a '{' begins no quantifier like {2}, {2,} or {2,5}; write '\\{' for a literal one";
        let inside = self.rest()[1..].split_once('}').ok_or(FAULT)?.0;
        self.at += inside.len() + 2;
        let number = |text: &str| {
            let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            if is_number { text.parse().map_err(|_| "a quantifier is too large") } else { Err(FAULT) }
        };
        let (min, max) = match inside.split_once(',') {
            None => {
                let count: u32 = number(inside)?;
                (count, Some(count))
            }
            Some((min, "")) => (number(min)?, None),
            Some((min, max)) => (number(min)?, Some(number(max)?)),
        };
        if max.is_some_and(|max| max < min) { Err("a quantifier ends below its start") } else { Ok((min, max)) }
    }

    /// What follows an opening parenthesis.
    fn group(&mut self) -> Result<Option<Tree>, Fault> {
        let around = |is_behind, is_negative| Some(Around { is_behind, is_negative });
        let outside = self.flags;
        let (mut look, mut is_atomic, mut index) = (None, false, None);
        if self.eat("?=") {
            look = around(false, false);
        } else if self.eat("?!") {
            look = around(false, true);
        } else if self.eat("?<=") {
            look = around(true, false);
        } else if self.eat("?<!") {
            look = around(true, true);
        } else if self.eat("?>") {
            is_atomic = true;
        } else if self.eat("?<") {
            index = Some(self.groups);
            self.name()?;
            self.groups += 1;
        } else if self.eat("?") {
            if self.flags_end_here()? {
                return Ok(None);
            }
        } else {
            index = Some(self.groups);
            self.groups += 1;
        }
        self.enter()?;
        let inner = self.choice()?;
        self.leave();
        if !self.eat(")") {
            return Err("a group is not closed");
        }
        self.flags = outside;
        let inner = Box::new(inner);
        Ok(Some(match (index, look) {
            (Some(index), _) => Tree::Capture(index, inner),
            (None, Some(look)) => Tree::Around(look, inner),
            (None, None) if is_atomic => Tree::Atomic(inner),
            (None, None) => *inner,
        }))
    }

    /// Reads `i-s:` or `i-s)`, or nothing before a colon; whether they hold for what follows the parenthesis.
    fn flags_end_here(&mut self) -> Result<bool, Fault> {
        let mut on = true;
        loop {
            match self.next() {
                Some(')') => return Ok(true),
                Some(':') => return Ok(false),
                Some('-') if on => on = false,
                Some(letter) if self.flags.set(letter, on) => {}
                _ => return Err("a '(?' begins no group that is known"),
            }
        }
    }

    /// The name of a group, after `(?<`.
    fn name(&mut self) -> Result<(), Fault> {
        let name = self.group_name()?;
        if self.names.iter().any(|(known, _)| **known == *name) {
            return Err("two groups have the same name");
        }
        self.names.push((name.into(), self.groups));
        Ok(())
    }

    /// A name and the `>` after it.
    fn group_name(&mut self) -> Result<&'a str, Fault> {
        let (name, _) = self.rest().split_once('>').ok_or("the name of a group has no '>' after it")?;
        let is_name = name.starts_with(|first: char| first.is_ascii_alphabetic())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if !is_name {
            return Err("the name of a group may have letters and digits alone, and begins with a letter");
        }
        self.at += name.len() + 1;
        Ok(name)
    }
}
