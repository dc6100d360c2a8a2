//! The threads of a node.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;

use super::errors::{StartError, StopError};
use crate::shared::Shared;

/// The name of a thread that applies commands.
pub(super) fn processing(number: usize) -> String {
    format!("processing {number}")
}

#[derive(Default)]
pub(super) struct Threads {
    /// In the order in which they are stopped: replication, processing, exporters, maintenance, those of the disk.
    running: Vec<(Stage, String, JoinHandle<()>)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Replication,
    Processing,
    Exporting,
    Maintenance,
    Disk,
}

impl Threads {
    /// Whether none runs.
    pub fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    pub fn start(
        &mut self,
        shared: &Arc<Shared>,
        stage: Stage,
        name: String,
        run: impl FnOnce() + Send + 'static,
    ) -> Result<(), StartError> {
        let (shared, thread_name) = (shared.clone(), name.clone());
        let guarded = move || {
            // A node that lost a thread would silently stop working. What the thread owned is lost with it.
            if let Err(panic) = catch_unwind(AssertUnwindSafe(run)) {
                shared.fail(&format!("the thread '{thread_name}' ended with a panic"));
                resume_unwind(panic);
            }
        };
        let thread = std::thread::Builder::new().name(name.clone()).spawn(guarded);
        let thread = thread.map_err(|source| StartError::Thread { name: name.clone(), source })?;
        self.running.push((stage, name, thread));
        Ok(())
    }

    /// The names of the threads of a stage that have not ended.
    pub fn running(&self, stage: Stage) -> Vec<String> {
        let running = self.running.iter().filter(|(of, _, thread)| *of == stage && !thread.is_finished());
        running.map(|(_, name, _)| name.clone()).collect()
    }

    /// Lets go of the threads of a stage that have not ended, and returns their names.
    pub fn abandon(&mut self, stage: Stage) -> Vec<String> {
        let still_running =
            |(of, _, thread): &mut (Stage, String, JoinHandle<()>)| *of == stage && !thread.is_finished();
        self.running.extract_if(.., still_running).map(|(_, name, _)| name).collect()
    }

    pub fn join(&mut self, stage: Stage) -> Result<(), StopError> {
        let mut result = Ok(());
        for (_, name, thread) in self.running.extract_if(.., |(of, _, _)| *of == stage) {
            if thread.join().is_err() {
                result = Err(StopError::Panicked(name));
            }
        }
        result
    }
}
