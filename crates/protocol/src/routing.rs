//! Which partition takes what is addressed by something else than a key.

use crate::PartitionId;

/// The partition where the messages of `correlation_key` are kept and correlated. Of no partitions it is the first.
///
/// Messages that were published and subscriptions that were opened long ago stay where they are, so this mapping can
/// never change. It is the one of Zeebe: the sum of the bytes, as signed numbers and with powers of 31, in the 32 bits
/// of Java's `int`.
pub fn partition_for_correlation_key(correlation_key: &str, partition_count: u16) -> PartitionId {
    let hash = correlation_key
        .bytes()
        .fold(0_i32, |hash, byte| hash.wrapping_mul(31).wrapping_add(i32::from(byte.cast_signed())));
    let remainder = (hash % i32::from(partition_count.max(1))).unsigned_abs();
    // Below the number of partitions, which is a u16.
    PartitionId(remainder as u16 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computed with Java's own arithmetic: the partition among 1, 2, 3, 8, 64 and 4095.
    #[test]
    fn correlation_keys_have_the_partitions_that_zeebe_gives_them() {
        let known = [
            ("", [1, 1, 1, 1, 1, 1]),
            ("a", [1, 2, 2, 2, 34, 98]),
            ("order-1", [1, 1, 3, 7, 15, 3591]),
            ("order-42", [1, 2, 1, 6, 30, 1723]),
            ("customer-4711", [1, 1, 2, 3, 51, 2741]),
            ("Größe", [1, 2, 3, 4, 12, 1794]),
            ("键", [1, 2, 1, 6, 62, 964]),
            ("polygenelubricants", [1, 1, 3, 1, 1, 129]),
            ("😀", [1, 2, 1, 2, 42, 4021]),
            ("2147483648", [1, 2, 1, 4, 20, 772]),
        ];
        for (correlation_key, partitions) in known {
            for (count, partition) in [1, 2, 3, 8, 64, 4095].into_iter().zip(partitions) {
                assert_eq!(
                    partition_for_correlation_key(correlation_key, count),
                    PartitionId(partition),
                    "{correlation_key:?} of {count}"
                );
            }
        }
    }

    #[test]
    fn every_count_gives_a_partition_in_range() {
        for count in [0, 1, 2, 4095, u16::MAX] {
            for correlation_key in ["", "a", "order-1", "polygenelubricants", "\u{1f600}"] {
                let partition = partition_for_correlation_key(correlation_key, count);
                assert!((1..=count.max(1)).contains(&partition.0), "{correlation_key:?} of {count}: {partition}");
            }
        }
    }
}
