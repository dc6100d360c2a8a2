//! The file that keeps room for bad times.

use std::fs::File;
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::{RESERVE_FILE, space};
use crate::data_directory::private::PRIVATE_FILE;

/// The unit in which the system reports the size of a file on its disk, in bytes.
const STAT_BLOCK_BYTES: u64 = 512;

/// A file whose content means nothing. It may be deleted while the node is stopped.
#[derive(Debug)]
pub(super) struct Reserve {
    path: PathBuf,
    left_bytes: u64,
}

impl Reserve {
    /// The reserve of a data directory, as large as it is now.
    pub fn of(directory: &Path) -> Reserve {
        let path = directory.join(RESERVE_FILE);
        // A copy of the directory may have made a hole of it: then it holds no room.
        let held = |metadata: std::fs::Metadata| metadata.len().min(metadata.blocks().saturating_mul(STAT_BLOCK_BYTES));
        let left_bytes = std::fs::metadata(&path).map_or(0, held);
        Reserve { path, left_bytes }
    }

    /// What is left of it.
    pub fn left_bytes(&self) -> u64 {
        self.left_bytes
    }

    /// Shortens the file by this many bytes, or to nothing.
    pub fn give_up(&mut self, bytes: u64) -> io::Result<()> {
        let left = self.left_bytes.saturating_sub(bytes);
        // An empty file still takes its name and nothing else.
        File::options().write(true).open(&self.path)?.set_len(left)?;
        self.left_bytes = left;
        Ok(())
    }

    /// Makes the file so large.
    pub fn allocate(&mut self, bytes: u64) -> io::Result<()> {
        let file = File::options().write(true).create(true).truncate(false).mode(PRIVATE_FILE).open(&self.path)?;
        let allocated = space::allocate(&file, bytes);
        if allocated.is_err() {
            // What was allocated before the failure goes back: half a reserve on a disk that fills up is of no use.
            file.set_len(self.left_bytes)?;
        } else {
            self.left_bytes = bytes;
        }
        allocated
    }
}
