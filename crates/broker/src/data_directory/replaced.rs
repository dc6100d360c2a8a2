//! Files that are replaced as a whole.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::error::failed;
use crate::data_directory::error::DataDirectoryError;
use crate::data_directory::private::PRIVATE_FILE;

/// Replaces a file so that a crash leaves the old or the new content.
pub(crate) fn write_atomically(path: &Path, content: &[u8]) -> Result<(), DataDirectoryError> {
    replace_atomically(path, None, content)
}

/// The same. The old content gets another name, if one is given: after a crash it may be there under that name alone.
pub(crate) fn replace_atomically(path: &Path, old: Option<&Path>, content: &[u8]) -> Result<(), DataDirectoryError> {
    let directory = path.parent().unwrap_or(Path::new("."));
    let temporary = path.with_extension("new");
    let write = || {
        let mut file = File::options().write(true).create(true).truncate(true).mode(PRIVATE_FILE).open(&temporary)?;
        file.write_all(content)?;
        file.sync_data()?;
        match old.map_or(Ok(()), |old| std::fs::rename(path, old)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        std::fs::rename(&temporary, path)?;
        File::open(directory)?.sync_all()
    };
    write().map_err(failed("write", path))
}
