//! The layout of a segment file.
//!
//! A header (magic, version, partition, base position, checksum), then frames: length of the record (u32), CRC-32 of
//! position and record (u32), position (u64), record. All numbers are little-endian.

use std::io;
use std::path::{Path, PathBuf};

use protocol::PartitionId;

pub(super) const MAGIC: &[u8; 8] = b"osmiarec";
pub(super) const VERSION: u32 = 1;
pub(super) const HEADER_BYTES: usize = 8 + 4 + 4 + 8 + 4;
pub(super) const FRAME_HEADER_BYTES: usize = 4 + 4 + 8;
/// No record is larger: it comes from one command, and those are far smaller. A larger length is damage.
pub(super) const RECORD_LIMIT_BYTES: usize = 256 << 20;

/// The record stream of a partition cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the message says what each field is")]
pub enum RecordLogError {
    /// The operating system refused.
    #[error("Could not {action} {}: {source}", path.display())]
    Io {
        action: &'static str,
        path: PathBuf,
        /// The operating system's words.
        source: io::Error,
    },
    /// A file is not a segment of this partition.
    #[error(
        "{} is not a record segment of partition {partition} that this version can read: {problem}. Start the version \
         that wrote it, or move the file away (exporters then miss its records).", path.display()
    )]
    NotASegment {
        path: PathBuf,
        /// The partition whose segment was expected.
        partition: PartitionId,
        /// What does not fit.
        problem: String,
    },
    /// A record that readers would refuse is not written, and nothing behind it.
    #[error(
        "The record at position {position} of partition {partition} has {bytes} bytes, and at most {RECORD_LIMIT_BYTES} can be \
         written and read. This is a mistake of the engine, whose records have a limit of their own: report it with this line."
    )]
    TooLarge { partition: PartitionId, position: u64, bytes: usize },
    /// A record that was written cannot be read back.
    #[error(
        "The record segment {} is damaged at byte {offset}: {problem}. Restore the partition's data from a backup, or \
         move the file away (exporters then miss its records).", path.display()
    )]
    Damaged {
        path: PathBuf,
        /// Where the damaged frame starts.
        offset: u64,
        /// What does not fit.
        problem: String,
    },
}

impl RecordLogError {
    pub(super) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        RecordLogError::Io { action, path: path.to_owned(), source }
    }
}

/// The header of a segment.
pub(super) fn encode_header(partition: PartitionId, base: u64) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..8].copy_from_slice(MAGIC);
    header[8..12].copy_from_slice(&VERSION.to_le_bytes());
    header[12..16].copy_from_slice(&u32::from(partition.0).to_le_bytes());
    header[16..24].copy_from_slice(&base.to_le_bytes());
    let checksum = crc32fast::hash(&header[..24]);
    header[24..].copy_from_slice(&checksum.to_le_bytes());
    header
}

/// Reads the base position from a header, or says what is wrong with it.
pub(super) fn decode_header(header: &[u8], partition: PartitionId) -> Result<u64, String> {
    let Some(header) = header.first_chunk::<HEADER_BYTES>() else {
        return Err("it is shorter than a header".to_owned());
    };
    if &header[..8] != MAGIC {
        return Err("it does not start with the mark of a record segment".to_owned());
    }
    let number = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    if number(8) != VERSION {
        return Err(format!("its format is {}, and this version reads {VERSION}", number(8)));
    }
    if number(24) != crc32fast::hash(&header[..24]) {
        return Err("the checksum of its header is wrong".to_owned());
    }
    if number(12) != u32::from(partition.0) {
        return Err(format!("it belongs to partition {}", number(12)));
    }
    Ok(u64::from(number(16)) | u64::from(number(20)) << 32)
}

/// Appends a frame whose record is written by `record`.
///
/// # Errors
/// When the record is larger than the limit, with its size; nothing is appended then.
pub(super) fn encode_frame(
    position: u64,
    limit_bytes: usize,
    out: &mut Vec<u8>,
    record: impl FnOnce(&mut Vec<u8>),
) -> Result<(), usize> {
    let start = out.len();
    out.extend_from_slice(&[0; 8]);
    out.extend_from_slice(&position.to_le_bytes());
    record(out);
    let length = out.len() - start - FRAME_HEADER_BYTES;
    if length > limit_bytes {
        out.truncate(start);
        return Err(length);
    }
    let length = u32::try_from(length).expect("the limit is below 4 GiB");
    let checksum = crc32fast::hash(&out[start + 8..]);
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
    out[start + 4..start + 8].copy_from_slice(&checksum.to_le_bytes());
    Ok(())
}

/// What the beginning of some bytes is.
pub(super) enum Frame<'a> {
    /// A complete frame.
    Complete { position: u64, record: &'a [u8], frame_bytes: usize },
    /// The beginning of a frame that has this many bytes (at least).
    Partial { needed_bytes: usize },
    /// No frame.
    Damaged { problem: &'static str },
}

/// Reads the frame at the beginning of `bytes`. `verify` checks its checksum.
pub(super) fn decode_frame(bytes: &[u8], verify: bool) -> Frame<'_> {
    let Some((header, _)) = bytes.split_first_chunk::<FRAME_HEADER_BYTES>() else {
        return Frame::Partial { needed_bytes: FRAME_HEADER_BYTES };
    };
    let [l0, l1, l2, l3, c0, c1, c2, c3, position @ ..] = header;
    let length = u32::from_le_bytes([*l0, *l1, *l2, *l3]) as usize;
    if length == 0 || length > RECORD_LIMIT_BYTES {
        return Frame::Damaged { problem: "a record cannot have the length that is written there" };
    }
    let frame_bytes = FRAME_HEADER_BYTES + length;
    let Some(frame) = bytes.get(..frame_bytes) else {
        return Frame::Partial { needed_bytes: frame_bytes };
    };
    if verify && crc32fast::hash(&frame[8..]) != u32::from_le_bytes([*c0, *c1, *c2, *c3]) {
        return Frame::Damaged { problem: "the checksum of a record is wrong" };
    }
    let record = &frame[FRAME_HEADER_BYTES..];
    Frame::Complete { position: u64::from_le_bytes(*position), record, frame_bytes }
}
