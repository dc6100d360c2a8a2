//! Opening what a node has on its disk.

use std::sync::Arc;

use engine::{Engine, EngineOptions};
use protocol::PartitionId;
use replication::{LogOptions, NodeId, Options as ReplicationOptions, RaftEngineLog, ReplicationError, check_applied};

use super::PARTITION_COUNT_MAX;
use super::errors::StartError;
use crate::applying::{self, ApplyingNote, CommandTimes, Guard, RefusedCommands};
use crate::data_directory::DataDirectory;
use crate::data_directory::error::failed;
use crate::disk::DiskView;
use crate::exporting::SHARED_EXPORTERS_MAX;
use crate::options::NodeOptions;
use crate::record_log::{self, RecordLog, RecordLogOptions, RecordWriter, SystemFiles};
use crate::replaced_state::Places;
use crate::replication_loop::group_of;
use crate::retention::RetentionLimits;
use crate::snapshots::ReceivedStates;
use crate::state_opener::StateOpener;

/// What was opened for one partition.
pub(super) struct Opened {
    pub partition: PartitionId,
    pub engine: Engine,
    pub guard: Guard,
    /// Why the node starts without this partition.
    pub left_out: Option<String>,
    pub records: Arc<RecordLog>,
    pub writer: RecordWriter,
    /// Tell the threads of the exporters, in the order of the configuration, that there are new records.
    pub written: Vec<crossbeam_channel::Receiver<()>>,
}

/// Whether the options make sense.
pub(super) fn check(options: &NodeOptions) -> Result<(), StartError> {
    if !(1..=PARTITION_COUNT_MAX).contains(&options.partition_count) {
        return Err(StartError::PartitionCount(options.partition_count));
    }
    let (command_limit_bytes, batch_limit_bytes) = (options.command_limit_bytes, options.batch_limit_bytes);
    // The batch adds a header and lengths of at most as many bytes as the smallest commands have.
    let max_bytes = ReplicationOptions::default().max_entry_bytes / 2;
    if [command_limit_bytes, batch_limit_bytes].iter().any(|bytes| !(1..=max_bytes).contains(bytes)) {
        return Err(StartError::BatchLimit { command_limit_bytes, batch_limit_bytes, max_bytes });
    }
    if options.exporters.len() > SHARED_EXPORTERS_MAX {
        return Err(StartError::TooManyExporters(options.exporters.len()));
    }
    for (index, exporter) in options.exporters.iter().enumerate() {
        if options.exporters[..index].iter().any(|other| other.name == exporter.name) {
            return Err(StartError::DuplicateExporter(exporter.name.clone()));
        }
    }
    Ok(())
}

/// Whether there is such a partition.
pub(super) fn check_partition(partition: PartitionId, partition_count: u16) -> Result<(), StartError> {
    match (1..=partition_count).contains(&partition.0) {
        true => Ok(()),
        false => Err(StartError::NoSuchPartition { partition, partition_count }),
    }
}

/// Refuses what a later version wrote beside the log and the states, before anything is opened: what is opened is cut back to where
/// it is whole, and data that are refused must be left to the version that they are of.
pub(super) fn refuse_newer(
    directory: &DataDirectory,
    partitions: impl IntoIterator<Item = PartitionId>,
) -> Result<(), StartError> {
    let paths = &directory.paths;
    for partition in partitions {
        record_log::refuse_newer(&paths.records(partition), partition)?;
        RefusedCommands::read(&paths.refused(partition), partition)?;
        applying::read(&paths.applying(partition), partition)?;
    }
    Ok(())
}

/// Opens the states of partitions. That is done for all partitions before the logs and the records are opened: these are cut back
/// to where they are whole then, and a start that is refused for a state of a newer version must leave them to that version.
pub(super) fn state_opener(options: &NodeOptions, directory: &DataDirectory) -> StateOpener {
    let engine_options = EngineOptions {
        first_level: directory.first_level,
        newest_level: options.newest_feature_level,
        // Other work is admitted up to twice as much.
        continuation_overlay_bytes_max: options.flow_control.state_limit_of(options.partition_count) / 2,
        ..EngineOptions::new(PartitionId::DEPLOYMENT, options.partition_count)
    };
    StateOpener::new(engine_options, directory.paths.clone())
}

/// Opens the rest of a partition.
pub(super) fn open_partition(
    options: &NodeOptions,
    directory: &DataDirectory,
    log: &RaftEngineLog,
    voters: &[NodeId],
    pieces: &crossbeam_channel::Sender<()>,
    opener: &StateOpener,
    (partition, engine): (PartitionId, Engine),
) -> Result<Opened, StartError> {
    let paths = &directory.paths;
    let guard = Guard {
        refused: RefusedCommands::read(&paths.refused(partition), partition)?,
        note: ApplyingNote::open(&paths.applying(partition), partition)?,
        times: CommandTimes::of(partition),
    };
    let (readers, written): (Vec<_>, Vec<_>) = options.exporters.iter().map(|_| crossbeam_channel::bounded(1)).unzip();
    let record_options = RecordLogOptions {
        partition,
        directory: paths.records(partition),
        files: Arc::new(SystemFiles),
        broker_version: protocol::BROKER_VERSION.into(),
        segment_bytes: segment_bytes(options, &directory.disk.view()),
        is_read: !readers.is_empty(),
        readers,
        write_back: Some(pieces.clone()),
    };
    // Before the record log, which drops what the state does not lead to.
    let received = ReceivedStates::new(paths.partitions());
    let engine = match check_applied(log, group_of(partition), voters, engine.applied()) {
        Ok(()) => engine,
        Err(ReplicationError::StateBehindLog { applied, compacted, .. }) => {
            if !received.has(partition, compacted) {
                return Err(StartError::StateLost { partition, path: paths.state(partition), applied, compacted });
            }
            tracing::info!(%partition, index = compacted, "putting a state into place that another node sent before the last stop");
            let places = Places { received: &received, state: &paths.state(partition) };
            places.install_at_start(engine, compacted, record_options.clone(), || opener.open(partition))?
        }
        Err(error) => return Err(error.into()),
    };
    received.remove_all(partition).map_err(failed("clear", &paths.partitions()))?;
    let left_out = applying::reason_to_leave_out(log, paths, partition, &guard, &engine);
    let (records, writer) = RecordLog::open(record_options, engine.record_place())?;
    Ok(Opened { partition, engine, guard, left_out, records, writer, written })
}

/// Of the volume, what the log keeps for members of the cluster that lack it, and at most as much of what it has not given back.
const LOG_VOLUME_SHARE: u64 = 8;

/// What the log keeps for members of the cluster that lack it: nothing for a node alone.
pub(super) fn retention_limits(options: &NodeOptions, disk: &DiskView) -> RetentionLimits {
    let volume_share = disk.total_bytes / LOG_VOLUME_SHARE;
    let total_bytes_max = if options.cluster.is_some() { volume_share } else { 0 };
    RetentionLimits { total_bytes_max, ..RetentionLimits::default() }
}

/// The log gives no room back before it has its size, so on a small volume it must not become large. What it keeps must fit, or
/// it would be moved again and again.
pub(super) fn log_options(disk: &DiskView, (retention, partition_count): (RetentionLimits, u16)) -> LogOptions {
    const FILES: u64 = 8;
    const SMALLEST_FILE_BYTES: u64 = 1 << 20;
    let usual = LogOptions::default();
    let unneeded_bytes = usual.reclaim_above_bytes.min(disk.total_bytes / LOG_VOLUME_SHARE);
    let file_bytes = usual.file_bytes.min(unneeded_bytes / FILES).max(SMALLEST_FILE_BYTES);
    LogOptions { file_bytes, reclaim_above_bytes: unneeded_bytes + retention.kept_bytes_max(partition_count) }
}

/// The same holds for the newest segment of each partition.
fn segment_bytes(options: &NodeOptions, disk: &DiskView) -> u64 {
    const VOLUME_SHARE: u64 = 32;
    let share = disk.total_bytes / VOLUME_SHARE / u64::from(options.partition_count);
    options.segment_bytes.min(share.max(64 << 10))
}
