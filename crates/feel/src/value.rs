//! The values that expressions compute with.

use std::cmp::Ordering;
use std::sync::Arc;

use jiff::SignedDuration;

use crate::calendar::Date;
use crate::evaluate::{Function, NativeFunction};
use crate::json::{self, JsonError};
use crate::number::Number;
use crate::temporal::{self, DateTime, Time};

/// How JSON shows what it cannot express.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum JsonForm {
    /// As the engine keeps variables: times in short, ranges and functions as null.
    Variable,
    /// As `to json` gives them: times as in ISO 8601, ranges and functions as their texts.
    Iso,
}

/// A value. Cheap to clone: large parts are shared.
#[derive(Clone, Debug, Default)]
pub enum Value {
    /// No value.
    #[default]
    Null,
    /// True or false.
    Boolean(bool),
    /// A number.
    Number(Number),
    /// A text.
    String(Arc<str>),
    /// A calendar date.
    Date(Date),
    /// A time of day.
    Time(Box<Time>),
    /// A date with a time of day.
    DateTime(Box<DateTime>),
    /// A duration of years and months, counted in months.
    YearMonthDuration(i64),
    /// A duration of days, hours, minutes and seconds.
    DayTimeDuration(SignedDuration),
    /// An ordered list.
    List(Arc<List>),
    /// Named values.
    Context(Arc<Context>),
    /// All values between two ends.
    Range(Arc<Range>),
    /// A function of the expression.
    Function(Arc<Function>),
}

impl Value {
    /// A string value.
    pub fn string(text: impl AsRef<str>) -> Value {
        Value::String(Arc::from(text.as_ref()))
    }

    /// A function of the caller's as a value.
    pub fn function(function: Arc<dyn NativeFunction>) -> Value {
        Value::Function(Arc::new(Function::native(function)))
    }

    /// A whole number.
    pub fn integer(value: i64) -> Value {
        Value::Number(Number::Integer(value))
    }

    /// A list value.
    pub fn list(items: Vec<Value>) -> Value {
        Value::List(Arc::new(List::from(items)))
    }

    /// A context value.
    pub fn context(context: Context) -> Value {
        Value::Context(Arc::new(context))
    }

    /// Reads one strict JSON document, nested at most [`json::DEPTH_LIMIT`] levels.
    pub fn from_json(text: &str) -> Result<Value, JsonError> {
        json::read(text).map_err(|error| *error)
    }

    /// The value as compact JSON.
    pub fn to_json(&self) -> String {
        let mut out = String::new();
        self.write_json(&mut out);
        out
    }

    /// Appends the value as compact JSON. Temporal values become strings; ranges and functions, which JSON
    /// cannot express, become null.
    pub fn write_json(&self, out: &mut String) {
        self.write_json_until(out, usize::MAX, JsonForm::Variable);
    }

    /// Like [`Value::write_json`] in another form, but stops once `out` is longer than `limit` bytes: parts of a value may be shared, so
    /// that its text can be far larger than the value.
    pub(crate) fn write_json_until(&self, out: &mut String, limit: usize, form: JsonForm) {
        if out.len() > limit {
            return;
        }
        match self {
            Value::Range(_) | Value::Function(_) if form == JsonForm::Iso => {
                let mut text = String::new();
                self.write_text(&mut text, limit.saturating_sub(out.len()));
                json::write_string(beginning(&text, out, limit), out);
            }
            Value::Null | Value::Range(_) | Value::Function(_) => out.push_str("null"),
            Value::Boolean(value) => out.push_str(if *value { "true" } else { "false" }),
            Value::Number(number) => number.write_json(out),
            Value::String(text) => json::write_string(beginning(text, out, limit), out),
            Value::List(items) => {
                out.push('[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    item.write_json_until(out, limit, form);
                    if out.len() > limit {
                        return;
                    }
                }
                out.push(']');
            }
            Value::Context(context) => {
                out.push('{');
                for (index, (name, value)) in context.entries().iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    json::write_string(beginning(name, out, limit), out);
                    out.push(':');
                    value.write_json_until(out, limit, form);
                    if out.len() > limit {
                        return;
                    }
                }
                out.push('}');
            }
            _ => {
                out.push('"');
                self.write_temporal(out, Some(form));
                out.push('"');
            }
        }
    }

    /// As in JSON of a form, or as an expression shows it.
    fn write_temporal(&self, out: &mut String, form: Option<JsonForm>) {
        match (self, form) {
            (Value::Date(date), _) => temporal::write_date(*date, out),
            (Value::Time(time), Some(JsonForm::Variable)) => time.write_variable(out),
            (Value::Time(time), Some(JsonForm::Iso)) => time.write_iso(out),
            (Value::Time(time), None) => time.write(out),
            (Value::DateTime(date_time), Some(_)) => date_time.write_json(out),
            (Value::DateTime(date_time), None) => date_time.write(out),
            (Value::YearMonthDuration(months), _) => temporal::write_months(*months, out),
            (Value::DayTimeDuration(duration), _) => temporal::write_duration(*duration, out),
            _ => {}
        }
    }

    /// Appends the value as an expression would write it: strings in quotes, names of contexts without. Goes on only as long
    /// as `out` is no longer than `limit` bytes.
    pub(crate) fn write_text(&self, out: &mut String, limit: usize) {
        if out.len() > limit {
            return;
        }
        match self {
            Value::Null => out.push_str("null"),
            Value::Boolean(value) => out.push_str(if *value { "true" } else { "false" }),
            Value::Number(number) => number.write(out),
            Value::String(text) => {
                out.push('"');
                out.push_str(beginning(text, out, limit));
                out.push('"');
            }
            Value::List(items) => {
                out.push('[');
                for (index, item) in items.iter().enumerate() {
                    out.push_str(if index > 0 { ", " } else { "" });
                    item.write_text(out, limit);
                    if out.len() > limit {
                        return;
                    }
                }
                out.push(']');
            }
            Value::Context(context) => {
                out.push('{');
                for (index, (name, value)) in context.entries().iter().enumerate() {
                    out.push_str(if index > 0 { ", " } else { "" });
                    out.push_str(beginning(name, out, limit));
                    out.push(':');
                    value.write_text(out, limit);
                    if out.len() > limit {
                        return;
                    }
                }
                out.push('}');
            }
            Value::Range(range) => {
                out.push(if range.start.included { '[' } else { '(' });
                range.start.value.write_text(out, limit);
                out.push_str("..");
                range.end.value.write_text(out, limit);
                out.push(if range.end.included { ']' } else { ')' });
            }
            Value::Function(function) => {
                out.push_str("function(");
                for (index, parameter) in function.parameters().iter().enumerate() {
                    out.push_str(if index > 0 { ", " } else { "" });
                    out.push_str(parameter);
                }
                out.push(')');
            }
            _ => self.write_temporal(out, None),
        }
    }

    /// Whether the JSON text has about at most `limit` bytes; looks only as far as needed.
    #[inline]
    pub(crate) fn fits(&self, limit: &mut usize, nodes: &mut Nodes<'_>) -> bool {
        let own = match self {
            Value::String(text) => text.len() + 2,
            _ => 4,
        };
        let Some(rest) = limit.checked_sub(own) else {
            return false;
        };
        *limit = rest;
        nodes.visit() && (!matches!(self, Value::List(_) | Value::Context(_)) || self.parts_fit(limit, nodes))
    }

    fn parts_fit(&self, limit: &mut usize, nodes: &mut Nodes<'_>) -> bool {
        match self {
            Value::List(items) => items.iter().all(|item| item.fits(limit, nodes)),
            Value::Context(context) => context.entries.iter().all(|(name, value)| {
                *limit = limit.saturating_sub(name.len());
                value.fits(limit, nodes)
            }),
            _ => true,
        }
    }

    /// The name of the type as results are reported: `NULL`, `BOOLEAN`, `NUMBER`, `STRING`, `ARRAY`, `OBJECT`, `DATE`,
    /// `TIME`, `DATE_TIME`, `PERIOD` (years and months), `DURATION` (days and time), `RANGE`, `FUNCTION`.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Null => "NULL",
            Value::Boolean(_) => "BOOLEAN",
            Value::Number(_) => "NUMBER",
            Value::String(_) => "STRING",
            Value::Date(_) => "DATE",
            Value::Time(_) => "TIME",
            Value::DateTime(_) => "DATE_TIME",
            Value::YearMonthDuration(_) => "PERIOD",
            Value::DayTimeDuration(_) => "DURATION",
            Value::List(_) => "ARRAY",
            Value::Context(_) => "OBJECT",
            Value::Range(_) => "RANGE",
            Value::Function(_) => "FUNCTION",
        }
    }

    /// A clone that costs no call where nothing is shared.
    #[inline]
    pub(crate) fn duplicate(&self) -> Value {
        match self {
            Value::Null => Value::Null,
            Value::Boolean(value) => Value::Boolean(*value),
            Value::Number(number) => Value::Number(*number),
            shared => shared.clone(),
        }
    }

    /// Whether this is null.
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// The boolean, if it is one.
    pub fn as_bool(&self) -> Option<bool> {
        if let Value::Boolean(value) = self { Some(*value) } else { None }
    }

    /// The text, if it is a string.
    pub fn as_str(&self) -> Option<&str> {
        if let Value::String(text) = self { Some(text) } else { None }
    }

    /// The number, if it is one.
    pub fn as_number(&self) -> Option<Number> {
        if let Value::Number(number) = self { Some(*number) } else { None }
    }

    /// The integer, if it is a whole number of 64 bits.
    pub fn as_i64(&self) -> Option<i64> {
        self.as_number().and_then(Number::to_i64)
    }

    /// The number without its fraction, if it fits: a position, a length, a number of places.
    pub(crate) fn as_whole(&self) -> Option<i64> {
        self.as_number()?.round(0, crate::decimal::Rounding::Down)?.to_i64()
    }

    /// The items, if it is a list.
    pub fn as_list(&self) -> Option<&[Value]> {
        if let Value::List(items) = self { Some(items) } else { None }
    }

    /// The named values, if it is a context.
    pub fn as_context(&self) -> Option<&Context> {
        if let Value::Context(context) = self { Some(context) } else { None }
    }

    /// Milliseconds since the epoch of a date and time, which is read as UTC if it has no zone.
    pub fn as_epoch_milliseconds(&self) -> Option<i64> {
        if let Value::DateTime(value) = self { value.epoch_milliseconds() } else { None }
    }

    /// The length of a day-time duration in milliseconds.
    pub fn as_duration_milliseconds(&self) -> Option<i64> {
        if let Value::DayTimeDuration(value) = self { i64::try_from(value.as_millis()).ok() } else { None }
    }

    /// How deeply this value is nested: 0 for one without parts.
    #[inline]
    pub fn depth(&self) -> u32 {
        match self {
            Value::List(items) => items.depth + 1,
            Value::Context(context) => context.depth + 1,
            Value::Range(range) => range.start.value.depth().max(range.end.value.depth()) + 1,
            Value::Function(function) => function.depth() + 1,
            _ => 0,
        }
    }

    /// Whether both are equal; `None` if they cannot be compared. Null equals only null. Each visited part is taken
    /// from `budget`, because shared parts can be visited exponentially often; without budget, nothing is equal.
    #[inline]
    pub fn equals(&self, other: &Value, budget: &mut usize) -> Option<bool> {
        match (self, other) {
            (Value::Null, Value::Null) => Some(true),
            (Value::Null, _) | (_, Value::Null) => Some(false),
            (Value::Boolean(a), Value::Boolean(b)) => Some(a == b),
            (Value::Number(a), Value::Number(b)) => Some(a == b),
            // Long texts take steps in proportion to their length.
            (Value::String(a), Value::String(b)) => {
                Some(a.len() == b.len() && (a.len() < 64 || take_some(budget, a.len() / 64)) && a == b)
            }
            (Value::List(a), Value::List(b)) => {
                let mut pairs = a.iter().zip(b.iter());
                Some(a.len() == b.len() && pairs.all(|(a, b)| take(budget) && a.equals(b, budget) == Some(true)))
            }
            (Value::Context(a), Value::Context(b)) => {
                let mut entries = a.entries.iter();
                Some(
                    a.entries.len() == b.entries.len()
                        && entries.all(|(name, value)| {
                            take(budget) && b.get(name).and_then(|other| value.equals(other, budget)) == Some(true)
                        }),
                )
            }
            (Value::Range(a), Value::Range(b)) => {
                Some(a.is_comparison == b.is_comparison && a.start.same(&b.start, budget) && a.end.same(&b.end, budget))
            }
            (Value::Function(a), Value::Function(b)) => Some(Arc::ptr_eq(a, b)),
            _ => self.compare(other).map(Ordering::is_eq),
        }
    }

    /// The order of two values of one ordered type; `None` otherwise.
    #[inline]
    pub fn compare(&self, other: &Value) -> Option<Ordering> {
        match (self, other) {
            (Value::Number(a), Value::Number(b)) => Some(a.cmp(b)),
            (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
            (Value::Date(a), Value::Date(b)) => Some(a.cmp(b)),
            (Value::Time(a), Value::Time(b)) => a.compare(b),
            (Value::DateTime(a), Value::DateTime(b)) => a.compare(b),
            (Value::YearMonthDuration(a), Value::YearMonthDuration(b)) => Some(a.cmp(b)),
            (Value::DayTimeDuration(a), Value::DayTimeDuration(b)) => Some(a.cmp(b)),
            _ => None,
        }
    }
}

/// Of a text that is added to `out`, no more than shows that the limit is exceeded.
fn beginning<'a>(text: &'a str, out: &str, limit: usize) -> &'a str {
    let room = limit.saturating_sub(out.len()).saturating_add(1);
    match text.len() > room {
        true => &text[..text.ceil_char_boundary(room)],
        false => text,
    }
}

/// Values compare like the operator `=`, with incomparable values being unequal.
impl PartialEq for Value {
    fn eq(&self, other: &Value) -> bool {
        self.equals(other, &mut usize::MAX.clone()) == Some(true)
    }
}

/// Counts visited values, several of which take one step.
pub(crate) struct Nodes<'a> {
    steps: &'a mut usize,
    visited: usize,
}

impl Nodes<'_> {
    const PER_STEP: usize = 8;

    pub(crate) fn of(steps: &mut usize) -> Nodes<'_> {
        Nodes { steps, visited: 0 }
    }

    #[inline]
    fn visit(&mut self) -> bool {
        self.visited += 1;
        !self.visited.is_multiple_of(Self::PER_STEP) || take(self.steps)
    }
}

/// About the memory of a list without its items.
pub(crate) const LIST_BYTES: usize = 64;
/// About the memory of a context without its entries.
pub(crate) const CONTEXT_BYTES: usize = 128;
/// About the memory of an entry of a context, which grows in steps and may have an index.
pub(crate) const ENTRY_BYTES: usize = 128;
/// About the memory of a string without its text.
pub(crate) const STRING_BYTES: usize = 32;

/// Takes this much from the budget; false if it is used up.
fn take_some(budget: &mut usize, amount: usize) -> bool {
    *budget = budget.saturating_sub(amount);
    *budget > 0
}

/// Takes one from the budget; false if nothing is left.
pub(crate) fn take(budget: &mut usize) -> bool {
    let left = *budget > 0;
    *budget = budget.saturating_sub(1);
    left
}

/// As an expression would write it, cut off after 1000 characters: for messages.
impl std::fmt::Display for Value {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const SHOWN_CHARACTERS: usize = 1000;
        let mut out = String::new();
        self.write_text(&mut out, 4 * SHOWN_CHARACTERS);
        match out.char_indices().nth(SHOWN_CHARACTERS) {
            Some((at, _)) => write!(formatter, "{}…", &out[..at]),
            None => formatter.write_str(&out),
        }
    }
}

impl FromIterator<Value> for Value {
    fn from_iter<T: IntoIterator<Item = Value>>(items: T) -> Value {
        Value::list(items.into_iter().collect())
    }
}

/// How deeply lists, contexts, ranges and functions may be nested in each other.
pub(crate) const DEPTH_LIMIT: u32 = json::DEPTH_LIMIT as u32;

/// How many levels one operation may add before its result is looked at. What adds more has to look first: a value that is
/// too deep cannot even be dropped.
const LEVELS_AT_ONCE: u32 = 128;

/// The depth of the deepest part, looked at whenever a value becomes part of another one.
#[inline]
fn deepest(depth: u32, part: &Value) -> u32 {
    let depth = depth.max(part.depth());
    debug_assert!(depth <= DEPTH_LIMIT + LEVELS_AT_ONCE, "a value is nested {depth} levels deep");
    depth
}

/// The items of a list value.
#[derive(Clone, Debug, Default)]
pub struct List {
    items: Vec<Value>,
    /// The depth of the deepest item; kept so that no value grows deeper than recursion can follow.
    depth: u32,
}

impl List {
    /// Adds an item at the end.
    pub fn push(&mut self, item: Value) {
        self.depth = deepest(self.depth, &item);
        self.items.push(item);
    }
}

impl From<Vec<Value>> for List {
    fn from(items: Vec<Value>) -> List {
        let depth = items.iter().fold(0, deepest);
        List { items, depth }
    }
}

impl std::ops::Deref for List {
    type Target = [Value];

    fn deref(&self) -> &[Value] {
        &self.items
    }
}

/// Named values in the order of their definition.
#[derive(Clone, Debug, Default)]
pub struct Context {
    entries: Vec<(Arc<str>, Value)>,
    /// The depth of the deepest value.
    depth: u32,
    /// Positions by name; kept only for contexts of more than [`Context::SMALL`] entries.
    index: Option<std::collections::BTreeMap<Arc<str>, usize>>,
}

impl Context {
    const SMALL: usize = 16;

    /// A context without entries.
    pub fn new() -> Context {
        Context::default()
    }

    #[inline]
    fn position(&self, name: &str) -> Option<usize> {
        match &self.index {
            Some(index) => index.get(name).copied(),
            None => self.entries.iter().position(|(known, _)| **known == *name),
        }
    }

    /// The value of an entry.
    #[inline]
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.position(name).map(|position| &self.entries[position].1)
    }

    /// Sets an entry; an entry of this name keeps its place.
    #[inline]
    pub fn put(&mut self, name: Arc<str>, value: Value) {
        self.depth = deepest(self.depth, &value);
        if let Some(position) = self.position(&name) {
            self.entries[position].1 = value;
            return;
        }
        if let Some(index) = &mut self.index {
            index.insert(name.clone(), self.entries.len());
        }
        self.entries.push((name, value));
        if self.index.is_none() && self.entries.len() > Self::SMALL {
            self.index = Some(self.entries.iter().enumerate().map(|(at, (name, _))| (name.clone(), at)).collect());
        }
    }

    /// Makes the values the only entries, each with the name at its place, and takes them away from there. The names and
    /// the room of former entries are used again.
    pub(crate) fn refill(&mut self, names: &[Arc<str>], values: &mut [Option<Value>]) {
        self.depth = 0;
        self.index = None;
        let mut next = 0;
        for (name, value) in names.iter().zip(values) {
            let Some(value) = value.take() else {
                continue;
            };
            self.depth = deepest(self.depth, &value);
            match self.entries.get_mut(next) {
                Some((known, old)) => {
                    if !Arc::ptr_eq(known, name) {
                        *known = name.clone();
                    }
                    *old = value;
                }
                None => self.entries.push((name.clone(), value)),
            }
            next += 1;
        }
        self.entries.truncate(next);
    }

    /// The entries in order.
    pub fn entries(&self) -> &[(Arc<str>, Value)] {
        &self.entries
    }
}

/// One end of a range. A null value means that the range has no end there.
#[derive(Clone, Debug)]
pub struct Bound {
    pub(crate) value: Value,
    pub(crate) included: bool,
}

impl Bound {
    /// The value at this end.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// Whether the value itself belongs to the range.
    pub fn is_included(&self) -> bool {
        self.included
    }

    fn same(&self, other: &Bound, budget: &mut usize) -> bool {
        self.included == other.included && take(budget) && self.value.equals(&other.value, budget) == Some(true)
    }
}

/// All values between two ends.
#[derive(Clone, Debug)]
pub struct Range {
    pub(crate) start: Bound,
    pub(crate) end: Bound,
    /// Told as a comparison, like `(< 10)`, which has no start, while that of `(null..10)` is null.
    pub(crate) is_comparison: bool,
}

impl Range {
    /// The lower end.
    pub fn start(&self) -> &Bound {
        &self.start
    }

    /// The upper end.
    pub fn end(&self) -> &Bound {
        &self.end
    }

    /// Whether the value lies within; `None` if it cannot be compared with an end.
    pub fn contains(&self, value: &Value) -> Option<bool> {
        let above = match &self.start.value {
            Value::Null => true,
            start => match value.compare(start)? {
                Ordering::Greater => true,
                Ordering::Equal => self.start.included,
                Ordering::Less => false,
            },
        };
        let below = match &self.end.value {
            Value::Null => true,
            end => match value.compare(end)? {
                Ordering::Less => true,
                Ordering::Equal => self.end.included,
                Ordering::Greater => false,
            },
        };
        Some(above && below)
    }
}

/// Values are moved all the time; they must fit three words.
const _: () = assert!(size_of::<Value>() == 24);

/// A command is charged what ranges take, as it is for values. That must be the same in every build: a command that is applied again
/// after an upgrade must end where it ended before.
const _: () = assert!(size_of::<Range>() == 72);
