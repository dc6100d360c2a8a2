//! Variables, and the names that those of a definition have.

use std::collections::{HashMap, HashSet};

use protocol::{Text, VariableIntent, VariableValue};

use super::Fold;
use crate::batch::VariableRow;
use crate::database::{Database, Result};

/// Names that were met, by definition, so that they are not written again each time.
#[derive(Debug, Default)]
pub(super) struct Names {
    met: HashMap<i64, HashSet<Text>>,
    bytes: usize,
}

impl Names {
    /// More are forgotten. What is met again afterwards is written again, which changes nothing.
    const BYTES_KEPT_MAX: usize = 8 << 20;
    /// A definition whose variables have more names makes them of data: no more of them are written, until all are forgotten.
    const OF_DEFINITION_MAX: usize = 10_000;

    /// Whether a name has to be written.
    fn is_new(&mut self, definition: i64, name: &Text) -> bool {
        if let Some(met) = self.met.get(&definition)
            && (met.contains(name) || met.len() >= Self::OF_DEFINITION_MAX)
        {
            return false;
        }
        if self.bytes >= Self::BYTES_KEPT_MAX {
            *self = Names::default();
        }
        const BESIDE_BYTES: usize = 64;
        self.bytes += name.len() + BESIDE_BYTES;
        self.met.entry(definition).or_default().insert(name.clone())
    }
}

impl Fold {
    /// A definition is gone, and nothing of it lives.
    pub(super) fn forget_variable_names(&mut self, database: &Database, definition: i64) -> Result<()> {
        self.batch.variable_names.retain(|(of, _)| *of != definition);
        database.execute("DELETE FROM variable_name WHERE process_definition_key = ?", &[definition.into()])?;
        Ok(())
    }

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
        for number in 0..Names::OF_DEFINITION_MAX {
            assert!(names.is_new(9, &name(number)));
        }
        assert!(!names.is_new(9, &name(Names::OF_DEFINITION_MAX)), "no more of one definition");
        assert!(!names.is_new(7, &name(0)), "it is still known");
        let definitions = (10..).take_while(|of| names.bytes < Names::BYTES_KEPT_MAX && names.is_new(*of, &name(1)));
        assert!(definitions.count() > 100_000 / 2);
        assert!(names.is_new(11, &name(2)) && names.is_new(7, &name(0)), "all were forgotten");
        assert_eq!(names.met.len(), 2);
    }
}
