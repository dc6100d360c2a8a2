//! Input and output mappings.

use std::sync::Arc;

use bpmn::model::{Behavior, Mapping, StaticOrExpression, Trigger};
use feel::{Context, Value};
use protocol::{ErrorType, Key};

use super::document::{self, Entry};
use super::expression;
use crate::element::Token;
use crate::execution::Execution;
use crate::incident::Problem;

/// Input mappings make variables in the element's own scope.
pub(crate) fn apply_inputs(execution: &mut Execution<'_>, token: &Token) -> Result<(), Problem> {
    let inputs = &token.element().inputs;
    if inputs.is_empty() {
        return Ok(());
    }
    let entries = evaluate(execution, token.key, inputs, Merge::Nothing)?;
    document::set_local(execution, token.key, entries);
    Ok(())
}

/// Without output mappings the whole result of the work goes outwards; with them only what they name does, and the result
/// itself stays in the element's own scope.
pub(crate) fn apply_outputs(execution: &mut Execution<'_>, token: &Token) -> Result<(), Problem> {
    let outputs = &token.element().outputs;
    let result = match &token.instance.result {
        Some(result) => document::split(result, execution.limits.name_bytes_max)
            .map_err(|rejection| Problem::new(ErrorType::IoMappingError, rejection.reason.to_string()))?,
        None => Vec::new(),
    };
    if !outputs.is_empty() {
        document::set_local(execution, token.key, result);
        let entries = evaluate(execution, token.key, outputs, Merge::Existing)?;
        // What an inner instance maps out stays in it, for the output element of the loop to read.
        let scope = if token.is_inner_instance() { token.key } else { token.value().flow_scope_key };
        document::propagate(execution, scope, entries);
    } else if !result.is_empty() {
        document::propagate(execution, token.key, result);
    } else if token.instance.has_variables && passes_local_variables_on(token) {
        let entries = document::entries_local(execution.state, token.key);
        document::propagate(execution, token.value().flow_scope_key, entries);
    }
    Ok(())
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

/// Mappings are evaluated in order; each sees the targets of those before it.
fn evaluate(execution: &Execution<'_>, scope: Key, mappings: &[Mapping], merge: Merge) -> Result<Vec<Entry>, Problem> {
    let mut entries: Vec<Entry> = Vec::with_capacity(mappings.len());
    for mapping in mappings {
        let value = match &mapping.source {
            StaticOrExpression::Static(text) => Value::string(text),
            StaticOrExpression::Expression(source) => {
                expression::evaluate(execution, scope, &entries, source)
                    .map_err(|reason| Problem::new(ErrorType::IoMappingError, reason))?
                    .value
            }
        };
        let (name, path) = mapping.target.split_first().expect("a mapping has a target");
        let known = entries.iter().position(|(known, _)| known == name);
        let value = if path.is_empty() {
            value
        } else {
            let base = match known {
                Some(index) => Value::from_json(&entries[index].1).ok(),
                None if merge == Merge::Existing => {
                    super::find(execution.state, scope, name).and_then(|row| Value::from_json(&row.value).ok())
                }
                None => None,
            };
            nest(base, path, value)
        };
        let entry = (name.clone(), value.to_json().into());
        match known {
            Some(index) => entries[index] = entry,
            None => entries.push(entry),
        }
    }
    Ok(entries)
}

/// Puts a value at a path inside a context; what is not a context on the way is replaced by one.
fn nest(base: Option<Value>, path: &[Arc<str>], value: Value) -> Value {
    let Some((name, rest)) = path.split_first() else { return value };
    let mut context = match &base {
        Some(base) => base.as_context().cloned().unwrap_or_else(Context::new),
        None => Context::new(),
    };
    let inner = nest(context.get(name).cloned(), rest, value);
    context.put(name.clone(), inner);
    Value::Context(Arc::new(context))
}
