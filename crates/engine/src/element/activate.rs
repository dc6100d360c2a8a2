//! A token arrives: ACTIVATING, ACTIVATED, and at once COMPLETED where nothing has to be waited for.

use std::sync::Arc;

use bpmn::model::{Behavior, Element, ElementIndex, ExecutableProcess};
use protocol::{BpmnElementType, Key, Payload, ProcessInstanceIntent, ProcessInstanceValue};

use super::{Token, arrive, complete, exclusive_gateway, is_open, job_worker_task};
use crate::execution::{Execution, Failure, Outcome};
use crate::incident::Problem;
use crate::state::Lifecycle;
use crate::variable::mapping;

pub(super) fn activate(execution: &mut Execution<'_>, key: Option<Key>, value: Arc<ProcessInstanceValue>) -> Outcome {
    let (process, element) = execution.element_of(&value)?;
    if value.bpmn_element_type != BpmnElementType::Process {
        // A scope that ended or is ending swallows its tokens.
        match execution.state.element_instance(value.flow_scope_key) {
            Some(scope) if is_open(&scope) => {}
            _ => return Ok(()),
        }
        if !has_all_tokens(execution, &process, element, value.flow_scope_key) {
            return Ok(());
        }
    }
    let key = key.unwrap_or_else(|| execution.state.next_key());
    execution.emit(key, Payload::ProcessInstance(ProcessInstanceIntent::ElementActivating, value));
    continue_activation(execution, key)
}

/// A joining parallel gateway waits until each of its incoming flows was taken.
fn has_all_tokens(execution: &Execution<'_>, process: &ExecutableProcess, element: ElementIndex, scope: Key) -> bool {
    let element = process.element(element);
    element.element_type != BpmnElementType::ParallelGateway
        || element.incoming.iter().all(|flow| {
            let place = (scope.raw(), element.id.clone(), process.flow(*flow).id.clone());
            execution.state.tables.waiting_tokens.contains(&place)
        })
}

/// Everything after ACTIVATING; again from here when an incident on the way was resolved.
pub(super) fn continue_activation(execution: &mut Execution<'_>, key: Key) -> Outcome {
    let Some(token) = Token::find(execution, key)? else { return Ok(()) };
    if token.instance.lifecycle != Lifecycle::Activating {
        return Ok(());
    }
    if let Err(problem) = mapping::apply_inputs(execution, &token) {
        return raise(execution, &token, problem);
    }
    match &token.element().behavior {
        Behavior::Container { none_start_event } => {
            token.transition(execution, ProcessInstanceIntent::ElementActivated);
            let Some(start) = none_start_event else {
                return Err(no_start(&token));
            };
            arrive(execution, &token.process, *start, key, token.value());
            Ok(())
        }
        Behavior::JobWorker(definition) => match job_worker_task::create_job(execution, &token, definition) {
            Ok(queue) => {
                token.transition(execution, ProcessInstanceIntent::ElementActivated);
                crate::job::delivery::deliver(execution, &queue);
                Ok(())
            }
            Err(problem) => raise(execution, &token, problem),
        },
        Behavior::ExclusiveGateway { default } => match exclusive_gateway::choose_flow(execution, &token, *default) {
            Ok(flow) => {
                pass(execution, &token);
                complete::take_flows(execution, &token, flow.as_slice());
                Ok(())
            }
            Err(problem) => raise(execution, &token, problem),
        },
        Behavior::NoneStartEvent | Behavior::NoneEndEvent | Behavior::PassThrough | Behavior::ParallelGateway => {
            token.transition(execution, ProcessInstanceIntent::ElementActivated);
            complete::complete(execution, key)
        }
        _ => Err(no_start(&token)),
    }
}

/// The whole rest of the life of an element that neither waits nor maps variables.
fn pass(execution: &mut Execution<'_>, token: &Token) {
    token.transition(execution, ProcessInstanceIntent::ElementActivated);
    token.transition(execution, ProcessInstanceIntent::ElementCompleting);
    token.transition(execution, ProcessInstanceIntent::ElementCompleted);
}

fn raise(execution: &mut Execution<'_>, token: &Token, problem: Problem) -> Outcome {
    crate::incident::raise_for_element(execution, token, problem);
    Ok(())
}

fn no_start(token: &Token) -> Failure {
    let Element { id, .. } = token.element();
    Failure::Broken {
        process_instance: token.value().process_instance_key,
        reason: format!("Expected '{id}' to have a none start event, but it has none."),
    }
}
