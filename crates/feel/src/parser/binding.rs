//! The local names at a place of the text and their positions on the evaluator's stack.

use std::sync::Arc;

enum Binding {
    /// A name of its own position.
    Name(Arc<str>),
    /// The item of a filter: called `item`, and its entries are names too.
    Item,
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
    question_uses: usize,
    partial_uses: usize,
}

impl Bindings {
    pub(crate) fn push(&mut self, name: Arc<str>) {
        self.stack.push(Binding::Name(name));
    }

    pub(crate) fn push_item(&mut self) {
        self.stack.push(Binding::Item);
    }

    /// The input value of unary tests.
    pub(crate) fn push_question(&mut self) {
        self.stack.push(Binding::Name(Arc::from("?")));
    }

    pub(crate) fn pop(&mut self, count: usize) {
        self.stack.truncate(self.stack.len() - count);
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
        let mut items = Vec::new();
        for (position, binding) in self.stack.iter().enumerate().rev() {
            // The nesting limit bounds the height of the stack far below 2^32.
            let position = position as u32;
            let found = match binding {
                Binding::Name(known) => **known == *name,
                Binding::Item => {
                    items.push(position);
                    name == "item"
                }
            };
            if found {
                self.question_uses += usize::from(name == "?");
                self.partial_uses += usize::from(name == "partial");
                return Resolution { items, local: Some(position) };
            }
        }
        Resolution { items, local: None }
    }
}
