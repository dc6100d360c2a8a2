//! The sequence of documents: a number without gaps for each value type of a partition, so that a reader can ask for the next
//! thousand.

use std::collections::BTreeMap;

use protocol::{PartitionId, ValueType};
use serde::{Deserialize, Serialize};

/// Version of what the node keeps.
const FORMAT: u32 = 1;
/// The partition is above so many bits, as on the reference.
const COUNTER_BITS: u32 = 51;

/// How many records of each value type went before.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Sequences(BTreeMap<u8, u64>);

#[derive(Serialize, Deserialize)]
struct Stored {
    format: u32,
    /// By the code of the value type.
    sequences: BTreeMap<u8, u64>,
}

impl Sequences {
    /// As they were kept; nothing kept is the beginning. An error says what is kept instead.
    pub fn read(metadata: &[u8]) -> Result<Sequences, String> {
        if metadata.is_empty() {
            return Ok(Sequences::default());
        }
        let stored: Stored = serde_json::from_slice(metadata).map_err(|error| error.to_string())?;
        match stored.format {
            FORMAT => Ok(Sequences(stored.sequences)),
            other => Err(format!("they have format {other}, and this version understands format {FORMAT}")),
        }
    }

    /// To be kept.
    pub fn write(&self) -> Vec<u8> {
        let stored = Stored { format: FORMAT, sequences: self.0.clone() };
        serde_json::to_vec(&stored).expect("numbers can be written")
    }

    /// The sequence of the next record of a value type.
    pub fn next(&self, partition: PartitionId, of: ValueType) -> u64 {
        let counter = self.0.get(&(of as u8)).copied().unwrap_or(0) + 1;
        (u64::from(partition.0) << COUNTER_BITS) + counter
    }

    /// The record was taken.
    pub fn count(&mut self, of: ValueType) {
        *self.0.entry(of as u8).or_default() += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_type_has_a_sequence_that_goes_on_where_it_was_kept() {
        let mut sequences = Sequences::read(&[]).expect("nothing is kept");
        let (job, timer) = (ValueType::Job, ValueType::Timer);
        assert_eq!(sequences.next(PartitionId(3), job), (3 << 51) + 1);
        sequences.count(job);
        sequences.count(job);
        sequences.count(timer);
        let kept = Sequences::read(&sequences.write()).expect("written here");
        assert_eq!(kept, sequences);
        assert_eq!((kept.next(PartitionId(1), job), kept.next(PartitionId(1), timer)), ((1 << 51) + 3, (1 << 51) + 2));
        assert!(Sequences::read(br#"{"format":2,"sequences":{}}"#).expect_err("later").contains("format 2"));
        assert!(Sequences::read(b"x").is_err());
    }
}
