//! Finding out what is there after a restart.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use protocol::{RecordPlace, RecordSource};

use super::format::{self, Frame, HEADER_BYTES, HEADER_LIMIT_BYTES, Header, RecordLogError};
use super::{RecordLogOptions, Segment, SegmentFile};

pub(super) const EXTENSION: &str = "records";

/// What is there after a restart.
pub(super) struct Recovered {
    /// At least one.
    pub segments: VecDeque<Segment>,
    /// When the last command may have had more records than are there: what comes before it.
    pub before_uncertain: Option<RecordPlace>,
}

/// Reads the segments, cuts off what a crash left half written, and leaves at least one segment.
pub(super) fn recover(options: &RecordLogOptions, checkpoint: RecordPlace) -> Result<Recovered, RecordLogError> {
    let directory = &options.directory;
    options.files.create_directory(directory).map_err(|error| RecordLogError::io("create", directory, error))?;
    let mut segments = VecDeque::from(list(options)?);
    forget_what_a_restore_forgot(options, &mut segments, checkpoint)?;
    remove_behind_a_lost_segment(options, &mut segments, checkpoint)?;
    let begins: Vec<(RecordPlace, RecordPlace)> = segments.iter().map(|of| (of.base, of.before)).collect();
    let mut last_command = None;
    for index in 0..segments.len() {
        let next = begins.get(index + 1).copied();
        // What is behind the checkpoint may never have reached the disk; what is before was synced.
        if let Some((_, before)) = next.filter(|(base, _)| base.position <= checkpoint.position) {
            let segment = &mut segments[index];
            // An empty one that a crash left in place of the next may begin later.
            segment.last = RecordPlace { incarnation: segment.base.incarnation, ..before }.max(segment.base);
            segment.synced_bytes = segment.length_bytes;
            last_command = None;
            continue;
        }
        let complete = scan(options, &mut segments[index], u64::MAX, &mut last_command)?;
        let reaches_next = next.is_none_or(|(base, _)| base.number == segments[index].last.number);
        if let Some((offset, problem)) = complete.err().or_else(|| gap(&segments[index], reaches_next)) {
            cut_off(options, &mut segments, index, offset, &problem, checkpoint)?;
            break;
        }
    }
    if segments.is_empty() {
        let source = source(options, checkpoint.incarnation);
        segments.push_back(create_segment(options, &source, checkpoint, checkpoint)?.1);
    }
    // A crash may have taken some records of the last command, and nothing in the others shows that. They are derived again,
    // unless the state holds them. (They can be in two segments: a new version begins one behind what a crash left.)
    let before_uncertain = last_command.map(|(_, before)| before).filter(|before| before.number >= checkpoint.number);
    Ok(Recovered { segments, before_uncertain })
}

/// What is written now.
pub(super) fn source(options: &RecordLogOptions, incarnation: u64) -> Arc<RecordSource> {
    let RecordLogOptions { partition, broker_version, .. } = options;
    let broker_version = broker_version.clone();
    Arc::new(RecordSource { partition: *partition, incarnation, broker_version })
}

/// Records of earlier incarnations count up to the place where the present one began. What was behind that was forgotten when
/// an older state was restored, and its positions are given to other records now.
fn forget_what_a_restore_forgot(
    options: &RecordLogOptions,
    segments: &mut VecDeque<Segment>,
    checkpoint: RecordPlace,
) -> Result<(), RecordLogError> {
    let (partition, incarnation) = (options.partition, checkpoint.incarnation);
    // One that begins behind the state is derived again from the log.
    let is_later = |base: RecordPlace| base.incarnation > incarnation && base.position < checkpoint.position;
    if let Some(later) = segments.iter().find(|segment| is_later(segment.base)) {
        let (path, found) = (later.path.clone(), later.base.incarnation);
        return Err(RecordLogError::LaterIncarnation { path, partition, found, incarnation });
    }
    let present = segments.iter().find(|segment| segment.base.incarnation == incarnation);
    let begin = present.map_or(checkpoint.position, |first| first.base.position);
    let is_forgotten = |segment: &Segment| segment.base.incarnation < incarnation && segment.base.position >= begin;
    for index in (0..segments.len()).rev() {
        if is_forgotten(&segments[index]) {
            let path = &segments[index].path;
            tracing::info!(%partition, file = %path.display(), "removing records that a restore of the state forgot");
            options.files.remove(path).map_err(|error| RecordLogError::io("delete", path, error))?;
            segments.remove(index);
        }
    }
    let has_present = segments.iter().any(|segment| segment.base.incarnation == incarnation);
    let last = segments.back_mut().filter(|last| !has_present && last.base.incarnation < incarnation);
    let Some(last) = last else { return Ok(()) };
    let length = last.length_bytes;
    // Damage before the place is found again, and told, when everything is read.
    if scan(options, last, begin, &mut None)?.is_ok() && last.length_bytes < length {
        tracing::info!(%partition, file = %last.path.display(), "cutting off records that a restore of the state forgot");
        truncate(options, last, last.length_bytes)?;
    }
    Ok(())
}

/// The first segment begins no later than the checkpoint. If it does not, a power loss took it before it was synced, and
/// kept what was written later: everything behind the checkpoint is derived again, or readers would never get what is lost.
fn remove_behind_a_lost_segment(
    options: &RecordLogOptions,
    segments: &mut VecDeque<Segment>,
    checkpoint: RecordPlace,
) -> Result<(), RecordLogError> {
    let Some(first) = segments.front().filter(|first| first.base.position > checkpoint.position) else { return Ok(()) };
    tracing::info!(
        partition = %options.partition, file = %first.path.display(), checkpoint_position = checkpoint.position,
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

/// Creates the segment after the record `base`, when the segments until now end with the record `before`.
pub(super) fn create_segment(
    options: &RecordLogOptions,
    source: &Arc<RecordSource>,
    base: RecordPlace,
    before: RecordPlace,
) -> Result<(Box<dyn SegmentFile>, Segment), RecordLogError> {
    let path = options.directory.join(format!("{:020}.{EXTENSION}", base.position));
    let header = Header::new(source.clone(), base, before);
    let create = || {
        let file = options.files.create(&path)?;
        file.write_all_at(&header.encode(), 0)?;
        Ok(file)
    };
    let file = create().map_err(|error| {
        // On a full disk the file may be there without its header. If it cannot be removed, the next start does it.
        let _ = options.files.remove(&path);
        RecordLogError::io("create", &path, error)
    })?;
    Ok((file, Segment::new(path, header, HEADER_BYTES, HEADER_BYTES as u64)))
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
            Ok((read(&*file, length.min(HEADER_LIMIT_BYTES as u64))?, length))
        });
        let (beginning, length_bytes) = content.map_err(|error| RecordLogError::io("read", &path, error))?;
        match Header::decode(&beginning, options.partition) {
            Ok((header, header_bytes)) => segments.push(Segment::new(path, header, header_bytes, length_bytes)),
            // A crash right after the file was created: nothing was in it yet.
            Err(_) if beginning.len() < HEADER_BYTES || beginning[..HEADER_BYTES].iter().all(|byte| *byte == 0) => {
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

/// The source position of a command, and the record before the first one of it.
type LastCommand = Option<(u64, RecordPlace)>;

/// Reads a whole segment, or its records up to a position, and notes where the last complete one ends, and of which command it
/// is; the error says where and why it ends early.
fn scan(
    options: &RecordLogOptions,
    segment: &mut Segment,
    last_position: u64,
    last_command: &mut LastCommand,
) -> Result<Result<(), (u64, String)>, RecordLogError> {
    let bytes = options.files.open(&segment.path).and_then(|file| read(&*file, file.length()?));
    let bytes = bytes.map_err(|error| RecordLogError::io("read", &segment.path, error))?;
    segment.last = segment.base;
    let mut offset = usize::try_from(segment.header_bytes).expect("a header is short");
    let mut end = Ok(());
    while offset < bytes.len() {
        let last = segment.last;
        match format::decode_frame(&bytes[offset..], true) {
            Frame::Complete { position, .. } if position > last_position => break,
            Frame::Complete { position, number, source_position, frame_bytes, .. }
                if position > last.position && number == last.number.saturating_add(1) =>
            {
                if last_command.is_none_or(|(command, _)| command != source_position) {
                    *last_command = Some((source_position, last));
                }
                segment.last = RecordPlace { position, number, ..last };
                offset += frame_bytes;
            }
            Frame::Complete { .. } => end = Err("a record does not follow the one before it".to_owned()),
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
    checkpoint: RecordPlace,
) -> Result<(), RecordLogError> {
    let (partition, segment) = (options.partition, &segments[index]);
    let (last, held) = (segment.last.number, checkpoint.number);
    if last < held {
        tracing::error!(
            %partition, file = %segment.path.display(), offset, problem,
            "the record stream is damaged: records {} to {held} (positions {} to {}) are lost for exporters",
            last + 1, segment.last.position + 1, checkpoint.position
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
    truncate(options, &segments[index], offset)
}

fn truncate(options: &RecordLogOptions, segment: &Segment, length: u64) -> Result<(), RecordLogError> {
    let cut = options.files.open(&segment.path).and_then(|file| {
        file.set_length(length)?;
        file.sync_data()
    });
    cut.map_err(|error| RecordLogError::io("truncate", &segment.path, error))
}

fn read(file: &dyn SegmentFile, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(length).map_err(io::Error::other)?];
    file.read_exact_at(&mut bytes, 0)?;
    Ok(bytes)
}
