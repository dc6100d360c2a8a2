//! References to other files of a deployment.

use bpmn::{Deployed, check_deployment_bindings, parse, render_reports};
use model_builder::ProcessBuilder;

#[test]
fn a_process_that_is_bound_to_the_deployment_must_be_in_it() {
    let process = ProcessBuilder::new("caller")
        .start("start")
        .call_activity("there", "called")
        .bind_to_deployment()
        .call_activity("computed", "= \"missing\"")
        .bind_to_deployment()
        .call_activity("newest", "missing")
        .sub_process("sub")
        .start("inner")
        .call_activity("each", "missing")
        .multi_instance("= items", "item")
        .bind_to_deployment();
    let processes = parse("caller.bpmn", process.to_xml().as_bytes()).expect("the model is valid");
    assert_eq!(
        check_deployment_bindings("caller.bpmn", &processes, |what| [
            Deployed::Process("called"),
            Deployed::Process("missing")
        ]
        .contains(&what)),
        Ok(())
    );
    let report = check_deployment_bindings("caller.bpmn", &processes, |what| what == Deployed::Process("called"))
        .expect_err("one is missing");
    assert_eq!(
        render_reports(&[("caller.bpmn", &report)]),
        "Expected to deploy new resources, but encountered the following errors:\n\
         'caller.bpmn': - Element: each > extensionElements > calledElement\n    - ERROR: Expected to find process with id \
         'missing' in current deployment, but not found. Deploy both together, or choose another binding.\n"
    );
}
