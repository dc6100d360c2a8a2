//! Arithmetic, comparison, logic and unary tests.

use std::cmp::Ordering;

use jiff::SignedDuration;

use super::{Evaluator, Operand, Outcome};
use crate::environment::WarningKind;
use crate::node::{Comparison, Node, Operator};
use crate::number::Number;
use crate::temporal;
use crate::value::Value;

impl Evaluator<'_> {
    #[inline(never)]
    pub(super) fn arithmetic_chain(&mut self, first: &Node, rest: &[(Operator, Node)]) -> Outcome {
        // As many steps as if the operations were nested: constant operands take none.
        if rest.len() > 1 {
            self.spend(rest.len() - 1)?;
        }
        if let Some(result) = self.whole_numbers(first, rest) {
            return Ok(Value::integer(result));
        }
        let mut left = self.operand(first)?;
        for (operator, node) in rest {
            left = match (left, self.operand(node)?) {
                (Operand::Number(a), Operand::Number(b)) => match compute(*operator, a, b) {
                    Some(number) => Operand::Number(number),
                    None => Operand::Other(self.impossible(*operator, &Value::Number(a), &Value::Number(b))),
                },
                (left, right) => match self.arithmetic(*operator, left.value(), right.value())? {
                    Value::Number(number) => Operand::Number(number),
                    value => Operand::Other(value),
                },
            };
        }
        Ok(left.value())
    }

    /// The result if it and all operands are whole numbers in the text or on the stack: in loops this is the common case,
    /// which needs no values to be moved.
    #[inline]
    fn whole_numbers(&self, first: &Node, rest: &[(Operator, Node)]) -> Option<i64> {
        let mut left = self.whole_number(first)?;
        for (operator, node) in rest {
            let right = self.whole_number(node)?;
            left = match operator {
                Operator::Add => left.checked_add(right)?,
                Operator::Subtract => left.checked_sub(right)?,
                Operator::Multiply => left.checked_mul(right)?,
                Operator::Divide | Operator::Power => return None,
            };
        }
        Some(left)
    }

    #[inline]
    fn whole_number(&self, node: &Node) -> Option<i64> {
        let value = match node {
            Node::Constant(value) => value,
            Node::Local(position) => &self.stack[*position as usize],
            _ => return None,
        };
        if let Value::Number(Number::Integer(number)) = value { Some(*number) } else { None }
    }

    /// Arithmetic with values, at least one of which is not a number.
    #[inline(never)]
    fn arithmetic(&mut self, operator: Operator, left: Value, right: Value) -> Outcome {
        if let (Operator::Add, Value::String(a), Value::String(b)) = (operator, &left, &right) {
            self.allocate_string(a.len() + b.len())?;
            let mut text = String::with_capacity(a.len() + b.len());
            text.push_str(a);
            text.push_str(b);
            return Ok(Value::string(text));
        }
        // The calendar takes longer than numbers do.
        self.spend(5)?;
        let result = match operator {
            Operator::Add => add(&left, &right).or_else(|| add(&right, &left)),
            Operator::Subtract => subtract(&left, &right),
            Operator::Multiply => multiply(&left, &right).or_else(|| multiply(&right, &left)),
            Operator::Divide => divide(&left, &right),
            Operator::Power => None,
        };
        Ok(match result {
            Some(value) => value,
            None => self.impossible(operator, &left, &right),
        })
    }

    #[cold]
    fn impossible(&mut self, operator: Operator, left: &Value, right: &Value) -> Value {
        self.warn(WarningKind::InvalidType, || match operator {
            Operator::Add => format!("Can't add '{right}' to '{left}'"),
            Operator::Subtract => format!("Can't subtract '{right}' from '{left}'"),
            Operator::Multiply => format!("Can't multiply '{left}' by '{right}'"),
            Operator::Divide => format!("Can't divide '{left}' by '{right}'"),
            Operator::Power => format!("Can't raise '{left}' to the power of '{right}'"),
        })
    }

    #[inline(never)]
    pub(super) fn negate(&mut self, operand: &Node) -> Outcome {
        let value = self.evaluate(operand)?;
        let negated = match &value {
            Value::Number(number) => Some(Value::Number(number.negate())),
            Value::YearMonthDuration(months) => months.checked_neg().map(Value::YearMonthDuration),
            Value::DayTimeDuration(duration) => duration.checked_neg().map(Value::DayTimeDuration),
            _ => None,
        };
        Ok(match negated {
            Some(negated) => negated,
            None => self.warn(WarningKind::InvalidType, || format!("Expected number but found '{value}'")),
        })
    }

    #[inline(never)]
    pub(super) fn comparison(&mut self, comparison: Comparison, left: &Node, right: &Node) -> Outcome {
        if let (Comparison::Equal | Comparison::NotEqual, Node::Constant(Value::String(string))) = (comparison, right)
            && let Some(equal) = self.text_equals(left, string)?
        {
            return Ok(Value::Boolean(equal == (comparison == Comparison::Equal)));
        }
        match (self.operand(left)?, right) {
            // Mostly a variable is compared with a constant, which need not be cloned.
            (Operand::Other(left), Node::Constant(right)) => self.compare(comparison, &left, right),
            (left, right) => match (left, self.operand(right)?) {
                (Operand::Number(a), Operand::Number(b)) => Ok(Value::Boolean(comparison.holds(a.cmp(&b)))),
                (left, right) => self.compare(comparison, &left.value(), &right.value()),
            },
        }
    }

    /// Null if the values cannot be compared.
    pub(crate) fn compare(&mut self, comparison: Comparison, left: &Value, right: &Value) -> Outcome {
        let result = match comparison {
            Comparison::Equal => self.equal(left, right)?,
            Comparison::NotEqual => self.equal(left, right)?.map(|equal| !equal),
            _ => {
                self.spend_on_texts(left, right)?;
                left.compare(right).map(|ordering| comparison.holds(ordering))
            }
        };
        Ok(match result {
            Some(result) => Value::Boolean(result),
            None => self.not_comparable(left, right),
        })
    }

    #[cold]
    fn not_comparable(&mut self, left: &Value, right: &Value) -> Value {
        self.warn(WarningKind::NotComparable, || format!("Can't compare '{left}' with '{right}'"))
    }

    /// `and` (decided by false) and `or` (decided by true) in three-valued logic: what is no boolean is unknown.
    #[inline(never)]
    pub(super) fn connective(&mut self, operands: &[Node], deciding: bool) -> Outcome {
        let mut unknown = false;
        for (position, operand) in operands.iter().enumerate() {
            // The first operation is the step of the node.
            self.spend(usize::from(position > 1))?;
            match self.evaluate(operand)? {
                Value::Boolean(value) if value == deciding => return Ok(Value::Boolean(deciding)),
                Value::Boolean(_) => {}
                other => {
                    unknown = true;
                    self.warn(WarningKind::InvalidType, || format!("Expected boolean but found '{other}'"));
                }
            }
        }
        Ok(if unknown { Value::Null } else { Value::Boolean(!deciding) })
    }

    #[inline(never)]
    pub(super) fn between(&mut self, parts: &[Node; 3]) -> Outcome {
        let value = self.evaluate(&parts[0])?;
        let low = self.evaluate(&parts[1])?;
        let high = self.evaluate(&parts[2])?;
        self.spend_on_texts(&value, &low)?;
        self.spend_on_texts(&value, &high)?;
        let (above, below) = (value.compare(&low).map(Ordering::is_ge), value.compare(&high).map(Ordering::is_le));
        if above.is_none() || below.is_none() {
            self.warn(WarningKind::NotComparable, || format!("Can't compare '{value}' with '{low}' and '{high}'"));
        }
        // As if both comparisons were joined by `and`.
        Ok(match (above, below) {
            (Some(false), _) | (_, Some(false)) => Value::Boolean(false),
            (Some(true), Some(true)) => Value::Boolean(true),
            _ => Value::Null,
        })
    }
}

impl Comparison {
    /// Whether it is true of two values in this order.
    #[inline]
    fn holds(self, ordering: Ordering) -> bool {
        match self {
            Comparison::Equal => ordering.is_eq(),
            Comparison::NotEqual => ordering.is_ne(),
            Comparison::Less => ordering.is_lt(),
            Comparison::LessEqual => ordering.is_le(),
            Comparison::Greater => ordering.is_gt(),
            Comparison::GreaterEqual => ordering.is_ge(),
        }
    }
}

#[inline]
fn compute(operator: Operator, left: Number, right: Number) -> Option<Number> {
    match operator {
        Operator::Add => left.plus(right),
        Operator::Subtract => left.minus(right),
        Operator::Multiply => left.multiply(right),
        Operator::Divide => left.divide(right),
        Operator::Power => left.power(right),
    }
}

fn boxed_date_time(value: Option<temporal::DateTime>) -> Option<Value> {
    value.map(|value| Value::DateTime(Box::new(value)))
}

/// Sums of temporal values; the caller tries both orders.
fn add(left: &Value, right: &Value) -> Option<Value> {
    match (left, right) {
        (Value::Date(date), Value::YearMonthDuration(months)) => date.plus_months(*months).map(Value::Date),
        (Value::Date(date), Value::DayTimeDuration(duration)) => temporal::add_days(*date, *duration).map(Value::Date),
        (Value::DateTime(value), Value::YearMonthDuration(months)) => boxed_date_time(value.plus_months(*months)),
        (Value::DateTime(value), Value::DayTimeDuration(duration)) => boxed_date_time(value.plus(*duration)),
        (Value::Time(time), Value::DayTimeDuration(duration)) => Some(Value::Time(Box::new(time.plus(*duration)))),
        (Value::YearMonthDuration(a), Value::YearMonthDuration(b)) => a.checked_add(*b).map(Value::YearMonthDuration),
        (Value::DayTimeDuration(a), Value::DayTimeDuration(b)) => a.checked_add(*b).map(Value::DayTimeDuration),
        _ => None,
    }
}

fn subtract(left: &Value, right: &Value) -> Option<Value> {
    match (left, right) {
        (Value::Date(a), Value::Date(b)) => Some(Value::DayTimeDuration(temporal::days_between(*b, *a))),
        (Value::Time(a), Value::Time(b)) => a.since(b).map(Value::DayTimeDuration),
        (Value::DateTime(a), Value::DateTime(b)) => a.since(b).map(Value::DayTimeDuration),
        // A date and a date and time: chapter 10.3.2.3.6 of the standard, for which the date is one in UTC.
        (Value::Date(a), Value::DateTime(b)) if b.zone().is_some() => {
            temporal::DateTime::of_date(*a, b).since(b).map(Value::DayTimeDuration)
        }
        (Value::DateTime(a), Value::Date(b)) if a.zone().is_some() => {
            a.since(&temporal::DateTime::of_date(*b, a)).map(Value::DayTimeDuration)
        }
        (_, Value::YearMonthDuration(months)) => add(left, &Value::YearMonthDuration(months.checked_neg()?)),
        (_, Value::DayTimeDuration(duration)) => add(left, &Value::DayTimeDuration(duration.checked_neg()?)),
        _ => None,
    }
}

/// Products of durations and numbers; the caller tries both orders.
fn multiply(left: &Value, right: &Value) -> Option<Value> {
    match (left, right) {
        (Value::YearMonthDuration(months), Value::Number(number)) => {
            months_of(Number::Integer(*months).multiply(*number)?)
        }
        (Value::DayTimeDuration(duration), Value::Number(number)) => {
            duration_of(seconds_of(*duration)?.multiply(*number)?)
        }
        _ => None,
    }
}

fn divide(left: &Value, right: &Value) -> Option<Value> {
    match (left, right) {
        (Value::YearMonthDuration(months), Value::Number(number)) => {
            months_of(Number::Integer(*months).divide(*number)?)
        }
        (Value::YearMonthDuration(a), Value::YearMonthDuration(b)) => {
            Number::Integer(*a).divide(Number::Integer(*b)).map(Value::Number)
        }
        (Value::DayTimeDuration(duration), Value::Number(number)) => {
            duration_of(seconds_of(*duration)?.divide(*number)?)
        }
        (Value::DayTimeDuration(a), Value::DayTimeDuration(b)) => {
            seconds_of(*a)?.divide(seconds_of(*b)?).map(Value::Number)
        }
        _ => None,
    }
}

/// Fractions of a month are cut off.
fn months_of(months: Number) -> Option<Value> {
    months.round(0, crate::decimal::Rounding::Down)?.to_i64().map(Value::YearMonthDuration)
}

fn seconds_of(duration: SignedDuration) -> Option<Number> {
    let fraction = Number::Integer(i64::from(duration.subsec_nanos())).divide(Number::Integer(1_000_000_000))?;
    Number::Integer(duration.as_secs()).plus(fraction)
}

fn duration_of(seconds: Number) -> Option<Value> {
    let whole = seconds.round(0, crate::decimal::Rounding::Down)?;
    let nanoseconds = seconds.minus(whole)?.multiply(Number::Integer(1_000_000_000))?;
    let nanoseconds = nanoseconds.round(0, crate::decimal::Rounding::Down)?.to_i64()?;
    Some(Value::DayTimeDuration(SignedDuration::new(whole.to_i64()?, i32::try_from(nanoseconds).ok()?)))
}
