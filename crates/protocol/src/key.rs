//! Keys, partitions and times.

use std::fmt;

use minicbor::{Decode, Encode};
use serde::Serialize;

/// Milliseconds since the Unix epoch on the clock of the engine.
pub type Timestamp = i64;

const COUNTER_BITS: u32 = 51;

/// Identifies an entity of one partition: the partition in the upper 13 bits, a counter in the lower 51.
/// One counter per partition serves all kinds of entities, so keys of different kinds never collide.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode, Serialize)]
#[cbor(transparent)]
#[serde(transparent)]
pub struct Key(#[n(0)] i64);

impl Key {
    /// No entity; written as -1, as on the wire.
    pub const NONE: Key = Key(-1);

    /// The largest counter that fits.
    pub const LAST_COUNTER: u64 = (1 << COUNTER_BITS) - 1;

    /// The key number `counter` of `partition`. `counter` starts at 1.
    pub const fn new(partition: PartitionId, counter: u64) -> Key {
        Key(((partition.0 as i64) << COUNTER_BITS) + counter as i64)
    }

    /// A key as it came over the wire. Anything is accepted; what does not exist is not found.
    pub const fn from_raw(raw: i64) -> Key {
        Key(raw)
    }

    /// The number as it goes over the wire.
    pub const fn raw(self) -> i64 {
        self.0
    }

    /// The partition that made this key, if the number can be a key at all.
    pub const fn partition(self) -> Option<PartitionId> {
        if self.0 <= 0 {
            return None;
        }
        match (self.0 >> COUNTER_BITS) as u16 {
            0 => None,
            partition => Some(PartitionId(partition)),
        }
    }

    /// The position of this key in the order of its partition.
    pub const fn counter(self) -> u64 {
        (self.0 & ((1 << COUNTER_BITS) - 1)) as u64
    }

    /// Whether this names an entity.
    pub const fn is_some(self) -> bool {
        self.0 > 0
    }

    /// Whether this names no entity.
    pub const fn is_none(self) -> bool {
        !self.is_some()
    }
}

impl Default for Key {
    fn default() -> Self {
        Key::NONE
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", self.0)
    }
}

/// A partition, numbered from 1 to 4095.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode, Serialize, Default)]
#[cbor(transparent)]
#[serde(transparent)]
pub struct PartitionId(#[n(0)] pub u16);

impl PartitionId {
    /// The partition where deployments are decided.
    pub const DEPLOYMENT: PartitionId = PartitionId(1);
    /// The largest number that fits the upper bits of a key.
    pub const MAX: PartitionId = PartitionId((1 << 12) - 1);
}

impl fmt::Display for PartitionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_key_of_partition_one() {
        let key = Key::new(PartitionId(1), 1);
        assert_eq!(key.raw(), 2_251_799_813_685_249);
        assert_eq!(key.partition(), Some(PartitionId(1)));
        assert_eq!(key.counter(), 1);
    }

    #[test]
    fn numbers_that_cannot_be_keys_have_no_partition() {
        for raw in [-1, 0, 1, i64::MIN] {
            assert_eq!(Key::from_raw(raw).partition(), None, "{raw}");
        }
    }

    #[test]
    fn the_largest_partition_still_makes_positive_keys() {
        assert!(Key::new(PartitionId::MAX, 1).is_some());
    }
}
