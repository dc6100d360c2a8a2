//! An element's work is done: COMPLETING, COMPLETED, and on along the outgoing flows.

use std::sync::Arc;

use bpmn::model::{Behavior, ElementIndex, FlowIndex};
use protocol::{
    BpmnElementType, BpmnEventType, ErrorType, Key, Payload, ProcessInstanceIntent, ProcessInstanceResultIntent,
    ProcessInstanceResultValue, ProcessInstanceValue, Rejection,
};

use super::{
    ad_hoc_sub_process, call_activity, inclusive_gateway, multi_instance, output_collection, runtime_instruction,
};
use crate::compensation;
use crate::event;
use crate::execution::problem::Problem;
use crate::execution::step::Step;
use crate::execution::token::{Token, arrive, begin};
use crate::execution::{Execution, Outcome};
use crate::incident;
use crate::listener;
use crate::message;
use crate::state::Lifecycle;
use crate::state::life::is_open_for;
use crate::usage;
use crate::variable::{document, mapping};

pub(crate) fn complete(execution: &mut Execution<'_>, key: Key) -> Outcome {
    let Some(token) = Token::find(execution, key)? else { return Ok(()) };
    if !is_expected(execution, &token) {
        return Ok(());
    }
    if ad_hoc_sub_process::is_left_to_worker(&token) {
        return ad_hoc_sub_process::wait_for_worker(execution, &token);
    }
    if matches!(token.element().behavior, Behavior::MultiInstanceBody(_)) && token.instance.children > 0 {
        // Inner instances that began after the loop was found to end; it completes when they have ended.
        execution.steps.push_back(Step::TerminateChildren { scope: key, after: Key::NONE, up_to: None });
        return Ok(());
    }
    if token.instance.lifecycle == Lifecycle::Activated && token.instance.children > 0 {
        // An event sub-process began after the last token had ended; the scope completes when that has ended too.
        return Ok(());
    }
    let listeners_done = match token.instance.lifecycle {
        Lifecycle::Activated => {
            token.transition(execution, ProcessInstanceIntent::ElementCompleting);
            0
        }
        // A listener for its end is at work.
        Lifecycle::Completing if token.instance.job.is_some() => return Ok(()),
        // After the resolution of an incident, or after a listener.
        Lifecycle::Completing => token.instance.listeners_done,
        Lifecycle::Activating | Lifecycle::Terminating => return Ok(()),
    };
    match finish_work(execution, &token, listeners_done) {
        Ok(Finished::Waits) => Ok(()),
        Ok(Finished::Completes { ends_loop }) => completed(execution, &token, ends_loop),
        Err(problem) => {
            incident::raise_for_element(execution, &token, problem);
            Ok(())
        }
    }
}

/// Whether an element can complete whose work is done.
enum Finished {
    /// A listener was asked first.
    Waits,
    /// It completes.
    Completes {
        /// The loop of an inner instance ends with it.
        ends_loop: bool,
    },
}

/// The enclosing scope may have ended or been interrupted since its work was done.
fn is_expected(execution: &Execution<'_>, token: &Token) -> bool {
    let value = token.value();
    let (enclosing, element_id) = match value.bpmn_element_type {
        BpmnElementType::Process if value.parent_element_instance_key.is_none() => return true,
        BpmnElementType::Process => (value.parent_element_instance_key, ""),
        _ => (value.flow_scope_key, &*value.element_id),
    };
    execution.state.element_instance(enclosing).is_some_and(|enclosing| is_open_for(&enclosing, element_id))
        && !runtime_instruction::is_interrupted(execution, value.process_instance_key)
}

/// Everything between COMPLETING and COMPLETED. What comes before the listeners happens once.
fn finish_work(execution: &mut Execution<'_>, token: &Token, listeners_done: u32) -> Result<Finished, Problem> {
    if listeners_done == 0 {
        collect_results(execution, token)?;
    }
    if listener::execution::begin_next(execution, token, &token.element().end_listeners, listeners_done)? {
        return Ok(Finished::Waits);
    }
    leave(execution, token).map(|ends_loop| Finished::Completes { ends_loop })
}

/// The results of the work go where they belong, and nothing waits for events at the element any more.
fn collect_results(execution: &mut Execution<'_>, token: &Token) -> Result<(), Problem> {
    check_fork(execution, token, &token.element().outgoing)?;
    match &token.element().behavior {
        Behavior::MultiInstanceBody(body) => {
            event::unsubscribe(execution, token.key);
            return match &body.output {
                Some((name, _)) => output_collection::propagate(execution, token, name),
                None => Ok(()),
            };
        }
        Behavior::EventBasedGateway { .. } => {
            event::unsubscribe(execution, token.key);
            return Ok(());
        }
        Behavior::AdHocSubProcessInnerInstance => return Ok(()),
        Behavior::AdHocSubProcess(ad_hoc) => {
            if let Some((name, _)) = &ad_hoc.output {
                output_collection::propagate(execution, token, name)?;
            }
        }
        _ => {}
    }
    mapping::apply_outputs(execution, token)?;
    event::unsubscribe(execution, token.key);
    Ok(())
}

/// The last before COMPLETED. Returns whether the loop of an inner instance ends with it.
fn leave(execution: &mut Execution<'_>, token: &Token) -> Result<bool, Problem> {
    match token.value().bpmn_element_type {
        BpmnElementType::Process => call_activity::check_result(execution, token)?,
        BpmnElementType::StartEvent => subscribe_scope(execution, token)?,
        BpmnElementType::AdHocSubProcessInnerInstance => {
            return ad_hoc_sub_process::inner_completing(execution, token);
        }
        _ if ad_hoc_sub_process::is_counted_event_sub_process(token) => {
            return ad_hoc_sub_process::inner_completing(execution, token);
        }
        _ => {}
    }
    if token.is_inner_instance() { multi_instance::inner_completing(execution, token) } else { Ok(false) }
}

/// Tokens may not multiply without end.
pub(crate) fn check_fork(execution: &Execution<'_>, token: &Token, flows: &[FlowIndex]) -> Result<(), Problem> {
    if flows.len() < 2 {
        return Ok(());
    }
    let more = flows.len() as u64 - 1;
    usage::check_living(execution, token.value().process_instance_key, more, ErrorType::Unknown)
}

/// What waits in a scope is opened when its start event has completed, so that it sees the variables of the start.
fn subscribe_scope(execution: &mut Execution<'_>, start: &Token) -> Result<(), Problem> {
    let scope = Token::find(execution, start.value().flow_scope_key).ok().flatten();
    match scope {
        Some(scope) => event::subscribe(execution, &scope),
        None => Ok(()),
    }
}

/// COMPLETED, and what follows.
fn completed(execution: &mut Execution<'_>, token: &Token, ends_loop: bool) -> Outcome {
    if token.value().bpmn_element_type == BpmnElementType::Process {
        if compensation::delete_of_process(execution, token.key) {
            execution.steps.push_back(Step::Complete { key: token.key });
        } else {
            process_completed(execution, token);
        }
        return Ok(());
    }
    compensation::subscribe(execution, token);
    let pending = match token.element().behavior {
        Behavior::EventBasedGateway { .. } => event::find_trigger(&execution.state, &token.process, token.key),
        _ => None,
    };
    token.transition(execution, ProcessInstanceIntent::ElementCompleted);
    compensation::handler_completed(execution, token)?;
    if runtime_instruction::carry_out(execution, &token.instance) {
        return Ok(());
    }
    let scope = token.value().flow_scope_key;
    match &token.element().behavior {
        Behavior::EventBasedGateway { .. } => {
            if let Some(pending) = pending {
                event::activate(execution, token, scope, &pending);
            }
        }
        Behavior::LinkThrowEvent { target } => begin(execution, &token.process, *target, scope, token.value()),
        Behavior::TerminateEndEvent => terminate_siblings(execution, scope),
        Behavior::AdHocSubProcessInnerInstance => ad_hoc_sub_process::inner_completed(execution, token, ends_loop)?,
        _ if ad_hoc_sub_process::is_counted_event_sub_process(token) => {
            ad_hoc_sub_process::inner_completed(execution, token, ends_loop)?;
        }
        _ if token.is_inner_instance() => multi_instance::inner_completed(execution, token, ends_loop)?,
        _ => take_flows(execution, token, &token.element().outgoing),
    }
    if token.element().outgoing.is_empty() {
        inclusive_gateway::look_again(execution, scope, token.value())?;
    }
    Ok(())
}

/// Everything else in the scope ends; then the scope completes.
fn terminate_siblings(execution: &mut Execution<'_>, scope: Key) {
    complete_scope_without_tokens(execution, scope);
    if execution.state.element_instance(scope).is_some_and(|scope| scope.children > 0) {
        execution.steps.push_back(Step::TerminateChildren { scope, after: Key::NONE, up_to: None });
    }
}

fn process_completed(execution: &mut Execution<'_>, token: &Token) {
    answer_awaited_result(execution, token);
    message::start_event::release_after(execution, token.key, token.value(), |execution| {
        token.transition(execution, ProcessInstanceIntent::ElementCompleted);
    });
    let caller = token.value().parent_element_instance_key;
    if caller.is_some() {
        execution.steps.push_back(Step::Complete { key: caller });
    }
}

/// Takes the given flows out of a completed element, last in the document first as on the reference engine; without any,
/// the path ends here and perhaps its scope with it.
pub(crate) fn take_flows(execution: &mut Execution<'_>, token: &Token, flows: &[FlowIndex]) {
    let scope = token.value().flow_scope_key;
    for flow in flows.iter().rev() {
        let flow = token.process.flow(*flow);
        let key = execution.state.next_key();
        let value = ProcessInstanceValue {
            element_id: (&flow.id).into(),
            bpmn_element_type: BpmnElementType::SequenceFlow,
            bpmn_event_type: BpmnEventType::Unspecified,
            without_token: false,
            ..(**token.value()).clone()
        };
        execution.emit(key, Payload::ProcessInstance(ProcessInstanceIntent::SequenceFlowTaken, Arc::new(value)));
        arrive(execution, &token.process, flow.target, scope, token.value());
    }
    if flows.is_empty() {
        complete_scope_without_tokens(execution, scope);
    }
}

/// A scope is complete when nothing lives in it and no token is on its way.
pub(crate) fn complete_scope_without_tokens(execution: &mut Execution<'_>, scope: Key) {
    if let Some(instance) = execution.state.element_instance(scope)
        && !instance.is_held_open()
        && instance.lifecycle == Lifecycle::Activated
    {
        execution.steps.push_back(Step::Complete { key: scope });
    }
}

/// The variables of a process go to the client that created it and waits for them.
fn answer_awaited_result(execution: &mut Execution<'_>, token: &Token) {
    debug_assert_eq!(token.element, ElementIndex(0));
    if execution.state.counters.awaited_results == 0 {
        return;
    }
    let Some(awaited) = execution.state.tables.awaited_results.get(&token.key.raw()) else { return };
    let bytes = document::bytes_of(&execution.state, token.key, &awaited.fetch_variables);
    let bytes_max = execution.limits.result_bytes_max;
    let rejection = refused_result(execution, token, bytes, bytes_max);
    let variables = match rejection {
        Some(_) => String::new(),
        None => document::collect(&execution.state, token.key, &awaited.fetch_variables),
    };
    let value = token.value();
    let result = ProcessInstanceResultValue {
        bpmn_process_id: value.bpmn_process_id.clone(),
        version: value.version,
        process_definition_key: value.process_definition_key,
        process_instance_key: value.process_instance_key,
        variables: variables.into(),
        tags: value.tags.clone(),
        tenant_id: value.tenant_id.clone(),
        business_id: value.business_id.clone(),
    };
    let payload = Payload::ProcessInstanceResult(ProcessInstanceResultIntent::Completed, Box::new(result));
    if let Some(rejection) = rejection {
        execution.refuse_request(awaited.request, token.key, payload, rejection);
        return;
    }
    execution.reply_to(awaited.request, token.key, payload);
}

/// Why whoever waits for the result of a process is not told its variables, if that cannot be.
fn refused_result(execution: &Execution<'_>, token: &Token, bytes: usize, bytes_max: usize) -> Option<Rejection> {
    let but = if bytes > bytes_max {
        format!("they have {bytes} bytes and an answer has room for {bytes_max}; name fewer in fetchVariables")
    } else if execution.has_answered_much() {
        format!(
            "other answers have {} bytes already that leave at the same time; name fewer in fetchVariables",
            execution.limits.reply_bytes_per_batch
        )
    } else {
        return None;
    };
    Some(Rejection::invalid_state(format!(
        "Expected to answer with the variables of process instance with key '{}', which has completed, but {but}",
        token.key
    )))
}
