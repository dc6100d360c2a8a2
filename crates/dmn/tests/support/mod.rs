//! Small models written in the tests, and their evaluation.
#![allow(dead_code)]

use std::fmt::Write;
use std::sync::Arc;

use dmn::{DecisionEvaluation, DecisionRequirementsGraph, parse};
use feel::{Context, Environment, Value};

/// A file with these elements.
pub(crate) fn definitions(content: &str) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <definitions xmlns=\"https://www.omg.org/spec/DMN/20191111/MODEL/\" id=\"graph\" name=\"Graph\" namespace=\"test\">\n\
         {content}\n</definitions>\n"
    )
}

pub(crate) fn graph(content: &str) -> DecisionRequirementsGraph {
    parse(definitions(content).as_bytes()).unwrap_or_else(|report| panic!("{report}"))
}

/// The report of a file that is refused.
pub(crate) fn report(content: &str) -> String {
    parse(definitions(content).as_bytes()).expect_err("the file is refused").to_string()
}

/// The entries of a JSON object as variables.
pub(crate) fn variables(json: &str) -> Context {
    Value::from_json(json).expect("valid JSON").as_context().expect("an object").clone()
}

pub(crate) fn evaluate(graph: &DecisionRequirementsGraph, decision: &str, json: &str) -> DecisionEvaluation {
    graph.evaluate(decision, &variables(json), &Environment::at(0))
}

/// The output as JSON, or the message of the failure.
pub(crate) fn output(graph: &DecisionRequirementsGraph, decision: &str, json: &str) -> String {
    match evaluate(graph, decision, json).result {
        Ok(value) => value.to_json(),
        Err(failure) => failure.message,
    }
}

pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

pub(crate) fn literal(text: &str) -> String {
    format!("<literalExpression><text>{}</text></literalExpression>", escape(text))
}

/// A decision whose result has its name.
pub(crate) fn decision(name: &str, requires: &[&str], logic: &str) -> String {
    let requirements: String = requires
        .iter()
        .map(|id| match id.strip_prefix('+') {
            Some(id) => format!("<knowledgeRequirement><requiredKnowledge href=\"#{id}\"/></knowledgeRequirement>"),
            None => format!("<informationRequirement><requiredDecision href=\"#{id}\"/></informationRequirement>"),
        })
        .collect();
    format!("<decision id=\"{name}\" name=\"{name}\"><variable name=\"{name}\"/>{requirements}{logic}</decision>\n")
}

/// A decision table. A rule is written as tests, a bar and results, separated by semicolons.
pub(crate) fn table(attributes: &str, inputs: &[&str], outputs: &[&str], rules: &[&str]) -> String {
    let mut xml = format!("<decisionTable {attributes}>");
    for (number, input) in inputs.iter().enumerate() {
        let text = escape(input);
        let _ = write!(xml, "<input id=\"i{number}\"><inputExpression><text>{text}</text></inputExpression></input>");
    }
    for (number, output) in outputs.iter().enumerate() {
        let (name, content) = output.split_once(' ').unwrap_or((output, ""));
        let _ = write!(xml, "<output id=\"o{number}\" name=\"{name}\">{content}</output>");
    }
    for (number, rule) in rules.iter().enumerate() {
        let (tests, results) = rule.split_once('|').unwrap_or((rule, ""));
        let _ = write!(xml, "<rule id=\"r{number}\">");
        let entries = |text: &str, name: &str| -> String {
            let entries = text.split(';').filter(|entry| !entry.is_empty());
            entries.map(|entry| format!("<{name}><text>{}</text></{name}>", escape(entry.trim()))).collect()
        };
        let _ = write!(xml, "{}{}</rule>", entries(tests, "inputEntry"), entries(results, "outputEntry"));
    }
    xml + "</decisionTable>"
}

/// A business knowledge model with parameters like `a: number`.
pub(crate) fn model(name: &str, requires: &[&str], parameters: &[&str], logic: &str) -> String {
    let requirements: String = requires
        .iter()
        .map(|id| format!("<knowledgeRequirement><requiredKnowledge href=\"#{id}\"/></knowledgeRequirement>"))
        .collect();
    let parameters: String = parameters
        .iter()
        .map(|parameter| {
            let (name, item) = parameter.split_once(": ").unwrap_or((parameter, "Any"));
            format!("<formalParameter name=\"{name}\" typeRef=\"{item}\"/>")
        })
        .collect();
    format!(
        "<businessKnowledgeModel id=\"{name}\" name=\"{name}\">{requirements}\
         <encapsulatedLogic>{parameters}{logic}</encapsulatedLogic></businessKnowledgeModel>\n"
    )
}

pub(crate) fn name(text: &str) -> Arc<str> {
    Arc::from(text)
}
