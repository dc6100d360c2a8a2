//! The file that keeps what an exporter has acknowledged.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use exporters::{Controller, Kept, METADATA_LIMIT_BYTES};
use parking_lot::Mutex;
use protocol::{PartitionId, RecordPlace};

use super::pause::{Pause, PauseSwitch};
use crate::data_directory::error::DataDirectoryError;
use crate::data_directory::replace_atomically;

const MAGIC: &[u8; 8] = b"osmiapos";
/// What is written.
const VERSION: u32 = 1;
/// The oldest version that can read what is written.
const OLDEST_READER: u32 = 1;
/// Up to there, all versions agree: magic, version, oldest reader.
const FIXED_BYTES: usize = 8 + 4 + 4;
/// The file is written at most this often.
const SAVE_INTERVAL: Duration = Duration::from_secs(1);

/// What is kept for each partition.
pub type KeptByPartition = BTreeMap<PartitionId, Kept>;

/// Magic, version, oldest reader, number of partitions; for each the partition, incarnation, position, number, and metadata
/// behind its length; CRC-32 of everything before. Little-endian. What the file held before it was saved last is next to it, under
/// a name of its own.
#[derive(Debug)]
pub struct PositionsFile {
    path: PathBuf,
    /// There was something, and all of it is damaged.
    is_lost: bool,
}

/// Why the content of a file cannot be used.
#[derive(Debug)]
enum Problem {
    /// Another version wrote it.
    Version(String),
    /// It is damaged, or no such file.
    Damage(&'static str),
}

impl PositionsFile {
    /// Reads what is kept; nothing for what is not there yet.
    ///
    /// # Errors
    /// When the file system refuses, or a version wrote the file that this one cannot read.
    pub fn open(path: PathBuf) -> Result<(Self, KeptByPartition), DataDirectoryError> {
        let io = |action, path: &Path| {
            let path = path.to_owned();
            move |source| DataDirectoryError::Io { action, path, source }
        };
        if let Some(directory) = path.parent() {
            state::create_directory(directory).map_err(io("create", directory))?;
        }
        let read = |path: PathBuf| match std::fs::read(&path) {
            Ok(bytes) => match decode(&bytes) {
                Ok(kept) => Ok(Found::Kept(kept)),
                Err(Problem::Version(problem)) => Err(DataDirectoryError::Positions { path, problem }),
                Err(Problem::Damage(problem)) => Ok(Found::Damage(problem)),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Found::Nothing),
            Err(error) => Err(io("read", &path)(error)),
        };
        let (newest, before) = (read(path.clone())?, read(before(&path))?);
        let mut file = PositionsFile { path, is_lost: false };
        let kept = match (newest, before) {
            (Found::Kept(newest), Found::Kept(before)) if before == newest => newest,
            (Found::Kept(newest), _) => {
                // Segments up to what is acknowledged are deleted soon, so both must know of that.
                file.save_both(&newest);
                newest
            }
            // Of a crash between two names.
            (Found::Nothing, Found::Kept(before)) => before,
            (Found::Damage(problem), Found::Kept(before)) => {
                tracing::error!(
                    file = %file.path.display(), problem,
                    "the exporter's positions are damaged, and what was saved before is used: the exporter gets again the records \
                     of about the last second, as they were"
                );
                // The damaged file must not take the place of the one before.
                std::fs::remove_file(&file.path).map_err(io("remove", &file.path))?;
                before
            }
            (Found::Nothing, Found::Nothing) => KeptByPartition::new(),
            (Found::Damage(problem), _) | (Found::Nothing, Found::Damage(problem)) => {
                // At least once: everything that is still there is exported again.
                tracing::error!(
                    file = %file.path.display(), problem,
                    "the exporter's positions are damaged, and so is what was saved before, or it is not there. The exporter gets \
                     again all records that are still there, and has lost what it kept: one that numbers records (`sequence` in \
                     Elasticsearch and OpenSearch) begins from 1 again, unless all records are still there this gives other numbers \
                     to documents that are sent again. Whoever reads documents by `sequence` must read them again from the beginning"
                );
                file.is_lost = true;
                KeptByPartition::new()
            }
        };
        Ok((file, kept))
    }

    /// Whether there was something that is lost, because it is damaged.
    pub fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// Makes what was saved before the same as what is kept. If that fails, the next save tries it again.
    fn save_both(&self, kept: &KeptByPartition) {
        if let Err(error) = self.save(kept) {
            tracing::debug!(%error, "positions were not saved a second time");
        }
    }

    /// Reads what is kept without changing anything; the error says what is wrong.
    pub(crate) fn read(path: &Path) -> Result<KeptByPartition, String> {
        let bytes = std::fs::read(path).map_err(|error| error.to_string())?;
        decode(&bytes).map_err(|problem| match problem {
            Problem::Version(problem) => problem,
            Problem::Damage(problem) => problem.to_owned(),
        })
    }

    /// Replaces what is kept durably. What was kept until now stays as what was saved before.
    ///
    /// # Errors
    /// When the file system refuses. What is kept is there then, under one of both names.
    pub fn save(&self, kept: &KeptByPartition) -> Result<(), DataDirectoryError> {
        replace_atomically(&self.path, Some(&before(&self.path)), &encode(kept))
    }
}

/// What a file holds.
enum Found {
    Nothing,
    Kept(KeptByPartition),
    Damage(&'static str),
}

/// Where the content of a file is that was saved before.
fn before(path: &Path) -> PathBuf {
    path.with_extension("positions-before")
}

fn encode(kept: &KeptByPartition) -> Vec<u8> {
    let length = |length: usize| u32::try_from(length).expect("partitions and metadata are limited").to_le_bytes();
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&OLDEST_READER.to_le_bytes());
    bytes.extend_from_slice(&length(kept.len()));
    for (partition, Kept { acknowledged, metadata }) in kept {
        bytes.extend_from_slice(&u32::from(partition.0).to_le_bytes());
        let RecordPlace { incarnation, position, number } = acknowledged;
        [incarnation, position, number].iter().for_each(|number| bytes.extend_from_slice(&number.to_le_bytes()));
        bytes.extend_from_slice(&length(metadata.len()));
        bytes.extend_from_slice(metadata);
    }
    bytes.extend_from_slice(&crc32fast::hash(&bytes).to_le_bytes());
    bytes
}

fn decode(bytes: &[u8]) -> Result<KeptByPartition, Problem> {
    const EARLY: Problem = Problem::Damage("it ends early");
    let fixed = bytes.first_chunk::<FIXED_BYTES>().ok_or(EARLY)?;
    if &fixed[..8] != MAGIC {
        return Err(Problem::Damage("it does not start with its mark"));
    }
    let (mut fields, _) = fixed[8..].as_chunks::<4>();
    let (version, oldest_reader) = (take_u32(&mut fields), take_u32(&mut fields));
    if oldest_reader > VERSION {
        return Err(Problem::Version(format!(
            "its format is {version}, which needs a version that reads {oldest_reader} or newer, and this one reads {VERSION}"
        )));
    }
    let (content, checksum) = bytes.split_last_chunk::<4>().ok_or(EARLY)?;
    if crc32fast::hash(content) != u32::from_le_bytes(*checksum) {
        return Err(Problem::Damage("its checksum is wrong"));
    }
    let mut content = content.get(FIXED_BYTES..).ok_or(EARLY)?;
    let mut kept = KeptByPartition::new();
    for _ in 0..u32::from_le_bytes(take(&mut content).ok_or(EARLY)?) {
        let partition = u32::from_le_bytes(take(&mut content).ok_or(EARLY)?);
        let partition =
            u16::try_from(partition).map_err(|_| Problem::Damage("a partition has a number that none has"))?;
        let mut number = || take(&mut content).map(u64::from_le_bytes).ok_or(EARLY);
        let acknowledged = RecordPlace { incarnation: number()?, position: number()?, number: number()? };
        let length = u32::from_le_bytes(take(&mut content).ok_or(EARLY)?) as usize;
        if length > METADATA_LIMIT_BYTES {
            return Err(Problem::Damage("it has more metadata than is kept"));
        }
        let (metadata, rest) = content.split_at_checked(length).ok_or(EARLY)?;
        content = rest;
        kept.insert(PartitionId(partition), Kept { acknowledged, metadata: metadata.into() });
    }
    if content.is_empty() { Ok(kept) } else { Err(Problem::Damage("something follows its end")) }
}

fn take_u32(fields: &mut &[[u8; 4]]) -> u32 {
    let (first, rest) = fields.split_first().expect("there are as many as the layout says");
    *fields = rest;
    u32::from_le_bytes(*first)
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*first)
}

/// Keeps what the partitions of an exporter have acknowledged, in one file.
#[derive(Debug)]
pub struct Keeper {
    state: Mutex<KeeperState>,
}

#[derive(Debug)]
struct KeeperState {
    file: PositionsFile,
    /// Also of partitions that this node does not have at the moment.
    kept: KeptByPartition,
    controllers: BTreeMap<PartitionId, Controlled>,
    /// When it may be written again.
    save_at: Duration,
    pause: Option<Arc<PauseSwitch>>,
}

#[derive(Debug)]
struct Controlled {
    controller: Controller,
    /// The version of it that is in the file, and its place.
    saved: Option<(u64, RecordPlace)>,
    /// The same of the file that was saved before. From there on, records must stay: a damaged file leads back to it.
    before: Option<(u64, RecordPlace)>,
}

impl Controlled {
    /// Whether there is something that one of both files does not know.
    fn is_news(&self) -> bool {
        self.saved.map(|(version, _)| version) != Some(self.controller.version()) || self.before != self.saved
    }
}

impl Keeper {
    /// Keeps in a file what is in it already and what comes.
    pub fn new(file: PositionsFile, kept: KeptByPartition) -> Self {
        let state = KeeperState { file, kept, controllers: BTreeMap::new(), save_at: Duration::ZERO, pause: None };
        Keeper { state: Mutex::new(state) }
    }

    /// While an operator has exporting paused softly, nothing is saved: a restart goes on where the pause began.
    pub fn with_pause(self, pause: Arc<PauseSwitch>) -> Self {
        self.state.lock().pause = Some(pause);
        self
    }

    /// Whether there was something that is lost, because it is damaged.
    pub fn is_lost(&self) -> bool {
        self.state.lock().file.is_lost()
    }

    /// What is kept of a partition; none while nothing was.
    pub fn kept(&self, partition: PartitionId) -> Option<Kept> {
        self.state.lock().kept.get(&partition).cloned()
    }

    /// From now on, what a partition acknowledges is kept.
    pub fn keep(&self, partition: PartitionId, controller: Controller) {
        self.state.lock().controllers.insert(partition, Controlled { controller, saved: None, before: None });
    }

    /// When there is something of a partition to save; none while there is not.
    pub fn save_at(&self, partition: PartitionId) -> Option<Duration> {
        let state = self.state.lock();
        let controlled = state.controllers.get(&partition)?;
        (controlled.is_news() && !state.is_held()).then_some(state.save_at)
    }

    /// Saves what all partitions have acknowledged, if there is something.
    pub fn save(&self, now: Duration) {
        let mut state = self.state.lock();
        if state.is_held() {
            return;
        }
        state.save_at = now + SAVE_INTERVAL;
        let KeeperState { file, kept, controllers, .. } = &mut *state;
        if !controllers.values().any(Controlled::is_news) {
            return;
        }
        let mut next = kept.clone();
        let mut saved = Vec::new();
        for (partition, controlled) in controllers.iter() {
            let (current, version) = controlled.controller.kept();
            saved.push((*partition, (version, current.acknowledged)));
            next.insert(*partition, current);
        }
        // Harmless but for records that come twice after a restart; the next second tries again.
        if let Err(error) = file.save(&next) {
            tracing::debug!(%error, "positions were not saved");
            return;
        }
        *kept = next;
        for (partition, now_saved) in saved {
            let Some(controlled) = controllers.get_mut(&partition) else { continue };
            controlled.before = controlled.saved.replace(now_saved);
            if let Some((_, place)) = controlled.before {
                controlled.controller.note_saved(place);
            }
        }
    }
}

impl KeeperState {
    fn is_held(&self) -> bool {
        self.pause.as_ref().is_some_and(|pause| pause.get() == Pause::Soft)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(number: u64) -> RecordPlace {
        RecordPlace { incarnation: 1, position: number * 2, number }
    }

    fn kept(number: u64, metadata: &[u8]) -> Kept {
        Kept { acknowledged: place(number), metadata: metadata.into() }
    }

    /// Damages a file in all ways, one after another.
    fn damaged(intact: &[u8]) -> impl Iterator<Item = Vec<u8>> {
        let flipped = (FIXED_BYTES..intact.len()).map(|at| {
            let mut bytes = intact.to_vec();
            bytes[at] ^= 1;
            bytes
        });
        flipped.chain((0..intact.len()).map(|length| intact[..length].to_vec()))
    }

    #[test]
    fn damage_leads_back_to_what_was_saved_before_and_then_to_the_beginning() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let path = directory.path().join("exporters").join("x.positions");
        let open = || PositionsFile::open(path.clone()).expect("damage is no error");
        let (file, positions) = open();
        assert!(positions.is_empty() && !file.is_lost());
        let saved =
            |number| KeptByPartition::from([(PartitionId(1), kept(number, &[1, 2])), (PartitionId(9), kept(4, &[]))]);
        file.save(&saved(16)).expect("writable");
        file.save(&saved(17)).expect("writable");
        let (intact, older) = (std::fs::read(&path).expect("there"), std::fs::read(before(&path)).expect("there"));
        for bytes in damaged(&intact) {
            std::fs::write(&path, bytes).expect("writable");
            std::fs::write(before(&path), &older).expect("writable");
            let (file, positions) = open();
            assert!(positions == saved(16) && !file.is_lost());
            // A crash before the next save changes nothing of that.
            assert_eq!(open().1, saved(16));
        }
        std::fs::write(&path, &intact).expect("writable");
        assert_eq!(open().1, saved(17));
        // Since that start, nothing needs the records behind 16 any more.
        for bytes in damaged(&intact) {
            std::fs::write(&path, bytes).expect("writable");
            assert_eq!(open().1, saved(17));
            file.save(&saved(17)).expect("writable");
        }
        for bytes in damaged(&intact) {
            std::fs::write(&path, &bytes).expect("writable");
            std::fs::write(before(&path), &bytes).expect("writable");
            let (file, positions) = open();
            assert!(positions.is_empty() && file.is_lost());
        }
    }

    #[test]
    fn a_file_of_a_later_version_is_refused_by_name() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let path = directory.path().join("x.positions");
        let (file, _) = PositionsFile::open(path.clone()).expect("new");
        file.save(&KeptByPartition::from([(PartitionId(1), kept(17, &[]))])).expect("writable");
        let mut bytes = std::fs::read(&path).expect("there");
        (bytes[8], bytes[12]) = (3, 2);
        std::fs::write(&path, &bytes).expect("writable");
        let error = PositionsFile::open(path.clone()).expect_err("of a later version").to_string();
        assert!(error.contains(&path.display().to_string()), "{error}");
        assert!(error.contains("its format is 3, which needs a version that reads 2 or newer"), "{error}");
        // A later version that this one can read all the same.
        let content = bytes.len() - 4;
        bytes[12] = 1;
        let checksum = crc32fast::hash(&bytes[..content]).to_le_bytes();
        bytes[content..].copy_from_slice(&checksum);
        std::fs::write(&path, &bytes).expect("writable");
        assert_eq!(PositionsFile::open(path).expect("readable").1[&PartitionId(1)], kept(17, &[]));
    }

    #[test]
    fn one_file_keeps_what_all_partitions_acknowledge_and_is_written_when_something_changed() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let path = directory.path().join("x.positions");
        let (file, _) = PositionsFile::open(path.clone()).expect("new");
        file.save(&KeptByPartition::from([(PartitionId(3), kept(8, &[3]))])).expect("writable");
        let (file, found) = PositionsFile::open(path.clone()).expect("intact");
        let keeper = Keeper::new(file, found);
        let controllers = [1, 2].map(|_| Controller::new(Kept::default(), || {}));
        for (partition, controller) in [1, 2].into_iter().zip(&controllers) {
            keeper.keep(PartitionId(partition), controller.clone());
            assert_eq!(keeper.save_at(PartitionId(partition)), Some(Duration::ZERO), "that there is an exporter");
        }
        controllers[0].acknowledge(place(5));
        let (first, second, third) = (Duration::ZERO, SAVE_INTERVAL, SAVE_INTERVAL * 2);
        keeper.save(first);
        let read = || PositionsFile::read(&path).expect("intact");
        assert_eq!(read()[&PartitionId(1)], kept(5, &[]));
        assert_eq!(read()[&PartitionId(2)], Kept::default());
        assert_eq!(read()[&PartitionId(3)], kept(8, &[3]), "of a partition that is not here");
        // Damage to the file would lead back to the one before, which does not know it yet.
        assert_eq!((controllers[0].saved(), keeper.save_at(PartitionId(1))), (RecordPlace::default(), Some(second)));
        keeper.save(second);
        assert_eq!((controllers[0].saved(), keeper.save_at(PartitionId(1))), (place(5), None));
        controllers[1].acknowledge_with(place(6), vec![9]).expect("short");
        assert_eq!(keeper.save_at(PartitionId(2)), Some(third));
        // What could not be written is tried again.
        let obstacle = path.with_extension("new");
        std::fs::create_dir(&obstacle).expect("writable");
        keeper.save(third);
        assert_eq!(controllers[1].saved(), RecordPlace::default(), "a restart would not know");
        assert_eq!(keeper.save_at(PartitionId(2)), Some(SAVE_INTERVAL * 3));
        std::fs::remove_dir(&obstacle).expect("there");
        keeper.save(SAVE_INTERVAL * 3);
        keeper.save(SAVE_INTERVAL * 4);
        assert_eq!((keeper.save_at(PartitionId(2)), &read()[&PartitionId(2)]), (None, &kept(6, &[9])));
        assert_eq!(controllers[1].saved(), place(6));
    }

    #[test]
    fn in_a_soft_pause_nothing_is_saved() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let path = directory.path().join("x.positions");
        let pause = Arc::new(PauseSwitch::open(directory.path().join("pause")).expect("new"));
        let (file, found) = PositionsFile::open(path.clone()).expect("new");
        let keeper = Keeper::new(file, found).with_pause(pause.clone());
        let controller = Controller::new(Kept::default(), || {});
        keeper.keep(PartitionId(1), controller.clone());
        pause.set(Pause::Soft).expect("writable");
        controller.acknowledge(place(5));
        keeper.save(Duration::ZERO);
        assert_eq!((keeper.save_at(PartitionId(1)), path.exists()), (None, false));
        pause.set(Pause::Hard).expect("writable");
        keeper.save(Duration::ZERO);
        keeper.save(SAVE_INTERVAL);
        assert_eq!((controller.saved(), keeper.save_at(PartitionId(1))), (place(5), None));
    }
}
