//! Call activity: an instance of another process is created, and its end awaited.

use std::sync::Arc;

use bpmn::model::{Binding, CalledElement};
use protocol::{ErrorType, ProcessInstanceValue, ProcessMetadata};

use super::activate::{Stop, activated};
use super::bound_version::{Versions, deployment_of};
use super::{Step, Token};
use crate::event;
use crate::execution::Execution;
use crate::incident::Problem;
use crate::process_instance;
use crate::variable::{document, expression};

pub(super) fn call(execution: &mut Execution<'_>, token: &Token, called: &CalledElement) -> Result<(), Stop> {
    check_depth(execution, token)?;
    let process_id = expression::text(execution, token.key, &called.process_id)?;
    let metadata = find_process(execution, token, &process_id, &called.binding)?;
    let process = execution.state.process(metadata.process_definition_key);
    if process.is_none_or(|process| process.none_start_event().is_none()) {
        return Err(problem(format!(
            "Expected process with BPMN process id '{process_id}' to have a none start event, but not found."
        ))
        .into());
    }
    event::subscribe(execution, token)?;
    activated(execution, token);
    let key = execution.state.next_key();
    let value = token.value();
    let instance = ProcessInstanceValue {
        parent_process_instance_key: value.process_instance_key,
        parent_element_instance_key: token.key,
        ..process_instance::root_value(&metadata, key)
    };
    let variables = if called.propagate_all_parent_variables {
        document::entries_visible(&execution.state, token.key)
    } else if token.element().inputs.is_empty() {
        Vec::new()
    } else {
        document::entries_local(&execution.state, token.key)
    };
    document::set_initial(execution, &instance, variables);
    execution.steps.push_back(Step::Activate { key: Some(key), value: Arc::new(instance) });
    Ok(())
}

fn check_depth(execution: &Execution<'_>, token: &Token) -> Result<(), Problem> {
    let process = execution.state.element_instance(token.value().process_instance_key);
    let depth = process.map_or(0, |process| process.depth);
    let depth_max = execution.limits.call_depth_max;
    // The root counts too.
    if depth + 1 >= depth_max {
        return Err(problem(format!(
            "The call activity has reached the maximum depth of {depth_max} calls that lead to one another. This is likely \
             due to a recursive call. Cancel the root process instance if this was unintentional."
        )));
    }
    Ok(())
}

fn problem(message: String) -> Problem {
    Problem::new(ErrorType::CalledElementError, message)
}

/// The version of the process that the binding means.
fn find_process(
    execution: &Execution<'_>,
    token: &Token,
    id: &Arc<str>,
    binding: &Binding,
) -> Result<ProcessMetadata, Problem> {
    let tables = &execution.state.tables;
    let key = Versions::of_processes(tables).find(execution, token, id, binding);
    let row = key.and_then(|key| tables.processes.get(&key.raw()));
    row.map(|row| row.metadata.clone()).ok_or_else(|| {
        problem(match binding {
            Binding::Latest => format!("Expected process with BPMN process id '{id}' to be deployed, but not found."),
            Binding::Deployment => format!(
                "Expected to call process with BPMN process id '{id}' with binding type 'deployment', but no such process \
                 was found in the deployment with key {} which contains the calling process. Migrate the instance to a \
                 version of its process that was deployed together with '{id}'.",
                deployment_of(execution, token)
            ),
            Binding::VersionTag(tag) => format!(
                "Expected to call process with BPMN process id '{id}' and version tag '{tag}', but no such process was \
                 found. Deploy a process with this id and version tag."
            ),
        })
    })
}
