//! An element begins: ACTIVATING, what it needs, ACTIVATED.

use std::sync::Arc;

use bpmn::model::{Behavior, Element, ElementIndex, ExecutableProcess, FlowIndex};
use protocol::{BpmnElementType, ErrorType, Key, Payload, ProcessInstanceIntent, ProcessInstanceValue};

use super::stop::Stop;
use super::{
    ad_hoc_sub_process, business_rule_task, call_activity, complete, exclusive_gateway, inclusive_gateway,
    job_worker_task, multi_instance, runtime_instruction, script_task, throw_event, user_task,
};
use crate::compensation;
use crate::event;
use crate::execution::problem::Problem;
use crate::execution::step::Step;
use crate::execution::token::{Token, activated, begin};
use crate::execution::{Execution, Failure, Outcome};
use crate::listener;
use crate::state::Lifecycle;
use crate::state::life::is_open_for;
use crate::usage;
use crate::variable::mapping;

pub(crate) fn activate(execution: &mut Execution<'_>, key: Option<Key>, value: Arc<ProcessInstanceValue>) -> Outcome {
    let Some(key) = enter(execution, key, value)? else { return Ok(()) };
    if let Err(problem) = usage::check_begun(execution) {
        return stop(execution, key, problem);
    }
    continue_activation(execution, key)
}

/// The activation continues in another command than it began, or after an incident.
pub(crate) fn resume(execution: &mut Execution<'_>, key: Key) -> Outcome {
    let Some(instance) = execution.state.element_instance(key) else { return Ok(()) };
    let process_instance = instance.value.process_instance_key;
    if instance.lifecycle == Lifecycle::Activating
        && let Err(problem) = usage::check_living(execution, process_instance, 0, ErrorType::Unknown)
    {
        return stop(execution, key, problem);
    }
    continue_activation(execution, key)
}

fn stop(execution: &mut Execution<'_>, key: Key, problem: Problem) -> Outcome {
    if let Some(token) = Token::find(execution, key)? {
        crate::incident::raise_for_element(execution, &token, problem);
    }
    Ok(())
}

/// ACTIVATING, if the element is to begin. The rest follows with [`continue_activation`].
pub(crate) fn enter(
    execution: &mut Execution<'_>,
    key: Option<Key>,
    value: Arc<ProcessInstanceValue>,
) -> Outcome<Option<Key>> {
    // First, because what ended may have taken its definition with it.
    if !is_expected(execution, &value) {
        if let Some(key) = key {
            end_unexpected(execution, key, &value);
        }
        return Ok(None);
    }
    let (process, element) = execution.element_of(&value)?;
    if !value.without_token && !has_all_tokens(execution, &process, element, value.flow_scope_key) {
        return Ok(None);
    }
    if key.is_some() {
        execution.waiting_joins.forget();
    }
    if let Behavior::InclusiveGateway { .. } = process.element(element).behavior {
        execution.waiting_joins.begins(value.flow_scope_key, element);
    }
    let key = key.unwrap_or_else(|| execution.state.next_key());
    execution.emit(key, Payload::ProcessInstance(ProcessInstanceIntent::ElementActivating, value));
    Ok(Some(key))
}

/// A scope that ended, is ending or was interrupted swallows its tokens; so does a call activity that ended or belongs to a
/// banned instance the process that it called.
fn is_expected(execution: &Execution<'_>, value: &ProcessInstanceValue) -> bool {
    if value.bpmn_element_type != BpmnElementType::Process {
        let scope = execution.state.element_instance(value.flow_scope_key);
        return scope.is_some_and(|scope| is_open_for(&scope, &value.element_id))
            && !runtime_instruction::is_interrupted(execution, value.process_instance_key);
    }
    if value.parent_element_instance_key.is_none() {
        return true;
    }
    let caller = execution.state.element_instance(value.parent_element_instance_key);
    caller.is_some_and(|caller| {
        caller.lifecycle == Lifecycle::Activated && !execution.state.is_banned(caller.value.process_instance_key)
    })
}

/// What has variables already ends as it begins, and they with it: a called process when its call activity ended meanwhile,
/// an element that an instruction begins in a scope that another one interrupted.
fn end_unexpected(execution: &mut Execution<'_>, key: Key, value: &Arc<ProcessInstanceValue>) {
    use ProcessInstanceIntent::{ElementActivating, ElementTerminated, ElementTerminating};
    if value.bpmn_element_type != BpmnElementType::Process && !execution.state.holds_variables(key) {
        return;
    }
    for intent in [ElementActivating, ElementTerminating, ElementTerminated] {
        execution.emit(key, Payload::ProcessInstance(intent, value.clone()));
    }
}

/// A joining parallel gateway waits until each of its incoming flows was taken, an inclusive one until no more can be.
fn has_all_tokens(
    execution: &mut Execution<'_>,
    process: &ExecutableProcess,
    element: ElementIndex,
    scope: Key,
) -> bool {
    let definition = process.element(element);
    match definition.behavior {
        Behavior::ParallelGateway => definition.incoming.iter().all(|flow| {
            let token = (scope.raw(), definition.id.clone(), process.flow(*flow).id.clone());
            execution.state.tables.waiting_tokens.contains(&token)
        }),
        Behavior::InclusiveGateway { .. } if definition.incoming.len() > 1 => {
            inclusive_gateway::can_begin(execution, process, element, scope)
        }
        _ => true,
    }
}

/// Everything after ACTIVATING; again from here when an incident on the way was resolved.
pub(crate) fn continue_activation(execution: &mut Execution<'_>, key: Key) -> Outcome {
    let Some(token) = Token::find(execution, key)? else { return Ok(()) };
    // A listener for its begin is at work.
    if token.instance.lifecycle != Lifecycle::Activating || token.instance.job.is_some() {
        return Ok(());
    }
    match prepare_and_begin(execution, &token) {
        Ok(()) => Ok(()),
        Err(Stop::Failure(failure)) => Err(failure),
        Err(Stop::Problem(problem)) => {
            crate::incident::raise_for_element(execution, &token, problem);
            Ok(())
        }
    }
}

fn prepare_and_begin(execution: &mut Execution<'_>, token: &Token) -> Result<(), Stop> {
    let done = token.instance.listeners_done;
    if done == 0 {
        prepare(execution, token)?;
    }
    if listener::execution::begin_next(execution, token, &token.element().start_listeners, done)? {
        return Ok(());
    }
    begin_work(execution, token)
}

/// The initial variables of the element.
fn prepare(execution: &mut Execution<'_>, token: &Token) -> Result<(), Problem> {
    if token.is_inner_instance() {
        multi_instance::set_loop_variables(execution, token)?;
    }
    if let Behavior::AdHocSubProcess(ad_hoc) = &token.element().behavior {
        ad_hoc_sub_process::set_first_variables(execution, token, ad_hoc)?;
    }
    mapping::apply_inputs(execution, token)
}

fn begin_work(execution: &mut Execution<'_>, token: &Token) -> Result<(), Stop> {
    match &token.element().behavior {
        Behavior::Container { none_start_event } => begin_container(execution, token, *none_start_event)?,
        Behavior::EventSubProcess { start_event } => {
            activated(execution, token);
            begin(execution, &token.process, *start_event, token.key, token.value());
        }
        Behavior::JobWorker(definition) => {
            let job = job_worker_task::evaluate(execution, token, definition)?;
            event::subscribe(execution, token)?;
            let queue = job_worker_task::create_job(execution, job);
            activated(execution, token);
            crate::job::delivery::deliver(execution, &queue);
        }
        Behavior::UserTask(task) => user_task::begin(execution, token, task)?,
        Behavior::Script(script) => {
            script_task::evaluate(execution, token, script)?;
            activated(execution, token);
            execution.steps.push_back(Step::Complete { key: token.key });
        }
        Behavior::CalledDecision(called) => {
            business_rule_task::evaluate(execution, token, called)?;
            activated(execution, token);
            execution.steps.push_back(Step::Complete { key: token.key });
        }
        Behavior::IntermediateCatchEvent(_) | Behavior::ReceiveTask(_) | Behavior::EventBasedGateway { .. } => {
            event::subscribe(execution, token)?;
            activated(execution, token);
        }
        Behavior::ExclusiveGateway { default } => {
            let flow = exclusive_gateway::choose_flow(execution, token, *default)?;
            pass(execution, token, flow.as_slice())?;
        }
        Behavior::InclusiveGateway { default } => {
            let flows = inclusive_gateway::choose_flows(execution, token, *default)?;
            pass(execution, token, &flows)?;
        }
        Behavior::ParallelGateway => pass(execution, token, &token.element().outgoing)?,
        Behavior::EscalationThrowEvent { code } => throw_event::throw_escalation(execution, token, code)?,
        Behavior::SignalThrowEvent { name } => throw_event::throw_signal(execution, token, name)?,
        Behavior::CompensationThrowEvent { .. } => {
            activated(execution, token);
            compensation::throw(execution, token)?;
        }
        Behavior::ErrorEndEvent { code } => throw_event::throw_error(execution, token, code)?,
        Behavior::CallActivity(called) => call_activity::call(execution, token, called)?,
        Behavior::AdHocSubProcess(ad_hoc) => ad_hoc_sub_process::begin(execution, token, ad_hoc)?,
        // It begins with the element inside it.
        Behavior::AdHocSubProcessInnerInstance => activated(execution, token),
        Behavior::MultiInstanceBody(body) => multi_instance::begin(execution, token, body)?,
        Behavior::NoneStartEvent
        | Behavior::StartEvent(_)
        | Behavior::BoundaryEvent { .. }
        | Behavior::CompensationBoundaryEvent { .. }
        | Behavior::LinkCatchEvent
        | Behavior::LinkThrowEvent { .. }
        | Behavior::TerminateEndEvent
        | Behavior::NoneEndEvent
        | Behavior::PassThrough => {
            activated(execution, token);
            execution.steps.push_back(Step::Complete { key: token.key });
        }
    }
    Ok(())
}

/// A process begins at the start event that was triggered, if any; otherwise it begins, like a sub-process, at its none
/// start event.
fn begin_container(
    execution: &mut Execution<'_>,
    token: &Token,
    none_start_event: Option<ElementIndex>,
) -> Result<(), Failure> {
    activated(execution, token);
    let is_process = token.value().bpmn_element_type == BpmnElementType::Process;
    if is_process
        && !token.process.triggered_start_events.is_empty()
        && let Some(pending) = event::find_trigger(&execution.state, &token.process, token.key)
    {
        event::activate(execution, token, token.key, &pending);
        return Ok(());
    }
    let start = none_start_event.ok_or_else(|| no_start(token))?;
    begin(execution, &token.process, start, token.key, token.value());
    Ok(())
}

/// The whole rest of the life of an element that neither waits nor maps variables, and on along the chosen flows.
fn pass(execution: &mut Execution<'_>, token: &Token, flows: &[FlowIndex]) -> Result<(), Stop> {
    complete::check_fork(execution, token, flows)?;
    token.transition(execution, ProcessInstanceIntent::ElementActivated);
    token.transition(execution, ProcessInstanceIntent::ElementCompleting);
    token.transition(execution, ProcessInstanceIntent::ElementCompleted);
    if runtime_instruction::carry_out(execution, &token.instance) {
        return Ok(());
    }
    complete::take_flows(execution, token, flows);
    if flows.is_empty() {
        inclusive_gateway::look_again(execution, token.value().flow_scope_key, token.value())?;
    }
    Ok(())
}

fn no_start(token: &Token) -> Failure {
    let Element { id, .. } = token.element();
    Failure::Broken {
        process_instance: token.value().process_instance_key,
        reason: format!("Expected '{id}' to have a none start event, but it has none."),
    }
}
