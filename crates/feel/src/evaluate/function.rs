//! Functions as values: those of expressions, and those of the caller.

use std::cell::RefCell;
use std::sync::{Arc, OnceLock};

use smallvec::SmallVec;

use super::{Evaluator, Failure, Outcome, Variable};
use crate::budget::Budget;
use crate::environment::{Environment, Evaluation, EvaluationError, WARNING_LIMIT, WarningKind};
use crate::functions::builtin::Builtin;
use crate::node::FunctionNode;
use crate::value::Value;

/// What the tree of an expression refers to.
pub(crate) struct Source {
    pub(crate) text: Box<str>,
    /// The names that the scope is asked for.
    pub(crate) variables: Box<[Arc<str>]>,
    /// Those that the bodies of functions mention.
    pub(crate) function_variables: Box<[u32]>,
}

/// The evaluation that functions were defined in. Functions outlive it: what their bodies need is kept when it ends, or
/// when one of them is handed to code that is not part of it.
pub(crate) struct Home {
    source: Arc<Source>,
    variables: OnceLock<Box<[Option<Value>]>>,
}

/// A function whose body is not an expression, for instance a decision table.
pub trait NativeFunction: Send + Sync {
    /// The names of the parameters.
    fn parameters(&self) -> &[Arc<str>];

    /// The result for as many arguments as there are parameters, with the budget of the calling evaluation.
    fn call(
        &self,
        arguments: &[Value],
        environment: &Environment,
        budget: &Budget,
    ) -> Result<Evaluation, EvaluationError>;
}

/// A function as a value.
pub struct Function {
    body: Body,
    /// The depth of the deepest captured value.
    depth: u32,
}

enum Body {
    /// One of an expression, with the local values it was defined among.
    Defined {
        node: Arc<FunctionNode>,
        captured: Vec<Value>,
        home: Arc<Home>,
    },
    Native(Arc<dyn NativeFunction>),
    Builtin {
        builtin: &'static Builtin,
        /// Those of its longest form.
        parameters: Box<[Arc<str>]>,
    },
    /// What is left of a function while it is dropped.
    Gone,
}

thread_local! {
    /// Functions that are to be dropped by the one that is being dropped.
    static DROPPED: RefCell<Option<Vec<Body>>> = const { RefCell::new(None) };
}

/// A function can hold another one, and this the next, more often than the stack has room: they are dropped in turn.
impl Drop for Function {
    fn drop(&mut self) {
        let body = std::mem::replace(&mut self.body, Body::Gone);
        let first = DROPPED.try_with(|dropped| match &mut *dropped.borrow_mut() {
            Some(waiting) => {
                waiting.push(body);
                None
            }
            none => {
                *none = Some(Vec::new());
                Some(body)
            }
        });
        let mut next = first.unwrap_or_default();
        while let Some(body) = next {
            drop(body);
            next = DROPPED
                .try_with(|dropped| {
                    let mut dropped = dropped.borrow_mut();
                    let body = dropped.as_mut().and_then(Vec::pop);
                    if body.is_none() {
                        *dropped = None;
                    }
                    body
                })
                .unwrap_or_default();
        }
    }
}

impl Function {
    /// A function of the caller's.
    pub fn native(function: Arc<dyn NativeFunction>) -> Function {
        Function { body: Body::Native(function), depth: 0 }
    }

    pub(crate) fn depth(&self) -> u32 {
        self.depth
    }

    /// The names of the parameters.
    pub fn parameters(&self) -> &[Arc<str>] {
        match &self.body {
            Body::Defined { node, .. } => &node.parameters,
            Body::Native(function) => function.parameters(),
            Body::Builtin { parameters, .. } => parameters,
            Body::Gone => &[],
        }
    }

    /// Calls the function with positional arguments. With a wrong number of them the result is null with a warning.
    pub fn call(
        &self,
        arguments: &[Value],
        environment: &Environment,
        budget: &Budget,
    ) -> Result<Evaluation, EvaluationError> {
        let source =
            Arc::new(Source { text: Box::from(""), variables: Box::default(), function_variables: Box::default() });
        let before = (budget.steps_used(), budget.bytes_built());
        let mut evaluator = Evaluator::new(&source, &(), environment, budget);
        let called = budget.nested(|| evaluator.call_function(self, arguments, &[]));
        called.and_then(|value| evaluator.finish(value, before)).map_err(|error| *error)
    }
}

impl std::fmt::Debug for Function {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "function({} parameters)", self.parameters().len())
    }
}

/// About the memory of a function without what it captures.
const FUNCTION_BYTES: usize = 128;

/// A call of a native function nests as deeply as this many levels of an expression.
const NATIVE_CALL_LEVELS: u32 = 4;

impl Evaluator<'_> {
    #[inline(never)]
    pub(super) fn function(&mut self, node: &Arc<FunctionNode>) -> Outcome {
        self.capture(self.stack.len())?;
        let depth = self.stack.iter().map(Value::depth).max().unwrap_or(0);
        let home = self
            .home
            .get_or_insert_with(|| Arc::new(Home { source: self.source.clone(), variables: OnceLock::new() }))
            .clone();
        let body = Body::Defined { node: node.clone(), captured: self.stack.clone(), home };
        Ok(Value::Function(Arc::new(Function { body, depth })))
    }

    /// What a variable holds, or else a built-in function as a value.
    #[inline(never)]
    pub(super) fn variable_or_builtin(&mut self, index: usize, builtin: &'static Builtin) -> Outcome {
        if let Some(value) = self.read(index)? {
            return Ok(value);
        }
        let parameters = builtin.signatures.iter().max_by_key(|form| form.len()).copied().unwrap_or_default();
        self.capture(parameters.len())?;
        let parameters = parameters.iter().map(|parameter| Arc::from(*parameter)).collect();
        Ok(Value::Function(Arc::new(Function { body: Body::Builtin { builtin, parameters }, depth: 0 })))
    }

    /// Call before this many local values are copied.
    fn capture(&mut self, values: usize) -> Result<(), Failure> {
        self.spend(values / 8)?;
        self.allocate(FUNCTION_BYTES.saturating_add(values.saturating_mul(size_of::<Value>())))
    }

    /// Keeps the variables that the functions of this evaluation need, if there are functions.
    pub(super) fn seal(&mut self) -> Result<(), Failure> {
        let Some(home) = self.home.clone().filter(|home| home.variables.get().is_none()) else {
            return Ok(());
        };
        // Two of them are the evaluator's and the one above.
        if Arc::strong_count(&home) <= 2 {
            return Ok(());
        }
        let mut kept: Box<[Option<Value>]> = self.source.variables.iter().map(|_| None).collect();
        for index in &self.source.function_variables {
            kept[*index as usize] = self.read(*index as usize)?;
        }
        // Only this evaluation seals its home, so it is set once.
        let _ = home.variables.set(kept);
        Ok(())
    }

    /// Calls a function value with positional arguments, for builtins that take functions.
    pub(crate) fn apply(&mut self, function: &Arc<Function>, arguments: &[Value]) -> Outcome {
        self.call_function(function, arguments, &[])
    }

    pub(super) fn call_function(&mut self, function: &Function, arguments: &[Value], names: &[Arc<str>]) -> Outcome {
        if let Body::Builtin { builtin, .. } = &function.body {
            return self.call_builtin(builtin, arguments, names);
        }
        let parameters = function.parameters();
        self.spend(names.len().saturating_mul(parameters.len()) / 16)?;
        let known = names.iter().all(|name| parameters.contains(name));
        if arguments.len() != parameters.len() || !known {
            let (expected, found) = (parameters.len(), arguments.len());
            return Ok(self.warn(WarningKind::NoFunctionFound, || {
                format!(
                    "The function has {expected} parameters ({}) but was called with {found} arguments",
                    parameters.join(", ")
                )
            }));
        }
        let captured: &[Value] = if let Body::Defined { captured, .. } = &function.body { captured } else { &[] };
        self.capture(captured.len())?;
        let mut frame = captured.to_vec();
        if names.is_empty() {
            frame.extend(arguments.iter().cloned());
        } else {
            frame.extend(parameters.iter().map(|parameter| {
                let position = names.iter().position(|name| name == parameter);
                position.map_or(Value::Null, |position| arguments[position].clone())
            }));
        }
        self.spend(1)?;
        if let Body::Native(native) = &function.body {
            return self.call_native(&**native, &frame);
        }
        // A call takes as much of the stack as two levels.
        self.budget.enter(1)?;
        let result = self.call_defined(function, frame);
        self.budget.leave(1);
        result
    }

    fn call_defined(&mut self, function: &Function, frame: Vec<Value>) -> Outcome {
        match &function.body {
            Body::Defined { node, home, .. } if self.home.as_ref().is_some_and(|own| Arc::ptr_eq(own, home)) => {
                let caller = std::mem::replace(&mut self.stack, frame);
                let result = self.evaluate(&node.body);
                self.stack = caller;
                result
            }
            Body::Defined { node, home, .. } => self.call_foreign(node, home, frame),
            Body::Native(_) | Body::Builtin { .. } | Body::Gone => Ok(Value::Null),
        }
    }

    fn call_builtin(&mut self, builtin: &Builtin, arguments: &[Value], names: &[Arc<str>]) -> Outcome {
        self.spend(1)?;
        if names.is_empty() && builtin.accepts(arguments.len()) {
            return (builtin.run)(self, arguments);
        }
        match builtin.form(names).filter(|_| !names.is_empty()) {
            Some(form) => self.call_by_names(builtin, form, names, arguments),
            None => Ok(self.warn(WarningKind::NoFunctionFound, || {
                format!("The function '{}' cannot be called with these {} arguments", builtin.name, arguments.len())
            })),
        }
    }

    /// Calls a form of a built-in function with named arguments. What may repeat is given as a list.
    pub(super) fn call_by_names(
        &mut self,
        builtin: &Builtin,
        form: &[&str],
        names: &[Arc<str>],
        arguments: &[Value],
    ) -> Outcome {
        let mut ordered = Builtin::order(form, names, arguments);
        if builtin.variadic && form.len() > 1 {
            match ordered.pop() {
                Some(Value::List(items)) => {
                    self.allocate_list(items.len())?;
                    ordered.extend(items.iter().cloned());
                }
                Some(Value::Null) | None => {
                    return Ok(self.warn(WarningKind::NoFunctionFound, || {
                        format!("The function '{}' has no argument for '{}'", builtin.name, form[form.len() - 1])
                    }));
                }
                Some(single) => ordered.push(single),
            }
        }
        (builtin.run)(self, &ordered)
    }

    /// Calls a function that another evaluation defined; steps, depth and memory count as one with this one.
    #[inline(never)]
    fn call_foreign(&mut self, node: &FunctionNode, home: &Arc<Home>, frame: Vec<Value>) -> Outcome {
        self.seal()?;
        let variables: SmallVec<[Variable<'_>; 4]> = match home.variables.get() {
            Some(kept) => kept
                .iter()
                .map(|value| value.as_ref().map_or(Variable::Missing, |value| Variable::Read(value.clone())))
                .collect(),
            None => home.source.variables.iter().map(|_| Variable::Missing).collect(),
        };
        self.capture(variables.len())?;
        let mut inner = Evaluator {
            variables,
            stack: frame,
            warnings: std::mem::take(&mut self.warnings),
            patterns: std::mem::take(&mut self.patterns),
            home: Some(home.clone()),
            ..Evaluator::new(&home.source, &(), self.environment, self.budget)
        };
        let result = inner.evaluate(&node.body);
        (self.warnings, self.patterns) = (inner.warnings, inner.patterns);
        result
    }

    #[inline(never)]
    fn call_native(&mut self, native: &dyn NativeFunction, arguments: &[Value]) -> Outcome {
        self.seal()?;
        self.budget.enter(NATIVE_CALL_LEVELS)?;
        let evaluation = native.call(arguments, self.environment, self.budget).map_err(Box::new)?;
        self.budget.leave(NATIVE_CALL_LEVELS);
        let room = WARNING_LIMIT.saturating_sub(self.warnings.len());
        self.warnings.extend(evaluation.warnings.into_iter().take(room));
        Ok(evaluation.value)
    }
}
