//! References from one file of a deployment to another.

use crate::model::{Behavior, Binding, ExecutableProcess, StaticOrExpression};
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
        let (id, binding, kind, extension) = match &element.behavior {
            Behavior::CallActivity(called) => (&called.process_id, &called.binding, "process", "calledElement"),
            Behavior::CalledDecision(called) => (&called.decision_id, &called.binding, "decision", "calledDecision"),
            _ => continue,
        };
        let StaticOrExpression::Static(id) = id else {
            continue;
        };
        let wanted = if kind == "process" { Deployed::Process(id) } else { Deployed::Decision(id) };
        if *binding == Binding::Deployment && !is_deployed(wanted) {
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
