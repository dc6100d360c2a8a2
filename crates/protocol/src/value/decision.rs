//! Values about decisions.

use std::sync::Arc;

use minicbor::{Decode, Encode};
use serde::Serialize;

use crate::{Key, Text};

/// What a deployed graph of decisions is called.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DecisionRequirementsMetadata {
    /// Id of the graph.
    #[n(0)]
    pub decision_requirements_id: Text,
    /// Name of the graph.
    #[n(1)]
    pub decision_requirements_name: Text,
    #[n(2)]
    pub decision_requirements_version: i32,
    /// This version.
    #[n(3)]
    pub decision_requirements_key: Key,
    /// Namespace of the file.
    #[n(4)]
    pub namespace: Text,
    /// File it came from.
    #[n(5)]
    pub resource_name: Text,
    /// Checksum of the file.
    #[n(6)]
    #[cbor(with = "super::shared_bytes")]
    #[serde(serialize_with = "super::base64")]
    pub checksum: Arc<[u8]>,
    /// Whether it is the same as the version before, so that no new version was made.
    #[n(7)]
    pub duplicate: bool,
    #[n(8)]
    pub tenant_id: Text,
}

/// A version of a graph of decisions.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DecisionRequirementsValue {
    /// Its names.
    #[n(0)]
    #[serde(flatten)]
    pub metadata: DecisionRequirementsMetadata,
    /// The file.
    #[n(1)]
    #[cbor(with = "super::shared_bytes")]
    #[serde(serialize_with = "super::base64")]
    pub resource: Arc<[u8]>,
}

/// A version of a decision.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DecisionValue {
    /// Id of the decision.
    #[n(0)]
    pub decision_id: Text,
    /// Name of the decision.
    #[n(1)]
    pub decision_name: Text,
    #[n(2)]
    pub version: i32,
    /// Version tag; empty when there is none.
    #[n(3)]
    pub version_tag: Text,
    /// This version.
    #[n(4)]
    pub decision_key: Key,
    /// Id of the graph that it belongs to.
    #[n(5)]
    pub decision_requirements_id: Text,
    /// The version of the graph.
    #[n(6)]
    pub decision_requirements_key: Key,
    /// Whether it is the same as the version before, so that no new version was made.
    #[n(7)]
    pub duplicate: bool,
    /// The deployment that made this version.
    #[n(8)]
    pub deployment_key: Key,
    #[n(9)]
    pub tenant_id: Text,
}

/// The evaluation of a decision: the wish with the decision and the variables, the fact with everything else too.
#[derive(Clone, Debug, Default, PartialEq, Encode, Decode, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DecisionEvaluationValue {
    /// The version of the decision; none to mean the newest with the id.
    #[n(0)]
    pub decision_key: Key,
    /// Id of the decision; empty to mean the one with the key.
    #[n(1)]
    pub decision_id: Text,
    /// Name of the decision.
    #[n(2)]
    pub decision_name: Text,
    /// Version of the decision.
    #[n(3)]
    pub decision_version: i32,
    /// Id of the graph.
    #[n(4)]
    pub decision_requirements_id: Text,
    /// The version of the graph.
    #[n(5)]
    pub decision_requirements_key: Key,
    /// The output as a JSON text; `null` when the evaluation failed.
    #[n(6)]
    pub decision_output: Text,
    /// What a client gave, as a JSON object.
    #[n(7)]
    #[serde(serialize_with = "super::json")]
    pub variables: Text,
    /// Of a business rule task: its process.
    #[n(8)]
    pub bpmn_process_id: Text,
    /// Of a business rule task: the version of its process.
    #[n(9)]
    pub process_definition_key: Key,
    /// Of a business rule task: its process instance.
    #[n(10)]
    pub process_instance_key: Key,
    /// Of a business rule task: its id.
    #[n(11)]
    pub element_id: Text,
    /// Of a business rule task: its instance.
    #[n(12)]
    pub element_instance_key: Key,
    /// All that was evaluated for it, in the order in which that ended.
    #[n(13)]
    pub evaluated_decisions: Vec<EvaluatedDecisionValue>,
    /// What went wrong; empty when nothing did.
    #[n(14)]
    pub evaluation_failure_message: Text,
    /// The decision that went wrong; empty when none did.
    #[n(15)]
    pub failed_decision_id: Text,
    #[n(16)]
    pub tenant_id: Text,
    /// Of a business rule task: the business id of its instance; empty when it has none.
    #[n(17)]
    #[cbor(skip_if = "str::is_empty")]
    pub business_id: Text,
}

/// One of the decisions that an evaluation went through.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EvaluatedDecisionValue {
    /// Id of the decision.
    #[n(0)]
    pub decision_id: Text,
    /// Key of the evaluation and the place in it, from 1.
    #[n(1)]
    pub decision_evaluation_instance_key: Text,
    /// Name of the decision.
    #[n(2)]
    pub decision_name: Text,
    /// The version of the decision; none for a business knowledge model.
    #[n(3)]
    pub decision_key: Key,
    /// Version; -1 for a business knowledge model.
    #[n(4)]
    pub decision_version: i32,
    /// Kind of its logic.
    #[n(5)]
    pub decision_type: Text,
    /// The output as a JSON text.
    #[n(6)]
    pub decision_output: Text,
    /// Inputs of a decision table.
    #[n(7)]
    pub evaluated_inputs: Vec<EvaluatedInputValue>,
    /// Rules that matched.
    #[n(8)]
    pub matched_rules: Vec<MatchedRuleValue>,
    #[n(9)]
    pub tenant_id: Text,
}

/// An input of a decision table.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EvaluatedInputValue {
    /// Id of the input.
    #[n(0)]
    pub input_id: Text,
    /// Name of the input.
    #[n(1)]
    pub input_name: Text,
    /// The value as a JSON text.
    #[n(2)]
    pub input_value: Text,
}

/// A rule that matched.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MatchedRuleValue {
    /// Id of the rule.
    #[n(0)]
    pub rule_id: Text,
    /// Place in the table, from 1.
    #[n(1)]
    pub rule_index: u32,
    /// What it gives.
    #[n(2)]
    pub evaluated_outputs: Vec<EvaluatedOutputValue>,
}

/// An output of a rule.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EvaluatedOutputValue {
    /// Id of the output.
    #[n(0)]
    pub output_id: Text,
    /// Name of the output.
    #[n(1)]
    pub output_name: Text,
    /// The value as a JSON text.
    #[n(2)]
    pub output_value: Text,
}

/// The evaluation of an expression: the wish with the expression and what it sees, the fact with the result too.
#[derive(Clone, Debug, Default, PartialEq, Encode, Decode, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExpressionValue {
    /// The expression with its `=`.
    #[n(0)]
    pub expression: Text,
    /// The result as a JSON text.
    #[n(1)]
    #[serde(serialize_with = "super::json")]
    pub result_value: Text,
    /// What went wrong on the way to it.
    #[n(2)]
    pub warnings: Vec<Text>,
    #[n(3)]
    pub tenant_id: Text,
    /// What a client gave, as a JSON object. It is seen before the variables of the scope.
    #[n(4)]
    #[serde(serialize_with = "super::json")]
    pub variables: Text,
    /// The element instance whose variables are seen; none for no variables but those.
    #[n(5)]
    pub scope_key: Key,
}
