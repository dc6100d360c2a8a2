//! The local names at a place of the text and their positions on the evaluator's stack.

use std::collections::BTreeMap;
use std::sync::Arc;

enum Binding {
    /// A name of its own position.
    Name(Arc<str>),
    /// The item of a filter: called `item`, and its entries are names too.
    Item(ItemUses),
}

/// What a filter's condition may take from the item.
#[derive(Default)]
struct ItemUses {
    entries: Vec<Arc<str>>,
    /// The item itself, or too many entries to keep apart.
    whole: bool,
}

impl ItemUses {
    const ENTRIES: usize = 8;

    fn entry(&mut self, name: &str) {
        if self.whole || self.entries.iter().any(|known| **known == *name) {
            return;
        }
        self.whole = self.entries.len() == Self::ENTRIES;
        self.entries.push(Arc::from(name));
    }
}

/// Where a name leads.
pub(crate) struct Resolution {
    /// Positions of filtered items that may have an entry of this name, innermost first.
    pub(crate) items: Vec<u32>,
    /// The position of the local name, if one is visible.
    pub(crate) local: Option<u32>,
}

/// The stack of visible names; the index of a binding is the position of its value at evaluation.
#[derive(Default)]
pub(crate) struct Bindings {
    stack: Vec<Binding>,
    /// The positions of each name, and those of the items: a context can have tens of thousands of entries, among which
    /// every name inside would be searched.
    names: BTreeMap<Arc<str>, Vec<u32>>,
    items: Vec<u32>,
    question_uses: usize,
    partial_uses: usize,
}

impl Bindings {
    /// The position of the next binding. The length limit of the text bounds the number of names far below 2^32.
    fn next(&self) -> u32 {
        self.stack.len() as u32
    }

    pub(crate) fn push(&mut self, name: Arc<str>) {
        let position = self.next();
        self.names.entry(name.clone()).or_default().push(position);
        self.stack.push(Binding::Name(name));
    }

    pub(crate) fn push_item(&mut self) {
        self.items.push(self.next());
        self.stack.push(Binding::Item(ItemUses::default()));
    }

    /// Ends the innermost binding, which is the item of a filter: the entries that are read of it, `None` if it is used
    /// as a whole.
    pub(crate) fn pop_item(&mut self) -> Option<Box<[Arc<str>]>> {
        self.items.pop();
        match self.stack.pop() {
            Some(Binding::Item(uses)) if !uses.whole => Some(uses.entries.into_boxed_slice()),
            _ => None,
        }
    }

    /// A function keeps all that it can see.
    pub(crate) fn capture(&mut self) {
        for position in &self.items {
            if let Some(Binding::Item(uses)) = self.stack.get_mut(*position as usize) {
                uses.whole = true;
            }
        }
    }

    /// The input value of unary tests.
    pub(crate) fn push_question(&mut self) {
        self.push(Arc::from("?"));
    }

    /// The input value of the unary tests that are the whole text, which has a name of its own as well.
    pub(crate) fn push_input(&mut self, name: &str) {
        self.push_question();
        self.names.entry(Arc::from(name)).or_default().push(0);
    }

    pub(crate) fn pop(&mut self, count: usize) {
        for binding in self.stack.drain(self.stack.len() - count..) {
            match binding {
                Binding::Item(_) => drop(self.items.pop()),
                Binding::Name(name) => {
                    if let Some(positions) = self.names.get_mut(&name) {
                        positions.pop();
                    }
                }
            }
        }
    }

    /// How often the input value has been mentioned so far.
    pub(crate) fn question_uses(&self) -> usize {
        self.question_uses
    }

    /// How often the results so far of a loop have been mentioned.
    pub(crate) fn partial_uses(&self) -> usize {
        self.partial_uses
    }

    pub(crate) fn resolve(&mut self, name: &str) -> Resolution {
        let named = self.names.get(name).and_then(|positions| positions.last()).copied();
        let item = self.items.last().copied().filter(|_| name == "item");
        let local = named.max(item);
        if local.is_some() {
            self.question_uses += usize::from(name == "?");
            self.partial_uses += usize::from(name == "partial");
        }
        let items = self.items.iter().rev().copied().take_while(|item| local.is_none_or(|local| *item >= local));
        let items: Vec<u32> = items.collect();
        for position in &items {
            if let Some(Binding::Item(uses)) = self.stack.get_mut(*position as usize) {
                uses.entry(name);
                uses.whole |= local == Some(*position);
            }
        }
        Resolution { items, local }
    }
}
