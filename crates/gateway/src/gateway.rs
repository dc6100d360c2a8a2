//! The ports for clients, and what both stand on: one intake, one executor.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use broker::{Client, Clock};
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::MissedTickBehavior;
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;

use crate::acknowledged::Acknowledged;
use crate::answers::Answers;
use crate::executor::Executor;
use crate::guard::Guard;
use crate::intake::Intake;
use crate::job_stream::JobStreams;
use crate::listener::{self, Listener, Speech};
use crate::long_polling::LongPolling;
use crate::options::GatewayOptions;
use crate::start_error::StartError;
use crate::starts::Starts;
use crate::{grpc, rest, topology};

/// What the ports speak, as errors name it.
const GRPC: &str = "gRPC";
const REST: &str = "REST";
/// How often long polls look for partitions to ask again.
const TICK: Duration = Duration::from_millis(100);
/// How often metrics are brought up to date that do not follow from a request.
const REPORT_INTERVAL: Duration = Duration::from_secs(5);
/// How long requests may take to end when the server stops.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// A serving gateway.
pub struct Gateway {
    grpc_address: SocketAddr,
    http_address: SocketAddr,
    health: HealthReporter,
    shutdown: watch::Sender<bool>,
    server: JoinHandle<()>,
    background: [JoinHandle<()>; 3],
    streams: Arc<JobStreams>,
    acknowledged: Acknowledged,
    /// The server has ended.
    is_over: bool,
}

impl Gateway {
    /// Listens and serves, on the current async runtime. Clients may change `clock` if it allows that.
    ///
    /// # Errors
    /// When an address cannot be used, or certificate and key cannot be read.
    pub async fn start(client: Client, clock: Arc<Clock>, options: GatewayOptions) -> Result<Gateway, StartError> {
        Gateway::with_starts(client, clock, options, Starts::new()).await
    }

    /// The same, with what counts the requests that start work.
    async fn with_starts(
        client: Client,
        clock: Arc<Clock>,
        options: GatewayOptions,
        starts: Starts,
    ) -> Result<Gateway, StartError> {
        let tls = |speech| options.tls.as_ref().map(|files| listener::tls(files, speech)).transpose();
        let (grpc_tls, http_tls) = (tls(Speech::Http2)?, tls(Speech::Http)?);
        let (grpc, grpc_address) = bind(GRPC, options.grpc_address).await?;
        let (http, http_address) = bind(REST, options.http_address).await?;

        let (shutdown, stopping) = watch::channel(false);
        let polling = LongPolling::new(&client, options.parked_polls_max);
        let streams = JobStreams::new(options.job_streams_max);
        let (answers, intake) = (Answers::new(), Intake::new());
        let background = [
            tokio::spawn(tick(polling.clone())),
            tokio::spawn(report(client.clone(), streams.clone(), answers.clone())),
            tokio::spawn(starts.clone().adapt()),
        ];
        let acknowledged = Acknowledged::default();
        let executor =
            Executor { client, request_timeout: options.request_timeout, acknowledged: acknowledged.clone() };
        let (health, health_server) = tonic_health::server::health_reporter();
        health.set_service_status(gateway_interface::SERVICE_NAME, ServingStatus::Serving).await;
        let long_polling_timeout = options.long_polling_timeout;
        let service =
            grpc::Service::new(executor.clone(), polling.clone(), streams.clone(), long_polling_timeout, &stopping);
        let listener = |listener, speech, tls| Listener {
            listener,
            speech,
            tls,
            starts: starts.clone(),
            answers: answers.clone(),
            connections: options.connections.clone(),
            job_streams_max: (options.job_streams_max / 2).max(1),
        };
        let mut ports = JoinSet::new();
        let grpc_intake = intake.clone();
        let guard = |address: SocketAddr| Arc::new(Guard::new(address.ip(), options.allowed_hosts.clone()));
        let (grpc_guard, http_guard) = (guard(grpc_address), guard(http_address));
        let services = move || {
            let (health, intake, guard) = (health_server.clone(), grpc_intake.clone(), grpc_guard.clone());
            grpc::Services::new(service.of_connection(), health, intake, guard)
        };
        ports.spawn(listener(grpc, Speech::Http2, grpc_tls).serve(services, stopping.clone()));
        let workers = rest::Workers { polling, long_polling_timeout, stopping: stopping.clone() };
        let searcher = rest::Searcher::new(options.read_model.clone(), options.search_wait_max);
        let api = rest::Api::new(executor, intake, workers, clock, searcher, http_guard);
        ports.spawn(listener(http, Speech::Http, http_tls).serve(move || api.of_connection(), stopping.clone()));
        let server = tokio::spawn(serve(ports, stopping));
        Ok(Gateway {
            grpc_address,
            http_address,
            health,
            shutdown,
            server,
            background,
            streams,
            acknowledged,
            is_over: false,
        })
    }

    /// Where it listens for gRPC; with the port that was taken when any was allowed.
    pub fn grpc_address(&self) -> SocketAddr {
        self.grpc_address
    }

    /// Where it listens for HTTP; with the port that was taken when any was allowed.
    pub fn http_address(&self) -> SocketAddr {
        self.http_address
    }

    /// How far clients of this gateway know what happened.
    pub fn acknowledged(&self) -> Acknowledged {
        self.acknowledged.clone()
    }

    /// The job streams that workers hold open here.
    pub fn job_streams(&self) -> Arc<JobStreams> {
        self.streams.clone()
    }

    /// Completes when a port ends without being stopped: then its clients are not served any more.
    pub async fn ended(&mut self) {
        if let Err(error) = (&mut self.server).await {
            tracing::error!(%error, "the server for clients failed");
        }
        self.is_over = true;
    }

    /// Says in the health service of gRPC that it is about to stop, and serves on: balancers turn to others meanwhile.
    pub async fn announce_stop(&self) {
        self.health.set_service_status("", ServingStatus::NotServing).await;
        self.health.set_service_status(gateway_interface::SERVICE_NAME, ServingStatus::NotServing).await;
    }

    /// Ends streams and waiting polls with `UNAVAILABLE`, lets other requests finish, and stops listening.
    pub async fn stop(self) {
        self.announce_stop().await;
        self.background.iter().for_each(JoinHandle::abort);
        // If nothing listens, the server has ended by itself.
        let _ = self.shutdown.send(true);
        if self.is_over {
            return;
        }
        let mut server = self.server;
        match tokio::time::timeout(STOP_TIMEOUT, &mut server).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::error!(%error, "the server for clients failed"),
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

/// Whether a gateway could listen there. The ports are free again afterwards, and nobody can have connected meanwhile.
///
/// # Errors
/// When an address cannot be used.
pub fn check_addresses(grpc: SocketAddr, http: SocketAddr) -> Result<(), StartError> {
    let take = |protocol, address: SocketAddr| {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() };
        // As those that listen: connections of a node that has ended do not hold it.
        let taken = socket.and_then(|socket| socket.set_reuseaddr(true).and_then(|()| socket.bind(address)));
        taken.map_err(|source| StartError::Bind { protocol, address, source })
    };
    take(GRPC, grpc)?;
    take(REST, http)
}

async fn bind(protocol: &'static str, address: SocketAddr) -> Result<(TcpListener, SocketAddr), StartError> {
    let failed = |source| StartError::Bind { protocol, address, source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok((listener, address))
}

/// Serves the ports until they are stopped and their connections have ended, or one of them fails.
async fn serve(mut ports: JoinSet<()>, stopping: watch::Receiver<bool>) {
    while let Some(ended) = ports.join_next().await {
        if let Err(error) = ended {
            tracing::error!(%error, "the server of a port failed");
            return;
        }
        if !*stopping.borrow() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use broker::{FlowControlOptions, Node, NodeOptions};
    use gateway_interface::CreateProcessInstanceRequest;
    use gateway_interface::gateway_client::GatewayClient;
    use protocol::PartitionId;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio_rustls::TlsConnector;
    use tokio_rustls::rustls::pki_types::pem::PemObject;
    use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
    use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto};

    use super::*;
    use crate::options::TlsFiles;

    fn pem(name: &str) -> std::path::PathBuf {
        [env!("CARGO_MANIFEST_DIR"), "..", "osmia", "tests", "tls", name].iter().collect()
    }

    /// What trusts the certificate of the tests.
    fn connector() -> TlsConnector {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(pem("certificate.pem")).expect("a certificate")).expect("a root");
        let provider = Arc::new(crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let mut config = config.expect("versions").with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        TlsConnector::from(Arc::new(config))
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn rest_is_encrypted_as_grpc_is_and_answers_say_how_far_the_records_reach() {
        let directory = tempfile::tempdir().expect("a directory");
        let options = NodeOptions { data_directory: directory.path().to_owned(), ..NodeOptions::default() };
        let node = Node::start(options).expect("the node starts");
        while !node.is_ready() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let tls = Some(TlsFiles { certificate: pem("certificate.pem"), key: pem("key.pem") });
        let options = GatewayOptions { tls, ..GatewayOptions::new(any, any) };
        let gateway = Gateway::start(node.client(), node.clock(), options).await.expect("free ports");
        let socket = tokio::net::TcpStream::connect(gateway.http_address()).await.expect("it listens");
        let name = ServerName::try_from("localhost").expect("a name");
        let mut stream = connector().connect(name, socket).await.expect("they agree");
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
        let mut publish = async || {
            let body = r#"{"name":"paid","correlationKey":"bee"}"#;
            let head =
                "POST /v2/messages/publication HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
            let request = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
            stream.write_all(request.as_bytes()).await.expect("it is taken");
            let mut answer = vec![0; 4_096];
            let length = stream.read(&mut answer).await.expect("an answer");
            let answer = String::from_utf8_lossy(&answer[..length]).into_owned();
            assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
            let positions = gateway.acknowledged().positions();
            assert_eq!(positions.iter().map(|at| at.partition).collect::<Vec<_>>(), [PartitionId(1)]);
            positions[0].position
        };
        let first = publish().await;
        assert!(first > 0 && publish().await > first);
        gateway.stop().await;
        node.stop().expect("a clean stop");
    }

    async fn eventually(what: &str, condition: impl Fn() -> bool) {
        let occurred = async {
            while !condition() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(300), occurred).await.unwrap_or_else(|_| panic!("{what}"));
    }

    /// Sends a request on a connection of its own, and returns the status of its answer.
    async fn rest(address: SocketAddr, method_and_path: &str, body: &str) -> String {
        let mut stream = tokio::net::TcpStream::connect(address).await.expect("it listens");
        let head = format!("{method_and_path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n");
        let request = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
        stream.write_all(request.as_bytes()).await.expect("it is taken");
        let mut answer = vec![0; 4_096];
        let length = stream.read(&mut answer).await.expect("an answer");
        String::from_utf8_lossy(&answer[..length]).lines().next().unwrap_or_default().to_owned()
    }

    /// A node whose partition takes nothing that starts work, so that it stays unanswered.
    fn node_without_room(directory: &std::path::Path) -> Node {
        let none = FlowControlOptions {
            initial_commands: 0,
            continuing_commands: 0,
            min_commands: 0,
            max_commands: 0,
            ..Default::default()
        };
        let options =
            NodeOptions { data_directory: directory.to_owned(), flow_control: none, ..NodeOptions::default() };
        Node::start(options).expect("the node starts")
    }

    /// A request by POST over HTTP/2.
    fn frames(stream: u8, path: &str, body: &str) -> Vec<u8> {
        let fields = [(":method", "POST"), (":scheme", "http"), (":authority", "localhost"), (":path", path)];
        let fields = fields.into_iter().chain([("content-type", "application/json")]);
        let length = |bytes: usize| u8::try_from(bytes).expect("it is short");
        // Each as a literal that no table keeps.
        let text = |text: &str| [vec![length(text.len())], text.as_bytes().to_vec()].concat();
        let block: Vec<u8> = fields.flat_map(|(name, value)| [vec![0], text(name), text(value)].concat()).collect();
        let headers = [&[0, 0, length(block.len()), 1, 4, 0, 0, 0, stream][..], &block].concat();
        [&headers, &[0, 0, length(body.len()), 0, 1, 0, 0, 0, stream][..], body.as_bytes()].concat()
    }

    /// A connection that needs no upgrade.
    async fn connect_by_http_2(to: SocketAddr) -> tokio::net::TcpStream {
        let mut connection = tokio::net::TcpStream::connect(to).await.expect("it listens");
        let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
        let bytes = [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &settings[..]].concat();
        connection.write_all(&bytes).await.expect("it is taken");
        connection
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn creations_by_both_protocols_wait_at_one_gate() {
        const CREATION: &str = r#"{"processDefinitionId":"p"}"#;
        let directory = tempfile::tempdir().expect("a directory");
        let node = node_without_room(directory.path());
        eventually("the node is ready", || node.is_ready()).await;
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let options = GatewayOptions { request_timeout: Duration::from_secs(3_600), ..GatewayOptions::new(any, any) };
        let starts = Starts::new();
        let gateway =
            Gateway::with_starts(node.client(), node.clock(), options, starts.clone()).await.expect("free ports");
        let (grpc, http) = (format!("http://{}", gateway.grpc_address()), gateway.http_address());

        let by_grpc = tokio::spawn(async move {
            let mut client = GatewayClient::connect(grpc).await.expect("it listens");
            let creation = CreateProcessInstanceRequest { bpmn_process_id: "p".to_owned(), ..Default::default() };
            client.create_process_instance(creation).await
        });
        eventually("the creation by gRPC counts", || starts.unanswered() == 1).await;
        let by_rest = tokio::spawn(rest(http, "POST /v2/process-instances", CREATION));
        eventually("the creation by REST counts with it", || starts.unanswered() == 2).await;

        let used_up = starts.used_up();
        let full = starts.unanswered();
        let next = tokio::spawn(rest(http, "POST /v2/process-instances", CREATION));
        eventually("a further one waits", || starts.waiting() == 1).await;
        let completed = rest(http, "POST /v2/jobs/2251799813685249/completion", "{}").await;
        assert_eq!(completed, "HTTP/1.1 404 Not Found", "what ends work is not held up");
        assert_eq!(starts.unanswered(), full, "it was not let in");
        drop(used_up);
        eventually("it is let in", || starts.unanswered() == 3).await;
        let mut over_http_2 = connect_by_http_2(http).await;
        over_http_2.write_all(&frames(1, "/v2/process-instances", CREATION)).await.expect("it is taken");
        eventually("one over HTTP/2 counts with them", || starts.unanswered() == 4).await;
        drop(over_http_2);
        eventually("it is given up", || starts.unanswered() == 3).await;

        gateway.stop().await;
        node.stop().expect("a clean stop");
        for waiting in [by_rest, next] {
            waiting.abort();
        }
        by_grpc.abort();
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn the_end_of_the_server_is_noticed() {
        let directory = tempfile::tempdir().expect("a directory");
        let options = NodeOptions { data_directory: directory.path().to_owned(), ..NodeOptions::default() };
        let node = Node::start(options).expect("the node starts");
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let options = GatewayOptions::new(any, any);
        let mut gateway = Gateway::start(node.client(), node.clock(), options).await.expect("free ports");
        let serving = tokio::time::timeout(Duration::from_millis(50), gateway.ended());
        assert!(serving.await.is_err(), "it serves");
        gateway.server.abort();
        gateway.ended().await;
        gateway.stop().await;
        node.stop().expect("a clean stop");
    }
}
