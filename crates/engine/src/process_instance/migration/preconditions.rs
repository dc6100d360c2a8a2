//! What must hold for an instance, and for each of its elements, to be migrated.

use std::collections::BTreeSet;

use bpmn::model::{Behavior, ElementIndex, ElementType, EventType};
use protocol::{BpmnElementType, Command, Key, MigrationMappingInstruction, Payload, ProcessInstanceValue, Rejection};

use super::super::target;
use super::Migration;
use crate::event::events::events_of;
use crate::execution::Execution;
use crate::execution::token::Token;
use crate::state::{ElementInstance, Lifecycle, State};

/// Source ids that are mapped more than once.
pub(super) fn duplicate_sources(instructions: &[MigrationMappingInstruction]) -> Vec<&str> {
    let mut seen = BTreeSet::new();
    let mut duplicates = BTreeSet::new();
    for id in instructions.iter().map(|instruction| &*instruction.source_element_id) {
        if !seen.insert(id) {
            duplicates.insert(id);
        }
    }
    duplicates.into_iter().collect()
}

/// What must hold for the instance as a whole.
pub(super) fn check_instance(execution: &Execution<'_>, migration: &Migration, token: &Token) -> Result<(), Rejection> {
    check_message_lock(execution, migration, token)?;
    for (source, target) in &migration.mapping {
        let missing = if target::find(&migration.source, source).is_none() {
            Some(("source", &**source))
        } else if target::find(&migration.target, target).is_none() {
            Some(("target", &**target))
        } else {
            None
        };
        if let Some((side, id)) = missing {
            return Err(migration.invalid_argument(&format!(
                "mapping instructions contain a non-existing {side} element id '{id}'. Elements provided in mapping \
                 instructions must exist in the {side} process definition."
            )));
        }
    }
    if has_waiting_work(&execution.state, migration.key) {
        return Err(concurrent(migration));
    }
    Ok(())
}

fn concurrent(migration: &Migration) -> Rejection {
    migration.invalid_state(
        "a concurrent command was executed on the process instance, and what follows from it is not done yet. Retry the \
         migration.",
    )
}

/// Whether steps of the instance wait in the work queue: they name elements of the definition that it leaves.
fn has_waiting_work(state: &State, instance: Key) -> bool {
    let of_element =
        |key: Key| state.element_instance(key).is_some_and(|element| element.value.process_instance_key == instance);
    let concerns = |command: &Command| match &command.payload {
        Payload::ProcessInstance(_, value) => value.process_instance_key == instance || of_element(command.key),
        Payload::ProcessInstanceBatch(_, value) => of_element(value.batch_element_instance_key),
        Payload::MessageSubscription(_, value) => value.process_instance_key == instance,
        Payload::ProcessMessageSubscription(_, value) => value.process_instance_key == instance,
        Payload::AdHocSubProcessInstruction(_, value) => of_element(value.ad_hoc_sub_process_instance_key),
        _ => false,
    };
    state.counters.work_entries > 0 && state.tables.work.iter().any(|(_, row)| row.commands.iter().any(concerns))
}

/// Only one instance of a process lives for each correlation key of a message start event.
fn check_message_lock(execution: &Execution<'_>, migration: &Migration, token: &Token) -> Result<(), Rejection> {
    let tables = &execution.state.tables;
    let target_id = &migration.target_metadata.bpmn_process_id;
    if token.value().bpmn_process_id == *target_id || !migration.target.is_started_by_message() {
        return Ok(());
    }
    let Some(correlation_key) = tables.message_lock_keys.get(&migration.key.raw()) else { return Ok(()) };
    let lock = (token.value().tenant_id.shared().clone(), target_id.shared().clone(), (*correlation_key).clone());
    let holder = tables.message_locks.get(&lock);
    if holder.is_none_or(|holder| execution.state.is_banned(Key::from_raw(*holder))) {
        return Ok(());
    }
    Err(migration.invalid_state(&format!(
        "target process definition '{}' has an active instance triggered by a message start event with correlation key \
         '{correlation_key}'. Only one instance per correlation key is allowed for message start events.",
        migration.target_metadata.process_definition_key
    )))
}

/// The element of the target that an active element becomes.
pub(super) fn target_of(
    execution: &Execution<'_>,
    migration: &Migration,
    instance: &ElementInstance,
    source: ElementIndex,
) -> Result<ElementIndex, Rejection> {
    let value = &instance.value;
    let element_id = &value.element_id;
    check_supported(migration, value, source)?;
    let target_id = migration.mapped(element_id).ok_or_else(|| {
        migration.invalid_state(&format!(
            "no mapping instruction defined for active element with id '{element_id}'. Elements cannot be migrated without \
             a mapping."
        ))
    })?;
    let target = same_type(migration, instance, target_id)?;
    check_flow_scope(execution, migration, value, target)?;
    check_events_stay(migration, source, target)?;
    check_loop(migration, source, target)?;
    check_user_task(migration, source, target)?;
    Ok(target)
}

/// What a command that is under way has left undone at an element.
pub(super) fn check_settled(
    execution: &Execution<'_>,
    migration: &Migration,
    key: Key,
    instance: &ElementInstance,
) -> Result<(), Rejection> {
    let is_triggered =
        instance.has_triggers && execution.state.tables.event_triggers.prefix(&key.raw()).next().is_some();
    if is_triggered || instance.lifecycle == Lifecycle::Terminating {
        return Err(concurrent(migration));
    }
    Ok(())
}

/// As [`check_settled`], for tokens on their way; those that wait at a joining gateway are given.
pub(super) fn check_tokens(migration: &Migration, on_their_way: u32, at_gateways: u32) -> Result<(), Rejection> {
    if at_gateways < on_their_way { Err(concurrent(migration)) } else { Ok(()) }
}

/// As [`check_settled`], for a gateway that has all of its tokens and is about to begin.
pub(super) fn check_gateway_waits(migration: &Migration, tokens: usize, incoming: usize) -> Result<(), Rejection> {
    if tokens == incoming { Err(concurrent(migration)) } else { Ok(()) }
}

fn check_supported(migration: &Migration, value: &ProcessInstanceValue, source: ElementIndex) -> Result<(), Rejection> {
    let element_id = &value.element_id;
    match value.bpmn_element_type {
        BpmnElementType::IntermediateCatchEvent => {
            let event_type = value.bpmn_event_type;
            let is_supported = matches!(
                event_type,
                EventType::Message | EventType::Timer | EventType::Signal | EventType::Conditional
            );
            if !is_supported {
                return Err(migration.invalid_state(&format!(
                    "active element with id '{element_id}' is intermediate catch event of type '{}'. Migrating active \
                     intermediate catch event of this type is not possible yet.",
                    event_type.name()
                )));
            }
            if target::follows_event_based_gateway(&migration.source, source) {
                return Err(migration.invalid_state(&format!(
                    "active element with id '{element_id}' is an intermediate catch event attached to an event-based \
                     gateway. Migrating active events attached to an event-based gateway is not possible yet."
                )));
            }
            Ok(())
        }
        BpmnElementType::Process
        | BpmnElementType::ServiceTask
        | BpmnElementType::SubProcess
        | BpmnElementType::CallActivity
        | BpmnElementType::ReceiveTask
        | BpmnElementType::EventSubProcess
        | BpmnElementType::ExclusiveGateway
        | BpmnElementType::EventBasedGateway
        | BpmnElementType::UserTask
        | BpmnElementType::BusinessRuleTask
        | BpmnElementType::ScriptTask
        | BpmnElementType::SendTask
        | BpmnElementType::MultiInstanceBody
        | BpmnElementType::ParallelGateway
        | BpmnElementType::InclusiveGateway
        | BpmnElementType::AdHocSubProcess
        | BpmnElementType::AdHocSubProcessInnerInstance => Ok(()),
        unsupported => Err(migration.invalid_state(&format!(
            "active element with id '{element_id}' has an unsupported type. The migration of a {} is not supported.",
            unsupported.name()
        ))),
    }
}

/// The element with the id in the target; of an activity that runs several times, an inner instance becomes an inner one.
fn same_type(migration: &Migration, instance: &ElementInstance, target_id: &str) -> Result<ElementIndex, Rejection> {
    let value = &instance.value;
    let process = &migration.target;
    let changed = |found: &str| {
        Err(migration.invalid_state(&format!(
            "active element with id '{}' and type '{}' is mapped to an element with id '{target_id}' and different type \
             '{found}'. Elements must be mapped to elements of the same type.",
            value.element_id,
            value.bpmn_element_type.name()
        )))
    };
    let Some(outer) = process.element_by_id.get(target_id).copied() else {
        return changed(BpmnElementType::SequenceFlow.name());
    };
    let target = match &process.element(outer).behavior {
        Behavior::MultiInstanceBody(body)
            if instance.loop_counter > 0 && value.bpmn_element_type != ElementType::MultiInstanceBody =>
        {
            body.inner
        }
        _ => outer,
    };
    let found = process.element(target).element_type;
    if found == value.bpmn_element_type { Ok(target) } else { changed(found.name()) }
}

/// The scope was migrated before, so it names its element in the target.
fn check_flow_scope(
    execution: &Execution<'_>,
    migration: &Migration,
    value: &ProcessInstanceValue,
    target: ElementIndex,
) -> Result<(), Rejection> {
    let Some(scope) = execution.state.element_instance(value.flow_scope_key) else { return Ok(()) };
    let process = &migration.target;
    let actual = process.element(target).flow_scope;
    if actual.is_some() && actual == process.find(&scope.value.element_id, scope.value.bpmn_element_type) {
        return Ok(());
    }
    let actual = actual.map_or("", |scope| &*process.element(scope).id);
    Err(migration.invalid_state(&format!(
        "the flow scope of active element with id '{}' is changed. The flow scope of the active element is expected to be \
         '{}' but was '{actual}'. The flow scope of an element cannot be changed during migration yet.",
        value.element_id, scope.value.element_id
    )))
}

/// Whatever waits for an event must wait for an event of the same kind at the same element, each for a different one.
fn check_events_stay(migration: &Migration, source: ElementIndex, target: ElementIndex) -> Result<(), Rejection> {
    let (source_id, target_id) = (&migration.source.element(source).id, &migration.target.element(target).id);
    let events_of_target = events_of(&migration.target, target);
    let mut taken: Vec<(ElementIndex, &str)> = Vec::new();
    for event in events_of(&migration.source, source) {
        let event = migration.source.element(event);
        let Some(mapped) = migration.mapped(&event.id) else { continue };
        let found = migration.target.find_event(mapped).filter(|found| events_of_target.contains(found));
        let Some(found) = found else {
            return Err(migration.invalid_state(&format!(
                "active element with id '{source_id}' is mapped to an element with id '{target_id}' and has a catch event \
                 with id '{}' that is mapped to a catch event with id '{mapped}'. These mappings detach the catch event \
                 from the element in the target process. Catch events must stay attached to the same element instance.",
                event.id
            )));
        };
        if let Some((_, other)) = taken.iter().find(|(taken, _)| *taken == found) {
            let mut sources = [*other, &event.id];
            sources.sort_unstable();
            return Err(migration.invalid_state(&format!(
                "active element with id '{source_id}' has a catch event attached that is mapped to a catch event with id \
                 '{mapped}'. There are multiple mapping instructions that target this catch event: '{}'. Catch events cannot \
                 be merged by process instance migration. Ensure the mapping instructions target a catch event only once.",
                sources.join("', '")
            )));
        }
        taken.push((found, &event.id));
        let event_type = migration.target.element(found).event_type;
        if event_type != event.event_type {
            return Err(migration.invalid_state(&format!(
                "active element with id '{source_id}' has a catch event with id '{}' that is mapped to a catch event with \
                 id '{mapped}'. These catch events have different event types: '{}' and '{}'. The event type of a catch \
                 event cannot be changed by process instance migration. Keep the event type, or remove the mapping \
                 instruction for these catch events.",
                event.id,
                event.event_type.name(),
                event_type.name()
            )));
        }
    }
    Ok(())
}

fn check_loop(migration: &Migration, source: ElementIndex, target: ElementIndex) -> Result<(), Rejection> {
    let (source, target) = (migration.source.element(source), migration.target.element(target));
    match (&source.behavior, &target.behavior) {
        (Behavior::MultiInstanceBody(before), Behavior::MultiInstanceBody(after))
            if before.is_sequential != after.is_sequential =>
        {
            Err(migration.invalid_state(&format!(
                "active element with id '{}' has a different loop characteristics than the target element with id '{}'. Both \
                 elements must have either sequential or parallel loop characteristics.",
                source.id, target.id
            )))
        }
        _ => Ok(()),
    }
}

/// A job for a task list can go on as a user task that the engine leads, but not the other way round.
fn check_user_task(migration: &Migration, source: ElementIndex, target: ElementIndex) -> Result<(), Rejection> {
    let (source, target) = (migration.source.element(source), migration.target.element(target));
    match (&source.behavior, &target.behavior) {
        (Behavior::UserTask(before), Behavior::UserTask(after)) if before.is_native && !after.is_native => {
            Err(migration.invalid_state(&format!(
                "active user task with id '{}' and implementation 'zeebe user task' is mapped to a user task with id '{}' and \
                 deprecated implementation 'job worker'. Add 'zeebe:userTask' to the target element.",
                source.id, target.id
            )))
        }
        _ => Ok(()),
    }
}
