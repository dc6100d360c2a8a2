//! References from one file of a deployment to another.

use crate::model::{Behavior, Binding, ExecutableProcess, StaticOrExpression};
use crate::report::{Problems, ValidationReport};

/// Checks what only the deployment as a whole shows: a call activity with the binding `deployment` and a static process id
/// must find this process in the same deployment. `processes` are those of the file `resource_name`; `is_deployed` tells
/// whether the deployment has a process with an id.
///
/// # Errors
/// When a process is missing; every missing one is reported.
pub fn check_deployment_bindings(
    resource_name: &str,
    processes: &[ExecutableProcess],
    is_deployed: impl Fn(&str) -> bool,
) -> Result<(), ValidationReport> {
    let mut problems = Problems::of_new_file();
    for element in processes.iter().flat_map(|process| &process.elements) {
        let Behavior::CallActivity(called) = &element.behavior else {
            continue;
        };
        let StaticOrExpression::Static(process_id) = &called.process_id else {
            continue;
        };
        if called.binding == Binding::Deployment && !is_deployed(process_id) {
            problems.add_to_element(
                &element.id,
                "calledElement",
                format!("{} > extensionElements > calledElement", element.id),
                format!(
                    "Expected to find process with id '{process_id}' in current deployment, but not found. Deploy both \
                     together, or choose another binding."
                ),
            );
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(problems.into_report(resource_name)) }
}
