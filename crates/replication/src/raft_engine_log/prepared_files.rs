//! Log files that have their blocks before they are used.
//!
//! A sync of a file that has grown, or whose blocks were allocated and never written, must also bring the file system's own
//! records to the disk, and these wait for the new content of every other file: behind a few megabytes of records the log
//! waits for tens of milliseconds. A sync of a file whose blocks were written before waits for nothing but its own content.
//!
//! So while the second half of a log file is written, a thread fills the next one with zeros, in pieces that are synced one
//! by one. The engine takes it when it begins its next file, knows where its content ends, and cuts off what is left of the
//! zeros when it goes on to the file after that.

use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;
use raft_engine::env::{DefaultFileSystem, FileSystem, Permission, WriteExt};

/// How much is written and synced at a time.
const PIECE_BYTES: usize = 512 << 10;
/// Pause between two pieces, which leaves the disk to others.
const PIECE_PAUSE: Duration = Duration::from_millis(5);
/// Files of this kind are written to all the time; others only while space is reclaimed.
const EXTENSION: &str = "raftlog";

/// The files of a log, the next of which is prepared.
pub struct PreparedFiles(Arc<NextFile>);

/// The file that will be used next.
struct NextFile {
    path: PathBuf,
    file_bytes: u64,
    state: Mutex<State>,
    stopping: AtomicBool,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// There is none.
    Missing,
    /// The thread is filling it.
    UnderWay,
    /// It has all its blocks.
    Ready,
}

impl PreparedFiles {
    /// `path` is where the next file is prepared, on the same file system as the log's files. A file that is there is
    /// removed: a crash may have left it behind half filled.
    pub fn new(path: PathBuf, file_bytes: u64) -> io::Result<Self> {
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let (state, stopping) = (Mutex::new(State::Missing), AtomicBool::new(false));
        Ok(Self(Arc::new(NextFile { path, file_bytes, state, stopping, thread: Mutex::new(None) })))
    }
}

impl Drop for PreparedFiles {
    fn drop(&mut self) {
        self.0.stopping.store(true, Ordering::Relaxed);
        if let Some(thread) = self.0.thread.lock().take()
            && thread.join().is_err()
        {
            tracing::warn!("the thread that prepares log files ended with a panic");
        }
        // If it cannot be removed, the next start does it.
        let _ = fs::remove_file(&self.0.path);
    }
}

impl NextFile {
    /// Begins to fill the file, unless that is done or under way.
    fn prepare(self: &Arc<Self>) {
        let mut state = self.state.lock();
        if *state != State::Missing || self.stopping.load(Ordering::Relaxed) {
            return;
        }
        let next = self.clone();
        // Without the thread the engine makes its files itself, only slower.
        if let Ok(thread) = std::thread::Builder::new().name("log files".to_owned()).spawn(move || next.fill()) {
            *state = State::UnderWay;
            *self.thread.lock() = Some(thread);
        }
    }

    fn fill(&self) {
        let filled = self.write_zeros();
        let ready = matches!(filled, Ok(true));
        if let Err(error) = &filled {
            tracing::debug!(file = %self.path.display(), %error, "the next log file could not be prepared");
        }
        if !ready {
            // Its room is better used by others.
            let _ = fs::remove_file(&self.path);
        }
        *self.state.lock() = if ready { State::Ready } else { State::Missing };
    }

    /// `false` if it was stopped before the end.
    fn write_zeros(&self) -> io::Result<bool> {
        let file = File::create(&self.path)?;
        let zeros = vec![0; PIECE_BYTES];
        let mut offset = 0;
        while offset < self.file_bytes {
            if self.stopping.load(Ordering::Relaxed) {
                return Ok(false);
            }
            let left = usize::try_from(self.file_bytes - offset).unwrap_or(usize::MAX);
            let piece = &zeros[..left.min(PIECE_BYTES)];
            file.write_all_at(piece, offset)?;
            file.sync_data()?;
            offset += piece.len() as u64;
            std::thread::sleep(PIECE_PAUSE);
        }
        Ok(true)
    }

    /// Moves the prepared file to its place in the log. `false` if there is none.
    fn take(&self, path: &Path) -> bool {
        let mut state = self.state.lock();
        if *state != State::Ready {
            return false;
        }
        *state = State::Missing;
        fs::rename(&self.path, path).is_ok()
    }
}

/// Writes a file, and has the next one prepared when half of it is full.
pub struct LogWriter {
    file: <DefaultFileSystem as FileSystem>::Writer,
    offset: u64,
    next: Arc<NextFile>,
}

impl Write for LogWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.offset += written as u64;
        if self.offset > self.next.file_bytes / 2 {
            self.next.prepare();
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Seek for LogWriter {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.offset = self.file.seek(to)?;
        Ok(self.offset)
    }
}

impl WriteExt for LogWriter {
    fn truncate(&mut self, offset: usize) -> io::Result<()> {
        self.file.truncate(offset)?;
        self.offset = offset as u64;
        Ok(())
    }

    fn allocate(&mut self, offset: usize, bytes: usize) -> io::Result<()> {
        self.file.allocate(offset, bytes)
    }
}

impl FileSystem for PreparedFiles {
    type Handle = <DefaultFileSystem as FileSystem>::Handle;
    type Reader = <DefaultFileSystem as FileSystem>::Reader;
    type Writer = LogWriter;

    fn create<P: AsRef<Path>>(&self, path: P) -> io::Result<Self::Handle> {
        let is_log = path.as_ref().extension().is_some_and(|extension| extension == EXTENSION);
        if is_log && self.0.take(path.as_ref()) {
            return DefaultFileSystem.open(path, Permission::ReadWrite);
        }
        DefaultFileSystem.create(path)
    }

    fn open<P: AsRef<Path>>(&self, path: P, permission: Permission) -> io::Result<Self::Handle> {
        DefaultFileSystem.open(path, permission)
    }

    fn delete<P: AsRef<Path>>(&self, path: P) -> io::Result<()> {
        DefaultFileSystem.delete(path)
    }

    fn rename<P: AsRef<Path>>(&self, from: P, to: P) -> io::Result<()> {
        DefaultFileSystem.rename(from, to)
    }

    fn new_reader(&self, handle: Arc<Self::Handle>) -> io::Result<Self::Reader> {
        DefaultFileSystem.new_reader(handle)
    }

    fn new_writer(&self, handle: Arc<Self::Handle>) -> io::Result<LogWriter> {
        Ok(LogWriter { file: DefaultFileSystem.new_writer(handle)?, offset: 0, next: self.0.clone() })
    }
}

#[cfg(test)]
mod tests {
    use raft_engine::env::Handle;

    use super::*;

    const FILE_BYTES: u64 = PIECE_BYTES as u64 + 1_000;

    fn write(files: &PreparedFiles, handle: &Arc<<PreparedFiles as FileSystem>::Handle>, bytes: u64) {
        let mut writer = files.new_writer(handle.clone()).expect("open");
        writer.write_all(&vec![7; usize::try_from(bytes).expect("small")]).expect("the disk has room");
    }

    #[test]
    fn the_next_file_is_prepared_behind_the_middle_and_taken_once() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (prepared, path) = (directory.path().join("next"), |name: &str| directory.path().join(name));
        fs::write(&prepared, [1; 10]).expect("writable");
        let files = PreparedFiles::new(prepared.clone(), FILE_BYTES).expect("writable");
        assert!(!prepared.exists(), "what a crash left behind is removed");
        let first = Arc::new(files.create(path("1.raftlog")).expect("writable"));
        write(&files, &first, FILE_BYTES / 2);
        assert_eq!(*files.0.state.lock(), State::Missing, "a log that is hardly written to takes no room");
        write(&files, &first, FILE_BYTES / 2 + 1);
        assert_ne!(*files.0.state.lock(), State::Missing);
        while *files.0.state.lock() == State::UnderWay {
            std::thread::yield_now();
        }
        assert_eq!(files.create(path("1.rewrite")).expect("writable").file_size().expect("readable"), 0);
        let second = Arc::new(files.create(path("2.raftlog")).expect("writable"));
        assert_eq!(second.file_size().expect("readable") as u64, FILE_BYTES);
        assert_eq!(fs::read(path("2.raftlog")).expect("readable"), vec![0; FILE_BYTES as usize]);
        assert_eq!(files.create(path("3.raftlog")).expect("writable").file_size().expect("readable"), 0);
        write(&files, &second, FILE_BYTES);
        drop(files);
        assert!(!prepared.exists(), "it stays behind for nobody");
    }

    #[test]
    fn a_file_that_cannot_be_prepared_is_made_when_it_is_needed() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let files =
            PreparedFiles::new(directory.path().join("missing").join("next"), FILE_BYTES).expect("no such file");
        let first = Arc::new(files.create(directory.path().join("1.raftlog")).expect("writable"));
        write(&files, &first, FILE_BYTES);
        while *files.0.state.lock() == State::UnderWay {
            std::thread::yield_now();
        }
        assert_eq!(*files.0.state.lock(), State::Missing);
        files.create(directory.path().join("2.raftlog")).expect("writable");
    }
}
