//! Functions on numbers.

use crate::decimal::Rounding;
use crate::evaluate::{Evaluator, Outcome};
use crate::functions::builtin::{Builtin, failed, illegal};
use crate::number::Number;
use crate::value::Value;

const ONE: &[&[&str]] = &[&["n"], &["number"]];
/// The reference calls a parameter `scala` in some places.
const SCALED: &[&[&str]] = &[&["n", "scale"], &["n", "scala"]];
const PERHAPS_SCALED: &[&[&str]] = &[&["n"], &["n", "scale"], &["n", "scala"]];
const NUMBER: &[&[&str]] = &[&["number"]];

pub(super) const FUNCTIONS: &[Builtin] = &[
    Builtin::new("decimal", &[&["n", "scale"], &["n", "scale", "mode"]], decimal),
    Builtin::new("floor", PERHAPS_SCALED, |evaluator, arguments| round(evaluator, "floor", arguments, Rounding::Floor)),
    Builtin::new("ceiling", PERHAPS_SCALED, |evaluator, arguments| {
        round(evaluator, "ceiling", arguments, Rounding::Ceiling)
    }),
    Builtin::new("round up", SCALED, |evaluator, arguments| round(evaluator, "round up", arguments, Rounding::Up)),
    Builtin::new("round down", SCALED, |evaluator, arguments| {
        round(evaluator, "round down", arguments, Rounding::Down)
    }),
    Builtin::new("round half up", SCALED, |evaluator, arguments| {
        round(evaluator, "round half up", arguments, Rounding::HalfUp)
    }),
    Builtin::new("round half down", SCALED, |evaluator, arguments| {
        round(evaluator, "round half down", arguments, Rounding::HalfDown)
    }),
    Builtin::new("abs", ONE, absolute),
    Builtin::new("modulo", &[&["dividend", "divisor"]], modulo),
    Builtin::new("sqrt", NUMBER, |evaluator, arguments| real(evaluator, "sqrt", arguments, f64::sqrt)),
    Builtin::new("log", NUMBER, |evaluator, arguments| real(evaluator, "log", arguments, libm::log)),
    Builtin::new("exp", NUMBER, |evaluator, arguments| real(evaluator, "exp", arguments, libm::exp)),
    Builtin::new("odd", NUMBER, |evaluator, arguments| parity(evaluator, "odd", arguments, 1)),
    Builtin::new("even", NUMBER, |evaluator, arguments| parity(evaluator, "even", arguments, 0)),
];

/// How many places a number can have: -6111 to 6176.
const SCALE_MAX: i32 = 6176;

fn round(evaluator: &mut Evaluator<'_>, name: &str, arguments: &[Value], rounding: Rounding) -> Outcome {
    let places = arguments.get(1).map_or(Some(0), Value::as_whole).and_then(|places| i32::try_from(places).ok());
    let (Some(number), Some(places)) = (arguments[0].as_number(), places) else {
        return illegal(evaluator, name, arguments);
    };
    if !(-SCALE_MAX + 65..=SCALE_MAX).contains(&places) {
        return failed(evaluator, name, || {
            format!("the scale {places} is not between {} and {SCALE_MAX}", -SCALE_MAX + 65)
        });
    }
    match number.round(places, rounding) {
        Some(rounded) => Ok(Value::Number(rounded)),
        None => illegal(evaluator, name, arguments),
    }
}

fn decimal(evaluator: &mut Evaluator<'_>, arguments: &[Value]) -> Outcome {
    let mode = match arguments.get(2) {
        None => "HALF_EVEN".to_owned(),
        Some(Value::String(mode)) if mode.len() < 16 => mode.to_ascii_uppercase(),
        Some(_) => return illegal(evaluator, "decimal", arguments),
    };
    let rounding = match mode.as_str() {
        "HALF_EVEN" => Rounding::HalfEven,
        "HALF_UP" => Rounding::HalfUp,
        "HALF_DOWN" => Rounding::HalfDown,
        "UP" => Rounding::Up,
        "DOWN" => Rounding::Down,
        "FLOOR" => Rounding::Floor,
        "CEILING" => Rounding::Ceiling,
        "UNNECESSARY" => {
            let rounded = round(evaluator, "decimal", &arguments[..2], Rounding::Down)?;
            let same = rounded.is_null() || rounded == arguments[0];
            return if same { Ok(rounded) } else { failed(evaluator, "decimal", || "Rounding necessary".to_owned()) };
        }
        _ => {
            return failed(evaluator, "decimal", || {
                format!(
                    "Illegal argument '{mode}' for rounding mode. Must be one of: CEILING, DOWN, FLOOR, HALF_DOWN, \
                     HALF_EVEN, HALF_UP, UNNECESSARY, UP"
                )
            });
        }
    };
    round(evaluator, "decimal", &arguments[..2], rounding)
}

fn absolute(evaluator: &mut Evaluator<'_>, arguments: &[Value]) -> Outcome {
    let absolute = match &arguments[0] {
        Value::Number(number) => Some(Value::Number(if number.is_negative() { number.negate() } else { *number })),
        Value::YearMonthDuration(months) => months.checked_abs().map(Value::YearMonthDuration),
        Value::DayTimeDuration(duration) if duration.is_negative() => {
            duration.checked_neg().map(Value::DayTimeDuration)
        }
        duration @ Value::DayTimeDuration(_) => Some(duration.clone()),
        _ => None,
    };
    match absolute {
        Some(value) => Ok(value),
        None => illegal(evaluator, "abs", arguments),
    }
}

fn modulo(evaluator: &mut Evaluator<'_>, arguments: &[Value]) -> Outcome {
    let (Some(dividend), Some(divisor)) = (arguments[0].as_number(), arguments[1].as_number()) else {
        return illegal(evaluator, "modulo", arguments);
    };
    match dividend.modulo(divisor) {
        Some(rest) => Ok(Value::Number(rest)),
        None => failed(evaluator, "modulo", || format!("Can't divide '{dividend}' by '{divisor}'")),
    }
}

/// Functions of real numbers, in double precision, by a library with the same results in every build.
fn real(evaluator: &mut Evaluator<'_>, name: &str, arguments: &[Value], compute: fn(f64) -> f64) -> Outcome {
    let Some(number) = arguments[0].as_number() else {
        return illegal(evaluator, name, arguments);
    };
    match Number::from_f64(compute(number.to_f64())) {
        Some(result) => Ok(Value::Number(result)),
        None => failed(evaluator, name, || format!("no number is the result for '{number}'")),
    }
}

fn parity(evaluator: &mut Evaluator<'_>, name: &str, arguments: &[Value], wanted: i64) -> Outcome {
    let Some(number) = arguments[0].as_number() else {
        return illegal(evaluator, name, arguments);
    };
    let rest = number.modulo(Number::Integer(2)).filter(|_| number.is_whole());
    Ok(Value::Boolean(rest == Some(Number::Integer(wanted))))
}
