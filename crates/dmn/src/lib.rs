//! DMN: decision requirements graphs, from XML to the evaluation of decisions, in the dialect of Camunda.
//!
//! A file is either accepted whole or refused with every problem found. All its expressions are compiled while it is read;
//! an evaluation parses nothing. [`DecisionRequirementsGraph::evaluate`] evaluates a decision and first all that it
//! requires, each once, and reports every one of them with its inputs, matched rules and output.
//!
//! The crate is pure: variables come from a [`feel::Scope`], the clock and the limits from a [`feel::Environment`], and
//! nothing else is read. All work is charged to a [`feel::Budget`] before it is done.

#![deny(clippy::disallowed_methods, clippy::iter_over_hash_type)]

mod compile;
mod evaluate;
mod expressions;
mod free_names;
mod imports;
mod index;
mod model;
mod read;
mod report;
mod requirements;
mod result;
mod table;
mod types;
mod xml;

use std::sync::Arc;

use feel::{Budget, Environment, Scope};

pub use report::{MAXIMUM_PROBLEMS, Problem, ValidationReport};
pub use result::{
    DecisionEvaluation, DecisionFailure, DecisionType, EvaluatedDecision, EvaluatedInput, EvaluatedOutput,
    MAXIMUM_EVALUATED_DECISIONS, MatchedRule,
};
pub use xml::{
    MAXIMUM_ATTRIBUTES_PER_ELEMENT, MAXIMUM_NAMESPACES_IN_ALL_SCOPES, MAXIMUM_NAMESPACES_IN_SCOPE,
    MAXIMUM_NESTING_LEVELS, MAXIMUM_NODES, MAXIMUM_RESOURCE_BYTES,
};

use report::Problems;

/// A compiled file. Cloning shares it.
#[derive(Clone)]
pub struct DecisionRequirementsGraph {
    graph: Arc<model::Graph>,
}

/// What is known of a decision without evaluating it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecisionDescription<'a> {
    /// The id that names it in an evaluation.
    pub id: &'a str,
    /// The name.
    pub name: &'a str,
    /// The version tag of its `zeebe:` extension.
    pub version_tag: Option<&'a str>,
}

/// Reads a file. The result is the graph, or every problem found. What is required of other models is refused.
pub fn parse(content: &[u8]) -> Result<DecisionRequirementsGraph, ValidationReport> {
    parse_with_imports(content, &[])
}

/// Reads a file that may import these models, which are found by their namespaces. Their decisions, input data, functions
/// and types are known behind the name of the import: `name.Thing`. They are evaluated with the same variables as the file's
/// own, and reported together with them, but only decisions of the file itself can be asked for.
pub fn parse_with_imports(
    content: &[u8],
    models: &[DecisionRequirementsGraph],
) -> Result<DecisionRequirementsGraph, ValidationReport> {
    let mut problems = Problems::default();
    let models: Vec<Arc<model::Graph>> = models.iter().map(|model| model.graph.clone()).collect();
    match parse_into(content, &models, &mut problems) {
        Ok(graph) if problems.is_empty() => Ok(DecisionRequirementsGraph { graph: Arc::new(graph) }),
        Ok(_) => Err(problems.into_report()),
        Err(message) => {
            problems.refuse_file(message);
            Err(problems.into_report())
        }
    }
}

fn parse_into(content: &[u8], models: &[Arc<model::Graph>], problems: &mut Problems) -> Result<model::Graph, String> {
    let text = xml::decode(content)?;
    let document = xml::parse(&text)?;
    let root = document.root_element();
    if !xml::is_dmn(root, "definitions") {
        return Err(format!(
            "The root element is '{}', but a DMN file starts with 'definitions' of a namespace of DMN 1.1 to 1.5, for instance \
             '{}'. Check that the file was saved as DMN.",
            root.tag_name().name(),
            xml::DMN_NAMESPACES[xml::DMN_NAMESPACES.len() - 1]
        ));
    }
    Ok(read::read(root, models, problems))
}

impl DecisionRequirementsGraph {
    /// The id of the graph.
    pub fn id(&self) -> &str {
        &self.graph.id
    }

    /// The name of the graph.
    pub fn name(&self) -> &str {
        &self.graph.name
    }

    /// The namespace of the graph; empty if it has none.
    pub fn namespace(&self) -> &str {
        &self.graph.namespace
    }

    /// The decisions in document order.
    pub fn decisions(&self) -> impl Iterator<Item = DecisionDescription<'_>> {
        self.graph.decisions.iter().map(|decision| DecisionDescription {
            id: &decision.id,
            name: &decision.name,
            version_tag: decision.version_tag.as_deref(),
        })
    }

    /// The ids and names of the decision services in document order.
    pub fn decision_services(&self) -> impl Iterator<Item = (&str, &str)> {
        self.graph.services.iter().map(|service| (&*service.id, &*service.name))
    }

    /// Evaluates a decision and all that it requires with the variables of the scope and a budget of its own.
    pub fn evaluate(&self, decision_id: &str, scope: &dyn Scope, environment: &Environment) -> DecisionEvaluation {
        self.evaluate_within(decision_id, scope, environment, &Budget::of(environment))
    }

    /// The same with the rest of a budget.
    pub fn evaluate_within(
        &self,
        decision_id: &str,
        scope: &dyn Scope,
        environment: &Environment,
        budget: &Budget,
    ) -> DecisionEvaluation {
        evaluate::evaluate_decision(&self.graph, decision_id, scope, environment, budget)
    }

    /// Evaluates a decision service with its parameters among the variables of the scope. The result is that of its output
    /// decision, or a context with those of several.
    pub fn evaluate_service(
        &self,
        service_id: &str,
        scope: &dyn Scope,
        environment: &Environment,
    ) -> DecisionEvaluation {
        evaluate::evaluate_service(&self.graph, service_id, scope, environment, &Budget::of(environment))
    }
}

impl std::fmt::Debug for DecisionRequirementsGraph {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "DecisionRequirementsGraph({:?})", self.id())
    }
}
