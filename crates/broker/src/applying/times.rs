//! How long the engine takes for single commands.
//!
//! A batch is as long as the commands that happened to come together; what the limits of the engine promise is the length
//! of one of them. The counts are kept here, on the thread of the partition, until they are published. What lies between
//! two commands is not theirs: their note is a page of a file, and a store into it waits for the disk now and then.
//!
//! A thread that has to share its processor takes longer for the same command. So its own time is measured as well, for
//! commands that last.

use std::cell::Cell;
use std::time::{Duration, Instant};

use protocol::{Command, Key, PartitionId};

use super::Applying;

/// A command that takes longer is told, with its name.
const LONG: Duration = Duration::from_millis(100);
/// A command that computes longer counts as one that ends the process, until a checkpoint holds what it did.
const SLOW: Duration = Duration::from_secs(10);
/// The processor time of a command is known to within this, and not asked for where it takes less.
const PRECISION: Duration = Duration::from_millis(1);
/// Upper bounds of the classes of durations, in microseconds. Each bound of the metric is one of them, and the last class takes what
/// is longer.
const BOUNDS: [u64; 23] = [
    1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
    1_000_000, 2_500_000, 5_000_000, 10_000_000, 30_000_000,
];

/// A command under way.
#[derive(Debug, Clone, Copy)]
struct UnderWay {
    began: Instant,
    /// Which command of its entry it is, and how many there are.
    number: (u32, u32),
    value_type: &'static str,
    intent: &'static str,
    key: Key,
    process_instance: Key,
}

/// What the thread had computed for at a moment.
#[derive(Debug, Clone, Copy)]
struct Reading {
    at: Instant,
    processor: Duration,
}

impl Reading {
    fn now(at: Instant) -> Self {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the clock is one that each system with threads has, and the structure is there to be written.
        unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
        let seconds = Duration::from_secs(time.tv_sec.try_into().unwrap_or_default());
        let processor = seconds + Duration::from_nanos(time.tv_nsec.try_into().unwrap_or_default());
        Reading { at, processor }
    }
}

/// Counts commands by how long they took.
#[derive(Debug)]
pub(crate) struct CommandTimes {
    partition: PartitionId,
    under_way: Cell<Option<UnderWay>>,
    /// Read at most so long before the command under way began as times are precise.
    reading: Cell<Option<Reading>>,
    longest: Cell<Duration>,
    longest_computing: Cell<Duration>,
    /// The first slow command since this was asked for.
    slow: Cell<Option<UnderWay>>,
    counts: [Cell<usize>; BOUNDS.len()],
}

impl CommandTimes {
    /// Nothing of a partition has been counted yet.
    pub fn of(partition: PartitionId) -> Self {
        CommandTimes {
            partition,
            under_way: Cell::default(),
            reading: Cell::default(),
            longest: Cell::default(),
            longest_computing: Cell::default(),
            slow: Cell::default(),
            counts: Default::default(),
        }
    }

    /// A command begins.
    #[inline]
    pub fn begin(&self, number: (u32, u32), command: &Command, process_instance: Key) {
        let began = Instant::now();
        if self.reading.get().is_none_or(|reading| began.duration_since(reading.at) > PRECISION) {
            self.reading.set(Some(Reading::now(began)));
        }
        self.under_way.set(Some(UnderWay {
            began,
            number,
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
            if duration > PRECISION {
                self.took_long(&ended, duration);
            }
        }
    }

    #[cold]
    fn took_long(&self, ended: &UnderWay, duration: Duration) {
        let Some(before) = self.reading.get() else { return };
        let now = Reading::now(ended.began + duration);
        // Others may have come between the reading and this one.
        let computing = now.processor.saturating_sub(before.processor).min(duration);
        self.reading.set(Some(now));
        self.longest_computing.set(self.longest_computing.get().max(computing));
        if computing >= SLOW && self.slow.get().is_none() {
            self.slow.set(Some(*ended));
        }
        if duration >= LONG {
            self.tell(ended, duration, computing);
        }
    }

    /// Others waited for it meanwhile: whoever looks for the reason finds it here.
    fn tell(&self, ended: &UnderWay, duration: Duration, computing: Duration) {
        let UnderWay { value_type, intent, key, process_instance, .. } = *ended;
        let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        tracing::info!(
            partition = %self.partition, milliseconds = milliseconds(duration), computing = milliseconds(computing),
            key = key.raw(), process_instance = process_instance.raw(),
            "{value_type} {intent} was one long command"
        );
    }

    /// The first slow command since the last time; its entry is for who asks to know.
    #[inline]
    pub fn take_slow(&self) -> Option<Applying> {
        self.slow.take().map(|slow| Applying {
            index: 0,
            number: slow.number.0,
            commands: slow.number.1,
            key: slow.key,
            process_instance: slow.process_instance,
            command: format!("{} {}", slow.value_type, slow.intent),
        })
    }

    /// The longest since the start.
    pub fn longest(&self) -> Duration {
        self.longest.get()
    }

    /// The most processor time of one since the start.
    pub fn longest_computing(&self) -> Duration {
        self.longest_computing.get()
    }

    /// How many commands took at most this long, and longer than the class before; what was taken is not counted again.
    pub fn take(&self) -> impl Iterator<Item = (Duration, usize)> + '_ {
        let classes = BOUNDS.iter().zip(&self.counts);
        classes.map(|(bound, count)| (Duration::from_micros(*bound), count.take())).filter(|(_, count)| *count > 0)
    }

    fn count(&self, duration: Duration) {
        let class = BOUNDS.partition_point(|bound| Duration::from_micros(*bound) < duration);
        let count = &self.counts[class.min(BOUNDS.len() - 1)];
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
        for nanoseconds in [0, 1, 999, 1_000, 1_001, 2_000, 2_001, 5_000, 3_600_000_000_000] {
            times.count(Duration::from_nanos(nanoseconds));
        }
        let micros = Duration::from_micros;
        let last = Duration::from_secs(30);
        assert_eq!(times.take().collect::<Vec<_>>(), [(micros(1), 4), (micros(2), 2), (micros(5), 2), (last, 1)]);
        assert_eq!(times.take().count(), 0, "what was taken is not counted again");
        assert_eq!(times.longest(), Duration::from_secs(3_600));
    }

    #[test]
    fn a_command_is_counted_once_it_has_ended() {
        let times = CommandTimes::of(PartitionId(1));
        times.end();
        let payload = Payload::Work(WorkIntent::Continue, Box::default());
        times.begin((1, 1), &Command::of_system(Key::NONE, payload), Key::NONE);
        assert_eq!(times.take().count(), 0, "nothing has ended");
        times.end();
        times.end();
        assert_eq!(times.take().map(|(_, count)| count).sum::<usize>(), 1);
    }

    #[test]
    fn what_a_command_computes_is_told_apart_from_how_long_it_takes() {
        let times = CommandTimes::of(PartitionId(1));
        let command = Command::of_system(Key::NONE, Payload::Work(WorkIntent::Continue, Box::default()));
        times.begin((1, 1), &command, Key::NONE);
        std::thread::sleep(PRECISION * 20);
        times.end();
        let asleep = times.longest_computing();
        assert!(asleep < PRECISION * 10 && times.longest() >= PRECISION * 20, "{asleep:?} of {:?}", times.longest());
        times.begin((1, 1), &command, Key::NONE);
        let before = Reading::now(Instant::now()).processor;
        while Reading::now(Instant::now()).processor - before < PRECISION * 10 {}
        times.end();
        assert!(times.longest_computing() >= PRECISION * 10, "{:?}", times.longest_computing());
    }
}
