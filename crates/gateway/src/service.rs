//! The service `gateway_protocol.Gateway`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use broker::Client;
use gateway_interface::gateway_server::Gateway;
use gateway_interface::*;
use tokio::sync::watch;
use tonic::{Code, Request, Response, Status};

use crate::activation::{Activation, ActivationStream, Surroundings, Wish};
use crate::job_stream::{JobStream, JobStreams};
use crate::long_polling::LongPolling;
use crate::rpc::{Rpc, RpcMetrics};
use crate::status::{shutting_down, status};
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
    async fn measure<T>(&self, rpc: Rpc, work: impl Future<Output = Result<T, Status>>) -> Answer<T> {
        let start = Instant::now();
        let outcome = work.await;
        self.metrics.record(rpc, start, &outcome);
        outcome.map(Response::new)
    }

    fn not_yet<T>(&self, rpc: Rpc, missing: &str) -> Answer<T> {
        let message = format!("{} is not supported by this version of Osmia yet: {missing}.", rpc.name());
        let outcome = Err(status(Code::Unimplemented, message));
        self.metrics.record(rpc, Instant::now(), &outcome);
        outcome
    }

    fn activation(&self, request: ActivateJobsRequest) -> Result<Activation, Status> {
        const WISH: &str = "activate jobs";
        job_request(WISH, &request.r#type, request.timeout, &request.worker, &request.fetch_variable)?;
        if request.max_jobs_to_activate < 1 {
            return Err(expected(WISH, "maxJobsToActivate", "greater than zero", request.max_jobs_to_activate));
        }
        let patience = match u64::try_from(request.request_timeout) {
            Ok(0) => Some(self.long_polling_timeout),
            Ok(milliseconds) => Some(Duration::from_millis(milliseconds).min(PATIENCE_MAX)),
            Err(_) => None,
        };
        let wish = Wish {
            tenant_ids: tenants("ActivateJobs", &request.tenant_ids)?,
            job_type: request.r#type.into(),
            worker: request.worker.into(),
            timeout: request.timeout,
            jobs_max: request.max_jobs_to_activate,
            fetch_variables: texts(request.fetch_variable),
            patience,
        };
        let surroundings = Surroundings {
            client: self.client.clone(),
            polling: self.polling.clone(),
            request_timeout: self.request_timeout,
            shutdown: self.shutdown.clone(),
        };
        Ok(Activation::new(surroundings, wish))
    }

    fn job_stream(&self, request: StreamActivatedJobsRequest) -> Result<JobStream, Status> {
        const WISH: &str = "stream activated jobs";
        job_request(WISH, &request.r#type, request.timeout, &request.worker, &request.fetch_variable)?;
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
        Ok(JobStream::open(&self.client, &self.streams, specification, self.shutdown.clone()))
    }
}

/// No request waits longer than a day: clients that want longer ask again.
const PATIENCE_MAX: Duration = Duration::from_secs(24 * 60 * 60);

#[tonic::async_trait]
impl Gateway for Service {
    type ActivateJobsStream = ActivationStream;
    type StreamActivatedJobsStream = JobStream;

    async fn activate_jobs(&self, request: Request<ActivateJobsRequest>) -> Answer<ActivationStream> {
        let work = async { self.activation(request.into_inner()).map(ActivationStream::new) };
        self.measure(Rpc::ActivateJobs, work).await
    }

    async fn stream_activated_jobs(&self, request: Request<StreamActivatedJobsRequest>) -> Answer<JobStream> {
        self.measure(Rpc::StreamActivatedJobs, async { self.job_stream(request.into_inner()) }).await
    }

    async fn complete_job(&self, request: Request<CompleteJobRequest>) -> Answer<CompleteJobResponse> {
        self.measure(Rpc::CompleteJob, self.complete(request.into_inner())).await
    }

    async fn fail_job(&self, request: Request<FailJobRequest>) -> Answer<FailJobResponse> {
        self.measure(Rpc::FailJob, self.fail(request.into_inner())).await
    }

    async fn throw_error(&self, request: Request<ThrowErrorRequest>) -> Answer<ThrowErrorResponse> {
        self.measure(Rpc::ThrowError, self.throw(request.into_inner())).await
    }

    async fn update_job_retries(&self, request: Request<UpdateJobRetriesRequest>) -> Answer<UpdateJobRetriesResponse> {
        self.measure(Rpc::UpdateJobRetries, self.set_retries(request.into_inner())).await
    }

    async fn update_job_timeout(&self, request: Request<UpdateJobTimeoutRequest>) -> Answer<UpdateJobTimeoutResponse> {
        self.measure(Rpc::UpdateJobTimeout, self.set_timeout(request.into_inner())).await
    }

    async fn create_process_instance(
        &self,
        request: Request<CreateProcessInstanceRequest>,
    ) -> Answer<CreateProcessInstanceResponse> {
        self.measure(Rpc::CreateProcessInstance, self.create(request.into_inner())).await
    }

    async fn create_process_instance_with_result(
        &self,
        request: Request<CreateProcessInstanceWithResultRequest>,
    ) -> Answer<CreateProcessInstanceWithResultResponse> {
        self.measure(Rpc::CreateProcessInstanceWithResult, self.create_with_result(request.into_inner())).await
    }

    async fn cancel_process_instance(
        &self,
        request: Request<CancelProcessInstanceRequest>,
    ) -> Answer<CancelProcessInstanceResponse> {
        self.measure(Rpc::CancelProcessInstance, self.cancel(request.into_inner())).await
    }

    async fn modify_process_instance(
        &self,
        _: Request<ModifyProcessInstanceRequest>,
    ) -> Answer<ModifyProcessInstanceResponse> {
        self.not_yet(Rpc::ModifyProcessInstance, "running instances cannot be modified")
    }

    async fn migrate_process_instance(
        &self,
        _: Request<MigrateProcessInstanceRequest>,
    ) -> Answer<MigrateProcessInstanceResponse> {
        self.not_yet(Rpc::MigrateProcessInstance, "running instances cannot be migrated to another process definition")
    }

    async fn set_variables(&self, request: Request<SetVariablesRequest>) -> Answer<SetVariablesResponse> {
        self.measure(Rpc::SetVariables, self.update_variables(request.into_inner())).await
    }

    async fn resolve_incident(&self, request: Request<ResolveIncidentRequest>) -> Answer<ResolveIncidentResponse> {
        self.measure(Rpc::ResolveIncident, self.resolve(request.into_inner())).await
    }

    async fn deploy_resource(&self, request: Request<DeployResourceRequest>) -> Answer<DeployResourceResponse> {
        self.measure(Rpc::DeployResource, self.deploy(request.into_inner())).await
    }

    #[allow(deprecated, reason = "old clients still call it")]
    async fn deploy_process(&self, request: Request<DeployProcessRequest>) -> Answer<DeployProcessResponse> {
        self.measure(Rpc::DeployProcess, self.deploy_processes(request.into_inner())).await
    }

    async fn delete_resource(&self, _: Request<DeleteResourceRequest>) -> Answer<DeleteResourceResponse> {
        self.not_yet(Rpc::DeleteResource, "deployed resources cannot be deleted")
    }

    async fn publish_message(&self, _: Request<PublishMessageRequest>) -> Answer<PublishMessageResponse> {
        self.not_yet(Rpc::PublishMessage, "messages and message events are missing")
    }

    async fn broadcast_signal(&self, _: Request<BroadcastSignalRequest>) -> Answer<BroadcastSignalResponse> {
        self.not_yet(Rpc::BroadcastSignal, "signals and signal events are missing")
    }

    async fn evaluate_decision(&self, _: Request<EvaluateDecisionRequest>) -> Answer<EvaluateDecisionResponse> {
        self.not_yet(Rpc::EvaluateDecision, "decisions (DMN) are missing")
    }

    async fn evaluate_conditional(
        &self,
        _: Request<EvaluateConditionalRequest>,
    ) -> Answer<EvaluateConditionalResponse> {
        self.not_yet(Rpc::EvaluateConditional, "conditional start events are missing")
    }

    async fn topology(&self, _: Request<TopologyRequest>) -> Answer<TopologyResponse> {
        self.measure(Rpc::Topology, async { Ok(crate::topology::topology(&self.client.cluster())) }).await
    }
}
