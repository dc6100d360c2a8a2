//! FEEL, the expression language of conditions, mappings and decisions, in the dialect of Camunda.
//!
//! An [`Expression`] is compiled once and evaluated often, against variables that stay JSON text until they are needed.
//! A failed operation gives null and a [`Warning`]; only the limits of an [`Environment`] and `assert` end an
//! evaluation with an error. The crate is pure: the clock is given, nothing else is read.

#![deny(clippy::disallowed_methods, clippy::iter_over_hash_type)]

mod budget;
pub mod calendar;
mod decimal;
mod defined_type;
mod environment;
mod evaluate;
mod functions;
pub mod json;
mod lexer;
mod names;
mod node;
mod number;
mod parser;
mod pattern;
mod simple_type;
mod temporal;
mod unary;
pub mod unicode;
mod value;
pub mod zone;

use std::sync::Arc;

pub use budget::{Budget, Exceeded, VariableText};
pub use chance::seed_of;
pub use decimal::Decimal;
pub use defined_type::DefinedType;
pub use environment::{
    Environment, Evaluation, EvaluationError, WARNING_LIMIT, WARNING_LIMIT_BYTES, Warning, WarningKind,
};
pub use evaluate::{Function, NativeFunction, Scope};
pub use json::JsonError;
pub use names::Names;
pub use number::Number;
pub use parser::{LENGTH_LIMIT_BYTES, NESTING_LIMIT, ParseError};
pub use simple_type::SimpleType;
pub use temporal::{DateTime, Time};
pub use unary::{ConstantTest, INPUT_NAME, UnaryTests};
pub use value::{Bound, Context, List, Range, Value};

/// How many steps an expression may take that is evaluated while a file is read: there can be tens of thousands in one.
pub const CONSTANT_STEP_LIMIT: u32 = 1_000;

/// A compiled expression. Cloning shares it.
#[derive(Clone)]
pub struct Expression {
    compiled: Arc<Compiled>,
}

struct Compiled {
    source: Arc<evaluate::Source>,
    root: node::Node,
    uses_environment: bool,
    objection: Option<Box<ParseError>>,
}

impl Expression {
    /// Compiles an expression, given without the `=` that marks it in a model.
    pub fn parse(text: &str) -> Result<Expression, ParseError> {
        Expression::parse_with(text, &Names::default())
    }

    /// Compiles an expression; the names are recognised in it without backticks, whatever they contain.
    pub fn parse_with(text: &str, names: &Names) -> Result<Expression, ParseError> {
        let parsed = parser::parse(text, names)?;
        let compiled = Compiled {
            source: Arc::new(parsed.source),
            root: parsed.root,
            uses_environment: parsed.uses_environment,
            objection: parsed.objection,
        };
        Ok(Expression { compiled: Arc::new(compiled) })
    }

    /// Compiles an expression, and refuses what there is an [objection](Expression::objection) to.
    pub fn parse_strictly(text: &str) -> Result<Expression, ParseError> {
        Expression::parse(text)?.unless_objected()
    }

    /// The expression, unless there is an [objection](Expression::objection).
    pub fn unless_objected(self) -> Result<Expression, ParseError> {
        match self.objection() {
            Some(objection) => Err(objection.clone()),
            None => Ok(self),
        }
    }

    /// Why nobody should write this though it can be compiled: a slip such as `x not in [1]`, in which `x not` is a name, and
    /// null. What was written before this was looked for goes on meaning what it meant.
    pub fn objection(&self) -> Option<&ParseError> {
        self.compiled.objection.as_deref()
    }

    /// The source text.
    pub fn text(&self) -> &str {
        &self.compiled.source.text
    }

    /// The names of the variables that an evaluation may ask the scope for. In a path like `customer.tier` that is
    /// the first name. Names inside a filter count, though they may turn out to be entries of the filtered items.
    pub fn variables(&self) -> &[Arc<str>] {
        &self.compiled.source.variables
    }

    pub(crate) fn root(&self) -> &node::Node {
        &self.compiled.root
    }

    /// Evaluates the expression with a budget of its own. What fails inside gives null and a warning; only limits and
    /// `assert` are errors.
    pub fn evaluate(&self, scope: &dyn Scope, environment: &Environment) -> Result<Evaluation, EvaluationError> {
        self.evaluate_within(scope, environment, &Budget::of(environment))
    }

    /// Evaluates the expression with the rest of a budget.
    pub fn evaluate_within(
        &self,
        scope: &dyn Scope,
        environment: &Environment,
        budget: &Budget,
    ) -> Result<Evaluation, EvaluationError> {
        let compiled = &*self.compiled;
        let root = evaluate::Root::Expression(&compiled.root);
        evaluate::evaluate(&compiled.source, root, scope, environment, budget).map_err(|error| *error)
    }

    /// The value of an expression that refers to no variable and no clock; `None` also if it takes more than
    /// [`CONSTANT_STEP_LIMIT`].
    pub fn constant(&self) -> Option<Value> {
        if !self.variables().is_empty() || self.compiled.uses_environment {
            return None;
        }
        let environment = Environment { step_limit: CONSTANT_STEP_LIMIT, ..Environment::at(0) };
        self.evaluate(&(), &environment).ok().map(|evaluation| evaluation.value)
    }
}

impl std::fmt::Debug for Expression {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Expression({:?})", self.text())
    }
}

/// Equal texts compile to equal expressions.
impl PartialEq for Expression {
    fn eq(&self, other: &Expression) -> bool {
        self.text() == other.text()
    }
}

impl Eq for Expression {}
