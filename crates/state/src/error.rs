//! What can go wrong with a store.

use std::path::PathBuf;
use std::sync::Arc;

use thiserror::Error;

/// Stored bytes that cannot be what was written.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{reason}")]
pub struct CorruptionError {
    reason: String,
}

impl CorruptionError {
    /// Describes what is wrong with the bytes.
    pub fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into() }
    }
}

/// An error of a store.
#[derive(Clone, Debug, Error)]
#[allow(missing_docs, reason = "the message says what each field is")]
pub enum StoreError {
    /// A stored entry is damaged.
    #[error(
        "the entry {key} of table {table} in {} is damaged: {reason}; restore the partition from another replica or a \
         backup", file.display()
    )]
    Corruption {
        /// The table of the entry.
        table: &'static str,
        /// The key, readable if it could be decoded, otherwise in hexadecimal digits.
        key: String,
        /// The file that holds the entry.
        file: PathBuf,
        /// What is wrong with it.
        reason: CorruptionError,
    },
    /// The record that names the format, the applied index and the metadata is damaged, or the whole file is.
    #[error("the state file {} is damaged: {reason}; restore the partition from another replica or a backup", file.display())]
    DamagedFile {
        file: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The file was written in another format.
    #[error(
        "the state file {} has {what} {found}, which takes a program that knows {what} {oldest_reader} or a later one, and this \
         program knows {known}; it was written by {writer}: start that version of the program or a newer one", file.display()
    )]
    UnknownVersion {
        file: PathBuf,
        /// Which of the versions is unknown: "format" (of this crate) or "schema" (of the tables).
        what: &'static str,
        /// The version in the file.
        found: u32,
        /// The oldest version whose programs may open it.
        oldest_reader: u32,
        /// The version of this program.
        known: u32,
        /// The program that wrote it.
        writer: String,
    },
    /// The file was written in a format that is too old to be brought to the present one.
    #[error(
        "the state file {} has {what} {found} of {writer}, and this program can bring no file from there to its {what} {known}; \
         start a version between the two first", file.display()
    )]
    TooOldVersion {
        file: PathBuf,
        /// Which of the versions is too old: "format" (of this crate) or "schema" (of the tables).
        what: &'static str,
        /// The version in the file.
        found: u32,
        /// The version of this program.
        known: u32,
        /// The program that wrote it.
        writer: String,
    },
    /// A key is longer than the file can hold. Rolling back clears this error.
    #[error("a key of table {table} is {bytes} bytes long, and at most {LONGEST} are allowed; use a shorter name", LONGEST = crate::LONGEST_KEY_BYTES)]
    KeyTooLong {
        /// The table of the key.
        table: &'static str,
        /// The length of the encoded key.
        bytes: usize,
    },
    /// The file could not be opened, read or written.
    #[error("could not {action} the state file {}: {source}", file.display())]
    File {
        action: &'static str,
        file: PathBuf,
        /// The operating system's or the B-tree's reason.
        source: Arc<heed::Error>,
    },
    /// A checkpoint could not be written. A full disk may also show as an input/output error here.
    #[error(
        "could not write a checkpoint to the state file {}: {source}; nothing is lost and it can be tried again, but make \
         sure that the disk has room and is in order", file.display()
    )]
    Checkpoint {
        file: PathBuf,
        /// The operating system's or the B-tree's reason.
        source: Arc<heed::Error>,
    },
    /// A checkpoint does not fit: the file has the largest size that it may have.
    #[error(
        "the state file {} has reached its largest size of {bytes} bytes, and a checkpoint does not fit into it; nothing is \
         lost as long as the log keeps it; start a version of the program that allows a larger file", file.display()
    )]
    FileFull {
        file: PathBuf,
        /// The largest size.
        bytes: usize,
    },
    /// A store in memory was asked for something that needs a file.
    #[error("a store in memory has no file to {action}")]
    NoFile {
        /// What was asked for.
        action: &'static str,
    },
    /// Everything is held while a checkpoint is under way.
    #[error("a checkpoint is already under way; release it before the next one")]
    CheckpointUnderWay,
    /// The writes of a command are neither committed nor rolled back yet.
    #[error("a checkpoint can only start between two commands, and one is still open")]
    CommandOpen,
    /// A snapshot cannot be read or written.
    #[error("could not {action} a snapshot of the state: {reason}")]
    Snapshot { action: &'static str, reason: String },
}

impl StoreError {
    /// Whether only the current command is at fault, so that rolling it back repairs everything.
    pub fn concerns_one_command(&self) -> bool {
        matches!(self, Self::KeyTooLong { .. })
    }

    /// Whether the file has the largest size that it may have.
    pub fn is_file_full(&self) -> bool {
        matches!(self, Self::FileFull { .. })
    }

    /// Whether nothing can be written any more before the file is opened again: an error hit the very page that names the
    /// newest checkpoint.
    pub fn needs_reopening(&self) -> bool {
        match self {
            Self::Checkpoint { source, .. } => matches!(**source, heed::Error::Mdb(heed::MdbError::Panic)),
            _ => false,
        }
    }
}
