//! Appending records.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use protocol::Record;

use super::format::{self, HEADER_BYTES, RECORD_LIMIT_BYTES, RecordLogError};
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
    /// Position of the last record in `frames` or in a segment.
    last: u64,
    /// Bytes written since a piece was last announced.
    piece_bytes: u64,
}

impl RecordWriter {
    pub(super) fn open(log: Arc<RecordLog>, last: u64) -> Result<Self, RecordLogError> {
        let segment = log.segments.lock().back().expect("there is always a segment").clone();
        let file = log.options.files.open(&segment.path);
        let file = file.map_err(|error| RecordLogError::io("open", &segment.path, error))?;
        Ok(RecordWriter {
            log,
            file,
            segment,
            frames: Vec::new(),
            record_limit_bytes: RECORD_LIMIT_BYTES,
            too_large: None,
            last,
            piece_bytes: 0,
        })
    }

    /// Adds a record; one that is already there (because it is derived again after a restart) is skipped.
    pub fn append(&mut self, record: &Record) {
        if record.position <= self.last || !self.log.options.is_read {
            return;
        }
        self.add(record.position, |out| protocol::encode(record, out));
    }

    fn add(&mut self, position: u64, record: impl FnOnce(&mut Vec<u8>)) {
        if self.too_large.is_some() {
            return;
        }
        self.last = position;
        let too_large = format::encode_frame(position, self.record_limit_bytes, &mut self.frames, record).err();
        self.too_large = too_large.map(|bytes| (position, bytes));
    }

    /// Position of the last record that is written.
    pub fn last_position(&self) -> u64 {
        self.log.last_position()
    }

    /// Writes what was added. After an error nothing is lost: the next call tries again.
    pub fn flush(&mut self) -> Result<(), RecordLogError> {
        if let Some((position, bytes)) = self.too_large {
            // Readers would be stuck at it for ever.
            return Err(RecordLogError::TooLarge { partition: self.log.partition(), position, bytes });
        }
        if self.frames.is_empty() {
            return Ok(());
        }
        // Writing at a fixed place repeats a write that failed in the middle.
        let written = self.file.write_all_at(&self.frames, self.segment.length_bytes);
        written.map_err(|error| RecordLogError::io("write to", &self.segment.path, error))?;
        self.segment.length_bytes += self.frames.len() as u64;
        self.segment.last = self.last;
        self.piece_bytes += self.frames.len() as u64;
        self.frames.clear();
        // A single huge batch must not keep its memory for ever.
        self.frames.shrink_to(1 << 20);
        {
            let mut segments = self.log.segments.lock();
            let current = segments.back_mut().expect("there is always a segment");
            current.length_bytes = self.segment.length_bytes;
            current.last = self.last;
        }
        self.log.last_position.store(self.last, Ordering::Release);
        for reader in &self.log.options.readers {
            // A full channel means that the reader already knows; a closed one, that it has ended.
            let _ = reader.try_send(());
        }
        if self.piece_bytes >= PIECE_BYTES
            && let Some(write_back) = &self.log.options.write_back
        {
            self.piece_bytes = 0;
            let _ = write_back.try_send(());
        }
        if self.segment.length_bytes - HEADER_BYTES as u64 >= self.log.options.segment_bytes {
            self.roll()?;
        }
        Ok(())
    }

    fn roll(&mut self) -> Result<(), RecordLogError> {
        let (file, segment) = recovery::create_segment(&self.log.options, self.last)?;
        self.file = file;
        self.segment = segment.clone();
        self.log.segments.lock().push_back(segment);
        Ok(())
    }
}
