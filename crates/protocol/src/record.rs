//! Records: what the outside learns of a partition.

use minicbor::{Decode, Encode};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use crate::fields::Fields;
use crate::value::Complete;
use crate::{Actor, DecodeError, ElementPath, Key, PartitionId, Payload, Rejection, Text, Timestamp, decode, usual};

/// The release whose protocols are spoken, as clients read it.
pub const BROKER_VERSION: &str = "8.9.0";

/// A place in the record stream of a partition: behind one of its records, or at the beginning. Incarnation and position
/// together are the identity of a record in its partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct RecordPlace {
    /// The life of the partition: 1 at first, and a higher one behind each restore of an older state and each purge. What such a
    /// state forgot is not what comes behind it.
    pub incarnation: u64,
    /// Position of the record.
    pub position: u64,
    /// Number of the record.
    pub number: u64,
}

/// What the records of a stretch of a partition's stream have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordSource {
    /// The partition.
    pub partition: PartitionId,
    /// Its incarnation.
    pub incarnation: u64,
    /// The [`BROKER_VERSION`] that made them: it stays when they are exported again by another.
    pub broker_version: Text,
}

impl RecordSource {
    /// Of a partition that was never restored, by this version.
    pub fn new(partition: PartitionId) -> Self {
        RecordSource { partition, incarnation: 1, broker_version: BROKER_VERSION.into() }
    }
}

/// What a record says about its payload.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub enum RecordType {
    /// It happened.
    #[n(0)]
    Event,
    /// It was refused.
    #[n(1)]
    Rejection(#[n(0)] Rejection),
}

/// What a record is about, for those who need not read all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subject {
    /// When it happened.
    pub timestamp: Timestamp,
    /// Whether it is a fact, and not a refusal.
    pub is_event: bool,
    /// The code of the value type.
    pub value_type: u32,
    /// The code of the intent.
    pub intent: u32,
}

/// One entry of a partition's record stream.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub struct Record {
    /// Position in the stream; grows, with gaps where commands took positions.
    #[n(0)]
    pub position: u64,
    /// Number in the stream, from 1; grows by one from record to record.
    #[n(1)]
    pub number: u64,
    /// Position of the command that caused this.
    #[n(2)]
    pub source_position: u64,
    /// The entity.
    #[n(3)]
    pub key: Key,
    /// When it happened.
    #[n(4)]
    pub timestamp: Timestamp,
    /// Fact or refusal.
    #[n(5)]
    pub record_type: RecordType,
    /// The caller's number, if the causing command had one.
    #[n(6)]
    pub operation_reference: Option<u64>,
    /// What it is about.
    #[n(7)]
    pub payload: Payload,
    /// Who sent the causing command.
    #[n(8)]
    pub actor: Actor,
    /// The batch operation that the causing command was a part of.
    #[n(9)]
    pub batch_operation_reference: Option<Key>,
    /// Of an element instance that begins, and of incidents: where it is, unless that follows from the rest.
    #[n(10)]
    pub path: Option<Box<ElementPath>>,
}

impl Record {
    /// The record of an event that nobody in particular caused, whose number is its position.
    pub fn event(position: u64, timestamp: Timestamp, key: Key, payload: Payload) -> Self {
        Record {
            position,
            number: position,
            source_position: 0,
            key,
            timestamp,
            record_type: RecordType::Event,
            operation_reference: None,
            payload,
            actor: Actor::Anonymous,
            batch_operation_reference: None,
            path: None,
        }
    }

    /// The place behind this record.
    pub fn place(&self, incarnation: u64) -> RecordPlace {
        RecordPlace { incarnation, position: self.position, number: self.number }
    }

    /// The record that `encoded` begins with: what [`decode`](crate::decode) makes of it, and sooner of what is most in a stream.
    ///
    /// # Errors
    /// When it begins with something else.
    pub fn read(encoded: &[u8]) -> Result<Record, DecodeError> {
        usual::event(encoded).map_or_else(|| decode(encoded), Ok)
    }

    /// Position, number and source position of the record that `encoded` begins with, without reading the rest.
    ///
    /// # Errors
    /// When it begins with something else.
    pub fn peek(encoded: &[u8]) -> Result<[u64; 3], DecodeError> {
        let mut fields = Fields::of(encoded);
        let mut peek = || {
            fields.array()?;
            Some([fields.unsigned()?, fields.unsigned()?, fields.unsigned()?])
        };
        peek().ok_or_else(not_a_record)
    }

    /// What the record that `encoded` begins with is about, without reading its value.
    ///
    /// # Errors
    /// When it begins with something else.
    pub fn peek_subject(encoded: &[u8]) -> Result<Subject, DecodeError> {
        let mut fields = Fields::of(encoded);
        let mut peek = || {
            let (_, timestamp, is_event) = begin(&mut fields)?;
            let value_type = u32::try_from(fields.unsigned()?).ok()?;
            fields.array()?;
            Some(Subject { timestamp, is_event, value_type, intent: u32::try_from(fields.unsigned()?).ok()? })
        };
        peek().ok_or_else(not_a_record)
    }

    /// The record as exporters of Zeebe write it, on one line.
    ///
    /// # Errors
    /// When a stored JSON text is not JSON.
    pub fn to_json(&self, source: &RecordSource) -> Result<String, serde_json::Error> {
        let mut out = Vec::new();
        self.write_json(source, &mut out)?;
        Ok(String::from_utf8(out).expect("JSON is written as UTF-8"))
    }

    /// Appends what [`Record::to_json`] gives: one line, without its end. After an error, a part of it may be there.
    ///
    /// # Errors
    /// As [`Record::to_json`].
    pub fn write_json(&self, source: &RecordSource, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
        let begin = out.len();
        serde_json::to_writer(&mut *out, &Exported { record: self, source })?;
        join_lines(&mut out[begin..]);
        Ok(())
    }
}

/// Makes one line of valid JSON. Values keep the JSON of clients, and so its line breaks, which are white space there:
/// inside of texts they are escaped.
fn join_lines(mut json: &mut [u8]) {
    while let Some(at) = memchr::memchr2(b'\n', b'\r', json) {
        json[at] = b' ';
        json = &mut json[at + 1..];
    }
}

fn not_a_record() -> DecodeError {
    DecodeError { kind: "record", reason: "its first fields are not those of a record".to_owned() }
}

/// Reads the beginning of a record up to its payload: its key, when it happened, and whether it is an event.
#[inline]
pub(crate) fn begin(fields: &mut Fields<'_>) -> Option<(Key, Timestamp, bool)> {
    fields.array()?;
    let (_position, _number, _source_position) = (fields.unsigned()?, fields.unsigned()?, fields.unsigned()?);
    let (key, timestamp) = (fields.key()?, fields.signed()?);
    fields.array()?;
    let is_event = fields.unsigned()? == 0;
    // What the type has with it, and the operation reference.
    fields.pass()?;
    fields.pass()?;
    fields.array()?;
    Some((key, timestamp, is_event))
}

/// Who sent the causing command, as the claims of exported records of Zeebe; nothing where it was the cluster itself.
struct Claims<'a>(&'a Actor);

impl Serialize for Claims<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut claims = serializer.serialize_map(None)?;
        match self.0 {
            Actor::Anonymous => claims.serialize_entry("authorized_anonymous_user", &true)?,
            Actor::System => {}
            Actor::User(identity) => claims.serialize_entry("authorized_username", identity.id())?,
            Actor::Client(identity) => claims.serialize_entry("authorized_client_id", identity.id())?,
        }
        claims.end()
    }
}

/// A value with the way to its element instance behind its own fields.
#[derive(Serialize)]
struct WithPath<'a> {
    #[serde(flatten)]
    value: &'a Payload,
    #[serde(flatten)]
    path: ElementPath,
}

struct Exported<'a> {
    record: &'a Record,
    source: &'a RecordSource,
}

impl Serialize for Exported<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let record = self.record;
        let (record_type, rejection_type, reason) = match &record.record_type {
            RecordType::Event => ("EVENT", "NULL_VAL", ""),
            RecordType::Rejection(rejection) => {
                ("COMMAND_REJECTION", rejection.rejection_type.name(), rejection.reason.as_str())
            }
        };
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("position", &record.position)?;
        map.serialize_entry("sourceRecordPosition", &record.source_position)?;
        map.serialize_entry("key", &record.key)?;
        map.serialize_entry("timestamp", &record.timestamp)?;
        map.serialize_entry("partitionId", &self.source.partition)?;
        map.serialize_entry("recordType", record_type)?;
        map.serialize_entry("valueType", record.payload.value_type().name())?;
        map.serialize_entry("intent", record.payload.intent_name())?;
        map.serialize_entry("rejectionType", rejection_type)?;
        map.serialize_entry("rejectionReason", reason)?;
        map.serialize_entry("brokerVersion", self.source.broker_version.as_str())?;
        map.serialize_entry("recordVersion", &1)?;
        map.serialize_entry("operationReference", &record.operation_reference.map_or(-1, i128::from))?;
        let batch_operation = record.batch_operation_reference.unwrap_or(Key::NONE);
        map.serialize_entry("batchOperationReference", &batch_operation)?;
        map.serialize_entry("authorizations", &Claims(&record.actor))?;
        let value = &record.payload;
        match ElementPath::of(record) {
            Some(path) => map.serialize_entry("value", &WithPath { value, path })?,
            None => map.serialize_entry("value", &Complete(value))?,
        }
        // Not Zeebe's. With the partition, the first and the position are the identity of the record, also after a restore; the
        // second grows by one from record to record, so whoever reads them sees what is missing.
        map.serialize_entry("incarnation", &self.source.incarnation)?;
        map.serialize_entry("number", &record.number)?;
        map.end()
    }
}
