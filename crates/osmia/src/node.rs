//! `osmia start`: the wiring of a node.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use broker::{ClusterOptions, DiskOptions, Node, NodeOptions, Role};
use exporters::ExporterConfiguration;
use gateway::{Connections, Gateway, GatewayOptions};
use protocol::PartitionId;
use readmodel::{Looked, ReadModel};
use serde_json::json;

use crate::arguments::Start;
use crate::configuration::{ClusterSettings, Configuration, Environment, LogFormat, ReadModelKind, Sources};
use crate::demo;
use crate::management::{self, Managed};
use crate::metrics::{Metrics, UPKEEP_INTERVAL};
use crate::nodes;
use crate::outcome::Outcome;
use crate::output::Output;
use crate::signals::Signals;
use crate::waiting::{USUAL, Waiting};

/// How long a node may take until all its partitions take commands.
const START_TIMEOUT: Duration = Duration::from_secs(300);
const READY_POLL_INTERVAL: Duration = Duration::from_millis(1);
/// How often to look whether a node of a cluster reaches a leader.
const READINESS_INTERVAL: Duration = Duration::from_millis(250);
/// How often to look whether all members have answered.
const FOUNDING_INTERVAL: Duration = Duration::from_millis(50);
/// How often to check whether the node has failed.
const FAILURE_POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Runs a node until it is asked to stop.
pub(crate) async fn start(start: Start) -> Outcome {
    let begin = Instant::now();
    let file = start.config.clone();
    if let Some(count @ 2..) = start.nodes {
        return nodes::run(count, start.settings(), file.as_deref(), &Start::SWITCHES, check).await;
    }
    let flags = start.settings();
    let configuration = match configuration(flags.clone(), file.as_deref()) {
        Ok(configuration) => configuration,
        Err(error) => return refuse(flags, file.as_deref(), error),
    };
    let outcome = run(&configuration, begin).await;
    match outcome {
        // Whoever reads the lines as JSON expects nothing else on that stream.
        Err(error) if configuration.log_format == LogFormat::Json && tracing::enabled!(tracing::Level::ERROR) => {
            tracing::error!("{error}");
            Err(Logged.into())
        }
        outcome => outcome,
    }
}

/// The settings, and the log that they ask for.
fn configuration(
    flags: BTreeMap<&'static str, String>,
    file: Option<&Path>,
) -> Result<Configuration, Box<dyn std::error::Error + Send + Sync>> {
    let configuration = Configuration::read(&Sources::new(flags, Environment::of_process(), file)?)?;
    log(&configuration)?;
    Ok(configuration)
}

/// Settings are refused before there is a log: those of it are looked for alone.
fn refuse(
    flags: BTreeMap<&'static str, String>,
    file: Option<&Path>,
    error: Box<dyn std::error::Error + Send + Sync>,
) -> Outcome {
    let sources = |file| Sources::new(flags.clone(), Environment::of_process(), file);
    let sources = sources(file).or_else(|_| sources(None));
    let format = sources.ok().and_then(|sources| sources.get("log-format", LogFormat::read).ok()?);
    match format {
        Some(LogFormat::Json) => {
            log_to(tracing_subscriber::EnvFilter::new("error"), LogFormat::Json);
            tracing::error!("{error}");
            Err(Logged.into())
        }
        Some(LogFormat::Text) | None => Err(error),
    }
}

/// A failure that is in the log already.
#[derive(Debug, thiserror::Error)]
#[error("The log says why the node ended")]
pub(crate) struct Logged;

async fn run(configuration: &Configuration, begin: Instant) -> Outcome {
    warn_of(configuration);
    if let Some(tls) = &configuration.tls {
        // Before anything is made that a second try would find.
        tls.check()?;
    }
    let [grpc_address, http_address] = client_addresses(configuration)?;
    gateway::check_addresses(grpc_address, http_address)?;
    give_freed_memory_back();
    forgo_huge_pages();
    let open_files_max = raise_open_files_limit();
    let mut signals = Signals::new()?;
    let metrics = Metrics::install()?;
    let managed = Managed::new(metrics.clone(), configuration.cluster.clone());
    let connections = connections(configuration, open_files_max);
    let (management_address, _server) = management::serve(managed.clone(), connections.clone(), configuration)
        .await
        .map_err(|error| bind_error("management", &configuration.host, configuration.management_port, &error))?;
    tokio::spawn(upkeep(metrics));
    if configuration.cluster.is_some() {
        tokio::spawn(observe(managed.clone()));
    }

    let mut options = node_options(configuration)?;
    let read_model = read_model(configuration, &options)?;
    let looked = look_at(read_model.as_ref()).await?;
    if let Some(model) = &read_model {
        options.exporters.push(model.consumer(configuration.read_model_retention, configuration.read_model_audited)?);
    }
    let Some(node) = start_node(options, &managed, &mut signals).await? else {
        tracing::info!("Osmia stops before it has started: it has taken nothing");
        return Ok(());
    };
    managed.node_started(node.client(), node.clock(), node.exporters());
    let ports = Ports { management_address, connections, read_model, looked };
    let outcome = serve(configuration, &managed, &node, &mut signals, begin, ports).await;
    managed.stopping();
    let stopping = Instant::now();
    let stopped = tokio::task::spawn_blocking(move || node.stop()).await?;
    if stopped.is_ok() {
        tracing::info!(
            milliseconds = stopping.elapsed().as_millis(),
            "Osmia has stopped; everything acknowledged is on the disk"
        );
    }
    outcome.and(stopped.map_err(Into::into))
}

/// Starts the node, of a cluster when it belongs to it, which may take as long as other nodes are away. None when it is asked
/// to stop meanwhile.
async fn start_node(
    options: NodeOptions,
    managed: &Managed,
    signals: &mut Signals,
) -> Result<Option<Node>, Box<dyn std::error::Error + Send + Sync>> {
    if options.cluster.is_none() {
        return Ok(Some(tokio::task::spawn_blocking(move || Node::start(options)).await??));
    }
    let begin = Instant::now();
    let mut joining = tokio::task::block_in_place(|| Node::join(&options))?;
    let mut said = None;
    while !tokio::task::block_in_place(|| joining.is_founded())? {
        let waits_for = joining.waits_for();
        if begin.elapsed() >= USUAL && said != waits_for {
            let sentence = waits_for.as_deref().unwrap_or("the cluster is founded");
            tracing::warn!("this node has not started yet: {sentence}");
            said.clone_from(&waits_for);
        }
        managed.waits_for(waits_for);
        tokio::select! {
            () = tokio::time::sleep(FOUNDING_INTERVAL) => {}
            () = signals.next() => return Ok(None),
        }
    }
    managed.waits_for(None);
    let starting = tokio::task::spawn_blocking(move || Node::start_member(options, joining));
    tokio::select! {
        node = starting => Ok(Some(node??)),
        // What is in its files is as after a kill, which loses nothing.
        () = signals.next() => Ok(None),
    }
}

/// What the ports for clients stand on, besides the node.
struct Ports {
    management_address: SocketAddr,
    connections: Connections,
    read_model: Option<Arc<ReadModel>>,
    /// How the read model was before the node started.
    looked: Looked,
}

/// What searches read, for all partitions of the node.
fn read_model(configuration: &Configuration, options: &NodeOptions) -> std::io::Result<Option<Arc<ReadModel>>> {
    let partitions = (1..=options.partition_count).map(PartitionId);
    match &configuration.read_model {
        ReadModelKind::None => Ok(None),
        ReadModelKind::Sqlite => ReadModel::new(&options.data_directory.join("read-model"), partitions).map(Some),
        ReadModelKind::PostgreSql(server) => ReadModel::on_server(server.clone(), partitions).map(Some),
    }
}

/// Looks whether the read model can be used: what only an operator can mend ends the start, a server that is not there does not.
async fn look_at(read_model: Option<&Arc<ReadModel>>) -> Result<Looked, Box<dyn std::error::Error + Send + Sync>> {
    let Some(model) = read_model.cloned() else { return Ok(Looked::Usable { is_cluster_known: true }) };
    let looked = tokio::task::spawn_blocking(move || model.look()).await?;
    looked.map_err(|error| format!("The read model cannot be used: {error}.").into())
}

/// Says what is most likely a mistake and is not refused.
fn warn_of(configuration: &Configuration) {
    for name in &configuration.unknown_variables {
        tracing::warn!(name, "this variable of the environment means nothing to this version and has no effect");
    }
    warnings(configuration).iter().for_each(|warning| tracing::warn!("{warning}"));
}

/// What is possible and most likely not meant.
pub(crate) fn warnings(configuration: &Configuration) -> Vec<String> {
    let danger = danger_of_clock_control(configuration).map(str::to_owned);
    danger.into_iter().chain(configuration.cluster.as_ref().and_then(ClusterSettings::remark)).collect()
}

/// What others can do to a node that is meant for tests.
fn danger_of_clock_control(configuration: &Configuration) -> Option<&'static str> {
    let is_loopback = resolve(&configuration.host, 0).is_ok_and(|address| address.ip().is_loopback());
    (configuration.clock_control && !is_loopback).then_some(
        "everybody who reaches this host's ports can change the clock and have all data deleted; leave out clock-control outside of tests",
    )
}

/// Serves clients until a signal comes or the node cannot continue.
async fn serve(
    configuration: &Configuration,
    managed: &Managed,
    node: &Node,
    signals: &mut Signals,
    begin: Instant,
    Ports { management_address, connections, read_model, looked }: Ports,
) -> Outcome {
    // A node of a cluster serves before it can do much: what needs a leader is refused with a sentence until there is one.
    if configuration.cluster.is_none() {
        let ready = tokio::select! {
            ready = wait_until_ready(node) => ready,
            () = signals.next() => return Ok(()),
        };
        if !ready {
            return Err(not_ready(node).into());
        }
        if looked == (Looked::Usable { is_cluster_known: false }) {
            // It is known since.
            look_at(read_model.as_ref()).await?;
        }
    }
    let searched = read_model.clone();
    let options = gateway_options(configuration, connections, read_model)?;
    let mut gateway = Gateway::start(node.client(), node.clock(), options).await?;
    let (host, port) = advertised_address(configuration, gateway.grpc_address().port());
    node.set_advertised_address(&host, port);
    managed.serving(gateway.job_streams(), searched);
    let ready = Ready {
        configuration,
        grpc: gateway.grpc_address(),
        rest: gateway.http_address(),
        management: management_address,
        begin,
    };
    let mut demo = None;
    let end = tokio::select! {
        () = signals.next() => End::Asked,
        () = failed(node) => End::Failed,
        // A node without a port would look healthy and serve nobody.
        () = gateway.ended() => End::WithoutPort,
        error = attend(node, managed, &ready, &mut demo) => return Err(error),
    };
    if end == End::Asked {
        drain(configuration.shutdown_drain, managed, node, &gateway, signals).await;
    }
    managed.stopping();
    // Its clients would complain that nobody answers them any more.
    drop(demo);
    tracing::info!("Osmia stops: it answers what it has taken, and writes the last checkpoints");
    gateway.stop().await;
    match end {
        End::WithoutPort => {
            Err("The server for clients ended by itself. The log lines before this one say why.".into())
        }
        End::Asked | End::Failed => Ok(()),
    }
}

/// Why a node serves no longer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Asked,
    Failed,
    WithoutPort,
}

fn gateway_options(
    configuration: &Configuration,
    connections: Connections,
    read_model: Option<Arc<ReadModel>>,
) -> Result<GatewayOptions, Box<dyn std::error::Error + Send + Sync>> {
    let [grpc_address, http_address] = client_addresses(configuration)?;
    Ok(GatewayOptions {
        allowed_hosts: configuration.allowed_hosts.clone(),
        tls: configuration.tls.clone(),
        request_timeout: configuration.request_timeout,
        long_polling_timeout: configuration.long_polling_timeout,
        parked_polls_max: configuration.parked_polls_max,
        search_wait_max: configuration.search_wait,
        connections,
        read_model,
        ..GatewayOptions::new(grpc_address, http_address)
    })
}

/// Says when the node is ready, and keeps the demo running from then on. Ends only by what goes wrong with that.
async fn attend(
    node: &Node,
    managed: &Managed,
    ready: &Ready<'_>,
    demo: &mut Option<tokio::task::JoinSet<()>>,
) -> Box<dyn std::error::Error + Send + Sync> {
    if let Some(cluster) = &ready.configuration.cluster {
        wait_for_others(node, managed, Waiting::new(cluster.clone())).await;
    }
    let output = Output::new(ready.configuration.log_format == LogFormat::Json);
    tell_ready(&output, ready, node.client().partition_count());
    if ready.configuration.demo {
        match demo::start(&format!("http://{}", ready.grpc), &output).await {
            Ok(clients) => *demo = Some(clients),
            Err(error) => return error,
        }
    }
    std::future::pending().await
}

/// Lets balancers turn to other nodes, and those take over, while clients are still served here.
async fn drain(time: Duration, managed: &Managed, node: &Node, gateway: &Gateway, signals: &mut Signals) {
    managed.stopping();
    if !time.is_zero() {
        gateway.announce_stop().await;
        tracing::info!(
            milliseconds = time.as_millis(),
            "Osmia is no longer ready and will stop: it serves a moment longer, so that clients turn to other nodes"
        );
        tokio::select! {
            () = tokio::time::sleep(time) => {}
            // Who asks twice is in a hurry.
            () = signals.next() => {}
            () = failed(node) => {}
        }
    }
    tokio::task::block_in_place(|| node.hand_over_leaders());
}

/// In the shape of the log. A node whose output cannot be written, on a full disk for example, works nevertheless.
fn tell_ready(output: &Output, ready: &Ready<'_>, partitions: u16) {
    let Ready { configuration, grpc, rest, management, begin } = ready;
    let scheme = if configuration.tls.is_some() { "https" } else { "http" };
    let rest = format!("{scheme}://{rest}");
    let data = configuration.data.display();
    let milliseconds = u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX);
    let text = format!(
        "Osmia is ready: gRPC {grpc}, REST {rest}, management http://{management}, {partitions} partition(s), data in {data}, \
         started in {milliseconds} ms"
    );
    let json = || {
        json!({
            "message": text, "grpc": grpc.to_string(), "rest": rest, "management": format!("http://{management}"),
            "partitions": partitions, "data": data.to_string(), "milliseconds": milliseconds,
        })
    };
    let _ = output.say(&text, json);
}

/// What a node says about itself when clients are served.
struct Ready<'a> {
    configuration: &'a Configuration,
    grpc: SocketAddr,
    rest: SocketAddr,
    management: SocketAddr,
    /// When its start began.
    begin: Instant,
}

/// Waits until all partitions take commands; false when they do not.
async fn wait_until_ready(node: &Node) -> bool {
    let begin = Instant::now();
    while begin.elapsed() < START_TIMEOUT && node.failure().is_none() {
        if node.is_ready() {
            return true;
        }
        tokio::time::sleep(READY_POLL_INTERVAL).await;
    }
    false
}

/// Waits until a node of a cluster is ready, which may take as long as others are away, and says what it waits for.
async fn wait_for_others(node: &Node, managed: &Managed, mut waiting: Waiting) {
    let begin = Instant::now();
    while !node.is_ready() {
        if let Some(sentence) = waiting.sentence(&node.client().cluster(), begin.elapsed()) {
            tracing::warn!("{sentence}");
            managed.waits_for(Some(sentence));
        }
        tokio::time::sleep(READINESS_INTERVAL).await;
    }
    managed.waits_for(None);
}

fn not_ready(node: &Node) -> String {
    let partitions = node.partitions();
    match partitions.iter().find(|partition| partition.role != Role::Leader) {
        Some(first) => format!(
            "Partition {} does not take commands after {} s ({:?}, {:?}). The log lines before this one say why.",
            first.id,
            START_TIMEOUT.as_secs(),
            first.role,
            first.health
        ),
        None => "The node does not get ready. The log lines before this one say why.".to_owned(),
    }
}

/// Ends when the node cannot continue.
async fn failed(node: &Node) {
    while node.failure().is_none() {
        tokio::time::sleep(FAILURE_POLL_INTERVAL).await;
    }
}

/// Checks what the configuration itself does not: what exporters and the log make of their settings, and whether the files fit that
/// they name.
pub(crate) fn check(configuration: &Configuration) -> Outcome {
    let options = node_options(configuration)?;
    for port in [configuration.grpc_port, configuration.http_port, configuration.management_port] {
        resolve(&configuration.host, port)?;
    }
    broker::check_exporters(&options.exporters, options.partition_count, &configuration.data)?;
    log_filter(configuration)?;
    if let Some(tls) = &configuration.tls {
        tls.check()?;
    }
    broker::check_data_directory(&options)?;
    Ok(())
}

fn exporters(
    configuration: &Configuration,
) -> Result<Vec<ExporterConfiguration>, Box<dyn std::error::Error + Send + Sync>> {
    let exporter = |(name, exporter): (&String, &crate::configuration::ExporterConfiguration)| {
        ExporterConfiguration::of_class(name, &class(&exporter.kind), exporter.settings.clone())
    };
    Ok(configuration.exporters.iter().map(exporter).collect::<Result<_, _>>()?)
}

fn partition_count(configuration: &Configuration) -> u16 {
    configuration.partitions.or_else(|| broker::stored_partition_count(&configuration.data)).unwrap_or(1)
}

fn node_options(configuration: &Configuration) -> Result<NodeOptions, Box<dyn std::error::Error + Send + Sync>> {
    let usual = NodeOptions::default();
    Ok(NodeOptions {
        data_directory: configuration.data.clone(),
        node_id: configuration.cluster.as_ref().map_or(0, |cluster| cluster.node_id),
        cluster: configuration.cluster.as_ref().map(cluster_options).transpose()?,
        partition_count: partition_count(configuration),
        disk: DiskOptions {
            free_space_low_bytes: configuration.disk_free_space_low,
            reserve_bytes: configuration.disk_reserve,
        },
        checkpoint_interval: configuration.checkpoint_interval.unwrap_or(usual.checkpoint_interval),
        root_variable_bytes_limit: configuration.root_variable_bytes_limit,
        unique_business_ids: configuration.unique_business_ids,
        exporter_backlog_limit_bytes: configuration
            .exporter_backlog_limit
            .unwrap_or(usual.exporter_backlog_limit_bytes),
        write_throttle: configuration.write_throttle_backlog.map(broker::WriteThrottleOptions::above),
        clock_control: configuration.clock_control,
        advertised_address: advertised_address(configuration, configuration.grpc_port),
        exporters: exporters(configuration)?,
        global_listeners: configuration.global_listeners.as_slice().into(),
        ..usual
    })
}

fn cluster_options(cluster: &ClusterSettings) -> Result<ClusterOptions, Box<dyn std::error::Error + Send + Sync>> {
    let members = cluster.members.iter().map(|(number, member)| (*number, member.to_string())).collect();
    Ok(ClusterOptions { listen: resolve(&cluster.host, cluster.own().port)?, members })
}

/// Where clients are said to find the node, whose gateway has this port.
fn advertised_address(configuration: &Configuration, grpc_port: u16) -> (String, u16) {
    if let Some((host, port)) = &configuration.advertised_address {
        return (host.clone(), port.unwrap_or(grpc_port));
    }
    let is_any = configuration.host.parse::<IpAddr>().is_ok_and(|address| address.is_unspecified());
    // Nobody can connect to all addresses of a machine, and clients that look for another node do not know which one.
    let host = match &configuration.cluster {
        Some(cluster) if is_any => &cluster.own().host,
        _ => &configuration.host,
    };
    (host.clone(), grpc_port)
}

/// `json-lines` names the class `JsonLines`.
fn class(kind: &str) -> String {
    let capitalised = |word: &str| {
        let mut letters = word.chars();
        letters.next().map(|first| first.to_uppercase().chain(letters).collect::<String>()).unwrap_or_default()
    };
    kind.split('-').map(capitalised).collect()
}

/// For gRPC and for HTTP.
fn client_addresses(
    configuration: &Configuration,
) -> Result<[SocketAddr; 2], Box<dyn std::error::Error + Send + Sync>> {
    Ok([resolve(&configuration.host, configuration.grpc_port)?, resolve(&configuration.host, configuration.http_port)?])
}

fn resolve(host: &str, port: u16) -> Result<SocketAddr, Box<dyn std::error::Error + Send + Sync>> {
    let mut addresses =
        (host, port).to_socket_addrs().map_err(|error| format!("The host '{host}' is not known: {error}"))?;
    addresses.next().ok_or_else(|| format!("The host '{host}' has no address").into())
}

fn bind_error(what: &str, host: &str, port: u16, error: &std::io::Error) -> String {
    let advice = match error.kind() {
        std::io::ErrorKind::AddrInUse | std::io::ErrorKind::PermissionDenied => {
            format!("Choose another port with --{what}-port, where 0 takes a free one.")
        }
        _ => "Is it a name or an address of this machine? --host sets it.".to_owned(),
    };
    format!("Cannot listen on {host}:{port} ({what}): {error}. {advice}")
}

fn log_filter(configuration: &Configuration) -> Result<tracing_subscriber::EnvFilter, String> {
    tracing_subscriber::EnvFilter::try_new(&configuration.log)
        .map_err(|error| format!("The log filter '{}' cannot be read: {error}", configuration.log))
}

fn log(configuration: &Configuration) -> Outcome {
    log_to(log_filter(configuration)?, configuration.log_format);
    tracing::info!(version = env!("CARGO_PKG_VERSION"), data = %configuration.data.display(), "Osmia starts");
    Ok(())
}

fn log_to(filter: tracing_subscriber::EnvFilter, format: LogFormat) {
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        // A line that cannot be written, on a full disk for example, is lost. Saying so would fail too, and end the
        // thread that wanted to write it.
        .log_internal_errors(false);
    match format {
        LogFormat::Text => lines.init(),
        LogFormat::Json => lines.json().flatten_event(true).init(),
    }
}

/// Every client's connection is an open file, and the usual limit of 1,024 is meant for programs that use `select`. So
/// the limit is raised to the most that the administrator allows.
///
/// Returns how many files may be open, if that is known.
fn raise_open_files_limit() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: both calls access only the structure passed to them, which lives until they return.
    let raised = unsafe {
        libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) == 0 && {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) == 0
        }
    };
    if !raised {
        tracing::warn!(error = %std::io::Error::last_os_error(), "cannot raise the limit of open files");
    }
    limit.rlim_cur
}

/// The allocator keeps what was freed for a second, and longer in large pieces: when one burst follows another, that is a fifth of the
/// memory at the peak. Giving it back at once would save more, but whoever works on large variables would take every page anew from
/// the system, which fills it with zeros: twice the time.
fn give_freed_memory_back() {
    const MILLISECONDS: libc::c_long = 250;
    // SAFETY: declared as in `mimalloc.h`. The call sets a number that the allocator reads now and then.
    unsafe { mi_option_set(PURGE_DELAY, MILLISECONDS) };
}

/// `mi_option_purge_delay` of `mimalloc.h`, in milliseconds.
const PURGE_DELAY: libc::c_int = 15;

// Of the allocator, whose crate has no call for options.
unsafe extern "C" {
    fn mi_option_set(option: libc::c_int, value: libc::c_long);
    #[cfg(test)]
    fn mi_option_get(option: libc::c_int) -> libc::c_long;
}

/// The allocator asks for huge pages, of which a node with many small allocations on several threads uses a part each. They cost a
/// third of the memory of a node under load, and save no processor time.
fn forgo_huge_pages() {
    let (yes, unused): (libc::c_ulong, libc::c_ulong) = (1, 0);
    // SAFETY: the call takes numbers of the width that the kernel reads, and changes only what it does at later page faults.
    let forgone = unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, yes, unused, unused, unused) == 0 };
    if !forgone {
        tracing::debug!(error = %std::io::Error::last_os_error(), "cannot forgo huge pages; the node may take more memory");
    }
}

fn connections(configuration: &Configuration, open_files_max: u64) -> Connections {
    let usual = Connections::usual_limit(open_files_max);
    let limit = configuration.connections_max.unwrap_or(usual);
    if limit as u64 > open_files_max / 4 * 3 {
        tracing::warn!(
            limit,
            open_files_max,
            "connections-max leaves few of the open files that the system allows to the log and the state; raise that limit, or lower this one"
        );
    }
    Connections::new(limit)
}

/// Looks at the node without being asked, so that short trouble is not taken for a long one.
async fn observe(managed: Arc<Managed>) {
    let mut interval = tokio::time::interval(READINESS_INTERVAL);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        managed.observe();
    }
}

async fn upkeep(metrics: Metrics) {
    let mut interval = tokio::time::interval(UPKEEP_INTERVAL);
    loop {
        interval.tick().await;
        metrics.upkeep();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The options of the allocator have other numbers in other versions of it.
    #[test]
    fn the_option_that_is_set_is_the_one_that_is_meant() {
        // SAFETY: declared as in `mimalloc.h`. The call reads a number.
        let milliseconds = unsafe { mi_option_get(PURGE_DELAY) };
        assert_eq!(milliseconds, 1_000, "the default of version 3");
    }
}
