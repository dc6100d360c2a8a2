//! Functions that depend on the order of values.

use std::sync::Arc;

use super::{Builtin, failed, illegal, list_or_arguments};
use crate::evaluate::{Evaluator, Failure, Function, Outcome};
use crate::value::Value;

pub(in crate::functions) const FUNCTIONS: &[Builtin] = &[
    Builtin::new("min", &[&["list"]], |evaluator, arguments| extreme(evaluator, "min", arguments, false)).variadic(),
    Builtin::new("max", &[&["list"]], |evaluator, arguments| extreme(evaluator, "max", arguments, true)).variadic(),
    Builtin::new("sort", &[&["list", "precedes"]], sort),
];

fn extreme(evaluator: &mut Evaluator<'_>, name: &str, arguments: &[Value], largest: bool) -> Outcome {
    let items = list_or_arguments(arguments);
    evaluator.spend(items.len())?;
    let Some((mut best, rest)) = items.split_first() else {
        return Ok(Value::Null);
    };
    evaluator.spend_on_texts(best, best)?;
    let mut comparable = best.compare(best).is_some();
    for item in rest {
        evaluator.spend_on_texts(item, best)?;
        match item.compare(best) {
            Some(order) if order.is_gt() == largest && order.is_ne() => best = item,
            Some(_) => {}
            None => comparable = false,
        }
    }
    if comparable {
        return Ok(best.clone());
    }
    evaluator.allocate_list(items.len())?;
    failed(evaluator, name, || format!("{} is not comparable", Value::list(items.to_vec())))
}

/// A stable merge sort: the function may say anything, so nothing is assumed about it but that it answers.
fn sort(evaluator: &mut Evaluator<'_>, arguments: &[Value]) -> Outcome {
    let (Value::List(items), Value::Function(precedes)) = (&arguments[0], &arguments[1]) else {
        return illegal(evaluator, "sort", arguments);
    };
    evaluator.allocate_list(items.len().saturating_mul(2))?;
    let mut sorted = items.to_vec();
    let mut width = 1;
    while width < sorted.len() {
        let mut merged = Vec::with_capacity(sorted.len());
        for pair in sorted.chunks(2 * width) {
            let (left, right) = pair.split_at(width.min(pair.len()));
            if let Err(answer) = merge(evaluator, precedes, left, right, &mut merged)? {
                return failed(evaluator, "sort", || {
                    format!("fail to sort list by given precedes function: expected boolean but found '{answer}'")
                });
            }
        }
        sorted = merged;
        width *= 2;
    }
    Ok(Value::list(sorted))
}

/// Merges two sorted runs; the answer of the function if it is no boolean.
fn merge(
    evaluator: &mut Evaluator<'_>,
    precedes: &Arc<Function>,
    mut left: &[Value],
    mut right: &[Value],
    out: &mut Vec<Value>,
) -> Result<Result<(), Value>, Failure> {
    while let ([first, left_rest @ ..], [second, right_rest @ ..]) = (left, right) {
        match evaluator.apply(precedes, &[second.clone(), first.clone()])? {
            Value::Boolean(true) => {
                out.push(second.clone());
                right = right_rest;
            }
            Value::Boolean(false) => {
                out.push(first.clone());
                left = left_rest;
            }
            other => return Ok(Err(other)),
        }
    }
    out.extend_from_slice(left);
    out.extend_from_slice(right);
    Ok(Ok(()))
}
