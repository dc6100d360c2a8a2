//! Script tasks whose script the engine evaluates.

use bpmn::model::Script;

use crate::event;
use crate::execution::Execution;
use crate::execution::problem::Problem;
use crate::execution::token::Token;
use crate::variable::{document, expression};

/// Evaluates the script. Its result waits with the task until that completes, so that a problem of the output mappings does
/// not lead to a second evaluation.
pub(super) fn evaluate(execution: &mut Execution<'_>, token: &Token, script: &Script) -> Result<(), Problem> {
    let result = expression::any(execution, token.key, &script.expression)?;
    event::bring_result(execution, token, document::of_one(&script.result_variable, &result));
    Ok(())
}
