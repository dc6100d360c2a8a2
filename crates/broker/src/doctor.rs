//! Inspecting a data directory without a running node, and deciding about an entry that ends the process.
//!
//! Nothing is changed but by [`refuse`], [`retry`] and [`restored`] (opening the log cuts off what a crash left half written at its
//! end, as every start does; beside a state of a later version it is left closed). What cannot be read is part of the report, so
//! that one damage does not hide the rest.

mod suspect;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use engine::{Engine, EngineOptions, Fault};
use protocol::{PartitionId, RecordPlace, Timestamp};
use replication::{LogOptions, RaftEngineLog, reading};

pub use crate::applying::{Applying, Ended, RefusedCommand, RefusedError};
pub use crate::record_log::SegmentsRange;
pub use replication::reading::LogRange;
pub use suspect::{CommandReport, Entry, Suspect};

use crate::applying::{self, REFUSED_MAX, RefusedCommands};
use crate::data_directory::error::DataDirectoryError;
use crate::data_directory::paths::Paths;
use crate::data_directory::{self, OfflineDirectory};
use crate::exporting::{Pause, PauseSwitch, PositionsFile};
use crate::record_log;
use crate::replication_loop::group_of;
use crate::restored;

/// What cannot be done with a data directory.
#[derive(Debug, thiserror::Error)]
pub enum DoctorError {
    /// The directory cannot be used.
    #[error(transparent)]
    DataDirectory(#[from] DataDirectoryError),
    /// The list of refused commands cannot be used.
    #[error(transparent)]
    Refused(#[from] RefusedError),
    /// What was asked for does not fit what is there.
    #[error("{0}")]
    Impossible(String),
}

/// How a data directory is.
#[derive(Debug)]
pub struct Report {
    /// The directory.
    pub directory: PathBuf,
    /// Version of its layout.
    pub format: u32,
    /// Number of the node.
    pub node: u32,
    /// Name of the cluster.
    pub cluster_id: String,
    /// How often a node was started on it.
    pub starts: u64,
    /// Why the log cannot be read, if it cannot.
    pub log_problem: Option<String>,
    /// The partitions in order.
    pub partitions: Vec<PartitionReport>,
    /// The exporters by name.
    pub exporters: Vec<ExporterReport>,
    /// Whether exporting is paused. The error says why that cannot be read; the node takes it for a pause.
    pub pause: Result<Pause, String>,
    /// The incarnation that a restore noted for the partitions, if one did. The error says why the note cannot be read.
    pub restored: Result<Option<u64>, String>,
}

/// How a partition is. The errors say in a sentence why something cannot be read.
#[derive(Debug)]
pub struct PartitionReport {
    /// The partition.
    pub id: PartitionId,
    /// Where its log begins and ends; none while it has none.
    pub log: Result<Option<LogRange>, String>,
    /// Its state; none before the first checkpoint.
    pub checkpoint: Result<Option<Checkpoint>, String>,
    /// Its record stream.
    pub records: Result<SegmentsRange, String>,
    /// The entry at which the process ended, if there is one.
    pub suspect: Result<Option<Suspect>, String>,
    /// The commands that an operator had refused.
    pub refused: Result<Vec<RefusedCommand>, String>,
}

/// What the state of a partition holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// Index of the log up to which it contains everything.
    pub applied: u64,
    /// Version of the tables' layout.
    pub schema: u32,
    /// Position of its last record.
    pub last_position: u64,
    /// Time of its last batch, in milliseconds since 1970.
    pub last_timestamp: Timestamp,
    /// Open incidents.
    pub incidents: u64,
    /// Banned process instances.
    pub banned_instances: u64,
    /// Size of its file in bytes.
    pub file_bytes: u64,
}

/// How far an exporter is.
#[derive(Debug)]
pub struct ExporterReport {
    /// Its name.
    pub name: String,
    /// The acknowledged place of each partition.
    pub positions: Result<BTreeMap<PartitionId, RecordPlace>, String>,
}

/// A data directory, locked.
#[derive(Debug)]
struct Patient {
    directory: OfflineDirectory,
    log: Result<RaftEngineLogHandle, String>,
}

/// The log, if there is one yet.
type RaftEngineLogHandle = Option<Box<Log>>;

struct Log(RaftEngineLog);

impl std::fmt::Debug for Log {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Log")
    }
}

impl Patient {
    fn open(path: &Path) -> Result<Self, DoctorError> {
        let mut patient = Patient { directory: OfflineDirectory::open(path)?, log: Ok(None) };
        patient.log = patient.open_log();
        Ok(patient)
    }

    fn open_log(&self) -> Result<RaftEngineLogHandle, String> {
        let place = self.paths().log();
        // Opening would make one.
        if !place.exists() {
            return Ok(None);
        }
        if let Some(fault) = self.partitions().find_map(|partition| self.newer_version(partition)) {
            return Err(format!("it is left closed for the version that wrote the state beside it. {fault}"));
        }
        let log = RaftEngineLog::open(&place, LogOptions::default()).map_err(|error| error.to_string())?;
        Ok(Some(Box::new(Log(log))))
    }

    /// Says that a later version wrote the state of a partition, if so it is.
    fn newer_version(&self, partition: PartitionId) -> Option<Fault> {
        self.open_engine(partition).err().filter(Fault::is_of_newer_version)
    }

    fn paths(&self) -> &Paths {
        &self.directory.paths
    }

    fn log(&self) -> Result<Option<&RaftEngineLog>, String> {
        self.log.as_ref().map(|log| log.as_ref().map(|log| &log.0)).map_err(Clone::clone)
    }

    fn partitions(&self) -> impl Iterator<Item = PartitionId> {
        (1..=self.directory.settings.partitions).map(PartitionId)
    }

    /// The state as of its last checkpoint; none before the first one.
    fn engine(&self, partition: PartitionId) -> Result<Option<Engine>, String> {
        self.open_engine(partition).map_err(|error| error.to_string())
    }

    fn open_engine(&self, partition: PartitionId) -> Result<Option<Engine>, Fault> {
        let place = self.paths().state(partition);
        // Opening would make one.
        if !place.exists() {
            return Ok(None);
        }
        let settings = &self.directory.settings;
        let options =
            EngineOptions { first_level: settings.level, ..EngineOptions::new(partition, settings.partitions) };
        Engine::open(options, &place).map(Some)
    }

    fn check_partition(&self, partition: u16) -> Result<PartitionId, DoctorError> {
        let last = self.directory.settings.partitions;
        if (1..=last).contains(&partition) {
            return Ok(PartitionId(partition));
        }
        Err(DoctorError::Impossible(format!("there is no partition {partition}, the partitions are 1 to {last}")))
    }

    fn examine(&self, id: PartitionId) -> PartitionReport {
        let paths = self.paths();
        let log = match self.log() {
            Ok(Some(log)) => reading::range(log, group_of(id)).map_err(|error| error.to_string()),
            Ok(None) => Ok(None),
            Err(problem) => Err(problem),
        };
        let checkpoint = self.engine(id).map(|engine| engine.as_ref().map(checkpoint));
        let refused = RefusedCommands::read(&paths.refused(id), id).map_err(|error| error.to_string());
        let suspect = match applying::read(&paths.applying(id), id) {
            Ok(ended) => Ok(ended.map(|ended| self.suspect(id, ended, refused.as_ref().ok()))),
            Err(error) => Err(error.to_string()),
        };
        PartitionReport {
            id,
            log,
            checkpoint,
            records: record_log::range(&paths.records(id), id).map_err(|error| error.to_string()),
            suspect,
            refused: refused.map(|refused| refused.all().to_vec()),
        }
    }
}

fn checkpoint(engine: &Engine) -> Checkpoint {
    let statistics = engine.statistics();
    Checkpoint {
        applied: engine.applied(),
        schema: engine::SCHEMA_VERSION,
        last_position: engine.last_position(),
        last_timestamp: engine.last_timestamp(),
        incidents: statistics.incidents,
        banned_instances: statistics.banned_instances,
        file_bytes: engine.store().file_bytes(),
    }
}

/// Looks at everything.
///
/// # Errors
/// When the directory is in use, or none of ours.
pub fn examine(path: &Path) -> Result<Report, DoctorError> {
    let patient = Patient::open(path)?;
    let settings = &patient.directory.settings;
    Ok(Report {
        directory: path.to_owned(),
        format: data_directory::names::FORMAT,
        node: settings.node,
        cluster_id: settings.cluster.clone(),
        starts: patient.directory.starts,
        log_problem: patient.log().err(),
        partitions: patient.partitions().map(|id| patient.examine(id)).collect(),
        exporters: exporters(&patient.paths().exporters()),
        pause: PauseSwitch::read(&patient.paths().exporting_pause()),
        restored: restored::read(patient.paths().directory()).map_err(|error| error.to_string()),
    })
}

fn exporters(directory: &Path) -> Vec<ExporterReport> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let paths = entries.flatten().map(|entry| entry.path());
    let paths = paths.filter(|path| path.extension().is_some_and(|extension| extension == "positions"));
    let name = |path: &Path| path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let positions = |path: &Path| {
        let kept = PositionsFile::read(path)?;
        Ok(kept.into_iter().map(|(partition, kept)| (partition, kept.acknowledged)).collect())
    };
    let mut reports: Vec<ExporterReport> =
        paths.map(|path| ExporterReport { name: name(&path), positions: positions(&path) }).collect();
    reports.sort_by(|one, other| one.name.cmp(&other.name));
    reports
}

/// What was asked to be refused: a command of an entry, or all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// Number of the partition.
    pub partition: u16,
    /// Index of the entry in the partition's log.
    pub index: u64,
    /// Number of the command in the entry, from 1; none for all of them.
    pub number: Option<u32>,
}

/// Has a command of the log refused from the next start on, and the partition take part in it again.
///
/// # Errors
/// When the entry is not in the log, has no such command, or is part of the state already. Nothing is changed then.
pub fn refuse(path: &Path, refusal: Refusal) -> Result<RefusedCommand, DoctorError> {
    let patient = Patient::open(path)?;
    let Refusal { partition, index, number } = refusal;
    let partition = patient.check_partition(partition)?;
    let impossible = |problem: String| DoctorError::Impossible(problem);
    let log = patient.log().map_err(impossible)?.ok_or_else(|| impossible("there is no log yet".to_owned()))?;
    let applied = patient.engine(partition).map_err(impossible)?.map_or(0, |engine| engine.applied());
    if index <= applied {
        return Err(DoctorError::Impossible(format!(
            "entry {index} of partition {partition} is part of its state already, which holds everything up to entry {applied}: \
             it is not applied again, so there is nothing to refuse"
        )));
    }
    let entry = suspect::read_entry(log, partition, index).map_err(impossible)?;
    if let Some(number) = number {
        let commands =
            protocol::decode_batch(&entry.data).map_err(|error| impossible(error.to_string()))?.commands.len();
        if number == 0 || number as usize > commands {
            return Err(DoctorError::Impossible(format!(
                "entry {index} of partition {partition} has no command {number}, its commands are 1 to {commands}"
            )));
        }
    }
    let place = patient.paths().refused(partition);
    let mut list = RefusedCommands::read(&place, partition)?;
    let refused = RefusedCommand { index, checksum: crc32fast::hash(&entry.data), number };
    list.add(refused.clone(), applied);
    if list.all().len() > REFUSED_MAX {
        return Err(DoctorError::Impossible(format!(
            "partition {partition} has {REFUSED_MAX} refused commands already, which is the most there can be; start the node, so that \
             a checkpoint of its state makes the old ones superfluous"
        )));
    }
    list.write(&place)?;
    forget(patient.paths(), partition)?;
    Ok(refused)
}

/// Notes that the directory was put back from a copy: from the next start on, its partitions are at another incarnation, with keys and
/// positions that the lost life cannot have given. Returns its number, which is the time in seconds unless a life had a higher one.
///
/// # Errors
/// When the state of a partition cannot be read, or the note cannot be written. A damaged note is written anew.
pub fn restored(path: &Path, seconds: u64) -> Result<u64, DoctorError> {
    let patient = Patient::open(path)?;
    let mut incarnation = seconds;
    for partition in patient.partitions() {
        let engine = patient.engine(partition).map_err(DoctorError::Impossible)?;
        incarnation = incarnation.max(engine.map_or(0, |engine| engine.incarnation()).saturating_add(1));
    }
    let noted = match restored::read(patient.paths().directory()) {
        Ok(noted) => noted.unwrap_or_default(),
        Err(DataDirectoryError::Restored { .. }) => 0,
        Err(error) => return Err(error.into()),
    };
    incarnation = incarnation.max(noted.saturating_add(1));
    restored::write(patient.paths().directory(), incarnation)?;
    Ok(incarnation)
}

/// Has the partition take part in the next start again, which tries the entry again. Returns what was noted.
///
/// # Errors
/// When there is no such partition, or the note cannot be removed.
pub fn retry(path: &Path, partition: u16) -> Result<Option<Ended>, DoctorError> {
    let patient = Patient::open(path)?;
    let partition = patient.check_partition(partition)?;
    let ended = applying::read(&patient.paths().applying(partition), partition)?;
    forget(patient.paths(), partition)?;
    Ok(ended)
}

fn forget(paths: &Paths, partition: PartitionId) -> Result<(), DataDirectoryError> {
    let path = paths.applying(partition);
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(DataDirectoryError::Io { action: "remove", path, source: error })
        }
        _ => Ok(()),
    }
}
