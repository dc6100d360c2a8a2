//! Functions that make one value of a list: of numbers, of booleans, of anything countable.

use super::{Builtin, failed, illegal, list_or_arguments};
use crate::evaluate::{Evaluator, Failure, Outcome};
use crate::number::Number;
use crate::value::Value;

const LIST: &[&[&str]] = &[&["list"]];

pub(in crate::functions) const FUNCTIONS: &[Builtin] = &[
    Builtin::new("count", LIST, count),
    Builtin::new("sum", LIST, |evaluator, arguments| fold(evaluator, "sum", arguments, Number::plus)).variadic(),
    Builtin::new("product", LIST, |evaluator, arguments| fold(evaluator, "product", arguments, Number::multiply))
        .variadic(),
    Builtin::new("mean", LIST, mean).variadic(),
    Builtin::new("median", LIST, median).variadic(),
    Builtin::new("stddev", LIST, stddev).variadic(),
    Builtin::new("mode", LIST, mode).variadic(),
    Builtin::new("all", LIST, |evaluator, arguments| decide(evaluator, arguments, false)).variadic(),
    Builtin::new("and", LIST, |evaluator, arguments| decide(evaluator, arguments, false)).variadic(),
    Builtin::new("any", LIST, |evaluator, arguments| decide(evaluator, arguments, true)).variadic(),
    Builtin::new("or", LIST, |evaluator, arguments| decide(evaluator, arguments, true)).variadic(),
];

fn count(evaluator: &mut Evaluator<'_>, arguments: &[Value]) -> Outcome {
    match &arguments[0] {
        // The list limit bounds the number of items far below 2^63.
        Value::List(items) => Ok(Value::integer(items.len() as i64)),
        _ => illegal(evaluator, "count", arguments),
    }
}

/// The numbers of a list; null (with the warning given) if something else is among them.
fn numbers(
    evaluator: &mut Evaluator<'_>,
    name: &str,
    arguments: &[Value],
) -> Result<Result<Vec<Number>, Value>, Failure> {
    let items = list_or_arguments(arguments);
    evaluator.allocate_list(items.len())?;
    let mut numbers = Vec::with_capacity(items.len());
    for item in items {
        match item {
            Value::Number(number) => numbers.push(*number),
            other => return failed(evaluator, name, || format!("expected number but found '{other}'")).map(Err),
        }
    }
    Ok(Ok(numbers))
}

/// Call before this many numbers are sorted.
fn spend_on_sort(evaluator: &mut Evaluator<'_>, numbers: usize) -> Result<(), Failure> {
    evaluator.spend(numbers.saturating_mul(numbers.checked_ilog2().unwrap_or(0) as usize) / 4)
}

fn out_of_range(evaluator: &mut Evaluator<'_>, name: &str) -> Outcome {
    failed(evaluator, name, || "the result is out of the range of numbers".to_owned())
}

fn fold(
    evaluator: &mut Evaluator<'_>,
    name: &str,
    arguments: &[Value],
    combine: fn(Number, Number) -> Option<Number>,
) -> Outcome {
    let numbers = match numbers(evaluator, name, arguments)? {
        Ok(numbers) => numbers,
        Err(null) => return Ok(null),
    };
    let Some((first, rest)) = numbers.split_first() else {
        return Ok(Value::Null);
    };
    match rest.iter().try_fold(*first, |total, number| combine(total, *number)) {
        Some(total) => Ok(Value::Number(total)),
        None => out_of_range(evaluator, name),
    }
}

fn average(numbers: &[Number]) -> Option<Number> {
    let total = numbers.iter().try_fold(Number::Integer(0), |total, number| total.plus(*number))?;
    total.divide(Number::Integer(i64::try_from(numbers.len()).ok()?))
}

fn mean(evaluator: &mut Evaluator<'_>, arguments: &[Value]) -> Outcome {
    match numbers(evaluator, "mean", arguments)? {
        Ok(numbers) if numbers.is_empty() => Ok(Value::Null),
        Ok(numbers) => match average(&numbers) {
            Some(mean) => Ok(Value::Number(mean)),
            None => out_of_range(evaluator, "mean"),
        },
        Err(null) => Ok(null),
    }
}

fn median(evaluator: &mut Evaluator<'_>, arguments: &[Value]) -> Outcome {
    let mut numbers = match numbers(evaluator, "median", arguments)? {
        Ok(numbers) if numbers.is_empty() => return Ok(Value::Null),
        Ok(numbers) => numbers,
        Err(null) => return Ok(null),
    };
    spend_on_sort(evaluator, numbers.len())?;
    numbers.sort();
    let middle = numbers.len() / 2;
    if numbers.len() % 2 == 1 {
        return Ok(Value::Number(numbers[middle]));
    }
    match average(&numbers[middle - 1..=middle]) {
        Some(median) => Ok(Value::Number(median)),
        None => out_of_range(evaluator, "median"),
    }
}

/// The standard deviation of a sample; its root is taken in double precision.
fn stddev(evaluator: &mut Evaluator<'_>, arguments: &[Value]) -> Outcome {
    let numbers = match numbers(evaluator, "stddev", arguments)? {
        Ok(numbers) if numbers.len() < 2 => return Ok(Value::Null),
        Ok(numbers) => numbers,
        Err(null) => return Ok(null),
    };
    let deviation = || {
        let mean = average(&numbers)?;
        let mut squares = Number::Integer(0);
        for number in &numbers {
            let distance = number.minus(mean)?;
            squares = squares.plus(distance.multiply(distance)?)?;
        }
        let variance = squares.divide(Number::Integer(i64::try_from(numbers.len() - 1).ok()?))?;
        Number::from_f64(variance.to_f64().sqrt())
    };
    match deviation() {
        Some(deviation) => Ok(Value::Number(deviation)),
        None => out_of_range(evaluator, "stddev"),
    }
}

/// The most frequent numbers in ascending order.
fn mode(evaluator: &mut Evaluator<'_>, arguments: &[Value]) -> Outcome {
    let mut numbers = match numbers(evaluator, "mode", arguments)? {
        Ok(numbers) => numbers,
        Err(null) => return Ok(null),
    };
    spend_on_sort(evaluator, numbers.len())?;
    numbers.sort();
    let groups: Vec<&[Number]> = numbers.chunk_by(|a, b| a == b).collect();
    let most = groups.iter().map(|group| group.len()).max().unwrap_or(0);
    Ok(groups.into_iter().filter(|group| group.len() == most).map(|group| Value::Number(group[0])).collect())
}

/// `all` (decided by false) and `any` (decided by true); what is no boolean is unknown.
fn decide(evaluator: &mut Evaluator<'_>, arguments: &[Value], deciding: bool) -> Outcome {
    let items = list_or_arguments(arguments);
    evaluator.spend(items.len())?;
    if items.contains(&Value::Boolean(deciding)) {
        return Ok(Value::Boolean(deciding));
    }
    let unknown = items.iter().any(|item| item.as_bool().is_none());
    Ok(if unknown { Value::Null } else { Value::Boolean(!deciding) })
}
