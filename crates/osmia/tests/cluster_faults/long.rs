//! `make cluster-test`: faults one after the other for minutes, with ledgers of two clients and registers.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use chance::Chance;
use serde_json::Value;

use crate::cluster::{Cluster, Guarded, acknowledged, all_led, assert_clean, eventually, is_whole, leaders, report};
use crate::network::{Network, Scene, mount, scene};
use crate::support::{Server, program};

const NODES: usize = 3;
const PARTITIONS: usize = 3;
/// Instances per second of the load generator; the other client has its own.
const RATE: u64 = 60;
/// How long the faults go on, unless the environment says otherwise.
const SECONDS: u64 = 720;
/// How many faults a run of that length must have.
const FAULTS_MIN: usize = 40;
/// How long a run goes on after the last fault.
const QUIET: Duration = Duration::from_secs(10);
/// The node whose disk fills up. The others have real ones, which must sync.
const SMALL: usize = 2;
const SMALL_MEBIBYTES: u64 = 1_500;
/// The node whose disk is lost. Its searches begin with the state that it gets then, so the other two are audited in full.
const WIPED: usize = 0;
const REGISTERS_SECONDS: u64 = 60;
/// Registers are used after so many faults, twice.
const REGISTERS_AFTER: [usize; 2] = [2, 16];

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    /// SIGKILL, and started again.
    Kill,
    /// SIGTERM, and started again.
    Stop,
    /// SIGSTOP, and SIGCONT.
    Freeze,
    /// Nothing goes in or out.
    Cut,
    /// It reaches one other node no more.
    Block,
    /// Its disk has no room.
    Fill,
    /// Its directory is lost, and an operator gives it another one.
    Wipe,
}

/// What may happen, with how often.
const INSIDE: &[(usize, Fault)] = &[
    (6, Fault::Kill),
    (3, Fault::Stop),
    (5, Fault::Freeze),
    (5, Fault::Cut),
    (4, Fault::Block),
    (2, Fault::Fill),
    (2, Fault::Wipe),
];
const OPEN: &[(usize, Fault)] = &[(6, Fault::Kill), (3, Fault::Stop), (8, Fault::Freeze), (2, Fault::Wipe)];

/// The cluster in the middle of its faults.
struct Run {
    cluster: Cluster,
    network: Option<Network>,
    servers: Vec<Option<Server>>,
    random: Chance,
    /// What happened when, in milliseconds since the Unix epoch.
    happened: Vec<(u64, Fault, usize)>,
}

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|value| value.parse().ok())
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    u64::try_from(since.as_millis()).expect("before the end of time")
}

impl Run {
    fn new(inside: bool, random: Chance) -> Run {
        let network = inside.then(|| Network::new(NODES));
        let mut cluster = match &network {
            Some(network) => Cluster::at(network.places(NODES), PARTITIONS),
            None => Cluster::new(PARTITIONS),
        };
        cluster.flags = ["--disk-reserve", "1MB", "--disk-free-space-low", "16MB"].map(str::to_owned).into();
        if inside {
            mount(&cluster.data(SMALL), SMALL_MEBIBYTES);
        }
        let servers: Vec<_> = cluster.start_all().into_iter().map(Some).collect();
        Run { cluster, network, servers, random, happened: Vec::new() }
    }

    fn server(&self, node: usize) -> &Server {
        self.servers[node].as_ref().expect("it runs")
    }

    /// Leaders more often than others.
    fn choose_node(&mut self) -> usize {
        let led = leaders(self.server(0));
        match self.random.percent(70).then(|| led.values().copied().collect::<Vec<_>>()) {
            Some(leaders) if !leaders.is_empty() => self.random.copy_of(&leaders),
            _ => self.random.index(NODES),
        }
    }

    fn seconds(&mut self, range: std::ops::Range<u64>) -> Duration {
        Duration::from_millis(self.random.within(range.start * 1_000..range.end * 1_000))
    }

    /// One fault, from its beginning until everything is as before.
    fn happen(&mut self, fault: Fault) {
        let node = match fault {
            Fault::Fill => SMALL,
            Fault::Wipe => WIPED,
            _ => self.choose_node(),
        };
        self.happened.push((now_ms(), fault, node));
        let begin = Instant::now();
        match fault {
            Fault::Kill => {
                self.servers[node].take().expect("it runs").kill();
                std::thread::sleep(self.seconds(0..4));
                self.servers[node] = Some(self.cluster.start(node));
            }
            Fault::Stop => {
                assert_eq!(self.servers[node].take().expect("it runs").terminate(), Some(0), "node {node}");
                std::thread::sleep(self.seconds(0..3));
                self.servers[node] = Some(self.cluster.start(node));
            }
            Fault::Freeze => {
                self.server(node).signal("-STOP");
                std::thread::sleep(self.seconds(1..10));
                self.server(node).signal("-CONT");
            }
            Fault::Cut => {
                let wait = self.seconds(1..10);
                let network = self.network.as_ref().expect("it is there");
                network.cut(node);
                std::thread::sleep(wait);
                network.join(node);
            }
            Fault::Block => {
                let (to, wait) = ((node + 1 + self.random.index(NODES - 1)) % NODES, self.seconds(1..10));
                let network = self.network.as_ref().expect("it is there");
                network.block(node, to);
                std::thread::sleep(wait);
                network.unblock(node, to);
            }
            Fault::Fill => {
                let hog = self.cluster.data(SMALL).join("hog");
                fill(&hog);
                std::thread::sleep(self.seconds(2..6));
                fs::remove_file(&hog).expect("it is there");
            }
            Fault::Wipe => self.wipe(node),
        }
        let undone = begin.elapsed();
        self.become_whole(fault, node);
        let whole = begin.elapsed() - undone;
        println!(
            "{:>3}. {fault:?} node {node} for {:.1} s, whole again {:.1} s later",
            self.happened.len(),
            undone.as_secs_f64(),
            whole.as_secs_f64()
        );
    }

    /// A disk is lost, and an operator sees to it.
    fn wipe(&mut self, node: usize) {
        self.servers[node].take().expect("it runs").kill();
        for entry in fs::read_dir(self.cluster.data(node)).expect("it is there").flatten() {
            let path = entry.path();
            let removed = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
            removed.expect("it can be removed");
        }
        let other = self.server((node + 1) % NODES).management.clone();
        let server = std::thread::scope(|scope| {
            let starting = scope.spawn(|| self.cluster.start(node));
            let mut said = Vec::new();
            // Until it has asked for its place, there is nobody to give it to.
            eventually("the directory is replaced", || {
                let mut replace = program();
                replace.args(["cluster", "replace", &node.to_string(), "--management-address", &other]);
                let output = replace.output().expect("the binary starts");
                said = output.stderr;
                output.status.success()
            });
            starting.join().unwrap_or_else(|_| panic!("it gets ready; {}", String::from_utf8_lossy(&said)))
        });
        self.servers[node] = Some(server);
    }

    fn become_whole(&self, fault: Fault, node: usize) {
        eventually(&format!("the cluster is whole after {fault:?} of node {node}"), || {
            self.servers.iter().flatten().all(|server| is_whole(&server.management, NODES, PARTITIONS))
        });
    }
}

/// Takes the room of a volume to its last byte.
fn fill(hog: &Path) {
    let mut hog = File::create(hog).expect("it can be made");
    for chunk in [1 << 20, 4_096, 1] {
        let chunk = vec![7; chunk];
        while hog.write_all(&chunk).is_ok() {}
    }
}

/// The client that is not ours, if it was built.
fn foreign(words: &[&str]) -> Option<Command> {
    let mut command = Command::new(std::env::var_os("OSMIA_FOREIGN_CLIENT")?);
    command.args(words);
    Some(command)
}

fn passes(mut process: Guarded, what: &str) {
    assert!(process.0.wait().expect("it is a child").success(), "{what}: its words are above");
}

/// What each kind of fault did to the partitions: the longest time without an acknowledgement of each.
fn print_gaps(happened: &[(u64, Fault, usize)], report: &Value) {
    let gaps = report["outcome"]["rate"]["silence"]["gaps"].as_array().cloned().unwrap_or_default();
    let mut longest: BTreeMap<Fault, Vec<f64>> = BTreeMap::new();
    for (number, (at, fault, _)) in happened.iter().enumerate() {
        let until = happened.get(number + 1).map_or(u64::MAX, |next| next.0);
        let of_fault = gaps.iter().filter_map(|gap| {
            let (from, lasted) = (gap["from"].as_u64()?, gap["milliseconds"].as_f64()?);
            let is_meant = gap["partition"].is_number() && from + 500 >= *at && from < until;
            is_meant.then_some(lasted)
        });
        longest.entry(*fault).or_default().push(of_fault.fold(0.0, f64::max));
    }
    for (fault, mut milliseconds) in longest {
        milliseconds.sort_by(f64::total_cmp);
        let (median, last) = (milliseconds[milliseconds.len() / 2], milliseconds.last().copied().unwrap_or_default());
        println!(
            "{fault:?}: {} times, longest time of a partition without an acknowledgement p50 {median:.0} ms, max {last:.0} ms",
            milliseconds.len()
        );
    }
}

const NAME: &str = "long::faults_for_minutes_lose_nothing_and_do_nothing_twice";

#[test]
#[ignore = "takes a quarter of an hour: make cluster-test"]
fn faults_for_minutes_lose_nothing_and_do_nothing_twice() {
    let inside = match scene(NAME) {
        Scene::Over => return,
        Scene::Inside => true,
        Scene::Open => false,
    };
    let seed = setting("OSMIA_SEED").unwrap_or_else(now_ms);
    let seconds = setting("OSMIA_SECONDS").unwrap_or(SECONDS);
    println!("seed {seed}; repeat with SEED={seed} SECONDS={seconds}");
    let mut run = Run::new(inside, Chance::new(seed));
    eventually("all partitions are led", || all_led(run.server(0), PARTITIONS as u64));
    let grpc = run.cluster.grpc();
    let [ours, theirs] = ["ledger", "foreign-ledger"].map(|name| run.cluster.directory.path().join(name));
    let theirs = theirs.to_str().expect("text").to_owned();
    let duration = Duration::from_secs(seconds);
    let load = run.cluster.load(&ours, RATE, duration + QUIET);
    let spawn = |mut command: Command| Guarded(command.stdin(Stdio::null()).spawn().expect("the client starts"));
    let client = foreign(&["ledger", "-grpc", &grpc, "-ledger", &theirs]).map(spawn);
    if client.is_none() {
        println!("without OSMIA_FOREIGN_CLIENT, only the load generator keeps a ledger");
    }
    let mut registers = Vec::new();
    eventually("the load begins", || acknowledged(&ours) > 100);
    let begin = Instant::now();
    while begin.elapsed() < duration {
        if REGISTERS_AFTER.contains(&run.happened.len()) {
            let length = format!("{REGISTERS_SECONDS}s");
            registers.extend(foreign(&["register", "-grpc", &grpc, "-duration", &length]).map(spawn));
        }
        let before = acknowledged(&ours);
        let of = if inside { INSIDE } else { OPEN };
        let fault = *run.random.weighted(of).expect("there are some");
        run.happen(fault);
        eventually(&format!("creations are acknowledged after {fault:?}"), || acknowledged(&ours) > before);
        let pause = run.seconds(1..3);
        std::thread::sleep(pause);
    }
    let report = report(load, &ours);
    registers.into_iter().for_each(|register| passes(register, "registers"));
    if let Some(client) = client {
        let pid = client.0.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().expect("kill exists").success());
        passes(client, "the foreign client");
    }
    print_gaps(&run.happened, &report);
    println!("fsync of 4 KiB: {}", report["fsync"]);
    let was_wiped = |node: usize| run.happened.iter().any(|(_, fault, of)| (*fault, *of) == (Fault::Wipe, node));
    let audited: Vec<_> = (0..NODES).filter(|node| !was_wiped(*node)).collect();
    println!("the nodes {audited:?} are audited");
    let rest = run.cluster.rest_of(&audited);
    assert_clean(run.cluster.audit_at(&rest, &ours), audited.len());
    if let Some(audit) = foreign(&["audit", "-rest", &rest, "-ledger", &theirs]) {
        passes(spawn(audit), "the audit of the foreign client");
    }
    println!("{} faults, and nothing was lost, doubled or stuck", run.happened.len());
    assert!(seconds < SECONDS || run.happened.len() >= FAULTS_MIN, "only {} faults", run.happened.len());
    for server in run.servers.into_iter().flatten() {
        assert_eq!(server.terminate(), Some(0));
    }
}
