//! Timer event definitions: which kinds are allowed where, and what is known of them at deployment.

use feel::{Environment, Expression, Value};
use roxmltree::Node;

use crate::expressions::static_or_expression;
use crate::model::{StaticOrExpression, Timer, TimerDefinition, TimerKind, TimerSource};
use crate::report::Problems;
use crate::xml::{self, is_bpmn};

/// What a timer belongs to; it decides which kinds of timers are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimerPlace {
    /// A start event of a process.
    ProcessStart,
    IntermediateCatch,
    /// An interrupting boundary event or start event of an event sub-process.
    Interrupting,
    /// A non-interrupting one.
    NonInterrupting,
}

const KINDS: [(&str, TimerKind); 3] =
    [("timeDate", TimerKind::Date), ("timeDuration", TimerKind::Duration), ("timeCycle", TimerKind::Cycle)];

/// The timer of `event`; `None` after a problem.
pub(crate) fn compile(
    event: Node,
    definition: Node,
    place: TimerPlace,
    problems: &mut Problems,
) -> Option<TimerDefinition> {
    let mut found = definition.children().filter_map(|node| {
        KINDS.into_iter().find(|(name, _)| is_bpmn(node, name)).map(|(_, kind)| (kind, xml::trimmed_text(node)))
    });
    let (Some((kind, text)), None) = (found.next(), found.next()) else {
        problems.add(
            definition,
            "Must be exactly one type of timer: timeDuration, timeDate or timeCycle. Keep or add one of them.",
        );
        return None;
    };
    check_kind(event, kind, place, problems);
    let source = match static_or_expression(definition, &text, problems)? {
        StaticOrExpression::Static(text) => match Timer::parse(kind, &text) {
            Ok(timer) => TimerSource::Constant(timer),
            Err(why) => {
                refuse(event, kind, &why, problems);
                return None;
            }
        },
        StaticOrExpression::Expression(expression) => {
            if place == TimerPlace::ProcessStart
                && let Err(why) = evaluate_without_variables(kind, &expression)
            {
                refuse(event, kind, &why, problems);
                return None;
            }
            // A constant that is no timer is left to its evaluation, which raises an incident, as in Zeebe.
            match expression.constant().map(|value| timer_of(kind, &value)) {
                Some(Ok(timer)) => TimerSource::Constant(timer),
                _ => TimerSource::Expression(expression),
            }
        }
    };
    Some(TimerDefinition { kind, source })
}

fn check_kind(event: Node, kind: TimerKind, place: TimerPlace, problems: &mut Problems) {
    match (place, kind) {
        (TimerPlace::IntermediateCatch, TimerKind::Cycle) => problems.add_for_new(
            event,
            "Intermediate timer catch event must have either a time duration or a time date. It passes once: use timeDuration or timeDate.",
        ),
        (TimerPlace::Interrupting, TimerKind::Cycle) => problems.add_for_new(
            event,
            "Interrupting timer event with time cycle is not allowed. It fires once: make it non-interrupting, or use \
             timeDuration or timeDate.",
        ),
        _ => {}
    }
}

fn refuse(event: Node, kind: TimerKind, why: &str, problems: &mut Problems) {
    let name = match kind {
        TimerKind::Date => "date",
        TimerKind::Duration => "duration",
        TimerKind::Cycle => "cycle",
    };
    problems.add(event, format!("Invalid timer {name} expression ({}). Correct the timer.", why.trim_end_matches('.')));
}

/// A start event of a process has no variables, but a clock: the expression must give a timer at any time.
fn evaluate_without_variables(kind: TimerKind, expression: &Expression) -> Result<Timer, String> {
    let evaluation = expression
        .evaluate(&(), &Environment { step_limit: feel::CONSTANT_STEP_LIMIT, ..Environment::at(0) })
        .map_err(|error| format!("Failed to evaluate expression '{}': {error}", expression.text()))?;
    timer_of(kind, &evaluation.value).map_err(|why| {
        format!(
            "The expression '{}' is evaluated without variables, because it starts a process. {why}",
            expression.text()
        )
    })
}

/// The timer that the value of an expression describes. The error is a sentence.
fn timer_of(kind: TimerKind, value: &Value) -> Result<Timer, String> {
    let expected = match (kind, value) {
        (_, Value::String(text)) => return Timer::parse(kind, text),
        (TimerKind::Duration, Value::DayTimeDuration(_) | Value::YearMonthDuration(_))
        | (TimerKind::Date, Value::DateTime(_)) => {
            // Such values are strings in JSON, without anything to escape.
            return Timer::parse(kind, value.to_json().trim_matches('"'));
        }
        (TimerKind::Date, _) => "a date and time, or a text",
        (TimerKind::Duration, _) => "a duration, or a text",
        (TimerKind::Cycle, _) => "a text",
    };
    Err(format!("Expected its result to be {expected}, but was '{}'", value.kind()))
}
