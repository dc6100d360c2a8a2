//! Collections that grow with every result: that of a loop, where each item has its place, and that of an ad-hoc sub-process, where
//! one result comes after the other.
//!
//! A short collection is written with every result. To write a long one as often would take the square of its length, so from then
//! on results are kept one by one, and the collection is written when its element completes.

use std::sync::Arc;

use feel::{EvaluationError, Expression, Value, VariableText};
use protocol::{ErrorType, Key, MultiInstanceIntent, MultiInstanceValue, Payload, Text};

use crate::execution::Execution;
use crate::execution::problem::Problem;
use crate::execution::token::Token;
use crate::state::ElementInstance;
use crate::usage;
use crate::variable::document::{self, Entry, Reach};
use crate::variable::own::OwnEntries;
use crate::variable::{expression, mapping};

/// What it is charged to go on to the next result that waits.
const ROW_STEPS: usize = 5;

/// The name of a collection, and what gives a result for it.
pub(super) type Output = (Arc<str>, Expression);

/// Where a result belongs.
#[derive(Clone, Copy)]
pub(super) enum Place {
    /// That of an item, from 1, among so many.
    Item { counter: u32, items: u32 },
    /// Behind all others.
    Last,
}

fn problem(message: impl Into<String>) -> Problem {
    Problem::new(ErrorType::ExtractValueError, message)
}

fn cannot_write(name: &str, error: EvaluationError) -> Problem {
    problem(format!("Failed to write the output collection '{name}': {error}"))
}

/// The collection before there is any result: a null for each of so many items.
pub(super) fn nulls(execution: &Execution<'_>, name: &str, items: usize) -> Result<Text, Problem> {
    let bytes = items.saturating_mul("null,".len()).saturating_add("[]".len());
    execution.used.budget.build(bytes).map_err(|exceeded| cannot_write(name, exceeded.into()))?;
    Ok(Text::from(format!("[{}]", vec!["null"; items].join(","))))
}

/// The result of what lies directly inside of a loop or an ad-hoc sub-process goes into the collection.
pub(super) fn collect(
    execution: &mut Execution<'_>,
    inner: &Token,
    output: &Output,
    place: Place,
) -> Result<(), Problem> {
    let (name, element) = output;
    let holder_key = inner.value().flow_scope_key;
    let Some(holder) = execution.state.element_instance(holder_key) else { return Ok(()) };
    let own: OwnEntries<Text> =
        seen_by(execution, inner.key, (holder_key, &holder), name, element)?.into_iter().collect();
    let value = expression::evaluate(execution, inner.key, &own, element).map_err(problem)?.value;
    if value.depth() >= mapping::DEPTH_MAX {
        return Err(problem(format!(
            "Expected the results in the output collection '{name}' to be nested less than {} levels deep, but this one is as \
             deep. Let the output element give a part of it.",
            mapping::DEPTH_MAX
        )));
    }
    let bytes_max = execution.limits.output_collection_bytes_max;
    // A value can be much shorter than its text: parts of it may be the same in memory.
    let text = execution.used.budget.to_json(&value, bytes_max).map_err(|error| match error {
        EvaluationError::ResultTooLarge(_) => too_large(&holder, bytes_max, "this one alone has more"),
        error => cannot_write(name, error),
    })?;
    let row = execution.state.tables.variables.get(&(holder_key.raw(), name.clone()));
    let collection = row.map_or_else(|| "[]".into(), |row| row.value.clone());
    if let Place::Last = place {
        check_list(&collection)?;
    }
    if is_kept(execution, (holder_key, &holder), place, &collection, text.len()) {
        return keep(execution, inner, &holder, place, text.into());
    }
    let collection = match place {
        Place::Item { counter, .. } => with_item(execution, name, &collection, counter, value)?,
        Place::Last => appended(execution, name, &collection, &text)?,
    };
    set(execution, holder_key, (name.clone(), collection), Reach::Local)
}

fn set(execution: &mut Execution<'_>, scope: Key, entry: Entry, reach: Reach) -> Result<(), Problem> {
    document::set_if_room(execution, scope, vec![entry], reach).map_err(problem)
}

/// Whether a result of so many bytes waits for the end.
fn is_kept(
    execution: &Execution<'_>,
    (holder_key, holder): (Key, &ElementInstance),
    place: Place,
    collection: &str,
    bytes: usize,
) -> bool {
    let limits = execution.limits;
    let is_long = collection.len().saturating_add(bytes) > limits.output_collection_update_bytes_max;
    match place {
        Place::Item { counter, items } => {
            let row = (holder_key.raw(), counter);
            is_long
                || items > limits.output_collection_updates_max
                || execution.state.tables.loop_outputs.contains(&row)
        }
        // Those that come after one that waits wait too.
        Place::Last => {
            is_long || holder.outputs > 0 || has_items(collection, limits.output_collection_updates_max as usize)
        }
    }
}

/// Whether a list, which is a JSON text, has at least so many items. Only short lists are asked.
fn has_items(list: &str, count: usize) -> bool {
    // Each item has a mark before and after it.
    if list.len() <= count.saturating_mul(2) {
        return false;
    }
    let (mut marks, mut depth, mut in_string, mut is_escaped) = (0, 0_usize, false, false);
    for byte in list.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = in_string,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            b',' if depth == 1 => marks += 1,
            _ => {}
        }
    }
    marks + 1 >= count
}

fn check_list(collection: &str) -> Result<(), Problem> {
    let kind = match collection.as_bytes().first() {
        Some(b'[') => return Ok(()),
        Some(b'"') => "STRING",
        Some(b'{') => "OBJECT",
        Some(b't' | b'f') => "BOOLEAN",
        Some(b'n') => "NULL",
        _ => "NUMBER",
    };
    Err(problem(format!("The output collection has the wrong type. Expected ARRAY but was {kind}.")))
}

/// The collection with a result at the place of an item.
fn with_item(
    execution: &Execution<'_>,
    name: &str,
    collection: &str,
    counter: u32,
    value: Value,
) -> Result<Text, Problem> {
    let collection = read(execution, name, collection)?;
    let position = counter as usize - 1;
    let Some(items) = collection.as_list().filter(|items| position < items.len()) else {
        return Err(problem(format!(
            "Expected the output collection '{name}' to be a list with at least {counter} items, but it is a {}. Perhaps several \
             elements write to the same variable; give the collection a name of its own.",
            collection.kind()
        )));
    };
    let mut items = items.to_vec();
    items[position] = value;
    let collection = Value::List(Arc::new(items.into()));
    let text = execution.used.budget.to_json(&collection, usize::MAX);
    Ok(text.map_err(|error| cannot_write(name, error))?.into())
}

/// The items of a collection that is there.
fn read(execution: &Execution<'_>, name: &str, text: &str) -> Result<Value, Problem> {
    // It changes with every result: there is no use in remembering it.
    execution
        .used
        .budget
        .value_of(&VariableText::Borrowed(text))
        .map_err(|error| problem(format!("Failed to read the output collection '{name}': {error}")))
}

/// The collection with a result behind the others.
fn appended(execution: &Execution<'_>, name: &str, collection: &str, text: &str) -> Result<Text, Problem> {
    let bytes = collection.len().saturating_add(text.len()).saturating_add(",".len());
    execution.used.budget.build(bytes).map_err(|exceeded| cannot_write(name, exceeded.into()))?;
    let mut appended = begun(collection);
    append(&mut appended, text);
    appended.push(']');
    Ok(appended.into())
}

/// A list without its end.
fn begun(collection: &str) -> String {
    collection.trim_end().strip_suffix(']').unwrap_or("[").trim_end().to_owned()
}

fn append(begun: &mut String, item: &str) {
    if !begun.ends_with('[') {
        begun.push(',');
    }
    begun.push_str(item);
}

/// A result waits for the end.
fn keep(
    execution: &mut Execution<'_>,
    inner: &Token,
    holder: &ElementInstance,
    place: Place,
    output: Text,
) -> Result<(), Problem> {
    let before = match place {
        Place::Item { counter, .. } => {
            let row = (inner.value().flow_scope_key.raw(), counter);
            execution.state.tables.loop_outputs.get(&row).map_or(0, |before| before.len() as u64)
        }
        Place::Last => 0,
    };
    let bytes = holder.output_bytes.saturating_sub(before).saturating_add(output.len() as u64);
    let bytes_max = execution.limits.output_collection_bytes_max;
    if bytes > bytes_max as u64 {
        return Err(too_large(holder, bytes_max, &format!("with this one there are {bytes}")));
    }
    usage::check_bytes(execution, inner.value().process_instance_key, output.len() as u64).map_err(problem)?;
    let value = MultiInstanceValue { input_collection: Vec::new(), output_element: output };
    let evaluated = Payload::MultiInstance(MultiInstanceIntent::OutputElementEvaluated, Box::new(value));
    execution.emit(inner.key, evaluated);
    Ok(())
}

fn too_large(holder: &ElementInstance, bytes_max: usize, but: &str) -> Problem {
    problem(format!(
        "Expected the results of all instances of '{}' to have at most {bytes_max} bytes together, but {but}. Let the output \
         element give less, such as the id of what is stored elsewhere.",
        holder.value.element_id
    ))
}

/// The collection for an expression in a scope that reads it while results wait for its end.
pub(super) fn seen_by(
    execution: &Execution<'_>,
    scope: Key,
    (holder_key, holder): (Key, &ElementInstance),
    name: &Arc<str>,
    expression: &Expression,
) -> Result<Option<Entry>, Problem> {
    // To join the results of a long loop for each of them would take the square of their number.
    let is_long_loop = holder.items > execution.limits.output_collection_updates_max;
    let is_read = holder.outputs > 0 && !is_long_loop && expression.variables().contains(name);
    // The inner instance may have a variable of this name itself.
    let is_hidden = || execution.state.tables.variables.contains(&(scope.raw(), name.clone()));
    if !is_read || (scope != holder_key && is_hidden()) {
        return Ok(None);
    }
    let joined = joined(execution, holder_key, holder, name)?;
    Ok(Some((name.clone(), joined)))
}

/// The collection goes to the enclosing scope of its element, which completes.
pub(super) fn propagate(execution: &mut Execution<'_>, token: &Token, name: &Arc<str>) -> Result<(), Problem> {
    if token.instance.outputs > 0 {
        let collection = joined(execution, token.key, &token.instance, name)?;
        let element = token.element();
        // It is long: without anybody who could see it, it is not written twice.
        if !element.outputs.is_empty() || !element.end_listeners.is_empty() {
            set(execution, token.key, (name.clone(), collection.clone()), Reach::Local)?;
            // What follows may be an incident: then the results must not be appended once more.
            let written = Payload::MultiInstance(MultiInstanceIntent::OutputCollectionWritten, Box::default());
            execution.emit(token.key, written);
        }
        return set(execution, token.value().flow_scope_key, (name.clone(), collection), Reach::Outwards);
    }
    let row = execution.state.tables.variables.get(&(token.key.raw(), name.clone()));
    match row.map(|row| row.value.clone()) {
        Some(collection) => set(execution, token.value().flow_scope_key, (name.clone(), collection), Reach::Outwards),
        None => Ok(()),
    }
}

/// The collection with the results that wait.
fn joined(
    execution: &Execution<'_>,
    holder_key: Key,
    holder: &ElementInstance,
    name: &Arc<str>,
) -> Result<Text, Problem> {
    let row = execution.state.tables.variables.get(&(holder_key.raw(), name.clone()));
    let collection = row.as_ref().map_or("[]", |row| &row.value);
    match holder.items {
        0 => behind_others(execution, holder_key, holder, name, collection),
        items => at_their_places(execution, holder_key, holder, name, collection, items),
    }
}

/// The results of an ad-hoc sub-process in the order in which they came.
fn behind_others(
    execution: &Execution<'_>,
    holder_key: Key,
    holder: &ElementInstance,
    name: &str,
    collection: &str,
) -> Result<Text, Problem> {
    check_list(collection)?;
    let bytes = usize::try_from(holder.output_bytes).unwrap_or(usize::MAX);
    let bytes = bytes.saturating_add(holder.outputs as usize + collection.len() + "]".len());
    let budget = &execution.used.budget;
    let charged = budget.build(bytes).and_then(|()| budget.spend((holder.outputs as usize).saturating_mul(ROW_STEPS)));
    charged.map_err(|exceeded| cannot_write(name, exceeded.into()))?;
    let mut joined = begun(collection);
    joined.reserve_exact(bytes.saturating_sub(joined.len()));
    for (_, output) in execution.state.tables.loop_outputs.prefix(&holder_key.raw()) {
        append(&mut joined, &output);
    }
    joined.push(']');
    Ok(joined.into())
}

/// The results of a loop in the order of its items, null where there is none: those that waited, and from the collection those
/// that it was written with.
fn at_their_places(
    execution: &Execution<'_>,
    holder_key: Key,
    holder: &ElementInstance,
    name: &str,
    collection: &str,
    items: u32,
) -> Result<Text, Problem> {
    let (tables, budget) = (&execution.state.tables, &execution.used.budget);
    let collection = match items > execution.limits.output_collection_updates_max {
        // There is nothing in it.
        true => Value::Null,
        false => read(execution, name, collection)?,
    };
    let written = collection.as_list().unwrap_or_default();
    let bytes = usize::try_from(holder.output_bytes).unwrap_or(usize::MAX);
    let bytes = bytes.saturating_add(items as usize * "null,".len() + "[]".len());
    let charged = budget.build(bytes).and_then(|()| budget.spend((items as usize).saturating_mul(ROW_STEPS)));
    charged.map_err(|exceeded| cannot_write(name, exceeded.into()))?;
    let mut joined = String::with_capacity(bytes);
    joined.push('[');
    let mut waiting = tables.loop_outputs.prefix(&holder_key.raw()).peekable();
    for counter in 1..=items {
        if counter > 1 {
            joined.push(',');
        }
        let output = waiting.next_if(|((_, of), _)| *of == counter);
        match (output, written.get(counter as usize - 1)) {
            (Some((_, output)), _) => joined.push_str(&output),
            (None, Some(output)) => {
                budget.write_json(output, &mut joined, usize::MAX).map_err(|error| cannot_write(name, error))?;
            }
            (None, None) => joined.push_str("null"),
        }
    }
    joined.push(']');
    Ok(joined.into())
}
