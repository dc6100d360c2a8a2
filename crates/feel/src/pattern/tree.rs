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
}
