//! How much was used: process instances that nobody called, evaluations of decisions, and to whom user tasks were given.

use protocol::Text;

use super::Fold;
use crate::query::USAGE_MILLISECONDS;

/// A number that stands for a name, the same on every partition, so that the name itself need not be kept: FNV-1a.
fn number_of_name(name: &str) -> i64 {
    let hash = name
        .bytes()
        .fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3));
    hash.cast_signed()
}

fn begin_of(timestamp: i64) -> i64 {
    timestamp - timestamp.rem_euclid(USAGE_MILLISECONDS)
}

impl Fold {
    pub(super) fn use_instance(&mut self, timestamp: i64) {
        if !self.is_told_living {
            self.batch.usage.entry(begin_of(timestamp)).or_default().0 += 1;
        }
    }

    pub(super) fn use_decision(&mut self, timestamp: i64) {
        self.batch.usage.entry(begin_of(timestamp)).or_default().1 += 1;
    }

    pub(super) fn use_assignee(&mut self, timestamp: i64, assignee: &Text) {
        if !assignee.is_empty() && !self.is_told_living {
            self.batch.assignees.insert((begin_of(timestamp), number_of_name(assignee)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_the_numbers_that_they_always_had() {
        // As published with the algorithm.
        assert_eq!(number_of_name("").cast_unsigned(), 0xCBF2_9CE4_8422_2325);
        assert_eq!(number_of_name("foobar").cast_unsigned(), 0x8594_4171_F739_67E8);
    }
}
