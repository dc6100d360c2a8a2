//! What the instructions of a modification mean: each move becomes an end and a beginning, each element id the element
//! instances that it has.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use protocol::{
    Key, ModificationActivateInstruction, ModificationMoveInstruction, ProcessInstanceModificationValue, Rejection,
};

use super::Modified;
use crate::element::scopes_of;
use crate::execution::Execution;

/// What begins and what ends, item by item and in order.
pub(super) struct Instructions {
    pub activate: Vec<ModificationActivateInstruction>,
    /// Element instances.
    pub terminate: Vec<Key>,
    /// Bytes of the variables that moves set.
    variable_bytes: usize,
}

pub(super) fn too_many(modified: &Modified, elements_max: usize) -> Rejection {
    Rejection::invalid_argument(format!(
        "Unable to modify process instance with key '{}', because it would begin and end more than {elements_max} element \
         instances, which exceeds the maximum batch size. Split the modification into several commands.",
        modified.key
    ))
}

pub(super) fn resolve(
    execution: &Execution<'_>,
    modified: &Modified,
    value: &ProcessInstanceModificationValue,
) -> Result<Instructions, Rejection> {
    check_terminations(modified, value)?;
    check_moves(modified, value)?;
    let activate = value.activate_instructions.clone();
    let mut instructions = Instructions { activate, terminate: Vec::new(), variable_bytes: 0 };
    for instruction in &value.move_instructions {
        if instruction.source_element_instance_key.is_some() {
            let source = find_source(execution, modified, instruction.source_element_instance_key)?;
            instructions.add_move(execution, modified, instruction, source);
        }
    }
    let by_key = value.terminate_instructions.iter().map(|instruction| instruction.element_instance_key);
    instructions.terminate.extend(by_key.filter(|key| key.is_some()));
    instructions.check(execution, modified)?;
    instructions.resolve_ids(execution, modified, value)?;
    Ok(instructions)
}

/// Element instances that are looked at for those of an element.
const LOOKED_AT_MAX: usize = 200_000;

/// About what an instruction about the variables of a scope takes besides its texts.
const INSTRUCTION_BYTES: usize = 100;

/// An element instance that is moved, and the scope that it is in.
#[derive(Clone, Copy)]
struct Source {
    key: Key,
    scope: Key,
}

impl Instructions {
    /// A move of an element brings its variables to each of the element's instances, so the instructions can be much more than
    /// the command.
    fn check(&self, execution: &Execution<'_>, modified: &Modified) -> Result<(), Rejection> {
        let elements_max = execution.limits.elements_per_operation_max;
        if self.activate.len() + self.terminate.len() > elements_max {
            return Err(too_many(modified, elements_max));
        }
        let bytes_max = execution.limits.mapping_bytes_max;
        if self.variable_bytes > bytes_max {
            return Err(modified.refuse(&format!(
                "it sets variables of more than {bytes_max} bytes together, because what moves an element does so for each of its \
                 instances. Set fewer variables, or set them in a scope around"
            )));
        }
        Ok(())
    }

    fn add_move(
        &mut self,
        execution: &Execution<'_>,
        modified: &Modified,
        instruction: &ModificationMoveInstruction,
        source: Source,
    ) {
        let variables = instruction.variable_instructions.iter();
        self.variable_bytes += variables.map(|of| of.variables.len() + INSTRUCTION_BYTES).sum::<usize>();
        self.activate.push(ModificationActivateInstruction {
            element_id: instruction.target_element_id.clone(),
            ancestor_scope_key: ancestor_of_target(execution, modified, instruction, source.scope),
            variable_instructions: instruction.variable_instructions.clone(),
        });
        self.terminate.push(source.key);
    }

    /// Looks for the element instances that are named by their element, outermost first; inside of what ends there is
    /// nothing to look for.
    fn resolve_ids(
        &mut self,
        execution: &Execution<'_>,
        modified: &Modified,
        value: &ProcessInstanceModificationValue,
    ) -> Result<(), Rejection> {
        let moves = value.move_instructions.iter().filter(|instruction| !instruction.source_element_id.is_empty());
        let moves: BTreeMap<&str, _> =
            moves.map(|instruction| (&*instruction.source_element_id, instruction)).collect();
        let ended = value.terminate_instructions.iter().map(|instruction| &*instruction.element_id);
        let ended: BTreeSet<&str> = ended.filter(|id| !id.is_empty()).collect();
        if moves.is_empty() && ended.is_empty() {
            return Ok(());
        }
        let named: BTreeSet<Key> = self.terminate.iter().copied().collect();
        let tables = &execution.state.tables;
        let mut open = VecDeque::from([modified.key]);
        let mut looked_at = 0;
        while let Some(scope) = open.pop_front() {
            for (_, child) in tables.children.prefix_keys(&scope.raw()) {
                looked_at += 1;
                if looked_at > LOOKED_AT_MAX {
                    return Err(modified.refuse(&format!(
                        "it names elements, and the instance has more than {LOOKED_AT_MAX} element instances to look at. Name the \
                         element instances by their keys"
                    )));
                }
                let Some(instance) = tables.element_instances.get(&child) else { continue };
                let key = Key::from_raw(child);
                let id = &*instance.value.element_id;
                if let Some(instruction) = moves.get(id) {
                    self.add_move(execution, modified, instruction, Source { key, scope });
                } else if ended.contains(id) {
                    self.terminate.push(key);
                } else if instance.children > 0 && !named.contains(&key) {
                    open.push_back(key);
                }
                self.check(execution, modified)?;
            }
        }
        Ok(())
    }
}

/// The flow scope in which the target of a move begins, or one that encloses it.
fn ancestor_of_target(
    execution: &Execution<'_>,
    modified: &Modified,
    instruction: &ModificationMoveInstruction,
    source_scope: Key,
) -> Key {
    if instruction.use_source_parent_as_ancestor {
        return source_scope;
    }
    if !instruction.infer_ancestor_scope {
        return instruction.ancestor_scope_key;
    }
    let process = &modified.process;
    // That the target is unknown is found later.
    let Some(target) = process.element_by_id.get(&*instruction.target_element_id) else { return Key::NONE };
    let scopes_of_target = scopes_of(process, *target);
    let element_of = |key: Key| {
        let instance = execution.state.element_instance(key)?;
        process.find(&instance.value.element_id, instance.value.bpmn_element_type)
    };
    if element_of(source_scope) == scopes_of_target.last().copied() {
        return source_scope;
    }
    if source_scope == modified.key {
        // Everything is inside of it: this says nothing about where the target begins.
        return Key::NONE;
    }
    let enclosing = |key: &Key| {
        let instance = execution.state.element_instance(*key)?;
        Some(instance.value.flow_scope_key).filter(|key| key.is_some())
    };
    let is_around_target = |key: &Key| element_of(*key).is_some_and(|element| scopes_of_target.contains(&element));
    std::iter::successors(Some(source_scope), enclosing).find(is_around_target).unwrap_or(Key::NONE)
}

fn find_source(execution: &Execution<'_>, modified: &Modified, key: Key) -> Result<Source, Rejection> {
    let not_found = |what: &str| {
        modified.refuse(&format!(
            "it contains one or more move instructions with a source element instance that {what}: '{key}'"
        ))
    };
    let Some(instance) = execution.state.element_instance(key) else {
        return Err(not_found("could not be found"));
    };
    if instance.value.process_instance_key != modified.key {
        return Err(not_found("does not belong to the modified process instance"));
    }
    Ok(Source { key, scope: instance.value.flow_scope_key })
}

fn check_terminations(modified: &Modified, value: &ProcessInstanceModificationValue) -> Result<(), Rejection> {
    let refuse = |names: &str, instruction: &protocol::ModificationTerminateInstruction| {
        Err(modified.refuse(&format!(
            "it contains one or more terminate instructions with {names}: '({}, {})'",
            instruction.element_instance_key, instruction.element_id
        )))
    };
    for instruction in &value.terminate_instructions {
        match (instruction.element_instance_key.is_some(), instruction.element_id.is_empty()) {
            (false, true) => return refuse("neither an element instance key nor element id", instruction),
            (true, false) => {
                return refuse(
                    "both element instance key and element id, but only one of them is allowed",
                    instruction,
                );
            }
            _ => {}
        }
    }
    Ok(())
}

fn check_moves(modified: &Modified, value: &ProcessInstanceModificationValue) -> Result<(), Rejection> {
    let mut ids = BTreeSet::new();
    for instruction in &value.move_instructions {
        let (key, id) = (instruction.source_element_instance_key, &instruction.source_element_id);
        let refuse = |reason: &str| {
            let source = if key.is_some() { key.to_string() } else { id.to_string() };
            let target = &instruction.target_element_id;
            Err(modified
                .refuse(&format!("it contains one or more move instructions with {reason}: '({source}, {target})'")))
        };
        if (key.is_none() && id.is_empty()) || instruction.target_element_id.is_empty() {
            return refuse("either or both the source or target element id missing");
        }
        if key.is_some() && !id.is_empty() {
            return refuse("both source element instance key and source element id, but only one of them is allowed");
        }
        let options = [
            instruction.ancestor_scope_key.is_some(),
            instruction.infer_ancestor_scope,
            instruction.use_source_parent_as_ancestor,
        ];
        if options.iter().filter(|is_set| **is_set).count() > 1 {
            return refuse(
                "multiple ancestor scope options set. Only one of these can be given: the key of the ancestor scope, to infer \
                 it from the hierarchy of the source, to use the parent of the source",
            );
        }
        if !id.is_empty() && !ids.insert(id.clone()) {
            return Err(modified
                .refuse(&format!("it contains multiple move instructions with identical source element ids: '{id}'")));
        }
    }
    Ok(())
}
