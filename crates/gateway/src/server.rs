//! The port.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use broker::Client;
use gateway_interface::gateway_server::GatewayServer;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;
use tokio_stream::StreamExt;
use tonic::body::Body;
use tonic::codec::CompressionEncoding;
use tonic::codegen::http::{Request, Response};
use tonic::codegen::{BoxFuture, Service as HttpService};
use tonic::server::NamedService;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Identity, Server, ServerTlsConfig};
use tonic::{Code, Status};
use tonic_health::ServingStatus;
use tonic_health::pb::health_server::{Health, HealthServer};
use tonic_health::server::HealthReporter;
use tower::util::MapResponseLayer;

use crate::connection::Connection;
use crate::intake::Intake;
use crate::job_stream::JobStreams;
use crate::long_polling::LongPolling;
use crate::rpc::RpcMetrics;
use crate::service::Service;
use crate::status::status;
use crate::topology;
use crate::{GatewayOptions, MESSAGE_BYTES_MAX, StartError, TlsFiles};

/// How often long polls look for partitions to ask again.
const TICK: Duration = Duration::from_millis(100);
/// How often metrics are brought up to date that do not follow from a request.
const REPORT_INTERVAL: Duration = Duration::from_secs(5);
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How long requests may take to end when the server stops.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);
/// A connection whose client answers no ping is closed, so that its streams stop taking jobs.
const PING_INTERVAL: Duration = Duration::from_secs(30);
const PING_TIMEOUT: Duration = Duration::from_secs(15);
/// One client may hold many idle streams and polls on one connection.
const CONCURRENT_STREAMS_MAX: u32 = 65_536;
/// How many requests of a connection may be cancelled before they are even read; one more closes the connection. A client
/// with many workers that stops, or gives up while this machine is busy, cancels them all at once.
const UNREAD_CANCELLATIONS_MAX: usize = 4_096;
/// Bytes that a client may send ahead: one message of a stream, several of a connection.
const STREAM_WINDOW_BYTES: u32 = 1 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 8 << 20;

/// A serving gateway.
pub struct Gateway {
    address: SocketAddr,
    health: HealthReporter,
    shutdown: watch::Sender<bool>,
    server: JoinHandle<Result<(), tonic::transport::Error>>,
    background: [JoinHandle<()>; 2],
    streams: Arc<JobStreams>,
}

impl Gateway {
    /// Listens and serves, on the current async runtime.
    ///
    /// # Errors
    /// When the address cannot be used, or certificate and key cannot be read.
    pub async fn start(client: Client, options: GatewayOptions) -> Result<Gateway, StartError> {
        let mut builder = Server::builder()
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .max_concurrent_streams(CONCURRENT_STREAMS_MAX)
            .http2_max_pending_accept_reset_streams(Some(UNREAD_CANCELLATIONS_MAX))
            .http2_keepalive_interval(Some(PING_INTERVAL))
            .http2_keepalive_timeout(Some(PING_TIMEOUT));
        if let Some(files) = &options.tls {
            builder = builder.tls_config(tls(files)?).map_err(|source| StartError::Tls { source })?;
        }
        let bind_error = |source| StartError::Bind { address: options.address, source };
        let listener = TcpListener::bind(options.address).await.map_err(bind_error)?;
        let address = listener.local_addr().map_err(bind_error)?;

        let (shutdown, stopping) = watch::channel(false);
        let polling = LongPolling::new(&client, options.parked_polls_max);
        let streams = JobStreams::new(options.job_streams_max);
        let background = [tokio::spawn(tick(polling.clone())), tokio::spawn(report(client.clone(), streams.clone()))];
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
        let incoming = TcpIncoming::from(listener).with_nodelay(Some(true)).then(pause_after_error);
        let incoming = incoming.map(|accepted| accepted.map(Connection::new));
        let server = builder.layer(MapResponseLayer::new(name_size_limit)).serve_with_incoming_shutdown(
            services,
            incoming,
            stopped(stopping),
        );
        Ok(Gateway { address, health, shutdown, server: tokio::spawn(server), background, streams })
    }

    /// Where it listens; with the port that was taken when any was allowed.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The job streams that workers hold open here.
    pub fn job_streams(&self) -> Arc<JobStreams> {
        self.streams.clone()
    }

    /// Ends streams and waiting polls with `UNAVAILABLE`, lets other requests finish, and stops listening.
    pub async fn stop(self) {
        self.health.set_service_status("", ServingStatus::NotServing).await;
        self.health.set_service_status(gateway_interface::SERVICE_NAME, ServingStatus::NotServing).await;
        self.background.iter().for_each(JoinHandle::abort);
        // Nobody listening means that the server has ended by itself.
        let _ = self.shutdown.send(true);
        let mut server = self.server;
        match tokio::time::timeout(STOP_TIMEOUT, &mut server).await {
            Ok(Ok(Ok(()))) => {}
            Ok(Ok(Err(error))) => tracing::error!(%error, "the gRPC server failed"),
            Ok(Err(error)) => tracing::error!(%error, "the gRPC server failed"),
            Err(_) => {
                tracing::warn!("some clients keep their connections open; they are cut off");
                server.abort();
            }
        }
    }
}

/// Without files for another connection, accepting fails at once, again and again.
async fn pause_after_error<T>(accepted: std::io::Result<T>) -> std::io::Result<T> {
    if let Err(error) = &accepted {
        tracing::warn!(%error, "cannot accept a connection");
        tokio::time::sleep(ACCEPT_PAUSE).await;
    }
    accepted
}

async fn stopped(mut stopping: watch::Receiver<bool>) {
    // An error means that the gateway itself is gone.
    let _ = stopping.wait_for(|stopping| *stopping).await;
}

async fn tick(polling: Arc<LongPolling>) {
    let mut interval = tokio::time::interval(TICK);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        polling.tick(Instant::now());
    }
}

async fn report(client: Client, streams: Arc<JobStreams>) {
    let mut interval = tokio::time::interval(REPORT_INTERVAL);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        topology::report(&client.cluster());
        streams.count_distinct();
    }
}

fn tls(files: &TlsFiles) -> Result<ServerTlsConfig, StartError> {
    let read =
        |path: &PathBuf| std::fs::read(path).map_err(|source| StartError::TlsFile { path: path.clone(), source });
    let identity = Identity::from_pem(read(&files.certificate)?, read(&files.key)?);
    Ok(ServerTlsConfig::new().identity(identity))
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

impl<H: Health> HttpService<Request<Body>> for Services<H> {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Self::Error>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let path = request.uri().path();
        let service = path.trim_start_matches('/').split('/').next().unwrap_or_default();
        if service == gateway_interface::SERVICE_NAME {
            return self.gateway.call(request.map(|body| self.intake.receive(body)));
        }
        if service == HealthServer::<H>::NAME {
            return self.health.call(request.map(|body| self.intake.receive(body)));
        }
        let message = format!("There is no method '{path}' here, only those of {}.", gateway_interface::SERVICE_NAME);
        let response = status(Code::Unimplemented, message).into_http();
        Box::pin(async move { Ok(response) })
    }
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
