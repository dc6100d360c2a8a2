//! Evaluation of expressions against the variables of a scope.

use std::sync::Arc;

use bpmn::model::StaticOrExpression;
use feel::{Environment, Evaluation, EvaluationError, Expression, Scope, Value, VariableText};
use protocol::{ErrorType, Key, Text};

use super::own::OwnEntries;
use crate::execution::Execution;
use crate::execution::problem::Problem;
use crate::limits::environment_at;

/// What an expression sees of an entry of one's own: a value, or else a JSON text.
pub(crate) trait Own {
    /// The value, if it is kept as one.
    fn value(&self) -> Option<&Value>;

    /// The JSON text, if it is kept as one.
    fn text(&self) -> Option<&Text>;
}

impl Own for Text {
    fn value(&self) -> Option<&Value> {
        None
    }

    fn text(&self) -> Option<&Text> {
        Some(self)
    }
}

impl Own for Value {
    fn value(&self) -> Option<&Value> {
        Some(self)
    }

    fn text(&self) -> Option<&Text> {
        None
    }
}

/// What an expression without entries of its own sees.
pub(crate) const NOTHING: &OwnEntries<Text> = &OwnEntries::new();

/// What an expression sees: entries of its own first, the last of a name, then the variables of a scope, looking outwards.
struct Visible<'a, T> {
    execution: &'a Execution<'a>,
    scope: Key,
    own: &'a OwnEntries<T>,
}

impl<T: Own> Scope for Visible<'_, T> {
    fn value(&self, name: &str) -> Option<Value> {
        self.own.get(name)?.value().cloned()
    }

    fn variable(&self, name: &str) -> Option<VariableText<'_>> {
        let shared = |text: &Text| VariableText::Shared(text.shared().clone());
        if let Some(own) = self.own.get(name) {
            return own.text().map(shared);
        }
        super::find_long(self.execution, self.scope, &Arc::from(name)).map(|row| shared(&row.value))
    }
}

/// What is visible in a scope, behind entries of one's own.
pub(crate) fn visible<'a, T: Own>(
    execution: &'a Execution<'a>,
    scope: Key,
    own: &'a OwnEntries<T>,
) -> impl Scope + use<'a, T> {
    Visible { execution, scope, own }
}

/// The value of an expression. Fails only when it exceeds what its command may spend.
pub(crate) fn evaluate(
    execution: &Execution<'_>,
    scope: Key,
    own: &OwnEntries<impl Own>,
    expression: &Expression,
) -> Result<Evaluation, String> {
    let visible = visible(execution, scope, own);
    let budget = &execution.used.budget;
    let steps_before = budget.steps_used();
    expression.evaluate_within(&visible, &environment(execution), budget).map_err(|error| {
        let stopped = match error {
            EvaluationError::TooManySteps(max) => format!("after {max} steps together"),
            EvaluationError::TooMuchMemory(max) => {
                format!("because their values would take more than {max} bytes together")
            }
            EvaluationError::TooMuchRead(max) => {
                format!("because more than {max} bytes of variables would be read together")
            }
            _ => String::new(),
        };
        let text = expression.text();
        if steps_before == 0 || stopped.is_empty() {
            return format!("Failed to evaluate expression '{text}': {error}");
        }
        format!(
            "Failed to evaluate expression '{text}': The expressions of this element were stopped {stopped}. Let them work on \
             less data."
        )
    })
}

/// Where expressions and decisions are evaluated now. What random values come from is the same on every replica, and
/// another for every command, because each has a position of its own.
pub(crate) fn environment(execution: &Execution<'_>) -> Environment {
    let parts = [u64::from(execution.state.partition.0), execution.source_position, execution.state.counters.key];
    Environment { seed: feel::seed_of(&parts), ..environment_at(execution.timestamp, execution.limits) }
}

fn extract<T>(
    execution: &Execution<'_>,
    scope: Key,
    expression: &Expression,
    expected: &str,
    read: impl FnOnce(&Value) -> Option<T>,
) -> Result<T, Problem> {
    extract_with(execution, scope, NOTHING, expression, expected, read)
}

fn extract_with<T>(
    execution: &Execution<'_>,
    scope: Key,
    own: &OwnEntries<Text>,
    expression: &Expression,
    expected: &str,
    read: impl FnOnce(&Value) -> Option<T>,
) -> Result<T, Problem> {
    let problem = |message| Problem::new(ErrorType::ExtractValueError, message);
    let evaluation = evaluate(execution, scope, own, expression).map_err(problem)?;
    read(&evaluation.value).ok_or_else(|| problem(unexpected_kind(expression, expected, &evaluation)))
}

pub(crate) fn unexpected_kind(expression: &Expression, expected: &str, evaluation: &Evaluation) -> String {
    let kind = evaluation.value.kind();
    let message =
        format!("Expected result of the expression '{}' to be '{expected}', but was '{kind}'.", expression.text());
    with_warnings(message, evaluation)
}

fn with_warnings(mut message: String, evaluation: &Evaluation) -> String {
    use std::fmt::Write;
    if !evaluation.warnings.is_empty() {
        message.push_str(" The evaluation reported the following warnings:");
        for warning in &evaluation.warnings {
            // Writing to a string cannot fail.
            let _ = write!(message, "\n{warning}");
        }
    }
    message
}

/// A value of any kind, as a JSON text.
pub(crate) fn any(execution: &Execution<'_>, scope: Key, expression: &Expression) -> Result<Text, Problem> {
    let problem = |message| Problem::new(ErrorType::ExtractValueError, message);
    let value = evaluate(execution, scope, NOTHING, expression).map_err(problem)?.value;
    let bytes_max = execution.limits.mapping_bytes_max;
    execution.used.budget.to_json(&value, bytes_max).map(Text::from).map_err(|error| match error {
        EvaluationError::ResultTooLarge(_) => problem(format!(
            "Expected the result of the expression '{}' to have at most {bytes_max} bytes, but it has more. Let it give less.",
            expression.text()
        )),
        error => problem(format!("Failed to write the result of the expression '{}': {error}", expression.text())),
    })
}

/// A condition.
pub(crate) fn boolean(execution: &Execution<'_>, scope: Key, condition: &Expression) -> Result<bool, Problem> {
    extract(execution, scope, condition, "BOOLEAN", Value::as_bool)
}

/// A condition that sees entries of its own before the variables.
pub(crate) fn boolean_with(
    execution: &Execution<'_>,
    scope: Key,
    own: &OwnEntries<Text>,
    condition: &Expression,
) -> Result<bool, Problem> {
    extract_with(execution, scope, own, condition, "BOOLEAN", Value::as_bool)
}

/// The items of a list, each as a JSON text.
pub(crate) fn list(execution: &Execution<'_>, scope: Key, list: &Expression) -> Result<Vec<Text>, Problem> {
    let value = extract(execution, scope, list, "ARRAY", |value| value.as_list().map(|_| value.clone()))?;
    let (items, budget) = (value.as_list().unwrap_or_default(), &execution.used.budget);
    let bytes_max = execution.limits.mapping_bytes_max;
    let problem = |error| {
        let text = list.text();
        let message = match error {
            EvaluationError::ResultTooLarge(_) => format!(
                "Expected the items of the expression '{text}' to have at most {bytes_max} bytes together, but they have more. \
                 Let it give less."
            ),
            error => format!("Failed to write the result of the expression '{text}': {error}"),
        };
        Problem::new(ErrorType::ExtractValueError, message)
    };
    budget.build(items.len().saturating_mul(ITEM_BYTES)).map_err(|exceeded| problem(exceeded.into()))?;
    let mut texts = Vec::with_capacity(items.len());
    let mut left = bytes_max;
    for item in items {
        let text = budget.to_json(item, left).map_err(problem)?;
        left -= text.len();
        texts.push(Text::from(text));
    }
    Ok(texts)
}

/// The items of a list of texts.
pub(crate) fn strings(execution: &Execution<'_>, scope: Key, list: &Expression) -> Result<Vec<Text>, Problem> {
    let value = extract(execution, scope, list, "ARRAY", |value| value.as_list().map(|_| value.clone()))?;
    let items = value.as_list().unwrap_or_default();
    let problem = |message| Problem::new(ErrorType::ExtractValueError, message);
    let budget = &execution.used.budget;
    budget.build(items.len().saturating_mul(ITEM_BYTES)).map_err(|exceeded| {
        let error = EvaluationError::from(exceeded);
        problem(format!("Failed to read the result of the expression '{}': {error}", list.text()))
    })?;
    items.iter().map(|item| item.as_str().map(Text::from)).collect::<Option<_>>().ok_or_else(|| {
        problem(format!(
            "Expected result of the expression '{}' to be 'ARRAY' containing 'STRING' items, but was 'ARRAY' containing at \
             least one non-'STRING' item.",
            list.text()
        ))
    })
}

/// About the memory of a text in a list besides its bytes.
const ITEM_BYTES: usize = 64;

/// A correlation key: a text, or a whole number as text.
pub(crate) fn correlation_key(execution: &Execution<'_>, scope: Key, key: &Expression) -> Result<Text, Problem> {
    let problem = |message| Problem::new(ErrorType::ExtractValueError, message);
    let evaluation = evaluate(execution, scope, NOTHING, key).map_err(problem)?;
    match &evaluation.value {
        Value::String(text) => Ok(Text::from(text)),
        Value::Number(_) => Ok(Text::from(evaluation.value.to_json())),
        other => {
            let (key, kind) = (key.text(), other.kind());
            let message = format!(
                "Failed to extract the correlation key for '{key}': The value must be either a string or a number, but was \
                 '{kind}'."
            );
            Err(problem(with_warnings(message, &evaluation)))
        }
    }
}

/// A text attribute.
pub(crate) fn text(execution: &Execution<'_>, scope: Key, attribute: &StaticOrExpression) -> Result<Arc<str>, Problem> {
    match attribute {
        StaticOrExpression::Static(text) => Ok(text.clone()),
        StaticOrExpression::Expression(expression) => {
            extract(execution, scope, expression, "STRING", |value| value.as_str().map(Arc::from))
        }
    }
}

/// A number attribute. Fractions are cut off, and what is too large becomes the largest number.
pub(crate) fn integer(execution: &Execution<'_>, scope: Key, attribute: &StaticOrExpression) -> Result<i64, Problem> {
    match attribute {
        StaticOrExpression::Static(text) => static_number(text).map(whole).ok_or_else(|| {
            let message = format!("Expected result of the expression '{text}' to be 'NUMBER', but was 'STRING'.");
            Problem::new(ErrorType::ExtractValueError, message)
        }),
        StaticOrExpression::Expression(expression) => extract(execution, scope, expression, "NUMBER", |value| {
            let Value::Number(number) = value else { return None };
            Some(whole(*number))
        }),
    }
}

/// What static text the reference takes for a number.
fn static_number(text: &str) -> Option<feel::Number> {
    let unsigned = text.strip_prefix('+').filter(|rest| !rest.starts_with('-'));
    feel::Number::parse(unsigned.unwrap_or(text))
}

/// A number without its fraction. The conversion of a double to an integer saturates.
fn whole(number: feel::Number) -> i64 {
    number.to_i64().unwrap_or_else(|| number.to_f64() as i64)
}
