//! Compares what two sides report, knowing the intended differences.

use std::path::Path;

use regex::Regex;

use crate::scenario::{Scenario, Trace};

/// Lines around a difference that are shown.
const CONTEXT_LINES: usize = 4;
/// Characters of a refusal's reason that are shown.
const REASON_CHARACTERS_MAX: usize = 600;
/// Cells of the table from which a difference is found; larger traces are shown as they are.
const TABLE_CELLS_MAX: usize = 4_000_000;

/// Known differences, each with its reason, from `known-differences.txt`.
///
/// ```text
/// reason: Our records do not say this.
/// drop: JOB MIGRATED$
/// replace: retries (\d+)\.0 => retries $1
/// step: 12-some-scenario 7
/// from: 13-another-scenario 2
/// ```
///
/// `drop` leaves out lines of the reference, `replace` rewrites a part of them, both by a regular expression. `step` takes
/// one step of a written scenario as it is on our side, `from` that step and all that follow.
#[derive(Debug, Default)]
pub struct KnownDifferences {
    drops: Vec<Regex>,
    replacements: Vec<(Regex, String)>,
    steps: Vec<(String, std::ops::RangeInclusive<usize>)>,
}

/// Known differences that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("known-differences.txt, line {line}: {problem}")]
pub struct KnownDifferencesError {
    line: usize,
    problem: String,
}

impl KnownDifferences {
    /// Those of this crate.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn stored() -> Result<Self, KnownDifferencesError> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("known-differences.txt");
        let text = std::fs::read_to_string(&path)
            .map_err(|error| KnownDifferencesError { line: 0, problem: error.to_string() })?;
        Self::read(&text)
    }

    /// Reads known differences.
    ///
    /// # Errors
    /// When a line is wrong or has no reason.
    pub fn read(text: &str) -> Result<Self, KnownDifferencesError> {
        let mut known = KnownDifferences::default();
        let mut has_reason = false;
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                has_reason &= !line.is_empty();
                continue;
            }
            let error = |problem: String| KnownDifferencesError { line: index + 1, problem };
            let (kind, rest) = line.split_once(": ").ok_or_else(|| error("it has no kind".to_owned()))?;
            if kind == "reason" {
                has_reason = true;
                continue;
            }
            if !has_reason {
                return Err(error("it has no reason above it".to_owned()));
            }
            let pattern = |text: &str| Regex::new(text).map_err(|problem| error(problem.to_string()));
            match kind {
                "drop" => known.drops.push(pattern(rest)?),
                "replace" => {
                    let (from, to) = rest.split_once(" => ").ok_or_else(|| error("' => ' is missing".to_owned()))?;
                    known.replacements.push((pattern(from)?, to.to_owned()));
                }
                "step" | "from" => {
                    let (scenario, number) =
                        rest.split_once(' ').ok_or_else(|| error("the number of the step is missing".to_owned()))?;
                    let number: usize = number.parse().map_err(|_| error(format!("'{number}' is no number")))?;
                    let last = if kind == "step" { number } else { usize::MAX };
                    known.steps.push((scenario.to_owned(), number..=last));
                }
                other => return Err(error(format!("there is no kind '{other}'"))),
            }
        }
        Ok(known)
    }

    /// The reference's lines as we expect to tell them.
    pub fn expected(&self, reference: Vec<String>) -> Vec<String> {
        let kept = reference.into_iter().filter(|line| !self.drops.iter().any(|pattern| pattern.is_match(line)));
        kept.map(|line| {
            self.replacements
                .iter()
                .fold(line, |line, (pattern, to)| pattern.replace_all(&line, to.as_str()).into_owned())
        })
        .collect()
    }

    /// Whether the step (from 1) of a scenario is taken as it is on our side.
    pub fn is_ours(&self, scenario: &str, step: usize) -> bool {
        self.steps.iter().any(|(known, steps)| known == scenario && steps.contains(&step))
    }

    /// What a scenario is expected to do on our side.
    pub fn expected_trace(&self, scenario: &Scenario, reference: Trace, ours: &Trace) -> Trace {
        let step = |(index, (step, lines)): (usize, (String, Vec<String>))| {
            let own = ours.get(index).filter(|_| self.is_ours(&scenario.name, index + 1));
            let lines = own.map_or_else(|| self.expected(lines), |(_, lines)| lines.clone());
            (step, lines)
        };
        reference.into_iter().enumerate().map(step).collect()
    }
}

/// The first step in which two traces differ, as its index and shown; `None` when they are equal.
pub fn difference(expected: &Trace, ours: &Trace) -> Option<(usize, String)> {
    let longest = expected.len().max(ours.len());
    let nothing = (String::new(), Vec::new());
    (0..longest).find_map(|index| {
        let (step, expected) = expected.get(index).unwrap_or(&nothing);
        let (our_step, ours) = ours.get(index).unwrap_or(&nothing);
        if step == our_step && expected == ours {
            return None;
        }
        let name = if step.is_empty() { our_step } else { step };
        Some((index, format!("step {}: {name}\n{}", index + 1, show(expected, ours))))
    })
}

/// Why both sides refused, where they did.
pub fn show_reasons(reference: &str, ours: &str) -> String {
    let line = |mark: char, reason: &str| {
        let reason: String = reason.chars().take(REASON_CHARACTERS_MAX).collect();
        if reason.is_empty() { reason } else { format!("    {mark} because: {}\n", reason.replace('\n', "\n      ")) }
    };
    line('-', reference) + &line('+', ours)
}

/// Two lists of lines merged: `-` only the reference, `+` only ours.
pub fn show(reference: &[String], ours: &[String]) -> String {
    let marked = if reference.len().saturating_mul(ours.len()) > TABLE_CELLS_MAX {
        let mark = |mark: char| move |line: &String| (mark, line.clone());
        reference.iter().map(mark('-')).chain(ours.iter().map(mark('+'))).collect()
    } else {
        merge(reference, ours)
    };
    let is_near = |index: usize| {
        let from = index.saturating_sub(CONTEXT_LINES);
        let to = (index + CONTEXT_LINES + 1).min(marked.len());
        marked[from..to].iter().any(|(mark, _)| *mark != ' ')
    };
    let mut text = String::new();
    let mut skipped = false;
    for (index, (mark, line)) in marked.iter().enumerate() {
        if is_near(index) {
            text.push_str(&format!("    {mark} {line}\n"));
        } else if !skipped {
            text.push_str("      ...\n");
        }
        skipped = !is_near(index);
    }
    text
}

/// The longest common lines, with what is only on one side between them.
fn merge(left: &[String], right: &[String]) -> Vec<(char, String)> {
    let width = right.len() + 1;
    let mut lengths = vec![0_u32; (left.len() + 1) * width];
    for row in (0..left.len()).rev() {
        for column in (0..right.len()).rev() {
            lengths[row * width + column] = if left[row] == right[column] {
                lengths[(row + 1) * width + column + 1] + 1
            } else {
                lengths[(row + 1) * width + column].max(lengths[row * width + column + 1])
            };
        }
    }
    let (mut row, mut column) = (0, 0);
    let mut merged = Vec::new();
    while row < left.len() || column < right.len() {
        if row < left.len() && column < right.len() && left[row] == right[column] {
            merged.push((' ', left[row].clone()));
            (row, column) = (row + 1, column + 1);
        } else if column == right.len()
            || row < left.len() && lengths[(row + 1) * width + column] >= lengths[row * width + column + 1]
        {
            merged.push(('-', left[row].clone()));
            row += 1;
        } else {
            merged.push(('+', right[column].clone()));
            column += 1;
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn what_is_on_one_side_only_is_marked() {
        assert_eq!(show(&lines("a b c"), &lines("a c d")), "      a\n    - b\n      c\n    + d\n");
        assert_eq!(difference(&vec![("s".into(), lines("a"))], &vec![("s".into(), lines("a"))]), None);
        let longer = vec![("s".to_owned(), lines("a")), ("t".to_owned(), lines("b"))];
        let (index, shown) = difference(&vec![("s".into(), lines("a"))], &longer).expect("a step more");
        assert_eq!(index, 1);
        assert!(shown.starts_with("step 2: t\n    + b"), "{shown}");
    }

    #[test]
    fn known_differences_have_a_reason() {
        let text = "reason: because\ndrop: ^x\nreplace: a(\\d) => b$1\nstep: one 3\nfrom: two 2";
        let known = KnownDifferences::read(text).expect("readable");
        assert_eq!(known.expected(lines("x1 a2 ax")), lines("b2 ax"));
        assert!(known.is_ours("one", 3));
        assert!(!known.is_ours("one", 2) && !known.is_ours("one", 4));
        assert!(!known.is_ours("two", 1) && known.is_ours("two", 2) && known.is_ours("two", 9));
        assert!(KnownDifferences::read("drop: x").is_err());
        assert!(KnownDifferences::read("reason: r\n\ndrop: x").is_err());
        assert!(KnownDifferences::read("reason: r\ndrop: (").is_err());
    }
}
