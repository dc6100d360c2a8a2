//! Creating process instances.

use std::time::Duration;

use gateway_interface::*;
use protocol::{
    Command, Key, Payload, ProcessInstanceCreationIntent, ProcessInstanceCreationValue, Rejection, RuntimeInstruction,
    RuntimeInstructionType, Text,
};
use tonic::{Code, Status};

use super::Pending;
use crate::rpc::Rpc;
use crate::service::Service;
use crate::status::{invalid_argument, rejected, status};
use crate::validation::{tags, tenant, texts, variables};

impl Service {
    pub(crate) fn create(&self, request: CreateProcessInstanceRequest) -> Result<Pending, Status> {
        const RPC: Rpc = Rpc::CreateProcessInstance;
        let operation_reference = request.operation_reference;
        let value = creation(RPC, request, Vec::new())?;
        let payload = Payload::ProcessInstanceCreation(ProcessInstanceCreationIntent::Create, Box::new(value));
        let command = Command { operation_reference, ..Command::new(Key::NONE, payload) };
        Ok(self.execute(RPC, self.client.next_partition(), command, self.request_timeout))
    }

    pub(crate) fn create_with_result(
        &self,
        request: CreateProcessInstanceWithResultRequest,
    ) -> Result<Pending, Status> {
        const RPC: Rpc = Rpc::CreateProcessInstanceWithResult;
        let Some(creation_request) = request.request else {
            return Err(invalid_argument(
                "Expected the field 'request' to say which process instance to create, but it is missing.",
            ));
        };
        let limit = match u64::try_from(request.request_timeout) {
            Ok(milliseconds @ 1..) => Duration::from_millis(milliseconds),
            _ => self.request_timeout,
        };
        let operation_reference = creation_request.operation_reference;
        let value = creation(RPC, creation_request, texts(request.fetch_variables))?;
        let intent = ProcessInstanceCreationIntent::CreateWithAwaitingResult;
        let payload = Payload::ProcessInstanceCreation(intent, Box::new(value));
        let command = Command { operation_reference, ..Command::new(Key::NONE, payload) };
        Ok(self.execute(RPC, self.client.next_partition(), command, limit))
    }
}

/// The command that creates an instance, checked as far as that needs no state.
fn creation(
    rpc: Rpc,
    request: CreateProcessInstanceRequest,
    fetch_variables: Vec<Text>,
) -> Result<ProcessInstanceCreationValue, Status> {
    if request.bpmn_process_id.is_empty() && request.process_definition_key <= 0 {
        return Err(rejected(
            ProcessInstanceCreationIntent::Create.name(),
            &Rejection::invalid_argument(
                "Expected either a bpmn process id or a process definition key, but none given",
            ),
        ));
    }
    if request.business_id.is_some_and(|id| !id.is_empty()) {
        let message = format!("{} with business ids is not supported by this version of Osmia yet.", rpc.name());
        return Err(status(Code::Unimplemented, message));
    }
    Ok(ProcessInstanceCreationValue {
        tenant_id: tenant(rpc.name(), &request.tenant_id)?,
        variables: variables(request.variables)?,
        tags: tags(request.tags)?,
        bpmn_process_id: request.bpmn_process_id.into(),
        version: request.version,
        process_definition_key: Key::from_raw(request.process_definition_key),
        fetch_variables,
        start_instructions: request.start_instructions.into_iter().map(|start| start.element_id.into()).collect(),
        runtime_instructions: request
            .runtime_instructions
            .into_iter()
            .map(runtime_instruction)
            .collect::<Result<_, _>>()?,
        ..ProcessInstanceCreationValue::default()
    })
}

fn runtime_instruction(instruction: ProcessInstanceCreationRuntimeInstruction) -> Result<RuntimeInstruction, Status> {
    use process_instance_creation_runtime_instruction::Instruction;
    let Some(Instruction::Terminate(terminate)) = instruction.instruction else {
        return Err(invalid_argument(
            "Expected every runtime instruction to say what is to happen, but one is empty. This version knows 'terminate'.",
        ));
    };
    Ok(RuntimeInstruction {
        instruction_type: RuntimeInstructionType::TerminateProcessInstance,
        after_element_id: terminate.after_element_id.into(),
    })
}
