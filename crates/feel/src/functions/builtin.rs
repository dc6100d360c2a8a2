//! What a built-in function is, and what all of them share.

use std::sync::Arc;

use crate::environment::{WARNING_LIMIT_BYTES, WarningKind};
use crate::evaluate::{Evaluator, Outcome};
use crate::value::Value;

/// A built-in function.
pub(crate) struct Builtin {
    pub(crate) name: &'static str,
    /// The parameter names of each form of the function. The forms differ in the number of parameters, or only in names.
    pub(crate) signatures: &'static [&'static [&'static str]],
    /// The last parameter of the last form may repeat.
    pub(crate) variadic: bool,
    /// The result depends on more than the arguments.
    pub(crate) uses_environment: bool,
    pub(crate) run: fn(&mut Evaluator<'_>, &[Value]) -> Outcome,
}

impl Builtin {
    pub(super) const fn new(
        name: &'static str,
        signatures: &'static [&'static [&'static str]],
        run: fn(&mut Evaluator<'_>, &[Value]) -> Outcome,
    ) -> Builtin {
        Builtin { name, signatures, variadic: false, uses_environment: false, run }
    }

    pub(super) const fn variadic(self) -> Builtin {
        Builtin { variadic: true, ..self }
    }

    pub(super) const fn with_environment(self) -> Builtin {
        Builtin { uses_environment: true, ..self }
    }

    pub(crate) fn accepts(&self, count: usize) -> bool {
        let longest = self.signatures.last().map_or(0, |form| form.len());
        self.signatures.iter().any(|form| form.len() == count) || self.variadic && count >= longest
    }

    /// The form that has parameters of all these names, preferably no others.
    pub(crate) fn form(&self, names: &[Arc<str>]) -> Option<&'static [&'static str]> {
        let fits = |form: &&&'static [&'static str]| names.iter().all(|name| form.contains(&&**name));
        let exact = self.signatures.iter().filter(|form| form.len() == names.len()).find(fits);
        exact.or_else(|| self.signatures.iter().find(fits)).copied()
    }

    /// The arguments in the order of the parameters of a form; what has no argument is null.
    pub(crate) fn order(form: &[&str], names: &[Arc<str>], arguments: &[Value]) -> Vec<Value> {
        let argument = |parameter: &&str| {
            let position = names.iter().position(|name| **name == **parameter);
            position.map_or(Value::Null, |position| arguments[position].clone())
        };
        form.iter().map(argument).collect()
    }
}

/// Null, with a warning that the function cannot work with its arguments.
pub(super) fn illegal(evaluator: &mut Evaluator<'_>, name: &str, arguments: &[Value]) -> Outcome {
    const SHOWN_ARGUMENTS: usize = 10;
    Ok(evaluator.warn(WarningKind::FunctionInvocationFailure, || {
        let shown: Vec<String> =
            arguments.iter().take(SHOWN_ARGUMENTS).map(|argument| format!("'{argument}'")).collect();
        format!("Failed to invoke function '{name}': Illegal arguments: {}", shown.join(", "))
    }))
}

/// Null, with a warning that says why the function failed.
pub(super) fn failed(evaluator: &mut Evaluator<'_>, name: &str, why: impl FnOnce() -> String) -> Outcome {
    Ok(evaluator
        .warn(WarningKind::FunctionInvocationFailure, || format!("Failed to invoke function '{name}': {}", why())))
}

/// The beginning of a text for a message, which is cut anyway.
pub(super) fn excerpt(text: &str) -> &str {
    &text[..text.floor_char_boundary(WARNING_LIMIT_BYTES)]
}

/// A list from a list, or from several arguments.
pub(super) fn list_or_arguments(arguments: &[Value]) -> &[Value] {
    match arguments {
        [Value::List(items)] => items,
        other => other,
    }
}
