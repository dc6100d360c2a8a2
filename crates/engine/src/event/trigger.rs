//! An event occurs: its element begins, at once or when what it interrupts has ended.

use std::sync::Arc;

use bpmn::model::{Behavior, ElementIndex, ExecutableProcess};
use protocol::{
    BpmnElementType, Key, Payload, ProcessEventIntent, ProcessEventValue, ProcessInstanceIntent, ProcessInstanceValue,
    Text,
};

use super::unsubscribe_event_sub_processes;
use crate::element::interrupt::interrupt_children;
use crate::execution::Execution;
use crate::execution::step::Step;
use crate::execution::token::{Token, value_of};
use crate::state::life::is_open_for;
use crate::state::{ElementInstance, EventGate, EventTriggerRow, Lifecycle, State};
use crate::variable::document;

/// Whether the event may come now: its scope is active and was not interrupted before, and the enclosing scope lets it
/// go on. An event sub-process continues in a scope that it has interrupted itself, and so does what waits in it.
pub(crate) fn can_trigger(state: &State, scope: &ElementInstance, is_boundary_event: bool) -> bool {
    let is_open = match scope.gate {
        EventGate::Open => true,
        EventGate::BoundaryOnly => is_boundary_event,
        EventGate::Closed => false,
    };
    let enclosing = state.element_instance(scope.value.flow_scope_key);
    let is_enclosing_open = enclosing.is_none_or(|enclosing| is_open_for(&enclosing, &scope.value.element_id));
    scope.lifecycle == Lifecycle::Activated && is_open && is_enclosing_open
}

/// The event comes; the caller has seen that it may. `variables` is the text of a document, empty for none.
pub(crate) fn trigger(execution: &mut Execution<'_>, scope: &Token, event: ElementIndex, variables: Text) {
    let definition = scope.process.element(event);
    let key = triggering(execution, scope.key, scope.value(), &definition.id, variables.clone());
    if let Behavior::IntermediateCatchEvent(_) | Behavior::ReceiveTask(_) = definition.behavior {
        // The instance that waits is the event's own, or the event-based gateway before it.
        execution.steps.push_back(Step::Complete { key: scope.key });
    } else if let Some(event_sub_process) = scope.process.event_sub_process_of(event) {
        trigger_event_sub_process(execution, scope, event, event_sub_process);
    } else if scope.process.is_interrupting(event) {
        execution.steps.push_back(Step::Terminate { key: scope.key });
    } else {
        let pending = Pending { key, event, variables };
        activate(execution, scope, scope.value().flow_scope_key, &pending);
    }
}

/// The work of an element has a result, which it brings to its own completion. `variables` is the text of a document.
pub(crate) fn bring_result(execution: &mut Execution<'_>, token: &Token, variables: Text) {
    triggering(execution, token.key, token.value(), &token.element().id, variables);
}

fn triggering(
    execution: &mut Execution<'_>,
    scope_key: Key,
    of: &ProcessInstanceValue,
    event_id: &Arc<str>,
    variables: Text,
) -> Key {
    let key = execution.state.next_key();
    let value = ProcessEventValue {
        scope_key,
        target_element_id: event_id.into(),
        process_definition_key: of.process_definition_key,
        process_instance_key: of.process_instance_key,
        variables,
        tenant_id: of.tenant_id.clone(),
    };
    execution.emit(key, Payload::ProcessEvent(ProcessEventIntent::Triggering, Box::new(value)));
    key
}

fn trigger_event_sub_process(
    execution: &mut Execution<'_>,
    scope: &Token,
    event: ElementIndex,
    event_sub_process: ElementIndex,
) {
    if scope.process.is_interrupting(event) {
        unsubscribe_event_sub_processes(execution, scope);
        let children = execution.state.element_instance(scope.key).map_or(0, |instance| instance.children);
        if children > 0 {
            // It begins when the last of them has ended.
            interrupt_children(execution, scope.key);
            return;
        }
    }
    begin_event_sub_process(execution, scope, event_sub_process);
}

fn begin_event_sub_process(execution: &mut Execution<'_>, scope: &Token, event_sub_process: ElementIndex) {
    let value = value_of(&scope.process, event_sub_process, scope.key, scope.value(), true);
    execution.steps.push_back(Step::Activate { key: None, value: Arc::new(value) });
}

/// Starts an instance of a process at one of its triggered start events.
pub(crate) fn trigger_process(
    execution: &mut Execution<'_>,
    process: &ExecutableProcess,
    instance: ProcessInstanceValue,
    start_event: ElementIndex,
    variables: Text,
) {
    let key = instance.process_instance_key;
    let start_event_id = process.element(start_event).id.clone();
    triggering(execution, instance.process_definition_key, &instance, &start_event_id, variables);
    execution.steps.push_back(Step::Activate { key: Some(key), value: Arc::new(instance) });
}

/// An event that came and whose element has not begun yet.
#[derive(Debug)]
pub(crate) struct Pending {
    pub key: Key,
    pub event: ElementIndex,
    pub variables: Text,
}

/// The oldest trigger of an element instance.
pub(crate) fn find_trigger(state: &State, process: &ExecutableProcess, scope: Key) -> Option<Pending> {
    find(state, process, scope, |_| true)
}

/// The oldest trigger by a boundary event of the element.
pub(crate) fn find_boundary_trigger(state: &State, token: &Token) -> Option<Pending> {
    let boundary_events = &token.element().boundary_events;
    if boundary_events.is_empty() {
        return None;
    }
    find(state, &token.process, token.key, |event| boundary_events.contains(&event))
}

/// The trigger of the event sub-process that interrupted a scope.
pub(crate) fn find_interrupting_trigger(state: &State, scope: &Token) -> Option<Pending> {
    let interrupted_by = scope.instance.interrupted_by.as_ref()?;
    find(state, &scope.process, scope.key, |event| {
        let event_sub_process = scope.process.event_sub_process_of(event);
        event_sub_process.is_some_and(|index| *scope.process.element(index).id == **interrupted_by)
    })
}

fn find(
    state: &State,
    process: &ExecutableProcess,
    scope: Key,
    wanted: impl Fn(ElementIndex) -> bool,
) -> Option<Pending> {
    state.tables.event_triggers.prefix(&scope.raw()).find_map(|((_, key), row)| {
        let EventTriggerRow { target_element_id, variables } = &*row;
        let event = process.find_event(target_element_id)?;
        wanted(event).then(|| Pending { key: Key::from_raw(key), event, variables: variables.clone() })
    })
}

/// Begins the element of an event: the event sub-process, or the event itself with the variables that it brings.
pub(crate) fn activate(execution: &mut Execution<'_>, scope: &Token, flow_scope: Key, pending: &Pending) {
    if let Some(event_sub_process) = scope.process.event_sub_process_of(pending.event) {
        // The trigger stays until the start event begins, which takes its variables.
        begin_event_sub_process(execution, scope, event_sub_process);
        return;
    }
    let value = scope.value();
    let is_process = value.bpmn_element_type == BpmnElementType::Process;
    let triggered = ProcessEventValue {
        scope_key: if is_process { value.process_definition_key } else { scope.key },
        target_element_id: (&scope.process.element(pending.event).id).into(),
        process_definition_key: value.process_definition_key,
        process_instance_key: value.process_instance_key,
        variables: Text::default(),
        tenant_id: value.tenant_id.clone(),
    };
    execution.emit(pending.key, Payload::ProcessEvent(ProcessEventIntent::Triggered, Box::new(triggered)));
    let key = execution.state.next_key();
    let instance = Arc::new(value_of(&scope.process, pending.event, flow_scope, value, true));
    execution.emit(key, Payload::ProcessInstance(ProcessInstanceIntent::ElementActivating, instance.clone()));
    execution.emit(key, Payload::ProcessInstance(ProcessInstanceIntent::ElementActivated, instance));
    // What was accepted with the event was checked then.
    if let Ok(entries) = document::split(&pending.variables, execution.limits.name_bytes_max) {
        document::set_local(execution, key, entries);
    }
    execution.steps.push_back(Step::Complete { key });
}
