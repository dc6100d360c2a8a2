//! An engine under load: instances are created, their jobs pushed to a stream and completed.

#![allow(dead_code, reason = "each benchmark uses its part")]

use std::path::Path;
use std::sync::Arc;

use engine::{Engine, EngineOptions, Output};
use model_builder::ProcessBuilder;
use protocol::{
    Command, CommandBatch, DeploymentIntent, DeploymentResource, DeploymentValue, JobAmount, JobIntent,
    JobStreamIntent, JobStreamValue, JobValue, Key, PartitionId, Payload, ProcessInstanceCreationIntent,
    ProcessInstanceCreationValue, StreamId, Text,
};

/// As in the binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const TENANT: &str = "<default>";
/// Instances whose commands share a batch.
pub const BATCH_INSTANCES: u64 = 50;
/// Batches between two checkpoints while instances pile up.
const CHECKPOINT_BATCHES: u64 = 1_000;

pub struct Run {
    pub engine: Engine,
    pub output: Output,
    pub time: i64,
    index: u64,
    variables: Text,
}

impl Run {
    /// A partition with a one-task process and a stream for its jobs.
    pub fn new(open: impl FnOnce(EngineOptions) -> Engine) -> Run {
        let options = EngineOptions::new(PartitionId(1), 1);
        let variables = format!("{{\"payload\":\"{}\"}}", "x".repeat(498)).into();
        let mut run = Run { engine: open(options), output: Output::default(), time: 1, index: 0, variables };
        run.deploy(&ProcessBuilder::new("one").start("s").service_task("t", "work").end("e"));
        let stream = JobStreamValue {
            stream: StreamId { node: 0, number: 1 },
            job_type: "work".into(),
            worker: "bench".into(),
            timeout: 60_000,
            fetch_variables: Vec::new(),
            tenant_ids: vec![TENANT.into()],
            granted: JobAmount { jobs: u64::MAX, bytes: u64::MAX },
            used: JobAmount::default(),
            delivered: 0,
        };
        run.apply(vec![Command::new(Key::NONE, Payload::JobStream(JobStreamIntent::Add, Box::new(stream)))]);
        run
    }

    /// The same on a state file in which instances wait at a task of another type.
    pub fn with_waiting(directory: &Path, instances: u64) -> Run {
        let waiting = ProcessBuilder::new("waiting").start("s").service_task("t", "nobody").end("e");
        Run::with_waiting_at(&waiting, directory, instances)
    }

    /// The same on a state file in which instances of the process `waiting` wait.
    pub fn with_waiting_at(waiting: &ProcessBuilder, directory: &Path, instances: u64) -> Run {
        let mut run = Run::new(|options| Engine::open(options, directory).expect("a new state"));
        run.deploy(waiting);
        for batch in 1..=instances / BATCH_INSTANCES {
            run.create("waiting");
            if batch % CHECKPOINT_BATCHES == 0 {
                run.checkpoint();
            }
        }
        run.checkpoint();
        run
    }

    pub fn deploy(&mut self, process: &ProcessBuilder) {
        let xml = process.to_xml();
        let resource = DeploymentResource { resource_name: "p.bpmn".into(), resource: Arc::from(xml.as_bytes()) };
        let value =
            DeploymentValue { resources: vec![resource], tenant_id: TENANT.into(), ..DeploymentValue::default() };
        self.apply(vec![Command::new(Key::NONE, Payload::Deployment(DeploymentIntent::Create, Box::new(value)))]);
    }

    pub fn apply(&mut self, commands: Vec<Command>) {
        self.output.clear();
        self.index += 1;
        self.time += 1;
        let batch = CommandBatch { timestamp: self.time, commands };
        self.engine.apply(self.index, &batch, &mut self.output).expect("the state is sound");
    }

    pub fn checkpoint(&mut self) {
        let checkpoint = self.engine.freeze().expect("no other checkpoint is under way");
        let written = checkpoint.write().expect("the disk works");
        drop(checkpoint);
        drop(self.engine.release(written).expect("the file can be read"));
    }

    pub fn create(&mut self, id: &str) {
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

    /// Instances of `id` from their creation to the completion of their one job.
    pub fn run_batch(&mut self, id: &str) {
        self.run_batch_with_jobs(id, 1);
    }

    /// Instances of `id` from their creation to the completion of the last of their jobs, which come one after the other.
    pub fn run_batch_with_jobs(&mut self, id: &str, jobs: usize) {
        self.create(id);
        for _ in 0..jobs {
            assert_eq!(self.output.pushes.len(), BATCH_INSTANCES as usize);
            let complete = |push: &engine::Push| {
                Command::new(push.key, Payload::Job(JobIntent::Complete, Arc::new(JobValue::default())))
            };
            self.apply(self.output.pushes.iter().map(complete).collect());
        }
        assert!(self.output.pushes.is_empty());
    }
}
