//! Tells a torn tail from damage before the engine opens its files.
//!
//! The engine itself cuts the newest file off at the first record that it cannot read, wherever that is, and looks at the
//! content of old entries only when they are read. So a flipped bit could silently remove acknowledged entries. This pass
//! reads every byte first. A record that does not verify is a torn tail only at the end of the newest file, with no valid
//! record behind it: every batch is synced before the next is written, so only the last one can be incomplete. (A damaged
//! last record looks like a torn one. If the state machine already has it, opening the group reports that the state is
//! ahead of the log.)
//!
//! A file behind it that holds no record, because the disk was full when it was begun, does not count.
//!
//! File: magic, version (u64), alignment (u64), records. The engine writes version 2. But a newest file whose header was
//! torn it starts again with version 1, which has no alignment and does not sign its records with the file's number.
//! Record: `length << 8 | compression` (u64), offset of the items (u64), entries with a CRC-32 (absent if there are none),
//! items with a CRC-32 that is XORed with the file's number, so that the remains of a recycled file are not mistaken for
//! its new content. All numbers are big-endian, the checksums little-endian.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::LogError;

const MAGIC: &[u8] = b"RAFT-LOG-FILE-HEADER-9986AB3E47F320B394C8E84916EB0ED5";
const FILE_HEADER_BYTES: usize = MAGIC.len() + 16;
/// Of a file that the engine starts again.
const UNSIGNED_HEADER_BYTES: usize = MAGIC.len() + 8;
const RECORD_HEADER_BYTES: usize = 16;
const CHECKSUM_BYTES: usize = 4;

/// The two sequences of files that the engine keeps.
#[derive(Clone, Copy)]
enum Queue {
    /// What was written.
    Append,
    /// What was still needed from old files and moved, in pieces that are synced together.
    Rewrite,
}

impl Queue {
    fn suffix(self) -> &'static str {
        match self {
            Self::Append => ".raftlog",
            Self::Rewrite => ".rewrite",
        }
    }

    /// How many bytes at the end may be unsynced in any order when the power fails (besides one incomplete record).
    fn unsynced_bytes(self) -> usize {
        match self {
            Self::Append => 0,
            Self::Rewrite => 1 << 20,
        }
    }
}

/// Verifies all files; refuses damage and reports a torn tail.
pub(super) fn verify(directory: &Path) -> Result<(), LogError> {
    for queue in [Queue::Append, Queue::Rewrite] {
        let mut files = files_of(directory, queue)?;
        while let Err(error) = verify_files(&files, queue) {
            if !remove_failed_successor(&mut files, &error)? {
                return Err(error);
            }
        }
    }
    Ok(())
}

fn verify_files(files: &[(u64, PathBuf)], queue: Queue) -> Result<(), LogError> {
    for (position, (number, path)) in files.iter().enumerate() {
        let newest = position + 1 == files.len();
        verify_file(path, &read(path)?, *number, newest.then_some(queue))?;
    }
    Ok(())
}

/// When the disk is full, the engine begins the next file, fails, and continues in the one before. After a crash that one
/// may have a torn tail, because it really was the newest; the engine would refuse it. So files without a record are
/// removed after a file that is not whole. Returns whether it was.
fn remove_failed_successor(files: &mut Vec<(u64, PathBuf)>, error: &LogError) -> Result<bool, LogError> {
    let [.., (_, path), (next_number, next_path)] = files.as_slice() else { return Ok(false) };
    if !matches!(error, LogError::Damaged { file, .. } if file == path)
        || !has_no_record(&read(next_path)?, *next_number)
    {
        return Ok(false);
    }
    tracing::info!(file = %next_path.display(), "removing a log file that was begun on a full disk and never used");
    fs::remove_file(next_path).map_err(|error| io("Removing an unused log file", next_path, &error))?;
    files.pop();
    Ok(true)
}

fn has_no_record(bytes: &[u8], number: u64) -> bool {
    let signature = verify_header(bytes, number).map_or(signature_of(number), |header| header.signature);
    (0..end_of_content(bytes)).all(|offset| verify_items(&bytes[offset..], signature).is_err())
}

/// Behind it are only zeros that were allocated ahead, in which no record can begin: megabytes that need no search.
fn end_of_content(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)
}

fn read(path: &Path) -> Result<Vec<u8>, LogError> {
    fs::read(path).map_err(|error| io("Reading a log file", path, &error))
}

fn io(action: &'static str, place: &Path, error: &std::io::Error) -> LogError {
    LogError::Io { action, place: place.to_path_buf(), problem: error.to_string() }
}

/// The files of a queue in order. A gap in the numbers is left where files were recycled and deleted; the engine ignores
/// the files before it.
fn files_of(directory: &Path, queue: Queue) -> Result<Vec<(u64, PathBuf)>, LogError> {
    let mut files = Vec::new();
    let listing = fs::read_dir(directory).map_err(|error| io("Listing the log directory", directory, &error))?;
    for file in listing {
        let path = file.map_err(|error| io("Listing the log directory", directory, &error))?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        let number = name.and_then(|name| name.strip_suffix(queue.suffix())).and_then(|number| number.parse().ok());
        files.extend(number.map(|number: u64| (number, path)));
    }
    files.sort_unstable();
    let gap = files.windows(2).rposition(|pair| pair[1].0 != pair[0].0 + 1);
    files.drain(..gap.map_or(0, |gap| gap + 1));
    Ok(files)
}

/// What a file's header says.
#[derive(Clone, Copy)]
struct FileHeader {
    bytes: usize,
    /// What the records' checksums are XORed with.
    signature: u32,
}

/// Verifies one file; `newest` names its queue if the tail may be torn.
fn verify_file(path: &Path, bytes: &[u8], number: u64, newest: Option<Queue>) -> Result<(), LogError> {
    let damaged = |offset: usize, problem: &str| LogError::Damaged {
        file: path.to_path_buf(),
        offset: offset as u64,
        problem: problem.to_owned(),
    };
    // Of a file without a header it is unknown whether its records are signed: as usual.
    let mut header = FileHeader { bytes: FILE_HEADER_BYTES, signature: signature_of(number) };
    let mut offset = 0;
    let problem = match verify_header(bytes, number) {
        Err(problem) => Some(problem),
        Ok(found) => {
            header = found;
            offset = header.bytes;
            loop {
                if offset == bytes.len() {
                    break None;
                }
                match verify_record(&bytes[offset..], header.signature) {
                    Ok(length) => offset += length,
                    Err(problem) => break Some(problem),
                }
            }
        }
    };
    let Some(problem) = problem else {
        return Ok(());
    };
    let Some(queue) = newest else {
        return Err(damaged(offset, problem));
    };
    let begins = |at: usize, signature| bytes.get(at..).is_some_and(|rest| verify_items(rest, signature).is_ok());
    // A header is on the disk before the first record, or together with it: in front of an intact one it was not torn.
    let first = [(FILE_HEADER_BYTES, signature_of(number)), (UNSIGNED_HEADER_BYTES, 0)];
    let first = first.into_iter().find(|(at, signature)| offset == 0 && begins(*at, *signature)).map(|(at, _)| at);
    let doubtful = offset.max(header.bytes) + queue.unsynced_bytes();
    let intact_behind = || (doubtful + 1..end_of_content(bytes)).find(|later| begins(*later, header.signature));
    if let Some(later) = first.or_else(intact_behind) {
        return Err(damaged(offset, &format!("{problem}, and an intact record follows at byte {later}")));
    }
    // A torn header ends in zeros, so it names no alignment. The engine would take it for granted, and make room for everything
    // up to the next multiple of it.
    if problem == ALIGNED {
        return Err(damaged(offset, problem));
    }
    let lost = end_of_content(&bytes[offset..]);
    if lost > 0 {
        tracing::warn!(
            file = %path.display(),
            offset,
            lost_bytes = lost,
            problem,
            "the log ends with an incomplete record, which was never acknowledged; it is cut off"
        );
    }
    // The engine cuts off records that it cannot read, but reads the entries of all records except the last only on demand.
    if offset >= header.bytes && begins(offset, header.signature) {
        cut_off(path, offset).map_err(|error| io("Cutting off an incomplete record", path, &error))?;
    }
    Ok(())
}

fn cut_off(path: &Path, offset: usize) -> std::io::Result<()> {
    let file = fs::OpenOptions::new().write(true).open(path)?;
    file.set_len(offset as u64)?;
    file.sync_all()
}

/// The engine signs with the lower half of the file's number.
fn signature_of(number: u64) -> u32 {
    (number & u64::from(u32::MAX)) as u32
}

const ALIGNED: &str = "the file's header names an alignment, which is never used";

fn verify_header(bytes: &[u8], number: u64) -> Result<FileHeader, &'static str> {
    let rest = bytes.strip_prefix(MAGIC).ok_or("the file does not start as a log file")?;
    let (version, rest) = rest.split_first_chunk().ok_or("the file's header is too short")?;
    match (u64::from_be_bytes(*version), rest.first_chunk::<8>()) {
        (1, _) => Ok(FileHeader { bytes: UNSIGNED_HEADER_BYTES, signature: 0 }),
        (2, Some([0, 0, 0, 0, 0, 0, 0, 0])) => {
            Ok(FileHeader { bytes: FILE_HEADER_BYTES, signature: signature_of(number) })
        }
        (2, Some(_)) => Err(ALIGNED),
        (2, None) => Err("the file's header is too short"),
        _ => Err("the file's header names another version"),
    }
}

/// Verifies the record at the start of the bytes; returns its length.
fn verify_record(bytes: &[u8], signature: u32) -> Result<usize, &'static str> {
    let (length, entries) = verify_items(bytes, signature)?;
    if !entries.is_empty() {
        verify_checksum(entries, 0).map_err(|()| "the entries do not match their checksum")?;
    }
    Ok(length)
}

/// Verifies a record without its entries; returns its length and the unverified entries.
fn verify_items(bytes: &[u8], signature: u32) -> Result<(usize, &[u8]), &'static str> {
    let header = bytes.first_chunk::<RECORD_HEADER_BYTES>().ok_or("the record's header is too short")?;
    let (length, items) = header.split_at(8);
    let as_number = |bytes: &[u8]| u64::from_be_bytes(bytes.try_into().expect("the header was split into halves"));
    let length = as_number(length);
    // No checksum covers this byte. Taken as it is, the entries would be unpacked to a length that their content happens to say.
    if length & 0xff != 0 {
        return Err("the record's header names a compression, which is never used");
    }
    let in_file = |number: u64| usize::try_from(number).ok().filter(|number| *number <= bytes.len());
    let length = in_file(length >> 8).ok_or("the record is longer than the file")?;
    let items = in_file(as_number(items)).filter(|items| (RECORD_HEADER_BYTES..=length).contains(items));
    let items = items.ok_or("the record's header does not fit together")?;
    verify_checksum(&bytes[items..length], signature).map_err(|()| "the record does not match its checksum")?;
    Ok((length, &bytes[RECORD_HEADER_BYTES..items]))
}

fn verify_checksum(bytes: &[u8], signature: u32) -> Result<(), ()> {
    let (content, checksum) = bytes.split_last_chunk::<CHECKSUM_BYTES>().ok_or(())?;
    if content.is_empty() || crc32fast::hash(content) != u32::from_le_bytes(*checksum) ^ signature {
        return Err(());
    }
    Ok(())
}
