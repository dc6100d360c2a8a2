//! The port.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use broker::Client;
use gateway_interface::gateway_server::GatewayServer;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;
use tonic::body::Body;
use tonic::codec::CompressionEncoding;
use tonic::codegen::http::{Request, Response};
use tonic::codegen::{BoxFuture, Service as HttpService};
use tonic::server::NamedService;
use tonic::{Code, Status};
use tonic_health::ServingStatus;
use tonic_health::pb::health_server::{Health, HealthServer};
use tonic_health::server::HealthReporter;

use crate::answers::{Answers, Counted};
use crate::intake::Intake;
use crate::job_stream::JobStreams;
use crate::listener::{self, Answer, Caller, Listener};
use crate::long_polling::LongPolling;
use crate::rpc::{Rpc, RpcMetrics};
use crate::service::Service;
use crate::starts::Starts;
use crate::status::status;
use crate::topology;
use crate::{GatewayOptions, MESSAGE_BYTES_MAX, StartError};

/// How often long polls look for partitions to ask again.
const TICK: Duration = Duration::from_millis(100);
/// How often metrics are brought up to date that do not follow from a request.
const REPORT_INTERVAL: Duration = Duration::from_secs(5);
/// How long requests may take to end when the server stops.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// A serving gateway.
pub struct Gateway {
    address: SocketAddr,
    health: HealthReporter,
    shutdown: watch::Sender<bool>,
    server: JoinHandle<()>,
    background: [JoinHandle<()>; 3],
    streams: Arc<JobStreams>,
    /// The server has ended.
    is_over: bool,
}

impl Gateway {
    /// Listens and serves, on the current async runtime.
    ///
    /// # Errors
    /// When the address cannot be used, or certificate and key cannot be read.
    pub async fn start(client: Client, options: GatewayOptions) -> Result<Gateway, StartError> {
        let tls = options.tls.as_ref().map(listener::tls).transpose()?;
        let bind_error = |source| StartError::Bind { address: options.address, source };
        let listener = TcpListener::bind(options.address).await.map_err(bind_error)?;
        let address = listener.local_addr().map_err(bind_error)?;

        let (shutdown, stopping) = watch::channel(false);
        let polling = LongPolling::new(&client, options.parked_polls_max);
        let streams = JobStreams::new(options.job_streams_max);
        let (starts, answers) = (Starts::new(), Answers::new());
        let background = [
            tokio::spawn(tick(polling.clone())),
            tokio::spawn(report(client.clone(), streams.clone(), answers.clone())),
            tokio::spawn(starts.clone().adapt()),
        ];
        let service = Service {
            client,
            polling,
            streams: streams.clone(),
            metrics: RpcMetrics::new(),
            request_timeout: options.request_timeout,
            long_polling_timeout: options.long_polling_timeout,
            shutdown: stopping.clone(),
        };
        let (health, health_server) = tonic_health::server::health_reporter();
        health.set_service_status(gateway_interface::SERVICE_NAME, ServingStatus::Serving).await;
        let services = Services {
            // Some clients compress every request. The limit on messages counts what they unpack to.
            gateway: GatewayServer::new(service)
                .max_decoding_message_size(MESSAGE_BYTES_MAX)
                .accept_compressed(CompressionEncoding::Gzip),
            health: health_server.accept_compressed(CompressionEncoding::Gzip),
            intake: Intake::new(),
        };
        let listener = Listener {
            listener,
            tls,
            starts,
            answers,
            connections: options.connections,
            job_streams_max: (options.job_streams_max / 2).max(1),
        };
        let server = listener.serve(services, stopping);
        Ok(Gateway { address, health, shutdown, server: tokio::spawn(server), background, streams, is_over: false })
    }

    /// Where it listens; with the port that was taken when any was allowed.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The job streams that workers hold open here.
    pub fn job_streams(&self) -> Arc<JobStreams> {
        self.streams.clone()
    }

    /// Completes when the server ends without being stopped: then no client is served any more.
    pub async fn ended(&mut self) {
        if let Err(error) = (&mut self.server).await {
            tracing::error!(%error, "the gRPC server failed");
        }
        self.is_over = true;
    }

    /// Ends streams and waiting polls with `UNAVAILABLE`, lets other requests finish, and stops listening.
    pub async fn stop(self) {
        self.health.set_service_status("", ServingStatus::NotServing).await;
        self.health.set_service_status(gateway_interface::SERVICE_NAME, ServingStatus::NotServing).await;
        self.background.iter().for_each(JoinHandle::abort);
        // If nothing listens, the server has ended by itself.
        let _ = self.shutdown.send(true);
        if self.is_over {
            return;
        }
        let mut server = self.server;
        match tokio::time::timeout(STOP_TIMEOUT, &mut server).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::error!(%error, "the gRPC server failed"),
            Err(_) => {
                tracing::warn!("some clients keep their connections open; they are cut off");
                server.abort();
            }
        }
    }
}

async fn tick(polling: Arc<LongPolling>) {
    let mut interval = tokio::time::interval(TICK);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        polling.tick(Instant::now());
    }
}

async fn report(client: Client, streams: Arc<JobStreams>, answers: Answers) {
    let mut interval = tokio::time::interval(REPORT_INTERVAL);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        topology::report(&client.cluster());
        streams.count_distinct();
        answers.report();
    }
}

/// The services of the port, by their name in the path.
struct Services<H: Health> {
    gateway: GatewayServer<Service>,
    health: HealthServer<H>,
    intake: Intake,
}

impl<H: Health> Clone for Services<H> {
    fn clone(&self) -> Self {
        Services { gateway: self.gateway.clone(), health: self.health.clone(), intake: self.intake.clone() }
    }
}

impl<H: Health> Answer for Services<H> {
    fn answer(&self, mut request: Request<Body>, caller: &Caller) -> BoxFuture<Response<Body>, Infallible> {
        let mut names = request.uri().path().trim_start_matches('/').split('/');
        let (service, procedure) = (names.next().unwrap_or_default(), names.next().unwrap_or_default());
        if service == gateway_interface::SERVICE_NAME {
            let (starts, gate) = (is_start(procedure), &caller.gate);
            let start = starts.then(|| gate.start());
            let arrival = gate.arrival(starts);
            let slot = is_answer_counted(procedure).then(|| caller.answers.slot());
            let opens = procedure == Rpc::StreamActivatedJobs.name();
            if let Some(slot) = &slot {
                request.extensions_mut().insert(slot.clone());
            }
            if opens {
                request.extensions_mut().insert(caller.openings.clone());
            }
            let answer = self.gateway.clone().call(request.map(|body| self.intake.receive(body, arrival)));
            return Box::pin(async move {
                let response = answer.await.map(name_size_limit);
                drop(start);
                match slot {
                    Some(slot) => response.map(|response| response.map(|body| Body::new(Counted::new(body, slot)))),
                    None => response,
                }
            });
        }
        if service == HealthServer::<H>::NAME {
            let arrival = caller.gate.arrival(false);
            return self.health.clone().call(request.map(|body| self.intake.receive(body, arrival)));
        }
        let path = request.uri().path();
        let message = format!("There is no method '{path}' here, only those of {}.", gateway_interface::SERVICE_NAME);
        let response = status(Code::Unimplemented, message).into_http();
        Box::pin(async move { Ok(response) })
    }
}

/// Whether a procedure is one that starts work. Those that also wait for the end of it do not count: that may take long,
/// and may wait for something that comes on the same connection.
fn is_start(procedure: &str) -> bool {
    [Rpc::CreateProcessInstance.name(), Rpc::PublishMessage.name()].contains(&procedure)
}

/// Whether the answers of a procedure may be large. Jobs of streams have their credit instead.
fn is_answer_counted(procedure: &str) -> bool {
    [
        Rpc::ActivateJobs,
        Rpc::CreateProcessInstanceWithResult,
        Rpc::DeployResource,
        Rpc::DeployProcess,
        Rpc::EvaluateDecision,
        Rpc::Topology,
    ]
    .iter()
    .any(|rpc| rpc.name() == procedure)
}

/// A request over the size limit is answered with the code that clients know for it.
fn name_size_limit(response: Response<Body>) -> Response<Body> {
    if !response.headers().contains_key(Status::GRPC_STATUS) {
        return response;
    }
    match Status::from_header_map(response.headers()) {
        Some(found) if found.code() == Code::OutOfRange => {
            let message = format!(
                "The request is larger than the limit of {MESSAGE_BYTES_MAX} bytes for one message. Send less at once, for example fewer or smaller variables or resources. ({})",
                found.message()
            );
            status(Code::ResourceExhausted, message).into_http()
        }
        _ => response,
    }
}

#[cfg(test)]
mod tests {
    use broker::{Node, NodeOptions};

    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn the_end_of_the_server_is_noticed() {
        let directory = tempfile::tempdir().expect("a directory");
        let options = NodeOptions { data_directory: directory.path().to_owned(), ..NodeOptions::default() };
        let node = Node::start(options).expect("the node starts");
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut gateway = Gateway::start(node.client(), GatewayOptions::new(address)).await.expect("a free port");
        let serving = tokio::time::timeout(Duration::from_millis(50), gateway.ended());
        assert!(serving.await.is_err(), "it serves");
        gateway.server.abort();
        gateway.ended().await;
        gateway.stop().await;
        node.stop().expect("a clean stop");
    }
}
