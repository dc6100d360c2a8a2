//! Refusals of a modification, before anything is changed. Each check is made for all instructions before the next one, as
//! on the reference engine.

use std::collections::{BTreeMap, BTreeSet};

use bpmn::model::{ElementIndex, PROCESS};
use protocol::{BpmnElementType, Key, Rejection};

use super::super::target;
use super::Modified;
use super::instructions::Instructions;
use crate::element::scopes_of;
use crate::execution::Execution;
use crate::state::Lifecycle;

type Check = fn(&Execution<'_>, &Modified, &Instructions) -> Result<(), Rejection>;

pub(super) fn check(
    execution: &Execution<'_>,
    modified: &Modified,
    instructions: &Instructions,
) -> Result<(), Rejection> {
    const CHECKS: [Check; 7] = [
        check_targets_exist,
        check_targets_follow_no_event_based_gateway,
        check_targets_are_supported,
        check_terminated_exist,
        check_variable_scopes,
        check_ancestors,
        check_scopes_stay,
    ];
    CHECKS.iter().try_for_each(|check| check(execution, modified, instructions))
}

/// Items of a list in quotes.
fn quoted<T: ToString>(items: impl IntoIterator<Item = T>) -> String {
    let items: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
    format!("'{}'", items.join("', '"))
}

fn check_targets_exist(_: &Execution<'_>, modified: &Modified, instructions: &Instructions) -> Result<(), Rejection> {
    let ids = instructions.activate.iter().map(|instruction| &*instruction.element_id);
    let unknown: BTreeSet<&str> = ids.filter(|id| target::find(&modified.process, id).is_none()).collect();
    if unknown.is_empty() {
        return Ok(());
    }
    Err(modified.refuse(&format!(
        "it contains one or more activate instructions with an element that could not be found: {}",
        quoted(unknown)
    )))
}

fn refuse_unsupported(modified: &Modified, ids: impl IntoIterator<Item = impl ToString>, reason: &str) -> Rejection {
    modified.refuse(&format!(
        "it contains one or more activate instructions for elements that are unsupported: {}. {reason}.",
        quoted(ids)
    ))
}

fn check_targets_follow_no_event_based_gateway(
    _: &Execution<'_>,
    modified: &Modified,
    instructions: &Instructions,
) -> Result<(), Rejection> {
    let process = &modified.process;
    let elements = instructions.activate.iter().filter_map(|instruction| modified.target(instruction).ok());
    let behind: BTreeSet<ElementIndex> =
        elements.filter(|element| target::follows_event_based_gateway(process, *element)).collect();
    if behind.is_empty() {
        return Ok(());
    }
    let ids = behind.iter().map(|element| &process.element(*element).id);
    let reason = "The activation of events belonging to an event-based gateway is not supported";
    Err(refuse_unsupported(modified, ids, reason))
}

fn check_targets_are_supported(
    _: &Execution<'_>,
    modified: &Modified,
    instructions: &Instructions,
) -> Result<(), Rejection> {
    let process = &modified.process;
    let mut unsupported = BTreeMap::new();
    for id in instructions.activate.iter().map(|instruction| &*instruction.element_id) {
        if let Some(Err(element_type)) = target::find(process, id).map(|target| target.supported(process)) {
            unsupported.insert(id, element_type);
        }
    }
    if unsupported.is_empty() {
        return Ok(());
    }
    let types: BTreeSet<&str> = unsupported.values().copied().collect();
    let reason = format!("The activation of elements with type {} is not supported", quoted(types));
    Err(refuse_unsupported(modified, unsupported.keys(), &reason))
}

fn check_terminated_exist(
    execution: &Execution<'_>,
    modified: &Modified,
    instructions: &Instructions,
) -> Result<(), Rejection> {
    let is_missing = |key: &Key| {
        let instance = execution.state.element_instance(*key);
        instance.is_none_or(|instance| instance.value.process_instance_key != modified.key)
    };
    let missing: BTreeSet<Key> = instructions.terminate.iter().copied().filter(is_missing).collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(modified.refuse(&format!(
        "it contains one or more terminate instructions with an element instance that could not be found: {}",
        quoted(missing)
    )))
}

fn check_variable_scopes(_: &Execution<'_>, modified: &Modified, instructions: &Instructions) -> Result<(), Rejection> {
    let process = &modified.process;
    let scopes = instructions.activate.iter().flat_map(|instruction| {
        let scopes = instruction.variable_instructions.iter().map(|variables| &*variables.element_id);
        scopes.filter(|id| !id.is_empty()).map(move |id| (instruction, id))
    });
    let unknown: BTreeSet<&str> =
        scopes.clone().map(|(_, id)| id).filter(|id| target::find(process, id).is_none()).collect();
    if !unknown.is_empty() {
        return Err(modified.refuse(&format!(
            "it contains one or more variable instructions with a scope element id that could not be found: {}",
            quoted(unknown)
        )));
    }
    for (instruction, id) in scopes {
        let target = modified.target(instruction)?;
        let enclosing = scopes_of(process, target);
        if *id != *instruction.element_id && !enclosing.iter().any(|scope| *process.element(*scope).id == *id) {
            return Err(modified.refuse(&format!(
                "it contains one or more variable instructions with a scope element that doesn't belong to the activating \
                 element's flow scope: '{id}' is not around '{}'. Set these variables before or after the modification.",
                instruction.element_id
            )));
        }
    }
    Ok(())
}

fn check_ancestors(
    execution: &Execution<'_>,
    modified: &Modified,
    instructions: &Instructions,
) -> Result<(), Rejection> {
    let chosen = || instructions.activate.iter().filter(|instruction| instruction.ancestor_scope_key.is_some());
    let instance_of = |key: Key| execution.state.element_instance(key);
    let keys = || chosen().map(|instruction| instruction.ancestor_scope_key);
    let is_inactive = |key: &Key| instance_of(*key).is_none_or(|instance| instance.lifecycle != Lifecycle::Activated);
    let inactive: BTreeSet<Key> = keys().filter(is_inactive).collect();
    if !inactive.is_empty() {
        return Err(modified.refuse(&format!(
            "it contains one or more activate instructions with an ancestor scope key that does not exist, or is not in an \
             active state: {}",
            quoted(inactive)
        )));
    }
    let is_foreign =
        |key: &Key| instance_of(*key).is_some_and(|instance| instance.value.process_instance_key != modified.key);
    let foreign: BTreeSet<Key> = keys().filter(is_foreign).collect();
    if !foreign.is_empty() {
        return Err(modified.refuse(&format!(
            "it contains one or more activate instructions with an ancestor scope key that does not belong to the modified \
             process instance: {}",
            quoted(foreign)
        )));
    }
    let mut wrong = String::new();
    for instruction in chosen() {
        let Some(instance) = instance_of(instruction.ancestor_scope_key) else { continue };
        let element = element_of(modified, &instance.value.element_id, instance.value.bpmn_element_type);
        if !scopes_of(&modified.process, modified.target(instruction)?).contains(&element) {
            wrong += &format!(
                "\n- instance '{}' of element '{}' is not an ancestor of element '{}'",
                instruction.ancestor_scope_key, instance.value.element_id, instruction.element_id
            );
        }
    }
    if wrong.is_empty() {
        return Ok(());
    }
    Err(modified.refuse(&format!(
        "it contains one or more activate instructions with an ancestor scope key that is not an ancestor of the element to \
         activate:{wrong}"
    )))
}

fn element_of(modified: &Modified, id: &str, element_type: BpmnElementType) -> ElementIndex {
    modified.process.find(id, element_type).unwrap_or(PROCESS)
}

/// What begins must not end together with an enclosing scope.
fn check_scopes_stay(
    execution: &Execution<'_>,
    modified: &Modified,
    instructions: &Instructions,
) -> Result<(), Rejection> {
    let mut ending = BTreeMap::new();
    for key in &instructions.terminate {
        if let Some(instance) = execution.state.element_instance(*key) {
            let element = element_of(modified, &instance.value.element_id, instance.value.bpmn_element_type);
            ending.entry(element).or_insert(*key);
        }
    }
    let ended: BTreeSet<Key> = instructions.terminate.iter().copied().collect();
    let enclosing = |key: &Key| execution.state.element_instance(*key).map(|instance| instance.value.flow_scope_key);
    let mut conflicts = Vec::new();
    for instruction in &instructions.activate {
        let conflict = if instruction.ancestor_scope_key.is_some() {
            std::iter::successors(Some(instruction.ancestor_scope_key), enclosing).find(|key| ended.contains(key))
        } else {
            let scopes = scopes_of(&modified.process, modified.target(instruction)?);
            scopes.iter().find_map(|scope| ending.get(scope).copied())
        };
        if let Some(key) = conflict {
            conflicts.push(format!(
                "element '{}' requires flow scope instance '{key}' which is being terminated",
                instruction.element_id
            ));
        }
    }
    if conflicts.is_empty() {
        return Ok(());
    }
    Err(modified.refuse(&format!(
        "it contains one or more activate instructions for elements whose required flow scope instance is also being \
         terminated: {}. Provide a valid ancestor scope key for the activation, or do not terminate the flow scope.",
        conflicts.join(", ")
    )))
}
