//! The read model of a node, as it is in production, and what becomes of its files.
//!
//! Its own timing follows how long its transactions really take, so here it writes when it is flushed, and that is at times
//! that come again in a run of the same seed.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use broker::exporting::{ExporterLoop, ExporterProgress, Keeper, PositionsFile};
use broker::record_log::RecordLog;
use broker::state_handle::StateHandle;
use chance::Chance;
use exporters::{Controller, Delivery, ExporterError, Kept, Opening, PartitionExporter, RecordFilter, Resume, Role};
use parking_lot::Mutex;
use protocol::{PartitionId, Record, RecordPlace, Timestamp};
use readmodel::ReadModel;

use super::{Node, Surroundings, index_of};
use crate::rows::{self, Rows};

/// How long after a record it is flushed.
const DELAY: Duration = Duration::from_millis(50);
/// What a flush is later than the one before for the read model, which so has no reason to wait.
const PAUSE: Duration = Duration::from_secs(100);

/// What searches find of a partition, up to a place.
pub struct Shown {
    pub partition: PartitionId,
    pub place: RecordPlace,
    /// What operators are told is missing.
    pub remark: Option<String>,
    /// Everything that is found, if it was looked at.
    pub rows: Option<Rows>,
    /// Counters that are kept and not what the rows say, if it was looked at.
    pub wrong_counts: Vec<String>,
}

#[derive(Default)]
struct Told {
    shown: Vec<Shown>,
    /// Whether what is shown next is looked at.
    looks: bool,
}

/// The consumer of production.
struct Consumer {
    partition: PartitionId,
    inner: Box<dyn PartitionExporter>,
    model: Arc<ReadModel>,
    told: Arc<Mutex<Told>>,
    /// What the node is told, and what the consumer says itself.
    controllers: Option<(Controller, Controller)>,
    taken: RecordPlace,
    flush_at: Option<Duration>,
    flushes: u32,
}

impl Consumer {
    fn show(&self, place: RecordPlace, looks: bool) {
        let remark = self.controllers.as_ref().and_then(|(_, own)| own.remark());
        let rows = looks.then(|| rows::found(&self.model, self.partition));
        // After a loss, counters of what has ended are kept without its rows.
        let counts = looks && remark.is_none();
        let wrong_counts = if counts { rows::wrong_counts(&self.model, self.partition) } else { Vec::new() };
        self.told.lock().shown.push(Shown { partition: self.partition, place, remark, rows, wrong_counts });
    }
}

impl PartitionExporter for Consumer {
    fn open(&mut self, opening: Opening) -> Result<Resume, ExporterError> {
        let own = Controller::new(Kept::default(), || {});
        self.controllers = Some((opening.controller.clone(), own.clone()));
        self.flush_at = None;
        let resume = self.inner.open(Opening { controller: own, ..opening })?;
        if let Resume::After(place) = resume {
            self.taken = place;
            let looks = std::mem::take(&mut self.told.lock().looks);
            self.show(place, looks);
        }
        Ok(resume)
    }

    fn export(&mut self, delivery: &Delivery<'_>, now: Duration) -> Result<(), ExporterError> {
        self.inner.export(delivery, now + PAUSE * self.flushes)?;
        self.taken = delivery.place();
        self.flush_at.get_or_insert(now + DELAY);
        Ok(())
    }

    fn take_living(&mut self, record: &Record, now: Duration) -> Result<(), ExporterError> {
        self.inner.take_living(record, now + PAUSE * self.flushes)
    }

    fn living_told(&mut self, place: RecordPlace, at: Timestamp, now: Duration) -> Result<(), ExporterError> {
        self.inner.living_told(place, at, now + PAUSE * self.flushes)?;
        self.taken = place;
        self.show(place, true);
        Ok(())
    }

    fn records_missing(&mut self, up_to: RecordPlace, now: Duration) -> Result<(), ExporterError> {
        self.inner.records_missing(up_to, now + PAUSE * self.flushes)
    }

    fn flush_at(&self) -> Option<Duration> {
        self.flush_at
    }

    fn flush(&mut self, now: Duration) -> Result<(), ExporterError> {
        self.flushes += 1;
        self.flush_at = Some(now + DELAY);
        self.inner.flush(now + PAUSE * self.flushes)?;
        // It may have put off its transaction to the next flush.
        if self.model.progress(self.partition).position() >= self.taken.position {
            self.flush_at = None;
            if let Some((node, _)) = &self.controllers {
                node.acknowledge(self.taken);
            }
            let looks = std::mem::take(&mut self.told.lock().looks);
            self.show(self.taken, looks);
        }
        Ok(())
    }

    fn close(&mut self, now: Duration) -> Result<(), ExporterError> {
        self.inner.close(now + PAUSE * self.flushes)
    }
}

/// The read model of a life of a node.
pub(super) struct Searched {
    loops: Vec<ExporterLoop>,
    told: Arc<Mutex<Told>>,
}

impl Searched {
    pub fn open(
        directory: &Path,
        logs: &[Arc<RecordLog>],
        states: Vec<StateHandle>,
        clock: Timestamp,
    ) -> Result<Self, String> {
        let path = directory.join("exporters").join("read-model.positions");
        let (file, kept) = PositionsFile::open(path).map_err(|error| error.to_string())?;
        let keeper = Arc::new(Keeper::new(file, kept));
        let told = Arc::<Mutex<Told>>::default();
        let partitions = logs.iter().map(|log| log.partition());
        let model = ReadModel::new(&directory.join("read-model"), partitions).map_err(|error| error.to_string())?;
        let of_partition = |(log, state): (&Arc<RecordLog>, StateHandle)| {
            let partition = log.partition();
            let progress = ExporterProgress::new(readmodel::NAME, keeper.kept(partition), log.clone(), clock, || {});
            let consumer = Consumer {
                partition,
                inner: rows::consumer(&model, partition),
                model: model.clone(),
                told: told.clone(),
                controllers: None,
                taken: RecordPlace::default(),
                flush_at: None,
                flushes: 0,
            };
            ExporterLoop::new(Box::new(consumer), RecordFilter::default(), Arc::new(progress), keeper.clone())
                .with_state(state)
        };
        let loops = logs.iter().zip(states).map(of_partition).collect();
        Ok(Searched { loops, told })
    }

    /// Up to which record of a partition it needs nothing any more, and up to which that is kept for the next start.
    pub fn needs_nothing_of(&self, partition: PartitionId) -> (RecordPlace, RecordPlace) {
        let progress = self.loops[index_of(partition)].progress();
        (progress.acknowledged(), progress.saved())
    }

    /// The state of a partition is being replaced.
    pub fn let_go(&mut self, partition: PartitionId, now: Duration) {
        self.loops[index_of(partition)].let_go_of_replaced_state(now);
    }

    /// Lets it have a turn, and says what searches find then.
    pub fn turn(&mut self, now: Duration, clock: Timestamp, chance: &mut Chance) -> Vec<Shown> {
        self.told.lock().looks = chance.one_in(200);
        for of_partition in &mut self.loops {
            of_partition.set_role(Role::Follower);
            // What lives may be told over several turns, with a crash between them.
            while of_partition.turn(now, clock) && !chance.one_in(4) {}
        }
        if chance.one_in(3) {
            self.loops.iter().for_each(|of_partition| of_partition.save_now(now));
        }
        std::mem::take(&mut self.told.lock().shown)
    }
}

impl Node {
    /// Opens the read model on the record streams and states as they are, if runs of this mixture have one.
    pub(super) fn open_searched(
        &self,
        logs: &[Arc<RecordLog>],
        states: Vec<StateHandle>,
        surroundings: &Surroundings<'_>,
    ) -> Result<Option<Searched>, String> {
        let clock = self.clock(surroundings.schedule);
        let open = || Searched::open(&self.directory, logs, states, clock);
        surroundings.swarm.has_read_model.then(open).transpose()
    }

    /// Lets the read model have a turn.
    pub(super) fn search(&mut self, surroundings: &mut Surroundings<'_>) {
        let clock = self.clock(surroundings.schedule);
        let now = Duration::from_millis(surroundings.schedule.now());
        let Some(searched) = self.running.as_mut().and_then(|running| running.searched.as_mut()) else { return };
        for shown in searched.turn(now, clock, surroundings.chance) {
            surroundings.oracles.shown(self.id, &shown);
        }
    }

    /// Some of the files of the read model may be lost with a life of the node, or are none any more.
    pub(super) fn lose_rows(&self, surroundings: &mut Surroundings<'_>) {
        let (swarm, chance) = (surroundings.swarm, &mut *surroundings.chance);
        if !swarm.has_read_model || !surroundings.oracles.has_faults() {
            return;
        }
        for partition in (1..=swarm.partitions).map(PartitionId) {
            if !chance.per_mille(swarm.read_model_loss) {
                continue;
            }
            let of_partition = format!("partition-{partition}.sqlite");
            let file = |suffix: &str| self.directory.join("read-model").join(format!("{of_partition}{suffix}"));
            if !file("").exists() {
                continue;
            }
            tracing::debug!(node = %self.id, %partition, "the read model is lost");
            if chance.one_in(2) {
                for suffix in ["", "-wal", "-shm"] {
                    drop(std::fs::remove_file(file(suffix)));
                }
            } else {
                std::fs::write(file(""), "no read model").expect("the scratch directory is writable");
            }
        }
    }
}
