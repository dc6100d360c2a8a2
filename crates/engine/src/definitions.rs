//! Compiled processes and decisions by definition key.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use bpmn::model::ExecutableProcess;
use dmn::DecisionRequirementsGraph;
use protocol::Key;
use rustc_hash::FxHashMap;

use crate::state::Tables;

/// How many compiled definitions of a kind are kept; the rest is compiled again when needed.
const CACHED_DEFINITIONS_MAX: usize = 1_000;
/// Bytes of the resources whose compiled definitions are kept, by kind. A compiled definition takes about ten times as
/// much.
const CACHED_RESOURCE_BYTES_MAX: usize = 64 << 20;

/// Definitions are compiled when first needed after a start and kept; the source of truth is the deployed resource.
#[derive(Debug, Default)]
pub(crate) struct Definitions {
    processes: Cache<Arc<ExecutableProcess>>,
    decision_requirements: Cache<DecisionRequirementsGraph>,
}

impl Definitions {
    pub fn process(&self, definition: Key, tables: &Tables) -> Option<Arc<ExecutableProcess>> {
        self.processes.get(definition, || {
            let row = tables.processes.get(&definition.raw())?;
            // It was valid when it was deployed and remains so: rules that were added later apply to new deployments.
            let processes = bpmn::parse_deployed(&row.metadata.resource_name, &row.resource).ok()?;
            let process = processes.into_iter().find(|process| *process.id == *row.metadata.bpmn_process_id)?;
            Some((Arc::new(process), row.resource.len()))
        })
    }

    /// What was compiled when it was deployed is not compiled again.
    pub fn keep_process(&self, definition: Key, process: ExecutableProcess, resource_bytes: usize) {
        self.processes.get(definition, || Some((Arc::new(process), resource_bytes)));
    }

    pub fn decision_requirements(&self, key: Key, tables: &Tables) -> Option<DecisionRequirementsGraph> {
        self.decision_requirements.get(key, || {
            let row = tables.decision_requirements.get(&key.raw())?;
            Some((dmn::parse(&row.resource).ok()?, row.resource.len()))
        })
    }

    /// A command begins.
    pub fn begin(&mut self) {
        self.processes.begin();
        self.decision_requirements.begin();
    }

    /// What the command did is undone.
    pub fn rollback(&mut self) {
        self.processes.rollback();
        self.decision_requirements.rollback();
    }

    /// A process is gone.
    pub fn forget_process(&mut self, definition: Key) {
        self.processes.forget(definition);
    }

    /// A graph of decisions is gone.
    pub fn forget_decision_requirements(&mut self, key: Key) {
        self.decision_requirements.forget(key);
    }
}

#[derive(Debug)]
struct Cache<T> {
    by_key: RefCell<FxHashMap<Key, T>>,
    /// Bytes of the resources since the cache was last empty.
    resource_bytes: Cell<usize>,
    /// What was compiled during the current command.
    compiled: RefCell<Vec<Key>>,
}

impl<T> Default for Cache<T> {
    fn default() -> Self {
        Self { by_key: RefCell::default(), resource_bytes: Cell::default(), compiled: RefCell::default() }
    }
}

impl<T: Clone> Cache<T> {
    /// The definition of a key; `compile` returns it with the bytes of its resource.
    fn get(&self, key: Key, compile: impl FnOnce() -> Option<(T, usize)>) -> Option<T> {
        if let Some(definition) = self.by_key.borrow().get(&key) {
            return Some(definition.clone());
        }
        let (definition, bytes) = compile()?;
        let mut by_key = self.by_key.borrow_mut();
        let resource_bytes = self.resource_bytes.get().saturating_add(bytes);
        if by_key.len() >= CACHED_DEFINITIONS_MAX || resource_bytes > CACHED_RESOURCE_BYTES_MAX {
            by_key.clear();
            self.resource_bytes.set(bytes);
        } else {
            self.resource_bytes.set(resource_bytes);
        }
        by_key.insert(key, definition.clone());
        self.compiled.borrow_mut().push(key);
        Some(definition)
    }

    fn begin(&mut self) {
        self.compiled.get_mut().clear();
    }

    fn rollback(&mut self) {
        for key in self.compiled.get_mut().drain(..) {
            self.by_key.get_mut().remove(&key);
        }
    }

    fn forget(&mut self, key: Key) {
        self.by_key.get_mut().remove(&key);
    }
}
