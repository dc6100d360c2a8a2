//! Looking at the segments of a partition that no node writes to.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use protocol::PartitionId;

use super::format::{self, FIXED_BYTES, Frame, HEADER_BYTES, Header, RecordLogError};
use super::recovery::EXTENSION;

/// What a record stream holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SegmentsRange {
    /// Number of files.
    pub segments: usize,
    /// Their size in bytes.
    pub bytes: u64,
    /// Position of the first record; none when there is no record.
    pub first_position: Option<u64>,
    /// Position of the last complete record.
    pub last_position: Option<u64>,
}

/// Looks at the segments without changing anything: what a crash left incomplete is left to the next start.
pub(crate) fn range(directory: &Path, partition: PartitionId) -> Result<SegmentsRange, RecordLogError> {
    let paths = segments(directory)?;
    let mut range = SegmentsRange { segments: paths.len(), ..SegmentsRange::default() };
    for path in &paths {
        let length = fs::metadata(path).map_err(|error| RecordLogError::io("read", path, error))?.len();
        range.bytes = range.bytes.saturating_add(length);
    }
    for path in &paths {
        range.first_position = positions(path, partition)?.map(|(first, _)| first);
        if range.first_position.is_some() {
            break;
        }
    }
    for path in paths.iter().rev() {
        range.last_position = positions(path, partition)?.map(|(_, last)| last);
        if range.last_position.is_some() {
            break;
        }
    }
    Ok(range)
}

/// Refuses segments that a later version wrote and this one cannot read, without changing anything.
///
/// # Errors
/// When there is such a segment, or the file system refuses.
pub(crate) fn refuse_newer(directory: &Path, partition: PartitionId) -> Result<(), RecordLogError> {
    for path in segments(directory)? {
        let mut beginning = Vec::with_capacity(FIXED_BYTES);
        let read = fs::File::open(&path).and_then(|file| file.take(FIXED_BYTES as u64).read_to_end(&mut beginning));
        read.map_err(|error| RecordLogError::io("read", &path, error))?;
        if let Some(problem) = format::newer_version(&beginning) {
            return Err(RecordLogError::NotASegment { path, partition, problem });
        }
    }
    Ok(())
}

/// The files in order; none of what is not there yet.
fn segments(directory: &Path) -> Result<Vec<PathBuf>, RecordLogError> {
    let failed = |error| RecordLogError::io("list", directory, error);
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|extension| extension == EXTENSION) {
            paths.push(path);
        }
    }
    // Their names are positions with leading zeros.
    paths.sort();
    Ok(paths)
}

/// The first and the last complete record of a segment.
fn positions(path: &PathBuf, partition: PartitionId) -> Result<Option<(u64, u64)>, RecordLogError> {
    let bytes = fs::read(path).map_err(|error| RecordLogError::io("read", path, error))?;
    if bytes.iter().take(HEADER_BYTES).all(|byte| *byte == 0) {
        return Ok(None);
    }
    let refused = |problem| RecordLogError::NotASegment { path: path.clone(), partition, problem };
    let (_, header_bytes) = Header::decode(&bytes, partition).map_err(refused)?;
    let mut found = None;
    let mut rest = &bytes[header_bytes..];
    while let Frame::Complete { position, frame_bytes, .. } = format::decode_frame(rest, true) {
        found = Some(found.map_or((position, position), |(first, _)| (first, position)));
        rest = &rest[frame_bytes..];
    }
    Ok(found)
}
