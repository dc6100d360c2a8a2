//! The disk of a node: real files that track what was synced, so that a crash can undo or tear the rest.

mod segments;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Read, Result, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use raft_engine::env::{FileSystem, Handle, Permission, WriteExt};

use chance::Chance;

/// What a disk writes completely or not at all.
const SECTOR_BYTES: usize = 512;

/// About the length of the headers of the log's files.
const HEADER_BYTES: u64 = 80;

/// The numbers of EIO and EMFILE.
const INPUT_OUTPUT: i32 = 5;
const TOO_MANY_FILES: i32 = 24;

/// The files of one node's log, over all its lives. What is created, renamed or deleted is so at once.
#[derive(Debug, Default)]
pub struct Disk(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// What was not synced, by file.
    unsynced: BTreeMap<PathBuf, Unsynced>,
    /// Where each file was written last, and synced. Damage there would look like a torn write.
    last_write: BTreeMap<PathBuf, std::ops::Range<u64>>,
    /// Files with damage.
    damaged: BTreeSet<PathBuf>,
    /// How many more writes and syncs work before the power fails.
    crash_after: Option<u64>,
    /// The power has failed: nothing works until the node starts again.
    crashed: bool,
    /// The machine is off: what its last process still does on its way out reaches nothing.
    is_off: bool,
    /// No write finds room.
    is_full: bool,
    /// Writes fail although there is room.
    fails_writes: bool,
    /// The process has as many files open as it may.
    fails_opens: bool,
    /// The next sync fails.
    fail_sync: bool,
    syncs: u64,
}

#[derive(Debug, Default)]
struct Unsynced {
    /// The durable content of the file.
    synced: Vec<u8>,
    /// Where it was written since.
    writes: Vec<(u64, usize)>,
}

/// What a crash does to writes that were not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tearing {
    /// They are all there.
    Keeps,
    /// They are all lost.
    Loses,
    /// Of each sector the old or the new content is there.
    Mixes,
}

impl Disk {
    /// A disk on which everything works.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// The power fails at one of the next operations.
    pub fn crash_after(&self, operations: u64) {
        self.0.lock().crash_after = Some(operations);
    }

    /// The machine stops without warning. From now on its process only seems to write: it would otherwise tidy up when it
    /// is dropped, which no process does that is killed.
    pub fn switch_off(&self) {
        self.0.lock().is_off = true;
    }

    /// Whether the power has failed in the middle of something.
    pub fn is_crashed(&self) -> bool {
        self.0.lock().crashed
    }

    /// Whether there is room for writes.
    pub fn set_full(&self, is_full: bool) {
        self.0.lock().is_full = is_full;
    }

    /// Whether writes fail.
    pub fn set_fails_writes(&self, fails: bool) {
        self.0.lock().fails_writes = fails;
    }

    /// Whether no more files can be opened.
    pub fn set_fails_opens(&self, fails: bool) {
        self.0.lock().fails_opens = fails;
    }

    /// The next sync fails, and it is unknown what it left on the disk.
    pub fn fail_next_sync(&self) {
        self.0.lock().fail_sync = true;
    }

    /// Nothing is wrong with the disk any more.
    pub fn heal(&self) {
        let mut inner = self.0.lock();
        inner.is_full = false;
        inner.fails_writes = false;
        inner.fails_opens = false;
        inner.fail_sync = false;
        inner.crash_after = None;
    }

    /// Whether a file that is there was damaged, since it was used again.
    pub fn is_damaged(&self) -> bool {
        !self.0.lock().damaged.is_empty()
    }

    /// Whether damage is the reason for this: it is said of the log, and if it is said of a file, then of one that was damaged.
    pub fn explains(&self, reason: &str) -> bool {
        let inner = self.0.lock();
        let names_file = reason.contains("The log file ");
        let is_of_log = ["log", "a panic"].iter().any(|word| reason.contains(word));
        is_of_log && inner.damaged.iter().any(|file| !names_file || reason.contains(&*file.to_string_lossy()))
    }

    /// How many syncs there were.
    pub fn syncs(&self) -> u64 {
        self.0.lock().syncs
    }

    /// The node has stopped without warning: leaves on the disk what may be there then, and lets it work again.
    ///
    /// # Errors
    /// When the real files cannot be written.
    pub fn settle(&self, tearing: Tearing, chance: &mut Chance) -> Result<()> {
        let mut inner = self.0.lock();
        inner.crashed = false;
        inner.is_off = false;
        inner.crash_after = None;
        inner.fail_sync = false;
        for (path, unsynced) in std::mem::take(&mut inner.unsynced) {
            if path.exists() && tearing != Tearing::Keeps {
                unsynced.settle(&path, tearing, chance)?;
            }
        }
        Ok(())
    }

    /// Damages a synced place of a file that was written before the last write: a flipped bit, or a sector of zeros.
    /// Returns what was done.
    ///
    /// # Errors
    /// When the real files cannot be read or written.
    pub fn damage(&self, directory: &Path, chance: &mut Chance) -> Result<Option<String>> {
        let mut inner = self.0.lock();
        let mut files = Vec::new();
        for entry in std::fs::read_dir(directory)? {
            files.push(entry?.path());
        }
        files.sort();
        files.retain(|file| inner.last_write.get(file).is_some_and(|last| last.start > 0));
        if files.is_empty() {
            return Ok(None);
        }
        let path = chance.choose(&files);
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        // A file that lost its end with the power may be shorter than where it was written to last.
        let before = inner.last_write[path].start.min(file.metadata()?.len());
        if before == 0 {
            return Ok(None);
        }
        // The first bytes matter most: without them the rest cannot be read.
        let reach = if chance.one_in(8) { before.min(HEADER_BYTES) } else { before };
        let at = chance.below(reach);
        let mut byte = [0];
        file.read_exact_at(&mut byte, at)?;
        let bit = chance.below(8);
        file.write_all_at(&[byte[0] ^ (1 << bit)], at)?;
        inner.damaged.insert(path.clone());
        Ok(Some(format!("bit {bit} of byte {at} in {} flipped", path.display())))
    }

    /// Counts an operation. Fails when the power has failed, or does with it. Nothing when the machine is off.
    fn operation(&self) -> Result<Option<parking_lot::MutexGuard<'_, Inner>>> {
        let mut inner = self.0.lock();
        if inner.is_off {
            return Ok(None);
        }
        if inner.crash_after == Some(0) {
            inner.crashed = true;
        }
        if inner.crashed {
            return Err(Error::other("the power failed"));
        }
        if let Some(operations) = &mut inner.crash_after {
            *operations -= 1;
        }
        Ok(Some(inner))
    }
}

impl Unsynced {
    /// The numbers of all sectors that were written.
    fn sectors(&self) -> Result<BTreeSet<usize>> {
        let mut sectors = BTreeSet::new();
        for (offset, length) in self.writes.iter().filter(|(_, length)| *length > 0) {
            let offset = usize::try_from(*offset).map_err(Error::other)?;
            sectors.extend(offset / SECTOR_BYTES..=(offset + length - 1) / SECTOR_BYTES);
        }
        Ok(sectors)
    }

    fn settle(&self, path: &Path, tearing: Tearing, chance: &mut Chance) -> Result<()> {
        let mut content = self.synced.clone();
        if tearing == Tearing::Mixes {
            let written = std::fs::read(path)?;
            for sector in self.sectors()? {
                let start = sector * SECTOR_BYTES;
                let end = (start + SECTOR_BYTES).min(written.len());
                if chance.one_in(2) && start < end {
                    if content.len() < end {
                        content.resize(end, 0);
                    }
                    content[start..end].copy_from_slice(&written[start..end]);
                }
            }
        }
        std::fs::write(path, content)
    }
}

/// The file system of a node's log on its disk.
#[derive(Debug, Clone)]
pub struct SimulatedFiles(pub Arc<Disk>);

/// An open file.
#[derive(Debug)]
pub struct SimulatedFile {
    disk: Arc<Disk>,
    path: PathBuf,
    file: File,
}

/// A place in an open file.
#[derive(Debug)]
pub struct Cursor {
    file: Arc<SimulatedFile>,
    offset: u64,
}

impl SimulatedFiles {
    fn handle(&self, path: &Path, options: &OpenOptions) -> Result<SimulatedFile> {
        if self.0.operation()?.is_some_and(|inner| inner.fails_opens) {
            return Err(Error::from_raw_os_error(TOO_MANY_FILES));
        }
        Ok(SimulatedFile { disk: self.0.clone(), path: path.to_path_buf(), file: options.open(path)? })
    }
}

impl FileSystem for SimulatedFiles {
    type Handle = SimulatedFile;
    type Reader = Cursor;
    type Writer = Cursor;

    fn create<P: AsRef<Path>>(&self, path: P) -> Result<SimulatedFile> {
        self.handle(path.as_ref(), OpenOptions::new().read(true).write(true).create(true).truncate(false))
    }

    fn open<P: AsRef<Path>>(&self, path: P, permission: Permission) -> Result<SimulatedFile> {
        self.handle(path.as_ref(), OpenOptions::new().read(true).write(permission == Permission::ReadWrite))
    }

    fn delete<P: AsRef<Path>>(&self, path: P) -> Result<()> {
        let Some(mut inner) = self.0.operation()? else { return Ok(()) };
        inner.unsynced.remove(path.as_ref());
        inner.damaged.remove(path.as_ref());
        inner.last_write.remove(path.as_ref());
        std::fs::remove_file(path)
    }

    fn rename<P: AsRef<Path>>(&self, source: P, target: P) -> Result<()> {
        let Some(mut inner) = self.0.operation()? else { return Ok(()) };
        if let Some(unsynced) = inner.unsynced.remove(source.as_ref()) {
            inner.unsynced.insert(target.as_ref().to_path_buf(), unsynced);
        }
        // What was written before the file was used again means nothing any more.
        inner.damaged.remove(source.as_ref());
        inner.last_write.remove(source.as_ref());
        inner.last_write.remove(target.as_ref());
        std::fs::rename(source, target)
    }

    fn new_reader(&self, handle: Arc<SimulatedFile>) -> Result<Cursor> {
        Ok(Cursor { file: handle, offset: 0 })
    }

    fn new_writer(&self, handle: Arc<SimulatedFile>) -> Result<Cursor> {
        Ok(Cursor { file: handle, offset: 0 })
    }
}

/// Whether this was said of an operation that may work later.
pub fn passes(reason: &str) -> bool {
    let words = ["nospace", "while it synced", "Input/output error", "Too many open files"];
    words.iter().any(|words| reason.contains(words))
}

/// The error of a write that finds no room, in the words by which `raft-engine` recognizes it.
fn full_disk() -> Error {
    Error::new(ErrorKind::StorageFull, "nospace")
}

impl SimulatedFile {
    /// Remembers the file as it is, before the first write that is not synced.
    fn remember<'a>(&self, inner: &'a mut Inner) -> Result<&'a mut Unsynced> {
        if !inner.unsynced.contains_key(&self.path) {
            let mut synced = vec![0; usize::try_from(self.file.metadata()?.len()).map_err(Error::other)?];
            self.file.read_exact_at(&mut synced, 0)?;
            inner.unsynced.insert(self.path.clone(), Unsynced { synced, writes: Vec::new() });
        }
        inner.unsynced.get_mut(&self.path).ok_or_else(|| Error::other("just inserted"))
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<usize> {
        let Some(mut inner) = self.disk.operation()? else { return Ok(bytes.len()) };
        tracing::trace!(target: "disk", path = %self.path.display(), offset, length = bytes.len(), "writes");
        if inner.is_full {
            return Err(full_disk());
        }
        if inner.fails_writes {
            return Err(Error::from_raw_os_error(INPUT_OUTPUT));
        }
        self.remember(&mut inner)?.writes.push((offset, bytes.len()));
        self.file.write_all_at(bytes, offset)?;
        Ok(bytes.len())
    }

    fn set_length(&self, length: u64) -> Result<()> {
        let Some(mut inner) = self.disk.operation()? else { return Ok(()) };
        let before = self.file.metadata()?.len();
        tracing::trace!(target: "disk", path = %self.path.display(), before, length, "sets the length");
        if length > before && inner.is_full {
            return Err(full_disk());
        }
        if inner.fails_writes {
            return Err(Error::from_raw_os_error(INPUT_OUTPUT));
        }
        self.remember(&mut inner)?;
        self.file.set_len(length)
    }
}

impl Handle for SimulatedFile {
    fn truncate(&self, offset: usize) -> Result<()> {
        self.set_length(offset as u64)
    }

    fn file_size(&self) -> Result<usize> {
        usize::try_from(self.file.metadata()?.len()).map_err(Error::other)
    }

    fn sync(&self) -> Result<()> {
        let Some(mut inner) = self.disk.operation()? else { return Ok(()) };
        if std::mem::take(&mut inner.fail_sync) {
            return Err(Error::other("the disk failed while it synced"));
        }
        inner.syncs += 1;
        tracing::trace!(target: "disk", path = %self.path.display(), "syncs");
        if let Some(unsynced) = inner.unsynced.remove(&self.path) {
            let start = unsynced.writes.iter().map(|(offset, _)| *offset).min();
            let end = unsynced.writes.iter().map(|(offset, length)| offset + *length as u64).max();
            if let (Some(start), Some(end)) = (start, end) {
                inner.last_write.insert(self.path.clone(), start..end);
            }
        }
        Ok(())
    }
}

impl Read for Cursor {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        if self.file.disk.0.lock().crashed {
            return Err(Error::other("the power failed"));
        }
        let read = self.file.file.read_at(buffer, self.offset)?;
        self.offset += read as u64;
        Ok(read)
    }
}

impl Write for Cursor {
    fn write(&mut self, buffer: &[u8]) -> Result<usize> {
        let written = self.file.write(self.offset, buffer)?;
        self.offset += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

impl Seek for Cursor {
    fn seek(&mut self, position: SeekFrom) -> Result<u64> {
        let moved = |from: u64, by: i64| from.checked_add_signed(by).ok_or_else(|| Error::other("before the start"));
        self.offset = match position {
            SeekFrom::Start(offset) => offset,
            SeekFrom::Current(by) => moved(self.offset, by)?,
            SeekFrom::End(by) => moved(self.file.file.metadata()?.len(), by)?,
        };
        Ok(self.offset)
    }
}

impl WriteExt for Cursor {
    fn truncate(&mut self, offset: usize) -> Result<()> {
        self.file.set_length(offset as u64)?;
        self.offset = offset as u64;
        Ok(())
    }

    fn allocate(&mut self, offset: usize, size: usize) -> Result<()> {
        let end = (offset + size) as u64;
        if self.file.file.metadata()?.len() < end {
            self.file.set_length(end)?;
        }
        Ok(())
    }
}
