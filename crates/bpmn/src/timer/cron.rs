//! Cron expressions: which seconds of the calendar of UTC match.

mod parser;

use feel::calendar::{self, Date, SECONDS_PER_DAY};
use protocol::Timestamp;

/// Every combination of month, day and day of the week comes back within 40 years.
const YEARS_SEARCHED: i64 = 100;

/// Bit 0, 7, 14, 21 and 28: the same day of the week, a month long.
const WEEKLY: u32 = 1 | 1 << 7 | 1 << 14 | 1 << 21 | 1 << 28;

/// One or more expressions; the one that is due first counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cron {
    alternatives: Box<[Fields]>,
}

impl Cron {
    /// The error completes a sentence after "since".
    pub(super) fn parse(text: &str) -> Result<Cron, String> {
        let mut alternatives = parser::parse(text)?;
        // 2000-01-01; it does not matter from when on, because of what is said at `YEARS_SEARCHED`.
        alternatives.retain(|fields| fields.first_match(10_957 * SECONDS_PER_DAY).is_some());
        if alternatives.is_empty() {
            return Err("there is no date that it matches, so it would never be due".into());
        }
        Ok(Cron { alternatives: alternatives.into() })
    }

    /// When it is due after `now`.
    pub(super) fn next(&self, now: Timestamp) -> Option<Timestamp> {
        self.alternatives.iter().filter_map(|fields| fields.next(now)).min()
    }
}

/// What each field of an expression matches. Bit n stands for the value n.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Fields {
    seconds: u64,
    minutes: u64,
    hours: u64,
    days_of_month: DaysOfMonth,
    months: u64,
    days_of_week: DaysOfWeek,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DaysOfMonth {
    Listed(u64),
    /// `L` and `L-3`: the last day of the month, or days before it.
    Last {
        days_before: u8,
    },
    /// `LW`: the last day of the month from Monday to Friday.
    LastWeekday,
    /// `15W`: this day if it is from Monday to Friday, or else the nearest of these in the month.
    NearestWeekday(u8),
}

/// Bit 0 stands for Sunday, bit 6 for Saturday.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct DaysOfWeek {
    every: u64,
    /// `MON#1`: the first, second, … of the month.
    occurrences: [u64; 5],
    /// `5L`: the last of the month.
    last: u64,
}

impl Fields {
    /// Due dates are at full seconds. Only from a time whose own second matches, and the next one too, it is exactly one
    /// second until then, as in Camunda 8.
    fn next(&self, now: Timestamp) -> Option<Timestamp> {
        let second = now.div_euclid(1_000);
        let next = self.first_match(second + 1)?;
        if next == second + 1 && self.first_match(second) == Some(second) {
            now.checked_add(1_000)
        } else {
            next.checked_mul(1_000)
        }
    }

    /// The first second that matches and is not before the given one, both counted from 1970.
    fn first_match(&self, second: i64) -> Option<i64> {
        let epoch_day = second.div_euclid(SECONDS_PER_DAY);
        let date = Date::of_epoch_day(epoch_day)?;
        let mut days = self.days(date.year(), date.month()) & (u32::MAX << date.day());
        if days & (1 << date.day()) != 0 {
            if let Some(second_of_day) = self.second_of_day(second.rem_euclid(SECONDS_PER_DAY)) {
                return Some(epoch_day * SECONDS_PER_DAY + second_of_day);
            }
            days &= !(1 << date.day());
        }
        let (mut year, mut month) = (date.year(), date.month());
        while days == 0 {
            (year, month) = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
            if year > date.year() + YEARS_SEARCHED {
                return None;
            }
            days = self.days(year, month);
        }
        let day = u8::try_from(days.trailing_zeros()).ok()?;
        let epoch_day = Date::new(year, month, day)?.epoch_day();
        Some(epoch_day * SECONDS_PER_DAY + self.second_of_day(0)?)
    }

    /// The first second of the day that matches and is not before the given one.
    fn second_of_day(&self, from: i64) -> Option<i64> {
        let (hour, minute, second) = (from / 3_600, from / 60 % 60, from % 60);
        let earliest_minute = || first_from(self.minutes, 0);
        let earliest_second = || first_from(self.seconds, 0);
        let next_hour = first_from(self.hours, hour)?;
        if next_hour > hour {
            return Some(next_hour * 3_600 + earliest_minute()? * 60 + earliest_second()?);
        }
        if let Some(next_minute) = first_from(self.minutes, minute) {
            if next_minute > minute {
                return Some(hour * 3_600 + next_minute * 60 + earliest_second()?);
            }
            if let Some(next_second) = first_from(self.seconds, second) {
                return Some(hour * 3_600 + minute * 60 + next_second);
            }
            if let Some(next_minute) = first_from(self.minutes, minute + 1) {
                return Some(hour * 3_600 + next_minute * 60 + earliest_second()?);
            }
        }
        let next_hour = first_from(self.hours, hour + 1)?;
        Some(next_hour * 3_600 + earliest_minute()? * 60 + earliest_second()?)
    }

    /// The days that match in a month.
    fn days(&self, year: i64, month: u8) -> u32 {
        if self.months & (1 << month) == 0 {
            return 0;
        }
        let Some(first) = Date::new(year, month, 1) else {
            return 0;
        };
        let first_weekday = calendar::day_of_week(first.epoch_day());
        let length = calendar::days_in_month(year, month);
        self.days_of_month.days(first_weekday, length) & self.days_of_week.days(first_weekday, length)
    }
}

impl DaysOfMonth {
    /// A month is identified by the weekday of its first day and by its length.
    fn days(self, first_weekday: u8, length: u8) -> u32 {
        let weekday = |day: u8| (first_weekday + day - 1) % 7;
        let day = match self {
            // Days of the month end at bit 31.
            DaysOfMonth::Listed(days) => return days as u32 & all_days(length),
            DaysOfMonth::Last { days_before } if days_before < length => length - days_before,
            DaysOfMonth::LastWeekday => match weekday(length) {
                0 => length - 2,
                6 => length - 1,
                _ => length,
            },
            DaysOfMonth::NearestWeekday(day) if day <= length => match weekday(day) {
                6 if day == 1 => 3,
                6 => day - 1,
                // The last day of a month stays, though it is a Sunday.
                0 if day < length => day + 1,
                _ => day,
            },
            DaysOfMonth::Last { .. } | DaysOfMonth::NearestWeekday(_) => return 0,
        };
        1 << day
    }
}

impl DaysOfWeek {
    fn days(&self, first_weekday: u8, length: u8) -> u32 {
        let mut days = 0;
        for weekday in 0..7 {
            let selected = 1 << weekday;
            let first_day = 1 + (weekday + 7 - first_weekday) % 7;
            let all = (WEEKLY << first_day) & all_days(length);
            if self.every & selected != 0 {
                days |= all;
                continue;
            }
            for (week, occurrence) in (0..).zip(self.occurrences) {
                if occurrence & selected != 0 {
                    days |= (1 << first_day << (7 * week)) & all;
                }
            }
            if self.last & selected != 0 {
                days |= 1 << all.ilog2();
            }
        }
        days
    }
}

/// Bits 1 to the length of the month.
fn all_days(length: u8) -> u32 {
    (u32::MAX >> (31 - length)) & !1
}

/// The lowest bit that is set and not below the given one.
fn first_from(values: u64, from: i64) -> Option<i64> {
    let rest = values.checked_shr(u32::try_from(from).ok()?)?;
    (rest != 0).then(|| from + i64::from(rest.trailing_zeros()))
}
