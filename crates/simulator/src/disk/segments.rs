//! The record segments of a node on its disk.

use std::io::{Error, Result};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use broker::record_log::{SegmentFile, SegmentFiles};
use raft_engine::env::{FileSystem, Handle};

use super::{SimulatedFile, SimulatedFiles};

impl SegmentFiles for SimulatedFiles {
    fn create_directory(&self, directory: &Path) -> Result<()> {
        std::fs::create_dir_all(directory)
    }

    fn list(&self, directory: &Path) -> Result<Vec<PathBuf>> {
        let mut paths = Vec::new();
        for entry in std::fs::read_dir(directory)? {
            paths.push(entry?.path());
        }
        paths.sort();
        Ok(paths)
    }

    fn create(&self, path: &Path) -> Result<Box<dyn SegmentFile>> {
        let file = FileSystem::create(self, path)?;
        if Handle::file_size(&file)? > 0 {
            file.set_length(0)?;
        }
        Ok(Box::new(file))
    }

    fn open(&self, path: &Path) -> Result<Box<dyn SegmentFile>> {
        Ok(Box::new(FileSystem::open(self, path, raft_engine::env::Permission::ReadWrite)?))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        FileSystem::delete(self, path)
    }

    fn sync_directory(&self, _: &Path) -> Result<()> {
        self.0.operation().map(drop)
    }
}

impl SegmentFile for SimulatedFile {
    fn length(&self) -> Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn set_length(&self, length: u64) -> Result<()> {
        SimulatedFile::set_length(self, length)
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> Result<()> {
        if self.disk.is_crashed() {
            return Err(Error::other("the power failed"));
        }
        FileExt::read_exact_at(&self.file, buffer, offset)
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        self.write(offset, bytes).map(drop)
    }

    fn sync_data(&self) -> Result<()> {
        Handle::sync(self)
    }
}
