//! The proleptic Gregorian calendar with nine digits of years, which are more than `jiff` computes with.

/// Of a day without a change of clocks.
pub const SECONDS_PER_DAY: i64 = 86_400;

/// Years beyond are refused before they are computed with, so that no step below can overflow 64 bits.
pub const LARGEST_YEAR: i64 = 999_999_999;

/// The calendar, weekdays included, repeats itself after 400 years.
pub const DAYS_PER_CYCLE: i64 = 146_097;

/// From 0000-03-01, where leap days are at the end of the year, to 1970-01-01.
const DAYS_FROM_MARCH_OF_YEAR_ZERO: i64 = 719_468;

/// A day of the calendar; its year is within [`LARGEST_YEAR`] on both sides of zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Date {
    year: i32,
    month: u8,
    day: u8,
}

impl Date {
    /// `None` for a day that the calendar does not have.
    pub fn new(year: i64, month: u8, day: u8) -> Option<Date> {
        let exists = year.unsigned_abs() <= LARGEST_YEAR.unsigned_abs()
            && (1..=12).contains(&month)
            && (1..=days_in_month(year, month)).contains(&day);
        // A year of nine digits fits.
        exists.then_some(Date { year: year as i32, month, day })
    }

    /// The year; before the year 1 comes the year 0.
    pub fn year(self) -> i64 {
        i64::from(self.year)
    }

    /// From 1 for January.
    pub fn month(self) -> u8 {
        self.month
    }

    /// The day of the month, from 1.
    pub fn day(self) -> u8 {
        self.day
    }

    /// The day that is `days` after 1970-01-01; `None` beyond [`LARGEST_YEAR`].
    pub fn of_epoch_day(days: i64) -> Option<Date> {
        let shifted = days.checked_add(DAYS_FROM_MARCH_OF_YEAR_ZERO)?;
        let (cycle, day_of_cycle) = (shifted.div_euclid(DAYS_PER_CYCLE), shifted.rem_euclid(DAYS_PER_CYCLE));
        let year_of_cycle =
            (day_of_cycle - day_of_cycle / 1_460 + day_of_cycle / 36_524 - day_of_cycle / 146_096) / 365;
        let day_of_year = day_of_cycle - (365 * year_of_cycle + year_of_cycle / 4 - year_of_cycle / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
        let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
        let year = cycle.checked_mul(400)? + year_of_cycle + i64::from(month <= 2);
        // Month and day are those of the calendar, and a year of nine digits fits.
        let exists = year.unsigned_abs() <= LARGEST_YEAR.unsigned_abs();
        exists.then_some(Date { year: year as i32, month: month as u8, day: day as u8 })
    }

    /// Days after 1970-01-01.
    pub fn epoch_day(self) -> i64 {
        let (month, day) = (i64::from(self.month), i64::from(self.day));
        let year = self.year() - i64::from(month <= 2);
        let (cycle, year_of_cycle) = (year.div_euclid(400), year.rem_euclid(400));
        let month_from_march = (month + 9) % 12;
        let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
        let day_of_cycle = 365 * year_of_cycle + year_of_cycle / 4 - year_of_cycle / 100 + day_of_year;
        cycle * DAYS_PER_CYCLE + day_of_cycle - DAYS_FROM_MARCH_OF_YEAR_ZERO
    }

    /// The same day of another month, or the last day of that month if it is shorter; `None` beyond [`LARGEST_YEAR`].
    pub fn plus_months(self, months: i64) -> Option<Date> {
        let total = (self.year() * 12 + i64::from(self.month) - 1).checked_add(months)?;
        let year = total.div_euclid(12);
        if year.unsigned_abs() > LARGEST_YEAR.unsigned_abs() {
            return None;
        }
        let month = u8::try_from(total.rem_euclid(12) + 1).ok()?;
        Date::new(year, month, self.day.min(days_in_month(year, month)))
    }

    /// The day that many days later; `None` beyond [`LARGEST_YEAR`].
    pub fn plus_days(self, days: i64) -> Option<Date> {
        // Mostly it is in the same month.
        match i64::from(self.day).checked_add(days) {
            Some(day @ 1..=28) => Some(Date { day: day as u8, ..self }),
            _ => Date::of_epoch_day(self.epoch_day().checked_add(days)?),
        }
    }

    /// The last day of the month.
    pub fn last_of_month(self) -> Date {
        Date { day: days_in_month(self.year(), self.month), ..self }
    }

    /// From 1 for the 1st of January.
    pub fn day_of_year(self) -> i64 {
        let first = Date { month: 1, day: 1, ..self };
        self.epoch_day() - first.epoch_day() + 1
    }

    /// 1 for Monday to 7 for Sunday.
    pub fn weekday(self) -> u8 {
        match day_of_week(self.epoch_day()) {
            0 => 7,
            day => day,
        }
    }

    /// The week of ISO 8601: the first of a year is the one with its first Thursday.
    pub fn week_of_year(self) -> i64 {
        // The Thursday of the week decides which year it belongs to; that it is in another year needs no date there.
        let thursday = self.day_of_year() + 4 - i64::from(self.weekday());
        let days_in_year = |year| 337 + i64::from(days_in_month(year, 2));
        let day_of_year = match thursday {
            before if before < 1 => before + days_in_year(self.year() - 1),
            day if day > days_in_year(self.year()) => day - days_in_year(self.year()),
            day => day,
        };
        (day_of_year - 1) / 7 + 1
    }
}

/// How many days a month from 1 to 12 has.
pub fn days_in_month(year: i64, month: u8) -> u8 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// 0 for Sunday to 6 for Saturday.
pub fn day_of_week(epoch_day: i64) -> u8 {
    // 1970-01-01 was a Thursday. A remainder by 7 fits.
    ((epoch_day.rem_euclid(7) + 4) % 7) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_of_two_cycles_is_found_again() {
        let mut expected = Date { year: 1600, month: 1, day: 1 };
        let first = expected.epoch_day();
        assert_eq!(first, -135_140);
        for epoch_day in first..first + 2 * DAYS_PER_CYCLE {
            assert_eq!(Date::of_epoch_day(epoch_day), Some(expected));
            assert_eq!(expected.epoch_day(), epoch_day);
            if expected.day < days_in_month(expected.year(), expected.month) {
                expected.day += 1;
            } else if expected.month < 12 {
                expected = Date { month: expected.month + 1, day: 1, ..expected };
            } else {
                expected = Date { year: expected.year + 1, month: 1, day: 1 };
            }
        }
        assert_eq!(expected, Date { year: 2400, month: 1, day: 1 });
    }

    #[test]
    fn days_beyond_the_largest_year_are_none() {
        let last = Date::new(LARGEST_YEAR, 12, 31).unwrap();
        let first = Date::new(-LARGEST_YEAR, 1, 1).unwrap();
        assert_eq!(Date::of_epoch_day(last.epoch_day()), Some(last));
        assert_eq!(Date::of_epoch_day(first.epoch_day()), Some(first));
        assert_eq!(last.plus_days(1), None);
        assert_eq!(first.plus_days(-1), None);
        assert_eq!(last.plus_months(1), None);
        assert_eq!(first.plus_months(i64::MIN), None);
        assert_eq!(Date::new(LARGEST_YEAR + 1, 1, 1), None);
        assert_eq!(Date::new(i64::MIN, 1, 1), None);
        assert_eq!(Date::of_epoch_day(i64::MAX), None);
        assert_eq!(Date::of_epoch_day(i64::MIN), None);
    }

    #[test]
    fn days_of_the_week_go_on_through_1970() {
        assert_eq!(day_of_week(0), 4);
        assert_eq!(day_of_week(3), 0);
        assert_eq!(day_of_week(-4), 0);
        assert_eq!(day_of_week(-5), 6);
        assert_eq!(day_of_week(DAYS_PER_CYCLE), 4);
    }

    #[test]
    fn days_and_weeks_are_those_of_the_library_where_it_has_them() {
        let mut date = Date::new(-401, 1, 1).unwrap();
        let last = Date::new(401, 12, 31).unwrap();
        while date < last {
            let library = jiff::civil::date(date.year as i16, date.month as i8, date.day as i8);
            assert_eq!(date.day_of_year(), i64::from(library.day_of_year()));
            assert_eq!(i64::from(date.weekday()), i64::from(library.weekday().to_monday_one_offset()));
            assert_eq!(date.week_of_year(), i64::from(library.iso_week_date().week()));
            assert_eq!(date.last_of_month().day, library.last_of_month().day() as u8);
            date = date.plus_days(1).unwrap();
        }
    }
}
