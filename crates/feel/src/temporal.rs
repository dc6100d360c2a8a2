//! Dates, times and durations: their texts, order and arithmetic.
//!
//! Calendar arithmetic and time zones come from `jiff` with its bundled zone database, so that every replica computes the
//! same whatever zone files its machine has.

use std::cmp::Ordering;
use std::fmt::Write;
use std::sync::OnceLock;

use jiff::civil;
use jiff::tz::{Offset, TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, Span, Timestamp};

fn zones() -> &'static TimeZoneDatabase {
    static ZONES: OnceLock<TimeZoneDatabase> = OnceLock::new();
    ZONES.get_or_init(TimeZoneDatabase::bundled)
}

/// Where a time is told: a fixed offset from UTC or a named zone with its rules.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Zone {
    Offset(Offset),
    Named(TimeZone),
}

impl Zone {
    pub(crate) const UTC: Zone = Zone::Offset(Offset::UTC);

    fn time_zone(&self) -> TimeZone {
        match self {
            Zone::Offset(offset) => TimeZone::fixed(*offset),
            Zone::Named(zone) => zone.clone(),
        }
    }

    pub(crate) fn named(name: &str) -> Option<Zone> {
        zones().get(name).ok().filter(|zone| zone.iana_name().is_some()).map(Zone::Named)
    }

    pub(crate) fn offset_seconds(seconds: i64) -> Option<Zone> {
        let seconds = i32::try_from(seconds).ok().filter(|seconds| seconds.unsigned_abs() <= 18 * 3600)?;
        Offset::from_seconds(seconds).ok().map(Zone::Offset)
    }

    pub(crate) fn name(&self) -> Option<&str> {
        match self {
            Zone::Offset(_) => None,
            Zone::Named(zone) => zone.iana_name(),
        }
    }

    /// Splits `10:00:00+01:00`, `10:00:00Z` or `10:00:00@Europe/Berlin` before the zone.
    fn split(text: &str) -> Option<(&str, Option<Zone>)> {
        if let Some((local, name)) = text.split_once('@') {
            return Some((local, Some(Zone::named(name)?)));
        }
        // `2020-01-01T10:00:00+01:00[Europe/Berlin]`: the name decides, the offset follows from it.
        if let Some((rest, name)) = text.strip_suffix(']').and_then(|rest| rest.split_once('[')) {
            let (local, _) = Zone::split(rest)?;
            return Some((local, Some(Zone::named(name)?)));
        }
        if let Some(local) = text.strip_suffix(['Z', 'z']) {
            return Some((local, Some(Zone::UTC)));
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
        Some((local, Some(Zone::offset_seconds(if offset.starts_with('-') { -total } else { total })?)))
    }

    fn write(&self, out: &mut String) {
        match self {
            Zone::Offset(offset) => write_offset(*offset, out),
            Zone::Named(zone) => {
                out.push('@');
                out.push_str(zone.iana_name().unwrap_or("Etc/Unknown"));
            }
        }
    }
}

fn write_offset(offset: Offset, out: &mut String) {
    let seconds = offset.seconds();
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

fn two_digits(text: &str) -> Option<i8> {
    if text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None }
}

pub(crate) fn parse_date(text: &str) -> Option<civil::Date> {
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let mut fields = unsigned.split('-');
    let year = fields.next()?;
    let (month, day) = (two_digits(fields.next()?)?, two_digits(fields.next()?)?);
    if fields.next().is_some() || year.len() != 4 || !year.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let year: i16 = year.parse().ok()?;
    civil::Date::new(if negative { -year } else { year }, month, day).ok()
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
    if second > 59 { None } else { civil::Time::new(hour, minute, second, nanosecond).ok() }
}

/// The digits behind a decimal point as nanoseconds.
fn parse_fraction(digits: &str) -> Option<i32> {
    if digits.is_empty() || digits.len() > 9 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let value: i32 = digits.parse().ok()?;
    Some(value * 10i32.pow(9 - digits.len() as u32))
}

pub(crate) fn write_date(date: civil::Date, out: &mut String) {
    let year = date.year();
    let sign = if year < 0 { "-" } else { "" };
    let _ = write!(out, "{sign}{:04}-{:02}-{:02}", year.unsigned_abs(), date.month(), date.day());
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

fn nanosecond_of_day(time: civil::Time) -> i64 {
    let seconds = i64::from(time.hour()) * 3600 + i64::from(time.minute()) * 60 + i64::from(time.second());
    seconds * 1_000_000_000 + i64::from(time.subsec_nanosecond())
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

/// A time of day, told with or without a zone.
#[derive(Clone, Debug, PartialEq)]
pub struct Time {
    pub(crate) time: civil::Time,
    pub(crate) zone: Option<Zone>,
}

impl Time {
    /// Reads `10:00:00`, `10:00:00Z`, `10:00:00+01:00` or `10:00:00@Europe/Berlin`.
    pub fn parse(text: &str) -> Option<Time> {
        let (local, zone) = Zone::split(text)?;
        Some(Time { time: parse_civil_time(local)?, zone })
    }

    pub(crate) fn offset(&self) -> Option<Offset> {
        match self.zone.as_ref()? {
            Zone::Offset(offset) => Some(*offset),
            // A time of day has no date; the rules of the zone are read at the epoch.
            Zone::Named(zone) => Some(zone.to_offset(Timestamp::UNIX_EPOCH)),
        }
    }

    /// Nanoseconds since midnight in UTC where a zone is given.
    fn position(&self) -> i64 {
        let shift = self.offset().map_or(0, |offset| i64::from(offset.seconds()) * 1_000_000_000);
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
        Time { time: time_of_nanosecond(moved), zone: self.zone.clone() }
    }

    pub(crate) fn write(&self, out: &mut String) {
        write_civil_time(self.time, out);
        if let Some(zone) = &self.zone {
            zone.write(out);
        }
    }

    /// The form of the reference in JSON: without zone, seconds that are zero are left out.
    pub(crate) fn write_json(&self, out: &mut String) {
        if self.zone.is_none() && self.time.second() == 0 && self.time.subsec_nanosecond() == 0 {
            let _ = write!(out, "{:02}:{:02}", self.time.hour(), self.time.minute());
        } else {
            self.write(out);
        }
    }
}

/// Whether a 'T' stands between a date and a time. The name of a zone behind them can have one as well.
pub(crate) fn has_date_and_time(text: &str) -> bool {
    text.split(['@', '[']).next().is_some_and(|told| told.contains('T'))
}

/// A date and time, told with or without a zone.
#[derive(Clone, Debug, PartialEq)]
pub struct DateTime {
    pub(crate) local: civil::DateTime,
    pub(crate) zone: Option<Zone>,
}

impl DateTime {
    /// Reads `2020-01-01T10:00:00`, with `Z`, `+01:00`, `@Europe/Berlin` or `+01:00[Europe/Berlin]` behind it, or a date alone (midnight).
    pub fn parse(text: &str) -> Option<DateTime> {
        if !has_date_and_time(text) {
            let local = parse_date(text)?.to_datetime(civil::Time::midnight());
            return Some(DateTime { local, zone: None });
        }
        let (local, zone) = Zone::split(text)?;
        let (date, time) = local.split_once('T')?;
        // The end of a day is the start of the next.
        if matches!(time, "24:00:00" | "24:00") {
            let next = parse_date(date)?.tomorrow().ok()?;
            return Some(DateTime { local: next.to_datetime(civil::Time::midnight()), zone });
        }
        Some(DateTime { local: parse_date(date)?.to_datetime(parse_civil_time(time)?), zone })
    }

    /// The start of a date, for an operation with another value: in UTC if that has a zone.
    pub(crate) fn of_date(date: civil::Date, other: &DateTime) -> DateTime {
        let zone = other.zone.as_ref().map(|_| Zone::UTC);
        DateTime { local: date.to_datetime(civil::Time::midnight()), zone }
    }

    pub(crate) fn from_epoch_milliseconds(milliseconds: i64) -> Option<DateTime> {
        let timestamp = Timestamp::from_millisecond(milliseconds).ok()?;
        Some(DateTime { local: Offset::UTC.to_datetime(timestamp), zone: Some(Zone::UTC) })
    }

    fn timestamp(&self) -> Option<Timestamp> {
        let zone = self.zone.as_ref().map_or(TimeZone::UTC, Zone::time_zone);
        zone.to_ambiguous_timestamp(self.local).compatible().ok()
    }

    /// Milliseconds since the epoch; a date and time without a zone is read as UTC.
    pub fn epoch_milliseconds(&self) -> Option<i64> {
        self.timestamp().map(Timestamp::as_millisecond)
    }

    pub(crate) fn offset(&self) -> Option<Offset> {
        match self.zone.as_ref()? {
            Zone::Offset(offset) => Some(*offset),
            Zone::Named(zone) => Some(zone.to_offset(self.timestamp()?)),
        }
    }

    /// `None` if only one of them has a zone.
    pub(crate) fn compare(&self, other: &DateTime) -> Option<Ordering> {
        if self.zone.is_some() != other.zone.is_some() {
            return None;
        }
        Some(self.timestamp()?.cmp(&other.timestamp()?))
    }

    pub(crate) fn since(&self, earlier: &DateTime) -> Option<SignedDuration> {
        self.compare(earlier)?;
        Some(self.timestamp()?.duration_since(earlier.timestamp()?))
    }

    /// In a named zone a day-time duration counts elapsed time, and the clock may be set in between.
    pub(crate) fn plus(&self, duration: SignedDuration) -> Option<DateTime> {
        let moved = self.timestamp()?.checked_add(duration).ok()?;
        let zone = self.zone.as_ref().map_or(TimeZone::UTC, Zone::time_zone);
        Some(DateTime { local: zone.to_datetime(moved), zone: self.zone.clone() })
    }

    pub(crate) fn plus_months(&self, months: i64) -> Option<DateTime> {
        let date = add_months(self.local.date(), months)?;
        Some(DateTime { local: date.to_datetime(self.local.time()), zone: self.zone.clone() })
    }

    /// The same instant in another zone; without a zone so far, the same local time there.
    pub(crate) fn in_zone(&self, zone: Zone) -> Option<DateTime> {
        if self.zone.is_none() {
            return Some(DateTime { local: self.local, zone: Some(zone) });
        }
        let local = zone.time_zone().to_datetime(self.timestamp()?);
        Some(DateTime { local, zone: Some(zone) })
    }

    fn write_local(&self, out: &mut String) {
        write_date(self.local.date(), out);
        out.push('T');
        write_civil_time(self.local.time(), out);
    }

    pub(crate) fn write(&self, out: &mut String) {
        self.write_local(out);
        if let Some(zone) = &self.zone {
            zone.write(out);
        }
    }

    /// ISO with offset, and the zone's name in brackets.
    pub(crate) fn write_json(&self, out: &mut String) {
        self.write_local(out);
        if let (Some(zone), Some(offset)) = (&self.zone, self.offset()) {
            write_offset(offset, out);
            if let Zone::Named(_) = zone {
                let _ = write!(out, "[{}]", zone.name().unwrap_or("Etc/Unknown"));
            }
        }
    }
}

pub(crate) fn add_months(date: civil::Date, months: i64) -> Option<civil::Date> {
    let span = Span::new().try_months(months).ok()?;
    date.checked_add(span).ok()
}

pub(crate) fn add_days(date: civil::Date, duration: SignedDuration) -> Option<civil::Date> {
    let days = duration.as_secs().div_euclid(86_400);
    date.checked_add(Span::new().try_days(days).ok()?).ok()
}

/// Whole months from one date to another, negative when `to` is earlier.
pub(crate) fn months_between(from: civil::Date, to: civil::Date) -> i64 {
    let total = |date: civil::Date| i64::from(date.year()) * 12 + i64::from(date.month());
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
