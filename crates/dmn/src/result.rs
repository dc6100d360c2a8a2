//! What an evaluation reports.

use std::fmt;
use std::sync::Arc;

use feel::{Value, Warning};

/// The most evaluated decisions that are reported: business knowledge models can be called in loops. Further ones are left
/// out, except for the one that fails.
pub const MAXIMUM_EVALUATED_DECISIONS: usize = 1_000;

/// How an evaluation went.
#[derive(Clone, Debug)]
pub struct DecisionEvaluation {
    /// The output of the decision, or why there is none.
    pub result: Result<Value, DecisionFailure>,
    /// The decisions, and the business knowledge models that were called, in the order in which their evaluation ended. At
    /// most [`MAXIMUM_EVALUATED_DECISIONS`].
    pub evaluated_decisions: Vec<EvaluatedDecision>,
    /// Failed operations of expressions, which gave null (at most [`feel::WARNING_LIMIT`]). The tests of rules do not warn.
    pub warnings: Vec<Warning>,
    /// How many steps the expressions took.
    pub steps: u32,
}

/// Why a decision has no output.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct DecisionFailure {
    /// The decision, required decision or business knowledge model that failed.
    pub failed_decision_id: Arc<str>,
    /// The rule of its decision table, counted from 1, if a rule failed.
    pub failed_rule: Option<u32>,
    /// Which decision was to be evaluated and what happened.
    pub message: String,
}

impl fmt::Display for DecisionFailure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

/// The kind of a decision's logic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecisionType {
    /// A decision table.
    DecisionTable,
    /// A literal expression.
    LiteralExpression,
    /// A boxed context.
    Context,
    /// A boxed invocation.
    Invocation,
    /// A boxed list.
    List,
    /// A relation.
    Relation,
    /// Any other expression, or none.
    Unknown,
}

impl DecisionType {
    /// The name in records.
    pub fn name(self) -> &'static str {
        match self {
            DecisionType::DecisionTable => "DECISION_TABLE",
            DecisionType::LiteralExpression => "LITERAL_EXPRESSION",
            DecisionType::Context => "CONTEXT",
            DecisionType::Invocation => "INVOCATION",
            DecisionType::List => "LIST",
            DecisionType::Relation => "RELATION",
            DecisionType::Unknown => "UNKNOWN",
        }
    }
}

/// One evaluated decision.
#[derive(Clone, Debug)]
pub struct EvaluatedDecision {
    /// The id of the decision or business knowledge model.
    pub id: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
    /// What its logic is.
    pub decision_type: DecisionType,
    /// Its output; null if it failed.
    pub output: Value,
    /// The inputs of its decision table, up to the one that failed.
    pub inputs: Vec<EvaluatedInput>,
    /// The rules that matched, in their order; with the hit policy FIRST only the first.
    pub matched_rules: Vec<MatchedRule>,
}

/// An input of a decision table.
#[derive(Clone, Debug)]
pub struct EvaluatedInput {
    /// The id of the input; empty if it has none.
    pub id: Arc<str>,
    /// Its label, or the beginning of its expression.
    pub name: Arc<str>,
    /// Its value.
    pub value: Value,
}

/// A rule that matched.
#[derive(Clone, Debug)]
pub struct MatchedRule {
    /// The id of the rule; empty if it has none.
    pub id: Arc<str>,
    /// Its place in the table, counted from 1.
    pub index: u32,
    /// Its outputs.
    pub outputs: Vec<EvaluatedOutput>,
}

/// An output of a rule.
#[derive(Clone, Debug)]
pub struct EvaluatedOutput {
    /// The id of the output; empty if it has none.
    pub id: Arc<str>,
    /// Its label, or its name.
    pub name: Arc<str>,
    /// Its value.
    pub value: Value,
}
