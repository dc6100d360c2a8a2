//! Values of the engine as messages of the interface.

use broker::Reply;
use gateway_interface as interface;
use protocol::{JobKind, JobValue, Key, Payload, ProcessMetadata, Text};
use tonic::{Code, Status};

use crate::rpc::Rpc;
use crate::status::status;

pub(crate) fn activated_job(key: Key, job: &JobValue) -> interface::ActivatedJob {
    let object = |text: &Text| {
        if text.is_empty() { "{}".to_owned() } else { text.to_string() }
    };
    interface::ActivatedJob {
        key: key.raw(),
        r#type: job.job_type.to_string(),
        process_instance_key: job.process_instance_key.raw(),
        bpmn_process_id: job.bpmn_process_id.to_string(),
        process_definition_version: job.process_definition_version,
        process_definition_key: job.process_definition_key.raw(),
        element_id: job.element_id.to_string(),
        element_instance_key: job.element_instance_key.raw(),
        custom_headers: object(&job.custom_headers),
        worker: job.worker.to_string(),
        retries: job.retries,
        deadline: job.deadline,
        variables: object(&job.variables),
        tenant_id: job.tenant_id.to_string(),
        user_task: None,
        kind: match job.job_kind {
            JobKind::BpmnElement => interface::activated_job::JobKind::BpmnElement.into(),
        },
        listener_event_type: interface::activated_job::ListenerEventType::Unspecified.into(),
        tags: strings(&job.tags),
    }
}

pub(crate) fn created(reply: Reply) -> Result<interface::CreateProcessInstanceResponse, Status> {
    let Payload::ProcessInstanceCreation(_, value) = reply.payload else {
        return Err(unexpected(Rpc::CreateProcessInstance, &reply.payload));
    };
    Ok(interface::CreateProcessInstanceResponse {
        process_definition_key: value.process_definition_key.raw(),
        bpmn_process_id: value.bpmn_process_id.to_string(),
        version: value.version,
        process_instance_key: value.process_instance_key.raw(),
        tenant_id: value.tenant_id.to_string(),
        tags: strings(&value.tags),
        business_id: None,
    })
}

pub(crate) fn result(reply: Reply) -> Result<interface::CreateProcessInstanceWithResultResponse, Status> {
    let Payload::ProcessInstanceResult(_, value) = reply.payload else {
        return Err(unexpected(Rpc::CreateProcessInstanceWithResult, &reply.payload));
    };
    Ok(interface::CreateProcessInstanceWithResultResponse {
        process_definition_key: value.process_definition_key.raw(),
        bpmn_process_id: value.bpmn_process_id.to_string(),
        version: value.version,
        process_instance_key: value.process_instance_key.raw(),
        variables: value.variables.to_string(),
        tenant_id: value.tenant_id.to_string(),
        tags: strings(&value.tags),
        business_id: None,
    })
}

pub(crate) fn deployed(reply: Reply) -> Result<interface::DeployResourceResponse, Status> {
    let Payload::Deployment(_, value) = reply.payload else {
        return Err(unexpected(Rpc::DeployResource, &reply.payload));
    };
    let deployment = |metadata| interface::Deployment {
        metadata: Some(interface::deployment::Metadata::Process(process(metadata))),
    };
    Ok(interface::DeployResourceResponse {
        key: reply.key.raw(),
        deployments: value.processes_metadata.iter().map(deployment).collect(),
        tenant_id: value.tenant_id.to_string(),
    })
}

#[allow(deprecated, reason = "old clients still call it")]
pub(crate) fn deployed_processes(reply: Reply) -> Result<interface::DeployProcessResponse, Status> {
    let Payload::Deployment(_, value) = reply.payload else {
        return Err(unexpected(Rpc::DeployProcess, &reply.payload));
    };
    let processes = value.processes_metadata.iter().map(process).collect();
    Ok(interface::DeployProcessResponse { key: reply.key.raw(), processes })
}

pub(crate) fn published(reply: Reply) -> Result<interface::PublishMessageResponse, Status> {
    let Payload::Message(_, value) = reply.payload else {
        return Err(unexpected(Rpc::PublishMessage, &reply.payload));
    };
    Ok(interface::PublishMessageResponse { key: reply.key.raw(), tenant_id: value.tenant_id.to_string() })
}

pub(crate) fn deleted(reply: Reply) -> Result<interface::DeleteResourceResponse, Status> {
    let Payload::ResourceDeletion(_, value) = reply.payload else {
        return Err(unexpected(Rpc::DeleteResource, &reply.payload));
    };
    Ok(interface::DeleteResourceResponse { resource_key: value.resource_key.to_string(), batch_operation: None })
}

fn process(metadata: &ProcessMetadata) -> interface::ProcessMetadata {
    interface::ProcessMetadata {
        bpmn_process_id: metadata.bpmn_process_id.to_string(),
        version: metadata.version,
        process_definition_key: metadata.process_definition_key.raw(),
        resource_name: metadata.resource_name.to_string(),
        tenant_id: metadata.tenant_id.to_string(),
    }
}

fn strings(texts: &[Text]) -> Vec<String> {
    texts.iter().map(Text::to_string).collect()
}

fn unexpected(rpc: Rpc, payload: &Payload) -> Status {
    let (kind, intent) = (payload.value_type().name(), payload.intent_name());
    tracing::error!(rpc = rpc.name(), kind, intent, "a command was answered with something else");
    status(
        Code::Internal,
        format!(
            "{} was carried out, but its answer is unreadable: the engine answered {kind} {intent}. Please report this.",
            rpc.name()
        ),
    )
}
