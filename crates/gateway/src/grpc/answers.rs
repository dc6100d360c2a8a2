//! Answers as messages of the interface.

use gateway_interface as interface;
use protocol::{
    ConditionalEvaluationValue, DecisionEvaluationValue, DecisionRequirementsMetadata, DecisionValue, DeploymentValue,
    EvaluatedDecisionValue, EvaluatedInputValue, EvaluatedOutputValue, FormMetadata, JobKind, JobListenerEventType,
    JobValue, Key, MatchedRuleValue, ProcessInstanceCreationValue, ProcessInstanceResultValue, ProcessMetadata, Text,
};

use crate::request::message::PublishedMessage;
use crate::request::signal::BroadcastedSignal;
use crate::request::task_result::ListenedTask;

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
        user_task: ListenedTask::of(job).map(listened_task),
        kind: job_kind(job.job_kind).into(),
        listener_event_type: listener_event_type(job.job_listener_event_type).into(),
        tags: strings(&job.tags),
    }
}

fn listened_task(task: ListenedTask) -> interface::UserTaskProperties {
    interface::UserTaskProperties {
        action: task.action,
        assignee: task.assignee,
        candidate_groups: strings(&task.candidate_groups),
        candidate_users: strings(&task.candidate_users),
        changed_attributes: strings(&task.changed_attributes),
        due_date: task.due_date,
        follow_up_date: task.follow_up_date,
        form_key: task.form_key,
        priority: task.priority,
        user_task_key: task.user_task_key,
    }
}

fn job_kind(kind: JobKind) -> interface::activated_job::JobKind {
    use interface::activated_job::JobKind as Known;
    match kind {
        JobKind::BpmnElement => Known::BpmnElement,
        JobKind::ExecutionListener => Known::ExecutionListener,
        JobKind::TaskListener => Known::TaskListener,
        JobKind::AdHocSubProcess => Known::AdHocSubProcess,
    }
}

fn listener_event_type(event_type: JobListenerEventType) -> interface::activated_job::ListenerEventType {
    use interface::activated_job::ListenerEventType as Known;
    match event_type {
        JobListenerEventType::Unspecified => Known::Unspecified,
        JobListenerEventType::Start => Known::Start,
        JobListenerEventType::End => Known::End,
        JobListenerEventType::Creating => Known::Creating,
        JobListenerEventType::Assigning => Known::Assigning,
        JobListenerEventType::Updating => Known::Updating,
        JobListenerEventType::Completing => Known::Completing,
        JobListenerEventType::Canceling => Known::Canceling,
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
        business_id: (!value.business_id.is_empty()).then(|| value.business_id.to_string()),
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
        business_id: (!value.business_id.is_empty()).then(|| value.business_id.to_string()),
    }
}

pub(crate) fn deployed((key, value): (Key, Box<DeploymentValue>)) -> interface::DeployResourceResponse {
    use interface::deployment::Metadata;
    let processes = value.processes_metadata.iter().map(|metadata| Metadata::Process(process(metadata)));
    let decisions = value.decisions_metadata.iter().map(|value| Metadata::Decision(decision(value)));
    let graphs = value.decision_requirements_metadata.iter();
    let graphs = graphs.map(|metadata| Metadata::DecisionRequirements(decision_requirements(metadata)));
    let forms = value.form_metadata.iter().map(|metadata| Metadata::Form(form(metadata)));
    // A resource that is only kept has no place here.
    let deployments = processes.chain(decisions).chain(graphs).chain(forms);
    interface::DeployResourceResponse {
        key: key.raw(),
        deployments: deployments.map(|metadata| interface::Deployment { metadata: Some(metadata) }).collect(),
        tenant_id: value.tenant_id.to_string(),
    }
}

#[allow(deprecated, reason = "old clients still call it")]
pub(crate) fn deployed_processes((key, value): (Key, Box<DeploymentValue>)) -> interface::DeployProcessResponse {
    let processes = value.processes_metadata.iter().map(process).collect();
    interface::DeployProcessResponse { key: key.raw(), processes }
}

pub(crate) fn published(message: &PublishedMessage) -> interface::PublishMessageResponse {
    interface::PublishMessageResponse { key: message.key.raw(), tenant_id: message.tenant_id.to_string() }
}

pub(crate) fn broadcasted(signal: &BroadcastedSignal) -> interface::BroadcastSignalResponse {
    interface::BroadcastSignalResponse { key: signal.key.raw(), tenant_id: signal.tenant_id.to_string() }
}

pub(crate) fn evaluated_conditional(
    (key, value): (Key, Box<ConditionalEvaluationValue>),
) -> interface::EvaluateConditionalResponse {
    let instances = value.started_process_instances.iter().map(|started| interface::ProcessInstanceReference {
        process_definition_key: started.process_definition_key.raw(),
        process_instance_key: started.process_instance_key.raw(),
    });
    interface::EvaluateConditionalResponse {
        process_instances: instances.collect(),
        conditional_evaluation_key: key.raw(),
        tenant_id: value.tenant_id.to_string(),
    }
}

pub(crate) fn deleted(resource_key: Key) -> interface::DeleteResourceResponse {
    interface::DeleteResourceResponse { resource_key: resource_key.to_string(), batch_operation: None }
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

fn form(metadata: &FormMetadata) -> interface::FormMetadata {
    interface::FormMetadata {
        form_id: metadata.form_id.to_string(),
        version: metadata.version,
        form_key: metadata.form_key.raw(),
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

pub(crate) fn evaluated((key, value): (Key, Box<DecisionEvaluationValue>)) -> interface::EvaluateDecisionResponse {
    interface::EvaluateDecisionResponse {
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
        decision_instance_key: key.raw(),
        decision_evaluation_key: key.raw(),
    }
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
