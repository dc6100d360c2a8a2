//! The procedures that are one command to one partition: how they are executed, and those about jobs, incidents,
//! variables, creation and deployment.

use std::sync::Arc;
use std::time::Duration;

use broker::{PendingRequest, Reply, SubmitError};
use gateway_interface::*;
use protocol::{
    Command, DeploymentIntent, DeploymentResource, DeploymentValue, IncidentIntent, IncidentValue, JobIntent, JobValue,
    Key, PartitionId, Payload, ProcessInstanceCreationIntent, ProcessInstanceCreationValue, ProcessInstanceIntent,
    ProcessInstanceValue, Rejection, RuntimeInstruction, RuntimeInstructionType, Text, VariableDocumentIntent,
    VariableDocumentUpdateSemantics, VariableDocumentValue,
};
use tokio::sync::oneshot;
use tonic::{Code, Status};

use crate::rpc::Rpc;
use crate::service::Service;
use crate::status::{invalid_argument, not_submitted, rejected, status};
use crate::validation::{Target, route, tags, tenant, texts, variables};

/// A command on its way, whose client waits for the answer. Dropped, the answer is not waited for any more.
///
/// Requests are prepared without waiting, so that what waits is small: futures are moved several times on their way
/// through the server.
pub(crate) struct Pending {
    rpc: Rpc,
    partition: PartitionId,
    limit: Duration,
    receiver: oneshot::Receiver<Result<Reply, SubmitError>>,
    registration: Option<PendingRequest>,
}

impl Pending {
    /// Waits for the answer.
    pub(crate) async fn reply(mut self) -> Result<Reply, Status> {
        let answer = tokio::time::timeout(self.limit, &mut self.receiver).await;
        if answer.is_ok() {
            // Answered: there is nothing to cancel.
            self.registration = None;
        }
        let (rpc, partition) = (self.rpc, self.partition);
        match answer {
            Ok(Ok(Ok(reply))) => match &reply.rejection {
                None => Ok(reply),
                Some(rejection) => Err(rejected(reply.payload.intent_name(), rejection)),
            },
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
                    self.limit.as_millis()
                ),
            )),
        }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if let Some(registration) = self.registration.take() {
            registration.cancel();
        }
    }
}

impl Service {
    /// Hands a command to a partition.
    pub(crate) fn execute(&self, rpc: Rpc, partition: PartitionId, command: Command, limit: Duration) -> Pending {
        let (sender, receiver) = oneshot::channel();
        let registration = self.client.submit(partition, command, move |result| {
            // Nobody listens any more when the client has given up.
            let _ = sender.send(result);
        });
        Pending { rpc, partition, limit, receiver, registration: Some(registration) }
    }

    /// Hands a command about the entity of a key to the partition of the key.
    pub(crate) fn execute_by_key(
        &self,
        rpc: Rpc,
        target: Target,
        key: i64,
        operation_reference: Option<u64>,
        payload: impl FnOnce(Key) -> Payload,
    ) -> Result<Pending, Status> {
        let (partition, key) = route(target, key, self.client.partition_count())?;
        let command = Command { operation_reference, ..Command::new(key, payload(key)) };
        Ok(self.execute(rpc, partition, command, self.request_timeout))
    }

    pub(crate) fn complete(&self, request: CompleteJobRequest) -> Result<Pending, Status> {
        if request.result.is_some_and(|result| result != JobResult::default()) {
            return Err(status(
                Code::Unimplemented,
                "CompleteJob with a result is not supported by this version of Osmia yet: jobs of listeners and ad-hoc sub-processes are missing.",
            ));
        }
        let value = JobValue { variables: variables(request.variables)?, ..JobValue::default() };
        let target = Target { intent: JobIntent::Complete.name(), wish: "complete job", kind: "job" };
        let payload = |_| Payload::Job(JobIntent::Complete, Arc::new(value));
        self.execute_by_key(Rpc::CompleteJob, target, request.job_key, None, payload)
    }

    pub(crate) fn fail(&self, request: FailJobRequest) -> Result<Pending, Status> {
        let value = JobValue {
            variables: variables(request.variables)?,
            retries: request.retries,
            retry_backoff: request.retry_back_off,
            error_message: request.error_message.into(),
            ..JobValue::default()
        };
        let target = Target { intent: JobIntent::Fail.name(), wish: "fail job", kind: "job" };
        let payload = |_| Payload::Job(JobIntent::Fail, Arc::new(value));
        self.execute_by_key(Rpc::FailJob, target, request.job_key, None, payload)
    }

    pub(crate) fn throw(&self, request: ThrowErrorRequest) -> Result<Pending, Status> {
        let value = JobValue {
            variables: variables(request.variables)?,
            error_code: request.error_code.into(),
            error_message: request.error_message.into(),
            ..JobValue::default()
        };
        let target = Target { intent: JobIntent::ThrowError.name(), wish: "throw an error for job", kind: "job" };
        let payload = |_| Payload::Job(JobIntent::ThrowError, Arc::new(value));
        self.execute_by_key(Rpc::ThrowError, target, request.job_key, None, payload)
    }

    pub(crate) fn set_retries(&self, request: UpdateJobRetriesRequest) -> Result<Pending, Status> {
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
        self.execute_by_key(Rpc::UpdateJobRetries, target, request.job_key, reference, payload)
    }

    pub(crate) fn set_timeout(&self, request: UpdateJobTimeoutRequest) -> Result<Pending, Status> {
        let value = JobValue { timeout: request.timeout, ..JobValue::default() };
        let target = Target { intent: JobIntent::UpdateTimeout.name(), wish: "update timeout of job", kind: "job" };
        let payload = |_| Payload::Job(JobIntent::UpdateTimeout, Arc::new(value));
        let reference = request.operation_reference;
        self.execute_by_key(Rpc::UpdateJobTimeout, target, request.job_key, reference, payload)
    }

    pub(crate) fn cancel(&self, request: CancelProcessInstanceRequest) -> Result<Pending, Status> {
        let target =
            Target { intent: ProcessInstanceIntent::Cancel.name(), wish: "cancel a process instance", kind: "process" };
        let payload = |key| {
            let value = ProcessInstanceValue {
                process_instance_key: key,
                tenant_id: protocol::DEFAULT_TENANT.into(),
                ..ProcessInstanceValue::default()
            };
            Payload::ProcessInstance(ProcessInstanceIntent::Cancel, Arc::new(value))
        };
        let reference = request.operation_reference;
        self.execute_by_key(Rpc::CancelProcessInstance, target, request.process_instance_key, reference, payload)
    }

    pub(crate) fn resolve(&self, request: ResolveIncidentRequest) -> Result<Pending, Status> {
        let target = Target { intent: IncidentIntent::Resolve.name(), wish: "resolve incident", kind: "incident" };
        let payload = |_| {
            let value = IncidentValue { tenant_id: protocol::DEFAULT_TENANT.into(), ..IncidentValue::default() };
            Payload::Incident(IncidentIntent::Resolve, Box::new(value))
        };
        let reference = request.operation_reference;
        self.execute_by_key(Rpc::ResolveIncident, target, request.incident_key, reference, payload)
    }

    pub(crate) fn update_variables(&self, request: SetVariablesRequest) -> Result<Pending, Status> {
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
        self.execute_by_key(Rpc::SetVariables, target, key, reference, payload)
    }

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

    pub(crate) fn deploy(&self, request: DeployResourceRequest) -> Result<Pending, Status> {
        let resources = request.resources.into_iter().map(|resource| DeploymentResource {
            resource_name: resource.name.into(),
            resource: Arc::from(&resource.content[..]),
        });
        let tenant_id = tenant("DeployResource", &request.tenant_id)?;
        self.deploy_all(Rpc::DeployResource, resources.collect(), tenant_id)
    }

    #[allow(deprecated, reason = "old clients still call it")]
    pub(crate) fn deploy_processes(&self, request: DeployProcessRequest) -> Result<Pending, Status> {
        let resources = request.processes.into_iter().map(|process| DeploymentResource {
            resource_name: process.name.into(),
            resource: Arc::from(&process.definition[..]),
        });
        let tenant_id = protocol::DEFAULT_TENANT.into();
        self.deploy_all(Rpc::DeployProcess, resources.collect(), tenant_id)
    }

    fn deploy_all(&self, rpc: Rpc, resources: Vec<DeploymentResource>, tenant_id: Text) -> Result<Pending, Status> {
        if resources.is_empty() {
            return Err(rejected(
                DeploymentIntent::Create.name(),
                &Rejection::invalid_argument("Expected to deploy at least one resource, but none given"),
            ));
        }
        let value = DeploymentValue { resources, tenant_id, ..DeploymentValue::default() };
        let payload = Payload::Deployment(DeploymentIntent::Create, Box::new(value));
        let command = Command::new(Key::NONE, payload);
        Ok(self.execute(rpc, PartitionId::DEPLOYMENT, command, self.request_timeout))
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
