//! What a node does without a gateway: start, latency of one instance, instances per second, restart, idling. A program
//! that prints figures: `cargo bench -p broker`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use broker::{Client, JobSink, Node, NodeOptions, Push, StreamSpecification};
use model_builder::ProcessBuilder;
use protocol::*;

const PARTITIONS: u16 = 3;
const LIMIT: Duration = Duration::from_secs(60);

/// Completes every job at once, on the thread that pushes it.
struct Worker {
    client: Client,
    delivered: mpsc::Sender<(PartitionId, JobAmount)>,
    completed: Arc<AtomicU64>,
}

impl JobSink for Worker {
    fn push(&self, push: Push) -> bool {
        let completed = self.completed.clone();
        let command = Command::new(push.key, Payload::Job(JobIntent::Complete, Arc::default()));
        let partition = push.key.partition().expect("a key of a partition");
        let amount = JobAmount::of(&push.job);
        self.client.submit(partition, command, move |answer| {
            if answer.is_ok_and(|reply| reply.rejection.is_none()) {
                completed.fetch_add(1, Ordering::Relaxed);
            }
        });
        self.delivered.send((partition, amount)).is_ok()
    }
}

fn creation(variables: &Text) -> Command {
    let value = ProcessInstanceCreationValue {
        bpmn_process_id: "one-task".into(),
        version: -1,
        variables: variables.clone(),
        tenant_id: DEFAULT_TENANT.into(),
        ..ProcessInstanceCreationValue::default()
    };
    Command::new(Key::NONE, Payload::ProcessInstanceCreation(ProcessInstanceCreationIntent::Create, Box::new(value)))
}

fn deploy(client: &Client) {
    let process = ProcessBuilder::new("one-task").start("start").service_task("task", "work").end("end");
    let resource = process.to_xml().into_bytes().into();
    let value = DeploymentValue {
        resources: vec![DeploymentResource { resource_name: "one-task.bpmn".into(), resource }],
        tenant_id: DEFAULT_TENANT.into(),
        ..DeploymentValue::default()
    };
    let command = Command::new(Key::NONE, Payload::Deployment(DeploymentIntent::Create, Box::new(value)));
    let (sender, answer) = mpsc::channel();
    client.submit(PartitionId(1), command, move |reply| drop(sender.send(reply)));
    let reply = answer.recv_timeout(LIMIT).expect("answered").expect("taken");
    assert_eq!(reply.rejection, None);
}

fn processor_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux");
    let fields: Vec<&str> = stat.rsplit(')').next().expect("not empty").split_whitespace().collect();
    let ticks: f64 = fields[11..13].iter().map(|field| field.parse::<f64>().expect("a number")).sum();
    ticks / 100.0
}

fn main() {
    let directory = tempfile::tempdir_in(".").expect("temporary directory on this disk");
    let options = NodeOptions {
        data_directory: directory.path().to_owned(),
        partition_count: PARTITIONS,
        ..NodeOptions::default()
    };
    let started = Instant::now();
    let node = Node::start(options.clone()).expect("the node starts");
    assert!(node.wait_until_ready(LIMIT));
    println!("empty start to ready      {:?}", started.elapsed());
    let client = node.client();
    deploy(&client);
    let (sender, delivered) = mpsc::channel();
    let completed = Arc::new(AtomicU64::new(0));
    let worker = Arc::new(Worker { client: client.clone(), delivered: sender, completed: completed.clone() });
    let specification = StreamSpecification {
        job_type: "work".into(),
        worker: "bench".into(),
        timeout: 60_000,
        fetch_variables: Vec::new(),
        tenant_ids: vec![DEFAULT_TENANT.into()],
    };
    let handle = client.open_stream(specification, worker).expect("there is room for a stream");
    let _credits = std::thread::spawn(move || {
        delivered.iter().for_each(|(partition, amount)| handle.delivered(partition, amount));
    });
    let variables: Text = format!("{{\"text\":\"{}\"}}", "x".repeat(500)).into();
    one_by_one(&client, &variables, &completed);
    at_once(&client, &variables, &completed);
    node.crash();
    let started = Instant::now();
    let node = Node::start(options).expect("the node starts");
    assert!(node.wait_until_ready(LIMIT));
    println!("restart to ready          {:?} after a crash at full load", started.elapsed());
    idle(&node.client());
}

/// A node with many open streams and nothing to do.
fn idle(client: &Client) {
    struct Nobody;
    impl JobSink for Nobody {
        fn push(&self, _: Push) -> bool {
            false
        }
    }
    let specification = |number: u32| StreamSpecification {
        job_type: format!("idle-{number}").into(),
        worker: "idle".into(),
        timeout: 60_000,
        fetch_variables: Vec::new(),
        tenant_ids: vec![DEFAULT_TENANT.into()],
    };
    let handles: Result<Vec<_>, _> =
        (0..1_000).map(|number| client.open_stream(specification(number), Arc::new(Nobody))).collect();
    let handles = handles.expect("there is room for streams");
    std::thread::sleep(Duration::from_secs(10));
    let (started, processor) = (Instant::now(), processor_seconds());
    std::thread::sleep(Duration::from_secs(10));
    let share = (processor_seconds() - processor) / started.elapsed().as_secs_f64();
    println!("idle                      {:.2} % of a core with {} streams", share * 100.0, handles.len());
}

/// The whole life of an instance, alone on the node: two commits.
fn one_by_one(client: &Client, variables: &Text, completed: &AtomicU64) {
    let mut times: Vec<Duration> = (0..500)
        .map(|_| {
            let (before, started) = (completed.load(Ordering::Relaxed), Instant::now());
            client.submit(client.next_partition(), creation(variables), |_| {});
            while completed.load(Ordering::Relaxed) == before {
                std::thread::sleep(Duration::from_micros(20));
            }
            started.elapsed()
        })
        .collect();
    times.sort_unstable();
    println!("one instance alone        p50 {:?}, p99 {:?}", times[250], times[495]);
}

/// As many as flow control lets through.
fn at_once(client: &Client, variables: &Text, completed: &AtomicU64) {
    let (started, processor, before) = (Instant::now(), processor_seconds(), completed.load(Ordering::Relaxed));
    let in_flight = Arc::new(AtomicU64::new(0));
    while started.elapsed() < Duration::from_secs(15) {
        if in_flight.load(Ordering::Relaxed) >= 600 {
            std::thread::sleep(Duration::from_micros(100));
            continue;
        }
        in_flight.fetch_add(1, Ordering::Relaxed);
        let counter = in_flight.clone();
        client.submit(client.next_partition(), creation(variables), move |_| {
            counter.fetch_sub(1, Ordering::Relaxed);
        });
    }
    let (elapsed, instances) = (started.elapsed(), completed.load(Ordering::Relaxed) - before);
    let processor = processor_seconds() - processor;
    let rate = instances as f64 / elapsed.as_secs_f64();
    let each = processor * 1e6 / instances as f64;
    println!("one-task instances        {rate:.0}/s, {each:.0} us of processor time each");
}
