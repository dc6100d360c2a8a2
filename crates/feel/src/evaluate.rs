//! Walks the compiled tree.

mod access;
mod clauses;
mod filter;
mod function;
mod operators;
mod tests;

use std::sync::Arc;

use smallvec::SmallVec;

use crate::budget::{Budget, VariableText};
use crate::environment::{
    Environment, Evaluation, EvaluationError, WARNING_LIMIT, WARNING_LIMIT_BYTES, Warning, WarningKind,
};
use crate::functions::builtin::Builtin;
use crate::node::{Call, Node, Target, Test};
use crate::number::Number;
use crate::pattern::{self, Pattern};
use crate::value::{
    Bound, CONTEXT_BYTES, Context, DEPTH_LIMIT, ENTRY_BYTES, LIST_BYTES, Nodes, Range, STRING_BYTES, Value,
};
use chance::seed_of;

pub use function::{Function, NativeFunction};
pub(crate) use function::{Home, Source};

/// Where an expression finds the variables.
pub trait Scope {
    /// The JSON text of a visible variable, `None` if there is none of this name. The text is valid JSON.
    fn variable(&self, name: &str) -> Option<VariableText<'_>>;

    /// The value of a visible variable that is kept as a value and not as text. Asked first; where it gives `None`,
    /// [`Scope::variable`] is asked.
    fn value(&self, _name: &str) -> Option<Value> {
        None
    }
}

/// A scope without variables.
impl Scope for () {
    fn variable(&self, _: &str) -> Option<VariableText<'_>> {
        None
    }
}

/// The entries are the variables.
impl Scope for Context {
    fn variable(&self, _: &str) -> Option<VariableText<'_>> {
        None
    }

    fn value(&self, name: &str) -> Option<Value> {
        self.get(name).cloned()
    }
}

/// Boxed, because it is rare and would make every result large.
pub(crate) type Failure = Box<EvaluationError>;

pub(crate) type Outcome = Result<Value, Failure>;

/// A variable during an evaluation.
enum Variable<'a> {
    Unseen,
    Missing,
    /// Its text, and how many bytes of it have been searched for members.
    Text(VariableText<'a>, usize),
    Read(Value),
}

pub(crate) struct Evaluator<'a> {
    source: &'a Arc<Source>,
    scope: &'a dyn Scope,
    pub(crate) environment: &'a Environment,
    variables: SmallVec<[Variable<'a>; 4]>,
    stack: Vec<Value>,
    /// What is charged before any work.
    pub(crate) budget: &'a Budget,
    warnings: Vec<Warning>,
    /// Patterns compiled so far, with their flags.
    patterns: Vec<CompiledPattern>,
    /// Where the functions that this evaluation defines come from; `None` before the first.
    home: Option<Arc<Home>>,
}

/// A pattern, its flags, and what came of it.
type CompiledPattern = (String, String, Result<Arc<Pattern>, &'static str>);

/// What an operator works on.
enum Operand {
    Number(Number),
    Other(Value),
}

impl Operand {
    fn value(self) -> Value {
        match self {
            Operand::Number(number) => Value::Number(number),
            Operand::Other(value) => value,
        }
    }
}

/// What is evaluated.
pub(crate) enum Root<'a> {
    Expression(&'a Node),
    /// Unary tests and their input value.
    Tests(&'a [Test], &'a Value),
}

pub(crate) fn evaluate(
    source: &Arc<Source>,
    root: Root<'_>,
    scope: &dyn Scope,
    environment: &Environment,
    budget: &Budget,
) -> Result<Evaluation, Failure> {
    budget.nested(|| {
        let before = (budget.steps_used(), budget.bytes_built());
        let mut evaluator = Evaluator::new(source, scope, environment, budget);
        evaluator.variables.resize_with(source.variables.len(), || Variable::Unseen);
        let value = match root {
            Root::Expression(node) => evaluator.evaluate(node)?,
            Root::Tests(tests, input) => evaluator.unary_tests(tests, input.clone())?,
        };
        evaluator.finish(value, before)
    })
}

impl<'a> Evaluator<'a> {
    #[inline]
    fn new(
        source: &'a Arc<Source>,
        scope: &'a dyn Scope,
        environment: &'a Environment,
        budget: &'a Budget,
    ) -> Evaluator<'a> {
        Evaluator {
            source,
            scope,
            environment,
            variables: SmallVec::new(),
            stack: Vec::new(),
            budget,
            warnings: Vec::new(),
            patterns: Vec::new(),
            home: None,
        }
    }

    fn finish(&mut self, value: Value, before: (u32, usize)) -> Result<Evaluation, Failure> {
        let limit = self.environment.result_limit_bytes;
        let fits = match &value {
            Value::List(_) | Value::Context(_) => {
                self.counted(|steps| value.fits(&mut limit.clone(), &mut Nodes::of(steps)))?
            }
            value => value.fits(&mut limit.clone(), &mut Nodes::of(&mut usize::MAX.clone())),
        };
        if !fits {
            return Err(EvaluationError::ResultTooLarge(limit).into());
        }
        if self.home.is_some() {
            self.seal()?;
        }
        let warnings = std::mem::take(&mut self.warnings);
        let (steps, memory_bytes) = (self.budget.steps_used() - before.0, self.budget.bytes_built() - before.1);
        Ok(Evaluation { value, warnings, steps, memory_bytes })
    }

    /// Counts work; every node and every item of a loop costs a step.
    #[inline]
    pub(crate) fn spend(&mut self, steps: usize) -> Result<(), Failure> {
        Ok(self.budget.spend(steps)?)
    }

    /// To be called before a text of this length is looked at byte by byte.
    pub(crate) fn scan(&mut self, bytes: usize) -> Result<(), Failure> {
        self.spend(bytes / 16)
    }

    /// Does work that takes its steps from the rest of the budget.
    fn counted<T>(&mut self, work: impl FnOnce(&mut usize) -> T) -> Result<T, Failure> {
        Ok(self.budget.counted(work)?)
    }

    /// Whether both are equal; `None` if they cannot be compared.
    pub(crate) fn equal(&mut self, left: &Value, right: &Value) -> Result<Option<bool>, Failure> {
        match (left, right) {
            (Value::String(a), Value::String(b)) if a.len().min(b.len()) < 64 => Ok(Some(a == b)),
            (Value::List(_) | Value::Context(_) | Value::Range(_), _) => {
                self.counted(|budget| left.equals(right, budget))
            }
            _ => {
                self.spend_on_texts(left, right)?;
                Ok(left.equals(right, &mut usize::MAX.clone()))
            }
        }
    }

    /// Comparing long texts takes time in proportion to the shorter one.
    pub(crate) fn spend_on_texts(&mut self, left: &Value, right: &Value) -> Result<(), Failure> {
        match (left, right) {
            (Value::String(a), Value::String(b)) if a.len() >= 64 => self.spend(a.len().min(b.len()) / 64),
            _ => Ok(()),
        }
    }

    /// Counts memory before it is taken. Freed memory is not given back, so this bounds the time too.
    #[inline]
    pub(crate) fn allocate(&mut self, bytes: usize) -> Result<(), Failure> {
        Ok(self.budget.build(bytes)?)
    }

    /// To be called before a list of this length is built.
    pub(crate) fn allocate_list(&mut self, items: usize) -> Result<(), Failure> {
        if items > self.environment.list_limit_items {
            return Err(self.list_too_long());
        }
        self.spend(items)?;
        self.allocate(LIST_BYTES.saturating_add(items.saturating_mul(size_of::<Value>())))
    }

    /// To be called before an item is added to a list that grows from this length.
    #[inline]
    pub(crate) fn lengthen_list(&mut self, length: usize) -> Result<(), Failure> {
        if length >= self.environment.list_limit_items {
            return Err(self.list_too_long());
        }
        self.allocate(2 * size_of::<Value>())
    }

    /// Call before a context with this many entries is built.
    pub(crate) fn allocate_context(&mut self, entries: usize) -> Result<(), Failure> {
        self.allocate(CONTEXT_BYTES.saturating_add(entries.saturating_mul(ENTRY_BYTES)))
    }

    #[cold]
    fn list_too_long(&self) -> Failure {
        EvaluationError::ListTooLong(self.environment.list_limit_items).into()
    }

    /// To be called before a string of this length is built.
    pub(crate) fn allocate_string(&mut self, bytes: usize) -> Result<(), Failure> {
        if bytes > self.environment.string_limit_bytes {
            return Err(EvaluationError::StringTooLong(self.environment.string_limit_bytes).into());
        }
        // It is written, and then moved to where it stays.
        self.spend(3)?;
        self.allocate(bytes.saturating_add(STRING_BYTES))
    }

    /// Call before this many bytes are added to a string of this length.
    pub(crate) fn lengthen_string(&mut self, length: usize, bytes: usize) -> Result<(), Failure> {
        if length.saturating_add(bytes) > self.environment.string_limit_bytes {
            return Err(EvaluationError::StringTooLong(self.environment.string_limit_bytes).into());
        }
        self.spend(1)?;
        // A growing text is moved occasionally to where there is room, and in the end to its final place.
        self.allocate(bytes.saturating_mul(2))
    }

    /// The text that the work produces; it ends soon after the given limit.
    pub(crate) fn written(&mut self, work: impl FnOnce(&mut String, usize)) -> Outcome {
        self.allocate(STRING_BYTES)?;
        let mut out = String::new();
        let limit = self.environment.string_limit_bytes;
        match self.budget.write(&mut out, limit, work) {
            Ok(()) => Ok(Value::string(out)),
            Err(EvaluationError::ResultTooLarge(limit)) => Err(EvaluationError::StringTooLong(limit).into()),
            Err(other) => Err(other.into()),
        }
    }

    #[cold]
    pub(crate) fn warn(&mut self, kind: WarningKind, message: impl FnOnce() -> String) -> Value {
        if self.warnings.len() < WARNING_LIMIT {
            self.warnings.push(Warning { kind, message: shortened(message()) });
        }
        Value::Null
    }

    /// A regular expression, compiled once for the evaluation; `None` if it is invalid.
    pub(crate) fn pattern(
        &mut self,
        pattern: &str,
        flags: &str,
    ) -> Result<Result<Arc<Pattern>, &'static str>, Failure> {
        const KEPT: usize = 8;
        if let Some((_, _, regex)) = self.patterns.iter().find(|(known, used, _)| known == pattern && used == flags) {
            return Ok(regex.clone());
        }
        // Compiling takes about as long as this many steps.
        self.spend(1000 + pattern.len() * 50)?;
        let regex = pattern::compile(pattern, flags).map(Arc::new);
        if self.patterns.len() == KEPT {
            drop(self.patterns.remove(0));
        }
        self.patterns.push((pattern.to_owned(), flags.to_owned(), regex.clone()));
        Ok(regex)
    }

    /// The next random number; they follow from the seed and the time.
    pub(crate) fn random(&mut self) -> u64 {
        let number = self.budget.next_random();
        seed_of(&[self.environment.seed, self.environment.now_milliseconds.cast_unsigned(), number])
    }

    pub(crate) fn assertion_failed(&self, message: String) -> Failure {
        EvaluationError::AssertionFailed { expression: self.source.text.to_string(), message }.into()
    }

    #[inline]
    pub(crate) fn evaluate(&mut self, node: &Node) -> Outcome {
        match node {
            Node::Constant(value) => Ok(value.duplicate()),
            Node::Local(position) => Ok(self.stack[*position as usize].duplicate()),
            // What is not nested cannot nest too deeply.
            Node::Variable(index) => {
                self.spend(1)?;
                self.variable(*index as usize)
            }
            Node::VariablePath(index, path) => {
                self.spend(1)?;
                self.variable_path(*index as usize, path)
            }
            node => self.evaluate_nested(node),
        }
    }

    fn evaluate_nested(&mut self, node: &Node) -> Outcome {
        self.spend(1)?;
        self.enter()?;
        let outcome = self.evaluate_inner(node);
        self.budget.leave(1);
        if let Ok(value @ (Value::List(_) | Value::Context(_) | Value::Range(_) | Value::Function(_))) = &outcome
            && value.depth() > DEPTH_LIMIT
        {
            return Err(EvaluationError::ValueTooDeep(DEPTH_LIMIT).into());
        }
        outcome
    }

    /// Counts a level of recursion; the caller counts back.
    #[inline]
    fn enter(&mut self) -> Result<(), Failure> {
        Ok(self.budget.enter(1)?)
    }

    /// Takes the topmost value off the stack.
    #[inline]
    fn forget(&mut self) {
        let value = self.stack.pop();
        // Most values own nothing, and need no call to be dropped.
        if let None | Some(Value::Null | Value::Boolean(_) | Value::Number(_)) = &value {
            std::mem::forget(value);
        }
    }

    /// Like [`Self::evaluate`], but numbers come as such: they are neither cloned nor dropped as values.
    #[inline]
    fn operand(&mut self, node: &Node) -> Result<Operand, Failure> {
        match node {
            Node::Constant(Value::Number(number)) => Ok(Operand::Number(*number)),
            Node::Local(position) if let Value::Number(number) = &self.stack[*position as usize] => {
                Ok(Operand::Number(*number))
            }
            Node::Dynamic(dynamic) if let Some(Value::Number(number)) = self.entry(dynamic) => {
                let number = *number;
                self.spend(1)?;
                Ok(Operand::Number(number))
            }
            node => Ok(match self.evaluate(node)? {
                Value::Number(number) => Operand::Number(number),
                value => Operand::Other(value),
            }),
        }
    }

    /// One function per kind of node, so that this frame, which recursion repeats, stays small.
    fn evaluate_inner(&mut self, node: &Node) -> Outcome {
        match node {
            Node::Constant(_) | Node::Local(_) | Node::Variable(_) | Node::VariablePath(..) => self.evaluate(node),
            Node::VariableOrBuiltin(index, builtin) => self.variable_or_builtin(*index as usize, builtin),
            Node::Dynamic(dynamic) => self.dynamic(dynamic),
            Node::Path(base, name) => self.path(base, name),
            Node::Filter(filter) => self.filter(filter),
            Node::List(items) => self.list(items),
            Node::Context(entries) => self.context(entries),
            Node::Range(range) => self.range(range),
            Node::If(parts) => self.if_clause(parts),
            Node::For(node) => self.for_clause(node),
            Node::Some(node) => self.quantified(node, true),
            Node::Every(node) => self.quantified(node, false),
            Node::Function(node) => self.function(node),
            Node::Call(call) => self.call(call),
            Node::In(parts) => self.in_tests(&parts.0, &parts.1),
            Node::Test(test) => Ok(self.test(test)?.map_or(Value::Null, Value::Boolean)),
            Node::Between(parts) => self.between(parts),
            Node::InstanceOf(parts) => {
                let value = self.evaluate(&parts.0)?;
                self.counted(|budget| Value::Boolean(parts.1.matches(&value, budget)))
            }
            Node::Arithmetic(parts) => self.arithmetic_chain(&parts.0, &parts.1),
            Node::Comparison(comparison, sides) => self.comparison(*comparison, &sides.0, &sides.1),
            Node::And(operands) => self.connective(operands, false),
            Node::Or(operands) => self.connective(operands, true),
            Node::Negate(operand) => self.negate(operand),
        }
    }

    #[inline(never)]
    fn list(&mut self, items: &[Node]) -> Outcome {
        self.allocate_list(items.len())?;
        let mut values = Vec::with_capacity(items.len());
        for item in items {
            values.push(self.evaluate(item)?);
        }
        Ok(Value::list(values))
    }

    #[inline(never)]
    fn context(&mut self, entries: &[(Arc<str>, Node)]) -> Outcome {
        self.allocate_context(entries.len())?;
        let mut context = Context::new();
        for (name, node) in entries {
            let value = self.evaluate(node)?;
            self.stack.push(value.clone());
            context.put(name.clone(), value);
        }
        self.stack.truncate(self.stack.len() - entries.len());
        Ok(Value::context(context))
    }

    #[inline(never)]
    fn range(&mut self, range: &crate::node::RangeNode) -> Outcome {
        let start = Bound { value: self.evaluate(&range.start)?, included: range.start_included };
        let end = match &range.end {
            Some(end) => self.evaluate(end)?,
            None => start.value.clone(),
        };
        let end = Bound { value: end, included: range.end_included };
        self.allocate(size_of::<Range>())?;
        Ok(Value::Range(Arc::new(Range { start, end, is_comparison: range.is_comparison })))
    }

    #[inline(never)]
    fn call(&mut self, call: &Call) -> Outcome {
        // Constant arguments take no steps, and a function takes longer to begin than an operator.
        self.spend(4 + call.arguments.len() / 4)?;
        // What cannot be called does not evaluate its arguments.
        let called = match &call.target {
            Target::Builtin(builtin) => Called::Builtin(builtin),
            Target::Variable(index) => match self.function_variable(*index as usize) {
                Some(function) => Called::Function(function),
                None => return Ok(self.no_function(&self.source.variables[*index as usize], call)),
            },
            Target::Value(node) | Target::ValueOrBuiltin(node, _) => match (self.evaluate(node)?, &call.target) {
                (Value::Function(function), _) => Called::Function(function),
                // A local value that is no function does not hide the built-in one of its name.
                (_, Target::ValueOrBuiltin(_, builtin)) => Called::Builtin(builtin),
                _ => return Ok(self.no_function("", call)),
            },
        };
        if let Called::Builtin(builtin) = &called {
            let callable = if call.names.is_empty() {
                builtin.accepts(call.arguments.len())
            } else {
                builtin.form(&call.names).is_some()
            };
            if !callable {
                return Ok(self.no_function(builtin.name, call));
            }
        }
        let mut arguments: SmallVec<[Value; 4]> = SmallVec::new();
        for argument in &call.arguments {
            arguments.push(self.evaluate(argument)?);
        }
        match called {
            Called::Builtin(builtin) if call.names.is_empty() => (builtin.run)(self, &arguments),
            Called::Builtin(builtin) => match builtin.form(&call.names) {
                Some(form) => self.call_by_names(builtin, form, &call.names, &arguments),
                None => Ok(Value::Null),
            },
            Called::Function(function) => self.call_function(&function, &arguments, &call.names),
        }
    }

    #[cold]
    fn no_function(&mut self, name: &str, call: &Call) -> Value {
        self.warn(WarningKind::NoFunctionFound, || {
            if call.names.is_empty() {
                format!("No function found with name '{name}' and {} parameters", call.arguments.len())
            } else {
                format!("No function found with name '{name}' and parameters: {}", call.names.join(", "))
            }
        })
    }
}

/// What a call leads to.
enum Called {
    Builtin(&'static Builtin),
    Function(Arc<Function>),
}

/// A message that quotes the expression at length without its end.
fn shortened(mut message: String) -> String {
    if message.len() > WARNING_LIMIT_BYTES {
        let end = (0..=WARNING_LIMIT_BYTES).rev().find(|end| message.is_char_boundary(*end)).unwrap_or(0);
        message.truncate(end);
        message.push('…');
        message.shrink_to_fit();
    }
    message
}
