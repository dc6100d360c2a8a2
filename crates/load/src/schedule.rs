//! Time of a run, the schedule of an open loop, and the thread that keeps it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::sync::Notify;

use crate::error::LoadError;

/// A time that never comes.
pub(crate) const FOR_EVER: Duration = Duration::MAX;

/// Times of a run are durations since its start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timeline {
    start: Instant,
}

impl Timeline {
    pub fn start_now() -> Self {
        Timeline { start: Instant::now() }
    }

    pub fn now(&self) -> Duration {
        self.start.elapsed()
    }

    pub async fn sleep_until(&self, time: Duration) {
        tokio::time::sleep_until((self.start + time).into()).await;
    }
}

/// Milliseconds since the Unix epoch.
pub(crate) fn unix_milliseconds() -> u64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX)
}

/// When each creation is intended to be sent, whatever the server does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Schedule {
    pub start: Duration,
    pub end: Duration,
    /// Creations per second.
    pub rate: f64,
}

impl Schedule {
    pub fn intended(&self, number: u64) -> Duration {
        self.start + Duration::from_secs_f64(number as f64 / self.rate)
    }

    /// How many creations there are in all.
    pub fn total(&self) -> u64 {
        ((self.end - self.start).as_secs_f64() * self.rate).floor() as u64
    }

    /// How many creations are intended to have been sent by now.
    pub fn due(&self, now: Duration) -> u64 {
        let Some(elapsed) = now.checked_sub(self.start) else {
            return 0;
        };
        let due = (elapsed.as_secs_f64() * self.rate).floor() as u64 + 1;
        due.min(self.total())
    }
}

/// Wakes the starter at the intended times. The timers of the runtime have a resolution of one millisecond, as long as
/// the latencies to be measured, so a thread sleeps instead.
pub(crate) struct Pacer {
    ended: Arc<AtomicBool>,
    wake: Arc<Notify>,
}

/// Creations that are closer together than this share a wake-up.
const SHORTEST_SLEEP: Duration = Duration::from_micros(500);
const LONGEST_SLEEP: Duration = Duration::from_millis(100);

impl Pacer {
    pub fn start(timeline: Timeline, schedule: Schedule) -> Result<Self, LoadError> {
        let pacer = Pacer { ended: Arc::new(AtomicBool::new(false)), wake: Arc::new(Notify::new()) };
        let (ended, wake) = (Arc::clone(&pacer.ended), Arc::clone(&pacer.wake));
        std::thread::Builder::new()
            .name("load-pacer".into())
            .spawn(move || keep_pace(timeline, schedule, &ended, &wake))
            .map_err(LoadError::Thread)?;
        Ok(pacer)
    }

    pub async fn tick(&self) {
        self.wake.notified().await;
    }
}

impl Drop for Pacer {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
    }
}

fn keep_pace(timeline: Timeline, schedule: Schedule, ended: &AtomicBool, wake: &Notify) {
    let mut pace = Pace::new(schedule);
    while let Some(time) = pace.next_time() {
        loop {
            if ended.load(Ordering::Relaxed) {
                return;
            }
            match time.checked_sub(timeline.now()) {
                Some(left) if !left.is_zero() => std::thread::sleep(left.min(LONGEST_SLEEP)),
                _ => break,
            }
        }
        wake.notify_one();
        pace.woke(timeline.now());
    }
}

/// The times at which the starter of a schedule is woken, the last one at its end.
struct Pace {
    schedule: Schedule,
    /// How many creations share a wake-up.
    shared_wakeup: u64,
    /// The creation for which the starter is woken next.
    next: Option<u64>,
}

impl Pace {
    fn new(schedule: Schedule) -> Self {
        let shared_wakeup = (SHORTEST_SLEEP.as_secs_f64() * schedule.rate).ceil().max(1.0) as u64;
        Pace { schedule, shared_wakeup, next: Some(0) }
    }

    /// None after the end of the schedule.
    fn next_time(&self) -> Option<Duration> {
        self.next.map(|next| self.schedule.intended(next).min(self.schedule.end))
    }

    /// The starter was woken, perhaps later than planned.
    fn woke(&mut self, now: Duration) {
        let ended = self.next_time().is_none_or(|time| time >= self.schedule.end);
        self.next = self.next.filter(|_| !ended).map(|next| (next + self.shared_wakeup).max(self.schedule.due(now)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_does_not_drift_and_ends() {
        let schedule = Schedule { start: Duration::from_secs(1), end: Duration::from_secs(11), rate: 150.0 };
        assert_eq!(schedule.total(), 1500);
        assert_eq!(schedule.intended(0), Duration::from_secs(1));
        assert_eq!(schedule.intended(1500), Duration::from_secs(11));
        assert_eq!(schedule.due(Duration::ZERO), 0);
        assert_eq!(schedule.due(Duration::from_secs(1)), 1);
        assert_eq!(schedule.due(Duration::from_millis(1020)), 4);
        assert_eq!(schedule.due(Duration::from_secs(100)), 1500);
        for number in 0..schedule.total() {
            let time = schedule.intended(number) + Duration::from_nanos(1);
            assert!(schedule.due(time) > number, "creation {number} is due at its time");
        }
    }

    /// When the starter is woken if each sleep lasts longer than planned by this much.
    fn wake_ups(rate: f64, oversleeps: Duration) -> Vec<Duration> {
        let mut pace = Pace::new(Schedule { start: Duration::ZERO, end: Duration::from_millis(40), rate });
        let mut wake_ups: Vec<Duration> = Vec::new();
        while let Some(time) = pace.next_time() {
            let now = wake_ups.last().copied().unwrap_or_default().max(time) + oversleeps;
            pace.woke(now);
            wake_ups.push(now);
        }
        wake_ups
    }

    #[test]
    fn the_starter_is_woken_for_each_creation_and_at_the_end() {
        let milliseconds: Vec<Duration> = (0..=40).map(Duration::from_millis).collect();
        assert_eq!(wake_ups(1_000.0, Duration::ZERO), milliseconds);
        // Those that are closer together than the shortest sleep share a wake-up.
        assert_eq!(wake_ups(10_000.0, Duration::ZERO).len(), 81);
        assert_eq!(wake_ups(10.0, Duration::ZERO), [Duration::ZERO, Duration::from_millis(40)]);
    }

    #[test]
    fn a_starter_that_is_woken_late_is_not_woken_for_what_was_due_meanwhile() {
        let late = wake_ups(1_000.0, Duration::from_millis(7));
        // From the next creation that is not due, seven milliseconds late again.
        assert_eq!(late, [7, 15, 23, 31, 39, 47].map(Duration::from_millis));
        assert_eq!(wake_ups(1_000.0, Duration::from_secs(1)).len(), 2);
    }

    #[tokio::test]
    async fn the_pacer_ticks_to_the_end_of_the_schedule() {
        let timeline = Timeline::start_now();
        let schedule = Schedule { start: Duration::ZERO, end: Duration::from_millis(40), rate: 1000.0 };
        let pacer = Pacer::start(timeline, schedule).expect("a thread starts");
        loop {
            tokio::time::timeout(Duration::from_secs(120), pacer.tick()).await.expect("the last tick is at the end");
            if timeline.now() >= schedule.end {
                break;
            }
        }
    }
}
