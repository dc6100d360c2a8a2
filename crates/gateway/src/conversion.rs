//! Values of the engine as messages of the interface.

use broker::Reply;
use gateway_interface as interface;
use protocol::{
    DecisionRequirementsMetadata, DecisionValue, EvaluatedDecisionValue, EvaluatedInputValue, EvaluatedOutputValue,
    JobKind, JobValue, Key, MatchedRuleValue, Payload, ProcessMetadata, Text,
};
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
    use interface::deployment::Metadata;
    let processes = value.processes_metadata.iter().map(|metadata| Metadata::Process(process(metadata)));
    let decisions = value.decisions_metadata.iter().map(|value| Metadata::Decision(decision(value)));
    let graphs = value.decision_requirements_metadata.iter();
    let graphs = graphs.map(|metadata| Metadata::DecisionRequirements(decision_requirements(metadata)));
    let deployments = processes.chain(decisions).chain(graphs);
    Ok(interface::DeployResourceResponse {
        key: reply.key.raw(),
        deployments: deployments.map(|metadata| interface::Deployment { metadata: Some(metadata) }).collect(),
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

fn decision(value: &DecisionValue) -> interface::DecisionMetadata {
    interface::DecisionMetadata {
        dmn_decision_id: value.decision_id.to_string(),
        dmn_decision_name: value.decision_name.to_string(),
        version: value.version,
        decision_key: value.decision_key.raw(),
        dmn_decision_requirements_id: value.decision_requirements_id.to_string(),
        decision_requirements_key: value.decision_requirements_key.raw(),
        tenant_id: value.tenant_id.to_string(),
    }
}

fn decision_requirements(metadata: &DecisionRequirementsMetadata) -> interface::DecisionRequirementsMetadata {
    interface::DecisionRequirementsMetadata {
        dmn_decision_requirements_id: metadata.decision_requirements_id.to_string(),
        dmn_decision_requirements_name: metadata.decision_requirements_name.to_string(),
        version: metadata.decision_requirements_version,
        decision_requirements_key: metadata.decision_requirements_key.raw(),
        resource_name: metadata.resource_name.to_string(),
        tenant_id: metadata.tenant_id.to_string(),
    }
}

pub(crate) fn evaluated(reply: Reply) -> Result<interface::EvaluateDecisionResponse, Status> {
    let Payload::DecisionEvaluation(_, value) = reply.payload else {
        return Err(unexpected(Rpc::EvaluateDecision, &reply.payload));
    };
    Ok(interface::EvaluateDecisionResponse {
        decision_key: value.decision_key.raw(),
        decision_id: value.decision_id.to_string(),
        decision_name: value.decision_name.to_string(),
        decision_version: value.decision_version,
        decision_requirements_id: value.decision_requirements_id.to_string(),
        decision_requirements_key: value.decision_requirements_key.raw(),
        decision_output: value.decision_output.to_string(),
        evaluated_decisions: value.evaluated_decisions.iter().map(evaluated_decision).collect(),
        failed_decision_id: value.failed_decision_id.to_string(),
        failure_message: value.evaluation_failure_message.to_string(),
        tenant_id: value.tenant_id.to_string(),
        decision_instance_key: reply.key.raw(),
        decision_evaluation_key: reply.key.raw(),
    })
}

fn evaluated_decision(value: &EvaluatedDecisionValue) -> interface::EvaluatedDecision {
    let input = |input: &EvaluatedInputValue| interface::EvaluatedDecisionInput {
        input_id: input.input_id.to_string(),
        input_name: input.input_name.to_string(),
        input_value: input.input_value.to_string(),
    };
    interface::EvaluatedDecision {
        decision_key: value.decision_key.raw(),
        decision_id: value.decision_id.to_string(),
        decision_name: value.decision_name.to_string(),
        decision_version: value.decision_version,
        decision_type: value.decision_type.to_string(),
        decision_output: value.decision_output.to_string(),
        matched_rules: value.matched_rules.iter().map(matched_rule).collect(),
        evaluated_inputs: value.evaluated_inputs.iter().map(input).collect(),
        tenant_id: value.tenant_id.to_string(),
        decision_evaluation_instance_key: value.decision_evaluation_instance_key.to_string(),
    }
}

fn matched_rule(value: &MatchedRuleValue) -> interface::MatchedDecisionRule {
    let output = |output: &EvaluatedOutputValue| interface::EvaluatedDecisionOutput {
        output_id: output.output_id.to_string(),
        output_name: output.output_name.to_string(),
        output_value: output.output_value.to_string(),
    };
    interface::MatchedDecisionRule {
        rule_id: value.rule_id.to_string(),
        rule_index: i32::try_from(value.rule_index).unwrap_or(i32::MAX),
        evaluated_outputs: value.evaluated_outputs.iter().map(output).collect(),
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
