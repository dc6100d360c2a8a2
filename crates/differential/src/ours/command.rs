//! Requests as the commands that the gateway makes of them.

use std::sync::Arc;

use gateway_interface::*;
use protocol::*;

use super::refusal;
use crate::driver::{Refusal, Request};

/// A command and where it goes.
pub(super) struct Target {
    /// The partition; none for the next in turn.
    pub(super) partition: Option<PartitionId>,
    pub(super) command: Command,
}

/// The command of a request; refusals need no partition.
pub(super) fn build(request: Request, partition_count: u16) -> Result<Target, Refusal> {
    let by_key = |key: i64, payload: Payload| by_key(key, payload, partition_count);
    match request {
        Request::Deploy(request) => Ok(deployment(request)),
        Request::Create(request) => Ok(creation(request, Vec::new(), ProcessInstanceCreationIntent::Create)),
        Request::CreateWithResult(request) => {
            let intent = ProcessInstanceCreationIntent::CreateWithAwaitingResult;
            Ok(creation(request.request.unwrap_or_default(), request.fetch_variables, intent))
        }
        Request::Complete(request) => {
            let value = JobValue { variables: request.variables.into(), ..JobValue::default() };
            by_key(request.job_key, job(JobIntent::Complete, value))
        }
        Request::Fail(request) => by_key(request.job_key, failure(request)),
        Request::Throw(request) => by_key(request.job_key, error(request)),
        Request::UpdateRetries(request) => {
            let value = JobValue { retries: request.retries, ..JobValue::default() };
            by_key(request.job_key, job(JobIntent::UpdateRetries, value))
        }
        Request::UpdateTimeout(request) => {
            let value = JobValue { timeout: request.timeout, ..JobValue::default() };
            by_key(request.job_key, job(JobIntent::UpdateTimeout, value))
        }
        Request::Publish(request) => Ok(message(request, partition_count)),
        Request::SetVariables(request) => by_key(request.element_instance_key, variable_document(&request)),
        Request::Resolve(request) => {
            let value = IncidentValue { tenant_id: DEFAULT_TENANT.into(), ..IncidentValue::default() };
            by_key(request.incident_key, Payload::Incident(IncidentIntent::Resolve, Box::new(value)))
        }
        Request::Cancel(request) => {
            let value = ProcessInstanceValue {
                process_instance_key: Key::from_raw(request.process_instance_key),
                tenant_id: DEFAULT_TENANT.into(),
                ..ProcessInstanceValue::default()
            };
            let payload = Payload::ProcessInstance(ProcessInstanceIntent::Cancel, Arc::new(value));
            by_key(request.process_instance_key, payload)
        }
        Request::Modify(request) => by_key(request.process_instance_key, modification(request)),
        Request::Migrate(request) => by_key(request.process_instance_key, migration(request)),
        Request::Delete(request) => {
            let value = ResourceDeletionValue {
                resource_key: Key::from_raw(request.resource_key),
                tenant_id: DEFAULT_TENANT.into(),
            };
            let payload = Payload::ResourceDeletion(ResourceDeletionIntent::Delete, Box::new(value));
            Ok(Target { partition: Some(PartitionId::DEPLOYMENT), command: Command::new(Key::NONE, payload) })
        }
        Request::Evaluate(request) => {
            let value = DecisionEvaluationValue {
                decision_id: request.decision_id.into(),
                decision_key: Key::from_raw(request.decision_key),
                variables: request.variables.into(),
                tenant_id: DEFAULT_TENANT.into(),
                ..DecisionEvaluationValue::default()
            };
            let payload = Payload::DecisionEvaluation(DecisionEvaluationIntent::Evaluate, Box::new(value));
            Ok(Target { partition: None, command: Command::new(Key::NONE, payload) })
        }
        Request::Broadcast(_) | Request::Activate(_) => {
            let mut refusal = refusal(RejectionType::InvalidArgument, "the engine has no such command");
            refusal.code = tonic::Code::Unimplemented;
            Err(refusal)
        }
    }
}

fn failure(request: FailJobRequest) -> Payload {
    let value = JobValue {
        variables: request.variables.into(),
        retries: request.retries,
        retry_backoff: request.retry_back_off,
        error_message: request.error_message.into(),
        ..JobValue::default()
    };
    job(JobIntent::Fail, value)
}

fn error(request: ThrowErrorRequest) -> Payload {
    let value = JobValue {
        variables: request.variables.into(),
        error_code: request.error_code.into(),
        error_message: request.error_message.into(),
        ..JobValue::default()
    };
    job(JobIntent::ThrowError, value)
}

fn job(intent: JobIntent, value: JobValue) -> Payload {
    Payload::Job(intent, Arc::new(value))
}

fn by_key(key: i64, payload: Payload, partition_count: u16) -> Result<Target, Refusal> {
    let key = Key::from_raw(key);
    match key.partition().filter(|partition| partition.0 <= partition_count) {
        Some(partition) => Ok(Target { partition: Some(partition), command: Command::new(key, payload) }),
        None => Err(refusal(RejectionType::NotFound, "no partition has made this key")),
    }
}

fn deployment(request: DeployResourceRequest) -> Target {
    let resources = request.resources.into_iter().map(|resource| DeploymentResource {
        resource_name: resource.name.into(),
        resource: Arc::from(&resource.content[..]),
    });
    let value = DeploymentValue {
        resources: resources.collect(),
        tenant_id: DEFAULT_TENANT.into(),
        ..DeploymentValue::default()
    };
    let payload = Payload::Deployment(DeploymentIntent::Create, Box::new(value));
    Target { partition: Some(PartitionId::DEPLOYMENT), command: Command::new(Key::NONE, payload) }
}

fn creation(
    request: CreateProcessInstanceRequest,
    fetch_variables: Vec<String>,
    intent: ProcessInstanceCreationIntent,
) -> Target {
    use process_instance_creation_runtime_instruction::Instruction;
    let texts = |strings: Vec<String>| strings.into_iter().map(Text::from).collect();
    let runtime_instructions = request.runtime_instructions.into_iter().filter_map(|instruction| {
        let Instruction::Terminate(terminate) = instruction.instruction?;
        Some(RuntimeInstruction {
            instruction_type: RuntimeInstructionType::TerminateProcessInstance,
            after_element_id: terminate.after_element_id.into(),
        })
    });
    let value = ProcessInstanceCreationValue {
        bpmn_process_id: request.bpmn_process_id.into(),
        version: request.version,
        process_definition_key: Key::from_raw(request.process_definition_key),
        variables: request.variables.into(),
        fetch_variables: texts(fetch_variables),
        start_instructions: request.start_instructions.into_iter().map(|start| start.element_id.into()).collect(),
        runtime_instructions: runtime_instructions.collect(),
        tenant_id: DEFAULT_TENANT.into(),
        ..ProcessInstanceCreationValue::default()
    };
    let payload = Payload::ProcessInstanceCreation(intent, Box::new(value));
    Target { partition: None, command: Command::new(Key::NONE, payload) }
}

fn message(request: PublishMessageRequest, partition_count: u16) -> Target {
    let value = MessageValue {
        tenant_id: DEFAULT_TENANT.into(),
        variables: request.variables.into(),
        name: request.name.into(),
        correlation_key: request.correlation_key.into(),
        message_id: request.message_id.into(),
        time_to_live: request.time_to_live,
        ..MessageValue::default()
    };
    let partition = partition_for_correlation_key(&value.correlation_key, partition_count);
    let payload = Payload::Message(MessageIntent::Publish, Box::new(value));
    Target { partition: Some(partition), command: Command::new(Key::NONE, payload) }
}

fn variable_document(request: &SetVariablesRequest) -> Payload {
    let update_semantics = match request.local {
        true => VariableDocumentUpdateSemantics::Local,
        false => VariableDocumentUpdateSemantics::Propagate,
    };
    let value = VariableDocumentValue {
        scope_key: Key::from_raw(request.element_instance_key),
        update_semantics,
        variables: request.variables.as_str().into(),
        tenant_id: DEFAULT_TENANT.into(),
    };
    Payload::VariableDocument(VariableDocumentIntent::Update, Box::new(value))
}

fn modification(request: ModifyProcessInstanceRequest) -> Payload {
    let activate = request.activate_instructions.into_iter().map(|instruction| ModificationActivateInstruction {
        element_id: instruction.element_id.into(),
        ancestor_scope_key: Key::from_raw(instruction.ancestor_element_instance_key),
        variable_instructions: instruction
            .variable_instructions
            .into_iter()
            .map(|variables| ModificationVariableInstruction {
                variables: variables.variables.into(),
                element_id: variables.scope_id.into(),
            })
            .collect(),
    });
    let terminate = request.terminate_instructions.into_iter().map(|instruction| ModificationTerminateInstruction {
        element_instance_key: Key::from_raw(instruction.element_instance_key),
        element_id: instruction.element_id.into(),
    });
    let value = ProcessInstanceModificationValue {
        process_instance_key: Key::from_raw(request.process_instance_key),
        activate_instructions: activate.collect(),
        terminate_instructions: terminate.collect(),
        tenant_id: DEFAULT_TENANT.into(),
        ..ProcessInstanceModificationValue::default()
    };
    Payload::ProcessInstanceModification(ProcessInstanceModificationIntent::Modify, Box::new(value))
}

fn migration(request: MigrateProcessInstanceRequest) -> Payload {
    let plan = request.migration_plan.unwrap_or_default();
    let mapping = plan.mapping_instructions.into_iter().map(|instruction| MigrationMappingInstruction {
        source_element_id: instruction.source_element_id.into(),
        target_element_id: instruction.target_element_id.into(),
    });
    let value = ProcessInstanceMigrationValue {
        process_instance_key: Key::from_raw(request.process_instance_key),
        target_process_definition_key: Key::from_raw(plan.target_process_definition_key),
        mapping_instructions: mapping.collect(),
        tenant_id: DEFAULT_TENANT.into(),
    };
    Payload::ProcessInstanceMigration(ProcessInstanceMigrationIntent::Migrate, Box::new(value))
}
