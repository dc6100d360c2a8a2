//! Bindings: which version a reference to another resource means, and whether the deployment has it.

use std::sync::Arc;

use roxmltree::Node;

use crate::model::{
    Behavior, Binding, CalledDecision, CalledElement, ExecutableProcess, StaticOrExpression, UserTaskForm,
};
use crate::names;
use crate::report::{Problems, ValidationReport};

/// `bindingType` and `versionTag` of an extension element that names another resource; `None` after a problem.
pub(crate) fn binding(node: Node, problems: &mut Problems) -> Option<Binding> {
    let version_tag = node.attribute("versionTag").filter(|tag| !tag.trim().is_empty());
    let binding = match (node.attribute("bindingType"), version_tag) {
        (None | Some("latest"), _) => Binding::Latest,
        (Some("deployment"), _) => Binding::Deployment,
        (Some("versionTag"), Some(tag)) => {
            names::check(node, "versionTag", tag, problems);
            return Some(Binding::VersionTag(Arc::from(tag)));
        }
        (Some("versionTag"), None) => {
            problems.add(
                node,
                "Attribute 'versionTag' must be present and not empty if 'bindingType' is 'versionTag'. Set it to the version \
                 tag to use, or choose another binding.",
            );
            return None;
        }
        (Some(other), _) => {
            problems.add(
                node,
                format!("Attribute 'bindingType' must be one of: deployment, latest, versionTag, but is '{other}'. Choose one of them."),
            );
            return None;
        }
    };
    if version_tag.is_some() {
        problems.add_for_new(
            node,
            "Attribute 'versionTag' may only be used if 'bindingType' is 'versionTag'. Set the binding type to 'versionTag', \
             or remove the version tag.",
        );
    }
    Some(binding)
}

/// What a deployment contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deployed<'a> {
    /// A process, by its id.
    Process(&'a str),
    /// A decision, by its id.
    Decision(&'a str),
    /// A form, by its id.
    Form(&'a str),
}

/// Checks what only the deployment as a whole shows: a call activity, business rule task or user task with the binding `deployment`
/// and a static id must find what it names in the same deployment. `processes` are those of the file `resource_name`;
/// `is_deployed` says whether the deployment contains something.
///
/// # Errors
/// When something is missing; everything missing is reported.
pub fn check_deployment_bindings(
    resource_name: &str,
    processes: &[ExecutableProcess],
    is_deployed: impl Fn(Deployed<'_>) -> bool,
) -> Result<(), ValidationReport> {
    let mut problems = Problems::of_new_file();
    for element in processes.iter().flat_map(|process| &process.elements) {
        let (wanted, binding) = match &element.behavior {
            Behavior::CallActivity(CalledElement { process_id: StaticOrExpression::Static(id), binding, .. }) => {
                (Deployed::Process(id), binding)
            }
            Behavior::CalledDecision(CalledDecision {
                decision_id: StaticOrExpression::Static(id), binding, ..
            }) => (Deployed::Decision(id), binding),
            Behavior::UserTask(task) => match &task.form {
                Some(UserTaskForm::Id { id: StaticOrExpression::Static(id), binding }) => (Deployed::Form(id), binding),
                _ => continue,
            },
            _ => continue,
        };
        if *binding == Binding::Deployment && !is_deployed(wanted) {
            let (kind, id, extension) = match wanted {
                Deployed::Process(id) => ("process", id, "calledElement"),
                Deployed::Decision(id) => ("decision", id, "calledDecision"),
                Deployed::Form(id) => ("form", id, "formDefinition"),
            };
            problems.add_to_element(
                &element.id,
                extension,
                format!("{} > extensionElements > {extension}", element.id),
                format!(
                    "Expected to find {kind} with id '{id}' in current deployment, but not found. Deploy both together, or \
                     choose another binding."
                ),
            );
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(problems.into_report(resource_name)) }
}
