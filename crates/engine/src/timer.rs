//! Timers: what waits for them, and one file per command.

pub(crate) mod start_event;
pub(crate) mod subscription;
pub(crate) mod trigger;

use std::borrow::Cow;

use bpmn::model::{Timer, TimerDefinition, TimerSource};
use feel::Value;
use protocol::{ErrorType, Key};

use crate::execution::Execution;
use crate::execution::problem::Problem;
use crate::variable::expression;

/// The timer that a definition means with the variables of a scope.
pub(crate) fn evaluate<'a>(
    execution: &Execution<'_>,
    scope: Key,
    definition: &'a TimerDefinition,
) -> Result<Cow<'a, Timer>, Problem> {
    let source = match &definition.source {
        TimerSource::Constant(timer) => return Ok(Cow::Borrowed(timer)),
        TimerSource::Expression(source) => source,
    };
    let problem = |message| Problem::new(ErrorType::ExtractValueError, message);
    let evaluation = expression::evaluate(execution, scope, expression::NOTHING, source).map_err(problem)?;
    let text = text_of(&evaluation.value)
        .ok_or_else(|| problem(expression::unexpected_kind(source, "STRING, DURATION or DATE_TIME", &evaluation)))?;
    Timer::parse(definition.kind, &text).map(Cow::Owned).map_err(|reason| {
        problem(format!("Expected the expression '{}' to give a timer, but it does not: {reason}", source.text()))
    })
}

/// The text of a value that is a point in time or a duration, or says so as text.
fn text_of(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::String(text) => Some(Cow::Borrowed(text)),
        Value::DateTime(_) | Value::YearMonthDuration(_) | Value::DayTimeDuration(_) => {
            Some(Cow::Owned(value.to_json().trim_matches('"').to_owned()))
        }
        _ => None,
    }
}
