//! Events that throw: error end events, escalation and signal throw and end events.

use bpmn::model::StaticOrExpression;
use protocol::{ErrorType, EscalationIntent, EscalationValue, Payload, Text};

use crate::element::stop::Stop;
use crate::event::{self, catch};
use crate::execution::Execution;
use crate::execution::problem::Problem;
use crate::execution::step::Step;
use crate::execution::token::{Token, activated};
use crate::name::key_bytes;
use crate::signal;
use crate::variable::expression;

/// The error goes to the event that catches it; the end event waits until that ends it. Without one it is an incident.
pub(super) fn throw_error(execution: &mut Execution<'_>, token: &Token, code: &StaticOrExpression) -> Result<(), Stop> {
    let code = evaluate_code(execution, token, code)?;
    let catcher = catch::find_error(execution, token.value().flow_scope_key, &code, "")??;
    activated(execution, token);
    if event::can_trigger(&execution.state, &catcher.scope.instance, catcher.is_boundary_event()) {
        event::trigger(execution, &catcher.scope, catcher.event, Text::default());
    }
    Ok(())
}

/// The escalation goes to the event that catches it, if there is one; the throwing event continues unless that
/// interrupts it.
pub(super) fn throw_escalation(
    execution: &mut Execution<'_>,
    token: &Token,
    code: &StaticOrExpression,
) -> Result<(), Stop> {
    let code = evaluate_code(execution, token, code)?;
    activated(execution, token);
    let catcher = catch::find_escalation(execution, token.value().flow_scope_key, &code)?;
    let key = execution.state.next_key();
    let mut value = EscalationValue {
        process_instance_key: token.value().process_instance_key,
        escalation_code: code,
        throw_element_id: token.value().element_id.clone(),
        catch_element_id: Text::default(),
        tenant_id: token.value().tenant_id.clone(),
    };
    let mut intent = EscalationIntent::NotEscalated;
    let mut goes_on = true;
    if let Some(catcher) = &catcher {
        value.catch_element_id = (&catcher.scope.process.element(catcher.event).id).into();
        if event::can_trigger(&execution.state, &catcher.scope.instance, catcher.is_boundary_event()) {
            goes_on = !catcher.scope.process.is_interrupting(catcher.event);
            event::trigger(execution, &catcher.scope, catcher.event, Text::default());
            intent = EscalationIntent::Escalated;
        }
    }
    execution.emit(key, Payload::Escalation(intent, Box::new(value)));
    if goes_on {
        execution.steps.push_back(Step::Complete { key: token.key });
    }
    Ok(())
}

/// The signal goes to all that wait for it, with the variables of the event's own scope, and the event completes.
pub(super) fn throw_signal(
    execution: &mut Execution<'_>,
    token: &Token,
    name: &StaticOrExpression,
) -> Result<(), Stop> {
    let command = signal::broadcast::of_event(execution, token, name)?;
    activated(execution, token);
    execution.steps.push_back(Step::Command(Box::new(command)));
    execution.steps.push_back(Step::Complete { key: token.key });
    Ok(())
}

fn evaluate_code(execution: &Execution<'_>, token: &Token, code: &StaticOrExpression) -> Result<Text, Problem> {
    let evaluated: Text = expression::text(execution, token.key, code)?.into();
    if evaluated.is_empty() || key_bytes(&evaluated) > execution.limits.name_bytes_max {
        return Err(Problem::new(
            ErrorType::ExtractValueError,
            format!(
                "Expected the code that '{}' throws to have 1 to {} bytes, but it has {}",
                token.element().id,
                execution.limits.name_bytes_max,
                key_bytes(&evaluated)
            ),
        ));
    }
    Ok(evaluated)
}
