//! Business rule tasks whose decision the engine evaluates.

use std::sync::Arc;

use bpmn::model::{Binding, CalledDecision};
use protocol::{DecisionEvaluationValue, DecisionValue, ErrorType};

use super::bound_version::{Versions, deployment_of};
use crate::decision_evaluation;
use crate::event;
use crate::execution::Execution;
use crate::execution::problem::Problem;
use crate::execution::token::Token;
use crate::name::too_long;
use crate::variable::{document, expression};

/// Evaluates the decision. Its output waits with the task until that completes, so that a problem of the output mappings
/// does not lead to a second evaluation.
pub(super) fn evaluate(execution: &mut Execution<'_>, token: &Token, called: &CalledDecision) -> Result<(), Problem> {
    let id = expression::text(execution, token.key, &called.decision_id)?;
    if let Some(but) = too_long(&id, execution.limits.name_bytes_max) {
        let message = format!("Expected the decision id that '{}' evaluates to have {but}", token.element().id);
        return Err(Problem::new(ErrorType::CalledDecisionError, message));
    }
    let decision = find(execution, token, &id, &called.binding)
        .map_err(|message| Problem::new(ErrorType::CalledDecisionError, message))?;
    let value = token.value();
    let of = DecisionEvaluationValue {
        bpmn_process_id: value.bpmn_process_id.clone(),
        process_definition_key: value.process_definition_key,
        process_instance_key: value.process_instance_key,
        element_id: value.element_id.clone(),
        element_instance_key: token.key,
        business_id: value.business_id.clone(),
        ..DecisionEvaluationValue::default()
    };
    let output = decision_evaluation::evaluate_for_element(execution, token.key, &decision, of)?;
    let result = document::of_one(&called.result_variable, &output);
    event::bring_result(execution, token, result);
    Ok(())
}

/// The version of the decision that the binding means, or why there is none.
fn find(execution: &Execution<'_>, token: &Token, id: &Arc<str>, binding: &Binding) -> Result<DecisionValue, String> {
    let tables = &execution.state.tables;
    let key = Versions::of_decisions(tables).find(execution, token, id, binding);
    let row = key.and_then(|key| tables.decisions.get(&key.raw()));
    row.map(|row| row.value.clone()).ok_or_else(|| match binding {
        Binding::Latest => decision_evaluation::not_found_by_id(id),
        Binding::Deployment => format!(
            "Expected to evaluate decision '{id}' with binding type 'deployment', but no such decision found in the \
             deployment with key {} which contained the current process. Migrate the instance to a version of its process \
             that was deployed together with '{id}'.",
            deployment_of(execution, token)
        ),
        Binding::VersionTag(tag) => format!(
            "Expected to evaluate decision with id '{id}' and version tag '{tag}', but no such decision found. Deploy a \
             decision with this id and version tag."
        ),
    })
}
