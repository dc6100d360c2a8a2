//! An expression and, behind a NUL, the variables: compiled or refused, evaluated within the limits, twice with the same
//! result, which is valid JSON.
#![no_main]

use std::borrow::Cow;

use libfuzzer_sys::fuzz_target;
use osmia_feel::{Environment, Expression, Scope, json};

struct Variables<'a>(Vec<(Cow<'a, str>, &'a str)>);

impl Scope for Variables<'_> {
    fn variable(&self, name: &str) -> Option<Cow<'_, str>> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| Cow::Borrowed(*value))
    }
}

fuzz_target!(|text: &str| {
    let (text, variables) = text.split_once('\0').unwrap_or((text, "{}"));
    let Ok(expression) = Expression::parse(text) else { return };
    let variables = Variables(json::split_object(variables).unwrap_or_default());
    let environment = Environment {
        step_limit: 50_000,
        list_limit_items: 10_000,
        string_limit_bytes: 100_000,
        memory_limit_bytes: 16 << 20,
        ..Environment::at(1_772_600_767_089)
    };
    let first = expression.evaluate(&variables, &environment);
    let second = expression.evaluate(&variables, &environment);
    match (first, second) {
        (Ok(first), Ok(second)) => {
            let result = first.value.to_json();
            assert!(json::validate(&result).is_ok(), "{result}");
            assert_eq!(result, second.value.to_json());
            assert_eq!(first.warnings, second.warnings);
            assert!(first.steps <= environment.step_limit);
        }
        (first, second) => assert_eq!(first.err(), second.err()),
    }
    let _ = expression.constant();
});
