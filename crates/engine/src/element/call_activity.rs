//! Call activity: an instance of another process is created, and its end awaited.

use std::sync::Arc;

use bpmn::model::{Binding, CalledElement};
use protocol::{ErrorType, ProcessInstanceValue, ProcessMetadata};

use super::bound_version::{Versions, deployment_of};
use crate::element::stop::Stop;
use crate::event;
use crate::execution::Execution;
use crate::execution::problem::Problem;
use crate::execution::step::Step;
use crate::execution::token::{Token, activated};
use crate::name::too_long;
use crate::process_instance;
use crate::state::variable_bytes;
use crate::usage;
use crate::variable::document::{self, Entry};
use crate::variable::expression;

pub(super) fn call(execution: &mut Execution<'_>, token: &Token, called: &CalledElement) -> Result<(), Stop> {
    check_depth(execution, token)?;
    let process_id = expression::text(execution, token.key, &called.process_id)?;
    check_id(execution, token, &process_id)?;
    let metadata = find_process(execution, token, &process_id, &called.binding)?;
    let process = execution.state.process(metadata.process_definition_key);
    if process.is_none_or(|process| process.none_start_event().is_none()) {
        return Err(problem(format!(
            "Expected process with BPMN process id '{process_id}' to have a none start event, but not found."
        ))
        .into());
    }
    let variables = if called.propagate_all_parent_variables {
        document::entries_visible(&execution.state, token.key)
    } else if token.element().inputs.is_empty() {
        Vec::new()
    } else {
        document::entries_local(&execution.state, token.key)
    };
    check_variables(execution, token, &variables)?;
    let bytes = variables.iter().map(|(name, value)| variable_bytes(name, value)).sum();
    usage::check_bytes(execution, token.value().process_instance_key, bytes).map_err(problem)?;
    event::subscribe(execution, token)?;
    activated(execution, token);
    let key = execution.state.next_key();
    let value = token.value();
    let instance = ProcessInstanceValue {
        parent_process_instance_key: value.process_instance_key,
        parent_element_instance_key: token.key,
        business_id: value.business_id.clone(),
        ..process_instance::root_value(&metadata, key)
    };
    document::set_initial(execution, &instance, variables);
    execution.steps.push_back(Step::Activate { key: Some(key), value: Arc::new(instance) });
    Ok(())
}

/// All variables for a called process are written at once.
fn check_variables(execution: &Execution<'_>, token: &Token, variables: &[Entry]) -> Result<(), Problem> {
    let bytes: usize = variables.iter().map(|(name, value)| name.len() + value.len()).sum();
    let bytes_max = execution.limits.called_variables_bytes_max;
    if bytes <= bytes_max {
        return Ok(());
    }
    Err(problem(format!(
        "Expected the variables that '{}' passes to the called process to have at most {bytes_max} bytes together, but they have \
         {bytes}. Set propagateAllParentVariables to false, and map what the called process needs.",
        token.element().id
    )))
}

/// The same for what comes back from a called process, before it ends.
pub(super) fn check_result(execution: &Execution<'_>, process: &Token) -> Result<(), Problem> {
    let value = process.value();
    if value.parent_element_instance_key.is_none() || !execution.state.gives_variables_to_caller(value) {
        return Ok(());
    }
    let bytes = document::bytes_of(&execution.state, process.key, &[]);
    let bytes_max = execution.limits.called_variables_bytes_max;
    if bytes <= bytes_max {
        return Ok(());
    }
    Err(problem(format!(
        "Expected the variables of the called process '{}' to have at most {bytes_max} bytes together, because all of them go to \
         its caller, but they have {bytes}. Make them smaller, then resolve the incident; or let the call activity set \
         propagateAllChildVariables to false and map no output.",
        value.bpmn_process_id
    )))
}

/// What an expression gives can have any length.
fn check_id(execution: &Execution<'_>, token: &Token, process_id: &str) -> Result<(), Problem> {
    match too_long(process_id, execution.limits.name_bytes_max) {
        Some(but) => Err(problem(format!("Expected the process id that '{}' calls to have {but}", token.element().id))),
        None => Ok(()),
    }
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
