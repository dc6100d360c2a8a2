//! How long jobs and process instances live, as their records tell.

use metrics::{Gauge, Histogram, gauge, histogram};
use protocol::{Key, Timestamp};

/// Creations of one kind that are kept. A younger one takes the place of an older one, which is then not measured: with
/// more than this many alive, the times are those of a sample.
const CREATIONS_MAX: usize = 16_384;

/// Measures the time from the creation of a job or an instance to what happens to it.
pub(super) struct LifeTimes {
    created: Created,
    cached: Gauge,
    life: Histogram,
}

impl LifeTimes {
    /// `name` is the metric of whole lives, `kind` the value of the label that tells the kinds of what is kept apart.
    pub fn new(name: &'static str, kind: &'static str, partition: &str) -> Self {
        let cached = gauge!(
            "zeebe_execution_latency_current_cached_instances", "partition" => partition.to_owned(), "type" => kind
        );
        LifeTimes { created: Created::default(), cached, life: histogram!(name, "partition" => partition.to_owned()) }
    }

    /// It was created.
    pub fn begin(&mut self, key: Key, at: Timestamp) {
        self.created.insert(key, at);
    }

    /// Seconds since its creation, if that is still known.
    pub fn age(&self, key: Key, at: Timestamp) -> Option<f64> {
        self.created.get(key).map(|created| seconds(created, at))
    }

    /// It came to its usual end, which is measured.
    pub fn complete(&mut self, key: Key, at: Timestamp) {
        if let Some(created) = self.created.remove(key) {
            self.life.record(seconds(created, at));
        }
    }

    /// It came to another end.
    pub fn end(&mut self, key: Key) {
        self.created.remove(key);
    }

    pub fn publish(&self) {
        self.cached.set(super::number::number(self.created.count));
    }
}

/// The time of the partition never goes back.
#[allow(clippy::cast_precision_loss, reason = "metrics tolerate it")]
fn seconds(created: Timestamp, at: Timestamp) -> f64 {
    at.saturating_sub(created).max(0) as f64 / 1_000.0
}

/// When keys were created: a table with one place for each key, and fewer places than keys.
#[derive(Default)]
struct Created {
    /// Keys with their times, side by side because they are needed together. Empty until the first key comes, so that an idle
    /// partition needs no memory; 0, which is no key, where there is none.
    places: Vec<(i64, Timestamp)>,
    count: usize,
}

impl Created {
    fn insert(&mut self, key: Key, at: Timestamp) {
        if self.places.is_empty() {
            self.places = vec![(0, 0); CREATIONS_MAX];
        }
        let place = &mut self.places[place(key)];
        self.count += usize::from(place.0 == 0);
        *place = (key.raw(), at);
    }

    fn get(&self, key: Key) -> Option<Timestamp> {
        self.places.get(place(key)).filter(|(found, _)| *found == key.raw()).map(|(_, at)| *at)
    }

    fn remove(&mut self, key: Key) -> Option<Timestamp> {
        let at = self.get(key)?;
        self.places[place(key)].0 = 0;
        self.count -= 1;
        Some(at)
    }
}

/// Keys come in runs with distances that depend on the process, so the place is one of all for any of them.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "any bits of the key will do")]
fn place(key: Key) -> usize {
    const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;
    ((key.raw() as u64).wrapping_mul(SPREAD) >> (u64::BITS - CREATIONS_MAX.trailing_zeros())) as usize
}

#[cfg(test)]
mod tests {
    use protocol::PartitionId;

    use super::*;

    fn key(counter: usize) -> Key {
        Key::new(PartitionId(3), counter as u64)
    }

    #[test]
    fn what_is_kept_is_found_until_it_ends() {
        let mut created = Created::default();
        assert_eq!((created.get(key(1)), created.remove(key(1))), (None, None));
        created.insert(key(1), 5);
        created.insert(key(2), 6);
        created.insert(key(1), 7);
        assert_eq!((created.get(key(1)), created.count), (Some(7), 2));
        assert_eq!((created.remove(key(1)), created.remove(key(1)), created.count), (Some(7), None, 1));
    }

    #[test]
    fn more_than_there_is_room_for_leaves_a_sample_of_the_young() {
        let mut created = Created::default();
        // Of a process whose instances take six keys each.
        let keys = || (1..=CREATIONS_MAX).map(|number| key(number * 6));
        keys().for_each(|key| created.insert(key, 1));
        let kept = keys().filter(|key| created.get(*key).is_some()).count();
        assert_eq!(kept, created.count);
        assert!(kept > CREATIONS_MAX / 2, "{kept}");
        assert_eq!(created.get(key(CREATIONS_MAX * 6)), Some(1), "the youngest is kept");
        assert_eq!(keys().filter_map(|key| created.remove(key)).count(), kept);
        assert_eq!(created.count, 0);
    }
}
