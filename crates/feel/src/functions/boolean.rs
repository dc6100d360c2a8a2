//! Boolean functions.

use crate::evaluate::{Evaluator, Outcome};
use crate::functions::builtin::Builtin;
use crate::value::Value;

pub(super) const FUNCTIONS: &[Builtin] = &[
    Builtin::new("not", &[&["negand"]], not),
    Builtin::new("is", &[&["value1", "value2"]], is),
    Builtin::new("is defined", &[&["value"]], is_defined),
    Builtin::new("get or else", &[&["value", "default"]], get_or_else),
    Builtin::new("assert", &[&["value", "condition"], &["value", "condition", "cause"]], assert),
];

fn not(_: &mut Evaluator<'_>, arguments: &[Value]) -> Outcome {
    Ok(match arguments[0] {
        Value::Boolean(value) => Value::Boolean(!value),
        _ => Value::Null,
    })
}

/// Whether both are the same in type and value: unlike with `=`, the same instant in two zones is not.
fn is(evaluator: &mut Evaluator<'_>, arguments: &[Value]) -> Outcome {
    let (left, right) = (&arguments[0], &arguments[1]);
    let same = match (left, right) {
        (Value::Time(a), Value::Time(b)) => a == b,
        (Value::DateTime(a), Value::DateTime(b)) => a == b,
        _ => evaluator.equal(left, right)? == Some(true),
    };
    Ok(Value::Boolean(same))
}

fn is_defined(_: &mut Evaluator<'_>, arguments: &[Value]) -> Outcome {
    Ok(Value::Boolean(!arguments[0].is_null()))
}

fn get_or_else(_: &mut Evaluator<'_>, arguments: &[Value]) -> Outcome {
    Ok(arguments.iter().find(|value| !value.is_null()).cloned().unwrap_or_default())
}

fn assert(evaluator: &mut Evaluator<'_>, arguments: &[Value]) -> Outcome {
    if arguments[1].as_bool() == Some(true) {
        return Ok(arguments[0].clone());
    }
    let message = arguments.get(2).and_then(Value::as_str).unwrap_or("The condition is not fulfilled");
    Err(evaluator.assertion_failed(message.to_owned()))
}
