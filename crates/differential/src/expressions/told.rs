//! Values as `reference/Expressions.java` prints them: with their types.

use std::collections::BTreeMap;

use feel::Value;

/// The value with its type in one line.
pub fn tell(value: &Value) -> String {
    match value {
        Value::Null | Value::Boolean(_) | Value::Number(_) => value.to_json(),
        Value::String(_) => value.to_json(),
        Value::List(items) => format!("[{}]", items.iter().map(tell).collect::<Vec<_>>().join(",")),
        Value::Context(context) => {
            // The reference keeps functions apart from the entries.
            let entries: BTreeMap<String, String> = context
                .entries()
                .iter()
                .filter(|(_, value)| !matches!(value, Value::Function(_)))
                .map(|(name, value)| (Value::string(name).to_json(), tell(value)))
                .collect();
            let entries: Vec<String> = entries.into_iter().map(|(name, told)| format!("{name}:{told}")).collect();
            format!("{{{}}}", entries.join(","))
        }
        Value::Range(range) => {
            let (start, end) = (range.start(), range.end());
            let open = if start.is_included() { '[' } else { '(' };
            let close = if end.is_included() { ']' } else { ')' };
            format!("RANGE:{open}{}..{}{close}", tell(start.value()), tell(end.value()))
        }
        Value::Function(_) => "function".to_owned(),
        Value::Date(_) => format!("Date:{value}"),
        Value::Time(_) => format!("Time:{value}"),
        Value::DateTime(_) => format!("DateTime:{value}"),
        Value::YearMonthDuration(_) => format!("YearMonthDuration:{value}"),
        Value::DayTimeDuration(_) => format!("DayTimeDuration:{value}"),
    }
}
