//! The exporter against a real Elasticsearch and a real OpenSearch, which are killed, stopped, blocked and restarted while
//! records come. Started by `make test-exporters`.

use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use exporters::{
    Arguments, Context, Controller, Delivery, Exporter, ExporterConfiguration, Kept, Opening, PartitionExporter,
    RecordFilter, Role,
};
use protocol::{
    ErrorIntent, ErrorValue, JobIntent, JobValue, Key, PartitionId, Payload, Record, RecordPlace, RecordSource,
    VariableIntent, VariableValue,
};
use serde_json::{Value, json};

/// How long a server may take to start, or to take what waits for it.
const PATIENCE: Duration = Duration::from_secs(900);
/// Every record whose position has this rest by 1,000 is refused by an index with another mapping.
const REFUSED: u64 = 777;
const PARTITIONS: u16 = 2;
/// How often a server is started, each time at other ports, when somebody has them.
const STARTS_MAX: usize = 3;

/// Where the ports begin that Linux gives to connections.
const CONNECTIONS_FROM: u16 = 32_768;

/// A server in a process group of its own, which ends with this.
struct Server {
    kind: &'static str,
    port: u16,
    directory: PathBuf,
    process: Child,
}

impl Server {
    /// Another program may take a port between the look for it and the start.
    fn start(kind: &'static str, directory: &Path) -> Server {
        let mut starts = 1;
        loop {
            let mut server = Server::spawned(kind, directory, starts);
            match server.is_up() {
                Ok(()) => return server,
                Err(said) if starts < STARTS_MAX && said.contains("Address already in use") => starts += 1,
                Err(said) => panic!("{said}"),
            }
        }
    }

    fn spawned(kind: &'static str, directory: &Path, starts: usize) -> Server {
        let local = |port: u16| std::net::TcpListener::bind(("127.0.0.1", port)).is_ok();
        // While the server is down, connections get none of these for their own ends. The one behind it is the server's too.
        let first = CONNECTIONS_FROM - 2 * u16::try_from(std::process::id() % 5_000).expect("it is small");
        let mut free = (10_000..first).rev().step_by(2).filter(|port| local(*port) && local(port + 1));
        let port = free.nth(starts - 1).expect("ports differ");
        Server { kind, port, directory: directory.to_owned(), process: spawn(kind, port, directory) }
    }

    fn wait(&mut self) {
        self.is_up().unwrap_or_else(|said| panic!("{said}"));
    }

    /// Waits until it answers; otherwise says what it said.
    fn is_up(&mut self) -> Result<(), String> {
        let until = Instant::now() + PATIENCE;
        loop {
            match self.ask("GET", "/_cluster/health", None) {
                Some((200, _)) => return Ok(()),
                answer => {
                    let has_ended = self.process.try_wait().expect("it was started here").is_some();
                    if has_ended || Instant::now() > until {
                        let log = std::fs::read_to_string(self.directory.with_extension("log")).unwrap_or_default();
                        return Err(format!(
                            "{} does not start, the last answer is {answer:?}; it says:\n{log}",
                            self.kind
                        ));
                    }
                }
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    fn signal(&self, signal: &str) {
        let group = format!("-{}", self.process.id());
        let status = Command::new("kill").args([signal, "--", &group]).status().expect("there is kill");
        assert!(status.success(), "{signal} reaches {}", self.kind);
    }

    fn end(&mut self, signal: &str) {
        self.signal(signal);
        self.process.wait().expect("it was started here");
    }

    fn restart(&mut self) {
        self.process = spawn(self.kind, self.port, &self.directory);
        self.wait();
    }

    /// Status and body of the answer, if there is one.
    fn ask(&self, method: &str, path: &str, body: Option<Value>) -> Option<(u16, Value)> {
        let config =
            ureq::Agent::config_builder().http_status_as_error(false).timeout_global(Some(Duration::from_secs(30)));
        let agent = config.build().new_agent();
        let request = ureq::http::Request::builder().method(method).uri(format!("{}{path}", self.url()));
        let request = request.header("content-type", "application/json");
        let body = body.map(|body| body.to_string()).unwrap_or_default();
        let mut answer = agent.run(request.body(body).expect("a request")).ok()?;
        let limited = answer.body_mut().with_config().limit(256 << 20).read_to_vec().ok()?;
        Some((answer.status().as_u16(), serde_json::from_slice(&limited).unwrap_or(Value::Null)))
    }

    fn must(&self, method: &str, path: &str, body: impl Into<Option<Value>>) -> Value {
        let answer = self.ask(method, path, body.into());
        let (status, body) = answer.unwrap_or_else(|| panic!("no answer to {method} {path}"));
        assert_eq!(status, 200, "{method} {path}: {body}");
        body
    }

    /// All documents of an alias, in the order of their sequence: id and position.
    fn documents(&self, alias: &str) -> Vec<(String, u64, u64)> {
        let mut found: Vec<(String, u64, u64)> = Vec::new();
        loop {
            let mut query = json!({
                "size": 5_000, "sort": [{ "sequence": "asc" }], "_source": ["sequence", "position"], "query": { "match_all": {} },
            });
            if let Some((.., last)) = found.last() {
                query["search_after"] = json!([last]);
            }
            let page = self.must("POST", &format!("/{alias}/_search"), query);
            let hits = page["hits"]["hits"].as_array().expect("a list");
            if hits.is_empty() {
                return found;
            }
            found.extend(hits.iter().map(|hit| {
                let number = |name: &str| hit["_source"][name].as_u64().expect("a number");
                (hit["_id"].as_str().expect("a text").to_owned(), number("position"), number("sequence"))
            }));
        }
    }
}

fn spawn(kind: &str, port: u16, directory: &Path) -> Child {
    let script = std::env::var("OSMIA_SERVER_SCRIPT").expect("`make test-exporters` says where it is");
    let log = std::fs::File::create(directory.with_extension("log")).expect("writable");
    let errors = log.try_clone().expect("a file");
    let mut command = Command::new(script);
    command.args([kind, &port.to_string()]).arg(directory).stdout(log).stderr(errors).stdin(Stdio::null());
    command.process_group(0).spawn().expect("the script is there")
}

impl Drop for Server {
    fn drop(&mut self) {
        let group = format!("-{}", self.process.id());
        let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
        let _ = self.process.wait();
    }
}

fn record(position: u64) -> Record {
    let payload = match position % 2 {
        _ if position % 1_000 == REFUSED => Payload::Error(
            ErrorIntent::Created,
            Box::new(ErrorValue {
                exception_message: "no number".into(),
                stacktrace: "".into(),
                error_event_position: 1,
                process_instance_key: Key::NONE,
            }),
        ),
        0 => {
            let job =
                JobValue { variables: "{\"order\": {\"id\": 17, \"paid\": false}}".into(), ..JobValue::default() };
            Payload::Job(JobIntent::Created, Arc::new(job))
        }
        _ => Payload::Variable(
            VariableIntent::Created,
            Box::new(VariableValue {
                name: "amount".into(),
                value: "12.5".into(),
                scope_key: Key::NONE,
                process_instance_key: Key::NONE,
                process_definition_key: Key::NONE,
                bpmn_process_id: "order".into(),
                tenant_id: protocol::DEFAULT_TENANT.into(),
            }),
        ),
    };
    Record::event(position, 1_700_000_000_000, Key::NONE, payload)
}

fn configured(kind: &str, url: &str, directory: &Path) -> Box<dyn Exporter> {
    let arguments = json!({
        "url": url, "requestTimeoutMs": 3_000, "bulk": { "size": 250, "delay": "50ms", "inFlight": 3 },
        "index": { "error": true, "numberOfShards": 1, "numberOfReplicas": 0 },
        // All errors are refused here.
        "rejected": { "stopWhenMany": false },
    });
    let Value::Object(arguments) = arguments else { unreachable!() };
    let class = if kind == "elasticsearch" { "io.camunda.zeebe.exporter.ElasticsearchExporter" } else { "Opensearch" };
    let configuration = ExporterConfiguration::of_class("search", class, arguments).expect("it is known");
    let mut exporter = (configuration.factory)();
    let mut arguments = Arguments::new("search", configuration.arguments);
    let filter = RecordFilter::default().with_arguments(&mut arguments, exporter.index_arguments()).expect("right");
    let mut context = Context { name: "search".to_owned(), arguments, filter, directory: directory.to_owned() };
    exporter.configure(&mut context).expect("right");
    exporter
}

/// What the threads that feed partitions share with the test.
#[derive(Default)]
struct Shared {
    /// No more records.
    is_over: AtomicBool,
    /// The test has failed: nothing is waited for.
    has_failed: AtomicBool,
    /// How often each partition is to lose its process.
    crashes: AtomicU64,
    acknowledged: AtomicU64,
}

fn open(exporter: &Mutex<Box<dyn Exporter>>, partition: u16, kept: Kept) -> (Box<dyn PartitionExporter>, Controller) {
    let partition = PartitionId(partition);
    let controller = Controller::new(kept.clone(), || {});
    let mut consumer = exporter.lock().expect("nobody failed").partition(partition);
    let opening = Opening {
        partition,
        incarnation: 1,
        role: Role::Leader,
        acknowledged: kept.acknowledged,
        beginning: RecordPlace::default(),
        metadata: kept.metadata,
        controller: controller.clone(),
    };
    // The server may be down.
    let begin = Instant::now();
    while let Err(trouble) = consumer.open(opening.clone()) {
        assert!(begin.elapsed() < PATIENCE, "it is never there: {trouble}");
        std::thread::sleep(Duration::from_millis(20));
    }
    (consumer, controller)
}

/// Feeds a partition until it is over and everything is taken; returns the last position.
fn feed(exporter: &Mutex<Box<dyn Exporter>>, partition: u16, shared: &Shared) -> u64 {
    let started = Instant::now();
    let source = RecordSource::new(PartitionId(partition));
    let (mut consumer, mut controller) = open(exporter, partition, Kept::default());
    let (mut next, mut last, mut crashes) = (1, 0, 0);
    let mut over_since = None;
    loop {
        if shared.crashes.load(Ordering::Relaxed) > crashes {
            crashes += 1;
            let (kept, _) = controller.kept();
            next = kept.acknowledged.position + 1;
            (consumer, controller) = open(exporter, partition, kept);
        }
        let is_over = shared.is_over.load(Ordering::Relaxed);
        for _ in 0..100 {
            if is_over && next > last {
                break;
            }
            let record = record(next);
            let delivery = Delivery { record: &record, source: &source };
            if consumer.export(&delivery, started.elapsed()).is_err() {
                break;
            }
            last = last.max(next);
            next += 1;
        }
        if consumer.flush_at().is_some_and(|at| at <= started.elapsed()) && consumer.flush(started.elapsed()).is_err() {
            std::thread::sleep(Duration::from_millis(20));
        }
        let acknowledged = controller.acknowledged().position;
        shared.acknowledged.fetch_max(acknowledged, Ordering::Relaxed);
        if (is_over && next > last && acknowledged == last) || shared.has_failed.load(Ordering::Relaxed) {
            return last;
        }
        let since = *over_since.get_or_insert_with(Instant::now);
        if !is_over {
            over_since = None;
        } else {
            let trouble = consumer.flush(started.elapsed()).err();
            assert!(since.elapsed() < PATIENCE, "{acknowledged} of {last} are taken: {trouble:?}");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Waits until more is acknowledged than now.
fn goes_on(shared: &Shared, after: &str) {
    let (before, begin) = (shared.acknowledged.load(Ordering::Relaxed), Instant::now());
    while shared.acknowledged.load(Ordering::Relaxed) < before + 500 {
        assert!(begin.elapsed() < PATIENCE, "nothing is taken after {after}");
        std::thread::sleep(Duration::from_millis(20));
    }
    println!("{after}: records are taken again after {} ms", begin.elapsed().as_millis());
}

/// Tells those who feed partitions when the test fails, which would wait for them.
struct Failure<'a>(&'a Shared);

impl Drop for Failure<'_> {
    fn drop(&mut self) {
        self.0.has_failed.store(std::thread::panicking(), Ordering::Relaxed);
    }
}

/// Whether only the first of all troubles are asked for, which take seconds.
fn is_short() -> bool {
    std::env::var_os("OSMIA_SHORT").is_some()
}

fn trouble(server: &mut Server, shared: &Shared) {
    goes_on(shared, "the start");
    server.end("-KILL");
    std::thread::sleep(Duration::from_secs(1));
    server.restart();
    goes_on(shared, "kill -9 and a restart");
    // Longer than an answer is waited for.
    let stopped = Duration::from_secs(5);
    server.signal("-STOP");
    std::thread::sleep(stopped);
    server.signal("-CONT");
    goes_on(shared, &format!("{} s without an answer", stopped.as_secs()));
    shared.crashes.fetch_add(1, Ordering::Relaxed);
    goes_on(shared, "a crash of the node");
    if is_short() {
        return;
    }
    // What a server does whose disk is full.
    let block = |value: Value| json!({ "index.blocks.read_only_allow_delete": value });
    server.must("PUT", "/zeebe-record_*/_settings", block(json!(true)));
    std::thread::sleep(Duration::from_secs(2));
    server.must("PUT", "/zeebe-record_*/_settings", block(Value::Null));
    goes_on(shared, "2 s as if the disk were full");
    server.end("-TERM");
    server.restart();
    goes_on(shared, "an orderly restart");
    server.end("-KILL");
    shared.crashes.fetch_add(1, Ordering::Relaxed);
    server.restart();
    goes_on(shared, "kill -9 of the server and a crash of the node");
}

fn every_record_arrives_exactly_once(kind: &'static str) {
    let directory = tempfile::tempdir().expect("temporary directory");
    let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(directory.path(), permissions).expect("ours");
    let mut server = Server::start(kind, &directory.path().join("server"));
    let mapping = json!({ "properties": { "value": { "properties": { "exceptionMessage": { "type": "long" } } } } });
    let odd = format!("/zeebe-record_error_{}_2023-11-14", protocol::BROKER_VERSION);
    server.must("PUT", &odd, json!({ "mappings": mapping }));
    let exporter = Mutex::new(configured(kind, &server.url(), directory.path()));
    let shared = Shared::default();
    let last: Vec<u64> = std::thread::scope(|scope| {
        let (exporter, shared) = (&exporter, &shared);
        let feeding = |partition| scope.spawn(move || feed(exporter, partition, shared));
        let consumers: Vec<_> = (1..=PARTITIONS).map(feeding).collect();
        let failure = Failure(shared);
        trouble(&mut server, shared);
        drop(failure);
        shared.is_over.store(true, Ordering::Relaxed);
        consumers.into_iter().map(|consumer| consumer.join().expect("it goes on")).collect()
    });
    check(&server, &last, directory.path());
}

fn check(server: &Server, last: &[u64], directory: &Path) {
    server.must("POST", "/zeebe-record_*/_refresh", None);
    let mut expected: BTreeMap<&str, Vec<(String, u64, u64)>> = BTreeMap::new();
    let mut refused = 0;
    for (partition, last) in (1u64..).zip(last) {
        let mut counters = BTreeMap::new();
        for position in 1..=*last {
            if position % 1_000 == REFUSED {
                refused += 1;
                continue;
            }
            let alias = if position % 2 == 0 { "zeebe-record-job" } else { "zeebe-record-variable" };
            let counter = counters.entry(alias).or_insert(0u64);
            *counter += 1;
            let sequence = (partition << 51) + *counter;
            expected.entry(alias).or_default().push((format!("{partition}-{position}"), position, sequence));
        }
    }
    let mut total = 0;
    for (alias, expected) in &expected {
        let found = server.documents(alias);
        assert!(found == *expected, "{alias}: {} documents, and {} were expected", found.len(), expected.len());
        total += found.len();
    }
    let counted = server.must("GET", "/zeebe-record_*/_count", None)["count"].clone();
    assert_eq!(counted, total, "nothing else is there");
    let text = std::fs::read_to_string(directory.join("search.rejected.jsonl")).unwrap_or_default();
    let mut set_aside: Vec<(Value, Value)> = Vec::new();
    for line in text.lines() {
        let line: Value = serde_json::from_str(line).expect("JSON");
        set_aside.push((line["record"]["partitionId"].clone(), line["record"]["position"].clone()));
    }
    // What a crash made come again may be there twice.
    set_aside.sort_by_key(|place| (place.0.as_u64(), place.1.as_u64()));
    set_aside.dedup();
    assert_eq!(set_aside.len(), refused, "what was refused is set aside");
    println!("{total} records are there once, {refused} were refused and set aside");
}

#[test]
#[ignore = "needs the server; make test-exporters"]
fn elasticsearch() {
    every_record_arrives_exactly_once("elasticsearch");
}

#[test]
#[ignore = "needs the server; make test-exporters"]
fn opensearch() {
    every_record_arrives_exactly_once("opensearch");
}
