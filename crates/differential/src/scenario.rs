//! Scenarios as files: what they are about, their models, and steps, each a line that starts with `> `.
//!
//! ```text
//! # A task fails until there are no retries left.
//!
//! model order.bpmn
//!   process order
//!     service check type=check
//!
//! > deploy order.bpmn
//! > create order {"total": 5} as A
//! ```
//!
//! What happens is in a file next to it with the ending `.trace`: each step, and below it what it caused.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::model;
use crate::step::{self, Step};

/// The files that a scenario can deploy.
#[derive(Debug, Default)]
pub struct Files {
    /// Where files are that the scenario does not hold itself.
    pub directory: PathBuf,
    /// The files that it holds, by name.
    pub inline: BTreeMap<String, Vec<u8>>,
}

impl Files {
    /// The content of a file.
    ///
    /// # Errors
    /// When there is no such file.
    pub fn read(&self, name: &str) -> Result<Vec<u8>, std::io::Error> {
        match self.inline.get(name) {
            Some(content) => Ok(content.clone()),
            None => std::fs::read(self.directory.join(name)),
        }
    }
}

/// A written scenario.
#[derive(Debug)]
pub struct Scenario {
    /// File name without ending.
    pub name: String,
    /// Its file.
    pub path: PathBuf,
    /// What can be deployed.
    pub files: Files,
    /// What is done.
    pub steps: Vec<Step>,
}

/// What happened in each step.
pub type Trace = Vec<(String, Vec<String>)>;

/// A scenario that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", path.display())]
pub struct ScenarioError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub problem: String,
}

/// Where the written scenarios are.
pub fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios")
}

/// All scenarios of a directory in the order of their names.
///
/// # Errors
/// When one of them cannot be read.
pub fn read_all(directory: &Path) -> Result<Vec<Scenario>, ScenarioError> {
    let error = |problem: String| ScenarioError { path: directory.to_owned(), problem };
    let entries = std::fs::read_dir(directory).map_err(|problem| error(problem.to_string()))?;
    let mut paths: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
        .collect();
    paths.sort();
    paths.into_iter().map(|path| read(&path)).collect()
}

/// One scenario.
///
/// # Errors
/// When it cannot be read.
pub fn read(path: &Path) -> Result<Scenario, ScenarioError> {
    let error = |problem: String| ScenarioError { path: path.to_owned(), problem };
    let text = std::fs::read_to_string(path).map_err(|problem| error(problem.to_string()))?;
    let mut files = Files { directory: path.parent().unwrap_or(Path::new("")).join("models"), inline: BTreeMap::new() };
    let mut steps = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if let Some(step) = line.strip_prefix("> ") {
            steps.push(step::read(step).map_err(|problem| error(problem.to_string()))?);
        } else if let Some(name) = line.strip_prefix("model ") {
            let mut body = String::new();
            while let Some(line) = lines.next_if(|line| line.starts_with("  ")) {
                body.push_str(&line[2..]);
                body.push('\n');
            }
            let xml = model::read(&body).and_then(|model| model.to_xml());
            let xml = xml.map_err(|problem| error(format!("model {name}: {problem}")))?;
            files.inline.insert(name.trim().to_owned(), xml.into_bytes());
        } else if !line.is_empty() && !line.starts_with('#') {
            return Err(error(format!("'{line}' is neither a comment, a model nor a step ('> ')")));
        }
    }
    let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    Ok(Scenario { name, path: path.to_owned(), files, steps })
}

impl Scenario {
    /// Where the stored trace is.
    pub fn trace_path(&self) -> PathBuf {
        self.path.with_extension("trace")
    }

    /// The stored trace; `None` when there is none yet.
    pub fn stored_trace(&self) -> Option<Trace> {
        std::fs::read_to_string(self.trace_path()).ok().map(|text| read_trace(&text))
    }
}

/// Reads a stored trace.
pub fn read_trace(text: &str) -> Trace {
    let mut trace = Trace::new();
    for line in text.lines() {
        if let Some(step) = line.strip_prefix("> ") {
            trace.push((step.to_owned(), Vec::new()));
        } else if let (Some(line), Some((_, lines))) = (line.strip_prefix("  "), trace.last_mut()) {
            lines.push(line.to_owned());
        }
    }
    trace
}

/// Writes a trace as it is stored.
pub fn write_trace(trace: &Trace) -> String {
    let mut text = String::new();
    for (step, lines) in trace {
        text.push_str("> ");
        text.push_str(step);
        text.push('\n');
        for line in lines {
            text.push_str("  ");
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}
