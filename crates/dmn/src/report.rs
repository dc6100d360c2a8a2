//! Problems found in a file, and their text for people.

use std::fmt;

use model_file::{Lines, shorten};
use roxmltree::Node;

use crate::xml;

/// The most problems of one file that are described; further ones are counted.
pub const MAXIMUM_PROBLEMS: usize = 1_000;

/// One thing that keeps a file from being deployed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Id of the element, or of the nearest enclosing element that has one. `None` for the file as a whole.
    pub element_id: Option<String>,
    /// The XML name of the element itself, e.g. `decisionTable`. `None` for the file as a whole.
    pub element_type: Option<String>,
    /// The way to the element from the nearest one with an id: `decision > decisionTable > input`.
    pub path: Option<String>,
    /// The line where the element begins, counted from 1.
    pub line: Option<u32>,
    /// What is wrong and what to do, in full sentences.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.path, self.line) {
            (Some(path), Some(line)) => {
                write!(formatter, "- Element: {path} (line {line})\n    - ERROR: {}", self.message)
            }
            _ => formatter.write_str(&self.message),
        }
    }
}

/// Every problem of one file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ValidationReport {
    /// At least one problem and at most [`MAXIMUM_PROBLEMS`].
    pub problems: Vec<Problem>,
    /// How many problems were found after these.
    pub further_problems: usize,
}

impl fmt::Display for ValidationReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, problem) in self.problems.iter().enumerate() {
            formatter.write_str(if position > 0 { "\n" } else { "" })?;
            problem.fmt(formatter)?;
        }
        match self.further_problems {
            0 => Ok(()),
            further => write!(formatter, "\nand {further} more errors"),
        }
    }
}

/// Collects problems while a file is read.
#[derive(Default)]
pub(crate) struct Problems {
    found: Vec<Problem>,
    further: usize,
    lines: Lines,
}

impl Problems {
    pub(crate) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    pub(crate) fn into_report(self) -> ValidationReport {
        ValidationReport { problems: self.found, further_problems: self.further }
    }

    fn push(&mut self, problem: Problem) {
        self.found.push(Problem { message: shorten(problem.message), path: problem.path.map(shorten), ..problem });
    }

    /// A problem of the file as a whole.
    pub(crate) fn refuse_file(&mut self, message: impl Into<String>) {
        self.push(Problem { element_id: None, element_type: None, path: None, line: None, message: message.into() });
    }

    /// A problem at `node`.
    pub(crate) fn add(&mut self, node: Node, message: impl Into<String>) {
        if self.found.len() == MAXIMUM_PROBLEMS {
            self.further += 1;
            return;
        }
        let (element_id, path) = xml::path(node);
        let line = self.lines.of(node);
        self.push(Problem {
            element_id,
            element_type: Some(node.tag_name().name().to_owned()),
            path: Some(path),
            line: Some(line),
            message: message.into(),
        });
    }
}
