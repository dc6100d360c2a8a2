//! Evaluation of expressions against the variables of a scope.

use std::borrow::Cow;
use std::sync::Arc;

use bpmn::model::StaticOrExpression;
use feel::{Environment, Evaluation, Expression, Scope, Value};
use protocol::{ErrorType, Key};

use super::document::Entry;
use crate::execution::Execution;
use crate::incident::Problem;
use crate::state::State;

/// What an expression sees: entries of its own first, then the variables of a scope, looking outwards.
struct Visible<'a> {
    state: &'a State,
    scope: Key,
    own: &'a [Entry],
}

impl Scope for Visible<'_> {
    fn variable(&self, name: &str) -> Option<Cow<'_, str>> {
        if let Some((_, value)) = self.own.iter().find(|(own, _)| &**own == name) {
            return Some(Cow::Borrowed(value.as_str()));
        }
        let row = super::find(self.state, self.scope, &Arc::from(name))?;
        Some(Cow::Owned(row.value.to_string()))
    }
}

/// The value of an expression. Fails only when it exceeds the limits of evaluation.
pub(crate) fn evaluate(
    execution: &Execution<'_>,
    scope: Key,
    own: &[Entry],
    expression: &Expression,
) -> Result<Evaluation, String> {
    let visible = Visible { state: execution.state, scope, own };
    expression
        .evaluate(&visible, &Environment::at(execution.timestamp))
        .map_err(|error| format!("Failed to evaluate expression '{}': {error}", expression.text()))
}

fn extract<T>(
    execution: &Execution<'_>,
    scope: Key,
    expression: &Expression,
    expected: &str,
    read: impl FnOnce(&Value) -> Option<T>,
) -> Result<T, Problem> {
    let problem = |message| Problem::new(ErrorType::ExtractValueError, message);
    let evaluation = evaluate(execution, scope, &[], expression).map_err(problem)?;
    read(&evaluation.value).ok_or_else(|| problem(unexpected_kind(expression, expected, &evaluation)))
}

fn unexpected_kind(expression: &Expression, expected: &str, evaluation: &Evaluation) -> String {
    use std::fmt::Write;
    let mut message = format!(
        "Expected result of the expression '{}' to be '{expected}', but was '{}'.",
        expression.text(),
        evaluation.value.kind()
    );
    if !evaluation.warnings.is_empty() {
        message.push_str(" The evaluation reported the following warnings:");
        for warning in &evaluation.warnings {
            // Writing to a string cannot fail.
            let _ = write!(message, "\n{warning}");
        }
    }
    message
}

/// A condition.
pub(crate) fn boolean(execution: &Execution<'_>, scope: Key, condition: &Expression) -> Result<bool, Problem> {
    extract(execution, scope, condition, "BOOLEAN", Value::as_bool)
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

/// A number attribute.
pub(crate) fn integer(execution: &Execution<'_>, scope: Key, attribute: &StaticOrExpression) -> Result<i64, Problem> {
    match attribute {
        StaticOrExpression::Static(text) => text.trim().parse().map_err(|_| {
            Problem::new(ErrorType::ExtractValueError, format!("Expected a number, but found the text '{text}'."))
        }),
        StaticOrExpression::Expression(expression) => extract(execution, scope, expression, "NUMBER", Value::as_i64),
    }
}
