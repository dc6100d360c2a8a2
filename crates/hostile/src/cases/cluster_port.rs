//! Strangers at the port between the nodes of a cluster.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::time::Duration;

use peers::{DirectoryId, Hello, Identity, Lane, NodeNumber};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::{Case, cases};
use crate::MEMORY_MEBIBYTES_MAX;
use crate::bystander::Bystander;
use crate::node::{Memory, Node};
use crate::victim::{Verdict, Victim};

const NODES: usize = 3;
/// Ordinary instances per second meanwhile.
const RATE: u64 = 50;
/// How long strangers hold the ports before a node is killed.
const ATTACK: Duration = Duration::from_secs(3);
/// What the ordinary instances get after that.
const QUIET: Duration = Duration::from_secs(2);
/// A stranger is closed by then: it has 2 s, and the machine may be busy.
const CLOSED_WITHIN: Duration = Duration::from_secs(30);
/// How long a node may take to come back among strangers.
const BACK_WITHIN: Duration = Duration::from_secs(60);
/// Connections of strangers that each node has at a time, and how soon each comes again.
const FLOOD_CONNECTIONS: usize = 100;
const FLOOD_PAUSE: Duration = Duration::from_millis(50);
/// Attempts at a time: fewer than the strangers that a node takes.
const AT_ONCE: usize = 40;
/// Kinds of frames of the transport.
const HELLO: u8 = 1;
const REFUSAL: u8 = 3;

pub(super) fn cases() -> Vec<Case> {
    cases! { "the port between nodes":
        short "garbage, halves of hellos and other protocols" garbage;
        short "hellos of other clusters, nodes, lanes and versions" foreign_hellos;
        short "frames of four gigabytes, and of none" giant_lengths;
        short "a hundred hellos, a byte at a time" trickles;
        short "a node comes back while strangers hold the port" back_among_strangers;
        long "ten thousand connections between nodes" many_connections;
    }
}

/// A cluster whose first node is attacked, with ordinary instances at that node.
struct Cluster {
    nodes: Vec<Option<Node>>,
    ports: Vec<SocketAddr>,
    data: tempfile::TempDir,
    binary: PathBuf,
    bystander: Bystander,
}

fn start(binary: PathBuf, data: PathBuf, number: usize, ports: &[SocketAddr]) -> Result<Node, String> {
    let members: Vec<_> = ports.iter().enumerate().map(|(node, port)| format!("{node}={port}")).collect();
    let (number, members) = (number.to_string(), members.join(","));
    let flags = ["--node-id", &number, "--initial-members", &members, "--partitions", "2", "--disk-reserve", "1MB"];
    Node::start(&binary, &data.join(&number), &flags)
}

impl Cluster {
    async fn new(victim: &Victim) -> Result<Cluster, String> {
        // Held together, so that they differ.
        let held: Result<Vec<_>, _> = (0..NODES).map(|_| TcpListener::bind("127.0.0.1:0")).collect();
        let held = held.map_err(|error| error.to_string())?;
        let ports: Result<Vec<_>, _> = held.iter().map(TcpListener::local_addr).collect();
        let ports = ports.map_err(|error| error.to_string())?;
        drop(held);
        let data = tempfile::tempdir().map_err(|error| error.to_string())?;
        let mut starting = Vec::new();
        for number in 0..NODES {
            let (binary, data, ports) = (victim.binary.clone(), data.path().to_owned(), ports.clone());
            starting.push(tokio::task::spawn_blocking(move || start(binary, data, number, &ports)));
        }
        let mut nodes = Vec::new();
        for node in starting {
            nodes.push(Some(node.await.map_err(|error| error.to_string())??));
        }
        let bystander = Bystander::start(&addresses(&nodes, 0)?.grpc, RATE).await?;
        Ok(Cluster { nodes, ports, data, binary: victim.binary.clone(), bystander })
    }

    fn attacked(&self) -> SocketAddr {
        self.ports[0]
    }

    /// The cluster has worked all the time, and does so now.
    async fn bears_it(mut self, said: String) -> Verdict {
        let seen = self.bystander.take();
        if let Some(failure) = seen.failures.last() {
            return Err(format!("{} ordinary instances failed, the last: {failure}", seen.failures.len()));
        }
        for _ in 0..4 {
            self.bystander.one_more().await?;
        }
        let mut most = Memory::default();
        for node in self.nodes.iter_mut().flatten() {
            most = most.max(node.addresses.peak());
            if let Some(ended) = node.ended() {
                return Err(format!("a node ended: {ended}"));
            }
        }
        if most.own >= MEMORY_MEBIBYTES_MAX {
            return Err(format!("a node took {most}"));
        }
        self.bystander.stop();
        let milliseconds = seen.quantile(990).as_secs_f64() * 1e3;
        Ok(format!("{said}; {} instances with a p99 of {milliseconds:.0} ms, {most}", seen.latencies.len()))
    }
}

fn addresses(nodes: &[Option<Node>], number: usize) -> Result<&crate::node::Addresses, String> {
    nodes.get(number).and_then(Option::as_ref).map(|node| &node.addresses).ok_or_else(|| "no node".to_owned())
}

fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    let content = [&[kind][..], payload].concat();
    let length = u32::try_from(content.len()).unwrap_or(u32::MAX);
    [&length.to_le_bytes()[..], &crc32fast::hash(&content).to_le_bytes(), &content].concat()
}

fn hello() -> Hello {
    let directory = DirectoryId(NonZeroU64::MAX);
    let (cluster, build) = ("another".to_owned(), "0".to_owned());
    let identity = Identity { node: NodeNumber(1), directory, boot: 1, process: 1, cluster, build, newest_level: 1 };
    Hello { identity, to: NodeNumber(0), lane: Lane::Requests, versions: (1, 1) }
}

async fn connect(address: SocketAddr) -> Result<TcpStream, String> {
    TcpStream::connect(address).await.map_err(|error| format!("no connection: {error}"))
}

/// Sends bytes, and returns what comes until the node closes the connection, which it must.
async fn said_to(address: SocketAddr, bytes: &[u8]) -> Result<Vec<u8>, String> {
    let mut stream = connect(address).await?;
    // It may be closed in the middle.
    let _ = stream.write_all(bytes).await;
    closed(stream).await
}

async fn closed(mut stream: TcpStream) -> Result<Vec<u8>, String> {
    let mut answer = Vec::new();
    match tokio::time::timeout(CLOSED_WITHIN, stream.read_to_end(&mut answer)).await {
        Ok(Ok(_)) => Ok(answer),
        Ok(Err(error)) if error.kind() == ErrorKind::ConnectionReset => Ok(answer),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("a stranger still has its connection after {} s", CLOSED_WITHIN.as_secs())),
    }
}

async fn garbage(victim: Victim) -> Verdict {
    let cluster = Cluster::new(&victim).await?;
    let whole = frame(HELLO, &hello().encode());
    let mut attempts: Vec<Vec<u8>> = (0..whole.len()).step_by(7).map(|length| whole[..length].to_vec()).collect();
    attempts.extend([b"GET / HTTP/1.1\r\nHost: a\r\n\r\n".to_vec(), b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec()]);
    attempts.extend((0..=u8::MAX).step_by(5).map(|byte| vec![byte; 5_000]));
    // Right lengths and checksums, and no hello in them.
    attempts.extend((0..=u8::MAX).step_by(5).map(|kind| frame(kind, &[kind; 100])));
    let count = attempts.len();
    while !attempts.is_empty() {
        let mut tasks = JoinSet::new();
        for bytes in attempts.drain(..attempts.len().min(AT_ONCE)) {
            let address = cluster.attacked();
            tasks.spawn(async move { said_to(address, &bytes).await });
        }
        while let Some(task) = tasks.join_next().await {
            let answer = task.map_err(|error| error.to_string())??;
            if answer.len() > 1_024 {
                return Err(format!("a stranger got {} bytes", answer.len()));
            }
        }
    }
    cluster.bears_it(format!("{count} attempts")).await
}

async fn foreign_hellos(victim: Victim) -> Verdict {
    type Change = fn(&mut Hello);
    let cluster = Cluster::new(&victim).await?;
    let changes: [(Change, &str); 4] = [
        (|_| {}, "belongs to cluster"),
        (|hello| hello.to = NodeNumber(2), "looks for node 2"),
        (|hello| hello.versions = (7, 9), "speaks the versions"),
        (|hello| hello.identity.cluster.clear(), "has the data directory"),
    ];
    for (change, expected) in changes {
        let mut hello = hello();
        change(&mut hello);
        let answer = said_to(cluster.attacked(), &frame(HELLO, &hello.encode())).await?;
        let sentence = String::from_utf8_lossy(answer.get(9..).unwrap_or_default()).into_owned();
        if answer.get(8) != Some(&REFUSAL) || !sentence.contains(expected) {
            return Err(format!("it is refused with '{sentence}', where '{expected}' is missing"));
        }
    }
    // Members that are none, a thousand times: nothing is kept of them.
    for number in 0..1_000 {
        let mut hello = hello();
        (hello.identity.node, hello.identity.boot) = (NodeNumber(number), u64::from(number));
        said_to(cluster.attacked(), &frame(HELLO, &hello.encode())).await?;
    }
    cluster.bears_it("each is refused by its sentence".to_owned()).await
}

async fn giant_lengths(victim: Victim) -> Verdict {
    let cluster = Cluster::new(&victim).await?;
    for length in [0, 1_026, 1 << 20, u32::MAX / 2, u32::MAX] {
        let mut tasks = JoinSet::new();
        for _ in 0..20 {
            let (address, header) = (cluster.attacked(), [&length.to_le_bytes()[..], &[0; 4], &[HELLO]].concat());
            let bytes = [header, vec![7; 1 << 20]].concat();
            tasks.spawn(async move { said_to(address, &bytes).await });
        }
        while let Some(task) = tasks.join_next().await {
            task.map_err(|error| error.to_string())??;
        }
    }
    cluster.bears_it("closed".to_owned()).await
}

async fn trickles(victim: Victim) -> Verdict {
    let cluster = Cluster::new(&victim).await?;
    let mut tasks = JoinSet::new();
    for _ in 0..100 {
        let address = cluster.attacked();
        tasks.spawn(async move {
            let begin = Instant::now();
            let mut stream = connect(address).await?;
            for byte in frame(HELLO, &[b'o'; 1_000]) {
                if stream.write_all(&[byte]).await.is_err() {
                    return Ok(());
                }
                if begin.elapsed() > CLOSED_WITHIN {
                    return Err("a hello of a byte at a time may take half a minute".to_owned());
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            Ok(())
        });
    }
    while let Some(task) = tasks.join_next().await {
        task.map_err(|error| error.to_string())??;
    }
    cluster.bears_it("closed".to_owned()).await
}

/// Opens connections that say nothing, more than the node takes, until the set is dropped.
fn flood(address: SocketAddr) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    for _ in 0..FLOOD_CONNECTIONS {
        tasks.spawn(async move {
            loop {
                if let Ok(stream) = connect(address).await {
                    // Until the node closes it.
                    let _ = closed(stream).await;
                }
                tokio::time::sleep(FLOOD_PAUSE).await;
            }
        });
    }
    tasks
}

async fn back_among_strangers(victim: Victim) -> Verdict {
    let mut cluster = Cluster::new(&victim).await?;
    let floods: Vec<_> = cluster.ports.iter().map(|port| flood(*port)).collect();
    tokio::time::sleep(ATTACK).await;
    if let Some(node) = cluster.nodes[2].take() {
        node.kill();
    }
    let begin = Instant::now();
    let (binary, data, ports) = (cluster.binary.clone(), cluster.data.path().to_owned(), cluster.ports.clone());
    let starting = tokio::task::spawn_blocking(move || start(binary, data, 2, &ports));
    let back = tokio::time::timeout(BACK_WITHIN, starting).await;
    let back = back.map_err(|_| format!("a node is not ready within {} s among strangers", BACK_WITHIN.as_secs()))?;
    cluster.nodes[2] = Some(back.map_err(|error| error.to_string())??);
    drop(floods);
    let taken = begin.elapsed().as_secs_f64();
    // Whatever was under way at the killed node is no part of this.
    tokio::time::sleep(QUIET).await;
    let _ = cluster.bystander.take();
    tokio::time::sleep(QUIET).await;
    cluster.bears_it(format!("it is back after {taken:.1} s")).await
}

async fn many_connections(victim: Victim) -> Verdict {
    let cluster = Cluster::new(&victim).await?;
    let mut open = Vec::new();
    let mut refused = 0;
    for _ in 0..10_000 {
        match TcpStream::connect(cluster.attacked()).await {
            Ok(stream) => open.push(stream),
            Err(_) => refused += 1,
        }
    }
    let opened = open.len();
    let descriptors = addresses(&cluster.nodes, 0)?.descriptors();
    if descriptors > 1_000 {
        return Err(format!("the node has {descriptors} descriptors open"));
    }
    for stream in open {
        closed(stream).await?;
    }
    cluster.bears_it(format!("{opened} opened, {refused} refused, {descriptors} descriptors at the most")).await
}
