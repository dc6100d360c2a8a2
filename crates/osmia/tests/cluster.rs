//! Several nodes: what an operator starts, sees, kills and replaces.

#[path = "support/cluster.rs"]
mod cluster;
mod support;

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use cluster::{Cluster, Guarded, eventually};
use serde_json::Value;
use support::*;
use tonic_health::pb::health_client::HealthClient;
use tonic_health::pb::{HealthCheckRequest, health_check_response::ServingStatus};

fn json(text: &str) -> Value {
    let whole = serde_json::from_str(text).or_else(|_| serde_json::from_str(&of_chunks(text)));
    whole.unwrap_or_else(|_| panic!("no JSON: {text}"))
}

/// A body that came in chunks.
fn of_chunks(mut chunks: &str) -> String {
    let mut body = String::new();
    while let Some((length, rest)) = chunks.split_once("\r\n")
        && let Ok(length @ 1..) = usize::from_str_radix(length, 16)
    {
        let Some((chunk, rest)) = rest.split_at_checked(length) else { break };
        body.push_str(chunk);
        chunks = rest.trim_start_matches("\r\n");
    }
    body
}

fn signal(process: u32, signal: &str) {
    assert!(Command::new("kill").args([signal, &process.to_string()]).status().expect("kill exists").success());
}

/// A command for operators, asked of the node with this management port.
fn operate(management: &str, words: &[&str]) -> Output {
    program().args(words).args(["--management-address", management]).output().expect("the binary starts")
}

fn said(output: &[u8]) -> String {
    String::from_utf8(output.to_vec()).expect("text")
}

/// Lines of a process as they come.
fn lines(source: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(source).lines().map_while(Result::ok) {
            // Nobody may wait for more, and the pipe must not fill up.
            let _ = sender.send(line);
        }
    });
    lines
}

/// The first line that has this in it.
fn line_with(lines: &Receiver<String>, part: &str) -> String {
    let begin = Instant::now();
    let mut seen = Vec::new();
    while let Ok(line) = lines.recv_timeout(LIMIT.saturating_sub(begin.elapsed())) {
        if line.contains(part) {
            return line;
        }
        seen.push(line);
    }
    panic!("no line has '{part}':\n{}", seen.join("\n"));
}

/// The processes that this one has begun, with their command lines.
fn children(process: u32) -> Vec<(u32, String)> {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).expect("it runs").flatten();
    let children = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    let children: Vec<u32> =
        children.collect::<String>().split_whitespace().filter_map(|child| child.parse().ok()).collect();
    let command_line = |child: &u32| std::fs::read_to_string(format!("/proc/{child}/cmdline")).unwrap_or_default();
    children.iter().map(|child| (*child, command_line(child))).collect()
}

#[test]
fn nodes_on_one_machine_are_started_told_apart_and_stopped() {
    let data = tempfile::tempdir().unwrap();
    let mut command = command(data.path(), &["--nodes", "3", "--cluster-port", "0", "--log", "info"]);
    let mut parent = Guarded(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    let output = lines(parent.0.stdout.take().unwrap());
    let log = lines(parent.0.stderr.take().unwrap());
    let mut ready = BTreeSet::new();
    while ready.len() < 3 {
        let line = line_with(&output, "Osmia is ready");
        ready.insert(line.split_once(" | ").expect("it says whose it is").0.to_owned());
    }
    assert_eq!(ready.iter().map(String::as_str).collect::<Vec<_>>(), ["node 0", "node 1", "node 2"]);
    assert!(line_with(&log, "node 2 | ").contains("Osmia starts"));

    let nodes = children(parent.0.id());
    let (second, _) = nodes.iter().find(|(_, line)| line.contains("--node-id=1")).expect("it runs");
    signal(*second, "-KILL");
    let ended = line_with(&output, "node 1 was ended by signal 9 and is not started again; 2 node(s) go on");
    assert!(ended.contains("--node-id=1") && ended.contains("node-1"), "{ended}");
    assert_eq!(children(parent.0.id()).len(), 2);

    signal(parent.0.id(), "-TERM");
    assert_eq!(line_with(&output, " has stopped"), "node 2 has stopped");
    assert_eq!(line_with(&output, " has stopped"), "node 0 has stopped");
    assert_eq!(parent.0.wait().unwrap().code(), Some(0));
}

#[test]
fn nodes_do_not_outlive_the_process_that_started_them() {
    let data = tempfile::tempdir().unwrap();
    let mut command = command(data.path(), &["--nodes", "2", "--cluster-port", "0"]);
    let mut parent = Guarded(command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap());
    let output = lines(parent.0.stdout.take().unwrap());
    line_with(&output, "Osmia is ready");
    let nodes = children(parent.0.id());
    assert_eq!(nodes.len(), 2);
    parent.0.kill().unwrap();
    parent.0.wait().unwrap();
    for (node, _) in nodes {
        let state = || std::fs::read_to_string(format!("/proc/{node}/stat")).unwrap_or_default();
        // Nobody may have asked yet how it ended.
        eventually("the node ends", || !state().contains("(osmia)") || state().contains(") Z "));
    }
}

#[test]
fn mistakes_with_nodes_on_one_machine_are_told_once() {
    let data = tempfile::tempdir().unwrap();
    let said = start_fails(data.path(), &["--nodes", "3", "--cluster-port", "65530"]);
    assert_eq!(said.matches("there is no such port").count(), 1, "{said}");
    let said = start_fails(data.path(), &["--nodes", "3", "--node-id", "1"]);
    assert!(said.contains("--node-id cannot be given too"), "{said}");
    assert!(std::fs::read_dir(data.path()).unwrap().next().is_none(), "nothing was made");
}

#[test]
fn a_node_alone_is_a_cluster_of_one() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path(), &["--partitions", "2"]);
    let shown = operate(&server.management, &["cluster", "status"]);
    let text = said(&shown.stdout);
    assert!(shown.status.success() && text.contains("1 node(s), 2 partition(s)"), "{text}");
    assert_eq!(text.matches("leader").count(), 2, "{text}");
    let shown = json(&said(&operate(&server.management, &["cluster", "status", "--json"]).stdout));
    assert_eq!(shown["nodes"][0]["partitions"][1]["leader"], 0);
    let refused = operate(&server.management, &["cluster", "replace", "1"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(said(&refused.stderr).contains("this node is not part of a cluster"), "{}", said(&refused.stderr));
    assert_eq!(server.http("POST", "/cluster/members/x/replace", "").0, 400);
    let elsewhere = operate(&server.rest, &["cluster", "status"]);
    assert!(!elsewhere.status.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_drains_serves_while_it_says_that_it_stops() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path(), &["--shutdown-drain", "10m"]);
    let mut client = server.client().await;
    let channel = tonic::transport::Endpoint::from_shared(server.grpc.clone()).unwrap().connect().await.unwrap();
    let mut health = HealthClient::new(channel);
    let mut status = async || {
        let request = HealthCheckRequest { service: String::new() };
        health.check(request).await.expect("it serves").into_inner().status()
    };
    assert_eq!(status().await, ServingStatus::Serving);
    server.signal("-TERM");
    eventually("it is not ready", || server.http("GET", "/ready", "").0 == 503);
    while status().await != ServingStatus::NotServing {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    deploy(&mut client, one_task("order", "work")).await;
    assert_eq!(Server::request(&server.rest, "GET", "/v2/topology", "").0, 200);
    assert_eq!(server.http("GET", "/actuator/health/liveness", "").0, 200);
    let request = gateway_interface::StreamActivatedJobsRequest {
        r#type: "work".to_owned(),
        worker: "test".to_owned(),
        timeout: 60_000,
        ..Default::default()
    };
    let mut stream = client.stream_activated_jobs(request).await.expect("it serves").into_inner();
    let mut polling = client.clone();
    let mut polled =
        Box::pin(async move { polling.activate_jobs(poll("work", LONG_POLL)).await?.into_inner().message().await });
    // What comes after it on the same connection is answered, so the poll has arrived.
    tokio::select! {
        biased;
        ended = &mut polled => panic!("there is no job: {ended:?}"),
        topology = client.topology(gateway_interface::TopologyRequest {}) => drop(topology.expect("it serves")),
    }
    // Who asks again does not want to wait.
    server.signal("-TERM");
    // On that, clients connect to another node.
    assert_eq!(stream.message().await.expect_err("it ends").code(), tonic::Code::Unavailable);
    assert_eq!(polled.await.expect_err("it ends").code(), tonic::Code::Unavailable);
    assert_eq!(server.wait(), Some(0));
}

const NOT_YET: Duration = Duration::from_millis(50);

/// The brokers of the topology, and the partitions that some of them lead.
fn topology(server: &Server) -> (usize, BTreeSet<i64>) {
    let (code, body) = Server::request(&server.rest, "GET", "/v2/topology", "");
    assert_eq!(code, 200, "{body}");
    let topology = json(&body);
    let brokers = topology["brokers"].as_array().expect("a list").clone();
    let led = brokers.iter().flat_map(|broker| broker["partitions"].as_array().expect("a list").clone());
    let led = led.filter(|partition| partition["role"] == "leader").filter_map(|one| one["partitionId"].as_i64());
    (brokers.len(), led.collect())
}

/// Until these nodes, and only these, are known to each of them and lead all partitions.
fn wait_for_leaders(servers: &[&Server]) {
    for server in servers {
        let expected = (servers.len(), BTreeSet::from([1, 2, 3]));
        eventually("all partitions are led", || topology(server) == expected);
    }
}

/// Deploys a process of its own at a node, and has an instance of it run through the others. Everybody then finds that it
/// has ended.
async fn run_an_instance(servers: &[&Server], at: usize, name: &str) {
    let server = |steps: usize| servers[(at + steps) % servers.len()];
    let mut client = server(0).client().await;
    deploy(&mut client, one_task(name, name)).await;
    let created = client.create_process_instance(creation(name, "{}")).await.expect("it was deployed here");
    let instance = created.into_inner().process_instance_key;
    let jobs = activate(&mut server(1).client().await, poll(name, LONG_POLL)).await;
    assert_eq!(jobs.iter().map(|job| job.process_instance_key).collect::<Vec<_>>(), [instance]);
    server(2).client().await.complete_job(completion(jobs[0].key, "{}")).await.expect("its job is held");
    let filter = format!(r#"{{"filter": {{"processInstanceKey": "{instance}", "state": "COMPLETED"}}}}"#);
    for server in servers {
        eventually("the instance is found as completed", || {
            let (_, body) = Server::request(&server.rest, "POST", "/v2/process-instances/search", &filter);
            json(&body)["page"]["totalItems"] == 1
        });
    }
}

/// The same over REST.
fn run_an_instance_over_rest(servers: &[&Server], at: usize, name: &str) {
    let post = |steps: usize, path: &str, body: String| {
        let (code, answer) = Server::request(&servers[(at + steps) % servers.len()].rest, "POST", path, &body);
        assert!((200..300).contains(&code), "{path}: {code} {answer}");
        answer
    };
    let created = post(0, "/v2/process-instances", format!(r#"{{"processDefinitionId": "{name}"}}"#));
    let instance = json(&created)["processInstanceKey"].clone();
    let poll =
        format!(r#"{{"type": "{name}", "timeout": 60000, "maxJobsToActivate": 5, "requestTimeout": {LONG_POLL}}}"#);
    let jobs = json(&post(1, "/v2/jobs/activation", poll));
    assert_eq!(jobs["jobs"][0]["processInstanceKey"], instance, "{jobs}");
    let job = jobs["jobs"][0]["jobKey"].as_str().expect("a key");
    post(2, &format!("/v2/jobs/{job}/completion"), "{}".to_owned());
    let path = format!("/v2/process-instances/{}", instance.as_str().expect("a key"));
    for server in servers {
        eventually("its end is found", || {
            json(&Server::request(&server.rest, "GET", &path, "").1)["state"] == "COMPLETED"
        });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn three_nodes_serve_as_one_and_go_on_without_one_of_them() {
    let cluster = Cluster::new(3);
    let mut servers = cluster.start_all();
    let all: Vec<_> = servers.iter().collect();
    wait_for_leaders(&all);
    for node in 0..3 {
        run_an_instance(&all, node, &format!("first-{node}")).await;
        run_an_instance_over_rest(&all, node, &format!("first-{node}"));
    }
    let shown = operate(&servers[0].management, &["cluster", "status", "--json"]);
    assert!(shown.status.success(), "{}{}", said(&shown.stdout), said(&shown.stderr));
    let shown = json(&said(&shown.stdout));
    let directories: BTreeSet<_> = (0..3).map(|node| shown["nodes"][node]["directoryId"].to_string()).collect();
    assert_eq!(directories.len(), 3, "{shown}");
    for replica in (0..3).flat_map(|node| shown["nodes"][node]["partitions"].as_array().expect("a list")) {
        assert!(replica["term"].as_u64().is_some_and(|term| term > 0), "{replica}");
        let is_behind_somebody = replica["lagEntries"].is_u64();
        assert_eq!(is_behind_somebody, replica["role"] == "follower", "{replica}");
    }
    let health = json(&servers[1].http("GET", "/actuator/health", "").1);
    let details = &health["components"]["partitions"]["details"]["partition1"]["details"];
    assert!(details["leader"].is_u64() && details["role"].is_string(), "{health}");

    let mut kill_at = 0;
    for (round, name) in ["second", "third"].into_iter().enumerate() {
        servers.remove(kill_at).kill();
        let rest: Vec<_> = servers.iter().collect();
        wait_for_leaders(&rest);
        for at in 0..2 {
            run_an_instance(&rest, at, &format!("{name}-{at}")).await;
        }
        for server in &rest {
            assert_eq!(server.http("GET", "/ready", "").0, 200, "two of three serve");
        }
        servers.insert(kill_at, cluster.start(kill_at));
        let all: Vec<_> = servers.iter().collect();
        wait_for_leaders(&all);
        run_an_instance(&all, kill_at, &format!("{name}-back")).await;
        kill_at = round + 1;
    }
    for server in servers {
        assert_eq!(server.terminate(), Some(0));
    }
}

#[test]
fn a_node_that_waits_for_others_says_so_and_stops_at_once() {
    let cluster = Cluster::new(3);
    let mut waiting = cluster.command(0);
    let mut waiting = Guarded(waiting.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap());
    let log = lines(waiting.0.stderr.take().unwrap());
    let line = line_with(&log, "this node has not started yet");
    assert!(line.contains("missing: node 1, node 2"), "{line}");
    assert!(waiting.0.try_wait().unwrap().is_none(), "it waits");
    signal(waiting.0.id(), "-TERM");
    assert_eq!(waiting.0.wait().unwrap().code(), Some(0));
    assert!(!has_cluster(&cluster.directory.path().join("node-0")), "one node of three founds nothing");
}

fn has_cluster(data: &Path) -> bool {
    data.join("CLUSTER").exists()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_with_a_lost_disk_takes_no_part_until_it_has_its_place_again() {
    let cluster = Cluster::new(3);
    let mut servers = cluster.start_all();
    servers.remove(2).kill();
    std::fs::remove_dir_all(cluster.directory.path().join("node-2")).unwrap();
    // It must be asked before it is ready, so its port must be known.
    let held = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let management = held.local_addr().expect("bound");
    drop(held);
    let usual = cluster.command(2);
    let arguments: Vec<_> = usual.get_args().map(std::ffi::OsStr::to_owned).collect();
    let at = arguments.iter().position(|word| word == "--management-port").expect("it is given");
    let mut lost = program();
    lost.args(&arguments[..=at]).arg(management.port().to_string()).args(&arguments[at + 2..]);
    // Its lines are read as they come, so it is not waited for.
    let mut lost = Guarded(lost.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    let output = lines(lost.0.stdout.take().unwrap());
    let log = lines(lost.0.stderr.take().unwrap());
    let line = line_with(&log, "this node has not started yet");
    assert!(line.contains("osmia cluster replace 2"), "{line}");
    let management = management.to_string();
    let (code, told) = Server::request(&management, "GET", "/cluster", "");
    assert!(code == 503 && told.contains("osmia cluster replace 2"), "{told}");
    assert_eq!(Server::request(&management, "GET", "/actuator/health/liveness", "").0, 200);
    assert_eq!(Server::request(&management, "GET", "/startup", "").0, 200);
    assert_eq!(Server::request(&management, "GET", "/ready", "").0, 503);
    let health = operate(&management, &["health"]);
    assert!(said(&health.stdout).contains("osmia cluster replace 2"), "{}", said(&health.stdout));
    assert_eq!(servers[0].http("GET", "/ready", "").0, 200);

    let replaced = operate(&servers[0].management, &["cluster", "replace", "2"]);
    assert!(replaced.status.success(), "{}", said(&replaced.stderr));
    line_with(&output, "Osmia is ready");
    let status = || json(&said(&operate(&management, &["cluster", "status", "--json"]).stdout));
    eventually("its replicas have everything, and vote", || {
        let shown = status();
        let replicas = shown["nodes"][2]["partitions"].as_array().cloned().unwrap_or_default();
        let has_all = |replica: &Value| replica["role"] == "leader" || replica["lagEntries"] == 0;
        replicas.len() == 3 && replicas.iter().all(|replica| has_all(replica) && replica["isVoter"] == true)
    });
    run_an_instance(&servers.iter().collect::<Vec<_>>(), 0, "after").await;
    // The other one may be lost now.
    servers.remove(1).kill();
    let status = || json(&said(&operate(&servers[0].management, &["cluster", "status", "--json"]).stdout));
    eventually("those two elect leaders", || {
        let shown = status();
        let all = (0..3).flat_map(|node| shown["nodes"][node]["partitions"].as_array().cloned().unwrap_or_default());
        let leaders: Vec<_> = all.filter(|replica| replica["role"] == "leader").collect();
        leaders.len() == 3 && shown["nodes"][1]["partitions"] == serde_json::json!([])
    });
    signal(lost.0.id(), "-TERM");
    assert_eq!(lost.0.wait().unwrap().code(), Some(0));
}

#[test]
fn without_a_majority_nothing_is_ready_and_the_status_says_so() {
    let cluster = Cluster::new(3);
    let mut servers = cluster.start_all();
    servers.drain(1..).for_each(Server::kill);
    let last = &servers[0];
    eventually("it is not ready", || {
        std::thread::sleep(NOT_YET);
        last.http("GET", "/ready", "").0 == 503
    });
    assert_eq!(last.http("GET", "/actuator/health/liveness", "").0, 200, "to start it again would not help");
    let shown = operate(&last.management, &["cluster", "status"]);
    assert_eq!(shown.status.code(), Some(1));
    assert!(said(&shown.stderr).contains("have no leader"), "{}", said(&shown.stderr));
    servers.push(cluster.start(2));
    eventually("it is ready again", || servers[0].http("GET", "/ready", "").0 == 200);
}
