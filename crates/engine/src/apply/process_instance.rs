//! Events of element instances and sequence flows.

use std::sync::Arc;

use bpmn::model::{Behavior, ExecutableProcess};
use protocol::{BpmnElementType, BpmnEventType, Key, ProcessInstanceIntent, ProcessInstanceValue, Timestamp};

use super::change::{broken, change_element, count_down, count_up, not_an_event, take_one};
use super::usage;
use crate::state::{ElementInstance, EventGate, Lifecycle, State, Usage, item_bytes, living_of};

pub(super) fn apply(state: &mut State, key: Key, intent: ProcessInstanceIntent, value: &Arc<ProcessInstanceValue>) {
    match intent {
        ProcessInstanceIntent::ElementActivating => activating(state, key, value),
        ProcessInstanceIntent::ElementActivated => {
            set_lifecycle(state, key, Lifecycle::Activated);
            super::compensation::begun(state, key, value);
        }
        ProcessInstanceIntent::ElementCompleting => set_lifecycle(state, key, Lifecycle::Completing),
        ProcessInstanceIntent::ElementTerminating => set_lifecycle(state, key, Lifecycle::Terminating),
        ProcessInstanceIntent::ElementCompleted | ProcessInstanceIntent::ElementTerminated => {
            ended(state, key, intent, value);
        }
        ProcessInstanceIntent::SequenceFlowTaken => flow_taken(state, value),
        ProcessInstanceIntent::SequenceFlowDeleted => super::migration::flow_deleted(state, value),
        ProcessInstanceIntent::ElementMigrated => super::migration::element_migrated(state, key, value),
        // Commands, and what belongs to elements that this version refuses at deployment.
        ProcessInstanceIntent::Cancel
        | ProcessInstanceIntent::ActivateElement
        | ProcessInstanceIntent::CompleteElement
        | ProcessInstanceIntent::TerminateElement
        | ProcessInstanceIntent::CompleteExecutionListener
        | ProcessInstanceIntent::AncestorMigrated
        | ProcessInstanceIntent::ContinueTerminatingElement => not_an_event(state, intent.name()),
    }
}

/// An element instance as it begins.
fn beginning(value: &Arc<ProcessInstanceValue>, has_variables: bool, bytes: u64, begun: Timestamp) -> ElementInstance {
    let is_process = value.bpmn_element_type == BpmnElementType::Process;
    ElementInstance {
        lifecycle: Lifecycle::Activating,
        value: value.clone(),
        children: 0,
        tokens: 0,
        job: Key::NONE,
        incident: Key::NONE,
        has_variables,
        result: None,
        interrupted_by: None,
        gate: EventGate::Open,
        has_subscriptions: false,
        // The trigger of a start event is there before the process too.
        has_triggers: is_process,
        called_instance: Key::NONE,
        depth: 0,
        loop_counter: 0,
        completed_children: 0,
        terminated_children: 0,
        items: 0,
        output_bytes: 0,
        root: Key::NONE,
        usage: Usage { living: u64::from(is_process), bytes },
        user_task: Key::NONE,
        is_completion_condition_fulfilled: false,
        begun,
        listeners_done: 0,
        tokens_passed_on: 0,
        outputs: 0,
    }
}

fn activating(state: &mut State, key: Key, value: &Arc<ProcessInstanceValue>) {
    let is_process = value.bpmn_element_type == BpmnElementType::Process;
    // Variables given at creation are there before the process itself, those of a modification before its elements, which
    // are no start events.
    let may_have_variables =
        is_process || (value.without_token && value.bpmn_element_type != BpmnElementType::StartEvent);
    let bytes = if may_have_variables { state.early_variable_bytes(key) } else { 0 };
    let instance = beginning(value, may_have_variables, bytes, state.counters.timestamp);
    state.tables.element_instances.insert_new(key.raw(), instance);
    if is_process {
        super::process::instance_began(state, value.process_definition_key);
        super::business_id::instance_began(state, key, value);
        called(state, key, value, bytes);
        return;
    }
    let scope = value.flow_scope_key.raw();
    let consumed = if value.without_token { 0 } else { consume_tokens(state, value) };
    state.tables.children.insert_new((scope, key.raw()), ());
    let mut scope_type = BpmnElementType::Unspecified;
    let mut loop_counter = 0;
    let mut is_short_of_tokens = false;
    let mut counted = None;
    let mut taken = consumed;
    let count = |usage: &mut Usage, taken: u32| {
        usage.add(Usage { living: living_of(value), bytes });
        usage.take(Usage { living: u64::from(taken), bytes: 0 });
    };
    let has_scope = state.tables.element_instances.update(&scope, |scope| {
        scope.children += 1;
        // The element that interrupted its scope may be reached again, as on the reference, by a token that was forgotten
        // with the others.
        is_short_of_tokens = scope.tokens < consumed && scope.interrupted_by.as_ref() != Some(&value.element_id);
        taken = consumed.min(scope.tokens);
        scope.tokens -= taken;
        scope.tokens_passed_on = scope.tokens_passed_on.min(scope.tokens);
        scope_type = scope.value.bpmn_element_type;
        if scope_type == BpmnElementType::MultiInstanceBody {
            scope.loop_counter += 1;
            loop_counter = scope.loop_counter;
        }
        counted = usage::count_in_root(scope, |usage| count(usage, taken));
    });
    match counted {
        Some(usage) => state.grown = Some((value.flow_scope_key, usage)),
        // It is counted with its item already.
        None if loop_counter > 0 => usage::add(state, value.process_instance_key, Usage { living: 0, bytes }),
        None => usage::change(state, value.process_instance_key, |usage| count(usage, taken)),
    }
    if is_short_of_tokens {
        broken(
            state,
            format!("fewer than the {consumed} tokens that '{}' takes are in scope {scope}", value.element_id),
        );
    }
    // What already has variables begins and ends at once when its scope has ended meanwhile, together with them.
    if !has_scope && !state.holds_variables(key) {
        broken(state, format!("scope {scope} is not there"));
    }
    if loop_counter > 0 {
        change_element(state, key.raw(), |instance| instance.loop_counter = loop_counter);
    }
    if value.bpmn_element_type == BpmnElementType::StartEvent && scope_type == BpmnElementType::EventSubProcess {
        take_trigger(state, key, value);
    }
    if value.bpmn_element_type == BpmnElementType::EventSubProcess {
        forget_tokens_of_interrupted(state, value);
    }
}

/// A called process is linked to the call activity, unless that ended meanwhile: then the process begins and ends at
/// once.
fn called(state: &mut State, key: Key, value: &ProcessInstanceValue, bytes: u64) {
    if value.parent_element_instance_key.is_none() {
        return;
    }
    let caller = state.element_instance(value.parent_process_instance_key);
    let depth = caller.map_or(0, |caller| caller.depth) + 1;
    let root = state.root_of(value.parent_process_instance_key);
    state.tables.element_instances.update(&key.raw(), |instance| {
        instance.depth = depth;
        instance.root = root;
        instance.usage = Usage::default();
    });
    usage::add(state, value.parent_process_instance_key, Usage { living: living_of(value), bytes });
    let call_activity = value.parent_element_instance_key.raw();
    state.tables.element_instances.update(&call_activity, |instance| instance.called_instance = key);
}

/// The start event of an event sub-process takes over the variables of the event that triggered it. It may begin without
/// one, by a modification.
fn take_trigger(state: &mut State, key: Key, value: &ProcessInstanceValue) {
    let Some(event_sub_process) = state.element_instance(value.flow_scope_key) else {
        return broken(state, format!("scope {} is not there", value.flow_scope_key));
    };
    let scope = event_sub_process.value.flow_scope_key.raw();
    let found = state.tables.event_triggers.prefix(&scope).find_map(|(trigger, row)| {
        (row.target_element_id == value.element_id).then(|| (trigger, row.variables.clone()))
    });
    let Some((trigger, variables)) = found else { return };
    state.tables.event_triggers.delete(&trigger);
    if !variables.is_empty() {
        change_element(state, key.raw(), |instance| instance.result = Some(variables));
    }
}

/// Tokens that were on their way in a scope when an event sub-process interrupted it will never arrive.
fn forget_tokens_of_interrupted(state: &mut State, value: &ProcessInstanceValue) {
    let scope = state.element_instance(value.flow_scope_key);
    if scope.is_some_and(|scope| scope.interrupted_by.as_ref() == Some(&value.element_id)) {
        forget_tokens(state, value.flow_scope_key.raw());
    }
}

fn forget_tokens(state: &mut State, scope: i64) {
    state.tables.waiting_tokens.remove_prefix(&scope);
    usage::change_tokens(state, scope, |tokens| *tokens = 0);
    change_element(state, scope, |scope| scope.tokens_passed_on = 0);
}

/// Takes tokens out of a scope, which must have them.
pub(super) fn take_tokens(state: &mut State, scope: i64, count: u32) {
    let mut left = None;
    usage::change_tokens(state, scope, |tokens| {
        left = tokens.checked_sub(count);
        *tokens = left.unwrap_or(0);
    });
    if left.is_none() {
        broken(state, format!("scope {scope} has fewer than {count} tokens"));
    }
}

/// The definition that a value names, which must be there.
pub(super) fn process_of(state: &mut State, value: &ProcessInstanceValue) -> Option<Arc<ExecutableProcess>> {
    let process = state.process(value.process_definition_key);
    if process.is_none() {
        broken(state, format!("definition {} cannot be read", value.process_definition_key));
    }
    process
}

/// The tokens that entering the element uses up: one of each incoming flow at a parallel gateway, one of each flow that has
/// one at an inclusive gateway, else one. Start events have none.
fn consume_tokens(state: &mut State, value: &ProcessInstanceValue) -> u32 {
    let element_type = value.bpmn_element_type;
    if element_type == BpmnElementType::StartEvent {
        return 0;
    }
    let Some(process) = process_of(state, value) else { return 1 };
    let is_joining = element_type == BpmnElementType::ParallelGateway;
    if !is_joining && process.joining_inclusive_gateways.is_empty() {
        return 1;
    }
    let Some(index) = process.find(&value.element_id, element_type) else {
        broken(state, format!("the process has no element '{}'", value.element_id));
        return 1;
    };
    let element = process.element(index);
    let is_joining = is_joining || element_type == BpmnElementType::InclusiveGateway;
    let scope = value.flow_scope_key.raw();
    let mut consumed = 0;
    for flow in &element.incoming {
        let token = (scope, element.id.clone(), process.flow(*flow).id.clone());
        if !take_one(&mut state.tables.waiting_tokens, &token) {
            continue;
        }
        consumed += 1;
        if !is_joining {
            break;
        }
    }
    consumed.max(1)
}

fn set_lifecycle(state: &mut State, key: Key, lifecycle: Lifecycle) {
    change_element(state, key.raw(), |instance| {
        instance.lifecycle = lifecycle;
        instance.listeners_done = 0;
    });
}

fn ended(state: &mut State, key: Key, intent: ProcessInstanceIntent, value: &ProcessInstanceValue) {
    let raw = key.raw();
    let is_completed = intent == ProcessInstanceIntent::ElementCompleted;
    if is_completed && value.bpmn_element_type == BpmnElementType::Process {
        give_variables_to_caller(state, key, value);
    }
    let Some(instance) = state.element_instance(key) else {
        return broken(state, format!("element instance {key} is not there"));
    };
    let went = remove_rows(state, key, &instance);
    state.tables.element_instances.delete(&raw);
    if value.bpmn_element_type == BpmnElementType::Process {
        if state.counters.awaited_results > 0 && state.tables.awaited_results.contains(&raw) {
            state.tables.awaited_results.delete(&raw);
            count_down(state, "awaited results", 1, |counters| &mut counters.awaited_results);
        }
        super::message::release_lock(state, key, value);
        super::runtime_instruction::process_ended(state, key);
        super::process::instance_ended(state, key, value);
        super::business_id::instance_ended(state, key, value);
        // What a root counted went with it.
        if instance.root.is_some() {
            usage::take(state, instance.root, went);
        }
        return;
    }
    let scope = value.flow_scope_key.raw();
    state.tables.children.delete(&(scope, raw));
    let mut children_left = None;
    let is_inner_instance = instance.is_inner_instance();
    let mut counted = None;
    // The scope of an element that begins and ends at once may have ended before, see `activating`.
    let has_scope = state.tables.element_instances.update(&scope, |scope| {
        children_left = scope.children.checked_sub(1);
        scope.children = children_left.unwrap_or(0);
        if is_inner_instance && is_completed {
            scope.completed_children += 1;
        } else if is_inner_instance {
            scope.terminated_children += 1;
        }
        counted = usage::count_in_root(scope, |usage| usage.take(went));
    });
    if counted.is_none() {
        usage::take(state, value.process_instance_key, went);
    }
    if has_scope && children_left.is_none() {
        broken(state, format!("scope {scope} has no child"));
    }
    if is_completed && value.bpmn_event_type == BpmnEventType::Terminate {
        forget_tokens(state, scope);
        let element_id = value.element_id.clone();
        change_element(state, scope, |scope| scope.interrupted_by = Some(element_id));
    }
}

/// Takes away what belongs to an element instance that ends; returns what that took. An inner instance is counted with its item.
fn remove_rows(state: &mut State, key: Key, instance: &ElementInstance) -> Usage {
    let raw = key.raw();
    let mut went = Usage { living: u64::from(instance.tokens), bytes: instance.output_bytes };
    if instance.is_inner_instance() {
        let item = (instance.value.flow_scope_key.raw(), instance.loop_counter);
        if let Some(text) = state.tables.loop_items.get(&item) {
            went.add(Usage { living: 1, bytes: item_bytes(&text) });
            state.tables.loop_items.delete(&item);
        }
    } else {
        went.living += living_of(&instance.value);
    }
    if instance.has_variables && instance.is_root() {
        state.tables.variables.remove_prefix(&raw);
    } else if instance.has_variables {
        went.bytes += super::variable::remove_all(state, key);
    }
    if instance.tokens > 0 {
        state.tables.waiting_tokens.remove_prefix(&raw);
    }
    if instance.has_triggers {
        state.tables.event_triggers.remove_prefix(&raw);
    }
    if instance.value.bpmn_event_type == BpmnEventType::Compensation {
        state.tables.compensations.delete(&raw);
    }
    if instance.items > 0 {
        went.add(super::process_event::remove_items(state, raw));
    }
    if instance.outputs > 0 {
        state.tables.loop_outputs.remove_prefix(&raw);
    }
    went
}

/// The variables of a called process are the result of its call activity, when that lets them through.
fn give_variables_to_caller(state: &mut State, key: Key, value: &ProcessInstanceValue) {
    let call_activity = value.parent_element_instance_key;
    if call_activity.is_none() {
        return;
    }
    let Some(caller) = state.element_instance(call_activity) else {
        return broken(state, format!("call activity {call_activity} is not there"));
    };
    let Some(process) = state.process(caller.value.process_definition_key) else {
        // A banned instance does not continue, and its definition may be deleted.
        if !state.is_banned(caller.value.process_instance_key) {
            broken(state, format!("definition {} cannot be read", caller.value.process_definition_key));
        }
        return;
    };
    let element = process.find(&caller.value.element_id, BpmnElementType::CallActivity);
    let Some((element, Behavior::CallActivity(called))) =
        element.map(|index| process.element(index)).map(|element| (element, &element.behavior))
    else {
        return broken(state, format!("'{}' calls no process", caller.value.element_id));
    };
    if element.outputs.is_empty() && !called.propagate_all_child_variables {
        return;
    }
    let variables = super::variable::document_of(state, key);
    change_element(state, call_activity.raw(), |caller| caller.result = Some(variables.into()));
}

fn flow_taken(state: &mut State, value: &ProcessInstanceValue) {
    let scope = value.flow_scope_key.raw();
    usage::change_tokens(state, scope, |tokens| *tokens += 1);
    let Some(process) = process_of(state, value) else { return };
    let Some(flow) = process.flow_by_id.get(&*value.element_id).map(|index| process.flow(*index)) else {
        return broken(state, format!("the process has no sequence flow '{}'", value.element_id));
    };
    let target = process.element(flow.target);
    // Inclusive gateways have to know of all tokens on their way.
    if target.element_type == BpmnElementType::ParallelGateway || !process.joining_inclusive_gateways.is_empty() {
        let token = (scope, target.id.clone(), flow.id.clone());
        count_up(&mut state.tables.waiting_tokens, token);
    }
}
