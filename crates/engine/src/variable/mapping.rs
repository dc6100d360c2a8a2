//! Input and output mappings.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;

use bpmn::MAPPING_TARGET_NAMES_MAX;
use bpmn::model::{Behavior, Mapping, StaticOrExpression, Trigger};
use feel::{Context, EvaluationError, Value, VariableText};
use protocol::{ErrorType, Key, Text};

use super::document::{self, Entry, Reach};
use super::expression;
use super::own::OwnEntries;
use crate::execution::Execution;
use crate::execution::problem::Problem;
use crate::execution::token::Token;

/// Bytes of a result that are split into variables in a step.
const BYTES_PER_STEP: u64 = 8;

/// Input mappings make variables in the element's own scope.
pub(crate) fn apply_inputs(execution: &mut Execution<'_>, token: &Token) -> Result<(), Problem> {
    let inputs = &token.element().inputs;
    if inputs.is_empty() {
        return Ok(());
    }
    let entries = evaluate(execution, token.key, inputs, Merge::Nothing)?;
    set(execution, token.key, entries, Reach::Local)
}

/// Without output mappings the whole result of the work goes outwards; with them only what they name does, and the result
/// itself stays in the element's own scope.
pub(crate) fn apply_outputs(execution: &mut Execution<'_>, token: &Token) -> Result<(), Problem> {
    let outputs = &token.element().outputs;
    let result = match &token.instance.result {
        Some(result) => {
            execution.used.count_reads(result.len() as u64 / BYTES_PER_STEP);
            document::split(result, execution.limits.name_bytes_max)
                .map_err(|rejection| Problem::new(ErrorType::IoMappingError, rejection.reason.to_string()))?
        }
        None => Vec::new(),
    };
    if !outputs.is_empty() {
        set(execution, token.key, result, Reach::Local)?;
        let entries = evaluate(execution, token.key, outputs, Merge::Existing)?;
        // The outputs of an inner instance stay in it, for the output element of the loop to read.
        let scope = if token.is_inner_instance() { token.key } else { token.value().flow_scope_key };
        set(execution, scope, entries, Reach::Outwards)?;
    } else if !result.is_empty() {
        set(execution, token.key, result, Reach::Outwards)?;
    } else if token.instance.has_variables && passes_local_variables_on(token) {
        let entries = document::entries_local(&execution.state, token.key);
        let scope = token.value().flow_scope_key;
        set(execution, scope, entries, Reach::Outwards)?;
    }
    Ok(())
}

fn set(execution: &mut Execution<'_>, scope: Key, entries: Vec<Entry>, reach: Reach) -> Result<(), Problem> {
    let set = document::set_if_room(execution, scope, entries, reach);
    set.map_err(|message| Problem::new(ErrorType::IoMappingError, message))
}

/// Whether the variables that an event brought go outwards although no mapping says so. Those of an error do not.
fn passes_local_variables_on(token: &Token) -> bool {
    let element = token.element();
    match &element.behavior {
        Behavior::NoneStartEvent | Behavior::StartEvent(_) => true,
        Behavior::BoundaryEvent { event, .. } => !matches!(event.trigger, Trigger::Error { .. }),
        Behavior::IntermediateCatchEvent(_) => element.incoming.first().is_some_and(|flow| {
            let source = token.process.element(token.process.flow(*flow).source);
            matches!(source.behavior, Behavior::EventBasedGateway { .. })
        }),
        _ => false,
    }
}

/// What a nested target (`a.b`) starts from.
#[derive(Clone, Copy, PartialEq)]
enum Merge {
    /// A new context.
    Nothing,
    /// The context that the variable holds, so that its other entries stay.
    Existing,
}

/// Mappings by the contexts that their targets make: `a.b` and `a.c` belong to one entry `a`, where the first of them stands.
#[derive(Default)]
struct Entries<'a> {
    entries: Vec<(&'a Arc<str>, Target<'a>)>,
    /// Where the entry of each name is.
    places: BTreeMap<&'a str, usize>,
}

enum Target<'a> {
    Source(&'a StaticOrExpression),
    Context(Entries<'a>),
}

impl<'a> Entries<'a> {
    fn of(mappings: &'a [Mapping]) -> Self {
        let mut entries = Entries::default();
        for mapping in mappings {
            entries.add(&mapping.target, &mapping.source);
        }
        entries
    }

    /// The recursion is as deep as targets have names; see [`check_targets`].
    fn add(&mut self, target: &'a [Arc<str>], source: &'a StaticOrExpression) {
        let Some((name, rest)) = target.split_first() else { return };
        let next = self.entries.len();
        let position = *self.places.entry(name).or_insert(next);
        if position == next {
            self.entries.push((name, Target::Source(source)));
        }
        let place = &mut self.entries[position].1;
        if rest.is_empty() {
            *place = Target::Source(source);
            return;
        }
        if let Target::Source(_) = place {
            *place = Target::Context(Entries::default());
        }
        if let Target::Context(inner) = place {
            inner.add(rest, source);
        }
    }
}

/// A deployment with such a target is refused, but one of an earlier version may be there.
fn check_targets(mappings: &[Mapping]) -> Result<(), Problem> {
    let Some(mapping) = mappings.iter().find(|mapping| mapping.target.len() > MAPPING_TARGET_NAMES_MAX) else {
        return Ok(());
    };
    Err(Problem::new(
        ErrorType::IoMappingError,
        format!(
            "Expected the targets of mappings to have at most {MAPPING_TARGET_NAMES_MAX} names, but one has {}, beginning with \
             '{}'. Deploy the process with a shorter one, and migrate the instance to it.",
            mapping.target.len(),
            mapping.target[0]
        ),
    ))
}

/// Mappings are evaluated in order; each sees the entries before it in its own context and in the enclosing ones. It sees
/// them as values: a duration is still one, although the variable that is made of it is a string.
fn evaluate(execution: &Execution<'_>, scope: Key, mappings: &[Mapping], merge: Merge) -> Result<Vec<Entry>, Problem> {
    check_targets(mappings)?;
    let (mut visible, mut made) = (OwnEntries::new(), Vec::new());
    let evaluation = Evaluation { execution, scope, bytes: Cell::new(0) };
    for (name, target) in &Entries::of(mappings).entries {
        let row = match target {
            Target::Context(_) if merge == Merge::Existing => super::find(&execution.state, scope, name),
            _ => None,
        };
        let existing = match row {
            Some(row) => Some(evaluation.existing(&row.value)?),
            None => None,
        };
        let value = evaluation.value(target, existing, &mut visible)?;
        // As on the reference: a function is there for the mappings after it, but is no variable.
        if !matches!(value, Value::Function(_)) {
            made.push(((*name).clone(), evaluation.text(&value)?));
        }
        visible.push((*name).clone(), value);
    }
    Ok(made)
}

/// How deeply values may be nested: as deeply as JSON, so that what is stored can be read.
pub(crate) const DEPTH_MAX: u32 = feel::json::DEPTH_LIMIT as u32;

fn too_deep(name: &str) -> Problem {
    Problem::new(
        ErrorType::IoMappingError,
        format!(
            "Expected the mappings to nest values at most {DEPTH_MAX} levels deep, but with '{name}' inside another context \
             there are more. Map to a variable further out."
        ),
    )
}

struct Evaluation<'a> {
    execution: &'a Execution<'a>,
    scope: Key,
    /// Bytes of all texts so far.
    bytes: Cell<usize>,
}

impl Evaluation<'_> {
    /// The value that a variable has.
    fn existing(&self, text: &Text) -> Result<Value, Problem> {
        let read = self.execution.used.budget.value_of(&VariableText::Shared(text.shared().clone()));
        read.map_err(|error| Problem::new(ErrorType::IoMappingError, format!("Failed to read a variable: {error}")))
    }

    /// The JSON text of a value, as long as all of them together are not too long.
    fn text(&self, value: &Value) -> Result<Text, Problem> {
        let bytes_max = self.execution.limits.mapping_bytes_max;
        let text = self.execution.used.budget.to_json(value, bytes_max - self.bytes.get()).map_err(|error| {
            let message = match error {
                EvaluationError::ResultTooLarge(_) => format!(
                    "Expected the mappings to give at most {bytes_max} bytes together, but they give more. Map less."
                ),
                error => format!("Failed to write what the mappings give: {error}"),
            };
            Problem::new(ErrorType::IoMappingError, message)
        })?;
        self.bytes.set(self.bytes.get() + text.len());
        Ok(Text::from(text))
    }

    /// The value of a target. `existing` is what a context starts from; what is no context is replaced by one.
    fn value(
        &self,
        target: &Target<'_>,
        existing: Option<Value>,
        visible: &mut OwnEntries<Value>,
    ) -> Result<Value, Problem> {
        let entries = match target {
            Target::Source(StaticOrExpression::Static(text)) => return Ok(Value::string(text)),
            Target::Source(StaticOrExpression::Expression(source)) => {
                return expression::evaluate(self.execution, self.scope, visible, source)
                    .map(|evaluation| evaluation.value)
                    .map_err(|reason| Problem::new(ErrorType::IoMappingError, reason));
            }
            Target::Context(entries) => entries,
        };
        let mut context = match existing {
            Some(Value::Context(existing)) => (*existing).clone(),
            _ => Context::new(),
        };
        let before = visible.len();
        for (name, target) in &entries.entries {
            let inner = context.get(name).cloned();
            let value = self.value(target, inner, visible)?;
            if value.depth() >= DEPTH_MAX {
                return Err(too_deep(name));
            }
            visible.push((*name).clone(), value.clone());
            context.put((*name).clone(), value);
        }
        visible.truncate(before);
        Ok(Value::Context(Arc::new(context)))
    }
}
