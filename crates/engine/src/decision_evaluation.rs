//! DECISION_EVALUATION EVALUATE, and the evaluation of decisions for business rule tasks.

use std::collections::BTreeMap;

use dmn::{DecisionEvaluation, EvaluatedDecision, MatchedRule};
use feel::{Budget, EvaluationError};
use protocol::{
    DecisionEvaluationIntent, DecisionEvaluationValue, DecisionValue, ErrorType, EvaluatedDecisionValue,
    EvaluatedInputValue, EvaluatedOutputValue, Key, MatchedRuleValue, Payload, Rejection, RejectionType, Text,
};

use crate::execution::problem::Problem;
use crate::execution::{Execution, Outcome};
use crate::variable::own::OwnEntries;
use crate::variable::{document, expression};

/// What a rule without an id is called in records: readers look rules up by id.
const RULE_ID_PREFIX: &str = "ZB_SYNTH_RULE_ID";

/// Evaluates a decision for a client.
pub(crate) fn evaluate(execution: &mut Execution<'_>, value: &DecisionEvaluationValue) -> Outcome {
    if execution.has_answered_much() {
        return Err(too_much_at_once(execution).into());
    }
    let decision = find(execution, value)?;
    let variables = document::split(&value.variables, execution.limits.name_bytes_max)?.into_iter().collect();
    let of = DecisionEvaluationValue { variables: value.variables.clone(), ..DecisionEvaluationValue::default() };
    let (key, value) = run(execution, &decision, Key::NONE, &variables, of).map_err(Rejection::not_found)?;
    let payload = payload(value);
    execution.emit(key, payload.clone());
    execution.reply(key, payload);
    Ok(())
}

/// The refusal of what would have a large answer among others that are large already.
fn too_much_at_once(execution: &Execution<'_>) -> Rejection {
    Rejection::new(
        RejectionType::ExceededBatchRecordSize,
        format!(
            "Expected to evaluate a decision, but the answers to the commands that are processed together have {} bytes \
             already; try again, and with fewer requests for large answers at once",
            execution.limits.reply_bytes_per_batch
        ),
    )
}

/// Evaluates a decision for a business rule task, which `of` names.
pub(crate) fn evaluate_for_element(
    execution: &mut Execution<'_>,
    scope: Key,
    decision: &DecisionValue,
    of: DecisionEvaluationValue,
) -> Result<Text, Problem> {
    let (key, value) = run(execution, decision, scope, expression::NOTHING, of)
        .map_err(|message| Problem::new(ErrorType::CalledDecisionError, message))?;
    let outcome = if value.evaluation_failure_message.is_empty() {
        Ok(value.decision_output.clone())
    } else {
        Err(Problem::new(ErrorType::DecisionEvaluationError, value.evaluation_failure_message.to_string()))
    };
    execution.emit(key, payload(value));
    outcome
}

fn payload(value: DecisionEvaluationValue) -> Payload {
    let intent = match value.evaluation_failure_message.is_empty() {
        true => DecisionEvaluationIntent::Evaluated,
        false => DecisionEvaluationIntent::Failed,
    };
    Payload::DecisionEvaluation(intent, Box::new(value))
}

/// Why there is no decision with an id.
pub(crate) fn not_found_by_id(id: &str) -> String {
    format!("Expected to evaluate decision '{id}', but no decision found for id '{id}'")
}

/// The decision that a command names.
fn find(execution: &Execution<'_>, value: &DecisionEvaluationValue) -> Result<DecisionValue, Rejection> {
    let tables = &execution.state.tables;
    let (id, key) = (&value.decision_id, value.decision_key);
    let (found, missing) = if !id.is_empty() {
        let name = (value.tenant_id.shared().clone(), id.shared().clone());
        (tables.latest_decisions.get(&name).map(|latest| latest.key), not_found_by_id(id))
    } else if key.is_some() {
        (Some(key), format!("Expected to evaluate decision '{key}', but no decision found for key '{key}'"))
    } else {
        return Err(Rejection::invalid_argument(
            "Expected either a decision id or a valid decision key, but none provided",
        ));
    };
    let row = found.and_then(|key| tables.decisions.get(&key.raw()));
    let row = row.filter(|row| value.tenant_id.is_empty() || row.value.tenant_id == value.tenant_id);
    row.map(|row| row.value.clone()).ok_or_else(|| Rejection::not_found(missing))
}

/// Evaluates a decision with the variables of a scope, or given ones. Returns the key and what to emit, or why it
/// cannot be evaluated at all.
fn run(
    execution: &mut Execution<'_>,
    decision: &DecisionValue,
    scope: Key,
    given: &OwnEntries<Text>,
    of: DecisionEvaluationValue,
) -> Result<(Key, DecisionEvaluationValue), String> {
    let Some(graph) = execution.state.decision_requirements(decision.decision_requirements_key) else {
        return Err(format!(
            "Expected to evaluate decision '{}', but no drg found for id '{}'",
            decision.decision_id, decision.decision_requirements_id
        ));
    };
    let environment = expression::environment(execution);
    let visible = expression::visible(execution, scope, given);
    let evaluation = graph.evaluate_within(&decision.decision_id, &visible, &environment, &execution.used.budget);
    drop(visible);
    let key = execution.state.next_key();
    Ok((key, describe(execution, key, decision, evaluation, of)))
}

/// What records and clients see. If that would be too much, the evaluation fails.
fn describe(
    execution: &Execution<'_>,
    key: Key,
    decision: &DecisionValue,
    evaluation: DecisionEvaluation,
    of: DecisionEvaluationValue,
) -> DecisionEvaluationValue {
    let decisions = decisions_of(execution, decision);
    let bytes_max = execution.limits.decision_evaluation_bytes_max;
    let mut description = Description {
        decisions,
        tenant_id: decision.tenant_id.clone(),
        budget: &execution.used.budget,
        bytes_max,
        bytes_left: bytes_max,
        failure: None,
    };
    let mut told = Vec::new();
    for (index, evaluated) in evaluation.evaluated_decisions.iter().enumerate() {
        told.push(description.decision(&format!("{key}-{}", index + 1), evaluated));
        if description.failure.is_some() {
            break;
        }
    }
    let mut value = DecisionEvaluationValue {
        decision_key: decision.decision_key,
        decision_id: decision.decision_id.clone(),
        decision_name: decision.decision_name.clone(),
        decision_version: decision.version,
        decision_requirements_id: decision.decision_requirements_id.clone(),
        decision_requirements_key: decision.decision_requirements_key,
        evaluated_decisions: told,
        tenant_id: decision.tenant_id.clone(),
        decision_output: "null".into(),
        ..of
    };
    match evaluation.result {
        Ok(output) => value.decision_output = description.text(&output),
        Err(failure) => {
            value.evaluation_failure_message = failure.message.into();
            value.failed_decision_id = (&failure.failed_decision_id).into();
        }
    }
    if let Some(failure) = description.failure {
        value.evaluated_decisions.clear();
        value.decision_output = "null".into();
        value.failed_decision_id = decision.decision_id.clone();
        value.evaluation_failure_message = format!(
            "Expected the inputs and outputs of the evaluation of decision '{}' {failure}",
            decision.decision_id
        )
        .into();
    }
    value
}

/// Keys and versions of the decisions of a graph, by id.
fn decisions_of(execution: &Execution<'_>, decision: &DecisionValue) -> BTreeMap<Text, (Key, i32)> {
    let tables = &execution.state.tables;
    let graph = decision.decision_requirements_key.raw();
    let keys = tables.decisions_by_requirements.prefix(&graph);
    let rows = keys.filter_map(|((_, key), _)| tables.decisions.get(&key));
    rows.map(|row| (row.value.decision_id.clone(), (row.value.decision_key, row.value.version))).collect()
}

/// About how much memory a reported input or output takes, besides its text.
const TOLD_VALUE_BYTES: usize = 192;

struct Description<'a> {
    decisions: BTreeMap<Text, (Key, i32)>,
    tenant_id: Text,
    budget: &'a Budget,
    bytes_max: usize,
    /// Bytes that all further texts may have.
    bytes_left: usize,
    /// Why not everything can be reported; no further text is written then.
    failure: Option<String>,
}

impl Description<'_> {
    fn text(&mut self, value: &feel::Value) -> Text {
        if self.failure.is_some() {
            return Text::default();
        }
        let text = self.budget.build(TOLD_VALUE_BYTES).map_err(EvaluationError::from);
        match text.and_then(|()| self.budget.to_json(value, self.bytes_left)) {
            Ok(text) => {
                self.bytes_left -= text.len();
                text.into()
            }
            Err(error) => {
                self.failure = Some(match error {
                    EvaluationError::ResultTooLarge(_) => format!(
                        "to have at most {} bytes together, but they have more. Let the decisions give less.",
                        self.bytes_max
                    ),
                    error => format!("to be written, but that failed: {error}"),
                });
                Text::default()
            }
        }
    }

    fn decision(&mut self, instance: &str, evaluated: &EvaluatedDecision) -> EvaluatedDecisionValue {
        let id = Text::from(&evaluated.id);
        // A business knowledge model has none.
        let (key, version) = self.decisions.get(&id).copied().unwrap_or((Key::NONE, -1));
        let inputs = evaluated.inputs.iter().map(|input| EvaluatedInputValue {
            input_id: (&input.id).into(),
            input_name: (&input.name).into(),
            input_value: self.text(&input.value),
        });
        let evaluated_inputs = inputs.collect();
        let mut matched_rules = Vec::new();
        for rule in &evaluated.matched_rules {
            matched_rules.push(self.rule(&id, version, rule));
            if self.failure.is_some() {
                break;
            }
        }
        EvaluatedDecisionValue {
            matched_rules,
            evaluated_inputs,
            decision_evaluation_instance_key: instance.into(),
            decision_name: (&evaluated.name).into(),
            decision_key: key,
            decision_version: version,
            decision_type: evaluated.decision_type.name().into(),
            decision_output: self.text(&evaluated.output),
            tenant_id: self.tenant_id.clone(),
            decision_id: id,
        }
    }

    fn rule(&mut self, decision: &Text, version: i32, rule: &MatchedRule) -> MatchedRuleValue {
        let outputs = rule.outputs.iter().map(|output| EvaluatedOutputValue {
            output_id: (&output.id).into(),
            output_name: (&output.name).into(),
            output_value: self.text(&output.value),
        });
        let evaluated_outputs = outputs.collect();
        let rule_id = match rule.id.trim() {
            "" => format!("{RULE_ID_PREFIX}_{decision}_v{version}_r{}", rule.index).into(),
            _ => Text::from(&rule.id),
        };
        MatchedRuleValue { rule_id, rule_index: rule.index, evaluated_outputs }
    }
}
