//! Why a data directory cannot be used.

use std::io;
use std::path::{Path, PathBuf};

use engine::UnknownFeatureLevel;

use super::names::{DRAFT, FORMAT, FORMAT_FILE, PARTITIONS};
use crate::disk::FULL_BYTES;

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
    /// The directory is of a member of a cluster.
    #[error(
        "The data directory {} belongs to a node of a cluster. Start it with the list of members (initial-members), or choose \
         another data directory.", .0.display()
    )]
    OfMember(PathBuf),
    /// The directory is of a node alone.
    #[error(
        "The data directory {} was made by a node alone, and a node alone cannot become a cluster yet. Start without the list \
         of members, or choose an empty data directory.", .0.display()
    )]
    OfNodeAlone(PathBuf),
    /// The operating system refused.
    #[error("Could not {action} {}: {source}", path.display())]
    Io {
        action: &'static str,
        path: PathBuf,
        /// The operating system's words.
        source: io::Error,
    },
}

pub(crate) fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> DataDirectoryError {
    let path = path.to_owned();
    move |source| DataDirectoryError::Io { action, path, source }
}
