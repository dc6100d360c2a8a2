//! Temporal functions and properties.

use super::Builtin;
use crate::temporal::{self, DateTime, Duration, Time};
use crate::value::Value;

pub(super) const FUNCTIONS: &[Builtin] = &[];

/// The value of `@"…"`.
pub(crate) fn temporal_literal(text: &str) -> Option<Value> {
    if text.starts_with('P') || text.starts_with("-P") {
        return duration(text);
    }
    if text.contains('T') {
        return DateTime::parse(text).map(|value| Value::DateTime(Box::new(value)));
    }
    if text.contains(':') {
        return Time::parse(text).map(|value| Value::Time(Box::new(value)));
    }
    temporal::parse_date(text).map(Value::Date)
}

fn duration(text: &str) -> Option<Value> {
    Some(match temporal::parse_duration(text)? {
        Duration::Months(months) => Value::YearMonthDuration(months),
        Duration::Exact(duration) => Value::DayTimeDuration(duration),
    })
}

/// A property of a value, or the names of the properties that it has.
pub(crate) fn property(value: &Value, name: &str) -> Result<Value, Vec<&'static str>> {
    let _ = (value, name);
    Err(Vec::new())
}
