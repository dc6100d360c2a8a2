//! Regular expressions of `matches`, `replace`, `split` and `extract`: bounded in size, linear in time.

mod blocks;
mod cost;
mod syntax;

use std::borrow::Cow;

use regex::{Captures, Regex, RegexBuilder};

use cost::Cost;

use crate::budget::{Budget, Exceeded};

/// How much memory a compiled pattern may take.
const COMPILED_LIMIT_BYTES: usize = 512 << 10;
/// How long a pattern may be.
const PATTERN_LIMIT_BYTES: usize = 8 << 10;
/// How deeply groups and classes may be nested.
const NESTING_LIMIT: u32 = 50;

/// A compiled pattern, and what a search with it costs.
#[derive(Debug)]
pub(crate) struct Pattern {
    pub(crate) regex: Regex,
    cost: Cost,
}

/// What the flags of a pattern say.
#[derive(Clone, Copy, Default)]
struct Flags {
    dot_matches_new_line: bool,
    multi_line: bool,
    case_insensitive: bool,
}

/// Compiles a pattern with the flags `s`, `m`, `i` and `x`; `None` if it is invalid or too large.
pub(crate) fn compile(pattern: &str, flags: &str) -> Option<Pattern> {
    if pattern.len() > PATTERN_LIMIT_BYTES {
        return None;
    }
    // Blanks have no meaning with `x`, except in a class.
    let pattern = if flags.contains('x') { Cow::Owned(without_blanks(pattern)) } else { Cow::Borrowed(pattern) };
    let mut known = Flags::default();
    for flag in flags.chars() {
        match flag {
            's' => known.dot_matches_new_line = true,
            'm' => known.multi_line = true,
            'i' => known.case_insensitive = true,
            'x' => {}
            _ => return None,
        }
    }
    let translated = syntax::translated(&pattern);
    let regex = RegexBuilder::new(&translated)
        .crlf(true)
        .size_limit(COMPILED_LIMIT_BYTES)
        .dfa_size_limit(COMPILED_LIMIT_BYTES)
        .nest_limit(NESTING_LIMIT)
        .dot_matches_new_line(known.dot_matches_new_line)
        .multi_line(known.multi_line)
        .case_insensitive(known.case_insensitive)
        .build()
        .ok()?;
    Some(Pattern { regex, cost: Cost::of(&translated, known) })
}

/// What a search takes, however short the text is.
const SEARCH_STEPS: usize = 20;

impl Pattern {
    /// To be called before the first search in a text.
    pub(crate) fn charge_first(&self, text: &str, budget: &Budget) -> Result<(), Exceeded> {
        budget.spend(SEARCH_STEPS + self.cost.steps(text.len()))
    }

    /// Call before a search continues after the match that ends here.
    pub(crate) fn charge_next(&self, text: &str, from: usize, budget: &Budget) -> Result<(), Exceeded> {
        self.cost.charge_next(text, from, budget)
    }
}

/// Without blanks outside of classes and without comments, from `#` to the end of the line.
fn without_blanks(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let (mut classes, mut comment, mut escaped) = (0u32, false, false);
    for character in pattern.chars() {
        if comment {
            comment = character != '\n';
            continue;
        }
        match character {
            blank if blank.is_whitespace() && classes == 0 => continue,
            '#' if classes == 0 && !escaped => {
                comment = true;
                continue;
            }
            '[' if !escaped => classes += 1,
            ']' if !escaped => classes = classes.saturating_sub(1),
            _ => {}
        }
        escaped = character == '\\' && !escaped;
        out.push(character);
    }
    out
}

enum Piece {
    Text(String),
    Group(usize),
}

/// A replacement with references to groups: `$1` to `$99`, `\$` for a dollar sign.
pub(crate) struct Template {
    pieces: Vec<Piece>,
}

impl Template {
    /// Of `$12`, as many digits count as name a group that exists.
    pub(crate) fn parse(text: &str, groups: usize) -> Template {
        let mut pieces = Vec::new();
        let mut literal = String::new();
        let mut characters = text.chars().peekable();
        while let Some(character) = characters.next() {
            match character {
                '\\' if characters.peek().is_some() => literal.extend(characters.next()),
                '$' if characters.peek().is_some_and(char::is_ascii_digit) => {
                    let mut group = 0;
                    let mut digits = 0;
                    while let Some(digit) = characters.peek().and_then(|next| next.to_digit(10)) {
                        let next = group * 10 + digit as usize;
                        if digits > 0 && (next >= groups || digits > 1) {
                            break;
                        }
                        (group, digits) = (next, digits + 1);
                        characters.next();
                    }
                    if !literal.is_empty() {
                        pieces.push(Piece::Text(std::mem::take(&mut literal)));
                    }
                    pieces.push(Piece::Group(group));
                }
                other => literal.push(other),
            }
        }
        pieces.push(Piece::Text(literal));
        Template { pieces }
    }

    /// The texts of a match, in order. Groups that did not take part in it are empty.
    pub(crate) fn expand<'a>(&'a self, captures: &'a Captures<'_>) -> impl Iterator<Item = &'a str> {
        self.pieces.iter().map(|piece| match piece {
            Piece::Text(text) => text,
            Piece::Group(group) => captures.get(*group).map_or("", |found| found.as_str()),
        })
    }
}
