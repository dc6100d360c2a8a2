//! Functions whose results look random: they follow from the seed of the evaluation, so that every replica computes the
//! same.

use crate::evaluate::{Evaluator, Outcome};
use crate::functions::builtin::Builtin;
use crate::number::Number;
use crate::value::Value;

pub(super) const FUNCTIONS: &[Builtin] = &[
    Builtin::new("random number", &[&[]], random_number).with_environment(),
    Builtin::new("uuid", &[&[]], uuid).with_environment(),
];

/// From 0 to below 1, with 16 digits.
fn random_number(evaluator: &mut Evaluator<'_>, _: &[Value]) -> Outcome {
    const PARTS: u64 = 10_000_000_000_000_000;
    // 2^64 is so much larger than the number of results that none is noticeably more frequent.
    let part = (evaluator.random() % PARTS) as i64;
    let number = Number::Integer(part).divide(Number::Integer(PARTS as i64));
    Ok(number.map_or(Value::Null, Value::Number))
}

/// Version 7 of RFC 9562: the time, then random bits.
fn uuid(evaluator: &mut Evaluator<'_>, _: &[Value]) -> Outcome {
    let milliseconds = evaluator.environment.now_milliseconds.max(0).unsigned_abs() & 0xffff_ffff_ffff;
    let (high, low) = (evaluator.random() & 0xfff, evaluator.random() & 0x3fff_ffff_ffff_ffff | 1 << 63);
    let bits = u128::from(milliseconds) << 80 | 7 << 76 | u128::from(high) << 64 | u128::from(low);
    let text = format!("{bits:032x}");
    let parts = [&text[..8], &text[8..12], &text[12..16], &text[16..20], &text[20..]];
    Ok(Value::string(parts.join("-")))
}
