//! Records on their way to the target, in the form in which it takes them: a line that says where, and a line that is the
//! record.

use std::collections::HashMap;
use std::io::Write;
use std::sync::Arc;

use protocol::{PartitionId, Record, RecordSource, Text, Timestamp, ValueType};

use super::settings::IndexSettings;

const HOUR_MILLISECONDS: i64 = 3_600_000;

/// Documents in one buffer, as they are sent.
#[derive(Debug)]
pub(super) struct Bulk {
    body: Vec<u8>,
    documents: Vec<Document>,
    /// When the oldest of its records happened.
    oldest: Option<Timestamp>,
    /// The version that made the records. Their indices are named after it.
    version: Text,
}

/// Where a document is in the buffer: it begins where the one before ends.
#[derive(Debug, Clone, Copy)]
struct Document {
    /// What it is about.
    of: ValueType,
    /// Where the line ends that says where it goes, and the record begins.
    record_begin: usize,
    end: usize,
}

impl Bulk {
    /// Without documents.
    pub fn new(version: Text) -> Bulk {
        Bulk { body: Vec::new(), documents: Vec::new(), oldest: None, version }
    }

    pub fn len(&self) -> usize {
        self.documents.len()
    }

    pub fn is_empty(&self) -> bool {
        self.documents.is_empty()
    }

    /// The whole body of a request.
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// When the oldest of its records happened.
    pub fn oldest(&self) -> Option<Timestamp> {
        self.oldest
    }

    /// The version that made the records.
    pub fn version(&self) -> &Text {
        &self.version
    }

    /// Another one in its place, of records of a version, with room for as many bytes.
    pub fn take(&mut self, version: Text) -> Bulk {
        let next = Bulk {
            body: Vec::with_capacity(self.body.len()),
            documents: Vec::with_capacity(self.documents.len()),
            oldest: None,
            version,
        };
        std::mem::replace(self, next)
    }

    /// Appends a record. After an error nothing has changed.
    pub fn push(
        &mut self,
        addresses: &mut Addresses,
        record: &Record,
        source: &RecordSource,
        sequence: u64,
    ) -> Result<(), serde_json::Error> {
        let before = self.body.len();
        addresses.write(record, source, &mut self.body);
        let record_begin = self.body.len();
        if let Err(error) = record.write_json(source, &mut self.body) {
            self.body.truncate(before);
            return Err(error);
        }
        let brace = self.body.pop();
        debug_assert_eq!(brace, Some(b'}'), "a record is an object");
        // Writing to a vector cannot fail.
        let _ = writeln!(self.body, ",\"sequence\":{sequence}}}");
        self.oldest = Some(self.oldest.map_or(record.timestamp, |oldest| oldest.min(record.timestamp)));
        let of = record.payload.value_type();
        self.documents.push(Document { of, record_begin, end: self.body.len() });
        Ok(())
    }

    /// The two lines of a document, without their ends.
    pub fn document(&self, index: usize) -> (&[u8], &[u8]) {
        let begin = index.checked_sub(1).map_or(0, |before| self.documents[before].end);
        let Document { record_begin, end, .. } = self.documents[index];
        (&self.body[begin..record_begin - 1], &self.body[record_begin..end - 1])
    }

    /// What a document is about.
    pub fn value_type(&self, index: usize) -> ValueType {
        self.documents[index].of
    }

    /// Keeps only some documents, in their order.
    pub fn retain(&mut self, mut keeps: impl FnMut(usize) -> bool) {
        let (mut kept, mut begin, mut written) = (0, 0, 0);
        for index in 0..self.documents.len() {
            let Document { of, record_begin, end } = self.documents[index];
            if keeps(index) {
                self.body.copy_within(begin..end, written);
                self.documents[kept] =
                    Document { of, record_begin: record_begin - begin + written, end: end - begin + written };
                written += end - begin;
                kept += 1;
            }
            begin = end;
        }
        self.documents.truncate(kept);
        self.body.truncate(written);
    }

    /// Takes the second half away.
    pub fn split_off_half(&mut self) -> Bulk {
        let middle = self.documents.len() / 2;
        let at = middle.checked_sub(1).map_or(0, |last| self.documents[last].end);
        let shift = |Document { of, record_begin, end }: Document| Document {
            of,
            record_begin: record_begin - at,
            end: end - at,
        };
        Bulk {
            body: self.body.split_off(at),
            documents: self.documents.split_off(middle).into_iter().map(shift).collect(),
            oldest: self.oldest,
            version: self.version.clone(),
        }
    }
}

/// Says where records of a partition go: index, document and routing.
#[derive(Debug)]
pub(super) struct Addresses {
    /// How the line of a value type begins up to the position, and for which hour and version.
    beginnings: HashMap<ValueType, Beginning>,
    index: Arc<IndexSettings>,
    partition: PartitionId,
}

#[derive(Debug)]
struct Beginning {
    hour: Timestamp,
    version: Text,
    line: Vec<u8>,
}

impl Addresses {
    pub fn new(index: Arc<IndexSettings>, partition: PartitionId) -> Addresses {
        Addresses { beginnings: HashMap::new(), index, partition }
    }

    fn write(&mut self, record: &Record, source: &RecordSource, out: &mut Vec<u8>) {
        let of = record.payload.value_type();
        let hour = record.timestamp.div_euclid(HOUR_MILLISECONDS);
        let fits = |found: &Beginning| found.hour == hour && found.version == source.broker_version;
        if !self.beginnings.get(&of).is_some_and(fits) {
            let version = source.broker_version.clone();
            let line = self.beginning(of, &version, record.timestamp);
            self.beginnings.insert(of, Beginning { hour, version, line });
        }
        out.extend_from_slice(&self.beginnings[&of].line);
        // Writing to a vector cannot fail. Positions are given again after a restore, so what came after one says so.
        let _ = match source.incarnation {
            0 | 1 => writeln!(out, "{}\"}}}}", record.position),
            incarnation => writeln!(out, "{}-{incarnation}\"}}}}", record.position),
        };
    }

    fn beginning(&self, of: ValueType, version: &str, timestamp: Timestamp) -> Vec<u8> {
        let mut name = index_beginning(&self.index.prefix, of, version);
        name.push('_');
        self.index.suffix.write(timestamp, &mut name);
        let partition = self.partition;
        format!(r#"{{"index":{{"_index":"{name}","routing":"{partition}","_id":"{partition}-"#).into_bytes()
    }
}

/// The value type in the names of indices and aliases.
pub(super) fn dashed(of: ValueType) -> String {
    of.name().to_ascii_lowercase().replace('_', "-")
}

/// The name of an index up to the time.
pub(super) fn index_beginning(prefix: &str, of: ValueType, version: &str) -> String {
    format!("{prefix}_{}_{}", dashed(of), version.to_ascii_lowercase())
}
