//! Compares the evaluation of random expressions with the reference's FEEL engine.

mod generator;
mod table;
mod told;

use feel::{Environment, Expression, UnaryTests, Value};

use crate::line_by_line::{self, Comparison, Failure, KnownReasons};
use crate::reference::Launch;
use generator::{Case, Generator, VARIABLES};

/// The time of the clock of both sides.
const NOW_MILLISECONDS: i64 = 1_772_600_767_089;
/// Why an expression is known to differ.
const KNOWN: &str = include_str!("../known-expression-differences.txt");

fn ours_with(case: &Case, variables: &feel::Context) -> String {
    let environment = Environment::at(NOW_MILLISECONDS);
    let evaluation = match case.input {
        None => match Expression::parse_strictly(&case.text) {
            Err(_) => return "!".to_owned(),
            Ok(expression) => expression.evaluate(variables, &environment),
        },
        Some(input) => match UnaryTests::parse(&case.text).and_then(UnaryTests::unless_objected) {
            Err(_) => return "!".to_owned(),
            Ok(tests) => tests.evaluate(&Value::from_json(input).unwrap_or_default(), variables, &environment),
        },
    };
    match evaluation {
        Err(_) => "error".to_owned(),
        Ok(evaluation) => told::tell(&evaluation.value),
    }
}

fn request(case: &Case) -> String {
    request_with(case, VARIABLES)
}

fn request_with(case: &Case, variables: &str) -> String {
    let mut line = String::from(if case.input.is_some() { "[\"tests\"," } else { "[\"expression\"," });
    line.push_str(case.input.unwrap_or("null"));
    line.push(',');
    feel::json::write_string(&case.text, &mut line);
    line.push(',');
    line.push_str(variables);
    line.push(']');
    line
}

/// Compares the table of expressions and this many random cases; returns whether all agree except for known reasons. What
/// is known is shown only if asked for.
///
/// # Errors
/// When the reference cannot be asked.
pub fn compare(launch: &Launch, count: usize, seed: u64, with_known: bool) -> Result<bool, Failure> {
    let known = KnownReasons::read(KNOWN)?;
    let mut generator = Generator::new(seed);
    let cases: Vec<Case> = std::iter::repeat_with(|| generator.case()).take(count).collect();
    let variables = Value::from_json(VARIABLES)?;
    let variables = variables.as_context().ok_or("the variables are no object")?;
    let answers = line_by_line::answers(launch, "Expressions", cases.iter().map(request).collect())?;
    let mut comparison = Comparison::default();
    for (case, theirs) in cases.iter().zip(&answers) {
        let ours = ours_with(case, variables);
        if ours == *theirs {
            comparison.agree();
            continue;
        }
        let input = case.input.map(|input| format!("{input} | ")).unwrap_or_default();
        comparison.differ(&known, &format!("{input}{}", case.text), [theirs, &ours], "");
    }
    let agrees = comparison.agrees();
    comparison.print("expressions", with_known);
    Ok(table::compare(launch)? && agrees)
}

/// Compares the expressions in the lines of a text, without variables, and prints all that differ. Empty lines and those that
/// begin with `#` are left out; `␤` means a line break.
///
/// # Errors
/// When the reference cannot be asked.
pub fn compare_lines(launch: &Launch, lines: &str) -> Result<bool, Failure> {
    let lines: Vec<&str> = lines.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    let case = |line: &&str| Case { text: line.replace('␤', "\n"), input: None };
    let cases: Vec<Case> = lines.iter().map(case).collect();
    let requests = cases.iter().map(|case| request_with(case, "{}")).collect();
    let answers = line_by_line::answers(launch, "Expressions", requests)?;
    let mut differ = 0;
    for ((line, case), theirs) in lines.iter().zip(&cases).zip(&answers) {
        let ours = ours_with(case, &feel::Context::default());
        if ours != *theirs {
            differ += 1;
            println!("{line}\n    reference: {theirs}\n    ours:      {ours}");
        }
    }
    println!("{} expressions: {} same, {differ} differ", lines.len(), lines.len() - differ);
    Ok(differ == 0)
}
