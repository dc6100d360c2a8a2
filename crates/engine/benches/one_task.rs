//! How many one-task instances the engine alone runs per second on one core: create with 0.5 KB of variables, push to a
//! stream, complete. In memory; encoding of the records to bytes included as a second figure.

use std::hint::black_box;
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

struct Run {
    engine: Engine,
    output: Output,
    time: i64,
    index: u64,
    variables: Text,
}

impl Run {
    fn new() -> Run {
        let options = EngineOptions { partition: PartitionId(1), partition_count: 1, limits: Limits::default() };
        let variables = format!("{{\"payload\":\"{}\"}}", "x".repeat(498)).into();
        let mut run =
            Run { engine: Engine::in_memory(options), output: Output::default(), time: 1, index: 0, variables };
        let xml = bpmn::builder::ProcessBuilder::new("one").start("s").service_task("t", "work").end("e").to_xml();
        run.apply(vec![Command::new(
            Key::NONE,
            Payload::Deployment(
                DeploymentIntent::Create,
                Box::new(DeploymentValue {
                    resources: vec![DeploymentResource {
                        resource_name: "one.bpmn".into(),
                        resource: Arc::from(xml.as_bytes()),
                    }],
                    tenant_id: TENANT.into(),
                    ..DeploymentValue::default()
                }),
            ),
        )]);
        run.apply(vec![Command::new(
            Key::NONE,
            Payload::JobStream(
                JobStreamIntent::Add,
                Box::new(JobStreamValue {
                    stream: StreamId { node: 0, number: 1 },
                    job_type: "work".into(),
                    worker: "bench".into(),
                    timeout: 60_000,
                    fetch_variables: Vec::new(),
                    tenant_ids: vec![TENANT.into()],
                    credit: u32::MAX,
                }),
            ),
        )]);
        run
    }

    fn apply(&mut self, commands: Vec<Command>) {
        self.output.clear();
        self.index += 1;
        self.time += 1;
        let batch = CommandBatch { timestamp: self.time, commands };
        self.engine.apply(self.index, &batch, &mut self.output).expect("the state is sound");
    }

    fn batch_of_instances(&mut self) -> usize {
        let create = Command::new(
            Key::NONE,
            Payload::ProcessInstanceCreation(
                ProcessInstanceCreationIntent::Create,
                Box::new(ProcessInstanceCreationValue {
                    bpmn_process_id: "one".into(),
                    version: -1,
                    variables: self.variables.clone(),
                    tenant_id: TENANT.into(),
                    ..ProcessInstanceCreationValue::default()
                }),
            ),
        );
        self.apply(vec![create; BATCH_INSTANCES as usize]);
        assert_eq!(self.output.pushes.len(), BATCH_INSTANCES as usize);
        let mut records = self.output.records.len();
        let completions = self
            .output
            .pushes
            .iter()
            .map(|push| Command::new(push.key, Payload::Job(JobIntent::Complete, Arc::new(JobValue::default()))))
            .collect();
        self.apply(completions);
        records += self.output.records.len();
        records
    }
}

fn one_task(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("one_task");
    group.throughput(Throughput::Elements(BATCH_INSTANCES));
    let mut run = Run::new();
    group.bench_function("process", |bencher| bencher.iter(|| black_box(run.batch_of_instances())));
    let mut run = Run::new();
    let mut bytes = Vec::new();
    group.bench_function("process_and_encode_last_records", |bencher| {
        bencher.iter(|| {
            run.batch_of_instances();
            bytes.clear();
            for record in &run.output.records {
                protocol::encode(record, &mut bytes);
            }
            black_box(bytes.len())
        });
    });
    group.finish();
}

criterion_group!(benches, one_task);
criterion_main!(benches);
