//! What the record stream needs of a file system, so that a simulation can put its own under it.

use std::fmt::Debug;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::data_directory::private::PRIVATE_FILE;

/// Directories with segments.
pub trait SegmentFiles: Debug + Send + Sync {
    /// Makes a directory and those above it, unless they are there, and makes their names durable.
    ///
    /// # Errors
    /// When the file system refuses.
    fn create_directory(&self, directory: &Path) -> io::Result<()>;

    /// What is in a directory, in any order.
    ///
    /// # Errors
    /// When the file system refuses.
    fn list(&self, directory: &Path) -> io::Result<Vec<PathBuf>>;

    /// Makes an empty file for this user alone; one that is there is emptied.
    ///
    /// # Errors
    /// When the file system refuses.
    fn create(&self, path: &Path) -> io::Result<Box<dyn SegmentFile>>;

    /// Opens a file that is there.
    ///
    /// # Errors
    /// When the file system refuses.
    fn open(&self, path: &Path) -> io::Result<Box<dyn SegmentFile>>;

    /// Deletes a file.
    ///
    /// # Errors
    /// When the file system refuses.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Makes durable which files are in a directory.
    ///
    /// # Errors
    /// When that is not sure.
    fn sync_directory(&self, directory: &Path) -> io::Result<()>;
}

/// An open segment.
pub trait SegmentFile: Debug + Send + Sync {
    /// Its length in bytes.
    ///
    /// # Errors
    /// When the file system refuses.
    fn length(&self) -> io::Result<u64>;

    /// Cuts it off.
    ///
    /// # Errors
    /// When the file system refuses.
    fn set_length(&self, length: u64) -> io::Result<()>;

    /// Fills the buffer from a place in the file.
    ///
    /// # Errors
    /// When the file ends before, or the file system refuses.
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;

    /// Writes to a place in the file.
    ///
    /// # Errors
    /// When the file system refuses. A part may be written then.
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Makes durable what was written.
    ///
    /// # Errors
    /// When that is not sure.
    fn sync_data(&self) -> io::Result<()>;
}

/// The files of the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemFiles;

impl SegmentFiles for SystemFiles {
    fn create_directory(&self, directory: &Path) -> io::Result<()> {
        state::create_directory(directory)
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        std::fs::read_dir(directory)?.map(|entry| entry.map(|entry| entry.path())).collect()
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn SegmentFile>> {
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(true).mode(PRIVATE_FILE);
        Ok(Box::new(options.open(path)?))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn SegmentFile>> {
        Ok(Box::new(File::options().read(true).write(true).open(path)?))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    fn sync_directory(&self, directory: &Path) -> io::Result<()> {
        File::open(directory)?.sync_all()
    }
}

impl SegmentFile for File {
    fn length(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        FileExt::read_exact_at(self, buffer, offset)
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        FileExt::write_all_at(self, bytes, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        File::sync_data(self)
    }
}
