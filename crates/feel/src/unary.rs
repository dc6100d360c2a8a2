//! Unary tests: the conditions on one input value in the cells of decision tables.

use std::sync::Arc;

use crate::budget::Budget;
use crate::environment::{Environment, Evaluation, EvaluationError};
use crate::evaluate::{self, Root, Scope, Source};
use crate::names::Names;
use crate::node::{Comparison, Node, Test};
use crate::parser::{self, ParseError};
use crate::value::{Bound, Range, Value};

/// The name of the input value besides `?`, unless another is given.
pub const INPUT_NAME: &str = "cellInput";

/// Compiled unary tests such as `"gold", "silver"`, `> 3`, `[1..5]`, `not(null)`, `ends with(?, "x")` or `-`.
/// Cloning shares them.
#[derive(Clone)]
pub struct UnaryTests {
    compiled: Arc<Compiled>,
}

struct Compiled {
    source: Arc<Source>,
    tests: Vec<Test>,
    objection: Option<Box<ParseError>>,
}

/// What a single test compares the input with, when that is written in the text.
#[derive(Clone, Debug)]
pub enum ConstantTest {
    /// `-`: every input passes.
    Any,
    /// The input equals the value.
    Equal(Value),
    /// The input lies within the range; an end that is null is none.
    Within(Range),
}

impl UnaryTests {
    /// Compiles unary tests. The input value is called `?` and `cellInput`.
    pub fn parse(text: &str) -> Result<UnaryTests, ParseError> {
        UnaryTests::parse_with(text, INPUT_NAME, &Names::default())
    }

    /// Compiles unary tests with a name for the input value besides `?`, and names that are recognised without
    /// backticks.
    pub fn parse_with(text: &str, input_name: &str, names: &Names) -> Result<UnaryTests, ParseError> {
        let parsed = parser::parse_unary_tests(text, input_name, names)?;
        let compiled = Compiled { source: Arc::new(parsed.source), tests: parsed.root, objection: parsed.objection };
        Ok(UnaryTests { compiled: Arc::new(compiled) })
    }

    /// The tests, unless there is an objection as to an [expression](crate::Expression::objection).
    pub fn unless_objected(self) -> Result<UnaryTests, ParseError> {
        match &self.compiled.objection {
            Some(objection) => Err((**objection).clone()),
            None => Ok(self),
        }
    }

    /// The source text.
    pub fn text(&self) -> &str {
        &self.compiled.source.text
    }

    /// The names of the variables that an evaluation may ask the scope for.
    pub fn variables(&self) -> &[Arc<str>] {
        &self.compiled.source.variables
    }

    /// Whether the input passes: true, false, or null where that is unknown, for instance because it cannot be compared. It
    /// has a budget of its own.
    pub fn evaluate(
        &self,
        input: &Value,
        scope: &dyn Scope,
        environment: &Environment,
    ) -> Result<Evaluation, EvaluationError> {
        self.evaluate_within(input, scope, environment, &Budget::of(environment))
    }

    /// The same with the rest of a budget.
    pub fn evaluate_within(
        &self,
        input: &Value,
        scope: &dyn Scope,
        environment: &Environment,
        budget: &Budget,
    ) -> Result<Evaluation, EvaluationError> {
        let root = Root::Tests(&self.compiled.tests, input);
        evaluate::evaluate(&self.compiled.source, root, scope, environment, budget).map_err(|error| *error)
    }

    /// The tests, one of which the input must pass, if each of them compares it only with constants: this is what an index
    /// over many rules can be made of. `None` if any of them needs an evaluation.
    pub fn constants(&self) -> Option<Vec<ConstantTest>> {
        self.compiled.tests.iter().map(constant).collect()
    }
}

fn constant(test: &Test) -> Option<ConstantTest> {
    let end = |value: &Value, included| Bound { value: value.clone(), included };
    let open = || Bound { value: Value::Null, included: false };
    match test {
        Test::Any => Some(ConstantTest::Any),
        Test::Value {
            node: Node::Constant(value @ (Value::Boolean(_) | Value::Number(_) | Value::String(_))), ..
        } => Some(ConstantTest::Equal(value.clone())),
        Test::Value { node: Node::Range(range), .. } => match (&range.start, &range.end) {
            (Node::Constant(start), Some(Node::Constant(finish))) if start.compare(finish).is_some() => {
                let (start, end) = (end(start, range.start_included), end(finish, range.end_included));
                Some(ConstantTest::Within(Range { start, end, is_comparison: false }))
            }
            _ => None,
        },
        // Where the constant has no order, the outcome is unknown and not merely false.
        Test::Compare(comparison, Node::Constant(value)) if value.compare(value).is_some() => {
            let range = |start, end| Some(ConstantTest::Within(Range { start, end, is_comparison: true }));
            match comparison {
                Comparison::Equal => Some(ConstantTest::Equal(value.clone())),
                Comparison::NotEqual => None,
                Comparison::Less => range(open(), end(value, false)),
                Comparison::LessEqual => range(open(), end(value, true)),
                Comparison::Greater => range(end(value, false), open()),
                Comparison::GreaterEqual => range(end(value, true), open()),
            }
        }
        _ => None,
    }
}

impl std::fmt::Debug for UnaryTests {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "UnaryTests({:?})", self.text())
    }
}
