//! The directory of a log: locked against other processes, marked with a format version.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

use crate::error::LogError;

/// The version of everything under the directory: the engine's files, and what this crate puts into them.
const FORMAT: u32 = 1;
const MAGIC: &str = "osmia raft log";
const MARKER: &str = "FORMAT";
const FILES: &str = "files";
/// Not among the files: what is in it is no log yet.
const NEXT_FILE: &str = "next-file";

/// A log directory that belongs to this process as long as the value lives.
pub(super) struct LockedDirectory {
    path: PathBuf,
    files: PathBuf,
    _lock: File,
}

impl LockedDirectory {
    pub(super) fn open(path: &Path) -> Result<Self, LogError> {
        let io = |action, place: &Path, error: std::io::Error| LogError::Io {
            action,
            place: place.to_path_buf(),
            problem: error.to_string(),
        };
        fs::create_dir_all(path).map_err(|error| io("Creating the log directory", path, error))?;
        let marker = path.join(MARKER);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&marker)
            .map_err(|error| io("Opening the format marker", &marker, error))?;
        file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => LogError::InUse { directory: path.to_path_buf() },
            TryLockError::Error(error) => io("Locking the log directory", &marker, error),
        })?;
        let files = path.join(FILES);
        let mut found = Vec::new();
        // A marker of the right length is enough to decide; a longer one is not ours.
        (&mut file)
            .take(256)
            .read_to_end(&mut found)
            .map_err(|error| io("Reading the format marker", &marker, error))?;
        let expected = marker_text(FORMAT);
        if found.is_empty() && is_missing_or_empty(&files) {
            // The marker comes last: where it exists, the directory exists, or was lost.
            fs::create_dir_all(&files)
                .and_then(|()| sync_directory(path))
                .map_err(|error| io("Creating the log directory", &files, error))?;
            file.rewind()
                .and_then(|()| file.write_all(expected.as_bytes()))
                .and_then(|()| file.sync_all())
                .and_then(|()| path.parent().map_or(Ok(()), sync_directory))
                .map_err(|error| io("Writing the format marker", &marker, error))?;
        } else if found != expected.as_bytes() {
            return Err(LogError::UnknownFormat {
                directory: path.to_path_buf(),
                found: describe(&found),
                supported: FORMAT,
            });
        } else if !files.exists() {
            return Err(LogError::FilesMissing { directory: path.to_path_buf() });
        }
        Ok(Self { path: path.to_path_buf(), files, _lock: file })
    }

    /// Makes the names of the engine's files survive a power loss: of its first one it does not do so itself.
    pub(super) fn sync_files(&self) -> Result<(), LogError> {
        sync_directory(&self.files).map_err(|error| self.io("Syncing the names of the log files", error))
    }

    /// Where the engine's files are.
    pub(super) fn files(&self) -> &Path {
        &self.files
    }

    /// Where the file is prepared that the engine will use next.
    pub(super) fn next_file(&self) -> PathBuf {
        self.path.join(NEXT_FILE)
    }

    pub(super) fn io(&self, action: &'static str, problem: impl ToString) -> LogError {
        LogError::Io { action, place: self.path.clone(), problem: problem.to_string() }
    }

    pub(super) fn sync_failed(&self, problem: String) -> LogError {
        LogError::SyncFailed { place: self.path.clone(), problem }
    }
}

fn is_missing_or_empty(directory: &Path) -> bool {
    !directory.exists() || fs::read_dir(directory).is_ok_and(|mut files| files.next().is_none())
}

/// Makes the names in a directory survive a power loss.
fn sync_directory(directory: &Path) -> std::io::Result<()> {
    let named = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    File::open(named)?.sync_all()
}

fn marker_text(format: u32) -> String {
    format!("{MAGIC} format {format}\n")
}

fn describe(found: &[u8]) -> String {
    let text = String::from_utf8_lossy(found);
    match text.strip_prefix(MAGIC).and_then(|rest| rest.trim().strip_prefix("format ")) {
        Some(format) => format!("log format {format}"),
        None if found.is_empty() => "log files without a format marker".to_owned(),
        None => format!("an unknown format marker ({:?})", text.chars().take(60).collect::<String>()),
    }
}
