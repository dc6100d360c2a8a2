//! Variables, and the names that those of a definition have.

use std::collections::{HashMap, HashSet};

use protocol::{Text, VariableIntent, VariableValue};

use super::Fold;
use crate::batch::VariableRow;

/// Names that were met, by definition, so that they are not written again each time.
#[derive(Debug, Default)]
pub(super) struct Names {
    met: HashMap<i64, HashSet<Text>>,
    count: usize,
}

impl Names {
    /// So many are kept. Those that are met again afterwards are written again, which changes nothing.
    const KEPT_MAX: usize = 100_000;

    /// Whether a name has to be written.
    fn is_new(&mut self, definition: i64, name: &Text) -> bool {
        if self.met.get(&definition).is_some_and(|met| met.contains(name)) {
            return false;
        }
        if self.count >= Self::KEPT_MAX {
            *self = Names::default();
        }
        self.count += 1;
        self.met.entry(definition).or_default().insert(name.clone())
    }
}

impl Fold {
    pub(super) fn variable(&mut self, key: i64, intent: VariableIntent, value: &VariableValue) {
        let definition = value.process_definition_key.raw();
        if self.variable_names.is_new(definition, &value.name) {
            self.batch.bytes += value.name.len();
            self.batch.variable_names.push((definition, value.name.clone()));
        }
        // A migration changes only what is known of the instance, and says no value.
        if intent == VariableIntent::Migrated {
            return;
        }
        self.batch.bytes += value.value.len();
        let row = VariableRow {
            instance: value.process_instance_key.raw(),
            scope: value.scope_key.raw(),
            name: value.name.clone(),
            value: value.value.clone(),
        };
        self.batch.variables.insert(key, row);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_new_once_for_each_definition_and_again_when_too_many_were_met() {
        let mut names = Names::default();
        let name = |number: usize| Text::from(format!("name-{number}"));
        assert_eq!([7, 7, 8, 8].map(|of| names.is_new(of, &name(0))), [true, false, true, false]);
        for number in 2..Names::KEPT_MAX {
            assert!(names.is_new(9, &name(number)));
        }
        assert!(!names.is_new(7, &name(0)), "as many as are kept");
        assert!(names.is_new(9, &name(0)), "one more");
        assert!(names.is_new(7, &name(0)) && names.count == 2);
    }
}
