//! The files of the kit.

use std::path::Path;
use std::sync::Arc;

use dmn::ValidationReport;
use feel::{Context, Value};
use roxmltree::{Document, Node};

use crate::values::{elements, same, value};

pub(crate) struct Suite {
    pub(crate) model: String,
    pub(crate) cases: Vec<Case>,
}

pub(crate) struct Case {
    pub(crate) id: String,
    /// The decision service to call; else decisions are evaluated.
    pub(crate) service: Option<String>,
    pub(crate) inputs: Context,
    pub(crate) results: Vec<(String, Expected)>,
}

pub(crate) struct Expected(Value);

impl Expected {
    pub(crate) fn check(&self, found: &Value) -> Result<(), String> {
        if same(&self.0, found) { Ok(()) } else { Err(format!("expected: {}\n    found: {found}", self.0)) }
    }
}

impl Suite {
    pub(crate) fn read(file: &Path) -> Suite {
        let text = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let document = Document::parse(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let root = document.root_element();
        let model = elements(root, "modelName").next().and_then(|node| node.text()).unwrap_or_default();
        Suite { model: model.trim().to_owned(), cases: elements(root, "testCase").map(case).collect() }
    }
}

fn case(node: Node) -> Case {
    let named = |node: Node| node.attribute("name").unwrap_or_default().to_owned();
    let mut inputs = Context::new();
    for input in elements(node, "inputNode") {
        inputs.put(Arc::from(named(input)), value(input));
    }
    let results = elements(node, "resultNode").map(|result| {
        let expected = elements(result, "expected").next().map(value).unwrap_or_default();
        (named(result), Expected(expected))
    });
    Case {
        id: node.attribute("id").unwrap_or_default().to_owned(),
        service: (node.attribute("type") == Some("decisionService"))
            .then(|| node.attribute("invocableName").unwrap_or_default().to_owned()),
        inputs,
        results: results.collect(),
    }
}

/// The namespace of a model.
pub(crate) fn namespace(model: &str) -> String {
    let document = Document::parse(model).ok();
    let namespace = document.as_ref().and_then(|document| document.root_element().attribute("namespace"));
    namespace.unwrap_or_default().to_owned()
}

pub(crate) fn imported_namespaces(model: &str) -> Vec<String> {
    let Ok(document) = Document::parse(model) else {
        return Vec::new();
    };
    let namespace = |import: Node| import.attribute("namespace").unwrap_or_default().to_owned();
    elements(document.root_element(), "import").map(namespace).collect()
}

/// The text of a decision, without tags.
pub(crate) fn logic(model: &str, decision: &str) -> String {
    let Ok(document) = Document::parse(model) else {
        return String::new();
    };
    let is_decision = |node: &Node| node.tag_name().name() == "decision" && node.attribute("name") == Some(decision);
    let texts = document.descendants().find(is_decision).into_iter().flat_map(|node| node.descendants());
    let texts = texts.filter(|node| node.tag_name().name() == "text").filter_map(|node| node.text());
    texts.map(str::trim).collect::<Vec<_>>().join(" | ")
}

/// The model without the decisions and business knowledge models in which problems were found.
pub(crate) fn without_refused(model: &str, report: &ValidationReport) -> String {
    let Ok(document) = Document::parse(model) else {
        return String::new();
    };
    let mut text = model.to_owned();
    let mut parts: Vec<_> =
        document.root_element().children().filter(Node::is_element).map(|node| node.range()).collect();
    parts.reverse();
    for part in parts {
        let line = |offset: usize| model[..offset].matches('\n').count() + 1;
        let lines = line(part.start)..=line(part.end);
        let is_refused = |problem: &u32| lines.contains(&(*problem as usize));
        if report.problems.iter().filter_map(|problem| problem.line).any(|line| is_refused(&line)) {
            text.replace_range(part, "");
        }
    }
    text
}
