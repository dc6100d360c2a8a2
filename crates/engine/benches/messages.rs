//! What messages cost two engines on one core when the instances live on one partition and the messages arrive on the other:
//! instances that wait and end with their message, and messages for instances that keep waiting. In memory, and on state
//! files with other open subscriptions (`OSMIA_BENCH_WAITING` of them, a million unless it is said otherwise).

use std::path::Path;
use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use engine::{Engine, EngineOptions, Output};
use model_builder::{Event, ProcessBuilder};
use protocol::{
    Command, CommandBatch, DeploymentIntent, DeploymentResource, DeploymentValue, Key, MessageIntent, MessageValue,
    PartitionId, Payload, ProcessInstanceCreationIntent, ProcessInstanceCreationValue, partition_for_correlation_key,
};

/// As in the binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const TENANT: &str = "<default>";
/// Instances or messages whose commands share a batch.
const BATCH: u64 = 50;
/// Batches between two checkpoints while subscriptions pile up.
const CHECKPOINT_BATCHES: u64 = 1_000;
/// Where the instances live, and where the messages arrive.
const INSTANCES: PartitionId = PartitionId(1);
const MESSAGES: PartitionId = PartitionId(2);

struct Node {
    engine: Engine,
    index: u64,
    inbox: Vec<Command>,
}

struct Run {
    nodes: [Node; 2],
    output: Output,
    time: i64,
    /// Correlation keys that were used.
    keys: u64,
    /// Messages that arrived.
    correlations: u64,
}

impl Run {
    fn new(open: impl Fn(EngineOptions) -> Engine) -> Run {
        let node = |partition| {
            let engine = open(EngineOptions::new(partition, 2));
            Node { engine, index: 0, inbox: Vec::new() }
        };
        let nodes = [node(INSTANCES), node(MESSAGES)];
        let mut run = Run { nodes, output: Output::default(), time: 1, keys: 0, correlations: 0 };
        let wait = ProcessBuilder::new("wait").start("s").catch_event("c", Event::Message("m", "=key")).end("e");
        run.deploy(&wait);
        let goes_on = ProcessBuilder::new("goes-on").start("s").service_task("t", "nobody").end("e");
        run.deploy(&goes_on.boundary("b", "t", Event::Message("m", "=key")).non_interrupting().end("eb"));
        run
    }

    /// The same on state files in which instances wait.
    fn with_waiting(directory: &Path, instances: u64) -> Run {
        let open = |options: EngineOptions| {
            let directory = directory.join(options.partition.0.to_string());
            Engine::open(options, &directory).expect("a new state")
        };
        let mut run = Run::new(open);
        for batch in 1..=instances / BATCH {
            run.create("wait");
            if batch % CHECKPOINT_BATCHES == 0 {
                run.checkpoint();
            }
        }
        run.checkpoint();
        assert_eq!(run.nodes[1].engine.statistics().message_subscriptions, instances / BATCH * BATCH);
        run
    }

    fn deploy(&mut self, process: &ProcessBuilder) {
        let xml = process.to_xml();
        let resource = DeploymentResource { resource_name: "p.bpmn".into(), resource: Arc::from(xml.as_bytes()) };
        let value =
            DeploymentValue { resources: vec![resource], tenant_id: TENANT.into(), ..DeploymentValue::default() };
        let command = Command::new(Key::NONE, Payload::Deployment(DeploymentIntent::Create, Box::new(value)));
        self.submit(PartitionId::DEPLOYMENT, vec![command]);
    }

    /// Applies a batch, and what follows on both partitions until nothing is on its way.
    fn submit(&mut self, partition: PartitionId, commands: Vec<Command>) {
        self.nodes[usize::from(partition.0) - 1].inbox = commands;
        while let Some(at) = self.nodes.iter().position(|node| !node.inbox.is_empty()) {
            self.time += 1;
            let node = &mut self.nodes[at];
            node.index += 1;
            let batch = CommandBatch { timestamp: self.time, commands: std::mem::take(&mut node.inbox) };
            self.output.clear();
            node.engine.apply(node.index, &batch, &mut self.output).expect("the state is sound");
            for send in self.output.sends.drain(..) {
                self.nodes[usize::from(send.partition.0) - 1].inbox.push(send.command);
            }
            let is_correlated = |record: &&protocol::Record| {
                matches!(
                    record.payload,
                    Payload::ProcessMessageSubscription(protocol::ProcessMessageSubscriptionIntent::Correlated, _)
                )
            };
            self.correlations += self.output.records.iter().filter(is_correlated).count() as u64;
        }
    }

    fn checkpoint(&mut self) {
        for node in &mut self.nodes {
            let checkpoint = node.engine.freeze().expect("no other checkpoint is under way");
            let written = checkpoint.write().expect("the disk works");
            drop(checkpoint);
            drop(node.engine.release(written).expect("the file can be read"));
        }
    }

    /// Instances with correlation keys of their own; returns the keys.
    fn create(&mut self, id: &str) -> Vec<String> {
        let mut keys = Vec::new();
        while keys.len() < BATCH as usize {
            self.keys += 1;
            let key = format!("order-{}", self.keys);
            if partition_for_correlation_key(&key, 2) == MESSAGES {
                keys.push(key);
            }
        }
        let command = |key: &String| {
            let value = ProcessInstanceCreationValue {
                bpmn_process_id: id.into(),
                version: -1,
                variables: format!("{{\"key\":\"{key}\"}}").into(),
                tenant_id: TENANT.into(),
                ..ProcessInstanceCreationValue::default()
            };
            let intent = ProcessInstanceCreationIntent::Create;
            Command::new(Key::NONE, Payload::ProcessInstanceCreation(intent, Box::new(value)))
        };
        self.submit(INSTANCES, keys.iter().map(command).collect());
        keys
    }

    fn publish(&mut self, keys: &[String]) {
        let before = self.correlations;
        let command = |key: &String| {
            let value = MessageValue {
                name: "m".into(),
                correlation_key: key.as_str().into(),
                variables: "{\"paid\":true}".into(),
                tenant_id: TENANT.into(),
                ..MessageValue::default()
            };
            Command::new(Key::NONE, Payload::Message(MessageIntent::Publish, Box::new(value)))
        };
        self.submit(MESSAGES, keys.iter().map(command).collect());
        assert_eq!(self.correlations - before, keys.len() as u64, "every message arrives");
    }

    fn wait_and_correlate(&mut self) {
        let keys = self.create("wait");
        self.publish(&keys);
    }
}

fn messages(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("messages");
    group.throughput(Throughput::Elements(BATCH));
    let mut run = Run::new(Engine::in_memory);
    group.bench_function("create_wait_and_correlate_in_memory", |bencher| bencher.iter(|| run.wait_and_correlate()));
    let mut run = Run::new(Engine::in_memory);
    let keys = run.create("goes-on");
    group.bench_function("correlate_in_memory", |bencher| bencher.iter(|| run.publish(&keys)));
    let waiting = std::env::var("OSMIA_BENCH_WAITING").ok().and_then(|text| text.parse().ok()).unwrap_or(1_000_000);
    for instances in [0, waiting] {
        let directory = tempfile::tempdir().expect("a directory");
        let mut run = Run::with_waiting(directory.path(), instances);
        let name = format!("create_wait_and_correlate_on_file_with_{instances}_waiting");
        group.bench_function(name, |bencher| bencher.iter(|| run.wait_and_correlate()));
        let keys = run.create("goes-on");
        let name = format!("correlate_on_file_with_{instances}_waiting");
        group.bench_function(name, |bencher| bencher.iter(|| run.publish(&keys)));
    }
    group.finish();
}

criterion_group!(benches, messages);
criterion_main!(benches);
