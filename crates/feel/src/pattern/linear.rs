//! Patterns that an engine in linear time can search with.

use regex_automata::meta;
use regex_automata::nfa::thompson::WhichCaptures;
use regex_syntax::hir::{self, Class, Hir, Look};

use super::COMPILED_LIMIT_BYTES;
use super::tree::{Anchor, Lines, Tree};

/// The pattern for the engine in linear time; `None` if it has something that needs to go back. Ends of lines are those that the
/// engine knows; see [`super::Pattern::goes_back`].
pub(super) fn hir(tree: &Tree) -> Option<Hir> {
    Some(match tree {
        Tree::Empty => Hir::empty(),
        Tree::Char(character) => Hir::literal(character.encode_utf8(&mut [0; 4]).as_bytes()),
        Tree::Class(class) => Hir::class(Class::Unicode((**class).clone())),
        Tree::Anchor(anchor) => Hir::look(look(*anchor)?),
        Tree::Capture(index, inner) => {
            Hir::capture(hir::Capture { index: *index, name: None, sub: Box::new(hir(inner)?) })
        }
        Tree::Sequence(parts) => Hir::concat(parts.iter().map(hir).collect::<Option<_>>()?),
        Tree::Choice(branches) => Hir::alternation(branches.iter().map(hir).collect::<Option<_>>()?),
        Tree::Repeat(inner, repeat) => Hir::repetition(hir::Repetition {
            min: repeat.min,
            max: repeat.max,
            greedy: repeat.is_greedy,
            sub: Box::new(hir(inner)?),
        }),
        Tree::Atomic(_) | Tree::Around(..) | Tree::Reference { .. } => return None,
    })
}

fn look(anchor: Anchor) -> Option<Look> {
    Some(match anchor {
        Anchor::TextStart => Look::Start,
        Anchor::TextEnd | Anchor::LastLineEnd(_) => Look::End,
        Anchor::LineStart(Lines::Unix) => Look::StartLF,
        Anchor::LineStart(Lines::Any) => Look::StartCRLF,
        Anchor::LineEnd(Lines::Unix) => Look::EndLF,
        Anchor::LineEnd(Lines::Any) => Look::EndCRLF,
        Anchor::WordBoundary => Look::WordUnicode,
        Anchor::NoWordBoundary => Look::WordUnicodeNegate,
        Anchor::MatchEnd => return None,
    })
}

/// The compiled pattern; `None` if it is too large.
pub(super) fn compile(hir: &Hir) -> Option<meta::Regex> {
    let config = meta::Config::new()
        .nfa_size_limit(Some(COMPILED_LIMIT_BYTES))
        .hybrid_cache_capacity(COMPILED_LIMIT_BYTES)
        .which_captures(WhichCaptures::All);
    meta::Builder::new().configure(config).build_from_hir(hir).ok()
}
