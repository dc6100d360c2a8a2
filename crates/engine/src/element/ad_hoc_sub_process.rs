//! Ad-hoc sub-processes: what begins inside is chosen by an expression, by a client, or by the worker of a job.
//!
//! Each element that begins has an inner instance around it, in which the path behind it runs to its end.

use std::sync::Arc;

use bpmn::model::{AdHocSubProcess, Behavior, ElementIndex};
use protocol::{
    AdHocSubProcessActivateElement, AdHocSubProcessInstructionIntent, AdHocSubProcessInstructionValue, BpmnElementType,
    ErrorType, JobKind, JobResult, JobValue, Key, Payload, ProcessInstanceIntent, Rejection, Text, WorkValue,
};

use super::output_collection::{self, Place};
use super::{complete, interrupt, job_worker_task, multi_instance, terminate};
use crate::element::stop::Stop;
use crate::event;
use crate::execution::problem::Problem;
use crate::execution::step::Step;
use crate::execution::token::{Token, activated, value_of};
use crate::execution::{Execution, Outcome};
use crate::job::delivery;
use crate::state::Lifecycle;
use crate::usage;
use crate::variable::document::{self, Entry, Reach};
use crate::variable::expression;
use crate::variable::own::OwnEntries;

/// The variable that says what can be chosen.
const ELEMENTS: &str = "adHocSubProcessElements";
/// Inner instances that begin in one step.
const INNER_INSTANCES_AT_ONCE_MAX: usize = 50;
/// Further elements that one entry of the work queue holds.
const ELEMENTS_OF_A_STEP_MAX: usize = 1_000;
/// Unknown elements that a refusal names.
const UNKNOWN_SHOWN_MAX: usize = 10;

pub(crate) fn is_one(token: &Token) -> bool {
    definition(token).is_some()
}

fn definition(token: &Token) -> Option<&AdHocSubProcess> {
    match &token.element().behavior {
        Behavior::AdHocSubProcess(ad_hoc) => Some(ad_hoc),
        _ => None,
    }
}

/// The ad-hoc sub-process around an inner instance.
fn enclosing(token: &Token) -> Option<&AdHocSubProcess> {
    match &token.process.element(token.element().flow_scope?).behavior {
        Behavior::AdHocSubProcess(ad_hoc) => Some(ad_hoc),
        _ => None,
    }
}

fn set(execution: &mut Execution<'_>, scope: Key, entry: (Arc<str>, Text), reach: Reach) -> Result<(), Problem> {
    document::set_if_room(execution, scope, vec![entry], reach).map_err(extract_problem)
}

fn extract_problem(message: impl Into<String>) -> Problem {
    Problem::new(ErrorType::ExtractValueError, message)
}

/// What can be chosen, and a collection without results.
pub(super) fn set_first_variables(
    execution: &mut Execution<'_>,
    token: &Token,
    ad_hoc: &AdHocSubProcess,
) -> Result<(), Problem> {
    let document = (&ad_hoc.choices.document).into();
    set(execution, token.key, (ELEMENTS.into(), document), Reach::Local)?;
    if let Some((name, _)) = &ad_hoc.output {
        set(execution, token.key, (name.clone(), "[]".into()), Reach::Local)?;
    }
    Ok(())
}

/// A migrated one says what can be chosen now.
pub(crate) fn renew_choices(execution: &mut Execution<'_>, key: Key, ad_hoc: &AdHocSubProcess) -> Result<(), Problem> {
    let said_before = execution.state.tables.variables.contains(&(key.raw(), ELEMENTS.into()));
    let document = (&ad_hoc.choices.document).into();
    if said_before { set(execution, key, (ELEMENTS.into(), document), Reach::Local) } else { Ok(()) }
}

/// What is chosen at once begins; or a worker is asked.
pub(super) fn begin(execution: &mut Execution<'_>, token: &Token, ad_hoc: &AdHocSubProcess) -> Result<(), Stop> {
    if let Some(job) = &ad_hoc.job {
        let job = evaluate_job(execution, token, job)?;
        event::subscribe(execution, token)?;
        let queue = job_worker_task::create_job(execution, job);
        activated(execution, token);
        delivery::deliver(execution, &queue);
        return Ok(());
    }
    let elements = active_elements(execution, token, ad_hoc)?;
    event::subscribe(execution, token)?;
    activated(execution, token);
    begin_elements(execution, token, elements)?;
    Ok(())
}

fn evaluate_job(
    execution: &Execution<'_>,
    token: &Token,
    job: &bpmn::model::JobDefinition,
) -> Result<JobValue, Problem> {
    Ok(JobValue { job_kind: JobKind::AdHocSubProcess, ..job_worker_task::evaluate(execution, token, job)? })
}

/// What the collection of active elements names.
fn active_elements(
    execution: &Execution<'_>,
    token: &Token,
    ad_hoc: &AdHocSubProcess,
) -> Result<Vec<AdHocSubProcessActivateElement>, Problem> {
    let Some(collection) = &ad_hoc.active_elements_collection else { return Ok(Vec::new()) };
    let evaluation =
        expression::evaluate(execution, token.key, expression::NOTHING, collection).map_err(extract_problem)?;
    let Some(items) = evaluation.value.as_list() else {
        let unexpected = expression::unexpected_kind(collection, "ARRAY", &evaluation);
        return Err(extract_problem(format!("Failed to activate ad-hoc elements. {unexpected}")));
    };
    let ids: Option<Vec<Text>> = items.iter().map(|item| item.as_str().map(Text::from)).collect();
    let Some(ids) = ids else {
        return Err(extract_problem(format!(
            "Failed to activate ad-hoc elements. Expected result of the expression '{}' to be 'ARRAY' containing 'STRING' items, \
             but was 'ARRAY' containing at least one non-'STRING' item.",
            collection.text()
        )));
    };
    let elements: Vec<_> = ids
        .into_iter()
        .map(|element_id| AdHocSubProcessActivateElement { element_id, variables: Text::default() })
        .collect();
    check(execution, token, &elements).map_err(|rejection| extract_problem(rejection.reason.to_string()))?;
    Ok(elements)
}

/// The element that an id names, if it can be chosen. They are ordered by their ids.
fn find(token: &Token, ad_hoc: &AdHocSubProcess, id: &str) -> Option<ElementIndex> {
    let elements = &ad_hoc.choices.elements;
    let id_of = |index: &ElementIndex| &*token.process.element(*index).id;
    let place = elements.binary_search_by(|index| id_of(index).cmp(id)).ok()?;
    Some(elements[place])
}

/// Each element can be chosen, its variables can be read, and there is room for all.
pub(crate) fn check(
    execution: &Execution<'_>,
    token: &Token,
    elements: &[AdHocSubProcessActivateElement],
) -> Result<(), Rejection> {
    let Some(ad_hoc) = definition(token) else { return Ok(()) };
    let unknown: Vec<&str> = elements
        .iter()
        .map(|instruction| &*instruction.element_id)
        .filter(|id| find(token, ad_hoc, id).is_none())
        .take(UNKNOWN_SHOWN_MAX)
        .collect();
    if !unknown.is_empty() {
        return Err(Rejection::not_found(format!(
            "Expected to activate activities for ad-hoc sub-process with key '{}', but the given elements [{}] do not exist.",
            token.key,
            unknown.join(", ")
        )));
    }
    let mut bytes = 0;
    for instruction in elements {
        document::split(&instruction.variables, execution.limits.name_bytes_max)?;
        bytes += instruction.variables.len() as u64;
    }
    let process_instance = token.value().process_instance_key;
    usage::check_bytes(execution, process_instance, bytes).map_err(Rejection::invalid_state)?;
    // Each comes with its inner instance.
    usage::check_living(execution, process_instance, 2 * elements.len() as u64, ErrorType::Unknown)
        .map_err(|problem| Rejection::invalid_state(problem.message))
}

/// Begins inner instances, the first of them at once. The others follow in further steps, so that a long list does not
/// hold the partition.
pub(crate) fn begin_elements(
    execution: &mut Execution<'_>,
    token: &Token,
    mut elements: Vec<AdHocSubProcessActivateElement>,
) -> Outcome {
    let Some(ad_hoc) = definition(token) else { return Ok(()) };
    let rest = elements.split_off(elements.len().min(INNER_INSTANCES_AT_ONCE_MAX));
    for instruction in elements {
        // A migration may have taken it away while the others began.
        let Some(element) = find(token, ad_hoc, &instruction.element_id) else { continue };
        let variables = document::split(&instruction.variables, execution.limits.name_bytes_max)?;
        begin_inner_instance(execution, token, ad_hoc, element, variables);
    }
    begin_later(execution, token.key, rest);
    Ok(())
}

/// The first of the rest follows in a further step. The others wait in entries of the work queue of their own: to write a long list
/// again each time that a command ends would take the square of its length.
fn begin_later(execution: &mut Execution<'_>, ad_hoc: Key, mut rest: Vec<AdHocSubProcessActivateElement>) {
    let others = rest.split_off(rest.len().min(ELEMENTS_OF_A_STEP_MAX));
    let step = |activate_elements: Vec<AdHocSubProcessActivateElement>| {
        let value = AdHocSubProcessInstructionValue {
            ad_hoc_sub_process_instance_key: ad_hoc,
            activate_elements,
            ..AdHocSubProcessInstructionValue::default()
        };
        Step::BeginAdHocElements { ad_hoc, value: Box::new(value) }
    };
    if !rest.is_empty() {
        execution.steps.push_back(step(rest));
    }
    let Some(of) = execution.state.element_instance(ad_hoc) else { return };
    for elements in others.chunks(ELEMENTS_OF_A_STEP_MAX) {
        let command = step(elements.to_vec()).into_command().following(&execution.origin);
        execution.enqueue(WorkValue {
            process_instance_key: of.value.process_instance_key,
            commands: vec![command],
            rounds: execution.rounds,
            ..WorkValue::default()
        });
    }
}

/// The rest of a long list.
pub(crate) fn continue_elements(
    execution: &mut Execution<'_>,
    key: Key,
    value: AdHocSubProcessInstructionValue,
) -> Outcome {
    match Token::find(execution, key)? {
        Some(token) if token.instance.lifecycle == Lifecycle::Activated => {
            begin_elements(execution, &token, value.activate_elements)
        }
        _ => Ok(()),
    }
}

fn begin_inner_instance(
    execution: &mut Execution<'_>,
    token: &Token,
    ad_hoc: &AdHocSubProcess,
    element: ElementIndex,
    variables: Vec<Entry>,
) {
    let inner = value_of(&token.process, ad_hoc.inner_instance, token.key, token.value(), true);
    let inner = Arc::new(inner);
    let key = execution.state.next_key();
    execution.emit(key, Payload::ProcessInstance(ProcessInstanceIntent::ElementActivating, inner.clone()));
    execution.emit(key, Payload::ProcessInstance(ProcessInstanceIntent::ElementActivated, inner.clone()));
    // The variable that the result is read from must not be found further out.
    if let Some(name) = ad_hoc.output.as_ref().and_then(|(_, element)| multi_instance::variable_name(element)) {
        document::set_local(execution, key, vec![(name.clone(), "null".into())]);
    }
    document::set_local(execution, key, variables);
    let element = value_of(&token.process, element, key, &inner, true);
    let element_key = execution.state.next_key();
    execution.steps.push_back(Step::Activate { key: Some(element_key), value: Arc::new(element) });
}

/// The inner instances that are there end, in slices when they are many; those that begin later do not.
pub(crate) fn terminate_inner_instances(execution: &mut Execution<'_>, ad_hoc: Key) {
    interrupt::interrupt_present_children(execution, ad_hoc);
}

/// The worker of an ad-hoc sub-process has chosen. Refuses before anything changes.
pub(crate) fn check_result(execution: &Execution<'_>, element_instance: Key, result: Option<&JobResult>) -> Outcome {
    let Some(token) = Token::find(execution, element_instance)? else { return Ok(()) };
    Ok(check(execution, &token, result.map_or(&[], |result| &result.activate_elements))?)
}

/// What the worker said happens.
pub(crate) fn job_completed(execution: &mut Execution<'_>, job: &JobValue, variables: Vec<Entry>) -> Outcome {
    let key = job.element_instance_key;
    document::propagate(execution, key, variables);
    let Some(token) = Token::find(execution, key)? else { return Ok(()) };
    let Some(result) = job.result.as_deref() else { return Ok(()) };
    let value = AdHocSubProcessInstructionValue {
        ad_hoc_sub_process_instance_key: key,
        activate_elements: result.activate_elements.clone(),
        cancel_remaining_instances: result.cancel_remaining_instances,
        tenant_id: job.tenant_id.clone(),
        completion_condition_fulfilled: result.completion_condition_fulfilled,
    };
    let emit = |execution: &mut Execution<'_>, intent| {
        execution.emit(key, Payload::AdHocSubProcessInstruction(intent, Box::new(value.clone())));
    };
    if !result.activate_elements.is_empty() {
        if result.cancel_remaining_instances {
            terminate_inner_instances(execution, key);
        }
        begin_elements(execution, &token, result.activate_elements.clone())?;
        emit(execution, AdHocSubProcessInstructionIntent::Activated);
    }
    if result.completion_condition_fulfilled {
        emit(execution, AdHocSubProcessInstructionIntent::Completed);
        if result.cancel_remaining_instances {
            terminate_inner_instances(execution, key);
        }
        complete::complete_scope_without_tokens(execution, key);
    }
    Ok(())
}

/// Whether an ad-hoc sub-process goes on behind this event sub-process in it as behind an inner instance.
pub(super) fn is_counted_event_sub_process(token: &Token) -> bool {
    token.value().bpmn_element_type == BpmnElementType::EventSubProcess && enclosing(token).is_some()
}

/// The result of an inner instance goes into the output collection. Returns whether the ad-hoc sub-process comes to its end
/// with it.
pub(super) fn inner_completing(execution: &mut Execution<'_>, token: &Token) -> Result<bool, Problem> {
    let Some(ad_hoc) = enclosing(token) else { return Ok(false) };
    if let Some(output) = &ad_hoc.output {
        output_collection::collect(execution, token, output, Place::Last)?;
    }
    let Some(condition) = &ad_hoc.completion_condition else { return Ok(false) };
    // The condition sees the variables of the ad-hoc sub-process, and not those that are local to the inner instance.
    let scope = token.value().flow_scope_key;
    let holder = execution.state.element_instance(scope);
    let collection = match (&ad_hoc.output, holder) {
        (Some((name, _)), Some(holder)) => {
            output_collection::seen_by(execution, scope, (scope, &holder), name, condition)?
        }
        _ => None,
    };
    let own: OwnEntries<Text> = collection.into_iter().collect();
    expression::boolean_with(execution, scope, &own, condition)
        .map_err(|problem| extract_problem(format!("Failed to evaluate completion condition. {}", problem.message)))
}

/// After COMPLETED of an inner instance.
pub(super) fn inner_completed(execution: &mut Execution<'_>, inner: &Token, is_fulfilled: bool) -> Outcome {
    let key = inner.value().flow_scope_key;
    let Some(token) = Token::find(execution, key)? else { return Ok(()) };
    let Some(ad_hoc) = definition(&token) else { return Ok(()) };
    if token.instance.lifecycle != Lifecycle::Activated {
        return Ok(());
    }
    if let Some(job) = &ad_hoc.job
        && !token.instance.is_completion_condition_fulfilled
    {
        return ask_worker_again(execution, &token, job);
    }
    let is_last = token.instance.children == 0;
    let is_at_end = is_fulfilled || token.instance.is_completion_condition_fulfilled;
    if is_last && (is_at_end || ad_hoc.completion_condition.is_none()) {
        execution.steps.push_back(Step::Complete { key });
    } else if is_at_end && ad_hoc.cancel_remaining_instances {
        interrupt::interrupt_children(execution, key);
    }
    Ok(())
}

/// The job that the worker has is about what was there before; it gets another.
fn ask_worker_again(execution: &mut Execution<'_>, token: &Token, job: &bpmn::model::JobDefinition) -> Outcome {
    terminate::cancel_job(execution, &token.instance);
    match evaluate_job(execution, token, job) {
        Ok(job) => {
            let queue = job_worker_task::create_job(execution, job);
            delivery::deliver(execution, &queue);
        }
        Err(problem) => crate::incident::raise_for_element(execution, token, problem),
    }
    Ok(())
}

/// Whether only the worker can end it.
pub(super) fn is_left_to_worker(token: &Token) -> bool {
    definition(token).is_some_and(|ad_hoc| ad_hoc.job.is_some())
        && token.instance.lifecycle == Lifecycle::Activated
        && !token.instance.is_completion_condition_fulfilled
}

/// Nothing is left inside, or an incident was resolved that kept the worker from being asked.
pub(super) fn wait_for_worker(execution: &mut Execution<'_>, token: &Token) -> Outcome {
    match definition(token).and_then(|ad_hoc| ad_hoc.job.as_ref()) {
        Some(job) if token.instance.job.is_none() => ask_worker_again(execution, token, job),
        _ => Ok(()),
    }
}
