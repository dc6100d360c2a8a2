//! Names of the scope that are recognised in the text although they look like something else: `Pre-bureau risk` is one
//! name and no difference where it is known, as the standard has it.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::defined_type::{Defined, DefinedType};

/// A longer name is not recognised without backticks.
const NAME_LIMIT_BYTES: usize = 1_000;

/// Names that are known while an expression is compiled. Only those that are more than one word matter.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// In order, each with the position of the longest other name that it starts with.
    sorted: Vec<(Box<str>, Option<usize>)>,
    /// The types that `instance of` knows besides FEEL's own.
    types: Arc<BTreeMap<Box<str>, Defined>>,
}

impl Names {
    /// Collects the names.
    pub fn new<'a>(names: impl IntoIterator<Item = &'a str>) -> Names {
        let is_word = |name: &str| name.chars().all(super::lexer::is_word_part);
        let mut special: Vec<&str> =
            names.into_iter().filter(|name| name.len() <= NAME_LIMIT_BYTES && !is_word(name)).collect();
        special.sort_unstable();
        special.dedup();
        let mut sorted: Vec<(Box<str>, Option<usize>)> = Vec::with_capacity(special.len());
        for name in special {
            // What starts with a name follows it at once: its start is the name before or one that that one starts with.
            let mut start = sorted.len().checked_sub(1);
            while let Some(position) = start
                && !name.starts_with(&*sorted[position].0)
            {
                start = sorted[position].1;
            }
            sorted.push((Box::from(name), start));
        }
        Names { sorted, types: Arc::default() }
    }

    /// The same names, with types that `instance of` knows besides FEEL's own.
    pub fn with_types<'a>(self, types: impl IntoIterator<Item = (&'a str, Arc<dyn DefinedType>)>) -> Names {
        let types = types.into_iter().map(|(name, of)| (Box::from(name), Defined(of))).collect();
        Names { types: Arc::new(types), ..self }
    }

    /// Other names, with the types of these.
    pub fn replaced<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Names {
        Names { types: self.types.clone(), ..Names::new(names) }
    }

    /// The names that matter.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.sorted.iter().map(|(name, _)| &**name)
    }

    /// The type of this name.
    pub(crate) fn defined_type(&self, name: &str) -> Option<&Defined> {
        self.types.get(name)
    }

    /// The length of the longest name that the text starts with and that ends where a word ends.
    pub(crate) fn length_at(&self, text: &str) -> Option<usize> {
        let mut candidate = self.sorted.partition_point(|(name, _)| **name <= *text).checked_sub(1);
        while let Some(position) = candidate {
            let (name, start) = &self.sorted[position];
            if let Some(rest) = text.strip_prefix(&**name)
                && !(name.ends_with(super::lexer::is_word_part) && rest.starts_with(super::lexer::is_word_part))
            {
                return Some(name.len());
            }
            candidate = *start;
        }
        None
    }
}
