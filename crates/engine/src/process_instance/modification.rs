//! PROCESS_INSTANCE_MODIFICATION MODIFY: elements of a running instance are started and ended as asked, all of them or
//! none.

mod check;
mod instructions;

use std::collections::BTreeSet;
use std::sync::Arc;

use bpmn::model::{ElementIndex, ExecutableProcess};
use protocol::{
    BpmnElementType, Key, ModificationActivateInstruction, ModificationTerminateInstruction, Payload,
    ProcessInstanceModificationIntent, ProcessInstanceModificationValue, ProcessInstanceValue, Rejection,
};

use self::instructions::Instructions;
use crate::element::{ActivateInstruction, Activations, ScopeVariables, Terminations};
use crate::execution::token::Token;
use crate::execution::{Execution, Outcome};
use crate::state::Lifecycle;
use crate::variable::document;

/// The instance that is modified.
pub(super) struct Modified {
    pub key: Key,
    pub value: Arc<ProcessInstanceValue>,
    pub process: Arc<ExecutableProcess>,
}

impl Modified {
    fn find(execution: &Execution<'_>, key: Key) -> Outcome<Modified> {
        let token = Token::find(execution, key)?;
        let Some(token) = token.filter(|token| token.value().bpmn_element_type == BpmnElementType::Process) else {
            return Err(Rejection::not_found(format!(
                "Expected to modify process instance but no process instance found with key '{key}'"
            ))
            .into());
        };
        execution.check_not_banned(key)?;
        if token.instance.lifecycle != Lifecycle::Activated {
            let why = match token.instance.lifecycle {
                Lifecycle::Activating => "has not begun",
                _ => "is about to end",
            };
            return Err(Rejection::invalid_state(format!(
                "Expected to modify process instance with key '{key}', but it is in state '{}' and {why}",
                token.instance.lifecycle.name()
            ))
            .into());
        }
        Ok(Modified { key, value: token.instance.value.clone(), process: token.process })
    }

    /// How refusals begin.
    pub fn expected(&self) -> String {
        format!("Expected to modify instance of process '{}' but", self.process.id)
    }

    pub fn refuse(&self, reason: &str) -> Rejection {
        Rejection::invalid_argument(format!("{} {reason}", self.expected()))
    }

    /// The element that an activate instruction names.
    pub fn target(&self, instruction: &ModificationActivateInstruction) -> Result<ElementIndex, Rejection> {
        self.process.element_by_id.get(&*instruction.element_id).copied().ok_or_else(|| {
            self.refuse(&format!(
                "it contains one or more activate instructions with an element that could not be found: '{}'",
                instruction.element_id
            ))
        })
    }
}

pub(crate) fn modify(execution: &mut Execution<'_>, value: &ProcessInstanceModificationValue) -> Outcome {
    let modified = Modified::find(execution, value.process_instance_key)?;
    let instructions = instructions::resolve(execution, &modified, value)?;
    check::check(execution, &modified, &instructions)?;
    let mut activations = Activations::new(&modified.value, &modified.process);
    let scopes = begin_scopes(execution, &modified, &instructions, &mut activations)?;
    let terminations = terminate(execution, &modified, &instructions, scopes.clone())?;
    let done = ProcessInstanceModificationValue {
        process_instance_key: modified.key,
        terminate_instructions: instructions
            .terminate
            .iter()
            .map(|key| ModificationTerminateInstruction {
                element_instance_key: *key,
                ..ModificationTerminateInstruction::default()
            })
            .collect(),
        activate_instructions: instructions.activate,
        move_instructions: Vec::new(),
        tenant_id: modified.value.tenant_id.clone(),
        ancestor_scope_keys: scopes.into_iter().collect(),
        scopes_that_pass_on_tokens: activations.scopes_that_pass_on_tokens(execution),
    };
    let payload = Payload::ProcessInstanceModification(ProcessInstanceModificationIntent::Modified, Box::new(done));
    execution.emit(modified.key, payload.clone());
    execution.reply(modified.key, payload);
    activations.begin_targets(execution)?;
    terminations.finish(execution)
}

/// Returns the flow scopes of what begins.
fn begin_scopes(
    execution: &mut Execution<'_>,
    modified: &Modified,
    instructions: &Instructions,
    activations: &mut Activations<'_>,
) -> Outcome<BTreeSet<Key>> {
    let prefix = format!("{} it contains one or more activate instructions", modified.expected());
    let mut scopes = BTreeSet::new();
    for instruction in &instructions.activate {
        let mut variables = Vec::with_capacity(instruction.variable_instructions.len());
        for of_scope in &instruction.variable_instructions {
            let entries = document::split(&of_scope.variables, execution.limits.name_bytes_max)?;
            variables.push(ScopeVariables { element_id: of_scope.element_id.clone(), entries });
        }
        let instruction = ActivateInstruction {
            element: modified.target(instruction)?,
            ancestor: instruction.ancestor_scope_key,
            variables: &variables,
        };
        scopes.extend(activations.begin_scopes(execution, &instruction).map_err(|obstacle| obstacle.refuse(&prefix))?);
    }
    Ok(scopes)
}

fn terminate(
    execution: &mut Execution<'_>,
    modified: &Modified,
    instructions: &Instructions,
    kept: BTreeSet<Key>,
) -> Outcome<Terminations> {
    let elements_max = execution.limits.elements_per_operation_max;
    let left = elements_max.saturating_sub(instructions.activate.len());
    let mut terminations = Terminations::new(left, kept, instructions::too_many(modified, elements_max));
    for key in &instructions.terminate {
        // It already ended with another instruction.
        terminations.end(execution, *key, |called| {
            Rejection::invalid_argument(format!(
                "Expected to modify instance of process '{}' but the given instructions would terminate the instance. It \
                 was created by a call activity of the process instance with key '{}'. Modify that one instead.",
                called.process.id,
                called.value().parent_process_instance_key
            ))
        })?;
    }
    Ok(terminations)
}
