//! A node in a temporary directory, and a client that waits for answers.

#![allow(dead_code, reason = "each test file uses a part")]

pub mod cluster;

use std::path::Path;
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use broker::{
    Client, JobSink, Node, NodeOptions, Push, Reply, StreamHandle, StreamSpecification, StreamWindow, SubmitError,
};
use model_builder::ProcessBuilder;
use protocol::*;

pub const LIMIT: Duration = Duration::from_secs(120);

pub fn options(directory: &Path) -> NodeOptions {
    NodeOptions { data_directory: directory.to_owned(), clock_control: true, ..NodeOptions::default() }
}

pub fn start(options: NodeOptions) -> Node {
    let node = Node::start(options).expect("the node starts");
    assert!(node.wait_until_ready(LIMIT), "the node becomes ready: {:?}", node.failure());
    node
}

/// Submits a command and waits for what comes back.
pub fn submit(client: &Client, partition: PartitionId, command: Command) -> Result<Reply, SubmitError> {
    let (sender, receiver) = mpsc::channel();
    client.submit(partition, command, move |answer| drop(sender.send(answer)));
    receiver.recv_timeout(LIMIT).expect("every command is answered")
}

/// Submits a command that must succeed.
pub fn execute(client: &Client, partition: PartitionId, command: Command) -> Reply {
    let reply = submit(client, partition, command).expect("the command is taken");
    assert_eq!(reply.rejection, None);
    reply
}

pub fn one_task() -> ProcessBuilder {
    ProcessBuilder::new("order").start("start").service_task("pay", "pay").end("end")
}

pub fn deploy(client: &Client, process: &ProcessBuilder) {
    let resource =
        DeploymentResource { resource_name: "order.bpmn".into(), resource: process.to_xml().into_bytes().into() };
    let value =
        DeploymentValue { resources: vec![resource], tenant_id: DEFAULT_TENANT.into(), ..DeploymentValue::default() };
    let payload = Payload::Deployment(DeploymentIntent::Create, Box::new(value));
    execute(client, PartitionId::DEPLOYMENT, Command::new(Key::NONE, payload));
}

pub fn creation(intent: ProcessInstanceCreationIntent, variables: &str) -> Command {
    let value = ProcessInstanceCreationValue {
        bpmn_process_id: "order".into(),
        version: -1,
        variables: variables.into(),
        tenant_id: DEFAULT_TENANT.into(),
        ..ProcessInstanceCreationValue::default()
    };
    Command::new(Key::NONE, Payload::ProcessInstanceCreation(intent, Box::new(value)))
}

pub fn create(client: &Client, partition: u16) -> Key {
    let command = creation(ProcessInstanceCreationIntent::Create, "{\"amount\":12}");
    match execute(client, PartitionId(partition), command).payload {
        Payload::ProcessInstanceCreation(ProcessInstanceCreationIntent::Created, value) => value.process_instance_key,
        other => panic!("unexpected answer {other:?}"),
    }
}

pub fn complete(client: &Client, job: Key) -> Result<Reply, SubmitError> {
    let value = JobValue { variables: "{\"paid\":true}".into(), ..JobValue::default() };
    let command = Command::new(job, Payload::Job(JobIntent::Complete, Arc::new(value)));
    submit(client, job.partition().expect("a key of a partition"), command)
}

pub fn activation(max_jobs: i32, timeout: i64) -> Command {
    let value = JobBatchValue {
        job_type: "pay".into(),
        worker: "poller".into(),
        timeout,
        max_jobs_to_activate: max_jobs,
        tenant_ids: vec![DEFAULT_TENANT.into()],
        ..JobBatchValue::default()
    };
    Command::new(Key::NONE, Payload::JobBatch(JobBatchIntent::Activate, Box::new(value)))
}

pub fn activate(client: &Client, partition: u16, max_jobs: i32, timeout: i64) -> Vec<Key> {
    match execute(client, PartitionId(partition), activation(max_jobs, timeout)).payload {
        Payload::JobBatch(JobBatchIntent::Activated, value) => value.job_keys,
        other => panic!("unexpected answer {other:?}"),
    }
}

/// Collects pushed jobs.
#[derive(Default)]
pub struct Jobs(Mutex<Vec<Push>>);

impl JobSink for Jobs {
    fn push(&self, push: Push) -> bool {
        self.0.lock().expect("not poisoned").push(push);
        true
    }
}

impl Jobs {
    pub fn len(&self) -> usize {
        self.0.lock().expect("not poisoned").len()
    }

    pub fn take(&self) -> Vec<Push> {
        std::mem::take(&mut *self.0.lock().expect("not poisoned"))
    }

    /// Waits for at least this many jobs and takes all.
    pub fn wait(&self, count: usize) -> Vec<Push> {
        eventually(&format!("{count} jobs"), || self.len() >= count);
        self.take()
    }
}

pub fn stream(client: &Client) -> (StreamHandle, Arc<Jobs>) {
    let jobs = Arc::new(Jobs::default());
    let specification = StreamSpecification {
        job_type: "pay".into(),
        worker: "worker".into(),
        timeout: 60_000,
        fetch_variables: Vec::new(),
        tenant_ids: vec![DEFAULT_TENANT.into()],
    };
    (client.open_stream(specification, jobs.clone()).expect("there is room for a stream"), jobs)
}

/// A window of this many jobs of each stream and partition.
pub fn window(count: u32) -> StreamWindow {
    StreamWindow { jobs: count, ..StreamWindow::default() }
}

/// What these jobs take of the credit.
pub fn amount(pushed: &[Push]) -> JobAmount {
    pushed.iter().map(|push| JobAmount::of(&push.job)).fold(JobAmount::default(), JobAmount::plus)
}

pub fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let until = Instant::now() + LIMIT;
    while !condition() {
        assert!(Instant::now() < until, "{what} did not come about in {LIMIT:?}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
