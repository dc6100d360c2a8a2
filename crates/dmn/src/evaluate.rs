//! Evaluates decisions, first those that they require.

mod boxed;
mod function;
mod imported;
mod table;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use feel::{
    Budget, Context, Environment, Evaluation, EvaluationError, Exceeded, Expression, Scope, UnaryTests, Value,
    VariableText, WARNING_LIMIT, Warning, json,
};

use crate::model::{Boxed, BoxedKind, Decision, Element, Graph};
use crate::result::{
    DecisionEvaluation, DecisionFailure, DecisionType, EvaluatedDecision, EvaluatedInput, MAXIMUM_EVALUATED_DECISIONS,
    MatchedRule,
};
use crate::types::TypeReference;

/// One evaluation as its caller sees it, with the functions that it makes.
pub(crate) struct Session {
    graph: Arc<Graph>,
    /// What was evaluated so far. Functions are called one at a time; the lock is only there because values can be sent to
    /// other threads.
    log: Arc<Mutex<Vec<EvaluatedDecision>>>,
}

/// The results of decisions with one scope. Graphs are identified by their address, because models may be imported on
/// several ways.
#[derive(Default)]
pub(crate) struct Results(BTreeMap<(*const Graph, u32), Value>);

impl Results {
    fn get(&self, graph: &Arc<Graph>, decision: u32) -> Option<&Value> {
        self.0.get(&(Arc::as_ptr(graph), decision))
    }

    fn insert(&mut self, graph: &Arc<Graph>, decision: u32, value: Value) {
        self.0.insert((Arc::as_ptr(graph), decision), value);
    }
}

/// About the memory of a list, of a context and of each entry of a context, besides the values themselves.
const LIST_BYTES: usize = 64;
const CONTEXT_BYTES: usize = 128;
const ENTRY_BYTES: usize = 128;
/// About the memory of what is reported of a decision, besides inputs and outputs.
const REPORT_BYTES: usize = 256;

/// Boxed, because it is rare and would make every result large.
pub(crate) type Failure = Box<Failed>;

pub(crate) type Outcome = Result<Value, Failure>;

#[derive(Debug)]
pub(crate) enum Failed {
    /// A limit of the environment.
    Limit(EvaluationError),
    /// Anything else, with the rule of the decision table in which it happened, counted from 1.
    Message(String, Option<u32>),
}

impl Failed {
    fn message(text: String) -> Failure {
        Box::new(Failed::Message(text, None))
    }

    /// What happened, as the second half of a sentence.
    fn text(&self) -> String {
        match self {
            Failed::Limit(error) => {
                let text = error.to_string();
                text.strip_prefix("The ").map(|rest| format!("the {rest}")).unwrap_or(text)
            }
            Failed::Message(text, _) => text.clone(),
        }
    }
}

/// Names that are visible at a place, in front of those around it.
pub(crate) struct Frame<'a> {
    entries: Context,
    around: &'a dyn Scope,
}

impl<'a> Frame<'a> {
    fn new(around: &'a dyn Scope) -> Frame<'a> {
        Frame { entries: Context::new(), around }
    }
}

impl Scope for Frame<'_> {
    fn variable(&self, name: &str) -> Option<VariableText<'_>> {
        self.around.variable(name)
    }

    fn value(&self, name: &str) -> Option<Value> {
        self.entries.get(name).cloned().or_else(|| self.around.value(name))
    }
}

/// Charges the budget of the command before any work.
pub(crate) struct Evaluator<'a> {
    session: &'a Arc<Session>,
    environment: &'a Environment,
    budget: &'a Budget,
    warnings: Vec<Warning>,
}

/// What is reported of a decision table besides its output.
#[derive(Default)]
struct Details {
    inputs: Vec<EvaluatedInput>,
    matched_rules: Vec<MatchedRule>,
}

pub(crate) fn evaluate_decision(
    graph: &Arc<Graph>,
    decision_id: &str,
    scope: &dyn Scope,
    environment: &Environment,
    budget: &Budget,
) -> DecisionEvaluation {
    evaluate(graph, decision_id, environment, budget, |evaluator| match graph.elements.get(decision_id) {
        Some(Element::Decision(index)) => {
            let mut results = Results::default();
            evaluator.decisions(&[*index], &mut results, scope)?;
            Ok(results.get(graph, *index).cloned().unwrap_or_default())
        }
        _ => Err(Failed::message(format!("no decision found with id '{decision_id}'"))),
    })
}

pub(crate) fn evaluate_service(
    graph: &Arc<Graph>,
    service_id: &str,
    scope: &dyn Scope,
    environment: &Environment,
    budget: &Budget,
) -> DecisionEvaluation {
    evaluate(graph, service_id, environment, budget, |evaluator| {
        match graph.services.iter().find(|service| *service.id == *service_id) {
            Some(service) => {
                let arguments: Result<Vec<Value>, Failure> = service
                    .parameters
                    .iter()
                    .map(|name| Ok(evaluator.lookup(scope, name)?.unwrap_or_default()))
                    .collect();
                evaluator.service(service, &arguments?)
            }
            None => Err(Failed::message(format!("no decision service found with id '{service_id}'"))),
        }
    })
}

fn evaluate(
    graph: &Arc<Graph>,
    id: &str,
    environment: &Environment,
    budget: &Budget,
    run: impl FnOnce(&mut Evaluator) -> Outcome,
) -> DecisionEvaluation {
    let session = Arc::new(Session { graph: graph.clone(), log: Arc::default() });
    let steps = budget.steps_used();
    let mut evaluator = Evaluator::new(&session, environment, budget);
    let outcome = budget.nested(|| run(&mut evaluator));
    let (warnings, steps) = (std::mem::take(&mut evaluator.warnings), budget.steps_used() - steps);
    let evaluated_decisions = std::mem::take(&mut *session.log.lock().unwrap_or_else(PoisonError::into_inner));
    let result = outcome.map_err(|failure| DecisionFailure {
        // What failed is always the last that is reported.
        failed_decision_id: evaluated_decisions.last().map_or_else(|| Arc::from(id), |last| last.id.clone()),
        failed_rule: if let Failed::Message(_, rule) = &*failure { *rule } else { None },
        message: format!("Expected to evaluate decision '{id}', but {}", failure.text()),
    });
    DecisionEvaluation { result, evaluated_decisions, warnings, steps }
}

/// A limit that an expression or a value would exceed.
fn limit(error: EvaluationError) -> Failure {
    Box::new(match error {
        EvaluationError::AssertionFailed { .. } => Failed::Message(error.to_string(), None),
        limit => Failed::Limit(limit),
    })
}

impl From<Exceeded> for Failure {
    fn from(exceeded: Exceeded) -> Failure {
        limit(exceeded.into())
    }
}

impl<'a> Evaluator<'a> {
    pub(crate) fn new(session: &'a Arc<Session>, environment: &'a Environment, budget: &'a Budget) -> Evaluator<'a> {
        Evaluator { session, environment, budget, warnings: Vec::new() }
    }

    /// The value of a variable, wherever the scope has it.
    fn lookup(&self, scope: &dyn Scope, name: &str) -> Result<Option<Value>, Failure> {
        if let Some(value) = scope.value(name) {
            return Ok(Some(value));
        }
        let Some(text) = scope.variable(name) else { return Ok(None) };
        self.budget.value_of(&text).map(Some).map_err(limit)
    }

    fn spend(&mut self, steps: usize) -> Result<(), Failure> {
        Ok(self.budget.spend(steps)?)
    }

    /// Call before this many values are kept in lists.
    fn allocate(&mut self, values: usize) -> Result<(), Failure> {
        self.spend(values)?;
        Ok(self.budget.build(LIST_BYTES.saturating_add(values.saturating_mul(2 * size_of::<Value>())))?)
    }

    /// Call before this many entries of contexts are made.
    fn allocate_entries(&mut self, entries: usize) -> Result<(), Failure> {
        self.spend(entries)?;
        Ok(self.budget.build(CONTEXT_BYTES.saturating_add(entries.saturating_mul(ENTRY_BYTES)))?)
    }

    /// Goes a level deeper; [`Evaluator::leave`] comes back.
    fn enter(&mut self) -> Result<(), Failure> {
        self.spend(1)?;
        Ok(self.budget.enter(1)?)
    }

    fn leave(&mut self) {
        self.budget.leave(1);
    }

    /// Every value that may have grown is looked at: recursion must be able to follow those that contain it.
    fn shallow(&self, value: Value) -> Outcome {
        match value.depth() as usize > json::DEPTH_LIMIT {
            true => Err(limit(EvaluationError::ValueTooDeep(json::DEPTH_LIMIT as u32))),
            false => Ok(value),
        }
    }

    fn take(&mut self, outcome: Result<Evaluation, EvaluationError>) -> Result<Evaluation, Failure> {
        let evaluation = outcome.map_err(limit)?;
        // Every expression costs something, no matter how small.
        self.spend(1)?;
        Ok(evaluation)
    }

    fn expression(&mut self, expression: &Expression, scope: &dyn Scope) -> Outcome {
        let evaluation = expression.evaluate_within(scope, self.environment, self.budget);
        let evaluation = self.take(evaluation)?;
        self.warn(evaluation.warnings);
        Ok(evaluation.value)
    }

    fn tests(&mut self, tests: &UnaryTests, input: &Value, scope: &dyn Scope) -> Result<bool, Failure> {
        let evaluation = tests.evaluate_within(input, scope, self.environment, self.budget);
        Ok(self.take(evaluation)?.value.as_bool() == Some(true))
    }

    fn warn(&mut self, warnings: impl IntoIterator<Item = Warning>) {
        let room = WARNING_LIMIT.saturating_sub(self.warnings.len());
        self.warnings.extend(warnings.into_iter().take(room));
    }

    /// Evaluates decisions and what they require, each once, after what it requires itself. What has a result already is
    /// not evaluated. Requirements have no cycles.
    fn decisions(&mut self, wanted: &[u32], results: &mut Results, scope: &dyn Scope) -> Result<(), Failure> {
        let graph = self.session.graph.clone();
        let mut path: Vec<(u32, usize)> = Vec::new();
        for target in wanted {
            if results.get(&graph, *target).is_some() {
                continue;
            }
            path.push((*target, 0));
            while let Some((index, seen)) = path.last_mut() {
                let decision = &graph.decisions[*index as usize];
                match decision.decisions.get(*seen) {
                    Some(required) => {
                        *seen += 1;
                        if results.get(&graph, *required).is_none() {
                            path.push((*required, 0));
                        }
                    }
                    None => {
                        let index = *index;
                        let value = self.decision(decision, &graph, results, scope)?;
                        results.insert(&graph, index, value);
                        path.pop();
                    }
                }
            }
        }
        Ok(())
    }

    fn decision(
        &mut self,
        decision: &Decision,
        graph: &Arc<Graph>,
        results: &mut Results,
        scope: &dyn Scope,
    ) -> Outcome {
        let mut frame = Frame::new(scope);
        self.allocate_entries(decision.decisions.len() + decision.knowledge.len())?;
        for required in &decision.decisions {
            let value = results.get(graph, *required).cloned().unwrap_or_default();
            for name in &graph.decisions[*required as usize].result_names {
                frame.entries.put(name.clone(), value.clone());
            }
        }
        for knowledge in &decision.knowledge {
            let (name, function) = self.knowledge(*knowledge, scope)?;
            frame.entries.put(name, function);
        }
        self.imported(&decision.imported, &mut frame, results)?;
        let value = self.logic(&decision.id, &decision.name, decision.logic.as_ref(), &frame)?;
        self.conform(value, decision.result_type)
    }

    /// Evaluates the logic of a decision or business knowledge model, and reports it.
    fn logic(&mut self, id: &Arc<str>, name: &Arc<str>, logic: Option<&Boxed>, scope: &dyn Scope) -> Outcome {
        let mut details = Details::default();
        self.budget.build(REPORT_BYTES)?;
        let outcome = match logic {
            None => Ok(Value::Null),
            Some(Boxed { kind: BoxedKind::Table(table), .. }) => self.table(table, scope, Some(&mut details)),
            Some(logic) => self.boxed(logic, scope),
        };
        let outcome = outcome.and_then(|value| self.shallow(value));
        let evaluated = EvaluatedDecision {
            id: id.clone(),
            name: name.clone(),
            decision_type: logic.map_or(DecisionType::Unknown, |logic| decision_type(&logic.kind)),
            output: outcome.as_ref().cloned().unwrap_or_default(),
            inputs: details.inputs,
            matched_rules: details.matched_rules,
        };
        let mut log = self.session.log.lock().unwrap_or_else(PoisonError::into_inner);
        if log.len() == MAXIMUM_EVALUATED_DECISIONS && outcome.is_err() {
            log.pop();
        }
        if log.len() < MAXIMUM_EVALUATED_DECISIONS {
            log.push(evaluated);
        }
        outcome
    }

    fn conform(&mut self, value: Value, item: TypeReference) -> Outcome {
        if item == TypeReference::Any || value.is_null() {
            return Ok(value);
        }
        let types = &self.session.graph.types;
        let conformed = self.budget.counted(|steps| types.conform(&value, item, steps))?;
        match conformed {
            Some(value) => Ok(value),
            None => Err(Failed::message(format!("expected '{}' but found '{value}'", types.name(item)))),
        }
    }
}

fn decision_type(logic: &BoxedKind) -> DecisionType {
    match logic {
        BoxedKind::Table(_) => DecisionType::DecisionTable,
        BoxedKind::Literal(_) => DecisionType::LiteralExpression,
        BoxedKind::Context(_) => DecisionType::Context,
        BoxedKind::Invocation(_) => DecisionType::Invocation,
        BoxedKind::List(_) => DecisionType::List,
        BoxedKind::Relation(_) => DecisionType::Relation,
        _ => DecisionType::Unknown,
    }
}
