//! The note that the data directory was put back from a copy.
//!
//! What happened after the copy is gone, but exporters' targets and workers remember it. So each partition begins another life of its
//! data, with a number that no life had, as soon as it is led. The note stays: a partition that has reached the number leaves it alone.

use std::io;
use std::path::Path;

use crate::data_directory::checksum::{check_checksum, with_checksum};
use crate::data_directory::error::DataDirectoryError;
use crate::data_directory::write_atomically;

/// Its name in the data directory.
pub(crate) const FILE_NAME: &str = "RESTORED";
const FORMAT: &str = "format ";
const FIRST_LINE: &str = "format 1";
const INCARNATION: &str = "incarnation ";

/// Notes that the partitions are to be at this incarnation at least.
pub(crate) fn write(directory: &Path, incarnation: u64) -> Result<(), DataDirectoryError> {
    let content = with_checksum(format!("{FIRST_LINE}\n{INCARNATION}{incarnation}\n"));
    write_atomically(&directory.join(FILE_NAME), content.as_bytes())
}

/// The incarnation that is noted, if one is.
pub(crate) fn read(directory: &Path) -> Result<Option<u64>, DataDirectoryError> {
    let path = directory.join(FILE_NAME);
    let content = match std::fs::read(&path) {
        Ok(content) => content,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(DataDirectoryError::Io { action: "read", path, source }),
    };
    let text = String::from_utf8_lossy(&content);
    // Before the checksum, so that a later version is refused as one and not as damage.
    let first = text.lines().next().unwrap_or_default();
    if first != FIRST_LINE && first.starts_with(FORMAT) {
        let problem = format!("its first line is '{first}', and this version reads '{FIRST_LINE}'");
        return Err(DataDirectoryError::RestoredByOther { path, problem });
    }
    parse(&content, &text).map(Some).map_err(|problem| DataDirectoryError::Restored { path, problem })
}

fn parse(content: &[u8], text: &str) -> Result<u64, String> {
    check_checksum(content)?;
    let number = text.lines().nth(1).and_then(|line| line.strip_prefix(INCARNATION)).and_then(|text| text.parse().ok());
    number.ok_or_else(|| "its second line names no incarnation".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_noted_is_read_and_damage_is_told() {
        let directory = tempfile::tempdir().expect("temporary directory");
        assert_eq!(read(directory.path()).expect("readable"), None);
        write(directory.path(), 1_800_000_000).expect("writable");
        assert_eq!(read(directory.path()).expect("readable"), Some(1_800_000_000));
        let path = directory.path().join(FILE_NAME);
        let content = std::fs::read_to_string(&path).expect("readable");
        for (from, to, expected) in [
            ("incarnation 18", "incarnation 19", "its checksum does not fit"),
            (
                "format 1",
                "format 2",
                "its first line is 'format 2', and this version reads 'format 1'. Start the version",
            ),
            ("format 1", "former 1", "its checksum does not fit the lines before it. Write it again"),
        ] {
            std::fs::write(&path, content.replace(from, to)).expect("writable");
            let error = read(directory.path()).expect_err("damaged").to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
