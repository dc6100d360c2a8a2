//! The exporter of a node, whose target remembers what it is told, is away now and then, and may lose what it has not
//! acknowledged.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use broker::exporting::{ExporterLoop, ExporterProgress, Keeper, PositionsFile};
use broker::record_log::RecordLog;
use exporters::{Controller, Delivery, ExporterError, Opening, PartitionExporter, RecordFilter, Resume, Role};
use parking_lot::Mutex;
use protocol::{PartitionId, Record, RecordPlace, Timestamp};

use super::{Node, Surroundings, index_of};
use crate::schedule::Event;

const NAME: &str = "recorder";
/// How long after a record the target wants to have it kept.
const DELAY: Duration = Duration::from_millis(30);

/// What an exporter was told, in order.
pub enum Told {
    Opened(PartitionId),
    Took(PartitionId, Record),
    Acknowledged(PartitionId, u64),
}

/// What the target of a node's exporter holds by itself, over all lives of the node.
pub type OwnPlaces = Arc<Mutex<BTreeMap<PartitionId, RecordPlace>>>;

#[derive(Default)]
struct Target {
    told: Vec<Told>,
    is_away: bool,
    loses: bool,
    /// It takes its time before it acknowledges.
    keeps: bool,
}

struct Recorder {
    partition: PartitionId,
    target: Arc<Mutex<Target>>,
    /// Where the target of this partition keeps its place; none if the node is to keep it.
    own: Option<OwnPlaces>,
    controller: Option<Controller>,
    unacknowledged: Option<RecordPlace>,
    flush_at: Option<Duration>,
}

impl PartitionExporter for Recorder {
    fn open(&mut self, opening: Opening) -> Result<Resume, ExporterError> {
        let mut target = self.target.lock();
        if target.is_away {
            return Err(ExporterError::target(NAME, "connect to its target", "it is away"));
        }
        self.controller = Some(opening.controller);
        (self.unacknowledged, self.flush_at) = (None, None);
        target.told.push(Told::Opened(self.partition));
        let own = self.own.as_ref().and_then(|own| own.lock().get(&self.partition).copied());
        Ok(own.map_or(Resume::AsTheNodeSays, Resume::After))
    }

    fn export(&mut self, delivery: &Delivery<'_>, now: Duration) -> Result<(), ExporterError> {
        let mut target = self.target.lock();
        if target.is_away {
            return Err(ExporterError::target(NAME, "hand over a record", "its target is away"));
        }
        self.unacknowledged = Some(delivery.place());
        self.flush_at.get_or_insert(now + DELAY);
        target.told.push(Told::Took(self.partition, delivery.record.clone()));
        Ok(())
    }

    fn flush_at(&self) -> Option<Duration> {
        self.flush_at
    }

    fn flush(&mut self, now: Duration) -> Result<(), ExporterError> {
        let mut target = self.target.lock();
        if std::mem::take(&mut target.loses) {
            return Err(ExporterError::lost(NAME, "keep its records", "its target lost them"));
        }
        self.flush_at = None;
        let Some(controller) = self.controller.as_ref().filter(|_| !target.keeps && !target.is_away) else {
            self.flush_at = self.unacknowledged.map(|_| now + DELAY);
            return Ok(());
        };
        if let Some(place) = self.unacknowledged.take() {
            if let Some(own) = &self.own {
                own.lock().insert(self.partition, place);
            }
            controller.acknowledge(place);
            target.told.push(Told::Acknowledged(self.partition, place.position));
        }
        Ok(())
    }

    fn close(&mut self, _: Duration) -> Result<(), ExporterError> {
        Ok(())
    }
}

/// The exporter of a life of a node, for each partition.
pub(super) struct Exporting {
    exporters: Vec<ExporterLoop>,
    target: Arc<Mutex<Target>>,
}

impl Exporting {
    pub fn open(path: PathBuf, own: &OwnPlaces, logs: &[Arc<RecordLog>], clock: Timestamp) -> Result<Self, String> {
        let (file, kept) = PositionsFile::open(path).map_err(|error| error.to_string())?;
        let keeper = Arc::new(Keeper::new(file, kept));
        let target = Arc::<Mutex<Target>>::default();
        let exporter = |log: &Arc<RecordLog>| {
            let partition = log.partition();
            let progress = ExporterProgress::new(NAME, keeper.kept(partition), log.clone(), clock, || {});
            // Those of every other partition keep their place themselves.
            let own = partition.0.is_multiple_of(2).then(|| own.clone());
            let recorder = Recorder {
                partition,
                target: target.clone(),
                own,
                controller: None,
                unacknowledged: None,
                flush_at: None,
            };
            ExporterLoop::new(Box::new(recorder), RecordFilter::default(), Arc::new(progress), keeper.clone())
        };
        let exporters = logs.iter().map(exporter).collect();
        Ok(Exporting { exporters, target })
    }

    /// Up to which record of a partition nothing is needed any more.
    pub fn acknowledged(&self, partition: PartitionId) -> RecordPlace {
        self.exporters[index_of(partition)].progress().acknowledged()
    }
}

impl Node {
    /// Lets the exporter have a turn.
    pub fn export(&mut self, surroundings: &mut Surroundings<'_>) {
        let (now, clock) = (surroundings.schedule.now(), self.clock(surroundings.schedule));
        let has_faults = surroundings.oracles.has_faults();
        let life = self.life();
        let Some(running) = &mut self.running else { return };
        let exporting = &mut running.exporting;
        {
            let (mut target, chance) = (exporting.target.lock(), &mut *surroundings.chance);
            target.is_away = has_faults && chance.one_in(6);
            target.loses = has_faults && chance.one_in(20);
            target.keeps = chance.one_in(3);
        }
        let now = Duration::from_millis(now);
        for exporter in &mut exporting.exporters {
            let partition = exporter.progress().partition();
            let leads = running.partitions[index_of(partition)].partition().is_leading();
            exporter.set_role(if leads { Role::Leader } else { Role::Follower });
            while exporter.turn(now, clock) {}
        }
        if surroundings.chance.one_in(3) {
            exporting.exporters.iter().for_each(|exporter| exporter.save_now(now));
        }
        for exporter in &exporting.exporters {
            let progress = exporter.progress();
            surroundings.oracles.exporter_missed(self.id, progress.partition(), progress.missing_records());
        }
        for told in std::mem::take(&mut exporting.target.lock().told) {
            surroundings.oracles.exporter_told(self.id, &told);
        }
        self.search(surroundings);
        surroundings.schedule.after(surroundings.chance.within(20..400), Event::Export(life));
    }

    /// Opens the exporter on the record streams as they are.
    pub(super) fn open_exporting(&self, logs: &[Arc<RecordLog>], clock: Timestamp) -> Result<Exporting, String> {
        let path = self.directory.join("exporters").join("recorder.positions");
        Exporting::open(path, &self.own_places, logs, clock)
    }

    /// Up to which record of a partition the exporter needs nothing any more.
    pub(super) fn delete_records(&mut self, partition: PartitionId) {
        let Some(running) = &self.running else { return };
        let saved = running.exporting.exporters[index_of(partition)].progress().saved();
        let rows = running.searched.as_ref().map(|searched| searched.needs_nothing_of(partition).1);
        let saved = rows.map_or(saved, |rows| saved.min(rows)).position;
        if let Some(upkeep) = &running.fronts[index_of(partition)].upkeep {
            // What fails is tried again after the next checkpoint.
            drop(upkeep.delete_records(saved));
        }
    }
}
