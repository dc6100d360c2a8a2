//! How fast a state may go out, so that it leaves room for everything else.

use std::time::Duration;

/// Spreads bytes over time.
#[derive(Debug)]
pub(super) struct Rate {
    bytes_per_second: u64,
    /// When what was sent has had its time.
    free_at: Duration,
}

impl Rate {
    pub fn new(bytes_per_second: u64) -> Self {
        Rate { bytes_per_second: bytes_per_second.max(1), free_at: Duration::ZERO }
    }

    /// Bytes are sent now; returns how long to wait before the next ones.
    pub fn pause_after(&mut self, bytes: usize, now: Duration) -> Duration {
        let nanoseconds = (bytes as u128) * 1_000_000_000 / u128::from(self.bytes_per_second);
        let takes = Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX));
        self.free_at = self.free_at.max(now) + takes;
        self.free_at - now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_spread_and_a_pause_is_not_made_up_for() {
        let (mut rate, second) = (Rate::new(1_000), Duration::from_secs(1));
        assert_eq!(rate.pause_after(500, Duration::ZERO), second / 2);
        assert_eq!(rate.pause_after(500, Duration::ZERO), second);
        assert_eq!(rate.pause_after(100, 10 * second), second / 10, "the nine seconds are gone");
    }
}
