//! The data directory: who may use it, and what is in it.

mod replaced;

use std::collections::hash_map::RandomState;
use std::fs::{DirBuilder, File, Permissions, TryLockError};
use std::hash::{BuildHasher, Hasher};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::{FeatureLevel, UnknownFeatureLevel};
use protocol::PartitionId;

use crate::applying;
use crate::disk::{Disk, DiskView, FULL_BYTES};
use crate::options::NodeOptions;

pub(crate) use replaced::{replace_atomically, write_atomically};

/// Version of the layout of the data directory.
pub(crate) const FORMAT: u32 = 1;
/// The oldest version whose programs may use a directory of this one.
const FORMAT_OLDEST_READER: u32 = 1;
/// The oldest version that this program can use.
const OLDEST_READABLE_FORMAT: u32 = 1;
/// Until the first release, format 1 is a draft: who changes the shape of anything in the directory raises this number, and
/// directories of another draft are refused. The release takes the line away.
const DRAFT: u32 = 1;
/// Who writes, for those who cannot read it.
const WRITER: &str = concat!("osmia ", env!("CARGO_PKG_VERSION"));

/// What the directory is: there when it was made completely.
const FORMAT_FILE: &str = "FORMAT";
/// The same while it is being made.
const CREATING: &str = "CREATING";
/// The last line of it.
const CHECKSUM: &str = "checksum";
/// How often a node was started here.
const STARTS: &str = "STARTS";
const LOG: &str = "log";
const PARTITIONS: &str = "partitions";
const EXPORTERS: &str = "exporters";
/// Where the data of users lies.
const PRIVATE: [&str; 3] = [LOG, PARTITIONS, EXPORTERS];
/// Permissions of a file and a directory that only the owner may read.
pub(crate) const PRIVATE_FILE: u32 = 0o600;
const PRIVATE_DIRECTORY: u32 = 0o700;

/// The data directory cannot be used.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the message says what each field is")]
pub enum DataDirectoryError {
    /// Another process uses it.
    #[error(
        "The data directory {} is in use by {holder}. Stop that process or choose another data directory.",
        directory.display()
    )]
    InUse {
        directory: PathBuf,
        /// Who uses it, for example "process 4711".
        holder: String,
    },
    /// It was written by another version.
    #[error(
        "The data directory {} has {found}, and this version understands format {FORMAT}. Start the version that wrote \
         it or choose another data directory.", directory.display()
    )]
    UnknownFormat {
        directory: PathBuf,
        /// What is there instead.
        found: String,
    },
    /// It is of another draft of the format, which builds before the first release have.
    #[error(
        "The data directory {} has {found}, and this development build reads draft {DRAFT} of format {FORMAT} alone. Nothing \
         brings it over. Choose an empty directory as data directory.", directory.display()
    )]
    OtherDraft {
        directory: PathBuf,
        /// What is there instead.
        found: String,
    },
    /// What is fixed in it cannot be read.
    #[error(
        "The file {} is damaged: {problem}. It says for which node and with how many partitions the data directory was made, so \
         the node does not start by guesses. Put the file back from a copy of this data directory (it never changes), or restore \
         a backup of the whole directory.", path.display()
    )]
    Damaged {
        path: PathBuf,
        /// What does not fit.
        problem: String,
    },
    /// Its partitions began at a level that this program does not know.
    #[error(
        "The partitions of the data directory {} began at a feature level that this version does not have. {level}",
        directory.display()
    )]
    UnknownLevel { directory: PathBuf, level: UnknownFeatureLevel },
    /// It has more partitions than it was made with.
    #[error(
        "The data directory {} was made with {count} partitions, as its file '{FORMAT_FILE}' says, but it has a directory \
         '{PARTITIONS}/{found}'. Put back the file of this data directory from a copy, or move the directory away if it is of \
         another one.", directory.display()
    )]
    PartitionTooMany {
        directory: PathBuf,
        /// Number of the partition that should not be there.
        found: u64,
        /// How many there should be.
        count: u16,
    },
    /// Something that was there is missing.
    #[error(
        "The data directory {} has lost its directory '{name}'. Put it back, restore a backup or choose another data \
         directory.", directory.display()
    )]
    Missing { directory: PathBuf, name: &'static str },
    /// It was made with other fixed settings.
    #[error(
        "The data directory {} was made with {setting} {found}, and it cannot be changed to {wanted}. Start with \
         {setting} {found} or choose another data directory.", directory.display()
    )]
    Changed {
        directory: PathBuf,
        setting: &'static str,
        /// Its value in the directory.
        found: u32,
        /// Its value in the options.
        wanted: u32,
    },
    /// There is not enough room for a start.
    #[error(
        "The disk of the data directory {} has {free_bytes} bytes free, and a start needs at least {FULL_BYTES}. Make room \
         on it: everything that was acknowledged is still there.", directory.display()
    )]
    Full { directory: PathBuf, free_bytes: u64 },
    /// More is to be kept free than there is.
    #[error(
        "The volume of the data directory {} has {total_bytes} bytes, and {low_bytes} bytes of it are to stay free. Lower \
         disk-free-space-low or choose a larger volume.", directory.display()
    )]
    VolumeTooSmall {
        directory: PathBuf,
        /// Size of the volume.
        total_bytes: u64,
        /// Free bytes below which no new work is taken.
        low_bytes: u64,
    },
    /// The note that it was put back from a copy cannot be read.
    #[error("The note {} is damaged: {problem}. Write it again with 'osmia doctor --restored'.", path.display())]
    Restored {
        path: PathBuf,
        /// What does not fit.
        problem: String,
    },
    /// The note that it was put back from a copy is of another version.
    #[error("The note {} cannot be read: {problem}. Start the version that wrote it.", path.display())]
    RestoredByOther {
        path: PathBuf,
        /// What does not fit.
        problem: String,
    },
    /// A later version wrote what an exporter has acknowledged.
    #[error(
        "The exporter positions {} cannot be read: {problem}. Start the version that wrote them, or move the file away (the \
         exporter then gets again all records that are still there).", path.display()
    )]
    Positions {
        path: PathBuf,
        /// What does not fit.
        problem: String,
    },
    /// The operating system refused.
    #[error("Could not {action} {}: {source}", path.display())]
    Io {
        action: &'static str,
        path: PathBuf,
        /// The operating system's words.
        source: io::Error,
    },
}

fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> DataDirectoryError {
    let path = path.to_owned();
    move |source| DataDirectoryError::Io { action, path, source }
}

/// A locked data directory without a running node. Dropping it releases the lock.
#[derive(Debug)]
pub(crate) struct OfflineDirectory {
    pub paths: Paths,
    pub settings: Settings,
    /// How often a node was started on this directory.
    pub starts: u64,
    _lock: File,
}

impl OfflineDirectory {
    /// Locks the directory; nothing else is changed.
    pub fn open(path: &Path) -> Result<Self, DataDirectoryError> {
        let unknown = |found| DataDirectoryError::UnknownFormat { directory: path.to_owned(), found };
        let format = path.join(FORMAT_FILE);
        // Before taking the lock, which creates a file: a directory of something else is not changed.
        let content = match std::fs::read(&format) {
            Ok(content) => content,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(unknown("no file 'FORMAT'".to_owned()));
            }
            Err(error) => return Err(failed("read", &format)(error)),
        };
        let mut lock = lock(path)?;
        note_process(&mut lock).map_err(failed("write", &path.join("LOCK")))?;
        let settings = Settings::read(path, &content)?;
        let starts = read_starts(path);
        Ok(OfflineDirectory { paths: Paths(path.to_owned()), settings, starts, _lock: lock })
    }
}

/// Where things are in a data directory.
#[derive(Debug, Clone)]
pub(crate) struct Paths(PathBuf);

/// The locked data directory of a running node. Dropping it releases the lock.
#[derive(Debug)]
pub(crate) struct DataDirectory {
    pub paths: Paths,
    /// Name of the cluster.
    pub cluster_id: String,
    /// The feature level at which the partitions began.
    pub first_level: FeatureLevel,
    /// The disk that it is on.
    pub disk: Arc<Disk>,
    _lock: File,
}

impl DataDirectory {
    /// Locks the directory, makes it if it does not exist, and checks that it fits the options.
    pub fn open(options: &NodeOptions) -> Result<Self, DataDirectoryError> {
        let path = options.data_directory.clone();
        create_private(&path)?;
        let mut lock = lock(&path)?;
        let measured = Disk::measure(&path, options.disk).map_err(failed("measure the disk of", &path))?;
        make_room(&measured)?;
        note_process(&mut lock).map_err(failed("write", &path.join("LOCK")))?;
        let settings = settings(&path, options)?;
        settings.check(&path, options)?;
        keep_private(&path)?;
        let (paths, disk) = (Paths(path), Arc::new(measured));
        let Settings { cluster: cluster_id, level: first_level, .. } = settings;
        Ok(DataDirectory { paths, cluster_id, first_level, disk, _lock: lock })
    }

    /// Everything could be opened, so the start counts. A new directory counts as made from now on, with settings that do not
    /// change. To be called before anything is logged, because until then the next start makes it again.
    pub fn confirm(&self) -> Result<(), DataDirectoryError> {
        count_start(&self.paths.0)?;
        let (creating, format) = (self.paths.0.join(CREATING), self.paths.0.join(FORMAT_FILE));
        if format.exists() {
            return Ok(());
        }
        // The directory's own name must survive a power loss too. Whoever may not look into the one above cannot see to that.
        let above = self.paths.0.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if let Ok(opened) = File::open(above) {
            opened.sync_all().map_err(failed("sync", above))?;
        }
        let renamed = std::fs::rename(&creating, &format).and_then(|()| File::open(&self.paths.0)?.sync_all());
        renamed.map_err(failed("write", &format))
    }
}

impl Paths {
    /// The directory itself.
    pub fn directory(&self) -> &Path {
        &self.0
    }

    /// The shared log of all partitions.
    pub fn log(&self) -> PathBuf {
        self.0.join(LOG)
    }

    /// The state of a partition.
    pub fn state(&self, partition: PartitionId) -> PathBuf {
        self.partition(partition).join("state")
    }

    /// The record stream of a partition.
    pub fn records(&self, partition: PartitionId) -> PathBuf {
        self.partition(partition).join("records")
    }

    /// The note of what a partition applies.
    pub fn applying(&self, partition: PartitionId) -> PathBuf {
        self.partition(partition).join(applying::FILE_NAME)
    }

    /// The commands of a partition that an operator had refused.
    pub fn refused(&self, partition: PartitionId) -> PathBuf {
        self.partition(partition).join("refused")
    }

    /// Where an exporter's positions are kept.
    pub fn exporter_positions(&self, name: &str) -> PathBuf {
        self.exporters().join(format!("{name}.positions"))
    }

    /// Whether exporting is paused.
    pub fn exporting_pause(&self) -> PathBuf {
        self.exporters().join("pause")
    }

    fn partition(&self, partition: PartitionId) -> PathBuf {
        self.0.join(PARTITIONS).join(partition.to_string())
    }

    /// What exporters keep.
    pub fn exporters(&self) -> PathBuf {
        Self::exporters_in(&self.0)
    }

    /// The same of a data directory that may not be there yet.
    pub fn exporters_in(directory: &Path) -> PathBuf {
        directory.join(EXPORTERS)
    }
}

/// What is fixed in this directory. In a new one that is noted, but not final before everything in it could be opened.
fn settings(directory: &Path, options: &NodeOptions) -> Result<Settings, DataDirectoryError> {
    if let Some(settings) = existing(directory)? {
        return Ok(settings);
    }
    discard_unfinished(directory)?;
    refuse_foreign_data(directory)?;
    let settings = Settings::new(options);
    write_atomically(&directory.join(CREATING), settings.to_text().as_bytes())?;
    Ok(settings)
}

/// What is fixed in a directory that was made completely; none when it was not. Nothing is changed.
fn existing(directory: &Path) -> Result<Option<Settings>, DataDirectoryError> {
    let format = directory.join(FORMAT_FILE);
    let content = match std::fs::read(&format) {
        Ok(content) => content,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed("read", &format)(error)),
    };
    let settings = Settings::read(directory, &content)?;
    refuse_more_partitions(directory, settings.partitions)?;
    // A new log would lack everything that was logged since the last checkpoint.
    match directory.join(LOG).exists() {
        true => Ok(Some(settings)),
        false => Err(DataDirectoryError::Missing { directory: directory.to_owned(), name: LOG }),
    }
}

/// Removes what a first start made that did not come to its end: nothing was logged yet.
fn discard_unfinished(directory: &Path) -> Result<(), DataDirectoryError> {
    if !directory.join(CREATING).exists() {
        return Ok(());
    }
    for name in PRIVATE {
        let path = directory.join(name);
        match std::fs::remove_dir_all(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed("remove", &path)(error)),
            _ => {}
        }
    }
    Ok(())
}

/// Makes the directories of all data, which only the user of the node may look into, whatever is in them. Those that are there
/// already are closed to others.
fn keep_private(directory: &Path) -> Result<(), DataDirectoryError> {
    for name in PRIVATE {
        let path = directory.join(name);
        create_private(&path)?;
        let closed = std::fs::set_permissions(&path, Permissions::from_mode(PRIVATE_DIRECTORY));
        closed.map_err(failed("close to other users", &path))?;
    }
    File::open(directory).and_then(|opened| opened.sync_all()).map_err(failed("sync", directory))
}

fn create_private(directory: &Path) -> Result<(), DataDirectoryError> {
    let created = DirBuilder::new().recursive(true).mode(PRIVATE_DIRECTORY).create(directory);
    created.map_err(failed("create", directory))
}

fn lock(directory: &Path) -> Result<File, DataDirectoryError> {
    let path = directory.join("LOCK");
    let opened = File::options().read(true).write(true).create(true).truncate(false).mode(PRIVATE_FILE).open(&path);
    let mut file = opened.map_err(failed("open", &path))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut holder = String::new();
            drop(file.read_to_string(&mut holder));
            let holder = match holder.trim().parse::<u32>() {
                Ok(process) => format!("process {process}"),
                Err(_) => "another process".to_owned(),
            };
            return Err(DataDirectoryError::InUse { directory: directory.to_owned(), holder });
        }
        Err(TryLockError::Error(error)) => return Err(failed("lock", &path)(error)),
    }
    Ok(file)
}

/// Notes in the lock whose it is.
fn note_process(lock: &mut File) -> io::Result<()> {
    lock.set_len(0)?;
    lock.seek(SeekFrom::Start(0))?;
    writeln!(lock, "{}", std::process::id())
}

/// A start writes a little. On a full disk it takes the room for it from the reserve.
fn make_room(disk: &Disk) -> Result<(), DataDirectoryError> {
    let DiskView { directory, total_bytes, low_bytes, .. } = disk.view();
    if low_bytes >= total_bytes {
        return Err(DataDirectoryError::VolumeTooSmall { directory, total_bytes, low_bytes });
    }
    match disk.relieve() {
        Ok(free_bytes) if free_bytes < FULL_BYTES => Err(DataDirectoryError::Full { directory, free_bytes }),
        Ok(_) => Ok(()),
        Err(error) => Err(failed("make room in", &directory)(error)),
    }
}

/// A directory with data but without `FORMAT` is not ours, or it lost the file: nothing is made on top of it.
fn refuse_foreign_data(directory: &Path) -> Result<(), DataDirectoryError> {
    for name in [LOG, PARTITIONS] {
        if directory.join(name).exists() {
            let found = format!("a directory '{name}' but no file 'FORMAT'");
            return Err(DataDirectoryError::UnknownFormat { directory: directory.to_owned(), found });
        }
    }
    Ok(())
}

/// A partition that the node does not open would be lost without a word.
fn refuse_more_partitions(directory: &Path, count: u16) -> Result<(), DataDirectoryError> {
    let place = directory.join(PARTITIONS);
    let entries = match std::fs::read_dir(&place) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed("read", &place)(error)),
    };
    for entry in entries {
        let name = entry.map_err(failed("read", &place))?.file_name();
        match name.to_str().and_then(|name| name.parse::<u64>().ok()) {
            Some(found) if found > u64::from(count) => {
                return Err(DataDirectoryError::PartitionTooMany { directory: directory.to_owned(), found, count });
            }
            _ => {}
        }
    }
    Ok(())
}

/// Whether a node with these options could use its data directory. Nothing is made, changed or locked, so it may be asked while a
/// node runs, and of a directory that is not there yet.
///
/// # Errors
/// When what is there does not fit the options, or cannot be read.
pub fn check_data_directory(options: &NodeOptions) -> Result<(), DataDirectoryError> {
    let directory = &options.data_directory;
    match existing(directory)? {
        Some(settings) => settings.check(directory, options),
        // A start discards what an earlier one did not complete.
        None if directory.join(CREATING).exists() => Ok(()),
        None => refuse_foreign_data(directory),
    }
}

/// How many partitions a data directory was made with; `None` when there is none yet, or none that can be read (opening it
/// then says why).
pub fn stored_partition_count(directory: &Path) -> Option<u16> {
    let content = std::fs::read(directory.join(FORMAT_FILE)).ok()?;
    Settings::read(directory, &content).ok().map(|settings| settings.partitions)
}

/// The name of the cluster that an existing data directory is of.
pub fn stored_cluster_id(directory: &Path) -> Option<String> {
    let content = std::fs::read(directory.join(FORMAT_FILE)).ok()?;
    Settings::read(directory, &content).ok().map(|settings| settings.cluster)
}

/// What is fixed when the directory is made.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    pub node: u32,
    pub partitions: u16,
    pub cluster: String,
    /// The feature level at which the partitions began: their logs may have to be applied from the beginning by a newer program.
    pub level: FeatureLevel,
}

impl Settings {
    fn new(options: &NodeOptions) -> Self {
        // The standard library's hasher is seeded by the operating system, which is all a name needs.
        let random = || RandomState::new().build_hasher().finish();
        let cluster = format!("{:016x}{:016x}", random(), random());
        let level = options.first_feature_level;
        Settings { node: options.node_id, partitions: options.partition_count, cluster, level }
    }

    fn to_text(&self) -> String {
        let Settings { node, partitions, cluster, level } = self;
        with_checksum(format!(
            "data-format {FORMAT}\noldest-reader {FORMAT_OLDEST_READER}\nwritten-by {WRITER}\ndraft {DRAFT}\nnode {node}\n\
             partitions {partitions}\ncluster {cluster}\nfeature-level {level}\n"
        ))
    }

    /// Who may read it comes first: another version may have another checksum.
    fn read(directory: &Path, content: &[u8]) -> Result<Settings, DataDirectoryError> {
        let text = String::from_utf8_lossy(content);
        let value = |name: &str| {
            let mut words = text.lines().map(|line| line.split_once(' ').unwrap_or((line, "")));
            words.find(|(word, _)| *word == name).map(|(_, value)| value)
        };
        let number = |name: &str| value(name).and_then(|number| number.parse::<u32>().ok());
        let damaged = |problem: String| DataDirectoryError::Damaged { path: directory.join(FORMAT_FILE), problem };
        let without = |name: &str| damaged(format!("it has no valid line '{name}'"));
        let other_draft = |found| DataDirectoryError::OtherDraft { directory: directory.to_owned(), found };
        let Some(format) = number("data-format") else {
            // As builds named it before format 1 was declared.
            return Err(number("format").map_or_else(
                || without("data-format"),
                |_| other_draft("a line 'format' and none 'data-format'".to_owned()),
            ));
        };
        let oldest_reader = number("oldest-reader").unwrap_or(format);
        if oldest_reader > FORMAT || format < OLDEST_READABLE_FORMAT {
            let writer = value("written-by").map_or_else(String::new, |writer| format!(" of {writer}"));
            let (directory, found) = (directory.to_owned(), format!("format {format}{writer}"));
            return Err(DataDirectoryError::UnknownFormat { directory, found });
        }
        check_checksum(content).map_err(|problem| damaged(problem.to_owned()))?;
        if number("draft") != Some(DRAFT) {
            let found = number("draft").map_or_else(|| "no draft".to_owned(), |draft| format!("draft {draft}"));
            return Err(other_draft(found));
        }
        let level = number("feature-level").ok_or_else(|| without("feature-level"))?;
        let partitions = value("partitions").and_then(|count| count.parse().ok());
        Ok(Settings {
            node: number("node").ok_or_else(|| without("node"))?,
            partitions: partitions.ok_or_else(|| without("partitions"))?,
            cluster: value("cluster").ok_or_else(|| without("cluster"))?.to_owned(),
            level: FeatureLevel::new(level)
                .map_err(|level| DataDirectoryError::UnknownLevel { directory: directory.to_owned(), level })?,
        })
    }

    fn check(&self, directory: &Path, options: &NodeOptions) -> Result<(), DataDirectoryError> {
        let fixed = [
            ("node number", self.node, options.node_id),
            ("partition count", u32::from(self.partitions), u32::from(options.partition_count)),
        ];
        for (setting, found, wanted) in fixed {
            if found != wanted {
                return Err(DataDirectoryError::Changed { directory: directory.to_owned(), setting, found, wanted });
            }
        }
        Ok(())
    }
}

/// Adds the last line, which is over all lines before it.
pub(crate) fn with_checksum(mut lines: String) -> String {
    let checksum = crc32fast::hash(lines.as_bytes());
    lines.push_str(&format!("{CHECKSUM} {checksum:08x}\n"));
    lines
}

pub(crate) fn check_checksum(content: &[u8]) -> Result<(), &'static str> {
    let whole = content.strip_suffix(b"\n").ok_or("its last line does not end")?;
    let last = whole.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let (lines, last) = whole.split_at(last);
    if !last.starts_with(CHECKSUM.as_bytes()) {
        return Err("its last line is no checksum");
    }
    match last == format!("{CHECKSUM} {:08x}", crc32fast::hash(lines)).as_bytes() {
        true => Ok(()),
        false => Err("its checksum does not fit the lines before it"),
    }
}

/// Counts the start, for operators.
fn count_start(directory: &Path) -> Result<(), DataDirectoryError> {
    let starts = read_starts(directory).saturating_add(1);
    write_atomically(&directory.join(STARTS), format!("{starts}\n").as_bytes())
}

/// Nothing depends on the number, so damage to it keeps nobody from a start.
fn read_starts(directory: &Path) -> u64 {
    let path = directory.join(STARTS);
    let problem = match std::fs::read(&path) {
        Ok(content) => match std::str::from_utf8(&content).ok().and_then(|text| text.trim().parse().ok()) {
            Some(starts) => return starts,
            None => "it holds no number".to_owned(),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => return 0,
        Err(error) => error.to_string(),
    };
    tracing::warn!(
        "The file {} cannot be read ({problem}). It only counts the starts of the node, which begins anew; look whether the \
         disk is damaged.",
        path.display()
    );
    0
}

#[cfg(test)]
mod tests;
