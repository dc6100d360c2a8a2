//! Functions on contexts.

use std::sync::Arc;

use crate::environment::EvaluationError;
use crate::evaluate::{Evaluator, Outcome};
use crate::functions::builtin::{Builtin, illegal, list_or_arguments};
use crate::value::{CONTEXT_BYTES, Context, DEPTH_LIMIT, ENTRY_BYTES, Value};

const PUT: &[&[&str]] = &[&["context", "key", "value"], &["context", "keys", "value"]];

pub(super) const FUNCTIONS: &[Builtin] = &[
    Builtin::new("get value", &[&["context", "key"], &["context", "keys"], &["m", "key"]], get_value),
    Builtin::new("get entries", &[&["context"], &["m"]], get_entries),
    Builtin::new("context put", PUT, |evaluator, arguments| put(evaluator, "context put", arguments)),
    Builtin::new("put", PUT, |evaluator, arguments| put(evaluator, "put", arguments)),
    Builtin::new("context merge", &[&["contexts"]], |evaluator, arguments| {
        merge(evaluator, "context merge", arguments)
    })
    .variadic(),
    Builtin::new("put all", &[&["contexts"]], |evaluator, arguments| merge(evaluator, "put all", arguments)).variadic(),
    Builtin::new("context", &[&["entries"]], context),
];

fn get_value(evaluator: &mut Evaluator<'_>, arguments: &[Value]) -> Outcome {
    match (&arguments[0], &arguments[1]) {
        (Value::Context(context), Value::String(key)) => Ok(context.get(key).cloned().unwrap_or_default()),
        (Value::Context(_), Value::List(keys)) if !keys.is_empty() => {
            let mut current = &arguments[0];
            for key in keys.iter() {
                let (Value::Context(context), Value::String(key)) = (current, key) else {
                    return Ok(Value::Null);
                };
                match context.get(key) {
                    Some(value) => current = value,
                    None => return Ok(Value::Null),
                }
            }
            Ok(current.clone())
        }
        (Value::Context(_), Value::List(_)) => Ok(Value::Null),
        _ => illegal(evaluator, "get value", arguments),
    }
}

fn get_entries(evaluator: &mut Evaluator<'_>, arguments: &[Value]) -> Outcome {
    let Value::Context(context) = &arguments[0] else {
        return illegal(evaluator, "get entries", arguments);
    };
    let count = context.entries().len();
    evaluator.allocate_list(count)?;
    evaluator.allocate(count.saturating_mul(CONTEXT_BYTES + 4 * ENTRY_BYTES))?;
    let (key, value): (Arc<str>, Arc<str>) = (Arc::from("key"), Arc::from("value"));
    let entries = context.entries().iter().map(|(name, entry)| {
        let mut pair = Context::new();
        pair.put(key.clone(), Value::String(name.clone()));
        pair.put(value.clone(), entry.clone());
        Value::context(pair)
    });
    Ok(Value::list(entries.collect()))
}

fn put(evaluator: &mut Evaluator<'_>, name: &str, arguments: &[Value]) -> Outcome {
    let Value::Context(context) = &arguments[0] else {
        return illegal(evaluator, name, arguments);
    };
    let keys: Vec<Arc<str>> = match &arguments[1] {
        Value::String(key) => vec![key.clone()],
        Value::List(keys) => {
            keys.iter().map_while(|key| if let Value::String(key) = key { Some(key.clone()) } else { None }).collect()
        }
        _ => Vec::new(),
    };
    let expected = arguments[1].as_list().map_or(1, <[Value]>::len);
    if keys.is_empty() || keys.len() != expected {
        return illegal(evaluator, name, arguments);
    }
    // Each key nests the value one level deeper: what would be too deep is never built, because it could not be dropped.
    let levels_left = DEPTH_LIMIT.saturating_sub(arguments[2].depth());
    if keys.len() > levels_left as usize {
        return Err(EvaluationError::ValueTooDeep(DEPTH_LIMIT).into());
    }
    evaluator.spend(keys.len())?;
    // From the innermost context outwards; what is no context on the way is replaced by one.
    let mut levels: Vec<Context> = Vec::with_capacity(keys.len());
    let mut around = Some(context);
    for key in &keys {
        let entries = around.map_or(0, |context| context.entries().len()) + 1;
        evaluator.spend(entries)?;
        evaluator.allocate_context(entries)?;
        levels.push(around.map(|context| (**context).clone()).unwrap_or_default());
        around = around.and_then(|context| match context.get(key) {
            Some(Value::Context(inner)) => Some(inner),
            _ => None,
        });
    }
    let mut value = arguments[2].clone();
    for (mut level, key) in levels.into_iter().zip(&keys).rev() {
        level.put(key.clone(), value);
        value = Value::context(level);
    }
    Ok(value)
}

/// Later entries win.
fn merge(evaluator: &mut Evaluator<'_>, _: &str, arguments: &[Value]) -> Outcome {
    let mut merged = Context::new();
    evaluator.allocate_context(0)?;
    for item in list_or_arguments(arguments) {
        let Value::Context(context) = item else {
            return Ok(Value::Null);
        };
        evaluator.spend(context.entries().len())?;
        evaluator.allocate(context.entries().len().saturating_mul(ENTRY_BYTES))?;
        for (name, value) in context.entries() {
            merged.put(name.clone(), value.clone());
        }
    }
    Ok(Value::context(merged))
}

/// From a list of contexts with `key` and `value`, or from one of them.
fn context(evaluator: &mut Evaluator<'_>, arguments: &[Value]) -> Outcome {
    let items = match &arguments[0] {
        Value::List(items) => &items[..],
        Value::Context(_) => &arguments[..1],
        _ => return Ok(Value::Null),
    };
    evaluator.spend(items.len())?;
    evaluator.allocate_context(items.len())?;
    let mut context = Context::new();
    for item in items.iter() {
        let entry = item.as_context().and_then(|entry| Some((entry.get("key")?, entry.get("value")?)));
        let Some((Value::String(key), value)) = entry else {
            return Ok(Value::Null);
        };
        context.put(key.clone(), value.clone());
    }
    Ok(Value::context(context))
}
