//! The procedures about messages, running instances as a whole, and deployed resources.

use gateway_interface::*;
use protocol::{
    Command, DecisionEvaluationIntent, DecisionEvaluationValue, Key, MessageIntent, MessageValue,
    MigrationMappingInstruction, ModificationActivateInstruction, ModificationMoveInstruction,
    ModificationTerminateInstruction, ModificationVariableInstruction, PartitionId, Payload,
    ProcessInstanceMigrationIntent, ProcessInstanceMigrationValue, ProcessInstanceModificationIntent,
    ProcessInstanceModificationValue, ResourceDeletionIntent, ResourceDeletionValue, partition_for_correlation_key,
};
use tonic::{Code, Status};

use crate::commands::Pending;
use crate::rpc::Rpc;
use crate::service::Service;
use crate::status::{invalid_argument, status};
use crate::validation::{Target, tenant, variables};

use modify_process_instance_request as modify;

impl Service {
    /// A message without a name, or with a time to live below zero, is taken as Zeebe takes it: nothing waits for the
    /// one, and the other is not kept.
    pub(crate) fn publish(&self, request: PublishMessageRequest) -> Result<Pending, Status> {
        let value = MessageValue {
            tenant_id: tenant(Rpc::PublishMessage.name(), &request.tenant_id)?,
            variables: variables(request.variables)?,
            name: request.name.into(),
            correlation_key: request.correlation_key.into(),
            message_id: request.message_id.into(),
            time_to_live: request.time_to_live,
            ..MessageValue::default()
        };
        let partition = partition_for_correlation_key(&value.correlation_key, self.client.partition_count());
        let command = Command::new(Key::NONE, Payload::Message(MessageIntent::Publish, Box::new(value)));
        Ok(self.execute(Rpc::PublishMessage, partition, command, self.request_timeout))
    }

    /// Every partition has all decisions, so they take turns.
    pub(crate) fn evaluate(&self, request: EvaluateDecisionRequest) -> Result<Pending, Status> {
        let value = DecisionEvaluationValue {
            tenant_id: tenant(Rpc::EvaluateDecision.name(), &request.tenant_id)?,
            variables: variables(request.variables)?,
            decision_id: request.decision_id.into(),
            decision_key: Key::from_raw(request.decision_key),
            ..DecisionEvaluationValue::default()
        };
        let payload = Payload::DecisionEvaluation(DecisionEvaluationIntent::Evaluate, Box::new(value));
        let command = Command::new(Key::NONE, payload);
        Ok(self.execute(Rpc::EvaluateDecision, self.client.next_partition(), command, self.request_timeout))
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
            wish: "modify process instance",
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
            wish: "migrate process instance",
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

    /// Resources are deleted where they were deployed, whatever partition their key names.
    pub(crate) fn delete(&self, request: DeleteResourceRequest) -> Result<Pending, Status> {
        if request.delete_history == Some(true) {
            return Err(status(
                Code::Unimplemented,
                "DeleteResource with deleteHistory is not supported by this version of Osmia yet: it keeps no history of finished instances. Delete the resource without it.",
            ));
        }
        let value = ResourceDeletionValue {
            resource_key: Key::from_raw(request.resource_key),
            tenant_id: protocol::DEFAULT_TENANT.into(),
        };
        let payload = Payload::ResourceDeletion(ResourceDeletionIntent::Delete, Box::new(value));
        let command = Command { operation_reference: request.operation_reference, ..Command::new(Key::NONE, payload) };
        Ok(self.execute(Rpc::DeleteResource, PartitionId::DEPLOYMENT, command, self.request_timeout))
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
