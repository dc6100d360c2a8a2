//! Functions on lists. Positions count from 1, or from -1 at the end.

mod aggregate;
mod order;

use crate::evaluate::{Evaluator, Failure, Outcome};
use crate::functions::builtin::{Builtin, failed, illegal, list_or_arguments};
use crate::value::{LIST_BYTES, List, Value};

const LIST: &[&[&str]] = &[&["list"]];
const LISTS: &[&[&str]] = &[&["lists"]];

pub(super) use aggregate::FUNCTIONS as AGGREGATES;
pub(super) use order::FUNCTIONS as ORDERS;

pub(super) const FUNCTIONS: &[Builtin] = &[
    Builtin::new("list contains", &[&["list", "element"]], contains),
    Builtin::new("append", &[&["list", "items"]], append).variadic(),
    Builtin::new("concatenate", LISTS, concatenate).variadic(),
    Builtin::new("insert before", &[&["list", "position", "newItem"]], insert_before),
    Builtin::new("remove", &[&["list", "position"]], remove),
    Builtin::new("reverse", LIST, reverse),
    Builtin::new("index of", &[&["list", "match"]], index_of),
    Builtin::new("union", LISTS, union).variadic(),
    Builtin::new("distinct values", LIST, distinct_values),
    Builtin::new("duplicate values", LIST, duplicate_values),
    Builtin::new("flatten", LIST, flatten),
    Builtin::new(
        "sublist",
        &[
            &["list", "start position"],
            &["list", "start"],
            &["list", "start position", "length"],
            &["list", "start", "length"],
        ],
        sublist,
    ),
    Builtin::new("partition", &[&["list", "size"]], partition),
    Builtin::new("is empty", LIST, is_empty),
    Builtin::new("list replace", &[&["list", "position", "newItem"], &["list", "match", "newItem"]], list_replace),
];

fn contains(evaluator: &mut Evaluator<'_>, arguments: &[Value]) -> Outcome {
    let Value::List(items) = &arguments[0] else {
        return illegal(evaluator, "list contains", arguments);
    };
    Ok(Value::Boolean(has(evaluator, items, &arguments[1])?))
}

/// Whether one of the items equals the value.
fn has(evaluator: &mut Evaluator<'_>, items: &[Value], value: &Value) -> Result<bool, Failure> {
    evaluator.spend(1 + items.len() / 3)?;
    for item in items {
        if evaluator.equal(item, value)? == Some(true) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn append(evaluator: &mut Evaluator<'_>, arguments: &[Value]) -> Outcome {
    let Value::List(items) = &arguments[0] else {
        return illegal(evaluator, "append", arguments);
    };
    evaluator.allocate_list(items.len() + arguments.len())?;
    Ok(items.iter().chain(&arguments[1..]).cloned().collect())
}

/// All items of the lists; anything else counts as one item. A single list is a list of these.
fn items_of(arguments: &[Value]) -> impl Iterator<Item = &Value> {
    list_or_arguments(arguments).iter().flat_map(|argument| match argument {
        Value::List(items) => &items[..],
        other => std::slice::from_ref(other),
    })
}

fn concatenate(evaluator: &mut Evaluator<'_>, arguments: &[Value]) -> Outcome {
    evaluator.spend(list_or_arguments(arguments).len())?;
    evaluator.allocate_list(items_of(arguments).count())?;
    Ok(items_of(arguments).cloned().collect())
}

/// The index of a position; positions behind the end are `None`, 0 is not a position.
fn index(items: &[Value], position: i64) -> Option<usize> {
    let magnitude = usize::try_from(position.unsigned_abs()).ok()?;
    let index = if position > 0 { magnitude.checked_sub(1) } else { items.len().checked_sub(magnitude) };
    index.filter(|index| *index < items.len())
}

fn zero_position(evaluator: &mut Evaluator<'_>, name: &str) -> Outcome {
    failed(evaluator, name, || "position must be a non-zero number".to_owned())
}

fn insert_before(evaluator: &mut Evaluator<'_>, arguments: &[Value]) -> Outcome {
    let (Value::List(items), Some(position)) = (&arguments[0], arguments[1].as_whole()) else {
        return illegal(evaluator, "insert before", arguments);
    };
    if position == 0 {
        return zero_position(evaluator, "insert before");
    }
    evaluator.allocate_list(items.len() + 1)?;
    let at = index(items, position).unwrap_or(if position > 0 { items.len() } else { 0 });
    let mut changed = items.to_vec();
    changed.insert(at, arguments[2].clone());
    Ok(Value::list(changed))
}

fn remove(evaluator: &mut Evaluator<'_>, arguments: &[Value]) -> Outcome {
    let (Value::List(items), Some(position)) = (&arguments[0], arguments[1].as_whole()) else {
        return illegal(evaluator, "remove", arguments);
    };
    if position == 0 {
        return zero_position(evaluator, "remove");
    }
    evaluator.allocate_list(items.len())?;
    let mut changed = items.to_vec();
    if let Some(index) = index(items, position) {
        changed.remove(index);
    }
    Ok(Value::list(changed))
}

fn reverse(evaluator: &mut Evaluator<'_>, arguments: &[Value]) -> Outcome {
    let Value::List(items) = &arguments[0] else {
        return illegal(evaluator, "reverse", arguments);
    };
    evaluator.allocate_list(items.len())?;
    Ok(items.iter().rev().cloned().collect())
}

fn index_of(evaluator: &mut Evaluator<'_>, arguments: &[Value]) -> Outcome {
    let Value::List(items) = &arguments[0] else {
        return illegal(evaluator, "index of", arguments);
    };
    evaluator.spend(items.len())?;
    let mut positions = Vec::new();
    for (position, item) in (1i64..).zip(items.iter()) {
        if evaluator.equal(item, &arguments[1])? == Some(true) {
            evaluator.lengthen_list(positions.len())?;
            positions.push(Value::integer(position));
        }
    }
    Ok(Value::list(positions))
}

/// The first of equal items.
fn distinct<'a>(evaluator: &mut Evaluator<'_>, items: impl Iterator<Item = &'a Value>) -> Result<Vec<Value>, Failure> {
    let mut kept: Vec<Value> = Vec::new();
    for item in items {
        if !has(evaluator, &kept, item)? {
            evaluator.lengthen_list(kept.len())?;
            kept.push(item.clone());
        }
    }
    Ok(kept)
}

fn union(evaluator: &mut Evaluator<'_>, arguments: &[Value]) -> Outcome {
    distinct(evaluator, items_of(arguments)).map(Value::list)
}

fn distinct_values(evaluator: &mut Evaluator<'_>, arguments: &[Value]) -> Outcome {
    let Value::List(items) = &arguments[0] else {
        return illegal(evaluator, "distinct values", arguments);
    };
    distinct(evaluator, items.iter()).map(Value::list)
}

fn duplicate_values(evaluator: &mut Evaluator<'_>, arguments: &[Value]) -> Outcome {
    let Value::List(items) = &arguments[0] else {
        return illegal(evaluator, "duplicate values", arguments);
    };
    let mut repeated: Vec<Value> = Vec::new();
    for (position, item) in items.iter().enumerate() {
        if has(evaluator, &items[position + 1..], item)? && !has(evaluator, &repeated, item)? {
            evaluator.lengthen_list(repeated.len())?;
            repeated.push(item.clone());
        }
    }
    Ok(Value::list(repeated))
}

fn flatten(evaluator: &mut Evaluator<'_>, arguments: &[Value]) -> Outcome {
    let Value::List(items) = &arguments[0] else {
        return illegal(evaluator, "flatten", arguments);
    };
    let mut flat = Vec::new();
    // Lists that are not finished yet, each with the position to go on at.
    let mut open: Vec<(&List, usize)> = vec![(items, 0)];
    while let Some((list, position)) = open.pop() {
        let Some(item) = list.get(position) else {
            continue;
        };
        evaluator.spend(1)?;
        open.push((list, position + 1));
        match item {
            Value::List(inner) => open.push((inner, 0)),
            item => {
                evaluator.lengthen_list(flat.len())?;
                flat.push(item.clone());
            }
        }
    }
    Ok(Value::list(flat))
}

fn sublist(evaluator: &mut Evaluator<'_>, arguments: &[Value]) -> Outcome {
    let (Value::List(items), Some(start)) = (&arguments[0], arguments[1].as_whole()) else {
        return illegal(evaluator, "sublist", arguments);
    };
    let length = match arguments.get(2) {
        None => usize::MAX,
        Some(length) => match length.as_whole() {
            Some(length) => usize::try_from(length).unwrap_or(0),
            None => return illegal(evaluator, "sublist", arguments),
        },
    };
    if arguments[1].as_i64() == Some(0) {
        return failed(evaluator, "sublist", || "start position must be a non-zero number".to_owned());
    }
    // Positions before the first item count for the length.
    let before = usize::try_from(start.unsigned_abs()).unwrap_or(usize::MAX).saturating_sub(items.len());
    let length = if start < 0 { length.saturating_sub(before) } else { length };
    // A fraction of a position is behind the last item.
    let from = index(items, start).unwrap_or(if start >= 0 { items.len() } else { 0 });
    let part = &items[from..];
    let part = &part[..length.min(part.len())];
    evaluator.allocate_list(part.len())?;
    Ok(Value::list(part.to_vec()))
}

fn partition(evaluator: &mut Evaluator<'_>, arguments: &[Value]) -> Outcome {
    let (Value::List(items), Some(size)) = (&arguments[0], arguments[1].as_whole()) else {
        return illegal(evaluator, "partition", arguments);
    };
    let Some(size) = usize::try_from(size).ok().filter(|size| *size > 0) else {
        return failed(evaluator, "partition", || format!("'size' should be greater than zero but was '{size}'"));
    };
    evaluator.allocate_list(items.len())?;
    evaluator.allocate_list(items.len().div_ceil(size))?;
    evaluator.allocate(items.len().div_ceil(size).saturating_mul(LIST_BYTES))?;
    Ok(items.chunks(size).map(|chunk| Value::list(chunk.to_vec())).collect())
}

fn is_empty(evaluator: &mut Evaluator<'_>, arguments: &[Value]) -> Outcome {
    match &arguments[0] {
        Value::List(items) => Ok(Value::Boolean(items.is_empty())),
        _ => illegal(evaluator, "is empty", arguments),
    }
}

/// Replaces the item at a position, or those for which a function of item and new item holds.
fn list_replace(evaluator: &mut Evaluator<'_>, arguments: &[Value]) -> Outcome {
    let items = match &arguments[0] {
        Value::List(items) => &items[..],
        Value::Null => return illegal(evaluator, "list replace", arguments),
        _ => &arguments[..1],
    };
    evaluator.allocate_list(items.len())?;
    let mut changed = items.to_vec();
    match &arguments[1] {
        Value::Function(matches) => {
            for item in &mut changed {
                match evaluator.apply(matches, &[item.clone(), arguments[2].clone()])? {
                    Value::Boolean(true) => *item = arguments[2].clone(),
                    Value::Boolean(false) => {}
                    _ => return illegal(evaluator, "list replace", arguments),
                }
            }
        }
        position => match position.as_whole().and_then(|position| index(items, position)) {
            Some(index) => changed[index] = arguments[2].clone(),
            None => return illegal(evaluator, "list replace", arguments),
        },
    }
    Ok(Value::list(changed))
}
