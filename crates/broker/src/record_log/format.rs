//! The layout of a segment file.
//!
//! A header ([`Header`]), then frames: length of the record (u32), CRC-32 of the record (u32), record, which begins with its
//! position, its number and the position of its command. All numbers are little-endian. What stands where: docs/formats.md.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use protocol::{PartitionId, Record, RecordPlace, RecordSource};

pub(super) const MAGIC: &[u8; 8] = b"osmiarec";
/// What is written.
pub(super) const VERSION: u32 = 1;
/// The oldest version that can read what is written.
const OLDEST_READER: u32 = 1;
pub(super) const HEADER_BYTES: usize = 100;
/// Headers of later versions may be longer, but no longer than this.
pub(super) const HEADER_LIMIT_BYTES: usize = 4096;
/// Up to there, all versions agree: magic, version, oldest reader, length of the header.
pub(super) const FIXED_BYTES: usize = 8 + 4 + 4 + 4;
const BROKER_VERSION_BYTES: usize = 32;
const _: () = assert!(protocol::BROKER_VERSION.len() <= BROKER_VERSION_BYTES);
pub(super) const FRAME_HEADER_BYTES: usize = 4 + 4;
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
    /// The records are of a later life of the partition than its state.
    #[error(
        "{} has records of incarnation {found} of partition {partition}, and the state is of incarnation {incarnation}: the state is \
         older than a restore that these records came after. Restore the partition's data as a whole, or move the file away \
         (exporters then miss its records).", path.display()
    )]
    LaterIncarnation {
        path: PathBuf,
        partition: PartitionId,
        /// Of the records.
        found: u64,
        /// Of the state.
        incarnation: u64,
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

/// What a segment says about its records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Header {
    /// Whose they are, and what made them.
    pub source: Arc<RecordSource>,
    /// The record before the first one.
    pub base: RecordPlace,
    /// The last record of the segments before: less than `base` where records are missing in between.
    pub before: RecordPlace,
}

impl Header {
    pub fn new(source: Arc<RecordSource>, base: RecordPlace, before: RecordPlace) -> Self {
        let of_source = |place| RecordPlace { incarnation: source.incarnation, ..place };
        Header { base: of_source(base), before: of_source(before), source }
    }

    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut header = [0; HEADER_BYTES];
        let mut rest = header.as_mut_slice();
        let mut put = |bytes: &[u8]| {
            let (field, behind) = std::mem::take(&mut rest).split_at_mut(bytes.len());
            field.copy_from_slice(bytes);
            rest = behind;
        };
        put(MAGIC);
        put(&VERSION.to_le_bytes());
        put(&OLDEST_READER.to_le_bytes());
        put(&u32::try_from(HEADER_BYTES).expect("a header is short").to_le_bytes());
        put(&u32::from(self.source.partition.0).to_le_bytes());
        put(&self.source.incarnation.to_le_bytes());
        put(&self.base.position.to_le_bytes());
        put(&self.base.number.to_le_bytes());
        let version = self.source.broker_version.as_bytes();
        let mut padded = [0; BROKER_VERSION_BYTES];
        padded[..version.len()].copy_from_slice(version);
        put(&padded);
        put(&self.before.position.to_le_bytes());
        put(&self.before.number.to_le_bytes());
        let checksum = crc32fast::hash(&header[..HEADER_BYTES - 4]);
        header[HEADER_BYTES - 4..].copy_from_slice(&checksum.to_le_bytes());
        header
    }

    /// Reads the header that a file begins with, and how many bytes it has, or says what is wrong with it.
    pub fn decode(bytes: &[u8], partition: PartitionId) -> Result<(Header, usize), String> {
        let too_short = || "it is shorter than a header".to_owned();
        let fixed = bytes.first_chunk::<FIXED_BYTES>().ok_or_else(too_short)?;
        if &fixed[..8] != MAGIC {
            return Err("it does not start with the mark of a record segment".to_owned());
        }
        if let Some(newer) = newer_version(fixed) {
            return Err(newer);
        }
        let length = u32_at(fixed, 16) as usize;
        if !(HEADER_BYTES..=HEADER_LIMIT_BYTES).contains(&length) {
            return Err(format!("its header cannot have {length} bytes"));
        }
        let (content, checksum) = bytes.get(..length).ok_or_else(too_short)?.split_at(length - 4);
        if u32_at(checksum, 0) != crc32fast::hash(content) {
            return Err("the checksum of its header is wrong".to_owned());
        }
        let of = u32_at(content, 20);
        if of != u32::from(partition.0) {
            return Err(format!("it belongs to partition {of}"));
        }
        let broker_version = content[48..48 + BROKER_VERSION_BYTES].split(|byte| *byte == 0).next().unwrap_or_default();
        let broker_version = str::from_utf8(broker_version).map_err(|_| "its broker version is no text".to_owned())?;
        let source =
            RecordSource { partition, incarnation: u64_at(content, 24), broker_version: broker_version.into() };
        let place_at = |at: usize| RecordPlace {
            incarnation: source.incarnation,
            position: u64_at(content, at),
            number: u64_at(content, at + 8),
        };
        let (base, before) = (place_at(32), place_at(80));
        Ok((Header { source: Arc::new(source), base, before }, length))
    }
}

/// Says that a later version wrote a segment which this one cannot read, if so it is. What is no segment at all is none.
pub(super) fn newer_version(beginning: &[u8]) -> Option<String> {
    let fixed = beginning.first_chunk::<FIXED_BYTES>().filter(|fixed| &fixed[..8] == MAGIC)?;
    let (version, oldest_reader) = (u32_at(fixed, 8), u32_at(fixed, 12));
    (oldest_reader > VERSION).then(|| {
        format!(
            "its format is {version}, which needs a version that reads {oldest_reader} or newer, and this one reads {VERSION}"
        )
    })
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(*bytes[at..].first_chunk().expect("the length was checked"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(*bytes[at..].first_chunk().expect("the length was checked"))
}

/// Appends a frame whose record is written by `record`.
///
/// # Errors
/// When the record is larger than the limit, with its size; nothing is appended then.
pub(super) fn encode_frame(
    limit_bytes: usize,
    out: &mut Vec<u8>,
    record: impl FnOnce(&mut Vec<u8>),
) -> Result<(), usize> {
    let start = out.len();
    out.extend_from_slice(&[0; FRAME_HEADER_BYTES]);
    record(out);
    let length = out.len() - start - FRAME_HEADER_BYTES;
    if length > limit_bytes {
        out.truncate(start);
        return Err(length);
    }
    let length = u32::try_from(length).expect("the limit is below 4 GiB");
    let checksum = crc32fast::hash(&out[start + FRAME_HEADER_BYTES..]);
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
    out[start + 4..start + 8].copy_from_slice(&checksum.to_le_bytes());
    Ok(())
}

/// What the beginning of some bytes is.
pub(super) enum Frame<'a> {
    /// A complete frame.
    Complete { position: u64, number: u64, source_position: u64, record: &'a [u8], frame_bytes: usize },
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
    let length = u32_at(header, 0) as usize;
    if length == 0 || length > RECORD_LIMIT_BYTES {
        return Frame::Damaged { problem: "a record cannot have the length that is written there" };
    }
    let frame_bytes = FRAME_HEADER_BYTES + length;
    let Some(frame) = bytes.get(..frame_bytes) else {
        return Frame::Partial { needed_bytes: frame_bytes };
    };
    let record = &frame[FRAME_HEADER_BYTES..];
    if verify && crc32fast::hash(record) != u32_at(header, 4) {
        return Frame::Damaged { problem: "the checksum of a record is wrong" };
    }
    match Record::peek(record) {
        Ok([position, number, source_position]) => {
            Frame::Complete { position, number, source_position, record, frame_bytes }
        }
        Err(_) => Frame::Damaged { problem: "a record does not begin with its position, number and source position" },
    }
}
