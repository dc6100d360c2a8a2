//! BPMN 2.0 XML with `zeebe:` extensions, turned into a validated model that the engine walks.
//!
//! A file is either accepted whole or refused with every problem found: an element that this version does not execute
//! is refused by name, so a deployed process never runs half. Namespaces are compared by URI, never by prefix.
//!
//! Invariants of an accepted process: every index in the model is in range; sequence flows stay inside one flow scope, and
//! none enters a start event, boundary event or event sub-process or leaves an end event or event sub-process; each
//! embedded sub-process has exactly one none start event, each ad-hoc sub-process an element for its inner instances, and each event sub-process exactly one start event that waits for
//! something; boundary events and links are in the scope of what they belong to; behind an event-based gateway are only
//! intermediate catch events.
//!
//! Besides the rules that these need there are others that only protect people from mistakes: among them that no cycle runs
//! through a task without a wait state. [`parse_deployed`] leaves them out.

#![deny(clippy::disallowed_methods, clippy::iter_over_hash_type)]

mod activities;
mod ad_hoc;
mod bindings;
mod catch_rules;
mod compensation;
mod compile;
mod conditions;
mod draft;
mod events;
mod expressions;
mod extensions;
mod flows;
mod gateways;
mod linked_resources;
mod listeners;
mod loops;
pub mod model;
mod names;
mod report;
mod roots;
mod scopes;
pub mod timer;
mod timer_definitions;
mod user_tasks;
mod vocabulary;
mod xml;

use std::collections::HashSet;

use roxmltree::Node;

pub use bindings::{Deployed, check_deployment_bindings};
pub use linked_resources::{LINKED_RESOURCES_HEADER, MAXIMUM_LINKED_RESOURCES};
pub use listeners::MAXIMUM_LISTENERS;
pub use names::{MAPPING_TARGET_NAMES_MAX, NAME_BYTES_MAX};
pub use report::{
    MAXIMUM_PROBLEMS, MAXIMUM_REPORT_BYTES, Place, Problem, ValidationReport, render_paragraphs, render_reports,
};
pub use xml::{
    MAXIMUM_ATTRIBUTES_PER_ELEMENT, MAXIMUM_NAMESPACES_IN_ALL_SCOPES, MAXIMUM_NAMESPACES_IN_SCOPE,
    MAXIMUM_NESTING_LEVELS, MAXIMUM_NODES, MAXIMUM_RESOURCE_BYTES,
};

use model::ExecutableProcess;
use report::Problems;
use roots::Roots;
use xml::is_bpmn;

/// All executable processes of one file in document order, or every problem found.
///
/// Processes without `isExecutable="true"` are drawings: they are skipped, but at least one must be executable.
pub fn parse(resource_name: &str, content: &[u8]) -> Result<Vec<ExecutableProcess>, ValidationReport> {
    parse_with(resource_name, content, Problems::of_new_file())
}

/// Like [`parse`], for a file that was accepted when it was deployed: rules that only refuse new deployments are left
/// out, so that a rule which a later version adds does not take a deployed process away. What the model needs to be sound
/// is still looked for.
pub fn parse_deployed(resource_name: &str, content: &[u8]) -> Result<Vec<ExecutableProcess>, ValidationReport> {
    parse_with(resource_name, content, Problems::of_deployed_file())
}

fn parse_with(
    resource_name: &str,
    content: &[u8],
    mut problems: Problems,
) -> Result<Vec<ExecutableProcess>, ValidationReport> {
    let processes = parse_into(content, &mut problems);
    if problems.is_empty() { Ok(processes) } else { Err(problems.into_report(resource_name)) }
}

fn parse_into(content: &[u8], problems: &mut Problems) -> Vec<ExecutableProcess> {
    let text = match xml::decode(content) {
        Ok(text) => text,
        Err(message) => return problems.refuse_file(message),
    };
    let document = match xml::parse(&text) {
        Ok(document) => document,
        Err(message) => return problems.refuse_file(message),
    };
    let definitions = document.root_element();
    if !is_bpmn(definitions, "definitions") {
        return problems.refuse_file(format!(
            "The root element is '{}', but a BPMN file starts with 'definitions' of the namespace '{}'. \
             Check that the file was saved as BPMN 2.0.",
            definitions.tag_name().name(),
            xml::BPMN_NAMESPACE
        ));
    }
    check_ids(definitions, problems);
    for choreography in definitions.children().filter(|node| is_bpmn(*node, "choreography")) {
        problems.refuse_part(choreography);
    }
    let executable: Vec<Node> = definitions
        .children()
        .filter(|node| is_bpmn(*node, "process") && xml::is_true(*node, "isExecutable"))
        .collect();
    if executable.is_empty() {
        problems.add(
            definitions,
            "Must contain at least one executable process. Set isExecutable=\"true\" on the process to be deployed.",
        );
    }
    let roots = Roots::read(definitions);
    let compiled = executable.into_iter().map(|process| compile::compile(process, &roots, problems));
    let processes = compiled.collect::<Vec<_>>();
    roots.check(problems);
    // Cycles are looked for only in sound models: a broken one has problems enough to correct first.
    if problems.is_empty() && !problems.is_deployed() {
        loops::check(&processes, problems);
    }
    processes
}

/// Ids are unique in the file and are XML names; a process and its flow elements must have one (checked where they are compiled).
fn check_ids(definitions: Node, problems: &mut Problems) {
    let mut seen = HashSet::new();
    for node in definitions.descendants().filter(|node| xml::is_in(*node, xml::BPMN_NAMESPACE)) {
        let Some(id) = node.attribute("id") else {
            continue;
        };
        names::check(node, "id", id, problems);
        if !id.is_empty() && !xml::is_name(id) {
            problems.add_for_new(
                node,
                format!(
                    "The id '{id}' is not valid. An id starts with a letter or '_' and goes on with letters, digits, '_', '-' or '.'."
                ),
            );
        } else if !id.is_empty() && !seen.insert(id) {
            problems.add(
                node,
                format!("The id '{id}' is used more than once in this file. Give every element an id of its own."),
            );
        }
    }
}
