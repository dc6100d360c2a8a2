//! The log of a node in a directory, kept by `raft-engine`.

mod blocks;
mod directory;
mod prepared_files;
mod verify;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use parking_lot::{Mutex, RwLock};
use protobuf::Message as _;
use raft::eraftpb::{Entry, HardState, SnapshotMetadata};
use raft_engine::env::FileSystem;
use raft_engine::{Command, Config, Engine, LogBatch, MessageExt, ReadableSize, RecoveryMode};

use crate::error::LogError;
use crate::log_store::{Anchor, GroupWrite, LogStore, SpaceReport, StoredGroup, WriteBatch, WriteReport};
use crate::types::{GroupId, Position};

use blocks::Blocks;
use directory::LockedDirectory;
pub use prepared_files::PreparedFiles;

/// The region that holds the catalogue of groups. Regions of groups start at `1 << 32`.
const CATALOGUE: u64 = 0;
/// A group's key in the catalogue is this and its number. (Keys that start with underscores belong to the engine.)
const CATALOGUE_KEY: &[u8] = b"group ";
const HARD_STATE: &[u8] = b"hard state";
const ANCHOR: &[u8] = b"anchor";

/// How a log directory is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogOptions {
    /// A file that has this many bytes is followed by a new one.
    pub file_bytes: u64,
    /// From this size on, space is reclaimed: old files are recycled, and groups that hold space are named.
    pub reclaim_above_bytes: u64,
}

impl Default for LogOptions {
    fn default() -> Self {
        Self { file_bytes: 32 << 20, reclaim_above_bytes: 256 << 20 }
    }
}

/// The log of a node in a directory: all groups in one sequence of files, one synced write per batch.
///
/// - The directory is locked; a second process is refused by name. It carries a format version; others are refused by name.
/// - Opening verifies every byte. What a crash left half written at the very end was never acknowledged: it is cut off and
///   logged. Damage anywhere else is refused with the file and the place.
/// - A failed write may be repeated. A failed sync is final: [`LogError::SyncFailed`] from then on.
pub struct RaftEngineLog<F: FileSystem = PreparedFiles> {
    engine: Engine<F>,
    blocks: Blocks,
    directory: LockedDirectory,
    /// The region of each group. A group that starts afresh moves to a new region, because `raft-engine` may let an old
    /// region's deletions hit entries that were written to the same region later.
    regions: RwLock<BTreeMap<GroupId, Region>>,
    /// An empty batch, with the room that the last one needed.
    spare_batch: Mutex<LogBatch>,
    sync_failed: AtomicBool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Region {
    /// Counts how often the group started afresh on this node.
    generation: u32,
    /// Whether the group is here; a removed group leaves its generation behind.
    alive: bool,
}

impl Region {
    const BYTES: usize = 5;

    fn id(self, group: GroupId) -> u64 {
        (u64::from(group.0) + 1) << 32 | u64::from(self.generation)
    }

    fn next(old: Option<Self>) -> Self {
        let generation =
            old.map_or(0, |old| old.generation.checked_add(1).expect("a group starts anew less than 2^32 times"));
        Self { generation, alive: true }
    }

    fn encode(self) -> Vec<u8> {
        let mut bytes = self.generation.to_be_bytes().to_vec();
        bytes.push(u8::from(self.alive));
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; Self::BYTES] = bytes.try_into().ok()?;
        let (generation, alive) = bytes.split_first_chunk::<4>()?;
        let alive = match alive {
            [0] => false,
            [1] => true,
            _ => return None,
        };
        Some(Self { generation: u32::from_be_bytes(*generation), alive })
    }
}

/// Tells `raft-engine` where an entry has its index.
struct RaftEntries;

impl MessageExt for RaftEntries {
    type Entry = Entry;

    fn index(entry: &Entry) -> u64 {
        entry.index
    }
}

impl RaftEngineLog {
    /// Opens the log in a directory, which is created if it does not exist.
    pub fn open(directory: &Path, options: LogOptions) -> Result<Self, LogError> {
        let directory = LockedDirectory::open(directory)?;
        let files = PreparedFiles::new(directory.next_file(), options.file_bytes);
        let files = files.map_err(|error| directory.io("Removing a prepared log file", error))?;
        Self::open_in(directory, options, Arc::new(files))
    }
}

impl<F: FileSystem> RaftEngineLog<F> {
    /// Opens the log with a file system of the caller's choice, for the injection of faults.
    pub fn open_with(directory: &Path, options: LogOptions, files: Arc<F>) -> Result<Self, LogError> {
        Self::open_in(LockedDirectory::open(directory)?, options, files)
    }

    fn open_in(directory: LockedDirectory, options: LogOptions, files: Arc<F>) -> Result<Self, LogError> {
        verify::verify(directory.files())?;
        let config = Config {
            dir: path_text(directory.files())?,
            // Everything but an unacknowledged tail was refused by `verify`.
            recovery_mode: RecoveryMode::TolerateTailCorruption,
            recovery_threads: 2,
            // The payload is compressed, if at all, by those who know it.
            batch_compression_threshold: ReadableSize(0),
            target_file_size: ReadableSize(options.file_bytes),
            purge_threshold: ReadableSize(options.reclaim_above_bytes.max(options.file_bytes)),
            enable_log_recycle: true,
            ..Config::default()
        };
        // The engine panics where it finds its own invariants broken.
        let engine = catch_unwind(AssertUnwindSafe(|| Engine::open_with_file_system(config, files)))
            .map_err(|panic| directory.io("Opening the log", panic_text(panic.as_ref())))?
            .map_err(|error| directory.io("Opening the log", error))?;
        directory.sync_files()?;
        let mut regions = BTreeMap::new();
        let mut unreadable = None;
        let scan = engine.scan_raw_messages(CATALOGUE, None, None, false, |key, value| {
            match (decode_catalogue_key(key), Region::decode(value)) {
                (Some(group), Some(region)) => {
                    regions.insert(group, region);
                    true
                }
                _ => {
                    unreadable = Some(key.to_vec());
                    false
                }
            }
        });
        scan.map_err(|error| directory.io("Reading the catalogue of groups", error))?;
        if let Some(key) = unreadable {
            return Err(directory.io("Reading the catalogue of groups", format!("the record {key:02x?} is damaged")));
        }
        Ok(Self {
            engine,
            blocks: Blocks::new(),
            directory,
            regions: RwLock::new(regions),
            spare_batch: Mutex::default(),
            sync_failed: AtomicBool::new(false),
        })
    }

    fn check(&self) -> Result<(), LogError> {
        if self.sync_failed.load(Ordering::Acquire) {
            return Err(self.directory.sync_failed("an earlier sync failed".to_owned()));
        }
        Ok(())
    }

    /// Calls the engine. When a sync fails, it panics on purpose: from then on it is unknown what is on disk.
    fn guarded<T>(&self, action: &'static str, call: impl FnOnce() -> raft_engine::Result<T>) -> Result<T, LogError> {
        match catch_unwind(AssertUnwindSafe(call)) {
            Ok(result) => result.map_err(|error| self.directory.io(action, error)),
            Err(panic) => {
                self.sync_failed.store(true, Ordering::Release);
                Err(self.directory.sync_failed(panic_text(panic.as_ref())))
            }
        }
    }

    fn region(&self, group: GroupId) -> Option<u64> {
        self.regions.read().get(&group).filter(|region| region.alive).map(|region| region.id(group))
    }

    /// Adds one group's write to the batch of `raft-engine`; notes in `moved` which regions change when it is written.
    fn add(
        &self,
        batch: &mut LogBatch,
        moved: &mut BTreeMap<GroupId, Region>,
        group: GroupId,
        write: &GroupWrite,
    ) -> Result<(), raft_engine::Error> {
        let old = moved.get(&group).copied().or_else(|| self.regions.read().get(&group).copied());
        let alive = old.filter(|region| region.alive).map(|region| region.id(group));
        match write {
            GroupWrite::Append { entries, hard_state, anchor } => {
                let region = alive.expect("a group is created before it is appended to");
                batch.add_entries::<RaftEntries>(region, entries)?;
                if let Some(hard_state) = hard_state {
                    batch.put_message(region, HARD_STATE.to_vec(), hard_state)?;
                }
                if let Some(anchor) = anchor {
                    put_anchor(batch, region, anchor)?;
                }
            }
            GroupWrite::Replace { hard_state, anchor, entries } => {
                if let Some(region) = alive {
                    batch.add_command(region, Command::Clean);
                }
                let fresh = Region::next(old);
                let region = fresh.id(group);
                batch.put(CATALOGUE, catalogue_key(group), fresh.encode())?;
                batch.put_message(region, HARD_STATE.to_vec(), hard_state)?;
                put_anchor(batch, region, anchor)?;
                batch.add_entries::<RaftEntries>(region, entries)?;
                moved.insert(group, fresh);
            }
            GroupWrite::Remove => {
                if let (Some(region), Some(old)) = (alive, old) {
                    let removed = Region { alive: false, ..old };
                    batch.add_command(region, Command::Clean);
                    batch.put(CATALOGUE, catalogue_key(group), removed.encode())?;
                    moved.insert(group, removed);
                }
            }
        }
        Ok(())
    }

    fn unreadable(group: GroupId, record: &str, problem: impl ToString) -> LogError {
        LogError::Unreadable { group, record: record.to_owned(), problem: problem.to_string() }
    }
}

impl<F: FileSystem + 'static> LogStore for RaftEngineLog<F> {
    fn groups(&self) -> Result<Vec<GroupId>, LogError> {
        self.check()?;
        let regions = self.regions.read();
        Ok(regions.iter().filter(|(_, region)| region.alive).map(|(group, _)| *group).collect())
    }

    fn load(&self, group: GroupId) -> Result<Option<StoredGroup>, LogError> {
        self.check()?;
        let Some(region) = self.region(group) else {
            return Ok(None);
        };
        let hard_state = self
            .engine
            .get_message::<HardState>(region, HARD_STATE)
            .map_err(|error| Self::unreadable(group, "hard state", error))?
            .ok_or_else(|| Self::unreadable(group, "hard state", "it is missing"))?;
        let anchor = self
            .engine
            .get(region, ANCHOR)
            .and_then(|bytes| decode_anchor(&bytes))
            .ok_or_else(|| Self::unreadable(group, "anchor", "it is missing or damaged"))?;
        let last_index = self.engine.last_index(region).unwrap_or(0).max(anchor.compacted.index);
        if let Some(first) = self.engine.first_index(region)
            && first > anchor.compacted.index + 1
        {
            let problem = format!("the entries from {} to {} are missing", anchor.compacted.index + 1, first - 1);
            return Err(Self::unreadable(group, "entries", problem));
        }
        Ok(Some(StoredGroup { hard_state, anchor, last_index }))
    }

    fn write(&self, batch: &WriteBatch) -> Result<WriteReport, LogError> {
        self.check()?;
        if batch.writes.is_empty() {
            return Ok(WriteReport::default());
        }
        let start = Instant::now();
        // Every batch is synced before the next one is written. So at most one batch, the last, is ever in doubt after a
        // crash, and `verify` can tell a torn tail from damage.
        let mut encoded = std::mem::take(&mut *self.spare_batch.lock());
        let mut moved = BTreeMap::new();
        for (group, write) in &batch.writes {
            self.add(&mut encoded, &mut moved, *group, write)
                .map_err(|error| self.directory.io("Encoding a batch", error))?;
        }
        let bytes = self.guarded("Writing the log", || self.engine.write(&mut encoded, true))?;
        self.regions.write().append(&mut moved);
        *self.spare_batch.lock() = encoded;
        Ok(WriteReport { bytes: bytes as u64, duration: start.elapsed() })
    }

    fn read(&self, group: GroupId, from: u64, to: u64, max_bytes: u64) -> Result<Vec<Entry>, LogError> {
        self.check()?;
        let first_index = self.load(group)?.map_or(1, |stored| stored.anchor.compacted.index + 1);
        let region = self.region(group).unwrap_or(CATALOGUE);
        let last_index = self.engine.last_index(region).unwrap_or(0).max(first_index - 1);
        let out_of_range = |wanted| LogError::OutOfRange { group, wanted, first_index, last_index };
        // The engine keeps compacted entries for a while, and panics below what it keeps.
        if from < first_index {
            return Err(out_of_range(from));
        }
        if to > last_index + 1 {
            return Err(out_of_range(to.saturating_sub(1)));
        }
        let mut entries = Vec::new();
        if from < to {
            let max_bytes = usize::try_from(max_bytes).unwrap_or(usize::MAX);
            let (engine, read) = (&self.engine, &mut entries);
            self.blocks
                .read(|| engine.fetch_entries_to::<RaftEntries>(region, from, to, Some(max_bytes), read))
                .map_err(|error| Self::unreadable(group, &format!("entries from {from}"), error))?;
        }
        Ok(entries)
    }

    fn reclaim_space(&self) -> Result<SpaceReport, LogError> {
        self.check()?;
        let holding =
            self.guarded("Reclaiming space of the log", || self.blocks.read(|| self.engine.purge_expired_files()))?;
        let regions = self.regions.read();
        let mut holding_space: Vec<GroupId> = holding
            .into_iter()
            .filter_map(|id| regions.iter().find(|(group, region)| region.id(**group) == id).map(|(group, _)| *group))
            .collect();
        holding_space.sort_unstable();
        Ok(SpaceReport { holding_space, used_bytes: self.engine.get_used_size() as u64 })
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no reason given").to_owned()
}

fn path_text(path: &Path) -> Result<String, LogError> {
    path.to_str().map(str::to_owned).ok_or_else(|| LogError::Io {
        action: "Opening the log",
        place: PathBuf::from(path),
        problem: "the path is not valid Unicode".to_owned(),
    })
}

fn catalogue_key(group: GroupId) -> Vec<u8> {
    [CATALOGUE_KEY, &group.0.to_be_bytes()].concat()
}

fn decode_catalogue_key(key: &[u8]) -> Option<GroupId> {
    let group = key.strip_prefix(CATALOGUE_KEY)?.try_into().ok()?;
    Some(GroupId(u32::from_be_bytes(group)))
}

/// Adds an anchor, and that what is before it goes.
///
/// Also where nothing is before it: the engine moves what is still needed out of old files, and counts how much of what it
/// moved is needed no more, by which it gives those files back. After a start it counts so only the regions of which it has moved
/// something or read a compaction. As the anchor comes with one, each region has one of both, as long as it has an anchor.
fn put_anchor(batch: &mut LogBatch, region: u64, anchor: &Anchor) -> Result<(), raft_engine::Error> {
    batch.put(region, ANCHOR.to_vec(), encode_anchor(anchor))?;
    batch.add_command(region, Command::Compact { index: anchor.compacted.index + 1 });
    Ok(())
}

fn encode_anchor(anchor: &Anchor) -> Vec<u8> {
    let mut metadata =
        SnapshotMetadata { index: anchor.compacted.index, term: anchor.compacted.term, ..SnapshotMetadata::default() };
    metadata.set_conf_state(anchor.membership.clone());
    let mut bytes = anchor.membership_index.to_be_bytes().to_vec();
    metadata.write_to_vec(&mut bytes).expect("a complete message is always encodable into memory");
    bytes
}

fn decode_anchor(bytes: &[u8]) -> Option<Anchor> {
    let (membership_index, metadata) = bytes.split_first_chunk()?;
    let metadata = SnapshotMetadata::parse_from_bytes(metadata).ok()?;
    Some(Anchor {
        compacted: Position { index: metadata.index, term: metadata.term },
        membership: metadata.get_conf_state().clone(),
        membership_index: u64::from_be_bytes(*membership_index),
    })
}
