//! Compares the evaluation of random expressions with the reference's FEEL engine.

mod generator;
mod told;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use feel::{Environment, Expression, UnaryTests, Value};
use regex::Regex;

use generator::{Case, Generator, VARIABLES};

/// The time of the clock of both sides.
const NOW_MILLISECONDS: i64 = 1_772_600_767_089;
/// How many differences are shown.
const SHOWN_MAX: usize = 60;
/// Why an expression is known to differ.
const KNOWN: &str = include_str!("../known-expression-differences.txt");

/// A failure of the comparison itself.
pub type Failure = Box<dyn std::error::Error>;

/// Differences that are explained: what the case, the reference's outcome and ours look like together.
struct Known {
    pattern: Regex,
    reason: &'static str,
}

fn known() -> Result<Vec<Known>, Failure> {
    let lines = KNOWN.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let (reason, pattern) =
                line.split_once(" :: ").ok_or_else(|| format!("'{line}' has no ' :: ' between reason and pattern"))?;
            Ok(Known { pattern: Regex::new(pattern)?, reason })
        })
        .collect()
}

fn ours(case: &Case, variables: &feel::Context) -> String {
    let environment = Environment::at(NOW_MILLISECONDS);
    let evaluation = match case.input {
        None => match Expression::parse(&case.text) {
            Err(_) => return "!".to_owned(),
            Ok(expression) => expression.evaluate(variables, &environment),
        },
        Some(input) => match UnaryTests::parse(&case.text) {
            Err(_) => return "!".to_owned(),
            Ok(tests) => tests.evaluate(&Value::from_json(input).unwrap_or_default(), variables, &environment),
        },
    };
    match evaluation {
        Err(_) => "error".to_owned(),
        Ok(evaluation) => told::tell(&evaluation.value),
    }
}

/// The outcomes of the reference, in the order of the cases.
fn theirs(java: &str, class_path: &str, cases: &[Case]) -> Result<Vec<String>, Failure> {
    let mut child = Command::new(java)
        .args(["-Xmx1g", "-Xss8m", "-cp", class_path, "Expressions"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let mut input = child.stdin.take().ok_or("the reference has no input")?;
    let output = child.stdout.take().ok_or("the reference has no output")?;
    let lines: Vec<String> = cases.iter().map(request).collect();
    let writer = std::thread::spawn(move || lines.iter().try_for_each(|line| writeln!(input, "{line}")));
    let outcomes: Result<Vec<String>, _> = BufReader::new(output).lines().collect();
    writer.join().map_err(|_| "the thread that writes to the reference ended")??;
    child.wait()?;
    let outcomes = outcomes?;
    if outcomes.len() != cases.len() {
        return Err(format!("the reference answered {} of {} expressions", outcomes.len(), cases.len()).into());
    }
    Ok(outcomes)
}

fn request(case: &Case) -> String {
    let mut line = String::from(if case.input.is_some() { "[\"tests\"," } else { "[\"expression\"," });
    line.push_str(case.input.unwrap_or("null"));
    line.push(',');
    feel::json::write_string(&case.text, &mut line);
    line.push(',');
    line.push_str(VARIABLES);
    line.push(']');
    line
}

/// Compares so many cases; whether all agree but for reasons that are known.
///
/// # Errors
/// When the reference cannot be asked.
pub fn compare(java: &str, class_path: &str, count: usize, seed: u64) -> Result<bool, Failure> {
    let known = known()?;
    let mut generator = Generator::new(seed);
    let cases: Vec<Case> = std::iter::repeat_with(|| generator.case()).take(count).collect();
    let variables = Value::from_json(VARIABLES)?;
    let variables = variables.as_context().ok_or("the variables are no object")?;
    let outcomes = theirs(java, class_path, &cases)?;
    let mut same = 0;
    let mut explained: BTreeMap<&str, usize> = BTreeMap::new();
    let mut different = Vec::new();
    for (case, theirs) in cases.iter().zip(&outcomes) {
        let ours = ours(case, variables);
        if ours == *theirs {
            same += 1;
            continue;
        }
        let input = case.input.map(|input| format!("{input} | ")).unwrap_or_default();
        let shown = format!("{input}{}\t{theirs}\t{ours}", case.text);
        match known.iter().find(|known| known.pattern.is_match(&shown)) {
            Some(known) => *explained.entry(known.reason).or_default() += 1,
            None => different.push(shown),
        }
    }
    different.sort_by_key(String::len);
    different.dedup();
    for shown in different.iter().take(SHOWN_MAX) {
        let mut columns = shown.split('\t');
        let mut column = || columns.next().unwrap_or_default();
        println!("{}\n    reference: {}\n    ours:      {}", column(), column(), column());
    }
    for (reason, count) in &explained {
        println!("{count:6} differ: {reason}");
    }
    let total: usize = explained.values().sum();
    println!("{count} expressions: {same} same, {total} differ for a known reason, {} differ", different.len());
    Ok(different.is_empty())
}
