//! A thread that applies committed batches, for some of the partitions.

mod slot;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError};
use protocol::PartitionId;

use crate::disk::DiskState;
use crate::inbox::Work;
use crate::shared::Shared;

use slot::EmptySlot;
pub(crate) use slot::Slot;

/// How long a stopping node waits for a checkpoint.
const LAST_CHECKPOINT_LIMIT: Duration = Duration::from_secs(30);
/// How long it waits before it says what for.
const SILENT_WAIT: Duration = Duration::from_secs(3);
/// How often it looks meanwhile whether that still makes sense.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// Messages that are taken before the partitions look for work of their own.
const MESSAGES_LIMIT: usize = 64;

/// Owns the partitions whose number leaves the same remainder.
pub(crate) struct ProcessingThread {
    shared: Arc<Shared>,
    work: Receiver<Work>,
    /// In the order of their partitions.
    slots: Vec<Slot>,
    /// Partitions whose state is being replaced.
    empty: BTreeMap<PartitionId, Empty>,
}

/// A partition whose state is being replaced.
struct Empty {
    slot: EmptySlot,
    /// What came meanwhile. Bounded by what the log thread hands out before it is applied.
    waiting: Vec<Work>,
}

impl ProcessingThread {
    pub fn new(shared: Arc<Shared>, work: Receiver<Work>) -> Self {
        ProcessingThread { shared, work, slots: Vec::new(), empty: BTreeMap::new() }
    }

    /// Runs until the node stops.
    pub fn run(mut self) {
        loop {
            let message = match self.next_deadline() {
                Some(deadline) => self.work.recv_deadline(deadline),
                None => self.work.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            if self.shared.is_crashed() {
                return;
            }
            match message {
                Ok(Work::Stop) | Err(RecvTimeoutError::Disconnected) => return self.stop(),
                Ok(work) => {
                    if self.handle_all(work) {
                        return self.stop();
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            let now = Instant::now();
            for slot in &mut self.slots {
                if slot.is_touched_or_due(now) {
                    slot.run(now);
                }
            }
        }
    }

    /// Handles a message and some of those that wait behind it. `true` when the node stops.
    fn handle_all(&mut self, first: Work) -> bool {
        self.handle(first);
        for _ in 0..MESSAGES_LIMIT {
            match self.work.try_recv() {
                Ok(Work::Stop) => return true,
                Ok(work) => self.handle(work),
                Err(_) => break,
            }
        }
        false
    }

    fn handle(&mut self, work: Work) {
        if let Some(empty) = work.partition().and_then(|partition| self.empty.get_mut(&partition)) {
            // A checkpoint of the old state has come too late, and holds its file.
            if !matches!(work, Work::CheckpointWritten { .. }) {
                empty.waiting.push(work);
            }
            return;
        }
        match work {
            Work::Committed { partition, entries, up_to } => {
                self.with_slot(partition, |slot| slot.enqueue(entries, up_to));
            }
            Work::Lead { partition, leadership } => {
                self.with_slot(partition, |slot| slot.lead(leadership));
            }
            Work::StepDown(partition) => self.with_slot(partition, Slot::step_down),
            Work::Checkpoint(partition) => self.with_slot(partition, Slot::begin_checkpoint_now),
            Work::LogFailed { partition, reason } => self.with_slot(partition, |slot| slot.log_failed(&reason)),
            Work::CheckpointWritten { partition, written } => {
                self.with_slot(partition, |slot| slot.checkpoint_written(written));
            }
            Work::Add(mut slot) => {
                slot.begin();
                self.insert(*slot);
            }
            Work::Install { partition, index } => self.empty(partition, index),
            Work::Installed(partition) => {
                let Some(empty) = self.empty.remove(&partition.partition().id()) else { return };
                self.insert(empty.slot.fill(*partition));
                empty.waiting.into_iter().for_each(|work| self.handle(work));
            }
            Work::Reconcile => self.slots.iter_mut().for_each(Slot::reconcile),
            Work::ClockChanged => self.slots.iter_mut().for_each(Slot::touch),
            Work::Stop => unreachable!("the caller handles the end"),
        }
    }

    fn insert(&mut self, slot: Slot) {
        let place = self.slots.partition_point(|other| other.id() < slot.id());
        self.slots.insert(place, slot);
    }

    /// Closes the state of a partition, to be replaced by a received one. What comes meanwhile waits.
    fn empty(&mut self, partition: PartitionId, index: u64) {
        // A partition that has stopped for good takes part in nothing any more; the next start installs the state.
        let place = self.slots.iter().position(|slot| slot.id() == partition && !slot.is_dead());
        let Some(place) = place else { return };
        let slot = self.slots.remove(place).empty(index);
        self.empty.insert(partition, Empty { slot, waiting: Vec::new() });
    }

    fn slot(&mut self, partition: PartitionId) -> Option<&mut Slot> {
        let index = self.slots.binary_search_by_key(&partition, Slot::id).ok()?;
        self.slots.get_mut(index)
    }

    fn with_slot(&mut self, partition: PartitionId, action: impl FnOnce(&mut Slot)) {
        if let Some(slot) = self.slot(partition) {
            action(slot);
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.slots.iter().filter_map(Slot::deadline).min()
    }

    /// Applies what was committed, makes the last checkpoints and ends.
    fn stop(mut self) {
        while let Ok(work) = self.work.try_recv() {
            if !matches!(work, Work::Stop) {
                self.handle(work);
            }
        }
        let now = Instant::now();
        for slot in &mut self.slots {
            slot.run(now);
            slot.step_down();
            slot.begin_checkpoint_now();
            slot.forget_ends();
        }
        let (mut until, begun, mut is_said) = (Instant::now() + LAST_CHECKPOINT_LIMIT, Instant::now(), false);
        while self.slots.iter().any(Slot::is_checkpointing) && self.can_checkpoint() {
            match self.work.recv_timeout(LOOK_INTERVAL) {
                Ok(Work::CheckpointWritten { partition, written }) => {
                    until = Instant::now() + LAST_CHECKPOINT_LIMIT;
                    self.with_slot(partition, |slot| {
                        slot.checkpoint_written(written);
                        slot.begin_checkpoint_now();
                    });
                }
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) if Instant::now() < until => {}
                Err(_) => break,
            }
            if !is_said && begun.elapsed() >= SILENT_WAIT {
                is_said = true;
                self.say_what_is_waited_for();
            }
        }
        if self.slots.iter().any(Slot::is_checkpointing) && !self.shared.is_crashed() {
            tracing::warn!("the last checkpoint was not written; the next start replays more of the log");
        }
    }

    fn say_what_is_waited_for(&self) {
        let waiting = self.slots.iter().filter(|slot| slot.is_checkpointing());
        let partitions: Vec<_> = waiting.map(|slot| slot.id().to_string()).collect();
        tracing::warn!(
            partitions = partitions.join(", "),
            seconds_at_most = LAST_CHECKPOINT_LIMIT.as_secs(),
            "the node still waits for the last checkpoints of these partitions before it stops; whoever cannot wait may kill it: \
             nothing is lost, the next start only replays more of the log"
        );
    }

    /// Whether it makes sense to wait for a checkpoint.
    fn can_checkpoint(&self) -> bool {
        !self.shared.is_crashed() && self.shared.failure.lock().is_none() && self.shared.disk.state() != DiskState::Full
    }
}
