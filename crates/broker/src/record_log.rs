//! The record stream of a partition, in segment files.
//!
//! Segments are appended to, one write per applied batch, which never waits for the disk: what a crash takes from the
//! end is derived again from the last checkpoint of the state and the log. So before a checkpoint of the state becomes
//! durable, the segments up to it are synced ([`RecordLog::sync`]). So that little is left to do then, a thread syncs
//! them in small pieces all the time ([`WriteBackThread`]): the log, which shares the disk, must not wait behind a
//! large one. Exporters read behind the writer; a segment is deleted once nothing needs it. Where nobody reads, nothing
//! is written.
//!
//! Records are numbered without a gap, and each segment says the number of the record before it, so that a reader knows
//! what is missing ([`Gap`]).

mod files;
mod format;
mod range;
mod reader;
mod recovery;
mod write_back;
mod writer;

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_channel::Sender;
use parking_lot::Mutex;
use protocol::{PartitionId, RecordPlace, RecordSource, Text};

use format::{Frame, Header};
use recovery::Recovered;

pub use files::{SegmentFile, SegmentFiles, SystemFiles};
pub use format::RecordLogError;
pub use range::SegmentsRange;
pub(crate) use range::{range, refuse_newer};
pub use reader::Gap;
pub(crate) use reader::{Answer, Next, Offer, Read, RecordReader};
pub(crate) use write_back::{RecordLogs, WriteBackThread};
pub use writer::RecordWriter;

/// How a record log is set up.
#[derive(Debug, Clone)]
pub struct RecordLogOptions {
    /// Whose records they are.
    pub partition: PartitionId,
    /// Where the segments are.
    pub directory: PathBuf,
    /// The file system of that directory.
    pub files: Arc<dyn SegmentFiles>,
    /// What makes the records, as readers of them know it.
    pub broker_version: Text,
    /// A segment of this size is followed by a new one.
    pub segment_bytes: u64,
    /// Whether anybody reads the records. If not, none is written: they could only be deleted again.
    pub is_read: bool,
    /// Told (without blocking) that there are new records.
    pub readers: Vec<Sender<()>>,
    /// Told (without blocking) that a piece was written that should be brought to the disk.
    pub write_back: Option<Sender<()>>,
}

#[cfg(test)]
impl RecordLogOptions {
    /// Records that are read, by readers that look for themselves.
    pub(crate) fn for_test(partition: PartitionId, directory: &std::path::Path, segment_bytes: u64) -> Self {
        Self {
            partition,
            directory: directory.to_owned(),
            files: Arc::new(SystemFiles),
            broker_version: protocol::BROKER_VERSION.into(),
            segment_bytes,
            is_read: true,
            readers: Vec::new(),
            write_back: None,
        }
    }
}

/// The segments of one partition, shared by the writer, the readers and the thread that syncs and deletes.
#[derive(Debug)]
pub struct RecordLog {
    options: RecordLogOptions,
    /// Oldest first; the last one is written to. Never empty.
    segments: Mutex<VecDeque<Segment>>,
    /// Position of the last record that readers can see, which is the last one of its command: some of them take it that no
    /// more comes of it. After a restart, those of the last command are hidden until they were derived again.
    readable: AtomicU64,
    /// The last record before those that were hidden at the start.
    before_uncertain: Option<RecordPlace>,
    /// Held by the thread that syncs: what one of them learns of a failure, the next one must know.
    syncing: Mutex<()>,
}

/// One file.
#[derive(Debug, Clone)]
struct Segment {
    path: PathBuf,
    /// Records of this segment have larger positions and numbers.
    base: RecordPlace,
    /// The last record of the segments before it. Records between it and `base` are missing.
    before: RecordPlace,
    source: Arc<RecordSource>,
    /// Its last record; `base` when it has none.
    last: RecordPlace,
    /// Where its first record begins.
    header_bytes: u64,
    /// Length up to the last complete record.
    length_bytes: u64,
    /// How much of it is known to be on disk.
    synced_bytes: u64,
    /// The operating system may have forgotten what it could not bring to the disk behind `synced_bytes`.
    sync_failed: bool,
}

impl Segment {
    fn new(path: PathBuf, header: Header, header_bytes: usize, length_bytes: u64) -> Self {
        let Header { source, base, before } = header;
        let header_bytes = header_bytes as u64;
        Segment {
            path,
            base,
            before,
            source,
            last: base,
            header_bytes,
            length_bytes,
            synced_bytes: 0,
            sync_failed: false,
        }
    }

    fn is_empty(&self) -> bool {
        self.length_bytes <= self.header_bytes
    }

    /// The last record up to the end of this segment, in whichever segment it is. What follows an empty one replaces it.
    fn end(&self) -> RecordPlace {
        if self.is_empty() { self.before } else { self.last }
    }
}

impl RecordLog {
    /// Opens the record stream of a partition whose state is durable up to `checkpoint`.
    pub fn open(
        options: RecordLogOptions,
        checkpoint: RecordPlace,
    ) -> Result<(Arc<RecordLog>, RecordWriter), RecordLogError> {
        let Recovered { mut segments, before_uncertain } = recovery::recover(&options, checkpoint)?;
        let newest = segments.back().expect("recovery leaves a segment");
        if let Some((next, replaces)) = segment_behind(&options, newest, checkpoint)? {
            if replaces {
                segments.pop_back();
            }
            segments.push_back(next);
        }
        let last = segments.back().expect("there is always a segment").last;
        let log = Arc::new(RecordLog {
            options,
            segments: Mutex::new(segments),
            readable: AtomicU64::new(before_uncertain.unwrap_or(last).position),
            before_uncertain,
            syncing: Mutex::new(()),
        });
        let writer = RecordWriter::open(log.clone(), last.position.max(checkpoint.position))?;
        Ok((log, writer))
    }

    /// Goes on behind the last record of a state that took the place of the one whose records there are. What was never derived
    /// here is missing for readers, which see that by the numbers of the records ([`Gap`]). The writer before must be gone.
    ///
    /// # Errors
    /// When a file cannot be written or synced. Nothing has changed for readers then.
    pub fn go_on_behind(self: &Arc<Self>, checkpoint: RecordPlace) -> Result<RecordWriter, RecordLogError> {
        // The end of what there is would look like damage if a power loss tore it later.
        self.sync()?;
        let _alone = self.syncing.lock();
        let newest = self.segments.lock().back().expect("there is always a segment").clone();
        let next = segment_behind(&self.options, &newest, checkpoint)?;
        let last = {
            let mut segments = self.segments.lock();
            if let Some((next, replaces)) = next {
                if replaces {
                    segments.pop_back();
                }
                segments.push_back(next);
            }
            segments.back().expect("there is always a segment").last
        };
        let writer = RecordWriter::open(self.clone(), last.position.max(checkpoint.position))?;
        writer.publish(last);
        Ok(writer)
    }

    /// Makes durable what there is of the records of a state that is durable up to `checkpoint`, before a state that another
    /// replica sent takes its place: what lies between is never derived here, so an end that a power loss tears later would
    /// look like damage.
    ///
    /// # Errors
    /// When the records cannot be read or synced. The state must stay then.
    pub fn settle(options: RecordLogOptions, checkpoint: RecordPlace) -> Result<(), RecordLogError> {
        let (log, _) = RecordLog::open(options, checkpoint)?;
        log.sync()
    }

    /// The partition.
    pub fn partition(&self) -> PartitionId {
        self.options.partition
    }

    /// The incarnation of the partition whose records are written now.
    pub fn incarnation(&self) -> u64 {
        self.segments.lock().back().expect("there is always a segment").base.incarnation
    }

    /// The record before the first one there is.
    pub fn beginning(&self) -> RecordPlace {
        self.segments.lock().front().expect("there is always a segment").base
    }

    /// Where to go on for who has read up to a place. What was read beyond the beginning of a later incarnation is not part of
    /// the stream any more.
    pub fn resume_after(&self, place: RecordPlace) -> RecordPlace {
        let segments = self.segments.lock();
        let later = segments.iter().find(|segment| segment.base.incarnation > place.incarnation);
        match later {
            Some(later) if later.base.position < place.position => later.base,
            _ => place,
        }
    }

    /// The first records that are not in the stream any more for who has read up to a place; none when nothing is missing.
    pub fn missing_after(&self, place: RecordPlace) -> Option<Gap> {
        let mut after = self.resume_after(place);
        for segment in &*self.segments.lock() {
            if segment.base > after && segment.base.number > after.number {
                return Some(Gap { after, up_to: segment.base });
            }
            after = after.max(segment.last);
        }
        None
    }

    /// Position of the last record that is to be read.
    fn readable_position(&self) -> u64 {
        self.readable.load(Ordering::Acquire)
    }

    /// The last record that is to be read.
    pub fn last_place(&self) -> RecordPlace {
        let hiding = self.before_uncertain.filter(|before| before.position == self.readable_position());
        hiding.unwrap_or_else(|| self.segments.lock().back().expect("there is always a segment").last)
    }

    /// Bytes that are written and not known to be on the disk.
    fn unsynced_bytes(&self) -> u64 {
        let segments = self.segments.lock();
        segments.iter().map(|segment| segment.length_bytes.saturating_sub(segment.synced_bytes)).sum()
    }

    /// Makes everything durable that is written now. After an error it can be tried again.
    pub fn sync(&self) -> Result<(), RecordLogError> {
        let _alone = self.syncing.lock();
        let dirty: Vec<Segment> = {
            let segments = self.segments.lock();
            segments.iter().filter(|segment| segment.synced_bytes < segment.length_bytes).cloned().collect()
        };
        if dirty.iter().any(|segment| segment.synced_bytes == 0) {
            let (files, directory) = (&self.options.files, &self.options.directory);
            files.sync_directory(directory).map_err(|error| RecordLogError::io("sync", directory, error))?;
        }
        for segment in dirty {
            if segment.sync_failed {
                self.write_again(&segment)?;
            }
            let synced = self.options.files.open(&segment.path).and_then(|file| file.sync_data());
            let mut segments = self.segments.lock();
            if let Some(current) = segments.iter_mut().find(|current| current.base == segment.base) {
                current.sync_failed = synced.is_err();
                if synced.is_ok() {
                    current.synced_bytes = current.synced_bytes.max(segment.length_bytes);
                }
            }
            synced.map_err(|error| RecordLogError::io("sync", &segment.path, error))?;
        }
        Ok(())
    }

    /// Writes again what was not synced. After a failed sync the system may take it for written, and answer the next sync
    /// without doing anything. What is read back here proves itself by its checksums.
    fn write_again(&self, segment: &Segment) -> Result<(), RecordLogError> {
        let io = |error| RecordLogError::io("write again", &segment.path, error);
        let file = self.options.files.open(&segment.path).map_err(io)?;
        let length = usize::try_from(segment.length_bytes - segment.synced_bytes).expect("a segment fits into memory");
        let mut bytes = vec![0; length];
        file.read_exact_at(&mut bytes, segment.synced_bytes).map_err(io)?;
        let damaged = |offset: usize, problem: &str| RecordLogError::Damaged {
            path: segment.path.clone(),
            offset: segment.synced_bytes + offset as u64,
            problem: problem.to_owned(),
        };
        let mut offset = 0;
        if segment.synced_bytes == 0 {
            offset = Header::decode(&bytes, self.options.partition).map_err(|problem| damaged(0, &problem))?.1;
        }
        while offset < bytes.len() {
            match format::decode_frame(&bytes[offset..], true) {
                Frame::Complete { frame_bytes, .. } => offset += frame_bytes,
                Frame::Partial { .. } => return Err(damaged(offset, "a record is incomplete")),
                Frame::Damaged { problem } => return Err(damaged(offset, problem)),
            }
        }
        file.write_all_at(&bytes, segment.synced_bytes).map_err(io)
    }

    /// Deletes the segments that end before `position`, but never the last one. Returns how many.
    pub fn delete_up_to(&self, position: u64) -> Result<usize, RecordLogError> {
        let mut deleted = 0;
        loop {
            let path = {
                let segments = self.segments.lock();
                match segments.front() {
                    Some(first) if segments.len() > 1 && first.last.position <= position => first.path.clone(),
                    _ => return Ok(deleted),
                }
            };
            // The file goes first: a segment that is not in the list any more must not come back with the next start.
            match self.options.files.remove(&path) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(RecordLogError::io("delete", &path, error)),
            }
            self.segments.lock().pop_front();
            deleted += 1;
        }
    }

    /// Bytes of the segments that hold something behind `position`.
    pub fn bytes_behind(&self, position: u64) -> u64 {
        let segments = self.segments.lock();
        segments.iter().filter(|segment| segment.last.position > position).map(|segment| segment.length_bytes).sum()
    }

    /// The segment that contains, or will contain, the record after `position`.
    fn segment_for(&self, position: u64) -> Segment {
        let segments = self.segments.lock();
        let behind = segments.iter().rev().find(|segment| segment.base.position <= position);
        behind.or(segments.front()).expect("there is always a segment").clone()
    }

    /// The segment after the one with this base.
    fn segment_after(&self, base: RecordPlace) -> Option<Segment> {
        self.segments.lock().iter().find(|segment| segment.base > base).cloned()
    }

    /// How far the segment with this base can be read, and whether it is complete; none when it was deleted.
    fn readable(&self, base: RecordPlace) -> Option<(u64, bool)> {
        let segments = self.segments.lock();
        let index = segments.iter().position(|segment| segment.base == base)?;
        Some((segments[index].length_bytes, index + 1 < segments.len()))
    }
}

/// The segment that follows the newest one when the state ends with the record `checkpoint`, and whether it takes the place of that;
/// none when the newest one goes on.
fn segment_behind(
    options: &RecordLogOptions,
    newest: &Segment,
    checkpoint: RecordPlace,
) -> Result<Option<(Segment, bool)>, RecordLogError> {
    let source = recovery::source(options, checkpoint.incarnation.max(newest.base.incarnation));
    // There was no reader before, or the end is lost: what comes now does not follow what is there.
    let is_behind = options.is_read && newest.last.number < checkpoint.number;
    if !is_behind && *newest.source == *source {
        return Ok(None);
    }
    let base = if is_behind { checkpoint } else { newest.last };
    if newest.is_empty() && newest.base.position != base.position {
        // The stream does not begin with it any more. (One with the same name is written over.)
        let removed = options.files.remove(&newest.path);
        removed.map_err(|error| RecordLogError::io("delete", &newest.path, error))?;
    }
    Ok(Some((recovery::create_segment(options, &source, base, newest.end())?.1, newest.is_empty())))
}

#[cfg(test)]
mod tests;
