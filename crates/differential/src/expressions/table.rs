//! The table of expressions with their results in the crate `feel`. What it says comes from the reference, but for rows that
//! name another source.

use std::fmt::Write;

use feel::Value;

use super::{Case, ours_with, request_with};
use crate::line_by_line::{self, Failure};
use crate::reference::Launch;

const TABLE: &str = include_str!("../../../feel/tests/expressions.tsv");

struct Row {
    line: usize,
    case: Case,
    variables: &'static str,
    source: Option<&'static str>,
}

fn rows() -> Result<Vec<Row>, Failure> {
    let lines = TABLE.lines().zip(1..).filter(|(text, _)| !text.is_empty() && !text.starts_with('#'));
    let rows = lines.map(|(text, line)| {
        let columns: Vec<&str> = text.split('\t').collect();
        let [expression, _, rest @ ..] = &columns[..] else {
            return Err(format!("line {line} of the table has no result: {text}").into());
        };
        let case = Case { text: expression.replace('␤', "\n"), input: None };
        let variables = rest.first().copied().unwrap_or("{}");
        Ok(Row { line, case, variables, source: rest.get(1).copied() })
    });
    rows.collect()
}

/// Whether the rows without another source give the same on both sides, and the others do not.
///
/// # Errors
/// When the reference cannot be asked, or the table not be read.
pub fn compare(launch: &Launch) -> Result<bool, Failure> {
    let rows = rows()?;
    let requests = rows.iter().map(|row| request_with(&row.case, row.variables)).collect();
    let answers = line_by_line::answers(launch, "Expressions", requests)?;
    let (mut others, mut wrong) = (0, String::new());
    for (Row { line, case, variables, source }, theirs) in rows.iter().zip(&answers) {
        let variables = Value::from_json(variables)?;
        let ours = ours_with(case, variables.as_context().ok_or("variables are no object")?);
        others += usize::from(source.is_some());
        let problem = match source {
            None if ours != *theirs => "the reference is not its source",
            Some(_) if ours == *theirs => "the reference gives the same",
            _ => continue,
        };
        let text = case.text.replace('\n', "␤");
        writeln!(wrong, "{text}\n    line {line}: {problem}\n    reference: {theirs}\n    ours:      {ours}")?;
    }
    print!("{wrong}");
    let count = wrong.matches("\n    line ").count();
    println!("{} expressions of the table: {others} with a source of their own, {count} say it wrongly", rows.len());
    Ok(wrong.is_empty())
}
