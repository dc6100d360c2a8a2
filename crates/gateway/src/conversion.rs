//! Values of the engine as messages of the interface.

use gateway_interface as interface;
use protocol::{
    DeploymentValue, JobKind, JobValue, Key, ProcessInstanceCreationValue, ProcessInstanceResultValue, ProcessMetadata,
    Text,
};

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

pub(crate) fn created(value: &ProcessInstanceCreationValue) -> interface::CreateProcessInstanceResponse {
    interface::CreateProcessInstanceResponse {
        process_definition_key: value.process_definition_key.raw(),
        bpmn_process_id: value.bpmn_process_id.to_string(),
        version: value.version,
        process_instance_key: value.process_instance_key.raw(),
        tenant_id: value.tenant_id.to_string(),
        tags: strings(&value.tags),
        business_id: None,
    }
}

pub(crate) fn result(value: &ProcessInstanceResultValue) -> interface::CreateProcessInstanceWithResultResponse {
    interface::CreateProcessInstanceWithResultResponse {
        process_definition_key: value.process_definition_key.raw(),
        bpmn_process_id: value.bpmn_process_id.to_string(),
        version: value.version,
        process_instance_key: value.process_instance_key.raw(),
        variables: value.variables.to_string(),
        tenant_id: value.tenant_id.to_string(),
        tags: strings(&value.tags),
        business_id: None,
    }
}

pub(crate) fn deployed(key: Key, value: &DeploymentValue) -> interface::DeployResourceResponse {
    let process = |metadata| interface::deployment::Metadata::Process(process(metadata));
    interface::DeployResourceResponse {
        key: key.raw(),
        deployments: value
            .processes_metadata
            .iter()
            .map(|metadata| interface::Deployment { metadata: Some(process(metadata)) })
            .collect(),
        tenant_id: value.tenant_id.to_string(),
    }
}

pub(crate) fn process(metadata: &ProcessMetadata) -> interface::ProcessMetadata {
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
