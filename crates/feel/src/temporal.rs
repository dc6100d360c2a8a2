//! Dates, times and durations: their texts, order and arithmetic.
//!
//! Years have up to nine digits. Beyond the years of the zone database, clocks are set as in the years that have the same
//! calendar.

use std::cmp::Ordering;
use std::fmt::Write;

use jiff::SignedDuration;
use jiff::civil;

use crate::calendar::{Date, SECONDS_PER_DAY};
use crate::zone::Zone;

/// The zone after a time.
struct Suffix {
    zone: Option<Zone>,
    /// The offset that is written before the name of the zone.
    ahead: Option<i64>,
}

/// Splits `10:00:00+01:00`, `10:00:00Z`, `10:00:00@Europe/Berlin` or `10:00:00+01:00[Europe/Berlin]` before the zone.
fn split_zone(text: &str) -> Option<(&str, Suffix)> {
    if let Some((local, name)) = text.split_once('@') {
        return Some((local, Suffix { zone: Some(Zone::parse(name)?), ahead: None }));
    }
    // The name decides; the offset tells apart what clocks show twice.
    if let Some((rest, name)) = text.strip_suffix(']').and_then(|rest| rest.split_once('[')) {
        let (local, offset) = split_offset(rest)?;
        return Some((local, Suffix { zone: Some(Zone::named(name)?), ahead: offset }));
    }
    let (local, offset) = split_offset(text)?;
    let zone = match offset {
        Some(offset) => Some(Zone::of_offset(offset)?),
        None => None,
    };
    Some((local, Suffix { zone, ahead: None }))
}

/// Splits before an offset, which is given in seconds.
fn split_offset(text: &str) -> Option<(&str, Option<i64>)> {
    if let Some(local) = text.strip_suffix(['Z', 'z']) {
        return Some((local, Some(0)));
    }
    let time_start = text.find('T').map_or(0, |at| at + 1);
    let Some(at) = text[time_start..].find(['+', '-']) else {
        return Some((text, None));
    };
    let (local, offset) = text.split_at(time_start + at);
    let mut fields = offset[1..].split(':').map(|field| two_digits(field).map(i64::from));
    let hours = fields.next()??;
    let minutes = fields.next().unwrap_or(Some(0))?;
    let seconds = fields.next().unwrap_or(Some(0))?;
    if fields.next().is_some() || minutes > 59 || seconds > 59 {
        return None;
    }
    let total = hours * 3600 + minutes * 60 + seconds;
    Some((local, Some(if offset.starts_with('-') { -total } else { total })))
}

fn write_zone(zone: &Zone, out: &mut String) {
    match zone {
        Zone::Offset(offset) => write_offset(*offset, out),
        zone => {
            out.push('@');
            out.push_str(zone.name().unwrap_or("Etc/Unknown"));
        }
    }
}

fn write_offset(seconds: i64, out: &mut String) {
    if seconds == 0 {
        out.push('Z');
        return;
    }
    let (sign, magnitude) = (if seconds < 0 { '-' } else { '+' }, seconds.unsigned_abs());
    let _ = write!(out, "{sign}{:02}:{:02}", magnitude / 3600, magnitude / 60 % 60);
    if magnitude % 60 != 0 {
        let _ = write!(out, ":{:02}", magnitude % 60);
    }
}

fn is_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

fn two_digits(text: &str) -> Option<u8> {
    if text.len() == 2 && is_digits(text) { text.parse().ok() } else { None }
}

/// Reads `2020-01-31`, with a year of at least four digits and no more zeros before it than these need.
pub(crate) fn parse_date(text: &str) -> Option<Date> {
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let mut fields = unsigned.split('-');
    let digits = fields.next()?;
    let (month, day) = (two_digits(fields.next()?)?, two_digits(fields.next()?)?);
    let told_shortest = digits.len() == 4 || digits.len() > 4 && !digits.starts_with('0');
    if fields.next().is_some() || !told_shortest || !is_digits(digits) {
        return None;
    }
    let year: i64 = digits.parse().ok()?;
    if negative && year == 0 { None } else { Date::new(if negative { -year } else { year }, month, day) }
}

fn parse_civil_time(text: &str) -> Option<civil::Time> {
    let mut fields = text.split(':');
    let (hour, minute) = (two_digits(fields.next()?)?, two_digits(fields.next()?)?);
    let (second, nanosecond) = match fields.next() {
        None => (0, 0),
        Some(field) => match field.split_once('.') {
            None => (two_digits(field)?, 0),
            Some((second, fraction)) => (two_digits(second)?, parse_fraction(fraction)?),
        },
    };
    if fields.next().is_some() {
        return None;
    }
    // A leap second is not a time of the civil clock.
    if second > 59 { None } else { civil::Time::new(hour as i8, minute as i8, second as i8, nanosecond).ok() }
}

/// The digits behind a decimal point as nanoseconds.
fn parse_fraction(digits: &str) -> Option<i32> {
    if digits.is_empty() || digits.len() > 9 || !is_digits(digits) {
        return None;
    }
    let value: i32 = digits.parse().ok()?;
    Some(value * 10i32.pow(9 - digits.len() as u32))
}

/// As the reference does, with a plus sign before a year of more than four digits.
pub(crate) fn write_date(date: Date, out: &mut String) {
    if date.year() > 9999 {
        out.push('+');
    }
    write_date_unsigned(date, out);
}

fn write_date_unsigned(date: Date, out: &mut String) {
    let sign = if date.year() < 0 { "-" } else { "" };
    let _ = write!(out, "{sign}{:04}-{:02}-{:02}", date.year().unsigned_abs(), date.month(), date.day());
}

fn write_fraction(nanoseconds: u32, out: &mut String) {
    if nanoseconds != 0 {
        let digits = format!("{nanoseconds:09}");
        out.push('.');
        out.push_str(digits.trim_end_matches('0'));
    }
}

fn write_civil_time(time: civil::Time, out: &mut String) {
    let _ = write!(out, "{:02}:{:02}:{:02}", time.hour(), time.minute(), time.second());
    write_fraction(time.subsec_nanosecond().unsigned_abs(), out);
}

const DAY_NANOSECONDS: i64 = 86_400_000_000_000;

fn second_of_day(time: civil::Time) -> i64 {
    i64::from(time.hour()) * 3600 + i64::from(time.minute()) * 60 + i64::from(time.second())
}

fn nanosecond_of_day(time: civil::Time) -> i64 {
    second_of_day(time) * 1_000_000_000 + i64::from(time.subsec_nanosecond())
}

fn time_of_nanosecond(nanosecond: i64) -> civil::Time {
    let second = nanosecond / 1_000_000_000;
    civil::time(
        (second / 3600) as i8,
        (second / 60 % 60) as i8,
        (second % 60) as i8,
        (nanosecond % 1_000_000_000) as i32,
    )
}

/// A time of day with or without a zone.
#[derive(Clone, Debug, PartialEq)]
pub struct Time {
    pub(crate) time: civil::Time,
    zone: Option<Zone>,
    /// Seconds that the clocks of the zone are ahead of UTC.
    ahead: Option<i64>,
}

impl Time {
    /// A time of day has no date; of a zone with rules the offset without daylight saving counts.
    pub(crate) fn new(time: civil::Time, zone: Option<Zone>) -> Time {
        let ahead = zone.as_ref().and_then(Zone::standard_offset);
        Time { time, zone, ahead }
    }

    /// Reads `10:00:00`, `10:00:00Z`, `10:00:00+01:00` or `10:00:00@Europe/Berlin`.
    pub fn parse(text: &str) -> Option<Time> {
        let (local, suffix) = split_zone(text)?;
        Some(Time::new(parse_civil_time(local)?, suffix.zone))
    }

    pub(crate) fn zone(&self) -> Option<&Zone> {
        self.zone.as_ref()
    }

    /// Seconds that the clocks of the zone are ahead of UTC.
    pub(crate) fn offset(&self) -> Option<i64> {
        self.ahead
    }

    /// Nanoseconds since midnight in UTC where a zone is given.
    fn position(&self) -> i64 {
        let shift = self.offset().map_or(0, |offset| offset * 1_000_000_000);
        nanosecond_of_day(self.time) - shift
    }

    /// `None` if only one of them has a zone.
    pub(crate) fn compare(&self, other: &Time) -> Option<Ordering> {
        (self.zone.is_some() == other.zone.is_some()).then(|| self.position().cmp(&other.position()))
    }

    pub(crate) fn since(&self, earlier: &Time) -> Option<SignedDuration> {
        self.compare(earlier)?;
        Some(SignedDuration::from_nanos(self.position() - earlier.position()))
    }

    pub(crate) fn plus(&self, duration: SignedDuration) -> Time {
        let shift = (duration.as_nanos() % i128::from(DAY_NANOSECONDS)) as i64;
        let moved = (nanosecond_of_day(self.time) + shift).rem_euclid(DAY_NANOSECONDS);
        Time { time: time_of_nanosecond(moved), ..self.clone() }
    }

    pub(crate) fn write(&self, out: &mut String) {
        write_civil_time(self.time, out);
        if let Some(zone) = &self.zone {
            write_zone(zone, out);
        }
    }

    /// As a variable: without zone, seconds that are zero are left out, as the reference does.
    pub(crate) fn write_variable(&self, out: &mut String) {
        if self.zone.is_none() && self.time.second() == 0 && self.time.subsec_nanosecond() == 0 {
            let _ = write!(out, "{:02}:{:02}", self.time.hour(), self.time.minute());
        } else {
            self.write(out);
        }
    }

    /// As ISO 8601 has it, which knows offsets and no names of zones.
    pub(crate) fn write_iso(&self, out: &mut String) {
        write_civil_time(self.time, out);
        if let Some(ahead) = self.ahead {
            write_offset(ahead, out);
        }
    }
}

/// Whether there is a 'T' between a date and a time. The name of a zone after them can contain one too.
pub(crate) fn has_date_and_time(text: &str) -> bool {
    text.split(['@', '[']).next().is_some_and(|local| local.contains('T'))
}

/// A date and a time of day, as clocks of some zone show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Local {
    pub(crate) date: Date,
    pub(crate) time: civil::Time,
}

impl Local {
    pub(crate) const fn midnight(date: Date) -> Local {
        Local { date, time: civil::Time::midnight() }
    }

    /// The second after 1970-01-01T00:00:00, as if there were no zones. Years are bounded, so this fits.
    fn second(self) -> i64 {
        self.date.epoch_day() * SECONDS_PER_DAY + second_of_day(self.time)
    }

    /// What clocks show when they are this many seconds ahead of UTC.
    fn of_instant(instant: SignedDuration, ahead: i64) -> Option<Local> {
        let (whole, nanoseconds) = floor(instant);
        let second = whole.checked_add(ahead)?;
        let date = Date::of_epoch_day(second.div_euclid(SECONDS_PER_DAY))?;
        let nanosecond = second.rem_euclid(SECONDS_PER_DAY) * 1_000_000_000 + nanoseconds;
        Some(Local { date, time: time_of_nanosecond(nanosecond) })
    }
}

/// Whole seconds, and the nanoseconds after them, which are not negative.
fn floor(duration: SignedDuration) -> (i64, i64) {
    let (seconds, nanoseconds) = (duration.as_secs(), i64::from(duration.subsec_nanos()));
    // A second less cannot overflow: instants are bounded by the years.
    if nanoseconds < 0 { (seconds.saturating_sub(1), nanoseconds + 1_000_000_000) } else { (seconds, nanoseconds) }
}

/// A date and time with or without a zone. With one it is a moment: clocks show that time, and where they show it twice, the
/// offset says which of both it is.
#[derive(Clone, Debug, PartialEq)]
pub struct DateTime {
    pub(crate) local: Local,
    zone: Option<Zone>,
    /// Seconds that the clocks of the zone are ahead of UTC; 0 without a zone.
    ahead: i64,
}

impl DateTime {
    /// What clocks of a zone show. A time that they leave out is as much later as they are set. Of two such times it is the one
    /// with the preferred offset, or else the first.
    pub(crate) fn new(local: Local, zone: Option<Zone>, preferred: Option<i64>) -> Option<DateTime> {
        match zone {
            None => Some(DateTime { local, zone, ahead: 0 }),
            Some(Zone::Offset(ahead)) => Some(DateTime { local, zone, ahead }),
            Some(named) => {
                let second = named.second_of_local(local.second(), preferred)?;
                DateTime::at(SignedDuration::new(second, local.time.subsec_nanosecond()), Some(named))
            }
        }
    }

    /// Reads `2020-01-01T10:00:00`, with `Z`, `+01:00`, `@Europe/Berlin` or `+01:00[Europe/Berlin]` after it, or a date alone (midnight).
    pub fn parse(text: &str) -> Option<DateTime> {
        if !has_date_and_time(text) {
            return DateTime::new(Local::midnight(parse_date(text)?), None, None);
        }
        let (local, suffix) = split_zone(text)?;
        let (date, time) = local.split_once('T')?;
        let date = parse_date(date)?;
        // The end of a day is the start of the next.
        let local = match time {
            "24:00:00" | "24:00" => Local::midnight(date.plus_days(1)?),
            time => Local { date, time: parse_civil_time(time)? },
        };
        DateTime::new(local, suffix.zone, suffix.ahead)
    }

    /// The start of a date, for an operation with another value: in UTC if that has a zone.
    pub(crate) fn of_date(date: Date, other: &DateTime) -> DateTime {
        DateTime { local: Local::midnight(date), zone: other.zone.as_ref().map(|_| Zone::UTC), ahead: 0 }
    }

    pub(crate) fn from_epoch_milliseconds(milliseconds: i64) -> Option<DateTime> {
        DateTime::at(SignedDuration::from_millis(milliseconds), Some(Zone::UTC))
    }

    /// The time since 1970-01-01T00:00:00Z; without a zone it is read as UTC.
    fn instant(&self) -> Option<SignedDuration> {
        let second = self.local.second().checked_sub(self.ahead)?;
        Some(SignedDuration::new(second, self.local.time.subsec_nanosecond()))
    }

    /// Milliseconds since the epoch; a date and time without a zone is read as UTC.
    pub fn epoch_milliseconds(&self) -> Option<i64> {
        i64::try_from(self.instant()?.as_millis()).ok()
    }

    pub(crate) fn zone(&self) -> Option<&Zone> {
        self.zone.as_ref()
    }

    /// Seconds that the clocks of the zone are ahead of UTC.
    pub(crate) fn offset(&self) -> Option<i64> {
        self.zone.as_ref().map(|_| self.ahead)
    }

    /// The time of day; in the zone, it keeps the offset.
    pub(crate) fn time(&self) -> Time {
        Time { time: self.local.time, zone: self.zone.clone(), ahead: self.offset() }
    }

    /// `None` if only one of them has a zone.
    pub(crate) fn compare(&self, other: &DateTime) -> Option<Ordering> {
        match (&self.zone, &other.zone) {
            (None, None) => Some(self.local.cmp(&other.local)),
            (Some(_), Some(_)) => Some(self.instant()?.cmp(&other.instant()?)),
            _ => None,
        }
    }

    pub(crate) fn since(&self, earlier: &DateTime) -> Option<SignedDuration> {
        if self.zone.is_some() != earlier.zone.is_some() {
            return None;
        }
        self.instant()?.checked_sub(earlier.instant()?)
    }

    /// In a named zone a day-time duration counts elapsed time, and the clock may be set in between.
    pub(crate) fn plus(&self, duration: SignedDuration) -> Option<DateTime> {
        DateTime::at(self.instant()?.checked_add(duration)?, self.zone.clone())
    }

    fn at(instant: SignedDuration, zone: Option<Zone>) -> Option<DateTime> {
        let ahead = zone.as_ref().map_or(Some(0), |zone| zone.offset_at(floor(instant).0))?;
        Some(DateTime { local: Local::of_instant(instant, ahead)?, zone, ahead })
    }

    /// The same time of another day, if possible with the same offset.
    pub(crate) fn plus_months(&self, months: i64) -> Option<DateTime> {
        let date = self.local.date.plus_months(months)?;
        DateTime::new(Local { date, ..self.local }, self.zone.clone(), Some(self.ahead))
    }

    /// The same instant in another zone; without a zone so far, the same local time there.
    pub(crate) fn in_zone(&self, zone: Zone) -> Option<DateTime> {
        if self.zone.is_none() {
            return DateTime::new(self.local, Some(zone), None);
        }
        DateTime::at(self.instant()?, Some(zone))
    }

    fn write_time(&self, out: &mut String) {
        out.push('T');
        write_civil_time(self.local.time, out);
    }

    pub(crate) fn write(&self, out: &mut String) {
        write_date_unsigned(self.local.date, out);
        self.write_time(out);
        if let Some(zone) = &self.zone {
            write_zone(zone, out);
        }
    }

    /// ISO with offset, and the zone's name in brackets.
    pub(crate) fn write_json(&self, out: &mut String) {
        write_date(self.local.date, out);
        self.write_time(out);
        if let (Some(zone), Some(offset)) = (&self.zone, self.offset()) {
            write_offset(offset, out);
            if let Some(name) = zone.name() {
                let _ = write!(out, "[{name}]");
            }
        }
    }
}

pub(crate) fn add_days(date: Date, duration: SignedDuration) -> Option<Date> {
    date.plus_days(duration.as_secs().div_euclid(SECONDS_PER_DAY))
}

/// The time from the start of one date to that of another.
pub(crate) fn days_between(from: Date, to: Date) -> SignedDuration {
    SignedDuration::from_secs((to.epoch_day() - from.epoch_day()) * SECONDS_PER_DAY)
}

/// Whole months from one date to another, negative when `to` is earlier.
pub(crate) fn months_between(from: Date, to: Date) -> i64 {
    let total = |date: Date| date.year() * 12 + i64::from(date.month());
    let months = total(to) - total(from);
    match months.cmp(&0) {
        Ordering::Greater if to.day() < from.day() => months - 1,
        Ordering::Less if to.day() > from.day() => months + 1,
        _ => months,
    }
}

/// What a duration text denotes.
#[derive(Debug, PartialEq)]
pub(crate) enum Duration {
    Months(i64),
    Exact(SignedDuration),
}

/// Reads `P1Y2M` or `P1DT2H3M4.5S`, each with an optional sign. `None` for other texts, also for a mixture of both.
pub(crate) fn parse_duration(text: &str) -> Option<Duration> {
    let (negative, body) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let body = body.strip_prefix('P')?;
    let (date, time) = match body.split_once('T') {
        Some((date, time)) if !time.is_empty() => (date, time),
        Some(_) => return None,
        None => (body, ""),
    };
    if date.is_empty() && time.is_empty() {
        return None;
    }
    let (mut months, mut seconds, mut nanoseconds) = (None, 0i64, 0i32);
    let mut previous = 0;
    for (amount, unit) in fields(date)? {
        let amount: i64 = amount.parse().ok()?;
        let rank = " YMWD".find(unit).filter(|rank| *rank > previous)?;
        previous = rank;
        match unit {
            'Y' => months = Some(amount.checked_mul(12)?),
            'M' => months = Some(months.unwrap_or(0).checked_add(amount)?),
            'W' => seconds = amount.checked_mul(7 * 86_400)?,
            _ => seconds = seconds.checked_add(amount.checked_mul(86_400)?)?,
        }
    }
    if let Some(months) = months {
        // Days and shorter units cannot be expressed in months, nor the reverse.
        return (previous <= 2 && time.is_empty()).then_some(Duration::Months(if negative { -months } else { months }));
    }
    previous = 0;
    for (amount, unit) in fields(time)? {
        previous = " HMS".find(unit).filter(|rank| *rank > previous)?;
        let whole = match amount.split_once('.') {
            Some((whole, fraction)) if unit == 'S' => {
                let digits = &fraction[..fraction.len().min(9)];
                nanoseconds = if digits.is_empty() { 0 } else { parse_fraction(digits)? };
                whole
            }
            _ => amount,
        };
        let factor = [0, 3600, 60, 1][previous];
        let whole: i64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
        seconds = seconds.checked_add(whole.checked_mul(factor)?)?;
    }
    let duration = SignedDuration::new(seconds, nanoseconds);
    Some(Duration::Exact(if negative { duration.checked_neg()? } else { duration }))
}

/// Splits `1Y2M` into amounts (digits, perhaps with a point) and units.
fn fields(text: &str) -> Option<Vec<(&str, char)>> {
    let mut rest = text;
    let mut fields = Vec::new();
    while !rest.is_empty() {
        let at = rest.find(|character: char| !character.is_ascii_digit() && character != '.')?;
        let unit = rest[at..].chars().next()?;
        if at == 0 || fields.len() > 4 {
            return None;
        }
        fields.push((&rest[..at], unit));
        rest = &rest[at + unit.len_utf8()..];
    }
    Some(fields)
}

pub(crate) fn write_months(months: i64, out: &mut String) {
    let magnitude = months.unsigned_abs();
    if months < 0 {
        out.push('-');
    }
    let (years, rest) = (magnitude / 12, magnitude % 12);
    let _ = match (years, rest) {
        (_, 0) => write!(out, "P{years}Y"),
        (0, _) => write!(out, "P{rest}M"),
        _ => write!(out, "P{years}Y{rest}M"),
    };
}

pub(crate) fn write_duration(duration: SignedDuration, out: &mut String) {
    if duration.is_zero() {
        out.push_str("P0D");
        return;
    }
    if duration.is_negative() {
        out.push('-');
    }
    let (seconds, nanoseconds) = (duration.as_secs().unsigned_abs(), duration.subsec_nanos().unsigned_abs());
    out.push('P');
    if seconds >= 86_400 {
        let _ = write!(out, "{}D", seconds / 86_400);
    }
    let (hours, minutes, rest) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    if hours == 0 && minutes == 0 && rest == 0 && nanoseconds == 0 {
        return;
    }
    out.push('T');
    if hours > 0 {
        let _ = write!(out, "{hours}H");
    }
    if minutes > 0 {
        let _ = write!(out, "{minutes}M");
    }
    if rest > 0 || nanoseconds > 0 {
        let _ = write!(out, "{rest}");
        write_fraction(nanoseconds, out);
        out.push('S');
    }
}
