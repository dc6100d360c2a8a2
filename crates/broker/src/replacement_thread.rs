//! The thread that puts received states into the place of those that partitions have, while the node runs.
//!
//! Moving and opening a state takes time, and others may still hold the old one: exporters that are told what lives, a copy that
//! is being made for another node. The threads that work for all partitions do not wait for that.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender};
use state::Store;

use crate::flow_control::Permit;
use crate::inbox::{Inbound, Work};
use crate::maintenance::{Maintained, Maintenance, Replacement};
use crate::partition_loop::PartitionLoop;
use crate::replaced_state::{Places, ReplaceError};
use crate::shared::Shared;
use crate::snapshots::ReceivedStates;
use crate::state_handle::StateHandles;
use crate::state_opener::StateOpener;
use crate::upkeep::Upkeep;

/// Whoever holds the old state longer holds it for ever: the node has to be started again.
const CLOSING_TIME_MAX: Duration = Duration::from_secs(60);
/// How often those who hold it are called to let go.
const CALL_INTERVAL: Duration = Duration::from_millis(50);

pub(crate) struct ReplacementThread {
    pub shared: Arc<Shared>,
    pub replacements: Receiver<Replacement>,
    pub received: ReceivedStates,
    pub opener: StateOpener,
    pub states: StateHandles,
    pub maintenance: Sender<Maintenance>,
}

impl ReplacementThread {
    /// Runs until the node stops.
    pub fn run(self) {
        while let Ok(replacement) = self.replacements.recv() {
            let partition = replacement.partition.id();
            match self.replace(replacement) {
                Ok(()) => {}
                // Whatever is left to do, the next start does.
                Err(_) if self.is_stopping() => return,
                Err(reason) => {
                    let reason = format!(
                        "partition {partition} did not get its received state, which the next start puts into place: {reason}"
                    );
                    return self.shared.fail(&reason);
                }
            }
        }
    }

    fn is_stopping(&self) -> bool {
        self.shared.is_crashed() || self.shared.stopping.load(Ordering::Acquire)
    }

    fn replace(&self, replacement: Replacement) -> Result<(), String> {
        let Replacement { partition: empty, index, maintained } = replacement;
        let Maintained { partition, exporters, upkeep, throttle, processing } = maintained;
        let records = upkeep.records().clone();
        // It may hold a checkpoint that was to be written.
        drop(upkeep);
        let handle = self.states.of(partition).ok_or("the node does not hold it")?;
        handle.take_away();
        let directory = self.opener.directory(partition);
        let until = Instant::now() + CLOSING_TIME_MAX;
        while !Store::wait_until_closed(&directory, CALL_INTERVAL) {
            if self.is_stopping() || Instant::now() >= until {
                return Err(format!("its old state is still held after {} s", CLOSING_TIME_MAX.as_secs()));
            }
            exporters.iter().for_each(|exporter| exporter.controller().wake());
        }
        let places = Places { received: &self.received, state: &directory };
        let installed: Result<PartitionLoop<Permit>, ReplaceError> =
            places.install(empty, index, || self.opener.open(partition));
        let of = installed.map_err(|error| error.to_string())?;
        let engine = of.partition().engine();
        handle.put(engine.store().handle());
        let upkeep = Upkeep::new(records, engine.last_position());
        let (applied, last_timestamp) = (engine.applied(), engine.last_timestamp());
        let maintained = Maintained { partition, exporters, upkeep, throttle, processing: processing.clone() };
        // Before the partition asks for a checkpoint, and before it takes commands.
        drop(self.maintenance.send(Maintenance::Add(Box::new(maintained))));
        drop(self.shared.inbox.send(Inbound::StateInstalled { partition, applied, last_timestamp }));
        drop(processing.send(Work::Installed(Box::new(of))));
        Ok(())
    }
}
