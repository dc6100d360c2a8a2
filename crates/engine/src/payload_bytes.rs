//! How much a payload carries: what a record of it takes in memory, in the log and in the record stream, about.

use protocol::{
    Command, DecisionRequirementsMetadata, DecisionValue, DeploymentValue, EvaluatedDecisionValue, FormMetadata,
    GlobalListenerValue, Payload, ProcessMetadata, ResourceMetadata, Text, UserTaskValue,
};

/// Bytes of the numbers and names in a value that is counted one by one.
const VALUE_BYTES: usize = 200;

/// About the bytes of a payload: of its variables and texts, where it can have many.
pub(crate) fn payload_bytes(payload: &Payload) -> u64 {
    let bytes = match payload {
        Payload::Variable(_, value) => value.value.len(),
        Payload::VariableDocument(_, value) => value.variables.len(),
        Payload::Job(_, value) => value.variables.len() + value.custom_headers.len() + value.error_message.len(),
        Payload::UserTask(_, value) => user_task_bytes(value),
        Payload::JobBatch(_, value) => {
            value.jobs.iter().map(|job| job.variables.len() + job.custom_headers.len() + VALUE_BYTES).sum()
        }
        Payload::AdHocSubProcessInstruction(_, value) => {
            value.activate_elements.iter().map(|element| element.element_id.len() + element.variables.len()).sum()
        }
        Payload::ProcessEvent(_, value) => value.variables.len(),
        Payload::MultiInstance(_, value) => texts(&value.input_collection) + value.output_element.len(),
        Payload::Message(_, value) => value.variables.len(),
        Payload::MessageCorrelation(_, value) => value.variables.len(),
        Payload::MessageSubscription(_, value) => value.variables.len(),
        Payload::ProcessMessageSubscription(_, value) => value.variables.len(),
        Payload::MessageStartEventSubscription(_, value) => value.variables.len(),
        Payload::Signal(_, value) => value.variables.len(),
        Payload::ConditionalSubscription(_, value) => {
            let changed = value.changes.iter().map(|change| texts(&change.names)).sum::<usize>();
            value.condition.len() + texts(&value.variable_names) + changed
        }
        Payload::ConditionalEvaluation(_, value) => {
            value.variables.len() + value.started_process_instances.len() * VALUE_BYTES / 10
        }
        Payload::ProcessInstanceCreation(_, value) => value.variables.len() + texts(&value.fetch_variables),
        Payload::ProcessInstanceResult(_, value) => value.variables.len(),
        Payload::Incident(_, value) => value.error_message.len(),
        Payload::Error(_, value) => value.exception_message.len() + value.stacktrace.len(),
        Payload::Deployment(_, value) => deployment_bytes(value),
        Payload::Process(_, value) => value.resource.len() + process_bytes(&value.metadata),
        Payload::DecisionRequirements(_, value) => value.resource.len() + graph_bytes(&value.metadata),
        Payload::Decision(_, value) => decision_bytes(value),
        Payload::Form(_, value) => value.resource.len() + form_bytes(&value.metadata),
        Payload::Resource(_, value) => value.resource_prop.len() + resource_bytes(&value.metadata),
        Payload::DecisionEvaluation(_, value) => {
            value.variables.len()
                + value.decision_output.len()
                + value.evaluated_decisions.iter().map(evaluated_bytes).sum::<usize>()
        }
        Payload::Expression(_, value) => {
            value.expression.len() + value.variables.len() + value.result_value.len() + texts(&value.warnings)
        }
        Payload::GlobalListener(_, value) => listener_bytes(value),
        Payload::GlobalListenerBatch(_, value) => value.task_listeners.iter().map(listener_bytes).sum(),
        Payload::Work(_, value) => return value.commands.iter().map(command_bytes).sum(),
        Payload::Outbox(_, value) => return value.command.as_deref().map_or(0, command_bytes),
        Payload::CommandDistribution(_, value) => return value.command.as_deref().map_or(0, command_bytes),
        _ => 0,
    };
    bytes as u64
}

/// The same of a command with its own numbers.
pub(crate) fn command_bytes(command: &Command) -> u64 {
    payload_bytes(&command.payload).saturating_add(VALUE_BYTES as u64)
}

fn texts(texts: &[Text]) -> usize {
    texts.iter().map(|text| text.len()).sum()
}

pub(crate) fn deployment_bytes(value: &DeploymentValue) -> usize {
    let resources = value.resources.iter().map(|resource| resource.resource_name.len() + resource.resource.len());
    let processes = value.processes_metadata.iter().map(process_bytes);
    let graphs = value.decision_requirements_metadata.iter().map(graph_bytes);
    let decisions = value.decisions_metadata.iter().map(decision_bytes);
    let forms = value.form_metadata.iter().map(form_bytes);
    let kept = value.resource_metadata.iter().map(resource_bytes);
    resources.chain(processes).chain(graphs).chain(decisions).chain(forms).chain(kept).sum()
}

fn process_bytes(value: &ProcessMetadata) -> usize {
    let names = [&value.bpmn_process_id, &value.version_tag, &value.resource_name, &value.tenant_id];
    names.iter().map(|name| name.len()).sum::<usize>() + VALUE_BYTES
}

fn graph_bytes(value: &DecisionRequirementsMetadata) -> usize {
    let names = [
        &value.decision_requirements_id,
        &value.decision_requirements_name,
        &value.namespace,
        &value.resource_name,
        &value.tenant_id,
    ];
    names.iter().map(|name| name.len()).sum::<usize>() + VALUE_BYTES
}

fn decision_bytes(value: &DecisionValue) -> usize {
    let names = [
        &value.decision_id,
        &value.decision_name,
        &value.version_tag,
        &value.decision_requirements_id,
        &value.tenant_id,
    ];
    names.iter().map(|name| name.len()).sum::<usize>() + VALUE_BYTES
}

fn form_bytes(value: &FormMetadata) -> usize {
    let names = [&value.form_id, &value.version_tag, &value.resource_name, &value.tenant_id];
    names.iter().map(|name| name.len()).sum::<usize>() + VALUE_BYTES
}

fn resource_bytes(value: &ResourceMetadata) -> usize {
    let names = [&value.resource_id, &value.version_tag, &value.resource_name, &value.tenant_id];
    names.iter().map(|name| name.len()).sum::<usize>() + VALUE_BYTES
}

fn evaluated_bytes(value: &EvaluatedDecisionValue) -> usize {
    let inputs = value.evaluated_inputs.iter();
    let inputs = inputs.map(|input| input.input_id.len() + input.input_name.len() + input.input_value.len());
    let outputs = value.matched_rules.iter().flat_map(|rule| &rule.evaluated_outputs);
    let outputs = outputs.map(|output| output.output_id.len() + output.output_name.len() + output.output_value.len());
    value.decision_output.len() + value.decision_name.len() + inputs.chain(outputs).sum::<usize>() + VALUE_BYTES
}

/// About the bytes of a task in a record: of its texts, where they can be long.
pub(crate) fn user_task_bytes(value: &UserTaskValue) -> usize {
    /// A text in a list besides its bytes.
    const ITEM_BYTES: usize = 8;
    let candidates = value.candidate_groups_list.iter().chain(&value.candidate_users_list);
    let candidates: usize = candidates.map(|candidate| candidate.len() + ITEM_BYTES).sum();
    let texts = [
        &value.assignee,
        &value.due_date,
        &value.follow_up_date,
        &value.external_form_reference,
        &value.custom_headers,
        &value.variables,
        &value.action,
    ];
    candidates + texts.iter().map(|text| text.len()).sum::<usize>()
}

/// About the bytes of a listener in a record or row.
pub(crate) fn listener_bytes(value: &GlobalListenerValue) -> usize {
    /// Its numbers.
    const NUMBER_BYTES: usize = 50;
    value.id.len() + value.job_type.len() + NUMBER_BYTES
}
