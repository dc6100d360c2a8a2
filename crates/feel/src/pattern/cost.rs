//! What a search with a pattern costs, known before it is made.
//!
//! A single search takes time in proportion to the text and, at worst, to the size of the pattern. To look for one match
//! after the other can take the square of the text, because each search may look far behind the match that it finds: with
//! `.*[^A]|[A]`, to the end. How far is measured by an automaton that is walked beforehand, while it is charged.

use std::cell::OnceCell;

use regex_automata::hybrid::dfa::DFA;
use regex_automata::nfa::thompson;
use regex_automata::{Input, MatchKind};
use regex_syntax::hir::{Hir, HirKind};

use super::COMPILED_LIMIT_BYTES;
use crate::budget::{Budget, Exceeded};

/// How many bytes are walked before they are charged.
const CHUNK_BYTES: usize = 4 << 10;

pub(super) struct Cost {
    /// The positions of the pattern that a search can be in at the same time: classes, and characters that repeat. Without
    /// them a search takes as long as with a plain text, however long that is.
    weight: usize,
    /// Bytes that a match can have; `None` if there is no limit.
    longest_match: Option<usize>,
    hir: Hir,
    /// Compiled when a second search is made. `None` for a pattern that it does not support.
    meter: OnceCell<Option<Box<DFA>>>,
}

impl Cost {
    pub(super) fn of(hir: Hir) -> Cost {
        let (weight, longest_match) = (weight(&hir, false), hir.properties().maximum_len());
        Cost { weight, longest_match, hir, meter: OnceCell::new() }
    }

    /// The steps of a search through this many bytes.
    pub(super) fn steps(&self, bytes: usize) -> usize {
        (bytes / 16).saturating_add(bytes.saturating_mul(self.weight) / 8)
    }

    pub(super) fn charge_next(&self, text: &str, from: usize, budget: &Budget) -> Result<(), Exceeded> {
        match self.longest_match {
            // All searches together pass over the text once, and over what is behind each match.
            Some(longest) => budget.spend(1 + self.steps(longest)),
            None => match self.meter.get_or_init(|| self.compile()) {
                Some(meter) => self.walk(meter, text, from, budget),
                None => budget.spend(1 + self.steps(text.len() - from)),
            },
        }
    }

    fn compile(&self) -> Option<Box<DFA>> {
        let config = DFA::config()
            .match_kind(MatchKind::LeftmostFirst)
            .cache_capacity(COMPILED_LIMIT_BYTES)
            .skip_cache_capacity_check(true)
            .unicode_word_boundary(true);
        let limits = thompson::Config::new().nfa_size_limit(Some(COMPILED_LIMIT_BYTES));
        let nfa = thompson::Compiler::new().configure(limits).build_from_hir(&self.hir).ok()?;
        DFA::builder().configure(config).build_from_nfa(nfa).ok().map(Box::new)
    }

    /// Advances as far as a search from there does, and charges it.
    fn walk(&self, meter: &DFA, text: &str, from: usize, budget: &Budget) -> Result<(), Exceeded> {
        let all = |at: usize| budget.spend(1 + self.steps(text.len() - at));
        let mut cache = meter.create_cache();
        let Ok(mut state) = meter.start_state_forward(&mut cache, &Input::new(text).range(from..)) else {
            return all(from);
        };
        let bytes = text.as_bytes();
        let mut at = from;
        while at < bytes.len() {
            let end = bytes.len().min(at + CHUNK_BYTES);
            let mut walked = at;
            while walked < end {
                match meter.next_state(&mut cache, state, bytes[walked]) {
                    // It gives up on anything unknown: then the search may be anywhere.
                    Ok(next) if next.is_quit() => return all(at),
                    Err(_) => return all(at),
                    Ok(next) if next.is_dead() => return budget.spend(1 + self.steps(walked - at)),
                    Ok(next) => state = next,
                }
                walked += 1;
            }
            budget.spend(self.steps(walked - at))?;
            at = end;
        }
        budget.spend(1)
    }
}

impl std::fmt::Debug for Cost {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Cost({} for matches of {:?} bytes)", self.weight, self.longest_match)
    }
}

/// Recursion is bounded by the nesting that the pattern may have.
fn weight(hir: &Hir, repeats: bool) -> usize {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => 0,
        HirKind::Literal(literal) => {
            if repeats {
                literal.0.len()
            } else {
                0
            }
        }
        HirKind::Class(_) => 1,
        HirKind::Repetition(repetition) => {
            let times = repetition.max.unwrap_or(repetition.min.max(1)) as usize;
            weight(&repetition.sub, true).saturating_mul(times.max(1))
        }
        HirKind::Capture(capture) => weight(&capture.sub, repeats),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            parts.iter().fold(0, |sum, part| sum.saturating_add(weight(part, repeats)))
        }
    }
}
