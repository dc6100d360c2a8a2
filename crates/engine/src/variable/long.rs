//! Long variables that one command reads again and again.

use std::cell::RefCell;
use std::sync::Arc;

use protocol::Key;

use crate::state::VariableRow;

/// Shorter ones are read again from the state.
const LONG_BYTES_MIN: usize = 512;
/// How many are kept.
const VARIABLES_MAX: usize = 32;

/// The rows of long variables that were read: one that is not in memory is read from the file only once, until it changes.
#[derive(Debug, Default)]
pub(crate) struct LongVariables(RefCell<Vec<Known>>);

#[derive(Debug)]
struct Known {
    scope: Key,
    name: Arc<str>,
    row: Arc<VariableRow>,
}

impl LongVariables {
    /// What a scope itself holds, if it was read before.
    pub fn get(&self, scope: Key, name: &str) -> Option<Arc<VariableRow>> {
        let known = self.0.borrow();
        known.iter().find(|known| known.scope == scope && *known.name == *name).map(|known| known.row.clone())
    }

    /// Keeps what a scope itself holds, if it is long.
    pub fn keep(&self, scope: Key, name: &Arc<str>, row: &Arc<VariableRow>) {
        if row.value.len() < LONG_BYTES_MIN {
            return;
        }
        let mut known = self.0.borrow_mut();
        if known.len() == VARIABLES_MAX {
            known.remove(0);
        }
        known.push(Known { scope, name: name.clone(), row: row.clone() });
    }

    /// A variable of a scope changes.
    pub fn forget(&mut self, scope: Key, name: &str) {
        self.0.get_mut().retain(|known| known.scope != scope || *known.name != *name);
    }
}
