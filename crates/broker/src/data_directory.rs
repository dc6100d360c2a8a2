//! The data directory: who may use it, and what is in it.

pub(crate) mod checksum;
pub(crate) mod error;
pub(crate) mod names;
pub(crate) mod paths;
pub(crate) mod private;
mod replaced;

pub use error::DataDirectoryError;
use error::failed;
pub(crate) use paths::Paths;
pub(crate) use private::PRIVATE_FILE;

use std::collections::hash_map::RandomState;
use std::fs::{DirBuilder, File, Permissions, TryLockError};
use std::hash::{BuildHasher, Hasher};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::num::NonZeroU64;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;

use engine::FeatureLevel;

use peers::DirectoryId;

use crate::cluster::{ClusterConfiguration, life};
use crate::disk::{Disk, DiskView, FULL_BYTES};
use crate::options::NodeOptions;
use checksum::{check_checksum, with_checksum};
use names::{DRAFT, EXPORTERS, FORMAT, FORMAT_FILE, LOG, PARTITIONS};
use replication::NodeId;

pub(crate) use replaced::{replace_atomically, write_atomically};

/// The oldest version whose programs may use a directory of this one.
const FORMAT_OLDEST_READER: u32 = 1;
/// The oldest version that this program can use.
const OLDEST_READABLE_FORMAT: u32 = 1;

/// Who writes, for those who cannot read it.
const WRITER: &str = concat!("osmia ", env!("CARGO_PKG_VERSION"));

/// The same while it is being made.
const CREATING: &str = "CREATING";
/// How often a node was started here.
const STARTS: &str = "STARTS";
/// The configuration of the cluster that the directory belongs to, once that is founded.
const CLUSTER: &str = "CLUSTER";

/// Where the data of users lies.
const PRIVATE: [&str; 3] = [LOG, PARTITIONS, EXPORTERS];

const PRIVATE_DIRECTORY: u32 = 0o700;

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

/// The locked data directory of a running node. Dropping it releases the lock.
#[derive(Debug)]
pub(crate) struct DataDirectory {
    pub paths: Paths,
    /// The number of this directory's replicas in their Raft groups.
    pub member: NodeId,
    /// Name of the cluster; of a member, the name that the cluster gets if this node founds it.
    pub cluster_id: String,
    /// The feature level at which the partitions began.
    pub first_level: FeatureLevel,
    /// The configuration of the cluster; none for a node alone, and before the founding.
    pub cluster: Option<ClusterConfiguration>,
    /// How often a node was started here, this start included.
    pub boot: u64,
    /// The disk that it is on.
    pub disk: Arc<Disk>,
    is_member: bool,
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
        let (boot, cluster) = (read_starts(&path).saturating_add(1), read_cluster(&path)?);
        let (paths, disk) = (Paths(path), Arc::new(measured));
        let Settings { directory, cluster: cluster_id, level: first_level, is_member, .. } = settings;
        let member = NodeId(directory.get());
        let mut opened =
            DataDirectory { paths, member, cluster_id, first_level, cluster: None, boot, disk, is_member, _lock: lock };
        if is_member {
            // Other nodes see it from now on: it keeps its number, and no two starts have the same one.
            opened.complete()?;
        }
        if let Some(cluster) = cluster {
            opened.adopt(cluster);
        }
        Ok(opened)
    }

    fn adopt(&mut self, cluster: ClusterConfiguration) {
        self.cluster_id.clone_from(&cluster.cluster_id);
        self.first_level = cluster.first_level;
        self.cluster = Some(cluster);
    }

    /// The directory belongs to this cluster from now on, or the configuration of the cluster has changed.
    pub fn store_cluster(&mut self, cluster: ClusterConfiguration) -> Result<(), DataDirectoryError> {
        store_cluster(&self.paths.0, &cluster)?;
        self.adopt(cluster);
        Ok(())
    }

    /// Tells apart what this process numbers from what every other one did under this node's number: how often the node's
    /// directory was replaced, and how often it was started.
    pub fn life(&self) -> u64 {
        let own = DirectoryId(NonZeroU64::new(self.member.0).unwrap_or(NonZeroU64::MIN));
        let members = self.cluster.iter().flat_map(|cluster| cluster.members.values());
        let replaced = members.filter(|member| member.directory == own).map(|member| member.replaced).sum::<u32>();
        life(replaced, self.boot)
    }

    /// Everything could be opened, so the start counts. A new directory counts as made from now on, with settings that do not
    /// change. To be called before anything is logged, because until then the next start makes it again.
    pub fn confirm(&self) -> Result<(), DataDirectoryError> {
        match self.is_member {
            true => Ok(()),
            false => self.complete(),
        }
    }

    fn complete(&self) -> Result<(), DataDirectoryError> {
        count_start(&self.paths.0, self.boot)?;
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

/// Stores the configuration of the cluster that the directory belongs to.
pub(crate) fn store_cluster(directory: &Path, cluster: &ClusterConfiguration) -> Result<(), DataDirectoryError> {
    write_atomically(&directory.join(CLUSTER), cluster.to_text().as_bytes())
}

/// The configuration of the cluster that the directory belongs to.
fn read_cluster(directory: &Path) -> Result<Option<ClusterConfiguration>, DataDirectoryError> {
    let path = directory.join(CLUSTER);
    match std::fs::read(&path) {
        Ok(content) => ClusterConfiguration::from_text(&content)
            .map(Some)
            .map_err(|problem| DataDirectoryError::Damaged { path, problem }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed("read", &path)(error)),
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
    if let Some(cluster) = read_cluster(directory).ok()? {
        return Some(cluster.cluster_id);
    }
    let content = std::fs::read(directory.join(FORMAT_FILE)).ok()?;
    Settings::read(directory, &content).ok().map(|settings| settings.cluster)
}

/// What is fixed when the directory is made.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    pub node: u32,
    /// The life of this directory, never used again: the number of its replicas in their Raft groups. A wiped disk has
    /// another one, so it does not vote for what it has forgotten.
    pub directory: NonZeroU64,
    pub partitions: u16,
    pub cluster: String,
    /// The feature level at which the partitions began: their logs may have to be applied from the beginning by a newer program.
    pub level: FeatureLevel,
    /// Whether the directory is of a member of a cluster, or of a node alone.
    pub is_member: bool,
}

/// How the file says whether the node is a member.
const MEMBER: [&str; 2] = ["alone", "member"];

impl Settings {
    fn new(options: &NodeOptions) -> Self {
        // The standard library's hasher is seeded by the operating system, which is all a name needs.
        let random = || RandomState::new().build_hasher().finish();
        let cluster = format!("{:016x}{:016x}", random(), random());
        let level = options.first_feature_level;
        let directory = NonZeroU64::new(random()).unwrap_or(NonZeroU64::MIN);
        let (node, partitions, is_member) = (options.node_id, options.partition_count, options.cluster.is_some());
        Settings { node, directory, partitions, cluster, level, is_member }
    }

    fn to_text(&self) -> String {
        let Settings { node, directory, partitions, cluster, level, is_member } = self;
        let place = MEMBER[usize::from(*is_member)];
        with_checksum(format!(
            "data-format {FORMAT}\noldest-reader {FORMAT_OLDEST_READER}\nwritten-by {WRITER}\ndraft {DRAFT}\nnode {node}\n\
             place {place}\ndirectory {directory:016x}\npartitions {partitions}\ncluster {cluster}\nfeature-level {level}\n"
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
        let life = value("directory").and_then(|life| u64::from_str_radix(life, 16).ok()).and_then(NonZeroU64::new);
        Ok(Settings {
            node: number("node").ok_or_else(|| without("node"))?,
            directory: life.ok_or_else(|| without("directory"))?,
            partitions: partitions.ok_or_else(|| without("partitions"))?,
            cluster: value("cluster").ok_or_else(|| without("cluster"))?.to_owned(),
            is_member: value("place")
                .and_then(|place| MEMBER.iter().position(|known| *known == place))
                .ok_or_else(|| without("place"))?
                == 1,
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
        match (self.is_member, options.cluster.is_some()) {
            (true, false) => Err(DataDirectoryError::OfMember(directory.to_owned())),
            (false, true) => Err(DataDirectoryError::OfNodeAlone(directory.to_owned())),
            _ => Ok(()),
        }
    }
}

/// Counts the start.
fn count_start(directory: &Path, starts: u64) -> Result<(), DataDirectoryError> {
    write_atomically(&directory.join(STARTS), format!("{starts}\n").as_bytes())
}

/// How often a node was started. A later start must have a higher number, so a lost or damaged file counts as the number
/// of seconds since 1970, which is more than any node was started.
fn read_starts(directory: &Path) -> u64 {
    let path = directory.join(STARTS);
    let problem = match std::fs::read(&path) {
        Ok(content) => match std::str::from_utf8(&content).ok().and_then(|text| text.trim().parse().ok()) {
            Some(starts) => return starts,
            None => "it holds no number".to_owned(),
        },
        // A directory that was made completely was started.
        Err(error) if error.kind() == io::ErrorKind::NotFound && !directory.join(FORMAT_FILE).exists() => return 0,
        Err(error) => error.to_string(),
    };
    tracing::warn!(
        "The file {} cannot be read ({problem}). It counts the starts of the node, which go on from a higher number; look \
         whether the disk is damaged.",
        path.display()
    );
    std::time::SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests;
