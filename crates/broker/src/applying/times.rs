//! How long the engine takes for single commands.
//!
//! A batch is as long as the commands that happened to come together; what the limits of the engine promise is the length
//! of one of them. The counts are kept here, on the thread of the partition, until they are published. What lies between
//! two commands is not theirs: their note is a page of a file, and a store into it waits for the disk now and then.

use std::cell::Cell;
use std::time::{Duration, Instant};

use protocol::{Command, Key, PartitionId};

/// A command that takes longer is told, with its name.
const LONG: Duration = Duration::from_millis(100);
/// Classes of durations: up to 1 µs, 2 µs, 4 µs and so on; the last takes what is longer than half a minute.
const CLASSES: usize = 26;

/// A command under way.
#[derive(Debug, Clone, Copy)]
struct UnderWay {
    began: Instant,
    value_type: &'static str,
    intent: &'static str,
    key: Key,
    process_instance: Key,
}

/// Counts commands by how long they took.
#[derive(Debug)]
pub(crate) struct CommandTimes {
    partition: PartitionId,
    under_way: Cell<Option<UnderWay>>,
    longest: Cell<Duration>,
    counts: [Cell<usize>; CLASSES],
}

impl CommandTimes {
    /// Nothing of a partition has been counted yet.
    pub fn of(partition: PartitionId) -> Self {
        CommandTimes { partition, under_way: Cell::default(), longest: Cell::default(), counts: Default::default() }
    }

    /// A command begins.
    #[inline]
    pub fn begin(&self, command: &Command, process_instance: Key) {
        self.under_way.set(Some(UnderWay {
            began: Instant::now(),
            value_type: command.payload.value_type().name(),
            intent: command.payload.intent_name(),
            key: command.key,
            process_instance,
        }));
    }

    /// The command that began last has ended, if that was not said already.
    #[inline]
    pub fn end(&self) {
        if let Some(ended) = self.under_way.take() {
            let duration = ended.began.elapsed();
            self.count(duration);
            if duration >= LONG {
                self.tell(&ended, duration);
            }
        }
    }

    /// Others waited for it meanwhile: whoever looks for the reason finds it here.
    #[cold]
    fn tell(&self, ended: &UnderWay, duration: Duration) {
        let UnderWay { value_type, intent, key, process_instance, .. } = *ended;
        let milliseconds = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        tracing::info!(
            partition = %self.partition, milliseconds, key = key.raw(), process_instance = process_instance.raw(),
            "{value_type} {intent} was one long command"
        );
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
    use protocol::{Payload, WorkIntent};

    use super::*;

    #[test]
    fn each_duration_is_counted_in_the_class_that_holds_it() {
        let times = CommandTimes::of(PartitionId(1));
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
        let times = CommandTimes::of(PartitionId(1));
        times.end();
        let payload = Payload::Work(WorkIntent::Continue, Box::default());
        times.begin(&Command::of_system(Key::NONE, payload), Key::NONE);
        assert_eq!(times.take().count(), 0, "nothing has ended");
        times.end();
        times.end();
        assert_eq!(times.take().map(|(_, count)| count).sum::<usize>(), 1);
    }
}
