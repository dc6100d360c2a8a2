//! The management port: health, metrics, clock, feature level, job streams.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::extract::{Path, Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use broker::{
    Client, Clock, ClusterView, DiskState, DiskView, ExporterPosition, ExporterState, ExporterStatus, Exporters, Health,
};
use gateway::{Connections, Guard, JobStreamView, JobStreams, ManagementConnection, Refusal};
use parking_lot::{Mutex, RwLock};
use readmodel::ReadModel;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::cluster::members;
use crate::cluster::status::{ClusterStatus, ReplicaStatus, leader_of};
use crate::configuration::{ClusterSettings, Configuration};
use crate::exporting;
use crate::feature_level;
use crate::json_body::JsonBody;
use crate::metrics::Metrics;
use crate::purge;
use crate::readiness::Readiness;

/// What the port reports about. Parts appear while the node starts.
pub(crate) struct Managed {
    metrics: Metrics,
    /// The cluster that the node belongs to; none for a node alone.
    cluster: Option<ClusterSettings>,
    /// Whether a leader is reached, without the time of elections.
    readiness: Mutex<Readiness>,
    /// What a node of a cluster waits for, in a sentence.
    waiting: RwLock<Option<String>>,
    node: RwLock<Option<(Client, Arc<Clock>)>>,
    exporters: RwLock<Option<Exporters>>,
    job_streams: RwLock<Option<Arc<JobStreams>>>,
    /// What searches see, if the node has it.
    read_model: RwLock<Option<Arc<ReadModel>>>,
    /// Set as soon as the node begins to stop.
    stopping: AtomicBool,
}

impl Managed {
    pub(crate) fn new(metrics: Metrics, cluster: Option<ClusterSettings>) -> Arc<Self> {
        Arc::new(Managed {
            metrics,
            cluster,
            readiness: Mutex::default(),
            waiting: RwLock::default(),
            node: RwLock::default(),
            exporters: RwLock::default(),
            job_streams: RwLock::default(),
            read_model: RwLock::default(),
            stopping: AtomicBool::new(false),
        })
    }

    /// The partitions are there.
    pub(crate) fn node_started(&self, client: Client, clock: Arc<Clock>, exporters: Exporters) {
        *self.node.write() = Some((client, clock));
        *self.exporters.write() = Some(exporters);
    }

    /// Clients are served: ready from here on.
    pub(crate) fn serving(&self, job_streams: Arc<JobStreams>, read_model: Option<Arc<ReadModel>>) {
        *self.read_model.write() = read_model;
        *self.job_streams.write() = Some(job_streams);
    }

    /// The node takes no more clients: not ready from here on.
    pub(crate) fn stopping(&self) {
        self.stopping.store(true, Ordering::Release);
    }

    /// Whether the start is over. A node of a cluster may wait for others as long as they are away, and to start it again would
    /// not help.
    fn has_started(&self) -> bool {
        self.cluster.is_some() || self.is_open()
    }

    /// Whether clients were ever served.
    fn is_open(&self) -> bool {
        self.job_streams.read().is_some()
    }

    /// Whether clients are served.
    fn is_serving(&self) -> bool {
        self.is_open() && !self.stopping.load(Ordering::Acquire)
    }

    /// The handle to the node, once it is there.
    pub(crate) fn client(&self) -> Option<Client> {
        self.node.read().as_ref().map(|(client, _)| client.clone())
    }

    /// The exporters of the node, once it is there.
    pub(crate) fn exporters(&self) -> Option<Exporters> {
        self.exporters.read().clone()
    }

    pub(crate) fn read_model(&self) -> Option<Arc<ReadModel>> {
        self.read_model.read().clone()
    }

    /// Whether the node is one for tests.
    pub(crate) fn has_controllable_clock(&self) -> bool {
        self.node.read().as_ref().is_some_and(|(_, clock)| clock.is_controllable())
    }

    /// What the node waits for until it can serve; none when it can.
    pub(crate) fn waits_for(&self, sentence: Option<String>) {
        *self.waiting.write() = sentence;
    }

    /// Looks how the node is. It is ready as long as it was so at some look of the last seconds, so somebody must look.
    pub(crate) fn observe(&self) {
        self.reaches_leader();
    }

    fn condition(&self) -> Condition {
        let read_model = self.read_model();
        let read_model_trouble = read_model.as_ref().and_then(|model| model.trouble());
        let client = self.client();
        let view = client.as_ref().map(Client::cluster);
        let reaches_leader = self.reaches_leader();
        let partitions = client.zip(view).map(|(client, view)| self.partitions(&client, &view)).unwrap_or_default();
        let waiting = self.waiting.read().clone();
        let disagreements = self.client().map(|client| client.disagreements()).unwrap_or_default();
        let cluster = self.cluster.as_ref().map(|cluster| InCluster { node: cluster.node_id, waiting, disagreements });
        Condition { is_serving: self.is_serving(), cluster, reaches_leader, partitions, read_model_trouble }
    }

    /// Whether clients are served by some partition.
    fn reaches_leader(&self) -> bool {
        // What leads nothing here is led nowhere, and has a reason that its health says.
        if self.cluster.is_none() {
            return true;
        }
        let is_served = self.client().is_some_and(|client| client.is_served());
        self.readiness.lock().observe(is_served, std::time::Instant::now())
    }

    fn partitions(&self, client: &Client, view: &ClusterView) -> Vec<Partition> {
        let own = view.nodes.iter().filter(|node| node.node_id == client.node());
        let reports = client.member_reports();
        let replica = |one: &broker::PartitionView| {
            let mut replica = ReplicaStatus::new(one, leader_of(view, one.id.0));
            replica.complete(client.node(), true, &reports);
            replica
        };
        let partition = |one: &broker::PartitionView| Partition {
            id: one.id.0,
            health: one.health,
            remark: client.remark(one.id.0),
            replica: self.cluster.as_ref().map(|_| replica(one)),
        };
        own.flat_map(|node| &node.partitions).map(partition).collect()
    }
}

/// A partition of this node.
struct Partition {
    id: u16,
    health: Health,
    /// What an operator must know about it.
    remark: Option<String>,
    /// What it does in a cluster.
    replica: Option<ReplicaStatus>,
}

/// A node as one of several.
struct InCluster {
    node: u32,
    /// What it waits for until it can serve.
    waiting: Option<String>,
    /// What an operator must know of nodes that are set up differently.
    disagreements: Vec<String>,
}

/// What the verdicts are based on.
struct Condition {
    is_serving: bool,
    /// None for a node alone.
    cluster: Option<InCluster>,
    /// Whether some partition has a leader, here or on another node.
    reaches_leader: bool,
    /// None while the node starts.
    partitions: Vec<Partition>,
    /// What is in the way of what searches see, until an operator changes something.
    read_model_trouble: Option<String>,
}

impl Condition {
    /// Whether clients are served and every partition can work: requests to a dead one would be refused. A partition
    /// that waits for its disk is not lost; what it cannot take, it refuses with a reason. A partition that was left
    /// out at the start must not stop the others, so it counts only when there is no other.
    fn is_ready(&self) -> bool {
        let is_left_out = |partition: &Partition| partition.health == Health::LeftOut;
        let is_all_left_out = !self.partitions.is_empty() && self.partitions.iter().all(is_left_out);
        self.is_serving && self.reaches_leader && self.is_alive() && !is_all_left_out
    }

    /// Whether no partition is lost. A node that is still starting is alive, and so is one that another start would not
    /// mend.
    fn is_alive(&self) -> bool {
        self.partitions.iter().all(|partition| partition.health != Health::Dead)
    }

    /// Whether nothing waits for an operator.
    fn is_healthy(&self) -> bool {
        self.are_partitions_healthy() && self.read_model_trouble.is_none()
    }

    /// Whether clients are served, no partition is lost or left out, and at least one works.
    fn are_partitions_healthy(&self) -> bool {
        let has_stopped = |partition: &Partition| partition.health.has_stopped();
        self.is_ready()
            && !self.partitions.iter().any(has_stopped)
            && self.partitions.iter().any(|partition| partition.health == Health::Healthy)
    }

    /// Of a server that is only away, the exporters say so: nothing is to be done.
    fn read_model(&self) -> Value {
        match &self.read_model_trouble {
            Some(message) => json!({ "status": status(false), "details": { "message": message } }),
            None => json!({ "status": status(true) }),
        }
    }

    /// The parts of the node's health.
    fn components(&self, disk: Option<Value>, exporters: &[ExporterStatus]) -> Value {
        let partitions: serde_json::Map<String, Value> =
            self.partitions.iter().map(|one| (format!("partition{}", one.id), partition(one))).collect();
        let mut components = json!({
            "diskSpace": disk,
            "exporters": exporters_health(exporters),
            "readiness": { "status": status(self.is_ready()) },
            "liveness": { "status": status(self.is_alive()) },
            "partitions": { "status": status(self.are_partitions_healthy()), "details": partitions },
            "readModel": self.read_model(),
        });
        if let Some(InCluster { node, waiting, disagreements }) = &self.cluster {
            let up = self.reaches_leader && waiting.is_none();
            let usual = (!self.reaches_leader).then_some("It reaches no leader of any partition.");
            let message = waiting.as_deref().or(usual);
            components["cluster"] = json!({
                "status": status(up),
                "details": { "nodeId": node, "message": message, "disagreements": disagreements },
            });
        }
        components
    }
}

/// Listens on the port and serves until the process ends.
pub(crate) async fn serve(
    managed: Arc<Managed>,
    connections: Connections,
    configuration: &Configuration,
) -> std::io::Result<(SocketAddr, JoinHandle<std::io::Result<()>>)> {
    let listener = TcpListener::bind((configuration.host.as_str(), configuration.management_port)).await?;
    let address = listener.local_addr()?;
    let guard = Guard::new(address.ip(), configuration.allowed_hosts.clone());
    let (router, port) = (router(managed, guard), Port { listener, connections });
    Ok((address, tokio::spawn(async move { axum::serve(port, router).await })))
}

/// The port. Its connections count towards those of the node.
struct Port {
    listener: TcpListener,
    connections: Connections,
}

impl axum::serve::Listener for Port {
    type Io = ManagementConnection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (ManagementConnection, SocketAddr) {
        loop {
            let connection = self.connections.accept_for_management(&self.listener).await;
            // An error means that it was closed right after it was opened.
            if let Ok(address) = connection.peer_address() {
                return (connection, address);
            }
        }
    }

    fn local_addr(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

fn router(managed: Arc<Managed>, guard: Guard) -> Router {
    Router::new()
        .route("/actuator/health", get(health))
        .route("/actuator/health/{group}", get(health_group))
        .route("/health", get(health))
        .route("/ready", get(readiness))
        .route("/startup", get(startup))
        .route("/actuator/prometheus", get(metrics))
        .route("/metrics", get(metrics))
        .route("/actuator/clock", get(clock).post(clock_pin).delete(clock_reset))
        .route("/actuator/clock/pin", axum::routing::post(clock_pin))
        .route("/actuator/clock/add", axum::routing::post(clock_add))
        .route("/actuator/cluster/purge", axum::routing::post(purge::purge))
        .route("/actuator/exporting/{operation}", axum::routing::post(exporting::change))
        .route("/cluster/feature-level", get(feature_level::show).post(feature_level::raise))
        .route("/cluster", get(cluster))
        .route("/cluster/members/{node}/replace", axum::routing::post(replace))
        .route("/actuator/jobstreams", get(job_streams))
        .route("/actuator/jobstreams/{side}", get(job_streams_of))
        .fallback(unknown)
        .layer(axum::middleware::from_fn(json_errors))
        .layer(axum::middleware::from_fn_with_state(Arc::new(guard), guarded))
        .with_state(managed)
}

type Shared = State<Arc<Managed>>;

fn status(up: bool) -> &'static str {
    if up { "UP" } else { "DOWN" }
}

fn verdict(up: bool, body: Value) -> Response {
    let code = if up { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (code, Json(body)).into_response()
}

async fn health(State(managed): Shared) -> Response {
    let condition = managed.condition();
    let disk = managed.node.read().as_ref().map(|(client, _)| disk(&client.disk()));
    let up = condition.is_healthy();
    let exporters = managed.exporters.read().as_ref().map(Exporters::statuses).unwrap_or_default();
    verdict(up, json!({ "status": status(up), "components": condition.components(disk, &exporters) }))
}

fn partition(partition: &Partition) -> Value {
    let is_up = partition.health == Health::Healthy;
    let usual = match partition.health {
        Health::Healthy => None,
        Health::Unhealthy => Some("It makes no progress now and tries again; the log of the node says why."),
        Health::Dead => Some("It has stopped, because its state cannot be trusted; the log of the node says why."),
        Health::LeftOut => Some("The node started without it; the log of the node says why."),
    };
    let message = partition.remark.as_deref().or(usual);
    let mut details = json!(partition.replica);
    if let Some(message) = message {
        details["message"] = json!(message);
    }
    match details {
        Value::Null => json!({ "status": status(is_up) }),
        details => json!({ "status": status(is_up), "details": details }),
    }
}

/// An exporter that fails does not make the node unhealthy: nothing is lost, and a restart would not help its target.
fn exporters_health(exporters: &[ExporterStatus]) -> Value {
    let is_up = |exporter: &ExporterStatus| exporter.state().trouble().is_none();
    let details: serde_json::Map<String, Value> = exporters
        .iter()
        .map(|exporter| {
            let state = exporter.state();
            let lag: u64 = exporter.partitions.iter().map(|partition| partition.lag_records).sum();
            let missing: u64 = exporter.partitions.iter().map(|partition| partition.missing_records).sum();
            // Of those that are well, nothing more is to be said.
            let noted = |of: &&ExporterPosition| of.state.trouble().is_some() || of.gap.is_some() || of.remark.is_some();
            let noted = exporter.partitions.iter().filter(noted);
            let partitions: serde_json::Map<String, Value> =
                noted.map(|of| (of.partition.to_string(), exporter_partition(of))).collect();
            let details = json!({
                "state": exporter_state(&state), "message": message(&state), "lagRecords": lag, "missingRecords": missing,
                "partitions": partitions,
            });
            (exporter.name.clone(), json!({ "status": status(is_up(exporter)), "details": details }))
        })
        .collect();
    json!({ "status": status(exporters.iter().all(is_up)), "details": details })
}

fn exporter_partition(of: &ExporterPosition) -> Value {
    json!({
        "state": exporter_state(&of.state), "message": of.state.trouble(), "lagRecords": of.lag_records,
        "missingRecords": of.missing_records, "gap": of.gap, "remark": of.remark,
    })
}

/// What an operator must know of a state.
fn message(state: &ExporterState) -> Option<&str> {
    match state {
        ExporterState::Paused => Some(
            "Exporting is paused, and records are kept meanwhile. POST /actuator/exporting/resume on this port ends that.",
        ),
        ExporterState::SoftPaused => Some(
            "Exporting is paused softly: records are exported and kept. POST /actuator/exporting/resume on this port ends that.",
        ),
        state => state.trouble(),
    }
}

fn exporter_state(state: &ExporterState) -> &'static str {
    match state {
        ExporterState::Opening => "OPENING",
        ExporterState::Exporting => "EXPORTING",
        ExporterState::Paused => "PAUSED",
        ExporterState::SoftPaused => "SOFT_PAUSED",
        ExporterState::Failing(_) => "FAILING",
        ExporterState::Stuck(_) => "STUCK",
        ExporterState::Following => "FOLLOWING",
        ExporterState::Closed => "CLOSED",
    }
}

/// A disk that is low does not make the node unhealthy: it still finishes work, and a restart would not help.
fn disk(view: &DiskView) -> Value {
    json!({
        "status": status(view.state == DiskState::Enough),
        "details": {
            "path": view.directory.display().to_string(),
            "total": view.total_bytes,
            "free": view.free_bytes,
            "threshold": view.low_bytes,
            "reserve": view.reserve_bytes,
            "reserveLeft": view.reserve_left_bytes,
            "message": view.to_string(),
        },
    })
}

async fn health_group(State(managed): Shared, Path(group): Path<String>) -> Response {
    let condition = managed.condition();
    let up = match group.as_str() {
        "startup" => managed.has_started(),
        "readiness" => condition.is_ready(),
        "liveness" => condition.is_alive(),
        "status" => condition.is_healthy(),
        _ => return error(StatusCode::NOT_FOUND, "The health groups are startup, readiness, liveness and status."),
    };
    verdict(up, json!({ "status": status(up) }))
}

async fn readiness(State(managed): Shared) -> Response {
    let up = managed.condition().is_ready();
    verdict(up, json!({ "status": status(up) }))
}

async fn startup(State(managed): Shared) -> Response {
    let up = managed.has_started();
    verdict(up, json!({ "status": status(up) }))
}

async fn metrics(State(managed): Shared) -> Response {
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], managed.metrics.render()).into_response()
}

/// The time of the engine.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Instant {
    epoch_milli: i64,
    instant: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Pin {
    epoch_milli: i64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Add {
    offset_milli: i64,
}

async fn clock(State(managed): Shared) -> Response {
    match managed.node.read().as_ref() {
        Some((_, clock)) => time(clock),
        None => starting(),
    }
}

async fn clock_pin(State(managed): Shared, JsonBody(pin): JsonBody<Pin>) -> Response {
    if !can_be_shown(pin.epoch_milli) {
        return error(StatusCode::BAD_REQUEST, "The field 'epochMilli' must be a time of the calendar from 1970 on.");
    }
    change_clock(&managed, |clock| clock.pin(pin.epoch_milli))
}

/// Whether partitions take it as a time.
fn can_be_shown(milliseconds: i64) -> bool {
    milliseconds >= 0 && jiff::Timestamp::from_millisecond(milliseconds).is_ok()
}

async fn clock_add(State(managed): Shared, JsonBody(add): JsonBody<Add>) -> Response {
    let now = managed.node.read().as_ref().map_or(0, |(_, clock)| clock.now_milliseconds());
    if !now.checked_add(add.offset_milli).is_some_and(can_be_shown) {
        return error(
            StatusCode::BAD_REQUEST,
            "The field 'offsetMilli' must lead to a time of the calendar from 1970 on.",
        );
    }
    change_clock(&managed, |clock| clock.add(add.offset_milli))
}

async fn clock_reset(State(managed): Shared) -> Response {
    change_clock(&managed, Clock::reset)
}

/// Changes the clock and returns its time.
fn change_clock<E>(managed: &Managed, change: impl FnOnce(&Clock) -> Result<(), E>) -> Response {
    let Some((_, clock)) = managed.node.read().clone() else { return starting() };
    if change(&clock).is_err() {
        return error(
            StatusCode::FORBIDDEN,
            "The clock of this node cannot be controlled. Start it with --clock-control to allow it.",
        );
    }
    time(&clock)
}

pub(crate) fn starting() -> Response {
    error(StatusCode::SERVICE_UNAVAILABLE, "The node is starting. Try again in a moment.")
}

fn time(clock: &Clock) -> Response {
    let epoch_milli = clock.now_milliseconds();
    let instant =
        jiff::Timestamp::from_millisecond(epoch_milli).map_or_else(|_| String::new(), |time| time.to_string());
    Json(Instant { epoch_milli, instant }).into_response()
}

/// The cluster as this node sees it.
async fn cluster(State(managed): Shared) -> Response {
    let Some(client) = managed.client() else {
        let waiting = managed.waiting.read();
        return waiting.as_deref().map_or_else(starting, |waiting| error(StatusCode::SERVICE_UNAVAILABLE, waiting));
    };
    let reports = client.member_reports();
    Json(ClusterStatus::new(&client.cluster(), client.node(), managed.cluster.as_ref(), &reports)).into_response()
}

/// Answers when the node has its place, which it fills by itself then.
async fn replace(State(managed): Shared, Path(node): Path<String>) -> Response {
    let Ok(node) = node.parse() else {
        return error(StatusCode::BAD_REQUEST, "What is replaced is a node, by its number in the list of members.");
    };
    let Some(client) = managed.client() else { return starting() };
    let replaced = tokio::task::spawn_blocking(move || members::replace(&client, managed.cluster.as_ref(), node));
    match replaced.await {
        Ok(Ok(message)) => Json(json!({ "message": message })).into_response(),
        Ok(Err(refusal)) => error(StatusCode::CONFLICT, &refusal),
        Err(_) => error(StatusCode::SERVICE_UNAVAILABLE, "The node stops."),
    }
}

async fn job_streams(State(managed): Shared) -> Response {
    let (views, node) = (views(&managed), number(&managed));
    Json(json!({ "remote": remote(&views, node), "client": client(&views, node) })).into_response()
}

async fn job_streams_of(State(managed): Shared, Path(side): Path<String>) -> Response {
    let (views, node) = (views(&managed), number(&managed));
    match side.as_str() {
        "remote" => Json(remote(&views, node)).into_response(),
        "client" => Json(client(&views, node)).into_response(),
        _ => error(StatusCode::BAD_REQUEST, "The kinds of job streams are client and remote."),
    }
}

/// The number of the node, which has streams only once it runs.
fn number(managed: &Managed) -> u32 {
    managed.client().map_or(0, |client| client.node())
}

fn views(managed: &Managed) -> Vec<JobStreamView> {
    managed.job_streams.read().as_ref().map(|streams| streams.views()).unwrap_or_default()
}

fn metadata(view: &JobStreamView) -> Value {
    let specification = &view.specification;
    json!({
        "worker": specification.worker.as_str(),
        "timeout": format!("PT{}S", specification.timeout as f64 / 1000.0),
        "fetchVariables": specification.fetch_variables.iter().map(|name| name.as_str()).collect::<Vec<_>>(),
    })
}

/// Streams as the gateway holds them.
fn client(views: &[JobStreamView], node: u32) -> Value {
    views
        .iter()
        .map(|view| {
            json!({
                "jobType": view.specification.job_type.as_str(),
                "id": view.id.to_string(),
                "metadata": metadata(view),
                "connectedTo": [node],
            })
        })
        .collect()
}

/// The streams of this node's gateway, as the partitions know them.
fn remote(views: &[JobStreamView], node: u32) -> Value {
    views
        .iter()
        .map(|view| {
            json!({
                "jobType": view.specification.job_type.as_str(),
                "metadata": metadata(view),
                "consumers": [{ "id": view.id.to_string(), "receiver": format!("gateway-{node}") }],
            })
        })
        .collect()
}

async fn unknown(request: Request) -> Response {
    let message = format!("There is nothing at {} {} on the management port.", request.method(), request.uri().path());
    error(StatusCode::NOT_FOUND, &message)
}

pub(crate) fn error(code: StatusCode, message: &str) -> Response {
    (code, Json(json!({ "status": code.as_u16(), "message": message }))).into_response()
}

/// Keeps pages of other origins out, as on the REST port.
async fn guarded(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    let mut response = match guard.check(request.method(), request.uri(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(refusal) => foreign(&refusal, request.uri().path()),
    };
    gateway::protect(response.headers_mut());
    response
}

fn foreign(refusal: &Refusal, path: &str) -> Response {
    let status = refusal.status();
    let problem = json!({
        "type": "about:blank", "title": status.canonical_reason(), "status": status.as_u16(), "detail": refusal.to_string(),
        "instance": path,
    });
    (status, [(header::CONTENT_TYPE, "application/problem+json")], problem.to_string()).into_response()
}

/// Errors of the router itself are plain text; every answer here is JSON.
async fn json_errors(request: Request, next: Next) -> Response {
    /// Longer than any message of the router.
    const MESSAGE_BYTES_MAX: usize = 4096;
    let response = next.run(request).await;
    let code = response.status();
    let plain =
        response.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"text/plain"));
    if !code.is_client_error() || !plain {
        return response;
    }
    match axum::body::to_bytes(response.into_body(), MESSAGE_BYTES_MAX).await {
        Ok(message) => error(code, &String::from_utf8_lossy(&message)),
        Err(_) => error(code, "The request cannot be read."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn condition(is_serving: bool, partitions: &[Health]) -> Condition {
        let partition = |(id, health): (u16, &Health)| Partition { id, health: *health, remark: None, replica: None };
        let partitions = (1..).zip(partitions).map(partition).collect();
        Condition { is_serving, cluster: None, reaches_leader: true, partitions, read_model_trouble: None }
    }

    #[test]
    fn what_an_operator_has_to_mend_of_the_read_model_is_in_the_health() {
        let mut condition = condition(true, &[Health::Healthy]);
        assert_eq!(condition.components(None, &[])["readModel"], json!({"status": "UP"}));
        condition.read_model_trouble = Some("It refuses.".to_owned());
        assert_eq!([condition.is_ready(), condition.is_alive(), condition.is_healthy()], [true, true, false]);
        let components = condition.components(None, &[]);
        assert_eq!(components["readModel"], json!({"status": "DOWN", "details": {"message": "It refuses."}}));
        assert_eq!(components["partitions"]["status"], "UP");
    }

    fn verdicts(is_serving: bool, partitions: &[Health]) -> [bool; 3] {
        let condition = condition(is_serving, partitions);
        [condition.is_ready(), condition.is_alive(), condition.is_healthy()]
    }

    #[test]
    fn a_dead_partition_takes_the_node_out_of_service() {
        use Health::{Dead, Healthy, Unhealthy};
        assert_eq!(verdicts(true, &[Healthy, Healthy]), [true; 3]);
        assert_eq!(verdicts(true, &[Healthy, Dead]), [false; 3]);
        assert_eq!(verdicts(true, &[Dead, Dead]), [false; 3]);
        assert_eq!(verdicts(true, &[Unhealthy, Healthy]), [true; 3], "it waits and goes on");
        assert_eq!(verdicts(true, &[Unhealthy]), [true, true, false]);
        assert_eq!(verdicts(false, &[]), [false, true, false], "it starts");
        assert_eq!(verdicts(false, &[Healthy]), [false, true, false], "it stops");
    }

    #[test]
    fn a_partition_that_the_node_started_without_costs_its_health_and_not_its_service() {
        use Health::{Healthy, LeftOut};
        assert_eq!(verdicts(true, &[Healthy, LeftOut]), [true, true, false]);
        assert_eq!(verdicts(true, &[LeftOut, LeftOut]), [false, true, false], "there is no other");
        let mut condition = condition(true, &[LeftOut]);
        condition.partitions[0].remark = Some("It was command 5.".to_owned());
        let components = condition.components(None, &[]);
        assert_eq!(components["partitions"]["details"]["partition1"]["details"]["message"], "It was command 5.");
    }

    #[test]
    fn a_node_that_reaches_no_leader_is_alive_and_not_ready() {
        let mut condition = condition(true, &[Health::Healthy]);
        condition.reaches_leader = false;
        assert_eq!([condition.is_ready(), condition.is_alive(), condition.is_healthy()], [false, true, false]);
        condition.cluster = Some(InCluster { node: 2, waiting: None, disagreements: vec!["they differ".to_owned()] });
        let reason = "It reaches no leader of any partition.";
        let details = json!({ "nodeId": 2, "message": reason, "disagreements": ["they differ"] });
        let expected = json!({ "status": "DOWN", "details": details });
        assert_eq!(condition.components(None, &[])["cluster"], expected);
        condition.reaches_leader = true;
        assert_eq!(condition.components(None, &[])["cluster"]["status"], "UP");
        condition.cluster =
            Some(InCluster { node: 2, waiting: Some("it waits for node 1".to_owned()), disagreements: Vec::new() });
        assert_eq!(condition.components(None, &[])["cluster"]["details"]["message"], "it waits for node 1");
    }

    #[test]
    fn what_a_replica_does_is_in_the_health_of_its_partition() {
        let mut condition = condition(true, &[Health::Healthy, Health::Unhealthy]);
        let view = |id| broker::PartitionView {
            id: protocol::PartitionId(id),
            role: broker::Role::Follower,
            health: Health::Healthy,
        };
        condition.partitions[0].replica =
            Some(ReplicaStatus { term: Some(7), ..ReplicaStatus::new(&view(1), Some(2)) });
        condition.partitions[1].replica = Some(ReplicaStatus::new(&view(2), None));
        let components = condition.components(None, &[]);
        let partitions = &components["partitions"]["details"];
        let details = json!({ "partitionId": 1, "role": "follower", "health": "healthy", "leader": 2, "term": 7 });
        assert_eq!(partitions["partition1"], json!({ "status": "UP", "details": details }));
        assert_eq!(partitions["partition2"]["details"]["role"], "follower");
        assert!(partitions["partition2"]["details"]["message"].is_string());
    }

    #[test]
    fn the_dead_partition_is_named() {
        let condition = condition(true, &[Health::Healthy, Health::Dead]);
        let components = condition.components(None, &[]);
        assert_eq!(components["readiness"]["status"], "DOWN");
        let partitions = &components["partitions"]["details"];
        assert_eq!(
            (&partitions["partition1"]["status"], &partitions["partition2"]["status"]),
            (&json!("UP"), &json!("DOWN"))
        );
        let message = partitions["partition2"]["details"]["message"].as_str().unwrap();
        assert!(message.contains("its state cannot be trusted"), "{message}");
    }
}
