//! Conversion between types, and functions of the engine's dialect that only shape their arguments.

use crate::evaluate::{Evaluator, Outcome};
use crate::functions::builtin::{Builtin, excerpt, failed, illegal};
use crate::json;
use crate::number::Number;
use crate::value::{JsonForm, Value};

pub(super) const FUNCTIONS: &[Builtin] = &[
    Builtin::new("string", &[&["from"]], string),
    Builtin::new(
        "number",
        &[&["from"], &["from", "grouping separator"], &["from", "grouping separator", "decimal separator"]],
        number,
    ),
    Builtin::new("from json", &[&["value"]], from_json),
    Builtin::new("to json", &[&["value"]], to_json),
    Builtin::new("cycle", &[&["interval"], &["repetitions", "interval"]], cycle),
    Builtin::new(
        "fromAi",
        &[
            &["value"],
            &["value", "description"],
            &["value", "description", "type"],
            &["value", "description", "type", "schema"],
            &["value", "description", "type", "schema", "options"],
        ],
        |_, arguments| Ok(arguments[0].clone()),
    ),
];

fn string(evaluator: &mut Evaluator<'_>, arguments: &[Value]) -> Outcome {
    match &arguments[0] {
        Value::Null => Ok(Value::Null),
        value @ Value::String(_) => Ok(value.clone()),
        value => evaluator.written(|out, limit| value.write_text(out, limit)),
    }
}

fn number(evaluator: &mut Evaluator<'_>, arguments: &[Value]) -> Outcome {
    let Some(text) = arguments[0].as_str() else {
        return illegal(evaluator, "number", arguments);
    };
    let mut separators = [None, None];
    for (separator, argument) in separators.iter_mut().zip(&arguments[1..]) {
        *separator = match argument {
            Value::Null => None,
            Value::String(text) => Some(&**text),
            _ => return illegal(evaluator, "number", arguments),
        };
    }
    let [grouping, point] = separators;
    // Without a decimal separator, what groups is taken away even if it is a point.
    let legal = matches!(grouping, None | Some(" " | "," | "."))
        && matches!(point, None | Some("." | ","))
        && (point.is_none() || grouping != point);
    if !legal {
        return illegal(evaluator, "number", arguments);
    }
    let (grouping, point) = (grouping.unwrap_or(""), point.unwrap_or("."));
    evaluator.scan(text.len())?;
    evaluator.allocate_string(text.len().saturating_mul(2))?;
    let ungrouped = if grouping.is_empty() { text.to_owned() } else { text.replace(grouping, "") };
    match Number::parse(&ungrouped.replace(point, ".")) {
        Some(number) => Ok(Value::Number(number)),
        None => failed(evaluator, "number", || format!("Can't parse '{}' as a number", excerpt(text))),
    }
}

fn from_json(evaluator: &mut Evaluator<'_>, arguments: &[Value]) -> Outcome {
    let Some(text) = arguments[0].as_str() else {
        return illegal(evaluator, "from json", arguments);
    };
    evaluator.scan(text.len())?;
    match evaluator.budget.building(|room| json::read_within(text, room))? {
        Ok(value) => Ok(value),
        Err(error) => failed(evaluator, "from json", || error.to_string()),
    }
}

fn to_json(evaluator: &mut Evaluator<'_>, arguments: &[Value]) -> Outcome {
    evaluator.written(|out, limit| arguments[0].write_json_until(out, limit, JsonForm::Iso))
}

/// The text of a repeating interval: `R3/PT1H`, or `R/PT1H` without a number of repetitions.
fn cycle(evaluator: &mut Evaluator<'_>, arguments: &[Value]) -> Outcome {
    let (repetitions, interval) = match arguments {
        [interval] => (None, interval),
        [Value::Null, interval] => (None, interval),
        [repetitions, interval] if repetitions.as_i64().is_some() => (repetitions.as_i64(), interval),
        _ => return illegal(evaluator, "cycle", arguments),
    };
    if !matches!(interval, Value::YearMonthDuration(_) | Value::DayTimeDuration(_)) {
        return illegal(evaluator, "cycle", arguments);
    }
    let repetitions = repetitions.map(|count| count.to_string()).unwrap_or_default();
    Ok(Value::string(format!("R{repetitions}/{interval}")))
}
