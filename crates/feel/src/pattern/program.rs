//! Patterns that need to go back, as instructions.

use std::collections::HashMap;
use std::sync::Arc;

use regex_syntax::hir::ClassUnicode;

use super::tree::{Anchor, Around, Repeat, Tree, Width};

/// How many instructions a pattern may have.
const INSTRUCTIONS_MAX: usize = 16_384;

/// What one character must be.
#[derive(Clone, Copy)]
pub(super) enum One {
    Char(char),
    /// One of a class, by its number.
    Class(u32),
}

/// A step of a search. Numbers are places in the program.
#[derive(Clone, Copy)]
pub(super) enum Instruction {
    One(One),
    /// The same for as many characters as possible, then for fewer.
    Many(One, Repeat),
    /// The first way, then the second.
    Either(u32, u32),
    Jump(u32),
    /// Keeps the position in a slot.
    Keep(u32),
    /// Goes on elsewhere if the position is still that of the slot.
    Unmoved(u32, u32),
    Anchor(Anchor),
    Reference {
        group: u32,
        ignores_case: bool,
    },
    /// What follows, up to its end, is another search; then it goes on here.
    Atomic(u32),
    /// A look around by what follows, which can match this many characters; then it goes on here.
    Around(Around, Width, u32),
    /// The end of a search.
    End,
}

/// A compiled pattern.
pub(super) struct Program {
    pub(super) instructions: Vec<Instruction>,
    pub(super) classes: Vec<Set>,
    /// Positions that are kept: two for each group, and one for each loop that may stand still.
    pub(super) slots: u32,
}

/// A class that is asked quickly for characters of ASCII.
pub(super) struct Set {
    ascii: u128,
    class: Arc<ClassUnicode>,
}

impl Set {
    fn new(class: Arc<ClassUnicode>) -> Set {
        let mut ascii = 0;
        for range in class.ranges() {
            for code in u32::from(range.start())..=u32::from(range.end()).min(127) {
                ascii |= 1 << code;
            }
        }
        Set { ascii, class }
    }

    pub(super) fn has(&self, character: char) -> bool {
        if character.is_ascii() {
            return self.ascii >> u32::from(character) & 1 == 1;
        }
        let ranges = self.class.ranges();
        let after = ranges.partition_point(|range| range.start() <= character);
        after > 0 && ranges[after - 1].end() >= character
    }
}

/// The program of a pattern with this many groups; `None` if it is too large.
pub(super) fn compile(tree: &Tree, groups: u32) -> Option<Program> {
    let program = Program { instructions: Vec::new(), classes: Vec::new(), slots: groups.checked_mul(2)? };
    let mut compiler = Compiler { program, known: HashMap::new() };
    compiler.add(tree)?;
    compiler.push(Instruction::End)?;
    Some(compiler.program)
}

struct Compiler {
    program: Program,
    /// The numbers of classes, by where they are. It is never iterated.
    known: HashMap<*const ClassUnicode, u32>,
}

impl Compiler {
    fn here(&self) -> u32 {
        // The limit on instructions is far below 2^32.
        self.program.instructions.len() as u32
    }

    fn push(&mut self, instruction: Instruction) -> Option<usize> {
        let at = self.program.instructions.len();
        self.program.instructions.push(instruction);
        (at < INSTRUCTIONS_MAX).then_some(at)
    }

    fn set(&mut self, at: usize, instruction: Instruction) {
        self.program.instructions[at] = instruction;
    }

    /// What a part that is one character asks for.
    fn one(&mut self, tree: &Tree) -> Option<One> {
        match tree {
            Tree::Char(character) => Some(One::Char(*character)),
            Tree::Class(class) => {
                let classes = &mut self.program.classes;
                let number = *self.known.entry(Arc::as_ptr(class)).or_insert_with(|| {
                    classes.push(Set::new(class.clone()));
                    classes.len() as u32 - 1
                });
                Some(One::Class(number))
            }
            _ => None,
        }
    }

    /// Recursion is bounded by the nesting that a pattern may have.
    fn add(&mut self, tree: &Tree) -> Option<()> {
        match tree {
            Tree::Empty => {}
            Tree::Char(_) | Tree::Class(_) => {
                let one = self.one(tree)?;
                self.push(Instruction::One(one))?;
            }
            Tree::Anchor(anchor) => {
                self.push(Instruction::Anchor(*anchor))?;
            }
            Tree::Reference { group, ignores_case } => {
                self.push(Instruction::Reference { group: *group, ignores_case: *ignores_case })?;
            }
            Tree::Capture(index, inner) => {
                self.push(Instruction::Keep(index * 2))?;
                self.add(inner)?;
                self.push(Instruction::Keep(index * 2 + 1))?;
            }
            Tree::Sequence(parts) => parts.iter().try_for_each(|part| self.add(part))?,
            Tree::Choice(branches) => self.choice(branches)?,
            Tree::Repeat(inner, repeat) => self.repeat(inner, *repeat)?,
            Tree::Atomic(inner) => self.inner_search(inner, Instruction::Atomic)?,
            Tree::Around(around, inner) => {
                let width = inner.width();
                self.inner_search(inner, |next| Instruction::Around(*around, width, next))?;
            }
        }
        Some(())
    }

    fn inner_search(&mut self, inner: &Tree, start: impl FnOnce(u32) -> Instruction) -> Option<()> {
        let at = self.push(Instruction::End)?;
        self.add(inner)?;
        self.push(Instruction::End)?;
        let next = self.here();
        self.set(at, start(next));
        Some(())
    }

    fn choice(&mut self, branches: &[Tree]) -> Option<()> {
        let Some((last, others)) = branches.split_last() else { return Some(()) };
        let mut ends = Vec::new();
        for branch in others {
            let either = self.push(Instruction::End)?;
            self.add(branch)?;
            ends.push(self.push(Instruction::End)?);
            let next = self.here();
            self.set(either, Instruction::Either(either as u32 + 1, next));
        }
        self.add(last)?;
        let next = self.here();
        ends.into_iter().for_each(|end| self.set(end, Instruction::Jump(next)));
        Some(())
    }

    fn repeat(&mut self, inner: &Tree, repeat: Repeat) -> Option<()> {
        if repeat.is_greedy
            && let Some(one) = self.one(inner)
        {
            self.push(Instruction::Many(one, repeat))?;
            return Some(());
        }
        for _ in 0..repeat.min {
            let before = self.here();
            self.add(inner)?;
            if self.here() == before {
                break;
            }
        }
        let either = |inside, outside| match repeat.is_greedy {
            true => Instruction::Either(inside, outside),
            false => Instruction::Either(outside, inside),
        };
        let Some(max) = repeat.max else { return self.endless(inner, either) };
        let mut ends = Vec::new();
        for _ in repeat.min..max {
            ends.push(self.push(Instruction::End)?);
            self.add(inner)?;
        }
        let next = self.here();
        ends.into_iter().for_each(|end| self.set(end, either(end as u32 + 1, next)));
        Some(())
    }

    /// A loop. One that may take no character ends when it stands still.
    fn endless(&mut self, inner: &Tree, either: impl Fn(u32, u32) -> Instruction) -> Option<()> {
        let start = self.push(Instruction::End)?;
        let mut check = None;
        if inner.may_be_empty() {
            let slot = self.program.slots;
            self.program.slots += 1;
            self.push(Instruction::Keep(slot))?;
            self.add(inner)?;
            check = Some((self.push(Instruction::End)?, slot));
        } else {
            self.add(inner)?;
        }
        self.push(Instruction::Jump(start as u32))?;
        let next = self.here();
        self.set(start, either(start as u32 + 1, next));
        if let Some((at, slot)) = check {
            self.set(at, Instruction::Unmoved(slot, next));
        }
        Some(())
    }
}
