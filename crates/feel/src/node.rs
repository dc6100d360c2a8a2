//! The compiled form of an expression: a tree whose names are already resolved as far as the text allows.
//!
//! Local names (loop variables, parameters, entries of a context) are positions on the evaluator's stack. The height of
//! the stack at every node is known to the parser, so a binding is an index. Only two kinds of name remain open until
//! evaluation: variables of the scope, and names inside a filter, which may be entries of the filtered item.

use std::sync::Arc;

use crate::defined_type::Defined;
use crate::functions::builtin::Builtin;
use crate::simple_type::SimpleType;
use crate::value::{Value, take};

pub(crate) enum Node {
    Constant(Value),
    /// A position on the stack.
    Local(u32),
    /// An index into the variables of the expression.
    Variable(u32),
    /// An argument of a function that is not built in: a variable of the scope, or else the built-in function of this name.
    VariableOrBuiltin(u32, &'static Builtin),
    /// A variable followed by a path, so that only the end of the path need be read.
    VariablePath(u32, Box<[Arc<str>]>),
    /// A name that may be an entry of one of the filtered items at these positions, innermost first.
    Dynamic(Box<Dynamic>),
    Path(Box<Node>, Arc<str>),
    Filter(Box<Filter>),
    List(Vec<Node>),
    Context(Vec<(Arc<str>, Node)>),
    Range(Box<RangeNode>),
    If(Box<[Node; 3]>),
    For(Box<Loop>),
    Some(Box<Loop>),
    Every(Box<Loop>),
    Function(Arc<FunctionNode>),
    Call(Box<Call>),
    In(Box<(Node, Vec<Test>)>),
    /// One of several tests joined by `and` or `or`, on the value on top of the stack.
    Test(Box<Test>),
    Between(Box<[Node; 3]>),
    InstanceOf(Box<(Node, Type)>),
    /// Operators of one precedence from left to right: long chains do not nest.
    Arithmetic(Box<(Node, Vec<(Operator, Node)>)>),
    Comparison(Comparison, Box<(Node, Node)>),
    And(Vec<Node>),
    Or(Vec<Node>),
    Negate(Box<Node>),
}

pub(crate) struct Dynamic {
    pub(crate) name: Arc<str>,
    pub(crate) items: Vec<u32>,
    pub(crate) otherwise: Node,
}

pub(crate) struct Filter {
    pub(crate) base: Node,
    /// Evaluated with the item on top of the stack.
    pub(crate) condition: Node,
    /// A constant index needs no item.
    pub(crate) constant_index: bool,
    /// The entries that the condition reads of the item; `None` if it uses the item in another way.
    pub(crate) entries: Option<Box<[Arc<str>]>>,
}

pub(crate) struct RangeNode {
    pub(crate) start: Node,
    pub(crate) start_included: bool,
    /// `None` where it is the start.
    pub(crate) end: Option<Node>,
    pub(crate) end_included: bool,
    /// `(< 10)` and not `(null..10)`.
    pub(crate) is_comparison: bool,
}

/// What a loop variable runs over.
pub(crate) enum Domain {
    Items(Node),
    /// Whole numbers, upwards or downwards.
    Numbers(Node, Node),
}

/// The domain at index i is evaluated with the i variables before it on the stack; the body with all of them and, in a
/// `for`, the list of results so far (`partial`) on top of them.
pub(crate) struct Loop {
    pub(crate) domains: Vec<Domain>,
    pub(crate) body: Node,
    pub(crate) uses_partial: bool,
}

pub(crate) struct FunctionNode {
    pub(crate) parameters: Vec<Arc<str>>,
    pub(crate) body: Node,
}

pub(crate) enum Target {
    Builtin(&'static Builtin),
    Value(Node),
    /// A local value if it is a function, else the built-in function of its name.
    ValueOrBuiltin(Node, &'static Builtin),
    /// A variable of the scope, which may be a function.
    Variable(u32),
}

pub(crate) struct Call {
    pub(crate) target: Target,
    pub(crate) arguments: Vec<Node>,
    /// Empty for positional arguments, else one name for each argument.
    pub(crate) names: Vec<Arc<str>>,
}

/// A unary test on the value on top of the stack.
pub(crate) enum Test {
    /// `-`: every value.
    Any,
    Compare(Comparison, Node),
    /// Equal to the value, or contained in it if that is a list or a range; `boolean` says that the expression mentions the
    /// input (`?`) and is a separate condition.
    Value {
        node: Node,
        boolean: bool,
    },
    Not(Vec<Test>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Power,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    Any,
    Null,
    Simple(SimpleType),
    List(Box<Type>),
    Context(Vec<(String, Type)>),
    Range(Box<Type>),
    /// A type of the caller's.
    Defined(Defined),
}

impl Type {
    /// Whether a value is of this type. Each visited part is taken from `budget`, because shared parts can be visited
    /// exponentially often; without budget, nothing matches.
    pub(crate) fn matches(&self, value: &Value, budget: &mut usize) -> bool {
        if !take(budget) {
            return false;
        }
        match (self, value) {
            (Type::Any, value) => !value.is_null(),
            (Type::Null, value) => value.is_null(),
            (Type::Simple(simple), value) => simple.contains(value),
            (Type::Defined(of), value) => of.0.contains(value, budget),
            (Type::List(of), Value::List(items)) => {
                **of == Type::Any || items.iter().all(|item| of.matches(item, budget))
            }
            (Type::Context(of), Value::Context(context)) => {
                let mut fits = |value: &Value, of: &Type| value.is_null() || of.matches(value, budget);
                of.iter().all(|(name, of)| context.get(name).is_some_and(|value| fits(value, of)))
            }
            (Type::Range(of), Value::Range(range)) => {
                **of == Type::Any || of.matches(&range.start.value, budget) || of.matches(&range.end.value, budget)
            }
            _ => false,
        }
    }
}
