//! Messages of the interface as requests.

use std::sync::Arc;
use std::time::Duration;

use broker::StreamSpecification;
use gateway_interface::*;
use protocol::{
    DeploymentResource, Key, MigrationMappingInstruction, ModificationActivateInstruction, ModificationMoveInstruction,
    ModificationTerminateInstruction, ModificationVariableInstruction, RuntimeInstruction, RuntimeInstructionType,
    Text,
};

use crate::activation::{ActivationRequest, WantedJobs};
use crate::outcome::Failure;
use crate::request::conditional::EvaluateConditional;
use crate::request::creation::{CreateProcessInstance, CreateProcessInstanceWithResult};
use crate::request::decision::EvaluateDecision;
use crate::request::incident::ResolveIncident;
use crate::request::job::{
    AD_HOC_SUB_PROCESS, ChosenElements, CompleteJob, FailJob, ThrowError, USER_TASK, UpdateJobRetries,
    UpdateJobTimeout, WorkResult,
};
use crate::request::message::PublishMessage;
use crate::request::process_instance::{CancelProcessInstance, MigrateProcessInstance, ModifyProcessInstance};
use crate::request::resource::{DeleteResource, DeployResources};
use crate::request::signal::BroadcastSignal;
use crate::request::task_result::{Corrections, TaskResult};
use crate::request::variable::SetVariables;
use crate::tenants::tenants;
use crate::validation::{Variables, excerpt, job_request, texts};

use modify_process_instance_request as modify;

type Read<T> = Result<T, Failure>;

pub(super) fn activation(message: ActivateJobsRequest, long_polling_timeout: Duration) -> Read<ActivationRequest> {
    let wanted = WantedJobs {
        job_type: message.r#type,
        worker: message.worker,
        timeout: message.timeout,
        jobs_max: message.max_jobs_to_activate,
        fetch_variables: message.fetch_variable,
        tenant_ids: message.tenant_ids,
        request_timeout: message.request_timeout,
    };
    wanted.check(long_polling_timeout)
}

pub(super) fn job_stream(message: StreamActivatedJobsRequest) -> Read<StreamSpecification> {
    const ACTION: &str = "stream activated jobs";
    job_request(ACTION, &message.r#type, message.timeout, &message.worker, &message.fetch_variable)?;
    Ok(StreamSpecification {
        tenant_ids: tenants(&message.tenant_ids)?,
        job_type: message.r#type.into(),
        worker: message.worker.into(),
        timeout: message.timeout,
        fetch_variables: texts(message.fetch_variable),
    })
}

pub(super) fn complete_job(message: CompleteJobRequest) -> Read<CompleteJob> {
    Ok(CompleteJob {
        job_key: message.job_key,
        variables: Variables::Text(message.variables),
        result: message.result.map(job_result).transpose()?,
    })
}

fn job_result(result: JobResult) -> Read<WorkResult> {
    match result.r#type.as_deref().unwrap_or(USER_TASK) {
        USER_TASK => Ok(WorkResult::UserTask(TaskResult {
            denied: result.denied.unwrap_or_default(),
            denied_reason: result.denied_reason.unwrap_or_default().into(),
            corrections: corrections(result.corrections.unwrap_or_default()),
        })),
        AD_HOC_SUB_PROCESS => Ok(WorkResult::AdHocSubProcess(ChosenElements {
            activate: result
                .activate_elements
                .into_iter()
                .map(|element| (element.element_id.into(), Variables::Text(element.variables)))
                .collect(),
            is_completion_condition_fulfilled: result.is_completion_condition_fulfilled.unwrap_or_default(),
            is_cancel_remaining_instances: result.is_cancel_remaining_instances.unwrap_or_default(),
        })),
        other => Err(Failure::InvalidArgument(format!(
            "Expected the type of the job result to be one of [{USER_TASK}, {AD_HOC_SUB_PROCESS}], but it is '{}'",
            excerpt(other)
        ))),
    }
}

fn corrections(corrections: JobResultCorrections) -> Corrections {
    Corrections {
        assignee: corrections.assignee.map(Text::from),
        due_date: corrections.due_date.map(Text::from),
        follow_up_date: corrections.follow_up_date.map(Text::from),
        candidate_users: corrections.candidate_users.map(|list| texts(list.values)),
        candidate_groups: corrections.candidate_groups.map(|list| texts(list.values)),
        priority: corrections.priority,
    }
}

pub(super) fn fail_job(message: FailJobRequest) -> Read<FailJob> {
    Ok(FailJob {
        job_key: message.job_key,
        retries: message.retries,
        retry_back_off: message.retry_back_off,
        error_message: message.error_message.into(),
        variables: Variables::Text(message.variables),
    })
}

pub(super) fn throw_error(message: ThrowErrorRequest) -> Read<ThrowError> {
    Ok(ThrowError {
        job_key: message.job_key,
        error_code: message.error_code.into(),
        error_message: message.error_message.into(),
        variables: Variables::Text(message.variables),
    })
}

pub(super) fn update_job_retries(message: UpdateJobRetriesRequest) -> Read<UpdateJobRetries> {
    let UpdateJobRetriesRequest { job_key, retries, operation_reference } = message;
    Ok(UpdateJobRetries { job_key, retries, operation_reference })
}

pub(super) fn update_job_timeout(message: UpdateJobTimeoutRequest) -> Read<UpdateJobTimeout> {
    let UpdateJobTimeoutRequest { job_key, timeout, operation_reference } = message;
    Ok(UpdateJobTimeout { job_key, timeout, operation_reference })
}

pub(super) fn create_process_instance(message: CreateProcessInstanceRequest) -> Read<CreateProcessInstance> {
    let runtime_instructions = message.runtime_instructions.into_iter().map(runtime_instruction);
    Ok(CreateProcessInstance {
        bpmn_process_id: message.bpmn_process_id.into(),
        version: message.version,
        process_definition_key: message.process_definition_key,
        variables: Variables::Text(message.variables),
        tenant_id: message.tenant_id,
        start_instructions: message.start_instructions.into_iter().map(|start| start.element_id.into()).collect(),
        runtime_instructions: runtime_instructions.collect::<Read<_>>()?,
        tags: texts(message.tags),
        business_id: message.business_id.unwrap_or_default().into(),
        operation_reference: message.operation_reference,
    })
}

fn runtime_instruction(instruction: ProcessInstanceCreationRuntimeInstruction) -> Read<RuntimeInstruction> {
    use process_instance_creation_runtime_instruction::Instruction;
    let Some(Instruction::Terminate(terminate)) = instruction.instruction else {
        return Err(Failure::InvalidArgument(
            "Expected every runtime instruction to say what is to happen, but one is empty. This version knows 'terminate'."
                .to_owned(),
        ));
    };
    Ok(RuntimeInstruction {
        instruction_type: RuntimeInstructionType::TerminateProcessInstance,
        after_element_id: terminate.after_element_id.into(),
    })
}

pub(super) fn create_process_instance_with_result(
    message: CreateProcessInstanceWithResultRequest,
) -> Read<CreateProcessInstanceWithResult> {
    let Some(creation) = message.request else {
        return Err(missing("request", "which process instance to create"));
    };
    Ok(CreateProcessInstanceWithResult {
        creation: create_process_instance(creation)?,
        fetch_variables: texts(message.fetch_variables),
        request_timeout: message.request_timeout,
    })
}

pub(super) fn cancel_process_instance(message: CancelProcessInstanceRequest) -> Read<CancelProcessInstance> {
    let CancelProcessInstanceRequest { process_instance_key, operation_reference } = message;
    Ok(CancelProcessInstance { process_instance_key, operation_reference })
}

pub(super) fn modify_process_instance(message: ModifyProcessInstanceRequest) -> Read<ModifyProcessInstance> {
    let terminate = message.terminate_instructions.into_iter().map(|instruction| ModificationTerminateInstruction {
        element_instance_key: Key::from_raw(instruction.element_instance_key),
        element_id: instruction.element_id.into(),
    });
    Ok(ModifyProcessInstance {
        process_instance_key: message.process_instance_key,
        activate: message.activate_instructions.into_iter().map(activate_instruction).collect::<Read<_>>()?,
        moves: message.move_instructions.into_iter().map(move_instruction).collect::<Read<_>>()?,
        terminate: terminate.collect(),
        operation_reference: message.operation_reference,
    })
}

fn activate_instruction(instruction: modify::ActivateInstruction) -> Read<ModificationActivateInstruction> {
    Ok(ModificationActivateInstruction {
        element_id: instruction.element_id.into(),
        ancestor_scope_key: Key::from_raw(instruction.ancestor_element_instance_key),
        variable_instructions: variable_instructions(instruction.variable_instructions)?,
    })
}

fn move_instruction(instruction: modify::MoveInstruction) -> Read<ModificationMoveInstruction> {
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

fn variable_instructions(instructions: Vec<modify::VariableInstruction>) -> Read<Vec<ModificationVariableInstruction>> {
    let instruction = |instruction: modify::VariableInstruction| {
        let variables = Variables::Text(instruction.variables).check()?;
        Ok(ModificationVariableInstruction { variables, element_id: instruction.scope_id.into() })
    };
    instructions.into_iter().map(instruction).collect()
}

pub(super) fn migrate_process_instance(message: MigrateProcessInstanceRequest) -> Read<MigrateProcessInstance> {
    let Some(plan) = message.migration_plan else {
        return Err(missing("migrationPlan", "which process definition to migrate to"));
    };
    let mapping = plan.mapping_instructions.into_iter().map(|instruction| MigrationMappingInstruction {
        source_element_id: instruction.source_element_id.into(),
        target_element_id: instruction.target_element_id.into(),
    });
    Ok(MigrateProcessInstance {
        process_instance_key: message.process_instance_key,
        target_process_definition_key: plan.target_process_definition_key,
        mapping: mapping.collect(),
        operation_reference: message.operation_reference,
    })
}

pub(super) fn set_variables(message: SetVariablesRequest) -> Read<SetVariables> {
    Ok(SetVariables {
        element_instance_key: message.element_instance_key,
        variables: Variables::Text(message.variables),
        is_local: message.local,
        operation_reference: message.operation_reference,
    })
}

pub(super) fn resolve_incident(message: ResolveIncidentRequest) -> Read<ResolveIncident> {
    let ResolveIncidentRequest { incident_key, operation_reference } = message;
    Ok(ResolveIncident { incident_key, operation_reference, batch_operation: None })
}

pub(super) fn deploy_resource(message: DeployResourceRequest) -> Read<DeployResources> {
    let resources = message.resources.into_iter().map(|resource| DeploymentResource {
        resource_name: resource.name.into(),
        resource: Arc::from(&resource.content[..]),
    });
    Ok(DeployResources { resources: resources.collect(), tenant_id: message.tenant_id })
}

#[allow(deprecated, reason = "old clients still call it")]
pub(super) fn deploy_process(message: DeployProcessRequest) -> Read<DeployResources> {
    let resources = message.processes.into_iter().map(|process| DeploymentResource {
        resource_name: process.name.into(),
        resource: Arc::from(&process.definition[..]),
    });
    Ok(DeployResources { resources: resources.collect(), tenant_id: String::new() })
}

pub(super) fn delete_resource(message: DeleteResourceRequest) -> Read<DeleteResource> {
    Ok(DeleteResource {
        resource_key: message.resource_key,
        deletes_history: message.delete_history == Some(true),
        operation_reference: message.operation_reference,
    })
}

pub(super) fn publish_message(message: PublishMessageRequest) -> Read<PublishMessage> {
    Ok(PublishMessage {
        name: message.name.into(),
        correlation_key: message.correlation_key.into(),
        message_id: message.message_id.into(),
        time_to_live: message.time_to_live,
        variables: Variables::Text(message.variables),
        tenant_id: message.tenant_id,
        business_id: None,
    })
}

pub(super) fn broadcast_signal(message: BroadcastSignalRequest) -> Read<BroadcastSignal> {
    Ok(BroadcastSignal {
        signal_name: message.signal_name.into(),
        variables: Variables::Text(message.variables),
        tenant_id: message.tenant_id,
    })
}

pub(super) fn evaluate_conditional(message: EvaluateConditionalRequest) -> Read<EvaluateConditional> {
    Ok(EvaluateConditional {
        process_definition_key: message.process_definition_key,
        variables: Variables::Text(message.variables),
        tenant_id: message.tenant_id,
    })
}

pub(super) fn evaluate_decision(message: EvaluateDecisionRequest) -> Read<EvaluateDecision> {
    Ok(EvaluateDecision {
        decision_id: message.decision_id.into(),
        decision_key: message.decision_key,
        variables: Variables::Text(message.variables),
        tenant_id: message.tenant_id,
    })
}

fn missing(field: &str, what: &str) -> Failure {
    Failure::InvalidArgument(format!("Expected the field '{field}' to say {what}, but it is missing."))
}
