//! Exclusive gateway: which flow is taken.

use bpmn::model::FlowIndex;
use protocol::ErrorType;

use crate::execution::Execution;
use crate::execution::problem::Problem;
use crate::execution::token::Token;
use crate::variable::expression;

/// The last flow in document order whose condition holds, as on the reference engine, else the default flow. `None` when
/// the path ends here.
pub(super) fn choose_flow(
    execution: &Execution<'_>,
    token: &Token,
    default: Option<FlowIndex>,
) -> Result<Option<FlowIndex>, Problem> {
    let outgoing = &token.element().outgoing;
    if outgoing.is_empty() {
        return Ok(None);
    }
    for flow in outgoing.iter().rev() {
        if Some(*flow) == default {
            continue;
        }
        match &token.process.flow(*flow).condition {
            None => return Ok(Some(*flow)),
            Some(condition) => {
                if expression::boolean(execution, token.key, condition)? {
                    return Ok(Some(*flow));
                }
            }
        }
    }
    default.map(Some).ok_or_else(|| {
        Problem::new(
            ErrorType::ConditionError,
            "Expected at least one condition to evaluate to true, or to have a default flow",
        )
    })
}
