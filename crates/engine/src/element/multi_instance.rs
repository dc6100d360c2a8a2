//! Multi-instance: an activity runs once for each item of a list, sequentially or in parallel.
//!
//! The body holds the loop. Its items are evaluated once and kept in the state, each until its inner instance ends.

use std::sync::Arc;

use bpmn::model::{Behavior, MultiInstance};
use feel::Expression;
use protocol::{ErrorType, Key, MultiInstanceIntent, MultiInstanceValue, Payload, ProcessInstanceValue, Text};

use super::output_collection::{self, Place};
use crate::element::stop::Stop;
use crate::event;
use crate::execution::problem::Problem;
use crate::execution::step::Step;
use crate::execution::token::{Token, activated, value_of};
use crate::execution::{Execution, Outcome};
use crate::state::{ElementInstance, Lifecycle, item_bytes};
use crate::usage;
use crate::variable::document::{self, Entry, Reach};
use crate::variable::expression;
use crate::variable::own::OwnEntries;

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
pub(crate) fn begin(execution: &mut Execution<'_>, token: &Token, body: &MultiInstance) -> Result<(), Stop> {
    let items = expression::list(execution, token.key, &body.input_collection)?;
    let count = items.len();
    check_items(execution, token, &items)?;
    let nulls = match &body.output {
        Some((name, _)) => Some(output_collection::nulls(execution, name, count)?),
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

fn begin_inner_instance(execution: &mut Execution<'_>, token: &Token, body: &MultiInstance) {
    let value: ProcessInstanceValue = value_of(&token.process, body.inner, token.key, token.value(), true);
    execution.steps.push_back(Step::Activate { key: None, value: Arc::new(value) });
}

/// The next inner instance of a parallel body begins, and after it the others, one step each, so that a long list does not
/// hold the partition.
pub(crate) fn activate_inner_instances(execution: &mut Execution<'_>, key: Key) -> Outcome {
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
pub(crate) fn set_loop_variables(execution: &mut Execution<'_>, token: &Token) -> Result<(), Problem> {
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
pub(crate) fn variable_name(expression: &Expression) -> Option<&Arc<str>> {
    match expression.variables() {
        [name] if expression.text().trim() == &**name => Some(name),
        _ => None,
    }
}

/// The result of an inner instance goes into the output collection. Returns whether the completion condition holds.
pub(crate) fn inner_completing(execution: &mut Execution<'_>, token: &Token) -> Result<bool, Problem> {
    let Some(body) = body_of(token) else { return Ok(false) };
    let scope = token.value().flow_scope_key;
    let Some(holder) = execution.state.element_instance(scope) else { return Ok(false) };
    if let Some(output) = &body.output {
        let place = Place::Item { counter: token.instance.loop_counter, items: holder.items };
        output_collection::collect(execution, token, output, place)?;
    }
    let Some(condition) = &body.completion_condition else { return Ok(false) };
    let Some(holder) = execution.state.element_instance(scope) else { return Ok(false) };
    let mut own = counts(&holder);
    if let Some((name, _)) = &body.output
        && let Some((name, collection)) =
            output_collection::seen_by(execution, token.key, (scope, &holder), name, condition)?
    {
        own.push(name, collection);
    }
    expression::boolean_with(execution, token.key, &own, condition)
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

/// After COMPLETED of an inner instance: the next one begins, or the body completes.
pub(crate) fn inner_completed(execution: &mut Execution<'_>, inner: &Token, ends_loop: bool) -> Outcome {
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
pub(crate) fn inner_terminated(execution: &mut Execution<'_>, token: &Token) {
    execution.steps.push_back(Step::Complete { key: token.key });
}
