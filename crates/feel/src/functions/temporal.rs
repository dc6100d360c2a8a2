//! Temporal functions and the properties of temporal values.

use std::sync::Arc;

use jiff::SignedDuration;
use jiff::civil::Time as CivilTime;

use crate::calendar::Date;
use crate::evaluate::{Evaluator, Outcome};
use crate::functions::builtin::{Builtin, failed, illegal};
use crate::temporal::{self, DateTime, Duration, Local, Time};
use crate::value::Value;
use crate::zone::Zone;

const DATE: &[&[&str]] = &[&["date"]];

pub(super) const FUNCTIONS: &[Builtin] = &[
    Builtin::new("now", &[&[]], now).with_environment(),
    Builtin::new("today", &[&[]], today).with_environment(),
    Builtin::new("date", &[&["from"], &["year", "month", "day"]], date),
    Builtin::new("time", &[&["from"], &["hour", "minute", "second"], &["hour", "minute", "second", "offset"]], time),
    Builtin::new("date and time", &[&["from"], &["date", "time"], &["date", "timezone"]], date_and_time),
    Builtin::new("duration", &[&["from"]], duration),
    Builtin::new("years and months duration", &[&["from", "to"]], years_and_months_duration),
    Builtin::new("day of year", DATE, |evaluator, arguments| {
        calendar(evaluator, "day of year", arguments, |date| Value::integer(date.day_of_year()))
    }),
    Builtin::new("day of week", DATE, |evaluator, arguments| {
        calendar(evaluator, "day of week", arguments, |date| {
            let days = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
            Value::string(days[usize::from(date.weekday() - 1)])
        })
    }),
    Builtin::new("week of year", DATE, |evaluator, arguments| {
        calendar(evaluator, "week of year", arguments, |date| Value::integer(date.week_of_year()))
    }),
    Builtin::new("month of year", DATE, |evaluator, arguments| {
        calendar(evaluator, "month of year", arguments, |date| Value::string(MONTHS[usize::from(date.month() - 1)]))
    }),
    Builtin::new("last day of month", DATE, |evaluator, arguments| {
        calendar(evaluator, "last day of month", arguments, |date| Value::Date(date.last_of_month()))
    }),
];

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// The value of `@"…"`.
pub(crate) fn temporal_literal(text: &str) -> Option<Value> {
    if text.starts_with(['P', 'p']) || text.starts_with("-P") {
        return parse_duration(text);
    }
    if temporal::has_date_and_time(text) {
        return DateTime::parse(text).map(boxed_date_time);
    }
    if text.contains(':') {
        return Time::parse(text).map(boxed_time);
    }
    temporal::parse_date(text).map(Value::Date)
}

fn boxed_time(time: Time) -> Value {
    Value::Time(Box::new(time))
}

fn boxed_date_time(date_time: DateTime) -> Value {
    Value::DateTime(Box::new(date_time))
}

fn parse_duration(text: &str) -> Option<Value> {
    Some(match temporal::parse_duration(text)? {
        Duration::Months(months) => Value::YearMonthDuration(months),
        Duration::Exact(duration) => Value::DayTimeDuration(duration),
    })
}

/// No date, time or duration is longer, so a longer text is not read.
const LONGEST_TEXT_BYTES: usize = 1_024;

fn parsed(
    evaluator: &mut Evaluator<'_>,
    name: &str,
    text: &Arc<str>,
    read: impl FnOnce(&str) -> Option<Value>,
) -> Outcome {
    evaluator.spend(5 + text.len().min(LONGEST_TEXT_BYTES) / 4)?;
    let value = if text.len() <= LONGEST_TEXT_BYTES { read(text) } else { None };
    match value {
        Some(value) => Ok(value),
        None => failed(evaluator, name, || format!("Can't parse {} as a {name}", Value::String(text.clone()))),
    }
}

fn now(evaluator: &mut Evaluator<'_>, arguments: &[Value]) -> Outcome {
    match DateTime::from_epoch_milliseconds(evaluator.environment.now_milliseconds) {
        Some(now) => Ok(boxed_date_time(now)),
        None => illegal(evaluator, "now", arguments),
    }
}

fn today(evaluator: &mut Evaluator<'_>, arguments: &[Value]) -> Outcome {
    match DateTime::from_epoch_milliseconds(evaluator.environment.now_milliseconds) {
        Some(now) => Ok(Value::Date(now.local.date)),
        None => illegal(evaluator, "today", arguments),
    }
}

/// A whole number, cut off behind the point, within the range of the target type.
fn whole<T: TryFrom<i64>>(value: &Value) -> Option<T> {
    let number = value.as_number()?.round(0, crate::decimal::Rounding::Down)?;
    T::try_from(number.to_i64()?).ok()
}

fn date(evaluator: &mut Evaluator<'_>, arguments: &[Value]) -> Outcome {
    match arguments {
        [Value::String(text)] => parsed(evaluator, "date", text, |text| temporal::parse_date(text).map(Value::Date)),
        [from] => match date_of(from) {
            Some(date) => Ok(Value::Date(date)),
            None => illegal(evaluator, "date", arguments),
        },
        [Value::Number(year), Value::Number(month), Value::Number(day)] => {
            let date = || Date::new(whole(&arguments[0])?, whole(&arguments[1])?, whole(&arguments[2])?);
            match date() {
                Some(date) => Ok(Value::Date(date)),
                None => failed(evaluator, "date", || {
                    format!("Failed to parse date from: year={year}, month={month}, day={day}")
                }),
            }
        }
        _ => illegal(evaluator, "date", arguments),
    }
}

fn time(evaluator: &mut Evaluator<'_>, arguments: &[Value]) -> Outcome {
    match arguments {
        [Value::String(text)] => parsed(evaluator, "time", text, |text| Time::parse(text).map(boxed_time)),
        [Value::DateTime(from)] => Ok(boxed_time(from.time())),
        [Value::Date(_)] => Ok(boxed_time(Time::new(CivilTime::midnight(), Some(Zone::UTC)))),
        [from @ Value::Time(_)] => Ok(from.clone()),
        [Value::Number(hour), Value::Number(minute), Value::Number(second), offset @ ..] => {
            let zone = match offset {
                [] | [Value::Null] => None,
                [Value::DayTimeDuration(offset)] => match Zone::of_offset(offset.as_secs()) {
                    Some(zone) => Some(zone),
                    None => return illegal(evaluator, "time", arguments),
                },
                _ => return illegal(evaluator, "time", arguments),
            };
            match time_of(arguments) {
                Some(time) => Ok(boxed_time(Time::new(time, zone))),
                None => failed(evaluator, "time", || {
                    format!("Failed to parse local-time from: hour={hour}, minute={minute}, second={second}")
                }),
            }
        }
        _ => illegal(evaluator, "time", arguments),
    }
}

fn time_of(fields: &[Value]) -> Option<CivilTime> {
    let second: i8 = whole(&fields[2])?;
    let fraction = fields[2].as_number()?.minus(crate::number::Number::Integer(i64::from(second)))?;
    let nanoseconds = fraction.multiply(crate::number::Number::Integer(1_000_000_000))?;
    CivilTime::new(whole(&fields[0])?, whole(&fields[1])?, second, whole(&Value::Number(nanoseconds))?).ok()
}

fn date_of(value: &Value) -> Option<Date> {
    match value {
        Value::Date(date) => Some(*date),
        Value::DateTime(date_time) => Some(date_time.local.date),
        _ => None,
    }
}

fn date_and_time(evaluator: &mut Evaluator<'_>, arguments: &[Value]) -> Outcome {
    match arguments {
        [Value::String(text)] => {
            parsed(evaluator, "date and time", text, |text| DateTime::parse(text).map(boxed_date_time))
        }
        [from @ Value::DateTime(_)] => Ok(from.clone()),
        [date, Value::Time(time)] => match date_of(date)
            .and_then(|date| DateTime::new(Local { date, time: time.time }, time.zone().cloned(), None))
        {
            Some(date_time) => Ok(boxed_date_time(date_time)),
            None => illegal(evaluator, "date and time", arguments),
        },
        [Value::DateTime(from), Value::String(zone)] => {
            let zone = if zone.len() <= LONGEST_TEXT_BYTES { Zone::parse(zone) } else { None };
            match zone.and_then(|zone| from.in_zone(zone)) {
                Some(moved) => Ok(boxed_date_time(moved)),
                None => illegal(evaluator, "date and time", arguments),
            }
        }
        _ => illegal(evaluator, "date and time", arguments),
    }
}

fn duration(evaluator: &mut Evaluator<'_>, arguments: &[Value]) -> Outcome {
    match &arguments[0] {
        Value::String(text) => parsed(evaluator, "duration", text, parse_duration),
        from @ (Value::YearMonthDuration(_) | Value::DayTimeDuration(_)) => Ok(from.clone()),
        _ => illegal(evaluator, "duration", arguments),
    }
}

fn years_and_months_duration(evaluator: &mut Evaluator<'_>, arguments: &[Value]) -> Outcome {
    match (date_of(&arguments[0]), date_of(&arguments[1])) {
        (Some(from), Some(to)) => Ok(Value::YearMonthDuration(temporal::months_between(from, to))),
        _ => illegal(evaluator, "years and months duration", arguments),
    }
}

fn calendar(evaluator: &mut Evaluator<'_>, name: &str, arguments: &[Value], compute: fn(Date) -> Value) -> Outcome {
    match date_of(&arguments[0]) {
        Some(date) => Ok(compute(date)),
        None => illegal(evaluator, name, arguments),
    }
}

const DATE_PROPERTIES: &[&str] = &["year", "month", "day", "weekday"];
const TIME_PROPERTIES: &[&str] = &["hour", "minute", "second", "time offset", "timezone"];
const DATE_TIME_PROPERTIES: &[&str] =
    &["year", "month", "day", "weekday", "hour", "minute", "second", "time offset", "timezone"];
const PERIOD_PROPERTIES: &[&str] = &["years", "months"];
const DURATION_PROPERTIES: &[&str] = &["days", "hours", "minutes", "seconds"];
const RANGE_PROPERTIES: &[&str] = &["start", "end", "start included", "end included"];

/// A property of a value, or the names of the properties that it has.
pub(crate) fn property(value: &Value, name: &str) -> Result<Value, &'static [&'static str]> {
    let (available, found) = match value {
        Value::Date(date) => (DATE_PROPERTIES, date_property(*date, name)),
        Value::Time(time) => (
            TIME_PROPERTIES,
            time_property(time.time, name).or_else(|| zone_property(time.offset(), time.zone(), name)),
        ),
        Value::DateTime(value) => (
            DATE_TIME_PROPERTIES,
            date_property(value.local.date, name)
                .or_else(|| time_property(value.local.time, name))
                .or_else(|| zone_property(value.offset(), value.zone(), name)),
        ),
        Value::YearMonthDuration(months) => (
            PERIOD_PROPERTIES,
            match name {
                "years" => Some(Value::integer(months / 12)),
                "months" => Some(Value::integer(months % 12)),
                _ => None,
            },
        ),
        Value::DayTimeDuration(duration) => {
            let seconds = duration.as_secs();
            (
                DURATION_PROPERTIES,
                match name {
                    "days" => Some(Value::integer(seconds / 86_400)),
                    "hours" => Some(Value::integer(seconds / 3600 % 24)),
                    "minutes" => Some(Value::integer(seconds / 60 % 60)),
                    "seconds" => Some(Value::integer(seconds % 60)),
                    _ => None,
                },
            )
        }
        Value::Range(range) => (
            RANGE_PROPERTIES,
            match name {
                "start" => Some(range.start.value.clone()),
                "end" => Some(range.end.value.clone()),
                "start included" => Some(Value::Boolean(range.start.included)),
                "end included" => Some(Value::Boolean(range.end.included)),
                _ => None,
            },
        ),
        _ => (&[][..], None),
    };
    found.ok_or(available)
}

fn date_property(date: Date, name: &str) -> Option<Value> {
    let value = match name {
        "year" => date.year(),
        "month" => i64::from(date.month()),
        "day" => i64::from(date.day()),
        "weekday" => i64::from(date.weekday()),
        _ => return None,
    };
    Some(Value::integer(value))
}

fn time_property(time: CivilTime, name: &str) -> Option<Value> {
    let value = match name {
        "hour" => time.hour(),
        "minute" => time.minute(),
        "second" => time.second(),
        _ => return None,
    };
    Some(Value::integer(i64::from(value)))
}

/// Without a zone, or with a plain offset, these are null.
fn zone_property(offset: Option<i64>, zone: Option<&Zone>, name: &str) -> Option<Value> {
    match name {
        "time offset" => {
            Some(offset.map_or(Value::Null, |offset| Value::DayTimeDuration(SignedDuration::from_secs(offset))))
        }
        "timezone" => Some(zone.and_then(Zone::name).map_or(Value::Null, Value::string)),
        _ => None,
    }
}
