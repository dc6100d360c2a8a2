//! What a pattern says, as a tree.

use std::sync::Arc;

use regex_syntax::hir::ClassUnicode;

/// A part of a pattern.
pub(super) enum Tree {
    Empty,
    Char(char),
    /// One character of a set.
    Class(Arc<ClassUnicode>),
    Anchor(Anchor),
    /// A group whose match is kept, by its number.
    Capture(u32, Box<Tree>),
    Sequence(Vec<Tree>),
    /// The first that leads to a match counts.
    Choice(Vec<Tree>),
    Repeat(Box<Tree>, Repeat),
    /// Once it has matched, it is not tried in another way.
    Atomic(Box<Tree>),
    Around(Around, Box<Tree>),
    /// The text that a group has matched before.
    Reference {
        group: u32,
        ignores_case: bool,
    },
}

/// How often a part repeats.
#[derive(Clone, Copy)]
pub(super) struct Repeat {
    pub(super) min: u32,
    pub(super) max: Option<u32>,
    /// As often as possible first, or else as rarely.
    pub(super) is_greedy: bool,
}

/// A look around, which takes no characters.
#[derive(Clone, Copy)]
pub(super) struct Around {
    /// At the text before, or else after.
    pub(super) is_behind: bool,
    pub(super) is_negative: bool,
}

/// How many characters a part can match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Width {
    /// As many as `u32::MAX` may stand for more; no text is that long.
    pub(super) min: u32,
    /// None if there is no limit.
    pub(super) max: Option<u32>,
}

impl Width {
    const EMPTY: Width = Width { min: 0, max: Some(0) };
    const ONE: Width = Width { min: 1, max: Some(1) };

    /// Of both parts, one after the other.
    fn and(self, next: Width) -> Width {
        let max = self.max.zip(next.max).map(|(max, next)| max.saturating_add(next));
        Width { min: self.min.saturating_add(next.min), max }
    }

    /// Of either part.
    fn or(self, other: Width) -> Width {
        let max = self.max.zip(other.max).map(|(max, other)| max.max(other));
        Width { min: self.min.min(other.min), max }
    }

    fn times(self, repeat: Repeat) -> Width {
        let max = match (self.max, repeat.max) {
            (Some(0), _) | (_, Some(0)) => Some(0),
            (Some(max), Some(times)) => Some(max.saturating_mul(times)),
            _ => None,
        };
        Width { min: self.min.saturating_mul(repeat.min), max }
    }
}

/// A place in the text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    TextStart,
    TextEnd,
    /// The end of the text, or before the line end that is its last.
    LastLineEnd(Lines),
    LineStart(Lines),
    LineEnd(Lines),
    WordBoundary,
    NoWordBoundary,
    /// Where the match before ended.
    MatchEnd,
}

/// What ends a line.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Lines {
    /// A line feed.
    Unix,
    /// Also a carriage return, alone or before a line feed, and the separators of Unicode.
    Any,
}

impl Lines {
    pub(super) fn is_end(self, character: char) -> bool {
        character == '\n' || self == Lines::Any && LINE_ENDS.contains(&character)
    }
}

/// Characters that end a line.
pub(super) const LINE_ENDS: [char; 5] = ['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}'];

impl Tree {
    /// Whether it may match without a character.
    pub(super) fn may_be_empty(&self) -> bool {
        match self {
            Tree::Char(_) | Tree::Class(_) => false,
            Tree::Empty | Tree::Anchor(_) | Tree::Around(..) | Tree::Reference { .. } => true,
            Tree::Capture(_, inner) | Tree::Atomic(inner) => inner.may_be_empty(),
            Tree::Sequence(parts) => parts.iter().all(Tree::may_be_empty),
            Tree::Choice(branches) => branches.iter().any(Tree::may_be_empty),
            Tree::Repeat(inner, repeat) => repeat.min == 0 || inner.may_be_empty(),
        }
    }

    /// How many characters it can match. Recursion is bounded by the nesting that a pattern may have.
    pub(super) fn width(&self) -> Width {
        match self {
            Tree::Char(_) | Tree::Class(_) => Width::ONE,
            Tree::Empty | Tree::Anchor(_) | Tree::Around(..) => Width::EMPTY,
            Tree::Reference { .. } => Width { min: 0, max: None },
            Tree::Capture(_, inner) | Tree::Atomic(inner) => inner.width(),
            Tree::Sequence(parts) => parts.iter().map(Tree::width).fold(Width::EMPTY, Width::and),
            Tree::Choice(branches) => branches.iter().map(Tree::width).reduce(Width::or).unwrap_or(Width::EMPTY),
            Tree::Repeat(inner, repeat) => inner.width().times(*repeat),
        }
    }
}
