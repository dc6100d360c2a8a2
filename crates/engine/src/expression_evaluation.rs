//! EXPRESSION EVALUATE: what an expression gives, for a client.

use feel::Expression;
use protocol::{ExpressionIntent, ExpressionValue, Payload, Rejection, RejectionType, Text};

use crate::execution::{Execution, Outcome};
use crate::variable::own::OwnEntries;
use crate::variable::{document, expression};

pub(crate) fn evaluate(execution: &mut Execution<'_>, value: &ExpressionValue) -> Outcome {
    if execution.has_answered_much() {
        return Err(Rejection::new(
            RejectionType::ExceededBatchRecordSize,
            format!(
                "Expected to evaluate an expression, but the answers to the commands that are processed together have {} bytes \
                 already; try again, and with fewer requests for large answers at once",
                execution.limits.reply_bytes_per_batch
            ),
        )
        .into());
    }
    let text = value.expression.strip_prefix('=').ok_or_else(|| {
        Rejection::invalid_argument(format!(
            "Expected to evaluate an expression that starts with '=', but it is '{}'",
            value.expression
        ))
    })?;
    if value.scope_key.is_some() {
        let Some(instance) = execution.state.element_instance(value.scope_key) else {
            return Err(Rejection::not_found(format!(
                "Expected to evaluate an expression in the scope of the element instance with key '{}', but no such element instance \
                 was found",
                value.scope_key
            ))
            .into());
        };
        execution.check_not_banned(instance.value.process_instance_key)?;
    }
    let parsed = Expression::parse_strictly(text).map_err(|error| {
        Rejection::invalid_argument(format!("Failed to parse expression '{}': {error}", value.expression))
    })?;
    let variables: OwnEntries<Text> =
        document::split(&value.variables, execution.limits.name_bytes_max)?.into_iter().collect();
    let evaluation =
        expression::evaluate(execution, value.scope_key, &variables, &parsed).map_err(Rejection::invalid_argument)?;
    let bytes_max = execution.limits.decision_evaluation_bytes_max;
    let result = execution.used.budget.to_json(&evaluation.value, bytes_max).map_err(|error| {
        Rejection::invalid_argument(format!(
            "Expected the result of the expression '{}' to have at most {bytes_max} bytes as JSON, but it could not be written: \
             {error}",
            value.expression
        ))
    })?;
    let warnings = evaluation.warnings.iter().map(|warning| Text::from(warning.to_string())).collect();
    let key = execution.state.next_key();
    let value = ExpressionValue { result_value: result.into(), warnings, ..value.clone() };
    let evaluated = Payload::Expression(ExpressionIntent::Evaluated, Box::new(value));
    execution.emit(key, evaluated.clone());
    execution.reply(key, evaluated);
    Ok(())
}
