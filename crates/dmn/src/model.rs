//! The compiled form of a file: who requires what, and expressions that are ready to be evaluated.

use std::collections::BTreeMap;
use std::sync::Arc;

use feel::{ConstantTest, Expression, Names, UnaryTests, Value};

use crate::index::RuleIndex;
use crate::types::{TypeReference, Types};

pub(crate) struct Graph {
    pub(crate) id: Arc<str>,
    pub(crate) name: Arc<str>,
    pub(crate) namespace: Arc<str>,
    pub(crate) decisions: Vec<Decision>,
    /// What others can require.
    pub(crate) elements: BTreeMap<Arc<str>, Element>,
    pub(crate) models: Vec<KnowledgeModel>,
    pub(crate) services: Vec<DecisionService>,
    pub(crate) inputs: Vec<InputData>,
    pub(crate) types: Arc<Types>,
    /// The names that expressions recognise.
    pub(crate) names: Names,
}

/// An element that others can require.
#[derive(Clone, Copy)]
pub(crate) enum Element {
    Decision(u32),
    Input(u32),
    Knowledge(Knowledge),
}

/// An element of another graph.
#[derive(Clone)]
pub(crate) struct ImportedElement {
    /// The name of the import, under which it is known; it can be empty.
    pub(crate) import: Arc<str>,
    pub(crate) graph: Arc<Graph>,
    pub(crate) element: Element,
}

pub(crate) struct InputData {
    pub(crate) name: Arc<str>,
    pub(crate) item: TypeReference,
}

/// What a decision or a business knowledge model can call: an index into the models or services of the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Knowledge {
    Model(u32),
    Service(u32),
}

pub(crate) struct Decision {
    pub(crate) id: Arc<str>,
    pub(crate) name: Arc<str>,
    /// What its result is called by the decisions that require it.
    pub(crate) result_names: Vec<Arc<str>>,
    pub(crate) result_type: TypeReference,
    pub(crate) version_tag: Option<Arc<str>>,
    /// `None` gives null.
    pub(crate) logic: Option<Boxed>,
    pub(crate) decisions: Vec<u32>,
    pub(crate) knowledge: Vec<Knowledge>,
    pub(crate) imported: Vec<ImportedElement>,
}

pub(crate) struct KnowledgeModel {
    pub(crate) id: Arc<str>,
    pub(crate) name: Arc<str>,
    pub(crate) result_type: TypeReference,
    pub(crate) parameters: Arc<[Arc<str>]>,
    pub(crate) parameter_types: Vec<TypeReference>,
    /// `None` gives null.
    pub(crate) logic: Option<Boxed>,
    /// The names that the logic takes from around it.
    pub(crate) free_names: Vec<Arc<str>>,
    pub(crate) knowledge: Vec<Knowledge>,
    pub(crate) imported: Vec<ImportedElement>,
}

/// A function over decisions: some are given, others are evaluated with what is given.
pub(crate) struct DecisionService {
    pub(crate) id: Arc<str>,
    pub(crate) name: Arc<str>,
    pub(crate) result_type: TypeReference,
    pub(crate) outputs: Vec<u32>,
    pub(crate) input_decisions: Vec<u32>,
    /// First those of the input data, then those of the input decisions.
    pub(crate) parameters: Arc<[Arc<str>]>,
    pub(crate) parameter_types: Vec<TypeReference>,
}

pub(crate) struct Boxed {
    pub(crate) kind: BoxedKind,
    pub(crate) item: TypeReference,
}

pub(crate) enum BoxedKind {
    Literal(Expression),
    Table(Box<DecisionTable>),
    Context(Box<BoxedContext>),
    Invocation(Box<Invocation>),
    List(Vec<Boxed>),
    Relation(Box<Relation>),
    Function(Arc<FunctionDefinition>),
    Conditional(Box<[Boxed; 3]>),
    Filter(Box<Filter>),
    For(Box<Iteration>),
    Some(Box<Iteration>),
    Every(Box<Iteration>),
}

pub(crate) struct BoxedContext {
    pub(crate) entries: Vec<(Arc<str>, TypeReference, Boxed)>,
    /// The last entry without a name is the result.
    pub(crate) result: Option<Boxed>,
}

pub(crate) struct Invocation {
    pub(crate) target: Target,
    pub(crate) bindings: Vec<(Arc<str>, Boxed)>,
}

pub(crate) enum Target {
    Required(Knowledge),
    /// Gives a function.
    Expression(Expression),
}

pub(crate) struct Relation {
    pub(crate) columns: Vec<Arc<str>>,
    pub(crate) rows: Vec<Vec<Boxed>>,
}

pub(crate) struct FunctionDefinition {
    pub(crate) parameters: Arc<[Arc<str>]>,
    pub(crate) parameter_types: Vec<TypeReference>,
    pub(crate) body: Boxed,
    pub(crate) free_names: Vec<Arc<str>>,
}

pub(crate) struct Filter {
    pub(crate) list: Boxed,
    pub(crate) condition: Boxed,
}

pub(crate) struct Iteration {
    pub(crate) variable: Arc<str>,
    pub(crate) list: Boxed,
    pub(crate) body: Boxed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HitPolicy {
    Unique,
    First,
    Priority,
    Any,
    Collect(Option<Aggregation>),
    RuleOrder,
    OutputOrder,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Aggregation {
    Sum,
    Minimum,
    Maximum,
    Count,
}

/// Every rule has as many tests as there are inputs and as many results as there are outputs.
pub(crate) struct DecisionTable {
    pub(crate) hit_policy: HitPolicy,
    pub(crate) inputs: Vec<TableInput>,
    pub(crate) outputs: Vec<TableOutput>,
    pub(crate) rules: Vec<Rule>,
    pub(crate) index: RuleIndex,
}

pub(crate) struct TableInput {
    pub(crate) id: Arc<str>,
    /// As it is reported: the label, or the beginning of the expression.
    pub(crate) name: Arc<str>,
    pub(crate) expression: Expression,
}

pub(crate) struct TableOutput {
    pub(crate) id: Arc<str>,
    /// The name in a result of several outputs.
    pub(crate) name: Arc<str>,
    /// As it is reported: the label or the name.
    pub(crate) shown_name: Arc<str>,
    /// The output values, highest priority first.
    pub(crate) priorities: Vec<Value>,
    pub(crate) default: Option<Expression>,
}

pub(crate) struct Rule {
    pub(crate) id: Arc<str>,
    pub(crate) tests: Vec<InputTest>,
    pub(crate) results: Vec<RuleResult>,
}

pub(crate) enum InputTest {
    /// Every input passes.
    Any,
    /// One of these comparisons must hold.
    Constants(Box<[ConstantTest]>),
    /// Has to be evaluated.
    Tests(UnaryTests),
}

pub(crate) enum RuleResult {
    Constant(Value),
    Expression(Expression),
}
