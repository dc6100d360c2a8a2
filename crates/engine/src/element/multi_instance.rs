//! Multi-instance: an activity runs once for each item of a list, sequentially or in parallel.
//!
//! The body holds the loop. Its items are evaluated once and kept in the state, each until its inner instance ends.

use std::sync::Arc;

use bpmn::model::{Behavior, MultiInstance};
use feel::{EvaluationError, Expression, Value, VariableText};
use protocol::{ErrorType, Key, MultiInstanceIntent, MultiInstanceValue, Payload, ProcessInstanceValue, Text};

use super::activate::{Stop, activated};
use super::{Step, Token, value_of};
use crate::event;
use crate::execution::{Execution, Outcome};
use crate::incident::Problem;
use crate::state::{ElementInstance, Lifecycle, item_bytes};
use crate::usage;
use crate::variable::document::{self, Entry, Reach};
use crate::variable::own::OwnEntries;
use crate::variable::{expression, mapping};

/// The variable with the number of an inner instance among its siblings, from 1.
const LOOP_COUNTER: &str = "loopCounter";

impl Token {
    /// Whether this is one of the instances that a multi-instance body runs.
    pub fn is_inner_instance(&self) -> bool {
        self.instance.is_inner_instance()
    }
}

/// The body of an inner instance.
fn body_of(token: &Token) -> Option<&MultiInstance> {
    let scope = token.element().flow_scope?;
    match &token.process.element(scope).behavior {
        Behavior::MultiInstanceBody(body) => Some(body),
        _ => None,
    }
}

/// The items are evaluated, and the first inner instance begins, or all.
pub(super) fn begin(execution: &mut Execution<'_>, token: &Token, body: &MultiInstance) -> Result<(), Stop> {
    let items = expression::list(execution, token.key, &body.input_collection)?;
    let count = items.len();
    check_items(execution, token, &items)?;
    let nulls = match &body.output {
        Some((name, _)) => Some(nulls(execution, name, count)?),
        None => None,
    };
    let value = MultiInstanceValue { input_collection: items, output_element: Text::default() };
    let evaluated = Payload::MultiInstance(MultiInstanceIntent::InputCollectionEvaluated, Box::new(value));
    execution.emit(token.key, evaluated);
    event::subscribe(execution, token)?;
    activated(execution, token);
    if let (Some((name, _)), Some(nulls)) = (&body.output, nulls) {
        set(execution, token.key, vec![(name.clone(), nulls)], Reach::Local)?;
    }
    if count == 0 {
        execution.steps.push_back(Step::Complete { key: token.key });
    } else if body.is_sequential {
        begin_inner_instance(execution, token, body);
    } else {
        execution.steps.push_back(Step::ActivateBatch { of: token.key });
    }
    Ok(())
}

/// Each item is kept, and becomes an inner instance.
fn check_items(execution: &Execution<'_>, token: &Token, items: &[Text]) -> Result<(), Problem> {
    let process_instance = token.value().process_instance_key;
    // After an incident, some are there already.
    let more = (items.len() as u64).saturating_sub(u64::from(token.instance.items));
    usage::check_living(execution, process_instance, more, ErrorType::ExtractValueError)?;
    let bytes = items.iter().map(|item| item_bytes(item)).sum();
    usage::check_bytes(execution, process_instance, bytes).map_err(no_room)
}

fn no_room(message: String) -> Problem {
    Problem::new(ErrorType::ExtractValueError, message)
}

fn set(execution: &mut Execution<'_>, scope: Key, entries: Vec<Entry>, reach: Reach) -> Result<(), Problem> {
    document::set_if_room(execution, scope, entries, reach).map_err(no_room)
}

/// The output collection of a loop that has no result yet.
fn nulls(execution: &Execution<'_>, name: &str, count: usize) -> Result<Text, Problem> {
    let bytes = count.saturating_mul("null,".len()).saturating_add("[]".len());
    execution.used.budget.build(bytes).map_err(|exceeded| cannot_write(name, exceeded.into()))?;
    Ok(Text::from(format!("[{}]", vec!["null"; count].join(","))))
}

fn cannot_write(name: &str, error: EvaluationError) -> Problem {
    Problem::new(ErrorType::ExtractValueError, format!("Failed to write the output collection '{name}': {error}"))
}

/// The items of an output collection that is there.
fn read_output(execution: &Execution<'_>, name: &str, text: &str) -> Result<Value, Problem> {
    // It changes with every result: there is no use in remembering it.
    execution.used.budget.value_of(&VariableText::Borrowed(text)).map_err(|error| {
        Problem::new(ErrorType::ExtractValueError, format!("Failed to read the output collection '{name}': {error}"))
    })
}

fn begin_inner_instance(execution: &mut Execution<'_>, token: &Token, body: &MultiInstance) {
    let value: ProcessInstanceValue = value_of(&token.process, body.inner, token.key, token.value(), true);
    execution.steps.push_back(Step::Activate { key: None, value: Arc::new(value) });
}

/// The next inner instance of a parallel body begins, and after it the others, one step each, so that a long list does not
/// hold the partition.
pub(super) fn activate_inner_instances(execution: &mut Execution<'_>, key: Key) -> Outcome {
    let Some(token) = Token::find(execution, key)? else { return Ok(()) };
    let Behavior::MultiInstanceBody(body) = &token.element().behavior else { return Ok(()) };
    if token.instance.lifecycle != Lifecycle::Activated {
        return Ok(());
    }
    let missing = token.instance.items.saturating_sub(token.instance.loop_counter);
    if missing > 0 {
        begin_inner_instance(execution, &token, body);
    }
    if missing > 1 {
        execution.steps.push_back(Step::ActivateBatch { of: key });
    }
    Ok(())
}

/// The item and the loop counter as variables of an inner instance.
pub(super) fn set_loop_variables(execution: &mut Execution<'_>, token: &Token) -> Result<(), Problem> {
    let Some(body) = body_of(token) else { return Ok(()) };
    let counter = token.instance.loop_counter;
    let scope = token.value().flow_scope_key;
    let item = execution.state.tables.loop_items.get(&(scope.raw(), counter)).map(|item| Text::from(&*item));
    let item = item.ok_or_else(|| {
        Problem::new(
            ErrorType::ExtractValueError,
            format!(
                "Expected the input collection of '{}' to have an item {counter}, but it has less",
                token.element().id
            ),
        )
    })?;
    let mut entries: Vec<Entry> = Vec::with_capacity(3);
    if let Some(name) = &body.input_element {
        entries.push((name.clone(), item));
    }
    // The variable that the result is read from must not be found further out.
    if let Some(name) = body.output.as_ref().and_then(|(_, element)| variable_name(element))
        && Some(name) != body.input_element.as_ref()
        && &**name != LOOP_COUNTER
    {
        entries.push((name.clone(), "null".into()));
    }
    entries.push((LOOP_COUNTER.into(), counter.to_string().into()));
    set(execution, token.key, entries, Reach::Local)
}

/// The name, when an expression is nothing but a variable.
pub(super) fn variable_name(expression: &Expression) -> Option<&Arc<str>> {
    match expression.variables() {
        [name] if expression.text().trim() == &**name => Some(name),
        _ => None,
    }
}

/// The result of an inner instance goes into the output collection. Returns whether the completion condition holds.
pub(super) fn inner_completing(execution: &mut Execution<'_>, token: &Token) -> Result<bool, Problem> {
    let Some(body) = body_of(token) else { return Ok(false) };
    if let Some((name, element)) = &body.output {
        collect_output(execution, token, name, element)?;
    }
    let Some(condition) = &body.completion_condition else { return Ok(false) };
    let Some(scope) = execution.state.element_instance(token.value().flow_scope_key) else { return Ok(false) };
    expression::boolean_with(execution, token.key, &counts(&scope), condition)
}

/// The counts that a completion condition can use, with the current inner instance counted as completed.
fn counts(body: &ElementInstance) -> OwnEntries<Text> {
    let count = |name: &str, count: u32| (Arc::from(name), Text::from(count.to_string()));
    let counts: [Entry; 4] = [
        count("numberOfInstances", body.loop_counter),
        count("numberOfActiveInstances", body.children.saturating_sub(1)),
        count("numberOfCompletedInstances", body.completed_children + 1),
        count("numberOfTerminatedInstances", body.terminated_children),
    ];
    counts.into_iter().collect()
}

fn collect_output(
    execution: &mut Execution<'_>,
    token: &Token,
    name: &Arc<str>,
    element: &Expression,
) -> Result<(), Problem> {
    let problem = |message| Problem::new(ErrorType::ExtractValueError, message);
    let value = expression::evaluate(execution, token.key, expression::NOTHING, element).map_err(problem)?.value;
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
        EvaluationError::ResultTooLarge(_) => too_large(token, bytes_max, "this one alone has more"),
        error => cannot_write(name, error),
    })?;
    let text = Text::from(text);
    let key = token.value().flow_scope_key;
    let Some(body) = execution.state.element_instance(key) else { return Ok(()) };
    let output_of = (key.raw(), token.instance.loop_counter);
    // To write a long list with every result would take the square of its length.
    let row = execution.state.tables.variables.get(&(key.raw(), name.clone()));
    let bytes = row.as_ref().map_or(0, |row| row.value.len()).saturating_add(text.len());
    if body.items > execution.limits.output_collection_updates_max
        || bytes > execution.limits.output_collection_update_bytes_max
        || execution.state.tables.loop_outputs.contains(&output_of)
    {
        return keep_output(execution, token, &body, text);
    }
    let collection = match row {
        Some(row) => read_output(execution, name, &row.value)?,
        None => Value::Null,
    };
    let position = token.instance.loop_counter as usize - 1;
    let Some(items) = collection.as_list().filter(|items| position < items.len()) else {
        return Err(problem(format!(
            "Expected the output collection '{name}' to be a list with at least {} items, but it is a {}. Perhaps several \
             elements write to the same variable; give the collection a name of its own.",
            token.instance.loop_counter,
            collection.kind()
        )));
    };
    let mut items = items.to_vec();
    items[position] = value;
    let collection = Value::List(Arc::new(items.into()));
    let text = execution.used.budget.to_json(&collection, usize::MAX).map_err(|error| cannot_write(name, error))?;
    set(execution, key, vec![(name.clone(), text.into())], Reach::Local)
}

/// A result waits for the end of the loop.
fn keep_output(
    execution: &mut Execution<'_>,
    token: &Token,
    body: &ElementInstance,
    output: Text,
) -> Result<(), Problem> {
    let output_of = (token.value().flow_scope_key.raw(), token.instance.loop_counter);
    let before = execution.state.tables.loop_outputs.get(&output_of).map_or(0, |before| before.len() as u64);
    let bytes = body.output_bytes.saturating_sub(before).saturating_add(output.len() as u64);
    let bytes_max = execution.limits.output_collection_bytes_max;
    if bytes > bytes_max as u64 {
        return Err(too_large(token, bytes_max, &format!("with this one there are {bytes}")));
    }
    usage::check_bytes(execution, token.value().process_instance_key, output.len() as u64).map_err(no_room)?;
    let value = MultiInstanceValue { input_collection: Vec::new(), output_element: output };
    let evaluated = Payload::MultiInstance(MultiInstanceIntent::OutputElementEvaluated, Box::new(value));
    execution.emit(token.key, evaluated);
    Ok(())
}

fn too_large(token: &Token, bytes_max: usize, but: &str) -> Problem {
    Problem::new(
        ErrorType::ExtractValueError,
        format!(
            "Expected the results of all instances of '{}' to have at most {bytes_max} bytes together, but {but}. Let the output \
             element give less, such as the id of what is stored elsewhere.",
            token.element().id
        ),
    )
}

/// After COMPLETED of an inner instance: the next one begins, or the body completes.
pub(super) fn inner_completed(execution: &mut Execution<'_>, inner: &Token, ends_loop: bool) -> Outcome {
    let Some(token) = Token::find(execution, inner.value().flow_scope_key)? else { return Ok(()) };
    let Behavior::MultiInstanceBody(body) = &token.element().behavior else { return Ok(()) };
    let instance = &token.instance;
    let is_done =
        instance.children == 0 && instance.completed_children + instance.terminated_children == instance.items;
    if ends_loop && instance.children > 0 {
        execution.steps.push_back(Step::TerminateChildren { scope: token.key, after: Key::NONE, up_to: None });
    } else if ends_loop || is_done {
        execution.steps.push_back(Step::Complete { key: token.key });
    } else if body.is_sequential && instance.loop_counter < instance.items {
        begin_inner_instance(execution, &token, body);
    }
    Ok(())
}

/// The last living inner instance was terminated although the body continues: by a completion condition or a
/// modification.
pub(super) fn inner_terminated(execution: &mut Execution<'_>, token: &Token) {
    execution.steps.push_back(Step::Complete { key: token.key });
}

/// The output collection goes to the enclosing scope of the body.
pub(super) fn propagate_output(
    execution: &mut Execution<'_>,
    token: &Token,
    body: &MultiInstance,
) -> Result<(), Problem> {
    let Some((name, _)) = &body.output else { return Ok(()) };
    let is_written_now = token.instance.items > execution.limits.output_collection_updates_max;
    if is_written_now || token.instance.output_bytes > 0 {
        let collection = joined_outputs(execution, token, name, is_written_now)?;
        set(execution, token.key, vec![(name.clone(), collection)], Reach::Local)?;
    }
    let collection = crate::variable::find(&execution.state, token.key, name).map(|row| row.value.clone());
    if let Some(collection) = collection {
        set(execution, token.value().flow_scope_key, vec![(name.clone(), collection)], Reach::Outwards)?;
    }
    Ok(())
}

/// The results of a loop in the order of its items, null where there is none: those that waited for its end, and from the
/// collection those that it was updated with.
fn joined_outputs(
    execution: &Execution<'_>,
    token: &Token,
    name: &Arc<str>,
    is_written_now: bool,
) -> Result<Text, Problem> {
    let (tables, budget) = (&execution.state.tables, &execution.used.budget);
    let row = if is_written_now { None } else { tables.variables.get(&(token.key.raw(), name.clone())) };
    let collection = match row {
        Some(row) => read_output(execution, name, &row.value)?,
        None => Value::Null,
    };
    let updated = collection.as_list().unwrap_or_default();
    let bytes = usize::try_from(token.instance.output_bytes).unwrap_or(usize::MAX);
    let bytes = bytes.saturating_add(token.instance.items as usize * "null,".len() + "[]".len());
    budget.build(bytes).map_err(|exceeded| cannot_write(name, exceeded.into()))?;
    let mut joined = String::with_capacity(bytes);
    joined.push('[');
    for counter in 1..=token.instance.items {
        if counter > 1 {
            joined.push(',');
        }
        match (tables.loop_outputs.get(&(token.key.raw(), counter)), updated.get(counter as usize - 1)) {
            (Some(output), _) => joined.push_str(&output),
            (None, Some(output)) => {
                budget.write_json(output, &mut joined, usize::MAX).map_err(|error| cannot_write(name, error))?;
            }
            (None, None) => joined.push_str("null"),
        }
    }
    joined.push(']');
    Ok(joined.into())
}
