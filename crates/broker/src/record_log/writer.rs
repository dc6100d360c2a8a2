//! Appending records.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use protocol::{IncarnationIntent, Payload, PurgeIntent, Record, RecordPlace, RecordSource, RecordType};

use super::format::{self, RECORD_LIMIT_BYTES, RecordLogError};
use super::write_back::PIECE_BYTES;
use super::{RecordLog, Segment, SegmentFile, recovery};

/// Appends to the last segment. Records are kept in memory until [`RecordWriter::flush`] succeeds.
#[derive(Debug)]
pub struct RecordWriter {
    log: Arc<RecordLog>,
    pub(crate) file: Box<dyn SegmentFile>,
    segment: Segment,
    frames: Vec<u8>,
    /// The largest record that is written.
    pub(super) record_limit_bytes: usize,
    /// Position and size of a record that no reader would accept.
    too_large: Option<(u64, usize)>,
    /// Records up to this position are in a segment, or in `frames`, or nobody reads them.
    seen: u64,
    /// Up to this position, records were derived since the start.
    derived: u64,
    /// The last record in `frames` or in the segment.
    last: RecordPlace,
    /// Bytes written since a piece was last announced.
    piece_bytes: u64,
    /// Where in `frames` the records of later incarnations begin.
    begins: VecDeque<Begins>,
}

/// A later incarnation begins.
#[derive(Debug, Clone, Copy)]
struct Begins {
    /// Its first byte in the frames that are not written.
    at: usize,
    /// The last record before it.
    behind: RecordPlace,
    incarnation: u64,
}

/// The incarnation that begins with a record: after a restore, or when the partition forgets everything.
fn raised_incarnation(record: &Record) -> Option<u64> {
    match &record.payload {
        Payload::Incarnation(IncarnationIntent::Raised, value) if record.record_type == RecordType::Event => {
            Some(value.incarnation)
        }
        Payload::Purge(PurgeIntent::Purged, value) => Some(value.incarnation),
        _ => None,
    }
}

impl RecordWriter {
    pub(super) fn open(log: Arc<RecordLog>, seen: u64) -> Result<Self, RecordLogError> {
        let segment = log.segments.lock().back().expect("there is always a segment").clone();
        let file = log.options.files.open(&segment.path);
        let file = file.map_err(|error| RecordLogError::io("open", &segment.path, error))?;
        Ok(RecordWriter {
            last: segment.last,
            log,
            file,
            segment,
            frames: Vec::new(),
            record_limit_bytes: RECORD_LIMIT_BYTES,
            too_large: None,
            seen,
            derived: 0,
            piece_bytes: 0,
            begins: VecDeque::new(),
        })
    }

    /// Adds a record; one that is already there (because it is derived again after a restart) is skipped.
    pub fn append(&mut self, record: &Record) {
        self.derived = self.derived.max(record.position);
        if record.position <= self.seen || self.too_large.is_some() || !self.log.options.is_read {
            return;
        }
        self.seen = record.position;
        if let Some(incarnation) = raised_incarnation(record) {
            // It is the first one of a later incarnation, which has segments of its own.
            self.begins.push_back(Begins { at: self.frames.len(), behind: self.last, incarnation });
        }
        self.last = record.place(self.incarnation());
        let encode = |out: &mut Vec<u8>| protocol::encode(record, out);
        let too_large = format::encode_frame(self.record_limit_bytes, &mut self.frames, encode).err();
        self.too_large = too_large.map(|bytes| (record.position, bytes));
    }

    /// The incarnation of what is added.
    fn incarnation(&self) -> u64 {
        self.begins.back().map_or(self.segment.base.incarnation, |begins| begins.incarnation)
    }

    /// The stream that it writes.
    pub(crate) fn log(&self) -> &Arc<RecordLog> {
        &self.log
    }

    /// Position of the last record that is written.
    pub fn last_position(&self) -> u64 {
        self.segment.last.position
    }

    /// Writes what was added. After an error nothing is lost: the next call tries again.
    pub fn flush(&mut self) -> Result<(), RecordLogError> {
        if let Some((position, bytes)) = self.too_large {
            // Readers would be stuck at it for ever.
            return Err(RecordLogError::TooLarge { partition: self.log.partition(), position, bytes });
        }
        if self.frames.is_empty() && self.begins.is_empty() {
            // What a restart found of the last command was derived again, and nothing behind it.
            if self.log.readable_position() < self.last.position && self.derived >= self.last.position {
                self.publish(self.last);
            }
            return Ok(());
        }
        while let Some(Begins { at, behind, incarnation }) = self.begins.front().copied() {
            self.write(at, behind)?;
            let source = RecordSource { incarnation, ..(*self.segment.source).clone() };
            self.roll(Arc::new(source))?;
            self.begins.pop_front();
        }
        self.write(self.frames.len(), self.last)?;
        if self.segment.length_bytes - self.segment.header_bytes >= self.log.options.segment_bytes {
            self.roll(self.segment.source.clone())?;
        }
        Ok(())
    }

    /// Writes the frames up to a place, which end with the record `last`.
    fn write(&mut self, length: usize, last: RecordPlace) -> Result<(), RecordLogError> {
        if length == 0 {
            return Ok(());
        }
        // Writing at a fixed place repeats a write that failed in the middle.
        let written = self.file.write_all_at(&self.frames[..length], self.segment.length_bytes);
        written.map_err(|error| RecordLogError::io("write to", &self.segment.path, error))?;
        self.segment.length_bytes += length as u64;
        self.segment.last = last;
        self.piece_bytes += length as u64;
        self.frames.drain(..length);
        self.begins.iter_mut().for_each(|begins| begins.at -= length);
        // A single huge batch must not keep its memory for ever.
        self.frames.shrink_to(1 << 20);
        {
            let mut segments = self.log.segments.lock();
            let current = segments.back_mut().expect("there is always a segment");
            current.length_bytes = self.segment.length_bytes;
            current.last = last;
        }
        self.publish(last);
        if self.piece_bytes >= PIECE_BYTES
            && let Some(write_back) = &self.log.options.write_back
        {
            self.piece_bytes = 0;
            let _ = write_back.try_send(());
        }
        Ok(())
    }

    /// Lets readers have the records up to the last one of a batch.
    pub(super) fn publish(&self, last: RecordPlace) {
        self.log.readable.store(last.position, Ordering::Release);
        for reader in &self.log.options.readers {
            // A full channel means that the reader already knows; a closed one, that it has ended.
            let _ = reader.try_send(());
        }
    }

    fn roll(&mut self, source: Arc<RecordSource>) -> Result<(), RecordLogError> {
        let (file, segment) =
            recovery::create_segment(&self.log.options, &source, self.segment.last, self.segment.end())?;
        let (partition, after) = (self.log.options.partition, segment.base.position);
        tracing::debug!(%partition, after, "a new segment of the record stream was begun");
        let mut segments = self.log.segments.lock();
        if self.segment.is_empty() {
            // The new one has its name, and took its place.
            segments.pop_back();
        }
        segments.push_back(segment.clone());
        drop(segments);
        self.file = file;
        self.segment = segment;
        Ok(())
    }
}
