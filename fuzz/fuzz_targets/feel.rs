//! An expression, or unary tests, and, behind a NUL, the variables: compiled or refused, evaluated within the limits, twice with the same
//! result, which is valid JSON.
#![no_main]

use std::borrow::Cow;
use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use feel::{Context, Environment, Expression, Scope, UnaryTests, Value, VariableText, json};

struct Variables<'a>(Vec<(Cow<'a, str>, &'a str)>);

impl Scope for Variables<'_> {
    fn variable(&self, name: &str) -> Option<VariableText<'_>> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| VariableText::Borrowed(value))
    }
}

/// The first variable is the input of unary tests.
fn json_input(variables: &Variables<'_>) -> Value {
    variables.0.first().and_then(|(_, value)| Value::from_json(value).ok()).unwrap_or_default()
}

fuzz_target!(|text: &str| {
    let (text, variables) = text.split_once('\0').unwrap_or((text, "{}"));
    let variables = Variables(json::split_object(variables).unwrap_or_default());
    let environment = Environment {
        step_limit: 50_000,
        list_limit_items: 10_000,
        string_limit_bytes: 100_000,
        memory_limit_bytes: 16 << 20,
        ..Environment::at(1_772_600_767_089)
    };
    if let Ok(tests) = UnaryTests::parse(text) {
        let input = json_input(&variables);
        if let Ok(evaluation) = tests.evaluate(&input, &variables, &environment) {
            assert!(matches!(evaluation.value, Value::Null | Value::Boolean(_)), "{}", evaluation.value);
        }
    }
    let Ok(expression) = Expression::parse(text) else { return };
    let first = expression.evaluate(&variables, &environment);
    let second = expression.evaluate(&variables, &environment);
    match (&first, &second) {
        (Ok(first), Ok(second)) => {
            let result = first.value.to_json();
            assert!(json::validate(&result).is_ok(), "{result}");
            assert_eq!(result, second.value.to_json());
            assert_eq!(first.warnings, second.warnings);
            assert!(first.steps <= environment.step_limit);
        }
        _ => assert_eq!(first.as_ref().err(), second.as_ref().err()),
    }
    // Read as a whole, the variables give the same as read in part; only the work, and so what meets a limit, differs.
    let whole: Context = variables.0.iter().filter_map(|(name, text)| Some((name, Value::from_json(text).ok()?))).fold(
        Context::new(),
        |mut context, (name, value)| {
            context.put(Arc::from(&**name), value);
            context
        },
    );
    let whole = expression.evaluate(&whole, &environment);
    if let (Ok(in_part), Ok(whole)) = (&first, &whole) {
        assert_eq!(in_part.value.to_json(), whole.value.to_json());
        assert_eq!(in_part.warnings, whole.warnings);
    }
    let _ = expression.constant();
});
