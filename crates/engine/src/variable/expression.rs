//! Evaluation of expressions against the variables of a scope.

use std::borrow::Cow;
use std::sync::Arc;

use bpmn::model::StaticOrExpression;
use feel::{Environment, Evaluation, EvaluationError, Expression, Scope, Value};
use protocol::{ErrorType, Key, Text};

use super::document::Entry;
use crate::execution::Execution;
use crate::incident::Problem;
use crate::state::State;

/// What an expression sees: entries of its own first, the last of a name, then the variables of a scope, looking outwards.
struct Visible<'a> {
    state: &'a State,
    scope: Key,
    own: &'a [Entry],
}

impl Scope for Visible<'_> {
    fn variable(&self, name: &str) -> Option<Cow<'_, str>> {
        if let Some((_, value)) = self.own.iter().rev().find(|(own, _)| &**own == name) {
            return Some(Cow::Borrowed(value.as_str()));
        }
        let row = super::find(self.state, self.scope, &Arc::from(name))?;
        Some(Cow::Owned(row.value.to_string()))
    }
}

/// What is visible in a scope, behind entries of one's own.
pub(crate) fn visible<'a>(execution: &'a Execution<'_>, scope: Key, own: &'a [Entry]) -> impl Scope + use<'a> {
    Visible { state: &execution.state, scope, own }
}

/// The value of an expression. Fails only when it exceeds the limits of evaluation.
pub(crate) fn evaluate(
    execution: &Execution<'_>,
    scope: Key,
    own: &[Entry],
    expression: &Expression,
) -> Result<Evaluation, String> {
    let visible = visible(execution, scope, own);
    let steps_max = execution.limits.evaluation_steps_per_command_max;
    let (environment, is_limited_by_others) = environment(execution);
    let result = expression.evaluate(&visible, &environment);
    let steps = match &result {
        Ok(evaluation) => evaluation.steps,
        Err(EvaluationError::AssertionFailed { .. }) => 0,
        // How far it came is not told.
        Err(_) => environment.step_limit,
    };
    count_steps(execution, steps);
    result.map_err(|error| match error {
        EvaluationError::TooManySteps(_) if is_limited_by_others => format!(
            "Failed to evaluate expression '{}': The expressions of this element were stopped after {steps_max} steps \
             together. Let them work on less data.",
            expression.text()
        ),
        error => format!("Failed to evaluate expression '{}': {error}", expression.text()),
    })
}

/// Where expressions are evaluated now, and whether what the command has used already leaves less than usual.
pub(crate) fn environment(execution: &Execution<'_>) -> (Environment, bool) {
    let mut environment = Environment::at(execution.timestamp);
    let steps_max = execution.limits.evaluation_steps_per_command_max;
    let left = u32::try_from(steps_max.saturating_sub(execution.used.evaluation_steps.get())).unwrap_or(u32::MAX);
    let is_limited_by_others = left < environment.step_limit;
    environment.step_limit = environment.step_limit.min(left);
    environment.seed = seed(execution);
    (environment, is_limited_by_others)
}

/// What random values come from: the same on every replica, and another for every evaluation, because each command has a
/// position of its own and each evaluation before it in the command took steps.
fn seed(execution: &Execution<'_>) -> u64 {
    let parts = [
        u64::from(execution.state.partition.0),
        execution.source_position,
        execution.state.counters.key,
        execution.used.evaluation_steps.get(),
    ];
    feel::seed_of(&parts)
}

/// Steps that an evaluation took.
pub(crate) fn count_steps(execution: &Execution<'_>, steps: u32) {
    let used = &execution.used.evaluation_steps;
    used.set(used.get().saturating_add(u64::from(steps)));
}

fn extract<T>(
    execution: &Execution<'_>,
    scope: Key,
    expression: &Expression,
    expected: &str,
    read: impl FnOnce(&Value) -> Option<T>,
) -> Result<T, Problem> {
    extract_with(execution, scope, &[], expression, expected, read)
}

fn extract_with<T>(
    execution: &Execution<'_>,
    scope: Key,
    own: &[Entry],
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
    let text = evaluate(execution, scope, &[], expression).map_err(problem)?.value.to_json();
    let bytes_max = execution.limits.mapping_bytes_max;
    if text.len() > bytes_max {
        return Err(problem(format!(
            "Expected the result of the expression '{}' to have at most {bytes_max} bytes, but it has {}. Let it give less.",
            expression.text(),
            text.len()
        )));
    }
    Ok(Text::from(text))
}

/// A condition.
pub(crate) fn boolean(execution: &Execution<'_>, scope: Key, condition: &Expression) -> Result<bool, Problem> {
    extract(execution, scope, condition, "BOOLEAN", Value::as_bool)
}

/// A condition that sees entries of its own before the variables.
pub(crate) fn boolean_with(
    execution: &Execution<'_>,
    scope: Key,
    own: &[Entry],
    condition: &Expression,
) -> Result<bool, Problem> {
    extract_with(execution, scope, own, condition, "BOOLEAN", Value::as_bool)
}

/// The items of a list, each as a JSON text.
pub(crate) fn list(execution: &Execution<'_>, scope: Key, list: &Expression) -> Result<Vec<Text>, Problem> {
    let items = |value: &Value| Some(value.as_list()?.iter().map(|item| Text::from(item.to_json())).collect());
    extract(execution, scope, list, "ARRAY", items)
}

/// A correlation key: a text, or a whole number as text.
pub(crate) fn correlation_key(execution: &Execution<'_>, scope: Key, key: &Expression) -> Result<Text, Problem> {
    let problem = |message| Problem::new(ErrorType::ExtractValueError, message);
    let evaluation = evaluate(execution, scope, &[], key).map_err(problem)?;
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

/// A number attribute. A fraction is cut off, and what is too large becomes the largest there is.
pub(crate) fn integer(execution: &Execution<'_>, scope: Key, attribute: &StaticOrExpression) -> Result<i64, Problem> {
    match attribute {
        StaticOrExpression::Static(text) => text.trim().parse().map_err(|_| {
            Problem::new(ErrorType::ExtractValueError, format!("Expected a number, but found the text '{text}'."))
        }),
        StaticOrExpression::Expression(expression) => extract(execution, scope, expression, "NUMBER", |value| {
            let Value::Number(number) = value else { return None };
            // The conversion of a double to an integer saturates.
            Some(number.to_i64().unwrap_or_else(|| number.to_f64() as i64))
        }),
    }
}
