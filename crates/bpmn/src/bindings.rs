//! References from one file of a deployment to another.

use crate::model::{Behavior, Binding, CalledDecision, CalledElement, ExecutableProcess, StaticOrExpression};
use crate::report::{Problems, ValidationReport};

/// What a deployment has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deployed<'a> {
    /// A process, by its id.
    Process(&'a str),
    /// A decision, by its id.
    Decision(&'a str),
}

/// Checks what only the deployment as a whole shows: a call activity or business rule task with the binding `deployment`
/// and a static id must find what it names in the same deployment. `processes` are those of the file `resource_name`;
/// `is_deployed` tells whether the deployment has something.
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
            _ => continue,
        };
        if *binding == Binding::Deployment && !is_deployed(wanted) {
            let (kind, id, extension) = match wanted {
                Deployed::Process(id) => ("process", id, "calledElement"),
                Deployed::Decision(id) => ("decision", id, "calledDecision"),
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
