//! How many one-task instances the engine alone runs per second on one core: create with 0.5 KB of variables, push to a
//! stream, complete. In memory; with the encoding of the records to bytes; and on a state file in which other instances
//! wait (`OSMIA_BENCH_WAITING` of them, a million unless it is said otherwise).

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use engine::{Engine, EngineOptions, Limits, Output};
use protocol::{
    Command, CommandBatch, DeploymentIntent, DeploymentResource, DeploymentValue, JobIntent, JobStreamIntent,
    JobStreamValue, JobValue, Key, PartitionId, Payload, ProcessInstanceCreationIntent, ProcessInstanceCreationValue,
    StreamId, Text,
};

/// As in the binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const TENANT: &str = "<default>";
/// Instances whose commands share a batch.
const BATCH_INSTANCES: u64 = 50;
/// Batches between two checkpoints while instances pile up.
const CHECKPOINT_BATCHES: u64 = 1_000;

struct Run {
    engine: Engine,
    output: Output,
    time: i64,
    index: u64,
    variables: Text,
}

impl Run {
    /// A partition with a one-task process and a stream for its jobs.
    fn new(open: impl FnOnce(EngineOptions) -> Engine) -> Run {
        let options = EngineOptions { partition: PartitionId(1), partition_count: 1, limits: Limits::default() };
        let variables = format!("{{\"payload\":\"{}\"}}", "x".repeat(498)).into();
        let mut run = Run { engine: open(options), output: Output::default(), time: 1, index: 0, variables };
        run.deploy("one", "work");
        let stream = JobStreamValue {
            stream: StreamId { node: 0, number: 1 },
            job_type: "work".into(),
            worker: "bench".into(),
            timeout: 60_000,
            fetch_variables: Vec::new(),
            tenant_ids: vec![TENANT.into()],
            credit: u32::MAX,
        };
        run.apply(vec![Command::new(Key::NONE, Payload::JobStream(JobStreamIntent::Add, Box::new(stream)))]);
        run
    }

    /// The same on a state file in which instances wait at a task of another type.
    fn with_waiting(directory: &Path, instances: u64) -> Run {
        let mut run = Run::new(|options| Engine::open(options, directory).expect("a new state"));
        run.deploy("waiting", "nobody");
        for batch in 1..=instances / BATCH_INSTANCES {
            run.create("waiting");
            if batch % CHECKPOINT_BATCHES == 0 {
                run.checkpoint();
            }
        }
        run.checkpoint();
        run
    }

    fn deploy(&mut self, id: &str, job_type: &str) {
        let xml = bpmn::builder::ProcessBuilder::new(id).start("s").service_task("t", job_type).end("e").to_xml();
        let resource = DeploymentResource { resource_name: "p.bpmn".into(), resource: Arc::from(xml.as_bytes()) };
        let value =
            DeploymentValue { resources: vec![resource], tenant_id: TENANT.into(), ..DeploymentValue::default() };
        self.apply(vec![Command::new(Key::NONE, Payload::Deployment(DeploymentIntent::Create, Box::new(value)))]);
    }

    fn apply(&mut self, commands: Vec<Command>) {
        self.output.clear();
        self.index += 1;
        self.time += 1;
        let batch = CommandBatch { timestamp: self.time, commands };
        self.engine.apply(self.index, &batch, &mut self.output).expect("the state is sound");
    }

    fn checkpoint(&mut self) {
        let checkpoint = self.engine.freeze().expect("no other checkpoint is under way");
        let written = checkpoint.write().expect("the disk works");
        drop(checkpoint);
        drop(self.engine.release(written).expect("the file can be read"));
    }

    fn create(&mut self, id: &str) {
        let value = ProcessInstanceCreationValue {
            bpmn_process_id: id.into(),
            version: -1,
            variables: self.variables.clone(),
            tenant_id: TENANT.into(),
            ..ProcessInstanceCreationValue::default()
        };
        let payload = Payload::ProcessInstanceCreation(ProcessInstanceCreationIntent::Create, Box::new(value));
        self.apply(vec![Command::new(Key::NONE, payload); BATCH_INSTANCES as usize]);
    }

    fn run_batch(&mut self) {
        self.create("one");
        assert_eq!(self.output.pushes.len(), BATCH_INSTANCES as usize);
        let complete = |push: &engine::Push| {
            Command::new(push.key, Payload::Job(JobIntent::Complete, Arc::new(JobValue::default())))
        };
        self.apply(self.output.pushes.iter().map(complete).collect());
    }
}

fn one_task(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("one_task");
    group.throughput(Throughput::Elements(BATCH_INSTANCES));
    let mut run = Run::new(Engine::in_memory);
    group.bench_function("in_memory", |bencher| bencher.iter(|| run.run_batch()));
    let mut run = Run::new(Engine::in_memory);
    let mut bytes = Vec::new();
    group.bench_function("in_memory_with_records_of_the_completions_encoded", |bencher| {
        bencher.iter(|| {
            run.run_batch();
            bytes.clear();
            for record in &run.output.records {
                protocol::encode(record, &mut bytes);
            }
            black_box(bytes.len())
        });
    });
    let waiting = std::env::var("OSMIA_BENCH_WAITING").ok().and_then(|text| text.parse().ok()).unwrap_or(1_000_000);
    for instances in [0, waiting] {
        let directory = tempfile::tempdir().expect("a directory");
        let mut run = Run::with_waiting(directory.path(), instances);
        group.bench_function(format!("on_file_with_{instances}_waiting"), |bencher| bencher.iter(|| run.run_batch()));
    }
    group.finish();
}

criterion_group!(benches, one_task);
criterion_main!(benches);
