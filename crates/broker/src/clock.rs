//! The node's clock.

use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use parking_lot::{Mutex, RwLock};
use protocol::Timestamp;

use crate::partition_time::Moment;

type Listener = Arc<dyn Fn() + Send + Sync>;
/// Gets the time at which a user stopped the clock, or nothing when it goes again.
type Publisher = Arc<dyn Fn(Option<Timestamp>) + Send + Sync>;

/// A change was asked of a clock that does not allow changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("The clock of this node cannot be controlled. Start the node with clock control to allow it.")]
pub struct NotControllable;

/// The system's time plus an offset, or a pinned time. Time inside the engine is taken from here.
///
/// A pinned time is part of the replicated state of the first partition: it holds after a restart and for the next leader.
pub struct Clock {
    controllable: bool,
    setting: RwLock<Setting>,
    /// How far ahead of the system's time it has been, in milliseconds. The time of partitions never goes back, so a clock that
    /// is reset goes on from there: if it showed less, what is added to it next would not move the engine.
    farthest: Mutex<i64>,
    listeners: Mutex<Vec<Listener>>,
    publisher: Mutex<Option<Publisher>>,
}

#[derive(Debug, Clone, Copy)]
enum Setting {
    Offset(i64),
    Pinned(Timestamp),
}

impl Setting {
    /// How far it is ahead of the system's time.
    fn offset(self) -> i64 {
        match self {
            Setting::Offset(offset) => offset,
            Setting::Pinned(time) => time.saturating_sub(system_milliseconds()),
        }
    }

    fn pinned(self) -> Option<Timestamp> {
        match self {
            Setting::Pinned(time) => Some(time),
            Setting::Offset(_) => None,
        }
    }
}

impl Clock {
    /// The system's clock. Only a controllable one can be changed.
    pub fn new(controllable: bool) -> Self {
        Clock {
            controllable,
            setting: RwLock::new(Setting::Offset(0)),
            farthest: Mutex::new(0),
            listeners: Mutex::default(),
            publisher: Mutex::default(),
        }
    }

    /// Whether the time can be changed.
    pub fn is_controllable(&self) -> bool {
        self.controllable
    }

    /// Milliseconds since the Unix epoch.
    pub fn now_milliseconds(&self) -> Timestamp {
        match *self.setting.read() {
            Setting::Offset(offset) => system_milliseconds().saturating_add(offset),
            Setting::Pinned(time) => time,
        }
    }

    /// What the clock and a steady clock that began at `started` show.
    pub(crate) fn moment(&self, started: Instant) -> Moment {
        let steady_milliseconds = i64::try_from(started.elapsed().as_millis()).unwrap_or(i64::MAX);
        Moment { clock: self.now_milliseconds(), is_pinned: self.is_pinned(), steady_milliseconds }
    }

    /// Whether the clock is pinned.
    pub fn is_pinned(&self) -> bool {
        self.setting.read().pinned().is_some()
    }

    /// Stops the clock at a time.
    ///
    /// # Errors
    /// When the clock is not controllable.
    pub fn pin(&self, milliseconds: Timestamp) -> Result<(), NotControllable> {
        self.change(|_, _| Setting::Pinned(milliseconds))
    }

    /// Moves the clock; a pinned one stays pinned.
    ///
    /// # Errors
    /// When the clock is not controllable.
    pub fn add(&self, milliseconds: i64) -> Result<(), NotControllable> {
        self.change(|setting, _| match setting {
            Setting::Offset(offset) => Setting::Offset(offset.saturating_add(milliseconds)),
            Setting::Pinned(time) => Setting::Pinned(time.saturating_add(milliseconds)),
        })
    }

    /// Lets the clock go on: with the system's time, or ahead of it as far as it has ever been.
    ///
    /// # Errors
    /// When the clock is not controllable.
    pub fn reset(&self) -> Result<(), NotControllable> {
        self.change(|_, farthest| Setting::Offset(farthest))
    }

    fn change(&self, change: impl FnOnce(Setting, i64) -> Setting) -> Result<(), NotControllable> {
        if !self.controllable {
            return Err(NotControllable);
        }
        let (before, after) = {
            let mut setting = self.setting.write();
            let before = *setting;
            *setting = change(before, self.farthest_with(before));
            (before, *setting)
        };
        self.tell_listeners();
        let publisher = self.publisher.lock().clone();
        if let Some(publish) = publisher.filter(|_| before.pinned() != after.pinned()) {
            publish(after.pinned());
        }
        Ok(())
    }

    /// How far ahead the clock has been, also as it is now.
    fn farthest_with(&self, setting: Setting) -> i64 {
        let mut farthest = self.farthest.lock();
        *farthest = setting.offset().max(*farthest);
        *farthest
    }

    fn tell_listeners(&self) {
        let listeners = self.listeners.lock().clone();
        listeners.iter().for_each(|listener| listener());
    }

    /// The replicated state says where the clock stands still, or that it goes.
    pub(crate) fn adopt(&self, pinned: Option<Timestamp>) {
        {
            let mut setting = self.setting.write();
            *setting = match (pinned, *setting) {
                (Some(time), _) => Setting::Pinned(time),
                (None, stopped @ Setting::Pinned(_)) => Setting::Offset(self.farthest_with(stopped)),
                (None, offset) => offset,
            };
        }
        if let Some(time) = pinned {
            tracing::info!(time, "the clock stands still, as it was pinned before");
        }
        self.tell_listeners();
    }

    /// Sets who learns where users stop the clock, so that it becomes part of the replicated state.
    pub(crate) fn publish_to(&self, publisher: Publisher) {
        *self.publisher.lock() = Some(publisher);
    }

    /// Adds a function that is called after every change, so that waits for a time can be started again.
    pub(crate) fn on_change(&self, listener: Listener) {
        self.listeners.lock().push(listener);
    }
}

impl std::fmt::Debug for Clock {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Clock").field("setting", &*self.setting.read()).finish_non_exhaustive()
    }
}

fn system_milliseconds() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::try_from(since.as_millis()).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn a_controllable_clock_is_pinned_moved_and_reset_and_tells_its_listeners() {
        let clock = Clock::new(true);
        let changes = Arc::new(AtomicUsize::new(0));
        let counter = changes.clone();
        clock.on_change(Arc::new(move || {
            counter.fetch_add(1, Ordering::Relaxed);
        }));
        clock.pin(5_000).expect("controllable");
        clock.add(250).expect("controllable");
        assert_eq!(clock.now_milliseconds(), 5_250);
        clock.reset().expect("controllable");
        clock.add(86_400_000).expect("controllable");
        assert!(clock.now_milliseconds() > system_milliseconds() + 86_000_000);
        assert_eq!(changes.load(Ordering::Relaxed), 4);
    }

    #[test]
    fn a_clock_that_was_ahead_goes_on_from_there() {
        const DAY: i64 = 86_400_000;
        let clock = Clock::new(true);
        clock.add(3 * DAY).expect("controllable");
        clock.reset().expect("controllable");
        assert!(clock.now_milliseconds() >= system_milliseconds() + 3 * DAY - 1_000);
        clock.pin(system_milliseconds() + 5 * DAY).expect("controllable");
        clock.reset().expect("controllable");
        let ahead = clock.now_milliseconds() - system_milliseconds();
        assert!(ahead > 4 * DAY && !clock.is_pinned(), "{ahead}");
        clock.add(4 * DAY).expect("controllable");
        clock.add(-20 * DAY).expect("controllable");
        clock.reset().expect("controllable");
        assert!(clock.now_milliseconds() >= system_milliseconds() + 8 * DAY, "back to where it was");
    }

    #[test]
    fn what_is_pinned_is_published_and_what_is_adopted_is_not() {
        let clock = Clock::new(true);
        let published = Arc::new(Mutex::new(Vec::new()));
        let of_clock = published.clone();
        clock.publish_to(Arc::new(move |pinned| of_clock.lock().push(pinned)));
        clock.add(50).expect("controllable");
        clock.pin(5_000).expect("controllable");
        clock.add(1).expect("controllable");
        clock.reset().expect("controllable");
        clock.reset().expect("controllable");
        assert_eq!(*published.lock(), [Some(5_000), Some(5_001), None]);
        clock.adopt(Some(7_000));
        assert_eq!(clock.now_milliseconds(), 7_000);
        clock.adopt(None);
        assert!(!clock.is_pinned());
        assert_eq!(published.lock().len(), 3);
    }

    #[test]
    fn other_clocks_refuse() {
        assert_eq!(Clock::new(false).add(1), Err(NotControllable));
    }
}
