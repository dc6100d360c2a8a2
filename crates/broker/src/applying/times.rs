//! How long the engine takes for single commands.
//!
//! A batch is as long as the commands that happened to come together; what the limits of the engine promise is the length
//! of one of them. The counts are kept here, on the thread of the partition, until they are published. What lies between
//! two commands is not theirs: their note is a page of a file, and a store into it waits for the disk now and then.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// Classes of durations: up to 1 µs, 2 µs, 4 µs and so on; the last takes what is longer than half a minute.
const CLASSES: usize = 26;

/// Counts commands by how long they took.
#[derive(Debug, Default)]
pub(crate) struct CommandTimes {
    began: Cell<Option<Instant>>,
    longest: Cell<Duration>,
    counts: [Cell<usize>; CLASSES],
}

impl CommandTimes {
    /// A command begins.
    #[inline]
    pub fn begin(&self) {
        self.began.set(Some(Instant::now()));
    }

    /// The command that began last has ended, if that was not said already.
    #[inline]
    pub fn end(&self) {
        if let Some(began) = self.began.take() {
            self.count(began.elapsed());
        }
    }

    /// The longest since the start.
    pub fn longest(&self) -> Duration {
        self.longest.get()
    }

    /// How many commands took at most this long, and longer than the class before; what was taken is not counted again.
    pub fn take(&self) -> impl Iterator<Item = (Duration, usize)> + '_ {
        let classes = self.counts.iter().enumerate();
        classes.map(|(class, count)| (Duration::from_micros(1 << class), count.take())).filter(|(_, count)| *count > 0)
    }

    fn count(&self, duration: Duration) {
        // The class of n µs is the number of binary digits of n - 1.
        let above = duration.as_nanos().div_ceil(1_000).saturating_sub(1);
        let class = (u128::BITS - above.leading_zeros()) as usize;
        let count = &self.counts[class.min(CLASSES - 1)];
        count.set(count.get() + 1);
        self.longest.set(self.longest.get().max(duration));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_duration_is_counted_in_the_class_that_holds_it() {
        let times = CommandTimes::default();
        for nanoseconds in [0, 1, 999, 1_000, 1_001, 2_000, 2_001, 4_000, 3_600_000_000_000] {
            times.count(Duration::from_nanos(nanoseconds));
        }
        let micros = Duration::from_micros;
        let last = micros(1 << (CLASSES - 1));
        assert_eq!(times.take().collect::<Vec<_>>(), [(micros(1), 4), (micros(2), 2), (micros(4), 2), (last, 1)]);
        assert_eq!(times.take().count(), 0, "what was taken is not counted again");
        assert_eq!(times.longest(), Duration::from_secs(3_600));
    }

    #[test]
    fn a_command_is_counted_once_it_has_ended() {
        let times = CommandTimes::default();
        times.end();
        times.begin();
        assert_eq!(times.take().count(), 0, "nothing has ended");
        times.end();
        times.end();
        assert_eq!(times.take().map(|(_, count)| count).sum::<usize>(), 1);
    }
}
