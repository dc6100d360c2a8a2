//! When timers are due: dates, durations, repeating intervals and cron expressions.

use protocol::Timestamp;

/// What the text of a timer says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerKind {
    /// `timeDate`: a point in time.
    Date,
    /// `timeDuration`: a time after the timer starts.
    Duration,
    /// `timeCycle`: several points in time.
    Cycle,
}

/// Repetitions of a timer that never ends.
pub const ENDLESS: i32 = -1;

/// The text of a timer, understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timer {}

impl Timer {
    /// Reads the text of a timer.
    ///
    /// # Errors
    /// When the text is not of the kind; the error is a sentence that tells what was expected.
    pub fn parse(_kind: TimerKind, _text: &str) -> Result<Timer, String> {
        Ok(Timer {})
    }

    /// How often it is due altogether; [`ENDLESS`] for a timer that never ends.
    pub fn repetitions(&self) -> i32 {
        1
    }

    /// When it is due first, for a timer that starts at `now`; `None` when that is never, or beyond the range of timestamps.
    pub fn first_due(&self, _now: Timestamp) -> Option<Timestamp> {
        None
    }

    /// When it is due again after it was due at `due`, seen at `now`; `None` when that is never.
    pub fn next_due(&self, _due: Timestamp, _now: Timestamp) -> Option<Timestamp> {
        None
    }
}
