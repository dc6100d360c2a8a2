//! Finding out what is there after a restart.

use std::collections::VecDeque;
use std::io;

use super::format::{self, Frame, HEADER_BYTES, RecordLogError};
use super::{RecordLogOptions, Segment, SegmentFile};

pub(super) const EXTENSION: &str = "records";

/// Reads the segments, cuts off what a crash left half written, and leaves at least one segment.
pub(super) fn recover(
    options: &RecordLogOptions,
    checkpoint_position: u64,
) -> Result<VecDeque<Segment>, RecordLogError> {
    let directory = &options.directory;
    options.files.create_directory(directory).map_err(|error| RecordLogError::io("create", directory, error))?;
    let mut segments = VecDeque::from(list(options)?);
    remove_behind_a_lost_segment(options, &mut segments, checkpoint_position)?;
    let bases: Vec<u64> = segments.iter().map(|segment| segment.base).collect();
    for index in 0..segments.len() {
        let next_base = bases.get(index + 1).copied();
        // What is behind the checkpoint may never have reached the disk; what is before was synced.
        if next_base.is_some_and(|next| next <= checkpoint_position) {
            let segment = &mut segments[index];
            segment.last = next_base.expect("just compared");
            segment.synced_bytes = segment.length_bytes;
            continue;
        }
        let complete = scan(options, &mut segments[index])?;
        let reaches_next = next_base.is_none_or(|next| next == segments[index].last);
        if let Some((offset, problem)) = complete.err().or_else(|| gap(&segments[index], reaches_next)) {
            cut_off(options, &mut segments, index, offset, &problem, checkpoint_position)?;
            break;
        }
    }
    if segments.is_empty() {
        segments.push_back(create_segment(options, checkpoint_position)?.1);
    }
    Ok(segments)
}

/// The first segment begins no later than the checkpoint. If it does not, a power loss took it before it was synced, and
/// kept what was written later: everything behind the checkpoint is derived again, or readers would never get what is lost.
fn remove_behind_a_lost_segment(
    options: &RecordLogOptions,
    segments: &mut VecDeque<Segment>,
    checkpoint_position: u64,
) -> Result<(), RecordLogError> {
    let Some(first) = segments.front().filter(|first| first.base > checkpoint_position) else { return Ok(()) };
    tracing::info!(
        partition = %options.partition, file = %first.path.display(), checkpoint_position,
        "removing unsynced record segments behind one that a crash took; they are derived again from the log"
    );
    // From the end: what a crash leaves of this is again a beginning without a gap, or the same as before.
    while let Some(last) = segments.pop_back() {
        options.files.remove(&last.path).map_err(|error| RecordLogError::io("delete", &last.path, error))?;
    }
    Ok(())
}

fn gap(segment: &Segment, reaches_next: bool) -> Option<(u64, String)> {
    (!reaches_next).then(|| (segment.length_bytes, "the records up to the next segment are missing".to_owned()))
}

/// Creates the segment behind the record `base`.
pub(super) fn create_segment(
    options: &RecordLogOptions,
    base: u64,
) -> Result<(Box<dyn SegmentFile>, Segment), RecordLogError> {
    let path = options.directory.join(format!("{base:020}.{EXTENSION}"));
    let header = format::encode_header(options.partition, base);
    let create = || {
        let file = options.files.create(&path)?;
        file.write_all_at(&header, 0)?;
        Ok(file)
    };
    let file = create().map_err(|error| {
        // On a full disk the file may be there without its header. If it cannot be removed, the next start does it.
        let _ = options.files.remove(&path);
        RecordLogError::io("create", &path, error)
    })?;
    let length_bytes = HEADER_BYTES as u64;
    let segment = Segment { path, base, last: base, length_bytes, synced_bytes: 0, sync_failed: false };
    Ok((file, segment))
}

/// The segments in order, by their headers.
fn list(options: &RecordLogOptions) -> Result<Vec<Segment>, RecordLogError> {
    let failed = |error| RecordLogError::io("list", &options.directory, error);
    let mut segments = Vec::new();
    for path in options.files.list(&options.directory).map_err(failed)? {
        if path.extension().is_none_or(|extension| extension != EXTENSION) {
            continue;
        }
        let content = options.files.open(&path).and_then(|file| {
            let length = file.length()?;
            Ok((read(&*file, length.min(HEADER_BYTES as u64))?, length))
        });
        let (header, length_bytes) = content.map_err(|error| RecordLogError::io("read", &path, error))?;
        match format::decode_header(&header, options.partition) {
            Ok(base) => {
                segments.push(Segment { path, base, last: base, length_bytes, synced_bytes: 0, sync_failed: false });
            }
            // A crash right after the file was created: nothing was in it yet.
            Err(_) if header.len() < HEADER_BYTES || header.iter().all(|byte| *byte == 0) => {
                tracing::info!(file = %path.display(), "removing a record segment that a crash left without header");
                options.files.remove(&path).map_err(|error| RecordLogError::io("delete", &path, error))?;
            }
            Err(problem) => {
                return Err(RecordLogError::NotASegment { path, partition: options.partition, problem });
            }
        }
    }
    segments.sort_by_key(|segment| segment.base);
    Ok(segments)
}

/// Reads a whole segment and notes where its last complete record ends; the error says where and why it ends early.
fn scan(options: &RecordLogOptions, segment: &mut Segment) -> Result<Result<(), (u64, String)>, RecordLogError> {
    let bytes = options.files.open(&segment.path).and_then(|file| read(&*file, file.length()?));
    let bytes = bytes.map_err(|error| RecordLogError::io("read", &segment.path, error))?;
    let mut offset = HEADER_BYTES;
    let mut end = Ok(());
    while offset < bytes.len() {
        match format::decode_frame(&bytes[offset..], true) {
            Frame::Complete { position, frame_bytes, .. } if position > segment.last => {
                segment.last = position;
                offset += frame_bytes;
            }
            Frame::Complete { .. } => end = Err("positions do not grow".to_owned()),
            Frame::Partial { .. } => end = Err("the last record is incomplete".to_owned()),
            Frame::Damaged { problem } => end = Err(problem.to_owned()),
        }
        if end.is_err() {
            break;
        }
    }
    segment.length_bytes = offset as u64;
    Ok(end.map_err(|problem| (offset as u64, problem)))
}

/// Ends the stream at a place and removes what is behind it; the log derives it again.
fn cut_off(
    options: &RecordLogOptions,
    segments: &mut VecDeque<Segment>,
    index: usize,
    offset: u64,
    problem: &str,
    checkpoint_position: u64,
) -> Result<(), RecordLogError> {
    let (partition, segment) = (options.partition, &segments[index]);
    if segment.last < checkpoint_position {
        tracing::error!(
            %partition, file = %segment.path.display(), offset, problem,
            "the record stream is damaged: records between positions {} and {} may be lost for exporters",
            segment.last, checkpoint_position
        );
    } else {
        tracing::info!(
            %partition, file = %segment.path.display(), offset, problem,
            "cutting off the unsynced end of the record stream; it is derived again from the log"
        );
    }
    for segment in segments.drain(index + 1..) {
        options.files.remove(&segment.path).map_err(|error| RecordLogError::io("delete", &segment.path, error))?;
    }
    // At once: the next start trusts a segment behind which another one begins at the checkpoint, and a power loss before
    // the next sync would bring back what is cut off here.
    let cut = options.files.open(&segments[index].path).and_then(|file| {
        file.set_length(offset)?;
        file.sync_data()
    });
    cut.map_err(|error| RecordLogError::io("truncate", &segments[index].path, error))
}

fn read(file: &dyn SegmentFile, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(length).map_err(io::Error::other)?];
    file.read_exact_at(&mut bytes, 0)?;
    Ok(bytes)
}
