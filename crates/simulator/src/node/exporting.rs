//! The exporter of a node, whose target remembers what it is told, is away now and then, and may lose what it has not
//! acknowledged.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use broker::exporting::{ExporterLoop, ExporterProgress, PositionsFile};
use broker::record_log::RecordLog;
use exporters::{Context, Controller, Exporter, ExporterError, RecordFilter};
use parking_lot::Mutex;
use protocol::{PartitionId, Record, Timestamp};

use super::{Node, Surroundings, index_of};
use crate::schedule::Event;

const NAME: &str = "recorder";

/// What an exporter was told, in order.
pub enum Told {
    Opened,
    Took(PartitionId, Record),
    Acknowledged(PartitionId, u64),
}

#[derive(Default)]
struct Target {
    told: Vec<Told>,
    is_away: bool,
    loses: bool,
    /// It takes its time before it acknowledges.
    keeps: bool,
}

struct Recorder {
    target: Arc<Mutex<Target>>,
    controller: Option<Controller>,
    unacknowledged: BTreeMap<PartitionId, u64>,
}

impl Exporter for Recorder {
    fn configure(&mut self, _: &mut Context) -> Result<(), ExporterError> {
        Ok(())
    }

    fn open(&mut self, controller: Controller) -> Result<(), ExporterError> {
        let mut target = self.target.lock();
        if target.is_away {
            return Err(ExporterError::target(NAME, "connect to its target", "it is away"));
        }
        self.controller = Some(controller);
        self.unacknowledged.clear();
        target.told.push(Told::Opened);
        Ok(())
    }

    fn export(&mut self, partition: PartitionId, record: &Record) -> Result<(), ExporterError> {
        let mut target = self.target.lock();
        if target.is_away {
            return Err(ExporterError::target(NAME, "hand over a record", "its target is away"));
        }
        self.unacknowledged.insert(partition, record.position);
        target.told.push(Told::Took(partition, record.clone()));
        Ok(())
    }

    fn flush(&mut self) -> Result<(), ExporterError> {
        let mut target = self.target.lock();
        if std::mem::take(&mut target.loses) {
            return Err(ExporterError::lost(NAME, "keep its records", "its target lost them"));
        }
        let Some(controller) = self.controller.as_ref().filter(|_| !target.keeps && !target.is_away) else {
            return Ok(());
        };
        for (partition, position) in std::mem::take(&mut self.unacknowledged) {
            controller.acknowledge(partition, position);
            target.told.push(Told::Acknowledged(partition, position));
        }
        Ok(())
    }

    fn close(&mut self) -> Result<(), ExporterError> {
        Ok(())
    }
}

/// The exporter of a life of a node.
pub(super) struct Exporting {
    exporter: ExporterLoop,
    target: Arc<Mutex<Target>>,
}

impl Exporting {
    pub fn open(path: PathBuf, logs: &[Arc<RecordLog>], clock: Timestamp) -> Result<Self, String> {
        let partitions = u16::try_from(logs.len()).expect("few partitions");
        let (positions, acknowledged) = PositionsFile::open(path, partitions).map_err(|error| error.to_string())?;
        let progress = Arc::new(ExporterProgress::new(NAME, &acknowledged, logs, clock));
        let target = Arc::<Mutex<Target>>::default();
        let recorder = Recorder { target: target.clone(), controller: None, unacknowledged: BTreeMap::new() };
        let exporter = ExporterLoop::new((Box::new(recorder), RecordFilter::default()), progress, positions);
        Ok(Exporting { exporter, target })
    }

    /// Up to which record of a partition nothing is needed any more.
    pub fn acknowledged(&self, partition: PartitionId) -> u64 {
        self.exporter.progress().acknowledged(partition)
    }
}

impl Node {
    /// Lets the exporter have a turn.
    pub fn export(&mut self, surroundings: &mut Surroundings<'_>) {
        let (now, clock) = (surroundings.schedule.now(), self.clock(surroundings.schedule));
        let has_faults = surroundings.oracles.has_faults();
        let Some(running) = &mut self.running else { return };
        let exporting = &mut running.exporting;
        {
            let (mut target, chance) = (exporting.target.lock(), &mut *surroundings.chance);
            target.is_away = has_faults && chance.one_in(6);
            target.loses = has_faults && chance.one_in(20);
            target.keeps = chance.one_in(3);
        }
        while exporting.exporter.turn(Duration::from_millis(now), clock) {}
        if surroundings.chance.one_in(3) {
            exporting.exporter.save_positions();
        }
        for told in std::mem::take(&mut exporting.target.lock().told) {
            surroundings.oracles.exporter_told(self.id, &told);
        }
        let life = self.life();
        surroundings.schedule.after(surroundings.chance.within(20..400), Event::Export(life));
    }

    /// Opens the exporter on the record streams as they are.
    pub(super) fn open_exporting(&self, logs: &[Arc<RecordLog>], clock: Timestamp) -> Result<Exporting, String> {
        Exporting::open(self.directory.join("exporters").join("recorder.positions"), logs, clock)
    }

    /// Up to which record of a partition the exporter needs nothing any more.
    pub(super) fn delete_records(&mut self, partition: PartitionId) {
        let Some(running) = &self.running else { return };
        let acknowledged = running.exporting.acknowledged(partition);
        if let Some(upkeep) = &running.fronts[index_of(partition)].upkeep {
            // What fails is tried again after the next checkpoint.
            drop(upkeep.delete_records(acknowledged));
        }
    }
}
