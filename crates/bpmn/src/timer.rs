//! When timers are due: dates, durations, repeating intervals and cron expressions.
//!
//! The texts are those that Camunda 8 reads, and give the same due dates:
//!
//! - `timeDate`: a date with time and offset, perhaps with a zone: `2025-01-31T09:00:00+01:00[Europe/Berlin]`.
//! - `timeDuration`: ISO 8601, years to days on the calendar and hours to seconds exact: `P1Y2M3DT4H5M6.7S`. Every
//!   amount and the whole may have a sign.
//! - `timeCycle`: `R3/PT10S`, `R/P1D`, `R5/2025-01-31T09:00:00Z/P1M`, or a cron expression of six fields.
//!
//! # Cycles
//!
//! Each due date of a repeating interval follows from the one before, not from the time when the timer was seen, so that
//! delays do not add up. It is never before the current time, though: a timer that was late, or whose start is in the past,
//! is due at once, and continues from there. A cron expression is always looked up from the current time.
//!
//! # Time zones
//!
//! Months, days and cron fields are those of UTC, while Camunda 8 takes the zone of the machine. Only a repeating
//! interval whose start names a zone counts months and days there, so that a daily timer stays at its hour when clocks
//! are set.
//!
//! # Cron expressions
//!
//! Second, minute, hour, day of month, month, day of week, all of which must match. Values, names (`JAN`, `MON`),
//! ranges, steps and lists, `*`, and `?` for one of both days; `L`, `L-3`, `LW` and `15W` as day of month; `5L` and
//! `MON#1` as day of week, where 0 and 7 are Sunday; `@yearly`, `@annually`, `@monthly`, `@weekly`, `@daily`,
//! `@midnight` and `@hourly`; alternatives between `|` in the fields, or between `||` for whole expressions. What Camunda
//! 8 accepts but does not do as it is written, or only fails on when it is due, is refused: ranges of days or months that
//! go backwards, `L` and `W` in a list of days of the month, and expressions that no date matches. A month that does not
//! have the day of `31W` is passed over.

mod cron;
mod date;
mod interval;

use std::borrow::Cow;

use protocol::Timestamp;

use cron::Cron;
use date::ZonedDate;
use interval::Interval;

/// The longest text that is read, in bytes.
pub const MAXIMUM_TEXT_BYTES: usize = 1_024;

/// What of a text is repeated in an error, in characters.
const MAXIMUM_QUOTED_CHARACTERS: usize = 100;

/// A date with time and offset in the form that records show, without seconds and fractions that are zero, as in
/// `2030-01-31T09:00+01:00`; `None` when the text is none.
pub fn date_text(text: &str) -> Option<String> {
    (text.len() <= MAXIMUM_TEXT_BYTES).then(|| ZonedDate::parse(text).ok()?.text())?
}

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
pub struct Timer {
    repetitions: i32,
    schedule: Schedule,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Schedule {
    Date(Timestamp),
    Interval(Interval),
    Cron(Cron),
}

impl Timer {
    /// Reads the text of a timer, which must not have white space around it.
    ///
    /// # Errors
    /// When the text is not of the kind; the error is a sentence that says what was expected.
    pub fn parse(kind: TimerKind, text: &str) -> Result<Timer, String> {
        let timer = if text.len() > MAXIMUM_TEXT_BYTES {
            Err(format!("it is longer than {MAXIMUM_TEXT_BYTES} bytes"))
        } else {
            match kind {
                TimerKind::Date => ZonedDate::parse(text)
                    .map(|date| Timer { repetitions: 1, schedule: Schedule::Date(date.timestamp) }),
                TimerKind::Duration => Interval::parse(text)
                    .map(|interval| Timer { repetitions: 1, schedule: Schedule::Interval(interval) }),
                TimerKind::Cycle => match text.strip_prefix('R') {
                    Some(rest) => parse_repeating_interval(rest),
                    None => {
                        Cron::parse(text).map(|cron| Timer { repetitions: ENDLESS, schedule: Schedule::Cron(cron) })
                    }
                },
            }
        };
        timer.map_err(|reason| {
            let (noun, advice) = match kind {
                TimerKind::Date => (
                    "date",
                    "Write a date with time and offset, such as 2025-01-31T09:00:00Z, 2025-01-31T09:00:00+01:00 or \
                     2025-01-31T09:00:00+01:00[Europe/Berlin]",
                ),
                TimerKind::Duration => {
                    ("duration", "Write it in the form of ISO 8601, such as PT15M, P1DT12H or P1Y6M")
                }
                TimerKind::Cycle => (
                    "cycle",
                    "Write a repeating interval, such as R3/PT10S, R/P1D or R5/2025-01-31T09:00:00Z/P1M, or a cron \
                     expression of 6 fields, such as '0 0 9-17 * * MON-FRI'",
                ),
            };
            format!("The timer {noun} '{}' is not valid, since {reason}. {advice}.", shortened(text))
        })
    }

    /// How often it is due altogether; [`ENDLESS`] for a timer that never ends. A repeating interval can say 0 or another
    /// negative number: it is due once.
    pub fn repetitions(&self) -> i32 {
        self.repetitions
    }

    /// When it is due first, for a timer that starts at `now`; `None` when that is beyond the range of timestamps. A date,
    /// and a negative duration, can be in the past.
    pub fn first_due(&self, now: Timestamp) -> Option<Timestamp> {
        match &self.schedule {
            Schedule::Date(timestamp) => Some(*timestamp),
            Schedule::Interval(interval) => interval.first_due(now),
            Schedule::Cron(cron) => cron.next(now),
        }
    }

    /// When it is due again after it was due at `due`, seen at `now`: never before `now`. `None` when that is never, or
    /// beyond the range of timestamps. How often it was due already is for the caller to count.
    pub fn next_due(&self, due: Timestamp, now: Timestamp) -> Option<Timestamp> {
        if self.repetitions != ENDLESS && self.repetitions <= 1 {
            return None;
        }
        match &self.schedule {
            Schedule::Date(_) => None,
            Schedule::Interval(interval) => interval.next_due(due, now),
            Schedule::Cron(cron) => cron.next(now),
        }
    }
}

/// Reads what follows the `R`: a number or nothing, and an interval.
fn parse_repeating_interval(text: &str) -> Result<Timer, String> {
    let Some((repetitions, interval)) = text.split_once('/') else {
        return Err("there is no '/' with an interval behind the 'R'".into());
    };
    let repetitions = match repetitions {
        "" => ENDLESS,
        number => number.parse().map_err(|_| {
            format!("'{}' behind the 'R' is not a number of repetitions up to {}", shortened(number), i32::MAX)
        })?,
    };
    let interval = Interval::parse(interval)
        .map_err(|reason| format!("'{}' is not an interval: {reason}", shortened(interval)))?;
    Ok(Timer { repetitions, schedule: Schedule::Interval(interval) })
}

/// The beginning of a text, for an error.
fn shortened(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(MAXIMUM_QUOTED_CHARACTERS) {
        None => Cow::Borrowed(text),
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
    }
}
