//! The time of a partition: it never goes back, and it continues while the clock is behind it.
//!
//! Batches carry the time of the leader's clock. When a clock that was far ahead is put right, or another leader's
//! clock is behind, the time of the newest batch stays ahead of the clock. If time stood still until the clock caught
//! up, no timer that is set meanwhile would fire for hours. So it continues from there, a little slower than the clock,
//! until the clock has caught up.

use protocol::Timestamp;

/// So many milliseconds pass while the clock is behind …
const PASSING: i64 = 15;
/// … for this many of steady time.
const OF_STEADY: i64 = 16;

/// What the clocks of a node show. The engine's clock can be set by users; waiting for answers must not depend on that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// The node's clock.
    pub clock: Timestamp,
    /// A user stopped the node's clock: time stands still.
    pub is_pinned: bool,
    /// Milliseconds that only ever pass, from any start.
    pub steady_milliseconds: i64,
}

/// The time of a partition as far as one of its parts knows it.
#[derive(Debug, Clone, Copy)]
pub struct PartitionTime {
    /// Of the newest batch.
    last: Timestamp,
    /// Set while the clock is behind: the time from which it continues, and since when (steady time).
    ahead: Option<(Timestamp, i64)>,
}

impl PartitionTime {
    /// The time of a partition whose newest batch happened at `last`.
    pub fn new(last: Timestamp) -> Self {
        PartitionTime { last, ahead: None }
    }

    /// The time of the newest batch.
    pub fn last(&self) -> Timestamp {
        self.last
    }

    /// The time now.
    pub fn now(&mut self, moment: Moment) -> Timestamp {
        if moment.clock >= self.last || moment.is_pinned {
            self.ahead = None;
            return moment.clock.max(self.last);
        }
        let (from, since) = *self.ahead.get_or_insert((self.last, moment.steady_milliseconds));
        let steady = moment.steady_milliseconds.saturating_sub(since).max(0);
        let passed = steady.saturating_mul(PASSING) / OF_STEADY;
        self.last.max(from.saturating_add(passed))
    }

    /// A batch happens now.
    pub fn stamp(&mut self, moment: Moment) -> Timestamp {
        self.last = self.now(moment);
        self.last
    }

    /// A batch of this time is there.
    pub fn witness(&mut self, timestamp: Timestamp) {
        if timestamp > self.last {
            self.last = timestamp;
            self.ahead = None;
        }
    }

    /// When it will be `at` in steady time, if the clock does not catch up before; none while the clock is not behind.
    pub fn steady_at(&self, at: Timestamp) -> Option<i64> {
        let (from, since) = self.ahead?;
        let steady = at.saturating_sub(from).max(0).saturating_mul(OF_STEADY);
        // Rounded up: at that moment it is no earlier than `at`.
        Some(since.saturating_add(steady.saturating_add(PASSING - 1) / PASSING))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000;

    fn moment(clock: Timestamp, steady_milliseconds: i64) -> Moment {
        Moment { clock, is_pinned: false, steady_milliseconds }
    }

    #[test]
    fn behind_a_time_that_was_far_ahead_time_goes_on_and_the_clock_catches_up() {
        let mut time = PartitionTime::new(0);
        assert_eq!(time.stamp(moment(10 * HOUR, 0)), 10 * HOUR);
        // The clock is put right.
        assert_eq!(time.stamp(moment(0, 1)), 10 * HOUR);
        assert_eq!(time.stamp(moment(1_600, 1_601)), 10 * HOUR + 1_500);
        // However often it is asked, nothing is lost by rounding.
        for steady in 1_602..=17_601 {
            time.stamp(moment(steady - 1, steady));
        }
        assert_eq!(time.last(), 10 * HOUR + 16_500);
        let caught_up = 16 * 10 * HOUR;
        assert_eq!(time.stamp(moment(caught_up, caught_up)), caught_up);
        assert_eq!(time.stamp(moment(caught_up + 7, caught_up + 7)), caught_up + 7, "from here on it is the clock's");
    }

    #[test]
    fn what_waits_for_a_time_is_told_when_it_comes() {
        let mut time = PartitionTime::new(5_000);
        assert_eq!(time.steady_at(6_000), None);
        time.now(moment(100, 40));
        let at = time.steady_at(6_000).expect("the clock is behind");
        assert!(time.now(moment(100, at - 1)) < 6_000);
        assert_eq!(time.now(moment(100, at)), 6_000);
    }

    #[test]
    fn time_stands_still_with_a_stopped_clock() {
        let mut time = PartitionTime::new(5_000);
        let pinned = |steady_milliseconds| Moment { is_pinned: true, ..moment(100, steady_milliseconds) };
        assert_eq!(time.now(pinned(0)), 5_000);
        assert_eq!(time.now(pinned(60_000)), 5_000);
        assert_eq!(time.now(moment(100, 60_000)), 5_000, "what passed meanwhile does not count");
        assert_eq!(time.now(moment(100, 61_600)), 6_500);
    }

    #[test]
    fn a_batch_of_another_leader_takes_time_ahead() {
        let mut time = PartitionTime::new(5_000);
        time.now(moment(100, 0));
        time.witness(9_000);
        assert_eq!(time.now(moment(200, 100)), 9_000);
        assert_eq!(time.now(moment(200, 1_700)), 10_500);
        time.witness(8_000);
        assert_eq!(time.now(moment(200, 1_700)), 10_500, "an older batch changes nothing");
    }
}
