//! The procedures that are one command to one partition.

use std::sync::Arc;
use std::time::Duration;

use broker::{PendingRequest, Reply};
use gateway_interface::*;
use protocol::{
    BpmnElementType, Command, DeploymentIntent, DeploymentResource, DeploymentValue, ErrorType, IncidentIntent,
    IncidentValue, JobIntent, JobValue, Key, PartitionId, Payload, ProcessInstanceCreationIntent,
    ProcessInstanceCreationValue, ProcessInstanceIntent, ProcessInstanceValue, Rejection, Text, VariableDocumentIntent,
    VariableDocumentUpdateSemantics, VariableDocumentValue,
};
use tokio::sync::oneshot;
use tonic::{Code, Status};

use crate::conversion;
use crate::rpc::Rpc;
use crate::service::Service;
use crate::status::{invalid_argument, not_submitted, rejected, status};
use crate::validation::{Target, route, tags, tenant, texts, variables};

/// A request that waits in the broker until it is answered or its client gives up.
struct Waiting(Option<PendingRequest>);

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(pending) = self.0.take() {
            pending.cancel();
        }
    }
}

impl Service {
    /// Hands a command to a partition and waits for the answer.
    async fn execute(
        &self,
        rpc: Rpc,
        partition: PartitionId,
        command: Command,
        limit: Duration,
    ) -> Result<Reply, Status> {
        let (sender, receiver) = oneshot::channel();
        let pending = self.client.submit(partition, command, move |result| {
            // Nobody listens any more when the client has given up.
            let _ = sender.send(result);
        });
        let waiting = Waiting(Some(pending));
        let answer = tokio::time::timeout(limit, receiver).await;
        match answer {
            Ok(Ok(Ok(reply))) => {
                // The answer has come: there is nothing to cancel.
                std::mem::forget(waiting);
                match &reply.rejection {
                    None => Ok(reply),
                    Some(rejection) => Err(rejected(reply.payload.intent_name(), rejection)),
                }
            }
            Ok(Ok(Err(error))) => Err(not_submitted(rpc, &error)),
            Ok(Err(_)) => Err(status(
                Code::Unavailable,
                format!("Partition {partition} stopped before it answered {}. Please try again.", rpc.name()),
            )),
            Err(_) => Err(status(
                Code::DeadlineExceeded,
                format!(
                    "Time out between gateway and broker: partition {partition} did not answer {} within {} ms. The command may still be carried out.",
                    rpc.name(),
                    limit.as_millis()
                ),
            )),
        }
    }

    async fn execute_by_key(
        &self,
        rpc: Rpc,
        target: Target,
        key: i64,
        operation_reference: Option<u64>,
        payload: impl FnOnce(Key) -> Payload,
    ) -> Result<Reply, Status> {
        let (partition, key) = route(target, key, self.client.partition_count())?;
        let command = Command { operation_reference, ..Command::new(key, payload(key)) };
        self.execute(rpc, partition, command, self.request_timeout).await
    }

    pub(crate) async fn complete(&self, request: CompleteJobRequest) -> Result<CompleteJobResponse, Status> {
        if request.result.is_some_and(|result| result != JobResult::default()) {
            return Err(status(
                Code::Unimplemented,
                "CompleteJob with a result is not supported by this version of Osmia yet: jobs of listeners and ad-hoc sub-processes are missing.",
            ));
        }
        let value = JobValue { variables: variables(request.variables)?, ..JobValue::default() };
        let target = Target { intent: JobIntent::Complete.name(), wish: "complete job", kind: "job" };
        let payload = |_| Payload::Job(JobIntent::Complete, Arc::new(value));
        self.execute_by_key(Rpc::CompleteJob, target, request.job_key, None, payload).await?;
        Ok(CompleteJobResponse {})
    }

    pub(crate) async fn fail(&self, request: FailJobRequest) -> Result<FailJobResponse, Status> {
        let value = JobValue {
            variables: variables(request.variables)?,
            retries: request.retries,
            retry_backoff: request.retry_back_off,
            error_message: request.error_message.into(),
            ..JobValue::default()
        };
        let target = Target { intent: JobIntent::Fail.name(), wish: "fail job", kind: "job" };
        let payload = |_| Payload::Job(JobIntent::Fail, Arc::new(value));
        self.execute_by_key(Rpc::FailJob, target, request.job_key, None, payload).await?;
        Ok(FailJobResponse {})
    }

    pub(crate) async fn throw(&self, request: ThrowErrorRequest) -> Result<ThrowErrorResponse, Status> {
        let value = JobValue {
            variables: variables(request.variables)?,
            error_code: request.error_code.into(),
            error_message: request.error_message.into(),
            ..JobValue::default()
        };
        let target = Target { intent: JobIntent::ThrowError.name(), wish: "throw an error for job", kind: "job" };
        let payload = |_| Payload::Job(JobIntent::ThrowError, Arc::new(value));
        self.execute_by_key(Rpc::ThrowError, target, request.job_key, None, payload).await?;
        Ok(ThrowErrorResponse {})
    }

    pub(crate) async fn set_retries(
        &self,
        request: UpdateJobRetriesRequest,
    ) -> Result<UpdateJobRetriesResponse, Status> {
        if request.retries < 1 {
            return Err(rejected(
                JobIntent::UpdateRetries.name(),
                &Rejection::invalid_argument(format!(
                    "Expected to update retries of job with key '{}' with a positive amount of retries, but the amount given was '{}'",
                    request.job_key, request.retries
                )),
            ));
        }
        let value = JobValue { retries: request.retries, ..JobValue::default() };
        let target = Target { intent: JobIntent::UpdateRetries.name(), wish: "update retries of job", kind: "job" };
        let payload = |_| Payload::Job(JobIntent::UpdateRetries, Arc::new(value));
        let reference = request.operation_reference;
        self.execute_by_key(Rpc::UpdateJobRetries, target, request.job_key, reference, payload).await?;
        Ok(UpdateJobRetriesResponse {})
    }

    pub(crate) async fn set_timeout(
        &self,
        request: UpdateJobTimeoutRequest,
    ) -> Result<UpdateJobTimeoutResponse, Status> {
        let value = JobValue { timeout: request.timeout, ..JobValue::default() };
        let target = Target { intent: JobIntent::UpdateTimeout.name(), wish: "update timeout of job", kind: "job" };
        let payload = |_| Payload::Job(JobIntent::UpdateTimeout, Arc::new(value));
        let reference = request.operation_reference;
        self.execute_by_key(Rpc::UpdateJobTimeout, target, request.job_key, reference, payload).await?;
        Ok(UpdateJobTimeoutResponse {})
    }

    pub(crate) async fn cancel(
        &self,
        request: CancelProcessInstanceRequest,
    ) -> Result<CancelProcessInstanceResponse, Status> {
        let target =
            Target { intent: ProcessInstanceIntent::Cancel.name(), wish: "cancel a process instance", kind: "process" };
        let payload = |key| {
            let value = ProcessInstanceValue {
                bpmn_process_id: Text::default(),
                version: -1,
                process_definition_key: Key::NONE,
                process_instance_key: key,
                element_id: Text::default(),
                flow_scope_key: Key::NONE,
                bpmn_element_type: BpmnElementType::Unspecified,
                parent_process_instance_key: Key::NONE,
                parent_element_instance_key: Key::NONE,
                tags: Vec::new(),
                tenant_id: protocol::DEFAULT_TENANT.into(),
            };
            Payload::ProcessInstance(ProcessInstanceIntent::Cancel, Arc::new(value))
        };
        let reference = request.operation_reference;
        self.execute_by_key(Rpc::CancelProcessInstance, target, request.process_instance_key, reference, payload)
            .await?;
        Ok(CancelProcessInstanceResponse {})
    }

    pub(crate) async fn resolve(&self, request: ResolveIncidentRequest) -> Result<ResolveIncidentResponse, Status> {
        let target = Target { intent: IncidentIntent::Resolve.name(), wish: "resolve incident", kind: "incident" };
        let payload = |_| {
            let value = IncidentValue {
                error_type: ErrorType::Unknown,
                error_message: Text::default(),
                bpmn_process_id: Text::default(),
                process_definition_key: Key::NONE,
                process_instance_key: Key::NONE,
                element_id: Text::default(),
                element_instance_key: Key::NONE,
                job_key: Key::NONE,
                variable_scope_key: Key::NONE,
                tenant_id: protocol::DEFAULT_TENANT.into(),
            };
            Payload::Incident(IncidentIntent::Resolve, Box::new(value))
        };
        let reference = request.operation_reference;
        self.execute_by_key(Rpc::ResolveIncident, target, request.incident_key, reference, payload).await?;
        Ok(ResolveIncidentResponse {})
    }

    pub(crate) async fn update_variables(&self, request: SetVariablesRequest) -> Result<SetVariablesResponse, Status> {
        let target = Target {
            intent: VariableDocumentIntent::Update.name(),
            wish: "update variables for element",
            kind: "element",
        };
        let variables = variables(request.variables)?;
        let update_semantics = match request.local {
            true => VariableDocumentUpdateSemantics::Local,
            false => VariableDocumentUpdateSemantics::Propagate,
        };
        let payload = |scope_key| {
            let tenant_id = protocol::DEFAULT_TENANT.into();
            let value = VariableDocumentValue { scope_key, update_semantics, variables, tenant_id };
            Payload::VariableDocument(VariableDocumentIntent::Update, Box::new(value))
        };
        let (key, reference) = (request.element_instance_key, request.operation_reference);
        let reply = self.execute_by_key(Rpc::SetVariables, target, key, reference, payload).await?;
        Ok(SetVariablesResponse { key: reply.key.raw() })
    }

    pub(crate) async fn create(
        &self,
        request: CreateProcessInstanceRequest,
    ) -> Result<CreateProcessInstanceResponse, Status> {
        const RPC: Rpc = Rpc::CreateProcessInstance;
        let operation_reference = request.operation_reference;
        let value = creation(RPC, request, Vec::new())?;
        let payload = Payload::ProcessInstanceCreation(ProcessInstanceCreationIntent::Create, Box::new(value));
        let command = Command { operation_reference, ..Command::new(Key::NONE, payload) };
        let reply = self.execute(RPC, self.client.next_partition(), command, self.request_timeout).await?;
        match reply.payload {
            Payload::ProcessInstanceCreation(_, value) => Ok(conversion::created(&value)),
            other => Err(unexpected(RPC, &other)),
        }
    }

    pub(crate) async fn create_with_result(
        &self,
        request: CreateProcessInstanceWithResultRequest,
    ) -> Result<CreateProcessInstanceWithResultResponse, Status> {
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
        let reply = self.execute(RPC, self.client.next_partition(), command, limit).await?;
        match reply.payload {
            Payload::ProcessInstanceResult(_, value) => Ok(conversion::result(&value)),
            other => Err(unexpected(RPC, &other)),
        }
    }

    pub(crate) async fn deploy(&self, request: DeployResourceRequest) -> Result<DeployResourceResponse, Status> {
        let resources = request.resources.into_iter().map(|resource| DeploymentResource {
            resource_name: resource.name.into(),
            resource: Arc::from(&resource.content[..]),
        });
        let tenant_id = tenant("DeployResource", &request.tenant_id)?;
        let (key, value) = self.deploy_all(Rpc::DeployResource, resources.collect(), tenant_id).await?;
        Ok(conversion::deployed(key, &value))
    }

    #[allow(deprecated, reason = "old clients still call it")]
    pub(crate) async fn deploy_processes(
        &self,
        request: DeployProcessRequest,
    ) -> Result<DeployProcessResponse, Status> {
        let resources = request.processes.into_iter().map(|process| DeploymentResource {
            resource_name: process.name.into(),
            resource: Arc::from(&process.definition[..]),
        });
        let tenant_id = protocol::DEFAULT_TENANT.into();
        let (key, value) = self.deploy_all(Rpc::DeployProcess, resources.collect(), tenant_id).await?;
        let processes = value.processes_metadata.iter().map(conversion::process).collect();
        Ok(DeployProcessResponse { key: key.raw(), processes })
    }

    async fn deploy_all(
        &self,
        rpc: Rpc,
        resources: Vec<DeploymentResource>,
        tenant_id: Text,
    ) -> Result<(Key, DeploymentValue), Status> {
        if resources.is_empty() {
            return Err(rejected(
                DeploymentIntent::Create.name(),
                &Rejection::invalid_argument("Expected to deploy at least one resource, but none given"),
            ));
        }
        let value = DeploymentValue { resources, tenant_id, ..DeploymentValue::default() };
        let payload = Payload::Deployment(DeploymentIntent::Create, Box::new(value));
        let command = Command::new(Key::NONE, payload);
        let reply = self.execute(rpc, PartitionId::DEPLOYMENT, command, self.request_timeout).await?;
        match reply.payload {
            Payload::Deployment(_, value) => Ok((reply.key, *value)),
            other => Err(unexpected(rpc, &other)),
        }
    }
}

/// The wish to create an instance, as far as it can be checked without state.
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
    let missing = if !request.runtime_instructions.is_empty() {
        Some("runtime instructions")
    } else if request.business_id.is_some_and(|id| !id.is_empty()) {
        Some("business ids")
    } else {
        None
    };
    if let Some(missing) = missing {
        let message = format!("{} with {missing} is not supported by this version of Osmia yet.", rpc.name());
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
        ..ProcessInstanceCreationValue::default()
    })
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
