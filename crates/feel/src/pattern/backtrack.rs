//! Searches that go back and try another way, as `java.util.regex` does. They can take exponential time: each instruction is a
//! step of the budget, and a call has a limit of its own.

use super::program::{Instruction, One, Program};
use super::tree::{Anchor, Lines, Repeat, Width};
use crate::budget::{Budget, Exceeded};

/// How many steps the searches of a call may take when they have to go back.
pub(super) const BACKTRACK_STEPS_MAX: u32 = 2_000_000;
/// How many ways a search may have left to try.
const WAYS_MAX: usize = 250_000;
/// How many steps are taken before they are charged.
const CHUNK_STEPS: u32 = 256;
/// How many slots are cleared in a step.
const SLOTS_PER_STEP: usize = 64;
/// No position.
const NONE: u32 = u32::MAX;

/// Why a search has no result.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The budget is used up.
    Exceeded(Exceeded),
    /// The pattern tries too many ways.
    TooManyWays,
}

impl From<Exceeded> for Stop {
    fn from(exceeded: Exceeded) -> Stop {
        Stop::Exceeded(exceeded)
    }
}

/// What is left to try, and what is to be restored before.
#[derive(Clone, Copy)]
enum Way {
    Go {
        at: u32,
        position: u32,
    },
    /// One character less than up to `high`, but no less than up to `low`.
    Fewer {
        at: u32,
        low: u32,
        high: u32,
    },
    Restore {
        slot: u32,
        position: u32,
    },
}

/// The searches of a call in a text. Texts are shorter than 2^32 bytes.
pub(super) struct Searcher<'a> {
    program: &'a Program,
    text: &'a str,
    budget: &'a Budget,
    /// Where the match before ended.
    match_end: usize,
    slots: Vec<u32>,
    ways: Vec<Way>,
    ways_charged: usize,
    /// Steps that were taken and are not charged yet.
    steps: u32,
    steps_left: u32,
}

impl<'a> Searcher<'a> {
    pub(super) fn new(program: &'a Program, text: &'a str, budget: &'a Budget) -> Searcher<'a> {
        let slots = vec![NONE; program.slots as usize];
        let ways = Vec::new();
        let steps_left = BACKTRACK_STEPS_MAX;
        Searcher { program, text, budget, match_end: 0, slots, ways, ways_charged: 0, steps: 0, steps_left }
    }

    /// The first match that starts at `from` or later: the positions of its groups.
    pub(super) fn find(&mut self, from: usize, match_end: usize) -> Result<Option<&[u32]>, Stop> {
        self.match_end = match_end;
        let only_at_start = matches!(self.program.instructions.first(), Some(Instruction::Anchor(Anchor::TextStart)));
        self.step(self.slots.len() / SLOTS_PER_STEP)?;
        self.slots.fill(NONE);
        self.ways.clear();
        let mut start = from;
        loop {
            // A run that fails has restored the slots that it changed.
            if let Some(end) = self.run(0, start, None)? {
                self.charge()?;
                (self.slots[0], self.slots[1]) = (start as u32, end as u32);
                return Ok(Some(&self.slots));
            }
            match self.text[start..].chars().next() {
                Some(next) if !only_at_start => start += next.len_utf8(),
                _ => break,
            }
        }
        self.charge()?;
        Ok(None)
    }

    fn charge(&mut self) -> Result<(), Stop> {
        let steps = std::mem::take(&mut self.steps);
        self.budget.spend(steps as usize)?;
        self.steps_left = self.steps_left.checked_sub(steps).ok_or(Stop::TooManyWays)?;
        Ok(())
    }

    fn step(&mut self, steps: usize) -> Result<(), Stop> {
        self.steps = self.steps.saturating_add(u32::try_from(steps).unwrap_or(u32::MAX));
        if self.steps >= CHUNK_STEPS { self.charge() } else { Ok(()) }
    }

    fn push(&mut self, way: Way) -> Result<(), Stop> {
        const CHUNK_WAYS: usize = 4_096;
        if self.ways.len() == self.ways_charged {
            if self.ways.len() >= WAYS_MAX {
                return Err(Stop::TooManyWays);
            }
            self.budget.build(CHUNK_WAYS * size_of::<Way>())?;
            self.ways_charged += CHUNK_WAYS;
        }
        self.ways.push(way);
        Ok(())
    }

    fn keep(&mut self, slot: u32, position: usize) -> Result<(), Stop> {
        let before = self.slots[slot as usize];
        self.push(Way::Restore { slot, position: before })?;
        self.slots[slot as usize] = position as u32;
        Ok(())
    }

    /// Runs a search from an instruction to its end, which must be at `end_at` if that is given; its end in the text. Afterwards
    /// nothing of it is left to try. Recursion is bounded by the nesting that a pattern may have.
    fn run(&mut self, start: u32, from: usize, end_at: Option<usize>) -> Result<Option<usize>, Stop> {
        let base = self.ways.len();
        let mut next = Some((start, from));
        loop {
            let Some((at, position)) = next else {
                match self.back(base)? {
                    Some(way) => next = Some(way),
                    None => return Ok(None),
                }
                continue;
            };
            self.step(1)?;
            let instruction = self.program.instructions[at as usize];
            if let Instruction::End = instruction {
                if end_at.is_none_or(|end| end == position) {
                    self.forget_ways(base)?;
                    return Ok(Some(position));
                }
                next = None;
                continue;
            }
            next = self.advance(instruction, at, position)?;
        }
    }

    /// The way to try next, if one is left above `base`.
    fn back(&mut self, base: usize) -> Result<Option<(u32, usize)>, Stop> {
        while self.ways.len() > base {
            self.step(1)?;
            match self.ways.pop() {
                Some(Way::Go { at, position }) => return Ok(Some((at, position as usize))),
                Some(Way::Fewer { at, low, high }) => {
                    let end = self.before(high as usize).unwrap_or(low as usize);
                    if end > low as usize {
                        self.ways.push(Way::Fewer { at, low, high: end as u32 });
                    }
                    return Ok(Some((at, end)));
                }
                Some(Way::Restore { slot, position }) => self.slots[slot as usize] = position,
                None => break,
            }
        }
        Ok(None)
    }

    /// Keeps what is to be restored above `base`, and nothing to try.
    fn forget_ways(&mut self, base: usize) -> Result<(), Stop> {
        self.step((self.ways.len() - base) / 8)?;
        let mut kept = base;
        for index in base..self.ways.len() {
            if let Way::Restore { .. } = self.ways[index] {
                self.ways[kept] = self.ways[index];
                kept += 1;
            }
        }
        self.ways.truncate(kept);
        Ok(())
    }

    /// Where to go on; `None` if this way leads nowhere.
    fn advance(&mut self, instruction: Instruction, at: u32, position: usize) -> Result<Option<(u32, usize)>, Stop> {
        let goes_on = |found: bool| found.then_some((at + 1, position));
        Ok(match instruction {
            Instruction::One(one) => self.one(one, position).map(|end| (at + 1, end)),
            Instruction::Many(one, repeat) => self.many(one, repeat, at + 1, position)?,
            Instruction::Either(first, second) => {
                self.push(Way::Go { at: second, position: position as u32 })?;
                Some((first, position))
            }
            Instruction::Jump(target) => Some((target, position)),
            Instruction::Keep(slot) => {
                self.keep(slot, position)?;
                Some((at + 1, position))
            }
            Instruction::Unmoved(slot, target) => {
                let is_unmoved = self.slots[slot as usize] as usize == position;
                Some((if is_unmoved { target } else { at + 1 }, position))
            }
            Instruction::Anchor(anchor) => goes_on(self.is_at(anchor, position)),
            Instruction::Reference { group, ignores_case } => {
                self.repeated(group, ignores_case, position)?.map(|end| (at + 1, end))
            }
            Instruction::Atomic(after) => self.run(at + 1, position, None)?.map(|end| (after, end)),
            Instruction::Around(around, width, after) => {
                let base = self.ways.len();
                let found = match around.is_behind {
                    true => self.behind(at + 1, position, width)?,
                    false => self.run(at + 1, position, None)?.is_some(),
                };
                if found && around.is_negative {
                    // What its groups have matched does not count.
                    self.back(base)?;
                }
                (found != around.is_negative).then_some((after, position))
            }
            Instruction::End => None,
        })
    }

    /// The end of the character here, if it is the right one.
    fn one(&self, one: One, position: usize) -> Option<usize> {
        let character = self.text[position..].chars().next()?;
        let fits = match one {
            One::Char(expected) => character == expected,
            One::Class(number) => self.program.classes[number as usize].has(character),
        };
        fits.then(|| position + character.len_utf8())
    }

    fn before(&self, position: usize) -> Option<usize> {
        self.text[..position].chars().next_back().map(|before| position - before.len_utf8())
    }

    fn many(&mut self, one: One, repeat: Repeat, at: u32, start: usize) -> Result<Option<(u32, usize)>, Stop> {
        let (mut count, mut end, mut low) = (0, start, start);
        while repeat.max.is_none_or(|max| count < max)
            && let Some(next) = self.one(one, end)
        {
            self.step(1)?;
            (count, end) = (count + 1, next);
            if count == repeat.min {
                low = end;
            }
        }
        if count < repeat.min {
            return Ok(None);
        }
        if end > low {
            self.push(Way::Fewer { at, low: low as u32, high: end as u32 })?;
        }
        Ok(Some((at, end)))
    }

    /// Whether a search ends here that starts as many characters before as it can match, the nearest start first.
    fn behind(&mut self, start: u32, position: usize, width: Width) -> Result<bool, Stop> {
        // Each character has at least a byte.
        if position < width.min as usize {
            return Ok(false);
        }
        let (mut count, mut begin) = (0, position);
        loop {
            if count >= width.min && self.run(start, begin, Some(position))?.is_some() {
                return Ok(true);
            }
            let Some(before) = self.before(begin).filter(|_| width.max.is_none_or(|max| count < max)) else {
                return Ok(false);
            };
            self.step(1)?;
            (count, begin) = (count + 1, before);
        }
    }

    /// The end of the text that a group has matched, if it comes again here.
    fn repeated(&mut self, group: u32, ignores_case: bool, position: usize) -> Result<Option<usize>, Stop> {
        let slot = group as usize * 2;
        let (Some(&start), Some(&end)) = (self.slots.get(slot), self.slots.get(slot + 1)) else {
            return Ok(None);
        };
        // A group that is not complete has an end before its start.
        let is_group = start != NONE && end != NONE && start <= end;
        let Some(known) = self.text.get(start as usize..end as usize).filter(|_| is_group) else {
            return Ok(None);
        };
        self.step(known.len())?;
        let rest = &self.text[position..];
        if !ignores_case {
            return Ok(rest.starts_with(known).then_some(position + known.len()));
        }
        let mut length = 0;
        let mut found = rest.chars();
        for expected in known.chars() {
            match found.next() {
                Some(character) if is_same_letter(character, expected) => length += character.len_utf8(),
                _ => return Ok(None),
            }
        }
        Ok(Some(position + length))
    }

    fn is_at(&self, anchor: Anchor, position: usize) -> bool {
        let (before, after) = (self.text[..position].chars().next_back(), self.text[position..].chars().next());
        let is_word = |character: Option<char>| character.is_some_and(is_word_character);
        match anchor {
            Anchor::TextStart => before.is_none(),
            Anchor::TextEnd => after.is_none(),
            Anchor::LastLineEnd(lines) => {
                let rest = &self.text[position..];
                match after {
                    None => true,
                    Some('\n') if before == Some('\r') && lines == Lines::Any => false,
                    Some('\r') if rest == "\r\n" && lines == Lines::Any => true,
                    Some(end) => rest.len() == end.len_utf8() && lines.is_end(end),
                }
            }
            Anchor::LineStart(lines) => match before {
                _ if after.is_none() => false,
                None => true,
                Some(before) => lines.is_end(before) && !(lines == Lines::Any && before == '\r' && after == Some('\n')),
            },
            Anchor::LineEnd(lines) => match after {
                None => true,
                Some(after) => lines.is_end(after) && !(lines == Lines::Any && before == Some('\r') && after == '\n'),
            },
            Anchor::WordBoundary => is_word(before) != is_word(after),
            Anchor::NoWordBoundary => is_word(before) == is_word(after),
            Anchor::MatchEnd => position == self.match_end,
        }
    }
}

fn is_word_character(character: char) -> bool {
    regex_syntax::try_is_word_character(character).unwrap_or_else(|_| character.is_alphanumeric() || character == '_')
}

fn is_same_letter(a: char, b: char) -> bool {
    a == b || a.to_lowercase().eq(b.to_lowercase()) || a.to_uppercase().eq(b.to_uppercase())
}
