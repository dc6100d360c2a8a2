//! What surrounds an evaluation: the clock, the limits, the outcome.

use crate::value::Value;

/// The clock and the limits of an evaluation. Those that several evaluations share are counted by a
/// [`Budget`](crate::Budget).
#[derive(Clone, Debug)]
pub struct Environment {
    /// What `now()` and `today()` tell: milliseconds since the epoch, UTC.
    pub now_milliseconds: i64,
    /// What the results of `uuid()` and `random number()` follow from. Evaluations that shall have different ones need
    /// different seeds.
    pub seed: u64,
    /// How many steps a [`Budget`](crate::Budget) has: nodes and items visited, and what else takes time.
    pub step_limit: u32,
    /// How deeply evaluations may nest, for instance by functions that call each other.
    pub depth_limit: u32,
    /// How many bytes of variables a [`Budget`](crate::Budget) lets read.
    pub read_limit_bytes: usize,
    /// How long a string may become.
    pub string_limit_bytes: usize,
    /// How many items a list may have.
    pub list_limit_items: usize,
    /// How much memory the values and texts may take together that a [`Budget`](crate::Budget) lets build.
    pub memory_limit_bytes: usize,
    /// How large the result may be, about, as JSON.
    pub result_limit_bytes: usize,
}

impl Environment {
    /// The default limits at a point in time.
    pub fn at(now_milliseconds: i64) -> Environment {
        Environment {
            now_milliseconds,
            seed: 0,
            step_limit: 5_000_000,
            depth_limit: 400,
            string_limit_bytes: 8 << 20,
            list_limit_items: 1_000_000,
            read_limit_bytes: 64 << 20,
            memory_limit_bytes: 160 << 20,
            result_limit_bytes: 16 << 20,
        }
    }
}

/// A value and what went wrong on the way to it.
#[derive(Clone, Debug)]
pub struct Evaluation {
    /// The result.
    pub value: Value,
    /// Failed operations, which gave null, in the order of their occurrence (at most [`WARNING_LIMIT`]).
    pub warnings: Vec<Warning>,
    /// How many nodes and items were visited.
    pub steps: u32,
    /// About how much memory the values took that were created on the way.
    pub memory_bytes: usize,
}

impl From<Value> for Evaluation {
    fn from(value: Value) -> Evaluation {
        Evaluation { value, warnings: Vec::new(), steps: 0, memory_bytes: 0 }
    }
}

/// How many warnings an evaluation keeps.
pub const WARNING_LIMIT: usize = 100;

/// How long the message of a warning may be; a longer one is cut.
pub const WARNING_LIMIT_BYTES: usize = 4 << 10;

/// The kind of a [`Warning`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WarningKind {
    /// A name that is neither a local name nor a variable.
    NoVariableFound,
    /// A path to an entry that a context does not have.
    NoContextEntryFound,
    /// A path to a property that a value does not have.
    NoPropertyFound,
    /// A call of an unknown function or with a wrong number of arguments.
    NoFunctionFound,
    /// Two values that cannot be compared.
    NotComparable,
    /// An operand of a wrong type, or an operation without a result.
    InvalidType,
    /// A function that could not work with its arguments.
    FunctionInvocationFailure,
}

impl WarningKind {
    fn name(self) -> &'static str {
        match self {
            WarningKind::NoVariableFound => "NO_VARIABLE_FOUND",
            WarningKind::NoContextEntryFound => "NO_CONTEXT_ENTRY_FOUND",
            WarningKind::NoPropertyFound => "NO_PROPERTY_FOUND",
            WarningKind::NoFunctionFound => "NO_FUNCTION_FOUND",
            WarningKind::NotComparable => "NOT_COMPARABLE",
            WarningKind::InvalidType => "INVALID_TYPE",
            WarningKind::FunctionInvocationFailure => "FUNCTION_INVOCATION_FAILURE",
        }
    }
}

/// A failed operation. Displayed as `[KIND] message`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// What failed.
    pub kind: WarningKind,
    /// Which operation on which values.
    pub message: String,
}

impl std::fmt::Display for Warning {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "[{}] {}", self.kind.name(), self.message)
    }
}

/// Why an evaluation has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EvaluationError {
    /// The evaluation is too long.
    #[error("The expression was stopped after {0} steps. Let it work on less data.")]
    TooManySteps(u32),
    /// The evaluation is nested too deeply.
    #[error(
        "The expression was stopped because its evaluation is nested more than {0} levels deep. Check its recursive functions."
    )]
    TooDeep(u32),
    /// A string is too long.
    #[error("The expression was stopped because a string would be longer than {0} bytes.")]
    StringTooLong(usize),
    /// A list is too long.
    #[error("The expression was stopped because a list would have more than {0} items.")]
    ListTooLong(usize),
    /// The values take too much memory.
    #[error("The expression was stopped because its values would take more than {0} bytes. Let it work on less data.")]
    TooMuchMemory(usize),
    /// Too much of variables is read.
    #[error(
        "The expression was stopped because more than {0} bytes of variables would be read. Let it work on less data."
    )]
    TooMuchRead(usize),
    /// Values are nested too deeply.
    #[error("The expression was stopped because a value would be nested more than {0} levels deep.")]
    ValueTooDeep(u32),
    /// The result is too large.
    #[error("The expression was stopped because its result would be larger than {0} bytes.")]
    ResultTooLarge(usize),
    /// The condition of `assert` is not fulfilled.
    #[error("Assertion failure on evaluate the expression '{expression}': {message}")]
    AssertionFailed {
        /// The expression.
        expression: String,
        /// The message given to `assert`.
        message: String,
    },
}
