//! Problems found in a file, and their text for people.

use std::fmt;

use model_file::{Lines, shorten};
use roxmltree::Node;

use crate::vocabulary;
use crate::xml;

/// The largest text of [`render_reports`], counted as it travels: gRPC sends a status text as an HTTP/2 header in which
/// every byte outside printable ASCII takes three. Most clients refuse headers of more than 8 KiB altogether, so a
/// longer text would reach nobody.
pub const MAXIMUM_REPORT_BYTES: usize = 7 * 1024;

/// The most problems of one file that are described; further ones are counted.
pub const MAXIMUM_PROBLEMS: usize = 1_000;

/// The most characters of an element's name that are shown.
const NAME_CHARACTERS_MAX: usize = 60;

/// Room kept for the line that says how many problems were left out.
const OMISSION_BYTES: usize = 64;

/// One thing that keeps a file from being deployed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Id of the element, or of the nearest enclosing element that has one.
    pub element_id: Option<String>,
    /// The XML name of the element itself, e.g. `serviceTask` or `taskDefinition`.
    pub element_type: Option<String>,
    /// Where it is, as shown in the report.
    pub place: Place,
    /// The line where the element begins, counted from 1; none for what is not one element of the file.
    pub line: Option<u32>,
    /// The name of the element, or of the nearest enclosing element that has an id, as the modeler shows it.
    pub name: Option<String>,
    /// What is wrong and what to do, in full sentences.
    pub message: String,
}

/// Where a problem is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The file as a whole: it could not be read as BPMN.
    File,
    /// An element: its id, or the way to it from the nearest element with an id (`task > extensionElements > taskDefinition`).
    Element(String),
    /// A process as a whole, by its id.
    Process(String),
}

/// Every problem of one file. The text is the file's paragraph of [`render_reports`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ValidationReport {
    /// The name under which the file was deployed.
    pub resource_name: String,
    /// At least one problem and at most [`MAXIMUM_PROBLEMS`].
    pub problems: Vec<Problem>,
    /// How many problems were found after these.
    pub further_problems: usize,
}

impl ValidationReport {
    /// The file's paragraph of [`render_paragraphs`].
    pub fn paragraph(&self) -> (Vec<String>, usize) {
        (paragraph(&self.resource_name, self), self.further_problems)
    }
}

impl fmt::Display for ValidationReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let paragraph = paragraph(&self.resource_name, self);
        paragraph.iter().try_for_each(|chunk| formatter.write_str(chunk))?;
        formatter.write_str(&omission(self.further_problems))
    }
}

/// The text of a refused deployment, at most [`MAXIMUM_REPORT_BYTES`] long: a head line, then one paragraph per file
/// with its name. What does not fit is counted in a last line.
pub fn render_reports(reports: &[(&str, &ValidationReport)]) -> String {
    let paragraphs = reports.iter().map(|(name, report)| (paragraph(name, report), report.further_problems));
    render_paragraphs(paragraphs.collect())
}

/// The same for files of any kind: for each the text in a chunk per problem, the first of which begins with the file's
/// name, and how many further problems it has.
pub fn render_paragraphs(paragraphs: Vec<(Vec<String>, usize)>) -> String {
    let mut text = String::from("Expected to deploy new resources, but encountered the following errors:");
    let mut bytes = travelling_bytes(&text);
    let mut omitted = 0_usize;
    let mut further = 0_usize;
    for (chunks, further_problems) in paragraphs {
        further += further_problems;
        let mut separator = "\n";
        for chunk in chunks {
            let chunk_bytes = travelling_bytes(separator) + travelling_bytes(&chunk);
            if omitted > 0 || bytes + chunk_bytes + OMISSION_BYTES > MAXIMUM_REPORT_BYTES {
                omitted += 1;
                continue;
            }
            text.push_str(separator);
            text.push_str(&chunk);
            bytes += chunk_bytes;
            separator = "";
        }
    }
    text.push_str(&omission(omitted + further));
    text
}

fn omission(problems: usize) -> String {
    if problems == 0 { String::new() } else { format!("\nand {problems} more errors and/or warnings") }
}

/// One chunk of text per problem; the first begins with the file's name. Problems of one place that follow each other
/// share its line.
fn paragraph(name: &str, report: &ValidationReport) -> Vec<String> {
    let mut chunks = Vec::with_capacity(report.problems.len());
    let mut previous = None;
    for problem in &report.problems {
        let mut chunk = if chunks.is_empty() { format!("'{name}': ") } else { String::new() };
        let message = &problem.message;
        match &problem.place {
            Place::File => chunk.push_str(message),
            place if previous == Some(place) => chunk.push_str(&format!("    - ERROR: {message}\n")),
            Place::Element(path) => {
                let details = details(problem);
                chunk.push_str(&format!("- Element: {path}{details}\n    - ERROR: {message}\n"));
            }
            Place::Process(id) => chunk.push_str(&format!("- Process: {id}\n    - ERROR: {message}\n")),
        }
        previous = Some(&problem.place);
        chunks.push(chunk);
    }
    chunks
}

/// What helps to find an element: its line, and its name.
fn details(problem: &Problem) -> String {
    match (problem.line, &problem.name) {
        (Some(line), Some(name)) => format!(" (line {line}, '{name}')"),
        (Some(line), None) => format!(" (line {line})"),
        (None, Some(name)) => format!(" ('{name}')"),
        (None, None) => String::new(),
    }
}

fn travelling_bytes(text: &str) -> usize {
    text.bytes().map(|byte| if matches!(byte, b' '..=b'~') && byte != b'%' { 1 } else { 3 }).sum()
}

/// Collects problems while a file is read.
pub(crate) struct Problems {
    found: Vec<Problem>,
    further: usize,
    lines: Lines,
    /// Whether the file was accepted before, so that only what the model needs to be sound matters.
    is_deployed: bool,
}

impl Problems {
    pub(crate) fn of_new_file() -> Self {
        Self { found: Vec::new(), further: 0, lines: Lines::default(), is_deployed: false }
    }

    pub(crate) fn of_deployed_file() -> Self {
        Self { is_deployed: true, ..Self::of_new_file() }
    }

    pub(crate) fn is_deployed(&self) -> bool {
        self.is_deployed
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    pub(crate) fn into_report(self, resource_name: &str) -> ValidationReport {
        ValidationReport {
            resource_name: resource_name.to_owned(),
            problems: self.found,
            further_problems: self.further,
        }
    }

    fn push(&mut self, element: Option<(&str, Option<String>)>, place: Place, message: String) -> Option<&mut Problem> {
        if self.found.len() == MAXIMUM_PROBLEMS {
            self.further += 1;
            return None;
        }
        let (element_type, element_id) = element.unzip();
        self.found.push(Problem {
            element_id: element_id.flatten(),
            element_type: element_type.map(str::to_owned),
            place,
            line: None,
            name: None,
            message: shorten(message),
        });
        self.found.last_mut()
    }

    /// A problem of the file as a whole; there is nothing to compile then.
    pub(crate) fn refuse_file<T>(&mut self, message: String) -> Vec<T> {
        self.push(None, Place::File, message);
        Vec::new()
    }

    /// A problem at `node` that keeps the model from being sound.
    pub(crate) fn add(&mut self, node: Node, message: impl Into<String>) {
        let (element_id, path) = xml::path(node);
        let line = self.lines.of(node);
        let named = Some((node.tag_name().name(), element_id));
        if let Some(problem) = self.push(named, Place::Element(shorten(path)), message.into()) {
            let named = node.ancestors().find(|ancestor| ancestor.has_attribute("id"));
            let name = named.and_then(|element| element.attribute("name")).filter(|name| !name.trim().is_empty());
            problem.name = name.map(|name| name.split_whitespace().collect::<Vec<_>>().join(" ")).map(shorten_name);
            problem.line = Some(line);
        }
    }

    /// A problem at `node` that leaves the model sound: it only refuses new deployments.
    pub(crate) fn add_for_new(&mut self, node: Node, message: impl Into<String>) {
        if !self.is_deployed {
            self.add(node, message);
        }
    }

    /// A problem at a part of an element whose XML is not available.
    pub(crate) fn add_to_element(&mut self, element_id: &str, part: &str, path: String, message: String) {
        self.push(Some((part, Some(element_id.to_owned()))), Place::Element(shorten(path)), message);
    }

    /// A problem of a process that only its execution would show.
    pub(crate) fn add_to_process(&mut self, process_id: &str, message: String) {
        let place = Place::Process(process_id.to_owned());
        self.push(Some(("process", Some(process_id.to_owned()))), place, message);
    }

    /// `node` is a flow element or event definition that this version does not execute.
    pub(crate) fn refuse_element_type(&mut self, node: Node) {
        self.add(node, unsupported(node));
    }

    /// `node` is part of something executed, or next to it, and this version does not know what it means.
    pub(crate) fn refuse_part(&mut self, node: Node) {
        self.add_for_new(node, unsupported(node));
    }
}

fn shorten_name(name: String) -> String {
    match name.char_indices().nth(NAME_CHARACTERS_MAX) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name,
    }
}

fn unsupported(node: Node) -> String {
    let name = node.tag_name().name();
    if vocabulary::is_event_definition(name) {
        let event = node.parent_element().and_then(|event| event.attribute("id"));
        return format!(
            "Event definition of this type is not supported: this version does not execute '{name}' of '{}'. \
             Use another event.",
            event.unwrap_or_default()
        );
    }
    // For events, the definition shows the reader which one is meant.
    let definition = node
        .children()
        .map(|child| child.tag_name().name())
        .find(|child| vocabulary::is_event_definition(child))
        .map_or_else(String::new, |definition| format!(" (here with '{definition}')"));
    format!(
        "Elements of type '{}' are currently not supported by this version{definition}. \
         Replace the element by others.",
        vocabulary::type_name(name)
    )
}
