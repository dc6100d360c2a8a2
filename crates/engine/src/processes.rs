//! Compiled processes by definition key.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use bpmn::model::ExecutableProcess;
use protocol::Key;
use rustc_hash::FxHashMap;

use crate::state::Tables;

/// How many compiled processes are kept; the rest is compiled again when needed.
const CACHED_PROCESSES_MAX: usize = 1_000;
/// Bytes of the resources of which the compiled processes are kept. Compiled they take about ten times as much.
const CACHED_RESOURCE_BYTES_MAX: usize = 64 << 20;

/// Processes are compiled when first needed after a start and kept; the source of truth is the deployed resource.
#[derive(Debug, Default)]
pub(crate) struct ProcessCache {
    by_key: RefCell<FxHashMap<Key, Arc<ExecutableProcess>>>,
    /// Bytes of the resources since the cache was last empty.
    resource_bytes: Cell<usize>,
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
        let resource_bytes = self.resource_bytes.get().saturating_add(row.resource.len());
        if by_key.len() >= CACHED_PROCESSES_MAX || resource_bytes > CACHED_RESOURCE_BYTES_MAX {
            by_key.clear();
            self.resource_bytes.set(row.resource.len());
        } else {
            self.resource_bytes.set(resource_bytes);
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
