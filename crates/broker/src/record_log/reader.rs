//! Reading records behind the writer.

use std::sync::Arc;

use protocol::Record;

use super::format::{self, Frame, HEADER_BYTES, RecordLogError};
use super::{RecordLog, Segment, SegmentFile};

const READ_BYTES: usize = 256 << 10;

/// Reads the records of a partition in order, from any position on.
#[derive(Debug)]
pub(crate) struct RecordReader {
    log: Arc<RecordLog>,
    position: u64,
    place: Option<Place>,
}

#[derive(Debug)]
struct Place {
    file: Box<dyn SegmentFile>,
    segment: Segment,
    /// Where in the file `buffer` starts.
    offset: u64,
    buffer: Vec<u8>,
    /// How much of `buffer` is consumed.
    consumed: usize,
}

impl RecordReader {
    /// A reader of the records with positions larger than `position`.
    pub fn after(log: Arc<RecordLog>, position: u64) -> Self {
        RecordReader { log, position, place: None }
    }

    /// The next record, if one is written.
    pub fn next(&mut self) -> Result<Option<Record>, RecordLogError> {
        loop {
            if self.position >= self.log.last_position() {
                return Ok(None);
            }
            let mut place = match self.place.take() {
                Some(place) => place,
                None => Place::open(&self.log, self.log.segment_for(self.position))?,
            };
            let Some((readable, complete)) = self.log.readable(place.segment.base) else {
                // Deleted: everything in it was acknowledged, so go on behind it.
                self.position = self.position.max(place.segment.last);
                continue;
            };
            match place.read(readable)? {
                Some(record) => {
                    self.place = Some(place);
                    if record.position > self.position {
                        self.position = record.position;
                        return Ok(Some(record));
                    }
                }
                None if complete => {
                    let after = self.log.segment_after(place.segment.base);
                    self.place = after.map(|after| Place::open(&self.log, after)).transpose()?;
                }
                None => {
                    self.place = Some(place);
                    return Ok(None);
                }
            }
        }
    }
}

impl Place {
    fn open(log: &RecordLog, segment: Segment) -> Result<Place, RecordLogError> {
        let file = log.options.files.open(&segment.path);
        let file = file.map_err(|error| RecordLogError::io("open", &segment.path, error))?;
        Ok(Place { file, segment, offset: HEADER_BYTES as u64, buffer: Vec::new(), consumed: 0 })
    }

    /// The next record of the segment, of which `readable` bytes are complete.
    fn read(&mut self, readable: u64) -> Result<Option<Record>, RecordLogError> {
        let mut needed_bytes = format::FRAME_HEADER_BYTES;
        loop {
            let offset = self.offset + self.consumed as u64;
            match format::decode_frame(&self.buffer[self.consumed..], true) {
                Frame::Complete { record, frame_bytes, .. } => {
                    let record = protocol::decode(record);
                    let record = record.map_err(|error| self.damaged(offset, &error.to_string()))?;
                    self.consumed += frame_bytes;
                    return Ok(Some(record));
                }
                Frame::Damaged { problem } => return Err(self.damaged(offset, problem)),
                Frame::Partial { needed_bytes: needed } => needed_bytes = needed_bytes.max(needed),
            }
            if offset >= readable {
                return Ok(None);
            }
            if offset + needed_bytes as u64 > readable {
                return Err(self.damaged(offset, "a record is longer than the file"));
            }
            self.fill(readable, needed_bytes)?;
        }
    }

    fn fill(&mut self, readable: u64, needed_bytes: usize) -> Result<(), RecordLogError> {
        self.buffer.drain(..self.consumed);
        self.offset += self.consumed as u64;
        self.consumed = 0;
        let filled = self.buffer.len();
        let wanted = needed_bytes.max(READ_BYTES);
        let left = usize::try_from(readable - self.offset).unwrap_or(usize::MAX);
        self.buffer.resize(wanted.min(left), 0);
        let read = self.file.read_exact_at(&mut self.buffer[filled..], self.offset + filled as u64);
        read.map_err(|error| {
            self.buffer.truncate(filled);
            RecordLogError::io("read", &self.segment.path, error)
        })
    }

    fn damaged(&self, offset: u64, problem: &str) -> RecordLogError {
        RecordLogError::Damaged { path: self.segment.path.clone(), offset, problem: problem.to_owned() }
    }
}
