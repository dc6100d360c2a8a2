//! Cancelling, modifying and migrating process instances.

use std::sync::Arc;

use gateway_interface::*;
use protocol::{
    Key, MigrationMappingInstruction, ModificationActivateInstruction, ModificationMoveInstruction,
    ModificationTerminateInstruction, ModificationVariableInstruction, Payload, ProcessInstanceIntent,
    ProcessInstanceMigrationIntent, ProcessInstanceMigrationValue, ProcessInstanceModificationIntent,
    ProcessInstanceModificationValue, ProcessInstanceValue,
};
use tonic::Status;

use super::Pending;
use crate::rpc::Rpc;
use crate::service::Service;
use crate::status::invalid_argument;
use crate::validation::{Target, variables};

use modify_process_instance_request as modify;

impl Service {
    pub(crate) fn cancel(&self, request: CancelProcessInstanceRequest) -> Result<Pending, Status> {
        let target = Target {
            intent: ProcessInstanceIntent::Cancel.name(),
            action: "cancel a process instance",
            kind: "process",
        };
        let payload = |key| {
            let value = ProcessInstanceValue {
                process_instance_key: key,
                tenant_id: protocol::DEFAULT_TENANT.into(),
                ..ProcessInstanceValue::default()
            };
            Payload::ProcessInstance(ProcessInstanceIntent::Cancel, Arc::new(value))
        };
        let reference = request.operation_reference;
        self.execute_by_key(Rpc::CancelProcessInstance, target, request.process_instance_key, reference, payload)
    }

    pub(crate) fn modify(&self, request: ModifyProcessInstanceRequest) -> Result<Pending, Status> {
        let activate = request.activate_instructions.into_iter().map(activate_instruction);
        let moves = request.move_instructions.into_iter().map(move_instruction);
        let terminate =
            request.terminate_instructions.into_iter().map(|instruction| ModificationTerminateInstruction {
                element_instance_key: Key::from_raw(instruction.element_instance_key),
                element_id: instruction.element_id.into(),
            });
        let value = ProcessInstanceModificationValue {
            activate_instructions: activate.collect::<Result<_, _>>()?,
            terminate_instructions: terminate.collect(),
            move_instructions: moves.collect::<Result<_, _>>()?,
            tenant_id: protocol::DEFAULT_TENANT.into(),
            ..ProcessInstanceModificationValue::default()
        };
        let target = Target {
            intent: ProcessInstanceModificationIntent::Modify.name(),
            action: "modify process instance",
            kind: "process instance",
        };
        let payload = |process_instance_key| {
            let value = ProcessInstanceModificationValue { process_instance_key, ..value };
            Payload::ProcessInstanceModification(ProcessInstanceModificationIntent::Modify, Box::new(value))
        };
        let (key, reference) = (request.process_instance_key, request.operation_reference);
        self.execute_by_key(Rpc::ModifyProcessInstance, target, key, reference, payload)
    }

    pub(crate) fn migrate(&self, request: MigrateProcessInstanceRequest) -> Result<Pending, Status> {
        let Some(plan) = request.migration_plan else {
            return Err(invalid_argument(
                "Expected the field 'migrationPlan' to say which process definition to migrate to, but it is missing.",
            ));
        };
        let mapping = plan.mapping_instructions.into_iter().map(|instruction| MigrationMappingInstruction {
            source_element_id: instruction.source_element_id.into(),
            target_element_id: instruction.target_element_id.into(),
        });
        let target = Target {
            intent: ProcessInstanceMigrationIntent::Migrate.name(),
            action: "migrate process instance",
            kind: "process instance",
        };
        let payload = |process_instance_key| {
            let value = ProcessInstanceMigrationValue {
                process_instance_key,
                target_process_definition_key: Key::from_raw(plan.target_process_definition_key),
                mapping_instructions: mapping.collect(),
                tenant_id: protocol::DEFAULT_TENANT.into(),
            };
            Payload::ProcessInstanceMigration(ProcessInstanceMigrationIntent::Migrate, Box::new(value))
        };
        let (key, reference) = (request.process_instance_key, request.operation_reference);
        self.execute_by_key(Rpc::MigrateProcessInstance, target, key, reference, payload)
    }
}

fn activate_instruction(instruction: modify::ActivateInstruction) -> Result<ModificationActivateInstruction, Status> {
    Ok(ModificationActivateInstruction {
        element_id: instruction.element_id.into(),
        ancestor_scope_key: Key::from_raw(instruction.ancestor_element_instance_key),
        variable_instructions: variable_instructions(instruction.variable_instructions)?,
    })
}

fn move_instruction(instruction: modify::MoveInstruction) -> Result<ModificationMoveInstruction, Status> {
    Ok(ModificationMoveInstruction {
        source_element_id: instruction.source_element_id.into(),
        source_element_instance_key: Key::from_raw(instruction.source_element_instance_key),
        target_element_id: instruction.target_element_id.into(),
        variable_instructions: variable_instructions(instruction.variable_instructions)?,
        ancestor_scope_key: Key::from_raw(instruction.ancestor_element_instance_key),
        infer_ancestor_scope: instruction.infer_ancestor_scope_from_source_hierarchy,
        use_source_parent_as_ancestor: instruction.use_source_parent_key_as_ancestor_scope_key,
    })
}

fn variable_instructions(
    instructions: Vec<modify::VariableInstruction>,
) -> Result<Vec<ModificationVariableInstruction>, Status> {
    let instruction = |instruction: modify::VariableInstruction| {
        let variables = variables(instruction.variables)?;
        Ok(ModificationVariableInstruction { variables, element_id: instruction.scope_id.into() })
    };
    instructions.into_iter().map(instruction).collect()
}
