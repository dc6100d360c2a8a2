//! The types of values without regard to their parts.

use crate::value::Value;

/// A named type of FEEL itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SimpleType {
    /// `string`
    String,
    /// `number`
    Number,
    /// `boolean`
    Boolean,
    /// `date`
    Date,
    /// `time`
    Time,
    /// `date and time`
    DateTime,
    /// `years and months duration`
    YearMonthDuration,
    /// `days and time duration`
    DayTimeDuration,
    /// `list`, whatever its items are
    List,
    /// `context`, whatever its entries are
    Context,
    /// `function`, whatever its parameters are
    Function,
}

impl SimpleType {
    /// The type of this name.
    pub fn named(name: &str) -> Option<SimpleType> {
        Some(match name {
            "string" => SimpleType::String,
            "number" => SimpleType::Number,
            "boolean" => SimpleType::Boolean,
            "date" => SimpleType::Date,
            "time" => SimpleType::Time,
            "date and time" | "date time" => SimpleType::DateTime,
            "years and months duration" | "year month duration" => SimpleType::YearMonthDuration,
            "days and time duration" | "day time duration" => SimpleType::DayTimeDuration,
            "list" => SimpleType::List,
            "context" => SimpleType::Context,
            "function" => SimpleType::Function,
            _ => return None,
        })
    }

    /// The name as the standard has it.
    pub fn name(self) -> &'static str {
        match self {
            SimpleType::String => "string",
            SimpleType::Number => "number",
            SimpleType::Boolean => "boolean",
            SimpleType::Date => "date",
            SimpleType::Time => "time",
            SimpleType::DateTime => "date and time",
            SimpleType::YearMonthDuration => "years and months duration",
            SimpleType::DayTimeDuration => "days and time duration",
            SimpleType::List => "list",
            SimpleType::Context => "context",
            SimpleType::Function => "function",
        }
    }

    /// Whether the value is of the type; null is of none.
    pub fn contains(self, value: &Value) -> bool {
        matches!(
            (self, value),
            (SimpleType::String, Value::String(_))
                | (SimpleType::Number, Value::Number(_))
                | (SimpleType::Boolean, Value::Boolean(_))
                | (SimpleType::Date, Value::Date(_))
                | (SimpleType::Time, Value::Time(_))
                | (SimpleType::DateTime, Value::DateTime(_))
                | (SimpleType::YearMonthDuration, Value::YearMonthDuration(_))
                | (SimpleType::DayTimeDuration, Value::DayTimeDuration(_))
                | (SimpleType::List, Value::List(_))
                | (SimpleType::Context, Value::Context(_))
                | (SimpleType::Function, Value::Function(_))
        )
    }
}
