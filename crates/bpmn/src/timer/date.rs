//! Dates with time and zone, as ISO 8601 and the brackets of `2025-01-31T09:00:00+01:00[Europe/Berlin]` write them.

use feel::calendar::{Date, SECONDS_PER_DAY};
use feel::zone::{LARGEST_OFFSET_SECONDS, Zone};
use protocol::Timestamp;

/// A point in time and the zone that it was given in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ZonedDate {
    /// Rounded down to a millisecond.
    pub(super) timestamp: Timestamp,
    pub(super) zone: Zone,
    /// Of its second.
    pub(super) nanosecond: i64,
}

impl ZonedDate {
    /// The error completes a sentence after "since".
    pub(super) fn parse(text: &str) -> Result<ZonedDate, String> {
        let mut reader = Reader { rest: text };
        let date = reader.date()?;
        if !reader.take('T') && !reader.take('t') {
            return Err("behind the date there is no 'T' with a time".into());
        }
        let (second_of_day, nanosecond) = reader.time()?;
        let offset = reader.offset()?;
        let zone = match reader.rest {
            "" => Zone::Offset(offset),
            rest => bracketed_zone(rest)?,
        };
        // Where offset and zone contradict each other, the offset decides which point in time is meant.
        let second = date.epoch_day() * SECONDS_PER_DAY + second_of_day - offset;
        let timestamp = second.checked_mul(1_000).and_then(|start| start.checked_add(nanosecond / 1_000_000));
        match timestamp {
            Some(timestamp) => Ok(ZonedDate { timestamp, zone, nanosecond }),
            None => Err("timestamps end about 292 million years before and after 1970".into()),
        }
    }
}

impl ZonedDate {
    /// As `2025-01-31T09:00+01:00[Europe/Berlin]`: what a clock in the zone shows, without seconds and fractions that are zero.
    /// `None` where the calendar ends.
    pub(super) fn text(&self) -> Option<String> {
        use std::fmt::Write;
        let second = self.timestamp.div_euclid(1_000);
        let offset = self.zone.offset_at(second)?;
        let local = second.checked_add(offset)?;
        let date = Date::of_epoch_day(local.div_euclid(SECONDS_PER_DAY))?;
        let second_of_day = local.rem_euclid(SECONDS_PER_DAY);
        let mut text = match date.year() {
            year @ 0..=9_999 => format!("{year:04}"),
            year @ -9_999..0 => format!("{year:05}"),
            year => format!("{year:+}"),
        };
        let (hour, minute) = (second_of_day / 3_600, second_of_day / 60 % 60);
        // Writing to a string cannot fail.
        let _ = write!(text, "-{:02}-{:02}T{hour:02}:{minute:02}", date.month(), date.day());
        if second_of_day % 60 > 0 || self.nanosecond > 0 {
            let _ = write!(text, ":{:02}", second_of_day % 60);
        }
        if self.nanosecond > 0 {
            let digits = format!("{:09}", self.nanosecond);
            let groups = digits.trim_end_matches('0').len().div_ceil(3);
            let _ = write!(text, ".{}", &digits[..groups * 3]);
        }
        if offset == 0 {
            text.push('Z');
        } else {
            let (sign, ahead) = if offset < 0 { ('-', -offset) } else { ('+', offset) };
            let _ = write!(text, "{sign}{:02}:{:02}", ahead / 3_600, ahead / 60 % 60);
            if ahead % 60 > 0 {
                let _ = write!(text, ":{:02}", ahead % 60);
            }
        }
        if let Some(name) = self.zone.name() {
            let _ = write!(text, "[{name}]");
        }
        Some(text)
    }
}

fn bracketed_zone(text: &str) -> Result<Zone, String> {
    let Some(name) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) else {
        return Err(format!("'{}' behind the offset is not a zone in brackets", super::shortened(text)));
    };
    let zone = match name {
        "Z" | "UTC" | "UT" | "GMT" | "GMT0" => Some(Zone::UTC),
        _ => ["UTC", "UT", "GMT", ""]
            .iter()
            .find_map(|prefix| name.strip_prefix(prefix).and_then(exact_offset))
            .map(Zone::Offset)
            .or_else(|| Zone::named(name)),
    };
    zone.ok_or_else(|| format!("'{}' is not a zone of the time zone database", super::shortened(name)))
}

/// `+01:00` or `+01:00:00`, where an offset is used as a zone.
fn exact_offset(text: &str) -> Option<i64> {
    let mut reader = Reader { rest: text };
    let offset = reader.offset().ok()?;
    (text.len() >= 6 && reader.rest.is_empty()).then_some(offset)
}

struct Reader<'a> {
    rest: &'a str,
}

impl Reader<'_> {
    fn take(&mut self, expected: char) -> bool {
        match self.rest.strip_prefix(expected) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn two_digits(&mut self) -> Option<u8> {
        let (digits, rest) = self.rest.split_at_checked(2)?;
        let value = is_digits(digits).then(|| digits.parse().ok())??;
        self.rest = rest;
        Some(value)
    }

    fn date(&mut self) -> Result<Date, String> {
        let year = self.year()?;
        let month = if self.take('-') { self.two_digits() } else { None };
        let day = if self.take('-') { self.two_digits() } else { None };
        let (Some(month), Some(day)) = (month, day) else {
            return Err("it does not start with a date of year, month and day, such as 2025-01-31".into());
        };
        Date::new(year, month, day).ok_or_else(|| "the calendar does not have this date".into())
    }

    /// Four digits, or more behind a sign.
    fn year(&mut self) -> Result<i64, String> {
        let (sign, digits) = match self.rest.as_bytes().first() {
            Some(b'+') => (Some('+'), &self.rest[1..]),
            Some(b'-') => (Some('-'), &self.rest[1..]),
            _ => (None, self.rest),
        };
        let length = digits.bytes().take_while(u8::is_ascii_digit).count();
        let acceptable = match sign {
            None => length == 4,
            Some('+') => (5..=10).contains(&length),
            Some(_) => (4..=10).contains(&length),
        };
        let Some(year) = digits[..length].parse::<i64>().ok().filter(|_| acceptable) else {
            return Err("it does not start with a year of 4 digits, or of 5 to 9 digits behind a sign".into());
        };
        if sign == Some('-') && year == 0 {
            return Err("the year 0 has no sign".into());
        }
        self.rest = &digits[length..];
        Ok(if sign == Some('-') { -year } else { year })
    }

    /// The second of the day and the nanoseconds in it.
    fn time(&mut self) -> Result<(i64, i64), String> {
        let hour = self.two_digits();
        let minute = if self.take(':') { self.two_digits() } else { None };
        let (Some(hour @ 0..=23), Some(minute @ 0..=59)) = (hour, minute) else {
            return Err("behind the 'T' there is no time from 00:00 to 23:59".into());
        };
        let (mut second, mut nanoseconds) = (0, 0);
        if self.take(':') {
            let Some(given @ 0..=59) = self.two_digits() else {
                return Err("the seconds of the time are not two digits from 00 to 59".into());
            };
            second = given;
            if self.take('.') {
                nanoseconds = self.fraction()?;
            }
        }
        Ok((i64::from(hour) * 3_600 + i64::from(minute) * 60 + i64::from(second), nanoseconds))
    }

    fn fraction(&mut self) -> Result<i64, String> {
        let length = self.rest.bytes().take_while(u8::is_ascii_digit).count();
        if length > 9 {
            return Err("the fraction of a second has more than 9 digits".into());
        }
        let nanoseconds = self.rest[..length].bytes().chain([b'0'; 9]).take(9);
        let nanoseconds = nanoseconds.fold(0, |value, digit| value * 10 + i64::from(digit - b'0'));
        self.rest = &self.rest[length..];
        Ok(nanoseconds)
    }

    /// `Z`, `+01`, `+01:00` or `+01:00:00`, in seconds.
    fn offset(&mut self) -> Result<i64, String> {
        if self.take('Z') || self.take('z') {
            return Ok(0);
        }
        let negative = self.rest.starts_with('-');
        if !self.take('+') && !self.take('-') {
            return Err("behind the time there is no offset from UTC, which is 'Z' or for example '+01:00'".into());
        }
        let Some(hours) = self.two_digits() else {
            return Err("the offset from UTC does not start with two digits".into());
        };
        let mut parts = [0; 2];
        for part in &mut parts {
            if !self.take(':') {
                break;
            }
            let Some(value @ 0..=59) = self.two_digits() else {
                return Err("the minutes and seconds of the offset from UTC are not two digits from 00 to 59".into());
            };
            *part = i64::from(value);
        }
        let offset = i64::from(hours) * 3_600 + parts[0] * 60 + parts[1];
        if offset > LARGEST_OFFSET_SECONDS {
            return Err("the offset from UTC is more than 18 hours".into());
        }
        Ok(if negative { -offset } else { offset })
    }
}

fn is_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}
