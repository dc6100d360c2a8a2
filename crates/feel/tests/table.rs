//! Evaluates the expressions of `expressions.tsv`: expression, expected result as JSON, variables as a JSON object, source.
//! In the expression `␤` means a line break. An expected `!` means that the expression does not compile.
//!
//! The source is the reference's FEEL engine (feel-scala 1.19.5), which gives the same as `make differential EXPRESSIONS=1`
//! proves, unless the row names another one, because that engine gives something else.

use feel::{Environment, Expression, Scope, VariableText, json};

struct Variables(Vec<(String, String)>);

impl Scope for Variables {
    fn variable(&self, name: &str) -> Option<VariableText<'_>> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, text)| VariableText::Borrowed(text))
    }
}

fn variables(text: &str) -> Variables {
    let members = json::split_object(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    Variables(members.into_iter().map(|(name, text)| (name.into_owned(), text.into_owned())).collect())
}

/// 2026-03-04T05:06:07.089Z
const NOW_MILLISECONDS: i64 = 1_772_600_767_089;

fn outcome(expression: &str, scope: &Variables) -> String {
    let Ok(compiled) = Expression::parse_strictly(expression) else {
        return "!".to_owned();
    };
    match compiled.evaluate(scope, &Environment::at(NOW_MILLISECONDS)) {
        Ok(evaluation) => evaluation.value.to_json(),
        Err(error) => format!("error: {error}"),
    }
}

/// Sources besides the reference's FEEL engine.
const SOURCES: [&str; 3] = [
    // DMN 1.5, chapter 10.3 or its conformance kit
    "standard", // the public documentation of the dialect
    "camunda",
    // what docs/conformance.md says: no crash of a platform, exact numbers, the same on every replica
    "osmia",
];

#[test]
fn every_row_gives_its_result() {
    let table = include_str!("expressions.tsv");
    let mut failures = Vec::new();
    let mut rows = 0;
    for (index, line) in table.lines().enumerate().filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
        let mut columns = line.split('\t');
        let (Some(expression), Some(expected)) = (columns.next(), columns.next()) else {
            panic!("line {} has no two columns: {line}", index + 1);
        };
        rows += 1;
        let scope = variables(columns.next().unwrap_or("{}"));
        if let Some(source) = columns.next() {
            assert!(SOURCES.contains(&source), "line {} has an unknown source: {source}", index + 1);
        }
        let found = outcome(&expression.replace('␤', "\n"), &scope);
        if found != expected {
            failures.push(format!("line {}: {expression}\n    expected {expected}\n    found    {found}", index + 1));
        }
    }
    assert!(failures.is_empty(), "{} of {rows} rows fail:\n{}", failures.len(), failures.join("\n"));
    assert!(rows >= 1200, "the table has only {rows} rows");
}
