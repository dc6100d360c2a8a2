//! Regular expressions of `matches`, `replace`, `split` and `extract`, as `java.util.regex` writes them.
//!
//! An engine in linear time searches, bounded in size. What it cannot do needs to go back: looks around, references back, atomic
//! groups, and ends of lines in texts that end with one. An engine with a limit on its steps does that.

mod backtrack;
mod blocks;
mod cost;
mod linear;
mod program;
mod syntax;
mod template;
mod tree;

use std::borrow::Cow;
use std::cell::OnceCell;

use regex_automata::meta::Regex;
use regex_automata::util::captures::Captures;
use regex_automata::{Anchored, Input};

use backtrack::Searcher;
use cost::Cost;
use program::Program;
use syntax::{Fault, Flags};
use tree::{LINE_ENDS, Tree};

use crate::budget::Budget;

pub(crate) use backtrack::Stop;
pub(crate) use template::Template;

/// How much memory a compiled pattern may take.
const COMPILED_LIMIT_BYTES: usize = 512 << 10;
/// How long a pattern may be.
const PATTERN_LIMIT_BYTES: usize = 8 << 10;
/// How deeply groups and classes may be nested.
const NESTING_LIMIT: u32 = 50;
/// What a search takes, however short the text is.
const SEARCH_STEPS: usize = 20;

/// A compiled pattern.
pub(crate) struct Pattern {
    tree: Tree,
    groups: u32,
    names: Vec<(Box<str>, u32)>,
    has_last_line_end: bool,
    has_line_anchors: bool,
    /// `None` if the pattern needs to go back.
    linear: Option<(Regex, Cost)>,
    /// Compiled when a search needs it; `None` if it is too large.
    program: OnceCell<Option<Box<Program>>>,
}

/// Compiles a pattern with the flags `s`, `m`, `i` and `x`; `u` and `d` have no meaning. Says what is wrong with an invalid one.
pub(crate) fn compile(pattern: &str, flags: &str) -> Result<Pattern, Fault> {
    const TOO_LARGE: Fault = "it is too large";
    if pattern.len() > PATTERN_LIMIT_BYTES {
        return Err(TOO_LARGE);
    }
    // Blanks have no meaning with `x`, except in a class.
    let pattern = if flags.contains('x') { Cow::Owned(without_blanks(pattern)) } else { Cow::Borrowed(pattern) };
    let mut known = Flags::default();
    for flag in flags.chars() {
        match flag {
            's' | 'm' | 'i' => known.set(flag, true),
            'x' | 'u' | 'd' => true,
            _ => return Err("its flags may be s, m, i, x, u and d"),
        };
    }
    let parsed = syntax::parse(&pattern, known)?;
    let linear = match linear::hir(&parsed.tree) {
        Some(hir) => Some((linear::compile(&hir).ok_or(TOO_LARGE)?, Cost::of(hir))),
        None => None,
    };
    let compiled = Pattern {
        tree: parsed.tree,
        groups: parsed.groups,
        names: parsed.names,
        has_last_line_end: parsed.has_last_line_end,
        has_line_anchors: parsed.has_line_anchors,
        linear,
        program: OnceCell::new(),
    };
    if compiled.linear.is_none() && compiled.program().is_none() { Err(TOO_LARGE) } else { Ok(compiled) }
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

impl Pattern {
    fn program(&self) -> Option<&Program> {
        self.program.get_or_init(|| program::compile(&self.tree, self.groups).map(Box::new)).as_deref()
    }

    /// Whether the pattern finds ends of lines in this text where the engine in linear time finds none, or the reverse.
    fn has_other_lines(&self, text: &str) -> bool {
        let ends_with_line = text.ends_with(LINE_ENDS);
        self.has_last_line_end && ends_with_line
            || self.has_line_anchors
                && (ends_with_line || text.is_empty() || text.contains(['\u{85}', '\u{2028}', '\u{2029}']))
    }

    /// The replacement for matches of this pattern; `None` if it refers to a group that does not exist.
    pub(crate) fn template(&self, replacement: &str) -> Option<Template> {
        Template::parse(replacement, self.groups, &self.names)
    }

    /// The searches in a text, one match after the other. With `keeps_groups` they find the groups, too.
    pub(crate) fn search<'a>(&'a self, text: &'a str, budget: &'a Budget, keeps_groups: bool) -> Search<'a> {
        let linear = self.linear.as_ref().filter(|_| !self.has_other_lines(text) || self.program().is_none());
        let engine = match (linear, self.program.get().and_then(Option::as_deref)) {
            (Some((regex, cost)), _) => {
                Engine::Linear { regex, cost, groups: keeps_groups.then(|| regex.create_captures()) }
            }
            (None, Some(program)) => Engine::Backtracking(Searcher::new(program, text, budget)),
            (None, None) => unreachable!("a pattern has a linear engine or a program"),
        };
        Search { engine, text, budget, searches: 0, from: 0, end: 0, found: Vec::new() }
    }
}

enum Engine<'a> {
    Linear { regex: &'a Regex, cost: &'a Cost, groups: Option<Captures> },
    Backtracking(Searcher<'a>),
}

/// Searches in a text.
pub(crate) struct Search<'a> {
    engine: Engine<'a>,
    text: &'a str,
    budget: &'a Budget,
    searches: usize,
    /// Where to search next; behind the text if there is nothing more.
    from: usize,
    /// Where the last match ended.
    end: usize,
    /// Starts and ends of the groups, the whole match first.
    found: Vec<u32>,
}

/// A match.
pub(crate) struct Found<'a> {
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// Starts and ends of the groups, the whole match first; a group that did not take part has none within the text.
    pub(crate) groups: &'a [u32],
}

impl Search<'_> {
    /// The next match. After an empty one, the search goes on with the next character.
    pub(crate) fn next(&mut self) -> Result<Option<Found<'_>>, Stop> {
        if self.from > self.text.len() {
            return Ok(None);
        }
        self.charge()?;
        self.searches += 1;
        let is_found = match &mut self.engine {
            Engine::Backtracking(searcher) => match searcher.find(self.from, self.end)? {
                Some(slots) => {
                    self.found.clear();
                    self.found.extend_from_slice(slots);
                    true
                }
                None => false,
            },
            Engine::Linear { regex, groups, .. } => {
                let input = Input::new(self.text).range(self.from..).anchored(Anchored::No);
                search_linear(regex, groups.as_mut(), &input, &mut self.found)
            }
        };
        if !is_found {
            self.from = self.text.len() + 1;
            return Ok(None);
        }
        let (start, end) = (self.found[0] as usize, self.found[1] as usize);
        self.end = end;
        self.from = end;
        if start == end {
            self.from += self.text[end..].chars().next().map_or(1, char::len_utf8);
        }
        Ok(Some(Found { start, end, groups: &self.found }))
    }

    /// Whether there is a match.
    pub(crate) fn has_match(mut self) -> Result<bool, Stop> {
        if let Engine::Linear { regex, .. } = &self.engine {
            self.charge()?;
            return Ok(regex.is_match(self.text));
        }
        Ok(self.next()?.is_some())
    }

    /// To be called before a search.
    fn charge(&self) -> Result<(), Stop> {
        match &self.engine {
            Engine::Backtracking(_) => self.budget.spend(SEARCH_STEPS)?,
            Engine::Linear { cost, .. } if self.searches == 0 => {
                self.budget.spend(SEARCH_STEPS + cost.steps(self.text.len()))?;
            }
            Engine::Linear { cost, .. } => cost.charge_next(self.text, self.from, self.budget)?,
        }
        Ok(())
    }
}

/// Texts are shorter than 2^32 bytes.
fn search_linear(regex: &Regex, groups: Option<&mut Captures>, input: &Input<'_>, found: &mut Vec<u32>) -> bool {
    found.clear();
    match groups {
        None => {
            let Some(span) = regex.find(input.clone()) else { return false };
            found.extend([span.start() as u32, span.end() as u32]);
        }
        Some(groups) => {
            regex.search_captures(input, groups);
            if !groups.is_match() {
                return false;
            }
            for group in 0..groups.group_len() {
                let (start, end) =
                    groups.get_group(group).map_or((u32::MAX, u32::MAX), |span| (span.start as u32, span.end as u32));
                found.extend([start, end]);
            }
        }
    }
    true
}

impl std::fmt::Debug for Pattern {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Pattern({} groups)", self.groups)
    }
}
