//! Reading records behind the writer.

use std::fmt;
use std::sync::Arc;

use protocol::{Record, RecordPlace, RecordSource, Subject, Timestamp};

use super::format::{self, Frame, RecordLogError};
use super::{RecordLog, Segment, SegmentFile};

const READ_BYTES: usize = 256 << 10;

/// Reads the records of a partition in order, from any place on.
#[derive(Debug)]
pub(crate) struct RecordReader {
    log: Arc<RecordLog>,
    /// The last record that was read or that nobody wants.
    last: RecordPlace,
    place: Option<Place>,
    gap: Option<Gap>,
}

/// A record, and what it comes from.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Read {
    pub record: Record,
    pub source: Arc<RecordSource>,
}

impl Read {
    /// The place behind it.
    pub fn place(&self) -> RecordPlace {
        self.record.place(self.source.incarnation)
    }
}

/// A record before it is read.
#[derive(Debug)]
pub(crate) struct Offer<'a> {
    pub subject: Subject,
    pub encoded: &'a [u8],
    pub place: RecordPlace,
    /// Whether nothing is missing between it and the record before.
    pub follows: bool,
}

/// What is to become of an offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It is wanted.
    Read,
    /// It is not.
    Pass,
    /// All that was wanted of it was taken already.
    Taken,
}

/// What comes next.
#[derive(Debug)]
pub(crate) enum Next {
    /// A record.
    Read(Read),
    /// A record that is not wanted, and when it happened.
    Passed(RecordPlace, Timestamp),
    /// A record that was taken as it was offered, and when it happened.
    Taken(RecordPlace, Timestamp),
}

/// Records do not follow each other: what should be between them is not in the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// Before it.
    pub after: RecordPlace,
    /// The last thing that is missing.
    pub up_to: RecordPlace,
}

impl Gap {
    /// How many records are missing.
    pub fn records(&self) -> u64 {
        self.up_to.number.saturating_sub(self.after.number)
    }
}

impl fmt::Display for Gap {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (after, up_to) = (self.after, self.up_to);
        match self.records() {
            // What follows was not derived from the same state as what is there, or the writer is wrong.
            0 => write!(formatter, "the record behind position {} has a number that was given before", up_to.position),
            1 => write!(formatter, "record {} is missing, behind position {}", up_to.number, after.position),
            records => write!(
                formatter,
                "{records} records are missing, from {} to {}, between the positions {} and {}",
                after.number + 1,
                up_to.number,
                after.position,
                up_to.position.saturating_add(1)
            ),
        }
    }
}

#[derive(Debug)]
struct Place {
    file: Box<dyn SegmentFile>,
    segment: Segment,
    /// Up to here, records were complete when that was asked last.
    readable: u64,
    /// Where in the file `buffer` starts.
    offset: u64,
    buffer: Vec<u8>,
    /// How much of `buffer` is consumed.
    consumed: usize,
}

impl RecordReader {
    /// A reader of the records behind a place.
    pub fn after(log: Arc<RecordLog>, last: RecordPlace) -> Self {
        RecordReader { log, last, place: None, gap: None }
    }

    /// What is missing before the record that was read last, said once. Also after there was none to read.
    pub fn take_gap(&mut self) -> Option<Gap> {
        self.gap.take()
    }

    /// The next record, if one is written and it is sure that all of its command are. It is read only if it is wanted.
    pub fn next(&mut self, mut answer: impl FnMut(&Offer<'_>) -> Answer) -> Result<Option<Next>, RecordLogError> {
        loop {
            if self.last.position >= self.log.readable_position() {
                return Ok(None);
            }
            let Some(mut place) = self.place.take() else {
                // It may begin behind what can be read.
                self.place = Some(self.enter(self.log.segment_for(self.last.position))?);
                continue;
            };
            if let Some(next) = place.read(self.last, self.gap.is_none(), &mut answer)? {
                self.place = Some(place);
                self.follow(match &next {
                    Next::Read(read) => read.place(),
                    Next::Passed(place, _) | Next::Taken(place, _) => *place,
                });
                return Ok(Some(next));
            }
            // Only now it is asked how far it can be read, because that takes a lock.
            let Some((readable, complete)) = self.log.readable(place.segment.base) else {
                // Deleted: everything in it was acknowledged, so go on behind it.
                self.last = self.last.max(place.segment.last);
                continue;
            };
            if readable > place.readable {
                place.readable = readable;
                self.place = Some(place);
            } else if complete {
                let after = self.log.segment_after(place.segment.base);
                self.place = after.map(|after| self.enter(after)).transpose()?;
            } else {
                self.place = Some(place);
                return Ok(None);
            }
        }
    }

    /// Opens a segment. If it begins behind the last record, what lies between is missing, whether or not more comes.
    fn enter(&mut self, segment: Segment) -> Result<Place, RecordLogError> {
        let place = Place::open(&self.log, segment)?;
        let base = place.segment.base;
        if base.number > self.last.number {
            self.note_gap(base);
            self.last = self.last.max(base);
        }
        Ok(place)
    }

    /// A record was read.
    fn follow(&mut self, record: RecordPlace) {
        if record.number != self.last.number.saturating_add(1) {
            self.note_gap(RecordPlace {
                position: record.position.saturating_sub(1),
                number: record.number.saturating_sub(1),
                ..record
            });
        }
        self.last = record;
    }

    fn note_gap(&mut self, up_to: RecordPlace) {
        // Two of them in a row are one: nothing was read between them.
        let after = self.gap.map_or(self.last, |gap| gap.after);
        self.gap = Some(Gap { after, up_to });
    }
}

impl Place {
    fn open(log: &RecordLog, segment: Segment) -> Result<Place, RecordLogError> {
        let file = log.options.files.open(&segment.path);
        let file = file.map_err(|error| RecordLogError::io("open", &segment.path, error))?;
        let (offset, readable) = (segment.header_bytes, segment.length_bytes);
        Ok(Place { file, segment, readable, offset, buffer: Vec::new(), consumed: 0 })
    }

    /// The next record behind the last one in the part of the segment that can be read. `is_whole` while nothing is missing before it.
    fn read(
        &mut self,
        last: RecordPlace,
        is_whole: bool,
        answer: &mut impl FnMut(&Offer<'_>) -> Answer,
    ) -> Result<Option<Next>, RecordLogError> {
        let mut needed_bytes = format::FRAME_HEADER_BYTES;
        loop {
            let offset = self.offset + self.consumed as u64;
            match format::decode_frame(&self.buffer[self.consumed..], true) {
                Frame::Complete { position, frame_bytes, .. } if position <= last.position => {
                    self.consumed += frame_bytes;
                    needed_bytes = format::FRAME_HEADER_BYTES;
                    continue;
                }
                Frame::Complete { position, number, record, frame_bytes, .. } => {
                    let source = &self.segment.source;
                    let next = Record::peek_subject(record).and_then(|subject| {
                        let place = RecordPlace { incarnation: source.incarnation, position, number };
                        let follows = is_whole && number == last.number.saturating_add(1);
                        Ok(match answer(&Offer { subject, encoded: record, place, follows }) {
                            Answer::Read => Next::Read(Read { record: Record::read(record)?, source: source.clone() }),
                            Answer::Pass => Next::Passed(place, subject.timestamp),
                            Answer::Taken => Next::Taken(place, subject.timestamp),
                        })
                    });
                    let next = next.map_err(|error| self.damaged(offset, &error.to_string()))?;
                    self.consumed += frame_bytes;
                    return Ok(Some(next));
                }
                Frame::Damaged { problem } => return Err(self.damaged(offset, problem)),
                Frame::Partial { needed_bytes: needed } => needed_bytes = needed_bytes.max(needed),
            }
            if offset >= self.readable {
                return Ok(None);
            }
            if offset + needed_bytes as u64 > self.readable {
                return Err(self.damaged(offset, "a record is longer than the file"));
            }
            self.fill(needed_bytes)?;
        }
    }

    fn fill(&mut self, needed_bytes: usize) -> Result<(), RecordLogError> {
        self.buffer.drain(..self.consumed);
        self.offset += self.consumed as u64;
        self.consumed = 0;
        let filled = self.buffer.len();
        let wanted = needed_bytes.max(READ_BYTES);
        let left = usize::try_from(self.readable - self.offset).unwrap_or(usize::MAX);
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
