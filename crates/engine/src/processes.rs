//! Compiled processes by definition key.

use std::cell::RefCell;
use std::sync::Arc;

use bpmn::model::ExecutableProcess;
use protocol::Key;
use rustc_hash::FxHashMap;

use crate::state::Tables;

/// How many compiled processes are kept; the rest is compiled again when needed.
const CACHED_PROCESSES_MAX: usize = 1_000;

/// Processes are compiled when first needed after a start and kept; the source of truth is the deployed resource.
#[derive(Debug, Default)]
pub(crate) struct ProcessCache {
    by_key: RefCell<FxHashMap<Key, Arc<ExecutableProcess>>>,
    /// What was compiled during the command at hand.
    compiled: RefCell<Vec<Key>>,
}

impl ProcessCache {
    pub fn get(&self, definition: Key, tables: &Tables) -> Option<Arc<ExecutableProcess>> {
        if let Some(process) = self.by_key.borrow().get(&definition) {
            return Some(process.clone());
        }
        let row = tables.processes.get(&definition.raw())?;
        // It was valid when it was deployed, and stays so: a rule that was added later is for new deployments.
        let process = bpmn::parse_deployed(&row.metadata.resource_name, &row.resource)
            .ok()?
            .into_iter()
            .find(|process| *process.id == *row.metadata.bpmn_process_id)
            .map(Arc::new)?;
        let mut by_key = self.by_key.borrow_mut();
        if by_key.len() >= CACHED_PROCESSES_MAX {
            by_key.clear();
        }
        by_key.insert(definition, process.clone());
        self.compiled.borrow_mut().push(definition);
        Some(process)
    }

    /// A command begins.
    pub fn begin(&mut self) {
        self.compiled.get_mut().clear();
    }

    /// What the command did is undone.
    pub fn rollback(&mut self) {
        for definition in self.compiled.get_mut().drain(..) {
            self.by_key.get_mut().remove(&definition);
        }
    }

    /// A definition is gone.
    pub fn forget(&mut self, definition: Key) {
        self.by_key.get_mut().remove(&definition);
    }
}
