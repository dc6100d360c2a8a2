//! The service `gateway_protocol.Gateway`.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use gateway_interface::gateway_server::Gateway;
use gateway_interface::*;
use prost::Message;
use tokio::sync::watch;
use tokio_stream::Stream;
use tonic::{Request, Response, Status};

use super::rpc::{Rpc, RpcMetrics};
use super::status;
use super::topology::topology;
use super::{answers, requests};
use crate::activation::{Activation, ActivationContext, ActivationStream};
use crate::answers::{AnswerSlot, LargeAnswer};
use crate::executor::{Executor, Pending};
use crate::job_stream::{JobStream, JobStreams};
use crate::long_polling::LongPolling;
use crate::openings::Openings;
use crate::outcome::Failure;

/// Answers requests by handing them to the executor.
#[derive(Clone)]
pub(crate) struct Service {
    executor: Executor,
    polling: Arc<LongPolling>,
    streams: Arc<JobStreams>,
    metrics: Arc<RpcMetrics>,
    long_polling_timeout: Duration,
    shutdown: watch::Receiver<bool>,
}

type Answer<T> = Result<Response<T>, Status>;

impl Service {
    /// With the time for which requests for jobs wait that do not say, until `stopping` says that the server stops.
    pub(crate) fn new(
        executor: Executor,
        polling: Arc<LongPolling>,
        streams: Arc<JobStreams>,
        long_polling_timeout: Duration,
        stopping: &watch::Receiver<bool>,
    ) -> Self {
        let (metrics, shutdown) = (Arc::new(RpcMetrics::new()), stopping.clone());
        Service { executor, polling, streams, metrics, long_polling_timeout, shutdown }
    }

    /// For one more connection.
    pub(crate) fn of_connection(&self) -> Self {
        Service { executor: self.executor.of_new_sender(), ..self.clone() }
    }

    /// A request is over.
    fn finish<T>(&self, rpc: Rpc, start: Instant, outcome: Result<T, Failure>) -> Answer<T> {
        let outcome = outcome.map_err(|failure| status::of(rpc.name(), &failure));
        self.metrics.record(rpc, start, &outcome);
        outcome.map(Response::new)
    }

    /// A request that is answered without waiting.
    fn measure<T>(&self, rpc: Rpc, work: impl FnOnce() -> Result<T, Failure>) -> Answer<T> {
        let start = Instant::now();
        self.finish(rpc, start, work())
    }

    /// Hands over what a message asks for.
    fn send<R: crate::request::Request>(&self, request: Result<R, Failure>) -> Result<Pending<R>, Failure> {
        self.executor.submit(request?)
    }

    /// Waits for the answer to a request, if it was sent, and makes the response from it.
    async fn answer<R: crate::request::Request, T>(
        &self,
        rpc: Rpc,
        start: Instant,
        sent: Result<Pending<R>, Failure>,
        render: impl FnOnce(R::Answer) -> Result<T, Failure>,
    ) -> Answer<T> {
        debug_assert_eq!(rpc.is_start(), R::STARTS_WORK, "{rpc:?} makes another request than it names");
        let outcome = match sent {
            Ok(pending) => pending.outcome().await.and_then(|answered| render(answered.value)),
            Err(failure) => Err(failure),
        };
        self.finish(rpc, start, outcome)
    }

    fn activation(&self, request: ActivateJobsRequest, slot: AnswerSlot) -> Result<Activation, Failure> {
        let request = requests::activation(request, self.long_polling_timeout)?;
        let context = ActivationContext {
            executor: self.executor.clone(),
            polling: self.polling.clone(),
            shutdown: self.shutdown.clone(),
            slot,
        };
        Ok(Activation::new(context, request))
    }

    fn job_stream(
        &self,
        request: StreamActivatedJobsRequest,
        openings: Option<&Openings>,
    ) -> Result<JobStream, Failure> {
        let specification = requests::job_stream(request)?;
        if *self.shutdown.borrow() {
            return Err(Failure::ShuttingDown);
        }
        let shutdown = self.shutdown.clone();
        JobStream::open(&self.executor.client, &self.streams, openings, specification, shutdown)
    }
}

/// An answer that may be large has its place among those that were not read.
fn counted<T: Message>(kind: LargeAnswer, slot: &AnswerSlot, response: T) -> Result<T, Failure> {
    slot.put(slot.take(kind, response.encoded_len())?);
    Ok(response)
}

/// The messages with the jobs of one request.
pub(crate) struct ActivatedJobs(ActivationStream);

impl Stream for ActivatedJobs {
    type Item = Result<ActivateJobsResponse, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Pin::new(&mut self.0).poll_next(context).map(|item| {
            item.map(|part| match part {
                Ok(jobs) => {
                    let jobs = jobs.deliver().into_iter();
                    Ok(ActivateJobsResponse {
                        jobs: jobs.map(|(key, job)| answers::activated_job(key, &job)).collect(),
                    })
                }
                Err(failure) => Err(status::of(Rpc::ActivateJobs.name(), &failure)),
            })
        })
    }
}

/// The messages with the jobs of one stream.
pub(crate) struct PushedJobs(JobStream);

impl Stream for PushedJobs {
    type Item = Result<ActivatedJob, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Pin::new(&mut self.0).poll_next(context).map(|item| {
            item.map(|pushed| match pushed {
                Ok(push) => Ok(answers::activated_job(push.key, &push.job)),
                Err(failure) => Err(status::of(Rpc::StreamActivatedJobs.name(), &failure)),
            })
        })
    }
}

#[tonic::async_trait]
impl Gateway for Service {
    type ActivateJobsStream = ActivatedJobs;
    type StreamActivatedJobsStream = PushedJobs;

    async fn activate_jobs(&self, request: Request<ActivateJobsRequest>) -> Answer<ActivatedJobs> {
        let slot = slot(&request);
        let request = request.into_inner();
        self.measure(Rpc::ActivateJobs, || {
            self.activation(request, slot).map(|activation| ActivatedJobs(ActivationStream::new(activation)))
        })
    }

    async fn stream_activated_jobs(&self, request: Request<StreamActivatedJobsRequest>) -> Answer<PushedJobs> {
        let openings = request.extensions().get::<Openings>().cloned();
        self.measure(Rpc::StreamActivatedJobs, || {
            self.job_stream(request.into_inner(), openings.as_ref()).map(PushedJobs)
        })
    }

    async fn complete_job(&self, request: Request<CompleteJobRequest>) -> Answer<CompleteJobResponse> {
        let (start, sent) = (Instant::now(), self.send(requests::complete_job(request.into_inner())));
        self.answer(Rpc::CompleteJob, start, sent, |()| Ok(CompleteJobResponse {})).await
    }

    async fn fail_job(&self, request: Request<FailJobRequest>) -> Answer<FailJobResponse> {
        let (start, sent) = (Instant::now(), self.send(requests::fail_job(request.into_inner())));
        self.answer(Rpc::FailJob, start, sent, |()| Ok(FailJobResponse {})).await
    }

    async fn throw_error(&self, request: Request<ThrowErrorRequest>) -> Answer<ThrowErrorResponse> {
        let (start, sent) = (Instant::now(), self.send(requests::throw_error(request.into_inner())));
        self.answer(Rpc::ThrowError, start, sent, |()| Ok(ThrowErrorResponse {})).await
    }

    async fn update_job_retries(&self, request: Request<UpdateJobRetriesRequest>) -> Answer<UpdateJobRetriesResponse> {
        let (start, sent) = (Instant::now(), self.send(requests::update_job_retries(request.into_inner())));
        self.answer(Rpc::UpdateJobRetries, start, sent, |()| Ok(UpdateJobRetriesResponse {})).await
    }

    async fn update_job_timeout(&self, request: Request<UpdateJobTimeoutRequest>) -> Answer<UpdateJobTimeoutResponse> {
        let (start, sent) = (Instant::now(), self.send(requests::update_job_timeout(request.into_inner())));
        self.answer(Rpc::UpdateJobTimeout, start, sent, |()| Ok(UpdateJobTimeoutResponse {})).await
    }

    async fn create_process_instance(
        &self,
        request: Request<CreateProcessInstanceRequest>,
    ) -> Answer<CreateProcessInstanceResponse> {
        let (start, sent) = (Instant::now(), self.send(requests::create_process_instance(request.into_inner())));
        self.answer(Rpc::CreateProcessInstance, start, sent, |created| Ok(answers::created(&created))).await
    }

    async fn create_process_instance_with_result(
        &self,
        request: Request<CreateProcessInstanceWithResultRequest>,
    ) -> Answer<CreateProcessInstanceWithResultResponse> {
        const RPC: Rpc = Rpc::CreateProcessInstanceWithResult;
        let slot = slot(&request);
        let (start, sent) =
            (Instant::now(), self.send(requests::create_process_instance_with_result(request.into_inner())));
        let render = |ended: Box<_>| counted(LargeAnswer::ProcessInstanceResult, &slot, answers::result(&ended));
        self.answer(RPC, start, sent, render).await
    }

    async fn cancel_process_instance(
        &self,
        request: Request<CancelProcessInstanceRequest>,
    ) -> Answer<CancelProcessInstanceResponse> {
        let (start, sent) = (Instant::now(), self.send(requests::cancel_process_instance(request.into_inner())));
        self.answer(Rpc::CancelProcessInstance, start, sent, |()| Ok(CancelProcessInstanceResponse {})).await
    }

    async fn modify_process_instance(
        &self,
        request: Request<ModifyProcessInstanceRequest>,
    ) -> Answer<ModifyProcessInstanceResponse> {
        let (start, sent) = (Instant::now(), self.send(requests::modify_process_instance(request.into_inner())));
        self.answer(Rpc::ModifyProcessInstance, start, sent, |()| Ok(ModifyProcessInstanceResponse {})).await
    }

    async fn migrate_process_instance(
        &self,
        request: Request<MigrateProcessInstanceRequest>,
    ) -> Answer<MigrateProcessInstanceResponse> {
        let (start, sent) = (Instant::now(), self.send(requests::migrate_process_instance(request.into_inner())));
        self.answer(Rpc::MigrateProcessInstance, start, sent, |()| Ok(MigrateProcessInstanceResponse {})).await
    }

    async fn set_variables(&self, request: Request<SetVariablesRequest>) -> Answer<SetVariablesResponse> {
        let (start, sent) = (Instant::now(), self.send(requests::set_variables(request.into_inner())));
        self.answer(Rpc::SetVariables, start, sent, |key| Ok(SetVariablesResponse { key: key.raw() })).await
    }

    async fn resolve_incident(&self, request: Request<ResolveIncidentRequest>) -> Answer<ResolveIncidentResponse> {
        let (start, sent) = (Instant::now(), self.send(requests::resolve_incident(request.into_inner())));
        self.answer(Rpc::ResolveIncident, start, sent, |()| Ok(ResolveIncidentResponse {})).await
    }

    async fn deploy_resource(&self, request: Request<DeployResourceRequest>) -> Answer<DeployResourceResponse> {
        const RPC: Rpc = Rpc::DeployResource;
        let slot = slot(&request);
        let (start, sent) = (Instant::now(), self.send(requests::deploy_resource(request.into_inner())));
        let render = |deployed| counted(LargeAnswer::Deployment, &slot, answers::deployed(deployed));
        self.answer(RPC, start, sent, render).await
    }

    #[allow(deprecated, reason = "old clients still call it")]
    async fn deploy_process(&self, request: Request<DeployProcessRequest>) -> Answer<DeployProcessResponse> {
        const RPC: Rpc = Rpc::DeployProcess;
        let slot = slot(&request);
        let (start, sent) = (Instant::now(), self.send(requests::deploy_process(request.into_inner())));
        let render = |deployed| counted(LargeAnswer::Deployment, &slot, answers::deployed_processes(deployed));
        self.answer(RPC, start, sent, render).await
    }

    async fn delete_resource(&self, request: Request<DeleteResourceRequest>) -> Answer<DeleteResourceResponse> {
        let (start, sent) = (Instant::now(), self.send(requests::delete_resource(request.into_inner())));
        self.answer(Rpc::DeleteResource, start, sent, |key| Ok(answers::deleted(key))).await
    }

    async fn publish_message(&self, request: Request<PublishMessageRequest>) -> Answer<PublishMessageResponse> {
        let (start, sent) = (Instant::now(), self.send(requests::publish_message(request.into_inner())));
        self.answer(Rpc::PublishMessage, start, sent, |message| Ok(answers::published(&message))).await
    }

    async fn broadcast_signal(&self, request: Request<BroadcastSignalRequest>) -> Answer<BroadcastSignalResponse> {
        let (start, sent) = (Instant::now(), self.send(requests::broadcast_signal(request.into_inner())));
        self.answer(Rpc::BroadcastSignal, start, sent, |signal| Ok(answers::broadcasted(&signal))).await
    }

    async fn evaluate_decision(&self, request: Request<EvaluateDecisionRequest>) -> Answer<EvaluateDecisionResponse> {
        const RPC: Rpc = Rpc::EvaluateDecision;
        let (start, slot) = (Instant::now(), slot(&request));
        // Nothing is evaluated as long as there is no room for what it gives.
        let mut reserved = slot.reserve(LargeAnswer::DecisionEvaluation, self.executor.request_timeout).await;
        let sent = match &reserved {
            Ok(_) => self.send(requests::evaluate_decision(request.into_inner())),
            Err(failure) => Err(failure.clone()),
        };
        let render = |evaluated| {
            let response = answers::evaluated(evaluated);
            if let Ok(bytes) = &mut reserved {
                bytes.settle(response.encoded_len())?;
            }
            if let Ok(bytes) = reserved {
                slot.put(bytes);
            }
            Ok(response)
        };
        self.answer(RPC, start, sent, render).await
    }

    async fn evaluate_conditional(
        &self,
        request: Request<EvaluateConditionalRequest>,
    ) -> Answer<EvaluateConditionalResponse> {
        let (start, sent) = (Instant::now(), self.send(requests::evaluate_conditional(request.into_inner())));
        let render = |evaluated| Ok(answers::evaluated_conditional(evaluated));
        self.answer(Rpc::EvaluateConditional, start, sent, render).await
    }

    async fn topology(&self, request: Request<TopologyRequest>) -> Answer<TopologyResponse> {
        let slot = slot(&request);
        self.measure(Rpc::Topology, || counted(LargeAnswer::Topology, &slot, topology(&self.executor.client.cluster())))
    }
}

/// Where the answer to a request is counted.
fn slot<T>(request: &Request<T>) -> AnswerSlot {
    request.extensions().get::<AnswerSlot>().cloned().unwrap_or_default()
}
