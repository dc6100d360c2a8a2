//! The state of a partition on its way from one replica to another.
//!
//! An incoming state grows next to the one that it will replace, in `partitions/N/received`, is checked and synced as a
//! whole, and waits there until the log builds on it. Then one rename puts it in place. So a crash at any point leaves
//! either the old state with its log, or the new one.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use engine::Engine;
use protocol::PartitionId;
use replication::{GroupId, Position, SnapshotSink, SnapshotSource, StagedSnapshot};
use state::Store;

/// The file of a state inside its directory.
const STATE_FILE: &str = "data.mdb";
/// Ends the name of the directory of a state that is not whole yet.
const COMING: &str = "coming";
/// The bytes of a state as they come in.
const STREAM_FILE: &str = "stream";

/// States that were received and are not in use yet, under the directory of all partitions of a node.
#[derive(Debug, Clone)]
pub struct ReceivedStates {
    partitions: PathBuf,
}

struct Receiving {
    partition: PartitionId,
    /// Where the state grows, and where it waits once it is whole.
    coming: PathBuf,
    whole: PathBuf,
    stream: File,
}

impl ReceivedStates {
    /// What lies under the directory that has one directory for each partition, named by its number.
    pub fn new(partitions: PathBuf) -> Self {
        ReceivedStates { partitions }
    }

    fn directory(&self, partition: PartitionId) -> PathBuf {
        self.partitions.join(partition.to_string()).join("received")
    }

    /// Whether the state of exactly this index is there.
    pub fn has(&self, partition: PartitionId, index: u64) -> bool {
        self.directory(partition).join(index.to_string()).join(STATE_FILE).exists()
    }

    /// Puts the state of exactly this index into the place of the present one, which must not be open.
    ///
    /// # Errors
    /// When it is not there, or the file system refuses.
    pub fn install(&self, partition: PartitionId, index: u64, state: &Path) -> io::Result<()> {
        let received = self.directory(partition).join(index.to_string());
        fs::create_dir_all(state)?;
        fs::rename(received.join(STATE_FILE), state.join(STATE_FILE))?;
        sync_directory(state)?;
        fs::remove_dir_all(received)?;
        // Earlier ones are obsolete; the log may build on later ones next.
        self.remove(partition, |path| index_of(path).is_some_and(|older| older < index))
    }

    /// At a start whose log builds on none of them: nobody needs what was received of a partition.
    ///
    /// # Errors
    /// When the file system refuses.
    pub fn remove_all(&self, partition: PartitionId) -> io::Result<()> {
        self.remove(partition, |_| true)
    }

    fn remove(&self, partition: PartitionId, is_meant: impl Fn(&Path) -> bool) -> io::Result<()> {
        let entries = match fs::read_dir(self.directory(partition)) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        for entry in entries {
            let path = entry?.path();
            if is_meant(&path) {
                fs::remove_dir_all(path)?;
            }
        }
        Ok(())
    }
}

/// The log index that a directory of a received state is named by, with or without its ending while it grows.
fn index_of(path: &Path) -> Option<u64> {
    path.file_stem()?.to_str()?.parse().ok()
}

impl SnapshotSink for ReceivedStates {
    fn stage(&mut self, group: GroupId, position: Position) -> io::Result<Box<dyn StagedSnapshot>> {
        let partition = partition_of(group)?;
        let whole = self.directory(partition).join(position.index.to_string());
        let coming = whole.with_extension(COMING);
        // What did not become whole never will.
        self.remove(partition, |path| path.extension().is_some_and(|extension| extension == COMING))?;
        state::create_directory(&coming)?;
        let stream = OpenOptions::new().read(true).write(true).create_new(true).open(coming.join(STREAM_FILE))?;
        Ok(Box::new(Receiving { partition, coming, whole, stream }))
    }
}

impl Write for Receiving {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

impl Drop for Receiving {
    fn drop(&mut self) {
        // Gone if it became whole. What stays is removed before the next state comes.
        let _ = fs::remove_dir_all(&self.coming);
    }
}

impl StagedSnapshot for Receiving {
    fn complete(mut self: Box<Self>) -> io::Result<()> {
        self.stream.seek(SeekFrom::Start(0))?;
        Engine::restore(self.partition, &self.coming, BufReader::new(&self.stream)).map_err(io::Error::other)?;
        fs::remove_file(self.coming.join(STREAM_FILE))?;
        if self.whole.exists() {
            // The same state came before, and the log may already build on it: it stays.
            return fs::remove_dir_all(&self.coming);
        }
        sync_directory(&self.coming)?;
        fs::rename(&self.coming, &self.whole)?;
        self.whole.parent().map_or(Ok(()), sync_directory)
    }
}

/// The newest checkpoint of a partition, to be sent to another replica.
pub struct CheckpointSource<'a> {
    /// The state of the partition.
    pub store: &'a Store,
    /// Where a copy is made, which is removed once it is sent.
    pub directory: PathBuf,
}

impl SnapshotSource for CheckpointSource<'_> {
    fn open(&self, _group: GroupId) -> io::Result<(u64, Box<dyn Read + Send>)> {
        let snapshot = self.store.snapshot().map_err(io::Error::other)?;
        Ok((snapshot.applied(), copy(&snapshot, &self.directory)?.0))
    }
}

/// Copies a checkpoint to a file in a directory, which vanishes once it was read or dropped. Returns it with its length in bytes.
pub(crate) fn copy(snapshot: &state::Snapshot, directory: &Path) -> io::Result<(Box<dyn Read + Send>, u64)> {
    let path = directory.join("sending");
    let mut copy = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(&path)?;
    // Without a name it vanishes by itself, also when the process ends.
    fs::remove_file(&path)?;
    let summary = snapshot.write_to(io::BufWriter::new(&copy)).map_err(io::Error::other)?;
    copy.seek(SeekFrom::Start(0))?;
    Ok((Box::new(BufReader::new(copy)), summary.bytes))
}

/// The partition whose group it is.
pub(crate) fn partition_of(group: GroupId) -> io::Result<PartitionId> {
    u16::try_from(group.0).map(PartitionId).map_err(|_| io::Error::other(format!("group {group} is no partition")))
}

fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}
