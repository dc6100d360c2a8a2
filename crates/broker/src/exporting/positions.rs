//! The file that keeps an exporter's acknowledged positions.

use std::io;
use std::path::{Path, PathBuf};

use crate::data_directory::{DataDirectoryError, write_atomically};

const MAGIC: &[u8; 8] = b"osmiapos";
const VERSION: u32 = 1;

/// Magic, version, number of partitions, their positions, CRC-32 of everything before. Little-endian.
#[derive(Debug)]
pub struct PositionsFile {
    path: PathBuf,
}

impl PositionsFile {
    /// Reads the positions of `partition_count` partitions; 0 for what is not there yet.
    ///
    /// # Errors
    /// When the file system refuses.
    pub fn open(path: PathBuf, partition_count: u16) -> Result<(Self, Vec<u64>), DataDirectoryError> {
        let io = |action, path: &Path| {
            let path = path.to_owned();
            move |source| DataDirectoryError::Io { action, path, source }
        };
        if let Some(directory) = path.parent() {
            state::create_directory(directory).map_err(io("create", directory))?;
        }
        let mut positions = match std::fs::read(&path) {
            Ok(bytes) => decode(&bytes).unwrap_or_else(|problem| {
                // At least once: everything that is still there is exported again.
                tracing::error!(file = %path.display(), problem, "the exporter's positions cannot be read; it starts over");
                Vec::new()
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(io("read", &path)(error)),
        };
        positions.resize(usize::from(partition_count), 0);
        Ok((PositionsFile { path }, positions))
    }

    /// Reads the positions without changing anything; the error says what is wrong.
    pub(crate) fn read(path: &Path) -> Result<Vec<u64>, String> {
        let bytes = std::fs::read(path).map_err(|error| error.to_string())?;
        decode(&bytes).map_err(str::to_owned)
    }

    /// Replaces the positions durably.
    ///
    /// # Errors
    /// When the file system refuses.
    pub fn save(&self, positions: &[u64]) -> Result<(), DataDirectoryError> {
        write_atomically(&self.path, &encode(positions))
    }
}

fn encode(positions: &[u64]) -> Vec<u8> {
    let count = u32::try_from(positions.len()).expect("partitions are few");
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&count.to_le_bytes());
    positions.iter().for_each(|position| bytes.extend_from_slice(&position.to_le_bytes()));
    bytes.extend_from_slice(&crc32fast::hash(&bytes).to_le_bytes());
    bytes
}

fn decode(bytes: &[u8]) -> Result<Vec<u64>, &'static str> {
    let (content, checksum) = bytes.split_last_chunk::<4>().ok_or("it is too short")?;
    if crc32fast::hash(content) != u32::from_le_bytes(*checksum) {
        return Err("its checksum is wrong");
    }
    let content = content.strip_prefix(MAGIC).ok_or("it does not start with its mark")?;
    let content = content.strip_prefix(&VERSION.to_le_bytes()).ok_or("its version is unknown")?;
    let (_, positions) = content.split_first_chunk::<4>().ok_or("it is too short")?;
    let (positions, rest) = positions.as_chunks::<8>();
    if !rest.is_empty() {
        return Err("it ends in the middle of a position");
    }
    Ok(positions.iter().map(|position| u64::from_le_bytes(*position)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_survive_and_damage_starts_over() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let path = directory.path().join("exporters").join("x.positions");
        let (file, positions) = PositionsFile::open(path.clone(), 2).expect("new");
        assert_eq!(positions, [0, 0]);
        file.save(&[17, 4]).expect("writable");
        assert_eq!(PositionsFile::open(path.clone(), 3).expect("intact").1, [17, 4, 0]);
        let mut bytes = std::fs::read(&path).expect("there");
        bytes[17] ^= 1;
        std::fs::write(&path, bytes).expect("writable");
        assert_eq!(PositionsFile::open(path, 2).expect("damage is no error").1, [0, 0]);
    }
}
