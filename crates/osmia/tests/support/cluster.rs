//! A cluster of real processes with one list of members, the load on it, and the audit of that.
#![allow(dead_code, reason = "not every test file uses everything")]

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{LIMIT, Server, program};

/// Ports that the system gives to nobody: a node that is started again finds its own free.
const PORTS: std::ops::Range<u16> = 11_000..32_000;

/// How long a node may take to answer that may be cut off.
const ANSWER_LIMIT: Duration = Duration::from_secs(2);
/// What a replica lacks that is as good as there: some batches are always on their way.
const LAG_ENTRIES_MAX: u64 = 200;

/// A port that is free now, another one at each call.
fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Test programs run next to each other.
    let first = u16::try_from(std::process::id() % 700).unwrap_or_default() * 30;
    loop {
        let next = first.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = PORTS.start + next % (PORTS.end - PORTS.start);
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// Waits until something holds.
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < LIMIT, "{what}: that has not come about");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Kills what still runs when a test fails.
pub struct Guarded(pub Child);

impl Drop for Guarded {
    fn drop(&mut self) {
        // It may have ended already. Its nodes end with it.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Where a node is.
#[derive(Clone, Debug)]
pub struct Place {
    host: String,
    /// The network namespace that it runs in.
    namespace: Option<String>,
    grpc: u16,
    rest: u16,
    members: u16,
}

impl Place {
    fn here() -> Place {
        let [grpc, rest, members] = [(); 3].map(|()| free_port());
        Place { host: "127.0.0.1".to_owned(), namespace: None, grpc, rest, members }
    }

    /// In a network namespace of its own, so with any port.
    pub fn in_namespace(namespace: &str, host: &str) -> Place {
        let namespace = Some(namespace.to_owned());
        Place { host: host.to_owned(), namespace, grpc: 26_500, rest: 8_080, members: 26_502 }
    }
}

/// Three nodes with one list of members, on ports that they keep.
pub struct Cluster {
    pub directory: tempfile::TempDir,
    places: Vec<Place>,
    partitions: usize,
    /// Further flags of all nodes.
    pub flags: Vec<String>,
}

impl Cluster {
    pub fn new(partitions: usize) -> Cluster {
        Cluster::at((0..3).map(|_| Place::here()).collect(), partitions)
    }

    pub fn at(places: Vec<Place>, partitions: usize) -> Cluster {
        Cluster { directory: tempfile::tempdir().expect("a directory"), places, partitions, flags: Vec::new() }
    }

    pub fn data(&self, node: usize) -> PathBuf {
        self.directory.path().join(format!("node-{node}"))
    }

    pub fn command(&self, node: usize) -> Command {
        let address = |(node, place): (usize, &Place)| format!("{node}={}:{}", place.host, place.members);
        let members: Vec<_> = self.places.iter().enumerate().map(address).collect();
        let place = &self.places[node];
        let [number, partitions, grpc, rest] =
            [node, self.partitions, place.grpc.into(), place.rest.into()].map(|number| number.to_string());
        let members = members.join(",");
        let mut flags = vec!["--node-id", &number, "--initial-members", &members, "--partitions", &partitions];
        flags.extend(["--grpc-port", &grpc, "--http-port", &rest, "--shutdown-drain", "0s"]);
        flags.extend(["--host", &place.host, "--cluster-host", &place.host]);
        flags.extend(self.flags.iter().map(String::as_str));
        let mut plain = program();
        plain.args(["start", "--management-port", "0", "--data"]).arg(self.data(node)).args(&flags);
        plain.env("OSMIA_LOG", "warn,raft_engine=error").env("OSMIA_SEARCH_WAIT", "60s");
        plain.env("OSMIA_REQUEST_TIMEOUT", "600s");
        let mut command = Self::within(place, plain);
        if let Some(logs) = std::env::var_os("OSMIA_NODE_LOGS") {
            let log = Path::new(&logs).join(format!("node-{node}.log"));
            let log = std::fs::OpenOptions::new().create(true).append(true).open(log);
            command.stderr(log.expect("the directory of OSMIA_NODE_LOGS can be written"));
        }
        command
    }

    /// The command in the network of a node.
    fn within(place: &Place, plain: Command) -> Command {
        let Some(namespace) = &place.namespace else { return plain };
        let mut inside = Command::new("ip");
        inside.args(["netns", "exec", namespace]).arg(plain.get_program()).args(plain.get_args());
        for (name, value) in plain.get_envs() {
            match value {
                Some(value) => inside.env(name, value),
                None => inside.env_remove(name),
            };
        }
        inside
    }

    pub fn start(&self, node: usize) -> Server {
        Server::spawn(self.command(node))
    }

    /// All at once: none is ready before the others have answered.
    pub fn start_all(&self) -> Vec<Server> {
        std::thread::scope(|scope| {
            let starting: Vec<_> = (0..self.places.len()).map(|node| scope.spawn(move || self.start(node))).collect();
            starting.into_iter().map(|server| server.join().expect("it gets ready")).collect()
        })
    }

    /// The addresses of all nodes for gRPC.
    pub fn grpc(&self) -> String {
        let addresses: Vec<_> = self.places.iter().map(|place| format!("{}:{}", place.host, place.grpc)).collect();
        addresses.join(",")
    }

    /// The addresses of all nodes for REST.
    pub fn rest(&self) -> String {
        self.rest_of(&[0, 1, 2])
    }

    /// The addresses of some nodes for REST.
    pub fn rest_of(&self, nodes: &[usize]) -> String {
        let address = |node: &usize| format!("{}:{}", self.places[*node].host, self.places[*node].rest);
        nodes.iter().map(address).collect::<Vec<_>>().join(",")
    }

    /// Instances of a process with one task at a rate, through all nodes, with a ledger.
    pub fn load(&self, ledger: &Path, rate: u64, duration: Duration) -> Guarded {
        let mut load = program();
        load.args(["load", "rate", "one-task", "--warm-up", "0s", "--delay", "20ms", "--job-timeout", "20s"]);
        load.args(["--rate", &rate.to_string(), "--duration", &format!("{}s", duration.as_secs())]);
        load.args(["--gaps", "--json", "--address", &self.grpc(), "--fsync-directory"]).arg(self.directory.path());
        load.arg("--ledger").arg(ledger);
        // It says something each second, and nobody reads a pipe before the end.
        let progress = std::fs::File::create(ledger.with_extension("progress")).expect("it can be made");
        Guarded(load.stdout(Stdio::piped()).stderr(progress).spawn().expect("the binary starts"))
    }

    /// Whether all nodes have what the ledger says, and the report.
    pub fn audit(&self, ledger: &Path) -> (bool, Value) {
        self.audit_at(&self.rest(), ledger)
    }

    /// Whether the nodes with these addresses for REST have what the ledger says, and the report.
    pub fn audit_at(&self, rest: &str, ledger: &Path) -> (bool, Value) {
        let mut audit = program();
        audit.args(["load", "audit", "--json", "--settle", "60s", "--address", rest, "--ledger"]).arg(ledger);
        let output = audit.output().expect("the binary starts");
        let report = serde_json::from_slice(&output.stdout);
        (output.status.success(), report.unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr))))
    }
}

/// The report of the load with this ledger, once it has ended.
pub fn report(mut load: Guarded, ledger: &Path) -> Value {
    let mut said = Vec::new();
    let output = load.0.stdout.as_mut().expect("it is piped");
    output.read_to_end(&mut said).expect("it can be read");
    let status = load.0.wait().expect("it is a child");
    let progress = || std::fs::read_to_string(ledger.with_extension("progress")).unwrap_or_default();
    assert!(status.success(), "{}", progress());
    serde_json::from_slice(&said).expect("a report")
}

/// Creations that the ledger has as acknowledged.
pub fn acknowledged(ledger: &Path) -> usize {
    let text = std::fs::read_to_string(ledger).unwrap_or_default();
    text.lines().filter(|line| line.contains(" = ")).count()
}

/// The leaders of partitions, as a node says that is there; none when it does not answer.
pub fn leaders(server: &Server) -> BTreeMap<u64, usize> {
    let (code, body) = server.http("GET", "/cluster", "");
    assert_eq!(code, 200, "{body}");
    let shown: Value = serde_json::from_str(&body).unwrap_or_else(|_| panic!("no JSON: {body}"));
    let mut leaders = BTreeMap::new();
    for node in shown["nodes"].as_array().into_iter().flatten() {
        for partition in node["partitions"].as_array().into_iter().flatten() {
            if let ("leader", Some(id), Some(node)) = (
                partition["role"].as_str().unwrap_or_default(),
                partition["partitionId"].as_u64(),
                node["nodeId"].as_u64(),
            ) {
                leaders.insert(id, usize::try_from(node).expect("a small number"));
            }
        }
    }
    leaders
}

/// Whether each partition has a leader, as a node says that is there.
pub fn all_led(server: &Server, partitions: u64) -> bool {
    leaders(server).into_keys().eq(1..=partitions)
}

/// Nothing was lost, doubled or stuck, and each node says the same.
pub fn assert_clean((is_clean, found): (bool, Value), nodes_audited: usize) {
    assert!(is_clean, "{found:#}");
    let nodes = found["nodes"].as_array().expect("a list");
    let instances: BTreeSet<_> = nodes.iter().filter_map(|node| node["instances"].as_u64()).collect();
    assert!(nodes.len() == nodes_audited && instances.len() == 1 && !instances.contains(&0), "{found:#}");
}

/// Asks a management port that may not answer: status and body.
pub fn ask(address: &str, path: &str) -> Option<(u16, String)> {
    let address: SocketAddr = address.parse().ok()?;
    let mut stream = TcpStream::connect_timeout(&address, ANSWER_LIMIT).ok()?;
    stream.set_read_timeout(Some(ANSWER_LIMIT)).ok()?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").ok()?;
    let mut response = String::new();
    stream.read_to_string(&mut response).ok()?;
    let code = response.split(' ').nth(1)?.parse().ok()?;
    Some((code, response.split_once("\r\n\r\n")?.1.to_owned()))
}

/// Whether a node serves, sees all others, and no replica that it knows lacks more than what is on its way.
pub fn is_whole(management: &str, nodes: usize, partitions: usize) -> bool {
    let Some((200, _)) = ask(management, "/ready") else { return false };
    let Some((200, body)) = ask(management, "/cluster") else { return false };
    let Ok(shown) = serde_json::from_str::<Value>(&body) else { return false };
    let shown: Vec<_> = shown["nodes"].as_array().into_iter().flatten().collect();
    let replicas = || shown.iter().flat_map(|node| node["partitions"].as_array().into_iter().flatten());
    let led = replicas().filter(|replica| replica["role"] == "leader").count();
    let is_near = |replica: &Value| {
        replica["role"] == "leader" || replica["lagEntries"].as_u64().is_some_and(|lag| lag < LAG_ENTRIES_MAX)
    };
    shown.len() == nodes && led == partitions && replicas().count() == nodes * partitions && replicas().all(is_near)
}
