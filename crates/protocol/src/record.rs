//! Records: what the outside learns of a partition.

use minicbor::{Decode, Encode};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use crate::{Key, PartitionId, Payload, Rejection, Timestamp};

/// The release whose protocols are spoken, as clients read it.
pub const BROKER_VERSION: &str = "8.9.0";

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

/// One entry of a partition's record stream.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub struct Record {
    /// Position in the stream; grows, with gaps where commands took positions.
    #[n(0)]
    pub position: u64,
    /// Position of the command that caused this.
    #[n(1)]
    pub source_position: u64,
    /// The entity.
    #[n(2)]
    pub key: Key,
    /// When it happened.
    #[n(3)]
    pub timestamp: Timestamp,
    /// Fact or refusal.
    #[n(4)]
    pub record_type: RecordType,
    /// The caller's number, if the causing command had one.
    #[n(5)]
    pub operation_reference: Option<u64>,
    /// What it is about.
    #[n(6)]
    pub payload: Payload,
}

impl Record {
    /// The record as exporters of Zeebe write it.
    ///
    /// # Errors
    /// When a stored JSON text is not JSON.
    pub fn to_json(&self, partition: PartitionId) -> Result<String, serde_json::Error> {
        serde_json::to_string(&Exported { record: self, partition })
    }
}

struct Exported<'a> {
    record: &'a Record,
    partition: PartitionId,
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
        map.serialize_entry("partitionId", &self.partition)?;
        map.serialize_entry("recordType", record_type)?;
        map.serialize_entry("valueType", record.payload.value_type().name())?;
        map.serialize_entry("intent", record.payload.intent_name())?;
        map.serialize_entry("rejectionType", rejection_type)?;
        map.serialize_entry("rejectionReason", reason)?;
        map.serialize_entry("brokerVersion", BROKER_VERSION)?;
        map.serialize_entry("recordVersion", &1)?;
        map.serialize_entry("operationReference", &record.operation_reference.map_or(-1, i128::from))?;
        map.serialize_entry("value", &record.payload)?;
        map.end()
    }
}
