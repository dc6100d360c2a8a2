//! Periods of time, with or without a date at which the first one ends.

use feel::calendar::{Date, SECONDS_PER_DAY};
use feel::zone::Zone;
use protocol::Timestamp;

use super::date::ZonedDate;

const NANOSECONDS_PER_SECOND: i64 = 1_000_000_000;
const NANOSECONDS_PER_MILLISECOND: i64 = 1_000_000;

/// Months and days of the calendar, then an exact time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Interval {
    start: Option<ZonedDate>,
    months: i64,
    days: i64,
    /// Years, months or days were given that are not all zero.
    has_period: bool,
    seconds: i64,
    /// From 0 to below a second; a negative time has fewer seconds instead.
    nanoseconds: i64,
}

impl Interval {
    /// Reads `PT1H30M`, `P1Y2M3DT4H` or `START/PT1H`. The error completes a sentence after "since".
    pub(super) fn parse(text: &str) -> Result<Interval, String> {
        let (start, period) = match text.rsplit_once('/') {
            None | Some(("", _)) => (None, text.strip_prefix('/').unwrap_or(text)),
            Some((start, period)) => (Some(start), period),
        };
        let start = match start {
            Some(start) => Some(ZonedDate::parse(start).map_err(|reason| {
                format!("'{}' before the last '/' is not a date with time and zone: {reason}", super::shortened(start))
            })?),
            None => None,
        };
        let interval = Interval::parse_period(period).map_err(|reason| match start {
            Some(_) => format!("'{}' behind the last '/' is not a duration: {reason}", super::shortened(period)),
            None => reason,
        })?;
        Ok(Interval { start, ..interval })
    }

    fn parse_period(text: &str) -> Result<Interval, String> {
        let (negative, unsigned) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let Some(body) = unsigned.strip_prefix(['P', 'p']) else {
            return Err("a duration starts with 'P'".into());
        };
        let (date, time) = match body.split_once('T') {
            Some((date, time)) => (date, Some(time)),
            None => (body, None),
        };
        if date.is_empty() && time.is_none() {
            return Err("there is no amount behind the 'P'".into());
        }
        let [years, months, weeks, days] = calendar_amounts(date, negative)?;
        let Some(days) = weeks.checked_mul(7).and_then(|weeks| weeks.checked_add(days)) else {
            return Err(too_large("the sum of weeks and days", "2147483647 days"));
        };
        let has_period = years != 0 || months != 0 || days != 0;
        let months = i64::from(years) * 12 + i64::from(months);
        let (seconds, nanoseconds) = match time {
            Some(time) => exact_time(time, negative)?,
            None => (0, 0),
        };
        Ok(Interval { start: None, months, days: i64::from(days), has_period, seconds, nanoseconds })
    }

    /// When it is over for the first time.
    pub(super) fn first_due(&self, now: Timestamp) -> Option<Timestamp> {
        if let Some(start) = &self.start {
            return Some(start.timestamp.max(now));
        }
        if self.has_period || self.seconds >= SECONDS_PER_DAY {
            return self.after(now);
        }
        // What is exact and shorter than a day is rounded toward zero, and only then added.
        let nanoseconds = i128::from(self.seconds) * i128::from(NANOSECONDS_PER_SECOND) + i128::from(self.nanoseconds);
        now.checked_add(i64::try_from(nanoseconds / i128::from(NANOSECONDS_PER_MILLISECOND)).ok()?)
    }

    /// When the next one is over, if one was over at `due`, but not before `now`.
    pub(super) fn next_due(&self, due: Timestamp, now: Timestamp) -> Option<Timestamp> {
        self.after(due).map(|next| next.max(now))
    }

    /// A timestamp moved by months and days on the calendar of the start's zone, or else of UTC, and then by the exact
    /// time.
    fn after(&self, timestamp: Timestamp) -> Option<Timestamp> {
        let milliseconds = timestamp.rem_euclid(1_000);
        let moved = self.after_period(timestamp.div_euclid(1_000))?;
        let nanoseconds = milliseconds * NANOSECONDS_PER_MILLISECOND + self.nanoseconds;
        let second = moved.checked_add(self.seconds)?.checked_add(nanoseconds / NANOSECONDS_PER_SECOND)?;
        let milliseconds = nanoseconds % NANOSECONDS_PER_SECOND / NANOSECONDS_PER_MILLISECOND;
        second.checked_mul(1_000)?.checked_add(milliseconds)
    }

    fn after_period(&self, second: i64) -> Option<i64> {
        if !self.has_period {
            return Some(second);
        }
        let zone = self.start.as_ref().map_or(&Zone::UTC, |start| &start.zone);
        let offset = zone.offset_at(second)?;
        let local = second.checked_add(offset)?;
        let date = Date::of_epoch_day(local.div_euclid(SECONDS_PER_DAY))?;
        let date = date.plus_months(self.months)?.plus_days(self.days)?;
        let local = date.epoch_day() * SECONDS_PER_DAY + local.rem_euclid(SECONDS_PER_DAY);
        zone.second_of_local(local, Some(offset))
    }
}

/// Years, months, weeks and days of `1Y2M3W4D`.
fn calendar_amounts(text: &str, negative: bool) -> Result<[i32; 4], String> {
    let mut amounts = [0; 4];
    let mut reader = AmountReader { rest: text, units: "YMWD", next_unit: 0 };
    while let Some(amount) = reader.next_amount()? {
        if amount.fraction.is_some() {
            return Err("only seconds can have a fraction".into());
        }
        let value = amount.whole.parse::<i32>().ok();
        match value.and_then(|value| if negative { value.checked_neg() } else { Some(value) }) {
            Some(value) => amounts[amount.unit] = value,
            None => return Err(too_large(amount.whole, "2147483647")),
        }
    }
    Ok(amounts)
}

/// Seconds, and nanoseconds not below zero, of `1H2M3.5S`.
fn exact_time(text: &str, negative: bool) -> Result<(i64, i64), String> {
    if text.is_empty() {
        return Err("there is no amount behind the 'T'".into());
    }
    const SECONDS: [i64; 3] = [3_600, 60, 1];
    let (mut amounts, mut nanoseconds) = ([0; 3], 0);
    let mut reader = AmountReader { rest: text, units: "HMS", next_unit: 0 };
    while let Some(amount) = reader.next_amount()? {
        let value = amount.whole.parse::<i64>().ok().and_then(|value| value.checked_mul(SECONDS[amount.unit]));
        amounts[amount.unit] = value.ok_or_else(|| too_large(amount.whole, "9223372036854775807 seconds"))?;
        if let Some(fraction) = amount.fraction {
            if amount.unit != 2 {
                return Err("only seconds can have a fraction".into());
            }
            if fraction.len() > 9 {
                return Err("the fraction of the seconds has more than 9 digits".into());
            }
            let digits = fraction.bytes().chain([b'0'; 9]).take(9);
            nanoseconds = digits.fold(0, |value, digit| value * 10 + i64::from(digit - b'0'));
            if amount.whole.starts_with('-') {
                nanoseconds = -nanoseconds;
            }
        }
    }
    normalized(amounts, nanoseconds, negative)
        .ok_or_else(|| too_large("the sum of hours, minutes and seconds", "9223372036854775807 seconds"))
}

fn normalized([hours, minutes, seconds]: [i64; 3], nanoseconds: i64, negative: bool) -> Option<(i64, i64)> {
    let mut seconds = hours.checked_add(minutes.checked_add(seconds)?)?;
    let mut nanoseconds = nanoseconds;
    if nanoseconds < 0 {
        seconds = seconds.checked_sub(1)?;
        nanoseconds += NANOSECONDS_PER_SECOND;
    }
    match (negative, nanoseconds) {
        (false, _) => Some((seconds, nanoseconds)),
        (true, 0) => Some((seconds.checked_neg()?, 0)),
        // Minus seconds minus one does not leave the range: it is the complement.
        (true, _) => Some((!seconds, NANOSECONDS_PER_SECOND - nanoseconds)),
    }
}

fn too_large(what: &str, limit: &str) -> String {
    format!("{} is beyond the largest amount, which is {limit}", super::shortened(what))
}

struct Amount<'a> {
    /// Digits, perhaps with a sign.
    whole: &'a str,
    fraction: Option<&'a str>,
    /// An index into the units.
    unit: usize,
}

/// Splits `1H2M` into amounts whose units are in order and used once.
struct AmountReader<'a> {
    rest: &'a str,
    units: &'static str,
    next_unit: usize,
}

impl<'a> AmountReader<'a> {
    fn next_amount(&mut self) -> Result<Option<Amount<'a>>, String> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let sign = usize::from(self.rest.starts_with(['+', '-']));
        let digits = digit_count(&self.rest[sign..]);
        if digits == 0 {
            return Err(format!("'{}' does not start with a number", super::shortened(self.rest)));
        }
        let (whole, rest) = self.rest.split_at(sign + digits);
        let (fraction, rest) = match rest.strip_prefix(['.', ',']) {
            Some(rest) => {
                let (fraction, rest) = rest.split_at(digit_count(rest));
                (Some(fraction), rest)
            }
            None => (None, rest),
        };
        let Some(unit) = rest.chars().next() else {
            return Err(format!("there is no unit behind '{}'", super::shortened(self.rest)));
        };
        match self.units.find(unit.to_ascii_uppercase()) {
            Some(at) if at >= self.next_unit => {
                self.rest = &rest[unit.len_utf8()..];
                self.next_unit = at + 1;
                Ok(Some(Amount { whole, fraction, unit: at }))
            }
            Some(_) => Err(format!("'{unit}' comes twice or too late")),
            None => Err(format!("'{}' is not a unit that can stand there", unit.escape_debug())),
        }
    }
}

fn digit_count(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}
