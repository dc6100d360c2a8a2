//! A file of lines that several partitions write to.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use protocol::{PartitionId, RecordPlace};

use super::SYNC_INTERVAL;
use super::tail::whole_length;
use crate::durable::{PRIVATE_FILE, sync_name};
use crate::{Controller, ExporterError};

/// When a file is followed by another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rotation {
    /// A file of this size is.
    pub file_bytes: u64,
    /// How many of them are kept, beside the one that is written to.
    pub files: u64,
}

/// The file, and what of it is not acknowledged.
pub(super) struct LinesFile {
    name: String,
    path: PathBuf,
    rotation: Option<Rotation>,
    target: Option<Target>,
    /// Counts how often it was opened. Who wrote to an earlier opening has lost what was not synced then.
    openings: u64,
    /// After a failed sync: the length of the file up to which it is known to be on disk.
    trusted_bytes: Option<u64>,
    /// The last record of each partition that is written and not synced.
    written: BTreeMap<PartitionId, (Controller, RecordPlace)>,
    sync_at: Option<Duration>,
    pub(super) sync_file: fn(&File) -> std::io::Result<()>,
}

struct Target {
    file: File,
    /// Length of the file up to the last complete line.
    length: u64,
    /// Length of the file up to which it is on disk.
    synced_length: u64,
}

impl LinesFile {
    pub fn new(name: &str, path: PathBuf, rotation: Option<Rotation>) -> Self {
        LinesFile {
            name: name.to_owned(),
            path,
            rotation,
            target: None,
            openings: 0,
            trusted_bytes: None,
            written: BTreeMap::new(),
            sync_at: None,
            sync_file: File::sync_data,
        }
    }

    fn error(&self, action: &str, source: std::io::Error) -> ExporterError {
        ExporterError::target(&self.name, format!("{action} {}", self.path.display()), source)
    }

    /// What would have to be cut off is not ours.
    fn foreign(&self) -> ExporterError {
        let source = "it is not a file of records, for its last line is not complete and does not begin like a record, and \
                      it is left as it is; name another path";
        ExporterError::target(&self.name, format!("write to {}", self.path.display()), source)
    }

    /// Opens it, unless another partition did, and returns the number of the opening.
    pub fn open(&mut self, partition: PartitionId) -> Result<u64, ExporterError> {
        // What the partition wrote before and did not sync comes again.
        self.written.remove(&partition);
        if self.target.is_some() {
            return Ok(self.openings);
        }
        let opened = open_private().create(true).truncate(false).open(&self.path);
        let mut file = opened.map_err(|error| self.error("open", error))?;
        let length = match self.trusted_bytes {
            Some(trusted) => trusted,
            None => {
                let whole = whole_length(&mut file).map_err(|error| self.error("read", error))?;
                whole.ok_or_else(|| self.foreign())?
            }
        };
        // What is cut off must be gone for good before anything is written there: after a power loss its bytes may else be
        // the end of a new line of which only the beginning is on disk, and nobody could tell.
        file.set_len(length).map_err(|error| self.error("truncate", error))?;
        (self.sync_file)(&file).map_err(|error| self.error("sync", error))?;
        // Also of a file that is there already: the process that made it may have ended before it synced the name.
        sync_name(&self.path).map_err(|error| self.error("sync the directory of", error))?;
        self.trusted_bytes = None;
        // What an earlier life of the node left here without a sync, it has not acknowledged.
        self.target = Some(Target { file, length, synced_length: length });
        self.openings += 1;
        Ok(self.openings)
    }

    /// Whether what was written to an opening is still there.
    pub fn check(&self, opening: u64) -> Result<(), ExporterError> {
        if self.target.is_some() && self.openings == opening {
            return Ok(());
        }
        let source = "a sync of it failed, and it was cut back to what was synced before";
        Err(ExporterError::lost(&self.name, format!("trust {}", self.path.display()), source))
    }

    /// Appends complete lines. After an error none of them counts.
    pub fn append(&mut self, lines: &[u8]) -> Result<(), ExporterError> {
        let target = self.target.as_mut().expect("it was opened");
        let Target { file, length, .. } = target;
        let mut write = || {
            // An earlier attempt may have left a part of its lines behind.
            file.set_len(*length)?;
            file.seek(SeekFrom::Start(*length))?;
            file.write_all(lines)
        };
        if let Err(error) = write() {
            return Err(self.error("write to", error));
        }
        target.length += lines.len() as u64;
        Ok(())
    }

    /// Everything of a partition up to a record is written.
    pub fn note(&mut self, partition: PartitionId, controller: &Controller, last: RecordPlace) {
        self.written.insert(partition, (controller.clone(), last));
    }

    /// When what is written of a partition is to be synced; none when it is synced.
    pub fn sync_at(&mut self, partition: PartitionId, now: Duration) -> Option<Duration> {
        self.written.contains_key(&partition).then(|| *self.sync_at.get_or_insert(now + SYNC_INTERVAL))
    }

    /// Makes durable what is written, and acknowledges it.
    pub fn sync(&mut self) -> Result<(), ExporterError> {
        self.sync_at = None;
        let Some(target) = &mut self.target else { return Ok(()) };
        if self.written.is_empty() {
            return Ok(());
        }
        if let Err(error) = (self.sync_file)(&target.file) {
            self.trusted_bytes = Some(target.synced_length);
            self.target = None;
            self.written.clear();
            return Err(ExporterError::lost(&self.name, format!("sync {}", self.path.display()), error));
        }
        target.synced_length = target.length;
        for (_, (controller, place)) in std::mem::take(&mut self.written) {
            controller.acknowledge(place);
        }
        Ok(())
    }

    /// A file that is full gets the next name, and those that are not kept any more are deleted.
    pub fn rotate_if_full(&mut self) -> Result<(), ExporterError> {
        let Some(rotation) = self.rotation else { return Ok(()) };
        if self.target.as_ref().is_none_or(|target| target.length < rotation.file_bytes) {
            return Ok(());
        }
        // It is closed, and what a file holds that nobody has open cannot be repaired.
        self.sync()?;
        self.rotate(rotation).map_err(|error| self.error("rotate", error))
    }

    fn rotate(&mut self, rotation: Rotation) -> std::io::Result<()> {
        // From the oldest: after a crash in the middle, the next time goes on with what is there.
        remove(&self.numbered(rotation.files))?;
        for number in (1..rotation.files).rev() {
            rename(&self.numbered(number), &self.numbered(number + 1))?;
        }
        // Whoever may read the full file may read the next one.
        let permissions = std::fs::metadata(&self.path)?.permissions();
        rename(&self.path, &self.numbered(1))?;
        let file = open_private().create(true).truncate(true).open(&self.path)?;
        file.set_permissions(permissions)?;
        sync_name(&self.path)?;
        self.target = Some(Target { file, length: 0, synced_length: 0 });
        Ok(())
    }

    fn numbered(&self, number: u64) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(format!(".{number}"));
        name.into()
    }
}

/// A new file is for the owner alone: what users' data is in.
fn open_private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(PRIVATE_FILE);
    options
}

fn rename(from: &Path, to: &Path) -> std::io::Result<()> {
    match std::fs::rename(from, to) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn remove(path: &Path) -> std::io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
