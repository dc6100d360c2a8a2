//! The service `gateway_protocol.Gateway`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use broker::{Client, Reply};
use gateway_interface::gateway_server::Gateway;
use gateway_interface::*;
use prost::Message;
use tokio::sync::watch;
use tonic::{Code, Request, Response, Status};

use crate::activation::{Activation, ActivationContext, ActivationRequest, ActivationStream};
use crate::answers::AnswerSlot;
use crate::commands::Pending;
use crate::conversion;
use crate::job_stream::{JobStream, JobStreams};
use crate::long_polling::LongPolling;
use crate::openings::Openings;
use crate::rpc::{Rpc, RpcMetrics};
use crate::status::{shutting_down, status};
use crate::topology::topology;
use crate::validation::{expected, job_request, tenants, texts};

/// Answers requests by handing commands to the node.
pub(crate) struct Service {
    pub client: Client,
    pub polling: Arc<LongPolling>,
    pub streams: Arc<JobStreams>,
    pub metrics: RpcMetrics,
    pub request_timeout: Duration,
    pub long_polling_timeout: Duration,
    pub shutdown: watch::Receiver<bool>,
}

type Answer<T> = Result<Response<T>, Status>;

impl Service {
    /// A request that is answered without waiting.
    fn measure<T>(&self, rpc: Rpc, work: impl FnOnce() -> Result<T, Status>) -> Answer<T> {
        let start = Instant::now();
        let outcome = work();
        self.metrics.record(rpc, start, &outcome);
        outcome.map(Response::new)
    }

    /// Waits for the answer to a command, if it was sent, and makes the response from it.
    async fn answer<T>(
        &self,
        rpc: Rpc,
        start: Instant,
        sent: Result<Pending, Status>,
        convert: impl FnOnce(Reply) -> Result<T, Status>,
    ) -> Answer<T> {
        let reply = match sent {
            Ok(pending) => pending.reply().await,
            Err(status) => Err(status),
        };
        let outcome = reply.and_then(convert);
        self.metrics.record(rpc, start, &outcome);
        outcome.map(Response::new)
    }

    fn not_yet<T>(&self, rpc: Rpc, missing: &str) -> Answer<T> {
        let message = format!("{} is not supported by this version of Osmia yet: {missing}.", rpc.name());
        let outcome = Err(status(Code::Unimplemented, message));
        self.metrics.record(rpc, Instant::now(), &outcome);
        outcome
    }

    /// The same for an answer that may be large: it has its place among those that were not read.
    fn counted<T: prost::Message>(&self, rpc: Rpc, slot: &AnswerSlot, response: T) -> Result<T, Status> {
        slot.put(slot.take(rpc, response.encoded_len())?);
        Ok(response)
    }

    fn activation(&self, request: ActivateJobsRequest, slot: AnswerSlot) -> Result<Activation, Status> {
        const ACTION: &str = "activate jobs";
        job_request(ACTION, &request.r#type, request.timeout, &request.worker, &request.fetch_variable)?;
        if request.max_jobs_to_activate < 1 {
            return Err(expected(ACTION, "maxJobsToActivate", "greater than zero", request.max_jobs_to_activate));
        }
        let wait_limit = match u64::try_from(request.request_timeout) {
            Ok(0) => Some(self.long_polling_timeout),
            Ok(milliseconds) => Some(Duration::from_millis(milliseconds).min(WAIT_LIMIT_MAX)),
            Err(_) => None,
        };
        let request = ActivationRequest {
            tenant_ids: tenants("ActivateJobs", &request.tenant_ids)?,
            job_type: request.r#type.into(),
            worker: request.worker.into(),
            timeout: request.timeout,
            jobs_max: request.max_jobs_to_activate,
            fetch_variables: texts(request.fetch_variable),
            wait_limit,
        };
        let context = ActivationContext {
            client: self.client.clone(),
            polling: self.polling.clone(),
            request_timeout: self.request_timeout,
            shutdown: self.shutdown.clone(),
            slot,
        };
        Ok(Activation::new(context, request))
    }

    fn job_stream(
        &self,
        request: StreamActivatedJobsRequest,
        openings: Option<&Openings>,
    ) -> Result<JobStream, Status> {
        const ACTION: &str = "stream activated jobs";
        job_request(ACTION, &request.r#type, request.timeout, &request.worker, &request.fetch_variable)?;
        if *self.shutdown.borrow() {
            return Err(shutting_down());
        }
        let specification = broker::StreamSpecification {
            tenant_ids: tenants("StreamActivatedJobs", &request.tenant_ids)?,
            job_type: request.r#type.into(),
            worker: request.worker.into(),
            timeout: request.timeout,
            fetch_variables: texts(request.fetch_variable),
        };
        JobStream::open(&self.client, &self.streams, openings, specification, self.shutdown.clone())
    }
}

/// No request waits longer than a day: clients that want longer ask again.
const WAIT_LIMIT_MAX: Duration = Duration::from_secs(24 * 60 * 60);

#[tonic::async_trait]
impl Gateway for Service {
    type ActivateJobsStream = ActivationStream;
    type StreamActivatedJobsStream = JobStream;

    async fn activate_jobs(&self, request: Request<ActivateJobsRequest>) -> Answer<ActivationStream> {
        let slot = slot(&request);
        let request = request.into_inner();
        self.measure(Rpc::ActivateJobs, || self.activation(request, slot).map(ActivationStream::new))
    }

    async fn stream_activated_jobs(&self, request: Request<StreamActivatedJobsRequest>) -> Answer<JobStream> {
        let openings = request.extensions().get::<Openings>().cloned();
        self.measure(Rpc::StreamActivatedJobs, || self.job_stream(request.into_inner(), openings.as_ref()))
    }

    async fn complete_job(&self, request: Request<CompleteJobRequest>) -> Answer<CompleteJobResponse> {
        let (start, sent) = (Instant::now(), self.complete(request.into_inner()));
        self.answer(Rpc::CompleteJob, start, sent, |_| Ok(CompleteJobResponse {})).await
    }

    async fn fail_job(&self, request: Request<FailJobRequest>) -> Answer<FailJobResponse> {
        let (start, sent) = (Instant::now(), self.fail(request.into_inner()));
        self.answer(Rpc::FailJob, start, sent, |_| Ok(FailJobResponse {})).await
    }

    async fn throw_error(&self, request: Request<ThrowErrorRequest>) -> Answer<ThrowErrorResponse> {
        let (start, sent) = (Instant::now(), self.throw(request.into_inner()));
        self.answer(Rpc::ThrowError, start, sent, |_| Ok(ThrowErrorResponse {})).await
    }

    async fn update_job_retries(&self, request: Request<UpdateJobRetriesRequest>) -> Answer<UpdateJobRetriesResponse> {
        let (start, sent) = (Instant::now(), self.set_retries(request.into_inner()));
        self.answer(Rpc::UpdateJobRetries, start, sent, |_| Ok(UpdateJobRetriesResponse {})).await
    }

    async fn update_job_timeout(&self, request: Request<UpdateJobTimeoutRequest>) -> Answer<UpdateJobTimeoutResponse> {
        let (start, sent) = (Instant::now(), self.set_timeout(request.into_inner()));
        self.answer(Rpc::UpdateJobTimeout, start, sent, |_| Ok(UpdateJobTimeoutResponse {})).await
    }

    async fn create_process_instance(
        &self,
        request: Request<CreateProcessInstanceRequest>,
    ) -> Answer<CreateProcessInstanceResponse> {
        let (start, sent) = (Instant::now(), self.create(request.into_inner()));
        self.answer(Rpc::CreateProcessInstance, start, sent, conversion::created).await
    }

    async fn create_process_instance_with_result(
        &self,
        request: Request<CreateProcessInstanceWithResultRequest>,
    ) -> Answer<CreateProcessInstanceWithResultResponse> {
        const RPC: Rpc = Rpc::CreateProcessInstanceWithResult;
        let slot = slot(&request);
        let (start, sent) = (Instant::now(), self.create_with_result(request.into_inner()));
        let convert = |reply| conversion::result(reply).and_then(|response| self.counted(RPC, &slot, response));
        self.answer(RPC, start, sent, convert).await
    }

    async fn cancel_process_instance(
        &self,
        request: Request<CancelProcessInstanceRequest>,
    ) -> Answer<CancelProcessInstanceResponse> {
        let (start, sent) = (Instant::now(), self.cancel(request.into_inner()));
        self.answer(Rpc::CancelProcessInstance, start, sent, |_| Ok(CancelProcessInstanceResponse {})).await
    }

    async fn modify_process_instance(
        &self,
        request: Request<ModifyProcessInstanceRequest>,
    ) -> Answer<ModifyProcessInstanceResponse> {
        let (start, sent) = (Instant::now(), self.modify(request.into_inner()));
        self.answer(Rpc::ModifyProcessInstance, start, sent, |_| Ok(ModifyProcessInstanceResponse {})).await
    }

    async fn migrate_process_instance(
        &self,
        request: Request<MigrateProcessInstanceRequest>,
    ) -> Answer<MigrateProcessInstanceResponse> {
        let (start, sent) = (Instant::now(), self.migrate(request.into_inner()));
        self.answer(Rpc::MigrateProcessInstance, start, sent, |_| Ok(MigrateProcessInstanceResponse {})).await
    }

    async fn set_variables(&self, request: Request<SetVariablesRequest>) -> Answer<SetVariablesResponse> {
        let (start, sent) = (Instant::now(), self.update_variables(request.into_inner()));
        self.answer(Rpc::SetVariables, start, sent, |reply| Ok(SetVariablesResponse { key: reply.key.raw() })).await
    }

    async fn resolve_incident(&self, request: Request<ResolveIncidentRequest>) -> Answer<ResolveIncidentResponse> {
        let (start, sent) = (Instant::now(), self.resolve(request.into_inner()));
        self.answer(Rpc::ResolveIncident, start, sent, |_| Ok(ResolveIncidentResponse {})).await
    }

    async fn deploy_resource(&self, request: Request<DeployResourceRequest>) -> Answer<DeployResourceResponse> {
        const RPC: Rpc = Rpc::DeployResource;
        let slot = slot(&request);
        let (start, sent) = (Instant::now(), self.deploy(request.into_inner()));
        let convert = |reply| conversion::deployed(reply).and_then(|response| self.counted(RPC, &slot, response));
        self.answer(RPC, start, sent, convert).await
    }

    #[allow(deprecated, reason = "old clients still call it")]
    async fn deploy_process(&self, request: Request<DeployProcessRequest>) -> Answer<DeployProcessResponse> {
        const RPC: Rpc = Rpc::DeployProcess;
        let slot = slot(&request);
        let (start, sent) = (Instant::now(), self.deploy_processes(request.into_inner()));
        let convert =
            |reply| conversion::deployed_processes(reply).and_then(|response| self.counted(RPC, &slot, response));
        self.answer(RPC, start, sent, convert).await
    }

    async fn delete_resource(&self, request: Request<DeleteResourceRequest>) -> Answer<DeleteResourceResponse> {
        let (start, sent) = (Instant::now(), self.delete(request.into_inner()));
        self.answer(Rpc::DeleteResource, start, sent, conversion::deleted).await
    }

    async fn publish_message(&self, request: Request<PublishMessageRequest>) -> Answer<PublishMessageResponse> {
        let (start, sent) = (Instant::now(), self.publish(request.into_inner()));
        self.answer(Rpc::PublishMessage, start, sent, conversion::published).await
    }

    async fn broadcast_signal(&self, _: Request<BroadcastSignalRequest>) -> Answer<BroadcastSignalResponse> {
        self.not_yet(Rpc::BroadcastSignal, "signals and signal events are missing")
    }

    async fn evaluate_decision(&self, request: Request<EvaluateDecisionRequest>) -> Answer<EvaluateDecisionResponse> {
        const RPC: Rpc = Rpc::EvaluateDecision;
        let (start, slot) = (Instant::now(), slot(&request));
        // Nothing is evaluated as long as there is no room for what it gives.
        let mut reserved = slot.reserve(RPC, self.request_timeout).await;
        let sent = match &reserved {
            Ok(_) => self.evaluate(request.into_inner()),
            Err(status) => Err(status.clone()),
        };
        let convert = |reply| {
            let response = conversion::evaluated(reply)?;
            if let Ok(bytes) = &mut reserved {
                bytes.settle(response.encoded_len())?;
            }
            if let Ok(bytes) = reserved {
                slot.put(bytes);
            }
            Ok(response)
        };
        self.answer(RPC, start, sent, convert).await
    }

    async fn evaluate_conditional(
        &self,
        _: Request<EvaluateConditionalRequest>,
    ) -> Answer<EvaluateConditionalResponse> {
        self.not_yet(Rpc::EvaluateConditional, "conditional start events are missing")
    }

    async fn topology(&self, request: Request<TopologyRequest>) -> Answer<TopologyResponse> {
        let slot = slot(&request);
        self.measure(Rpc::Topology, || self.counted(Rpc::Topology, &slot, topology(&self.client.cluster())))
    }
}

/// Where the answer to a request is counted.
fn slot<T>(request: &Request<T>) -> AnswerSlot {
    request.extensions().get::<AnswerSlot>().cloned().unwrap_or_default()
}
