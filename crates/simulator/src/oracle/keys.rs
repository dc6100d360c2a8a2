//! Keys name one thing for ever: what is created has a key that its partition never gave before, positions only grow, and
//! time never goes back, nor ahead of every clock. A key or position that is given twice would make one entity overwrite, or hide, another; a timer
//! whose time goes back would fire early.

use std::collections::BTreeMap;

use protocol::{Key, PartitionId, Payload, Record, RecordType, Timestamp};

/// What every partition gave.
pub struct Keys {
    partitions: BTreeMap<PartitionId, Given>,
    /// How far any clock ever was ahead, in milliseconds.
    ahead: i64,
}

#[derive(Default)]
struct Given {
    position: u64,
    time: Timestamp,
    keys: BTreeMap<Key, &'static str>,
}

impl Keys {
    /// Nothing was created yet.
    pub fn new(partitions: u16) -> Self {
        Keys {
            partitions: (1..=partitions).map(|number| (PartitionId(number), Default::default())).collect(),
            ahead: 0,
        }
    }

    /// A clock is set ahead by so many milliseconds, or back.
    pub fn clock_is_ahead(&mut self, milliseconds: i64) {
        self.ahead = self.ahead.max(milliseconds);
    }

    /// A record that was not seen before.
    pub fn record(&mut self, partition: PartitionId, record: &Record, now: Timestamp) {
        let ahead = record.timestamp - now;
        assert!(ahead <= self.ahead, "{partition} is {ahead} ms ahead, and no clock was by more than {}", self.ahead);
        let Some(given) = self.partitions.get_mut(&partition) else { return };
        let before = given.position;
        assert!(record.position > before, "the position {} of {partition} is not behind {before}", record.position);
        let before = given.time;
        assert!(record.timestamp >= before, "the time of {partition} goes back from {before} to {}", record.timestamp);
        given.position = record.position;
        given.time = record.timestamp;
        if record.record_type != RecordType::Event {
            return;
        }
        let creates = match &record.payload {
            Payload::Job(..)
            | Payload::Incident(..)
            | Payload::Timer(..)
            | Payload::Message(..)
            | Payload::Variable(..)
            | Payload::Process(..)
                if ["CREATED", "PUBLISHED"].contains(&record.payload.intent_name()) =>
            {
                true
            }
            Payload::ProcessInstance(..) => record.payload.intent_name() == "ELEMENT_ACTIVATING",
            _ => false,
        };
        // What partition 1 deploys has the keys of partition 1 everywhere.
        if creates && record.key.partition() == Some(partition) {
            let name = record.payload.value_type().name();
            let before = given.keys.insert(record.key, name);
            assert!(
                before.is_none(),
                "the key {} of a {name} was given to a {} before",
                record.key,
                before.unwrap_or("")
            );
        }
    }
}
