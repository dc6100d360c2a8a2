//! What makes the names of files survive a power loss.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

/// Only the owner may read what users' data is in.
pub(crate) const PRIVATE_FILE: u32 = 0o600;
const PRIVATE_DIRECTORY: u32 = 0o700;

/// Makes the name of a file durable. Bytes in a file without a name are lost, however well they are synced.
pub(crate) fn sync_name(path: &Path) -> io::Result<()> {
    File::open(directory_of(path))?.sync_all()
}

/// Makes the directory of a file, and those above that are not there yet, and their names durable.
pub(crate) fn make_directory_of(path: &Path) -> io::Result<()> {
    make_directory(directory_of(path))
}

fn make_directory(directory: &Path) -> io::Result<()> {
    if directory.is_dir() {
        return Ok(());
    }
    make_directory(directory_of(directory))?;
    match DirBuilder::new().mode(PRIVATE_DIRECTORY).create(directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => sync_name(directory),
    }
}

fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|directory| !directory.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
