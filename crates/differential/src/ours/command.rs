//! Requests as the commands that the gateway makes of them.

use std::sync::Arc;

use gateway_interface::*;
use protocol::*;
use serde_json::Value;

use super::refusal;
use crate::driver::{ChoiceRequest, Refusal, Request, UserTaskRequest};
use crate::step::UserTaskVerb;

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
        Request::Complete(request) => by_key(request.job_key, completion(request)),
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
        Request::UserTask(request) => by_key(request.key, user_task(&request)),
        Request::Choose(request) => by_key(request.key, choice(request)),
        Request::Decide(request) => by_key(request.key, decision(request)),
        Request::Publish(request) => Ok(message(request, partition_count)),
        Request::SetVariables(request) | Request::SetVariablesLater(request) => {
            by_key(request.element_instance_key, variable_document(&request))
        }
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
        Request::Broadcast(request) => Ok(signal(request)),
        Request::Activate(_) => {
            let mut refusal = refusal(RejectionType::InvalidArgument, "the engine has no such command");
            refusal.code = tonic::Code::Unimplemented;
            Err(refusal)
        }
    }
}

fn completion(request: CompleteJobRequest) -> Payload {
    let result = request.result.map(|result| Box::new(task_result(result)));
    job(JobIntent::Complete, JobValue { variables: request.variables.into(), result, ..JobValue::default() })
}

fn task_result(result: gateway_interface::JobResult) -> protocol::JobResult {
    let texts = |list: &Option<StringList>| {
        let values = list.iter().flat_map(|list| &list.values);
        values.map(|value| value.as_str().into()).collect()
    };
    let text = |text: &Option<String>| text.as_deref().unwrap_or_default().into();
    let corrections = result.corrections.as_ref().map(|given| {
        let names = [
            ("assignee", given.assignee.is_some()),
            ("candidateGroupsList", given.candidate_groups.is_some()),
            ("candidateUsersList", given.candidate_users.is_some()),
            ("dueDate", given.due_date.is_some()),
            ("followUpDate", given.follow_up_date.is_some()),
            ("priority", given.priority.is_some()),
        ];
        protocol::JobResultCorrections {
            assignee: text(&given.assignee),
            due_date: text(&given.due_date),
            follow_up_date: text(&given.follow_up_date),
            candidate_users_list: texts(&given.candidate_users),
            candidate_groups_list: texts(&given.candidate_groups),
            priority: given.priority.unwrap_or(-1),
            corrected_attributes: names.iter().filter(|(_, given)| *given).map(|(name, _)| (*name).into()).collect(),
        }
    });
    protocol::JobResult {
        result_type: JobResultType::UserTask,
        denied: result.denied.unwrap_or_default(),
        denied_reason: text(&result.denied_reason),
        corrections: corrections.map(Box::new),
        ..protocol::JobResult::default()
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

fn user_task(request: &UserTaskRequest) -> Payload {
    let text = |name: &str| request.attributes.get(name).and_then(Value::as_str).unwrap_or_default().into();
    let list = |name: &str| {
        let items = request.attributes.get(name).and_then(Value::as_array).into_iter().flatten();
        items.filter_map(Value::as_str).map(Text::from).collect()
    };
    let changed = request.attributes.keys().filter(|name| !matches!(name.as_str(), "action" | "variables"));
    let value = UserTaskValue {
        assignee: text("assignee"),
        candidate_groups_list: list("candidateGroupsList"),
        candidate_users_list: list("candidateUsersList"),
        due_date: text("dueDate"),
        follow_up_date: text("followUpDate"),
        priority: request.attributes.get("priority").and_then(Value::as_i64).map_or(50, |priority| priority as i32),
        changed_attributes: match request.verb {
            UserTaskVerb::Update => changed.map(|name| name.as_str().into()).collect(),
            _ => Vec::new(),
        },
        action: text("action"),
        variables: request
            .attributes
            .get("variables")
            .map(|variables| variables.to_string().into())
            .unwrap_or_default(),
        ..UserTaskValue::default()
    };
    let intent = match request.verb {
        UserTaskVerb::Assign => UserTaskIntent::Assign,
        UserTaskVerb::Claim => UserTaskIntent::Claim,
        UserTaskVerb::Update => UserTaskIntent::Update,
        UserTaskVerb::Complete => UserTaskIntent::Complete,
    };
    Payload::UserTask(intent, Box::new(value))
}

fn chosen(elements: Vec<(String, String)>) -> Vec<AdHocSubProcessActivateElement> {
    let element = |(element_id, variables): (String, String)| AdHocSubProcessActivateElement {
        element_id: element_id.into(),
        variables: variables.into(),
    };
    elements.into_iter().map(element).collect()
}

fn choice(request: ChoiceRequest) -> Payload {
    let value = AdHocSubProcessInstructionValue {
        ad_hoc_sub_process_instance_key: Key::from_raw(request.key),
        activate_elements: chosen(request.elements),
        cancel_remaining_instances: request.cancels,
        tenant_id: DEFAULT_TENANT.into(),
        ..AdHocSubProcessInstructionValue::default()
    };
    Payload::AdHocSubProcessInstruction(AdHocSubProcessInstructionIntent::Activate, Box::new(value))
}

fn decision(request: ChoiceRequest) -> Payload {
    let result = protocol::JobResult {
        activate_elements: chosen(request.elements),
        completion_condition_fulfilled: request.is_fulfilled,
        cancel_remaining_instances: request.cancels,
        ..protocol::JobResult::default()
    };
    let value = JobValue { variables: request.variables.into(), result: Some(Box::new(result)), ..JobValue::default() };
    job(JobIntent::Complete, value)
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

fn signal(request: BroadcastSignalRequest) -> Target {
    let value = SignalValue {
        signal_name: request.signal_name.into(),
        variables: request.variables.into(),
        tenant_id: DEFAULT_TENANT.into(),
        rest: None,
    };
    let payload = Payload::Signal(SignalIntent::Broadcast, Box::new(value));
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
