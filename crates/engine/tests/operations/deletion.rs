//! Deletion of versions of processes.

use std::collections::VecDeque;

use bpmn::builder::{Event, ProcessBuilder};
use engine::{Engine, EngineOptions, Limits, Output};
use protocol::*;

use crate::support::{self, Partition, TENANT};
use crate::tools::*;

fn payload(definition: Key) -> Payload {
    let value = ResourceDeletionValue { resource_key: definition, tenant_id: TENANT.into() };
    Payload::ResourceDeletion(ResourceDeletionIntent::Delete, Box::new(value))
}

fn delete(partition: &mut Partition, definition: Key) -> Output {
    partition.submit(Key::NONE, payload(definition))
}

/// A version of a process with one task; `mark` makes it another version.
fn version(id: &str, mark: &str) -> ProcessBuilder {
    ProcessBuilder::new(id).start("start").service_task("task", mark).end("end")
}

fn created_version(output: &Output) -> i32 {
    match &accepted(output).payload {
        Payload::ProcessInstanceCreation(_, creation) => creation.version,
        payload => panic!("a creation, not {payload:?}"),
    }
}

fn deployed_version(partition: &mut Partition, process: &ProcessBuilder) -> i32 {
    let output = partition.deploy("process.bpmn", process.clone().to_xml().as_bytes());
    match &accepted(&output).payload {
        Payload::Deployment(_, deployment) => deployment.processes_metadata[0].version,
        payload => panic!("a deployment, not {payload:?}"),
    }
}

#[test]
fn a_definition_without_instances_goes() {
    let mut partition = Partition::new();
    let definition = deploy(&mut partition, &version("p", "work"));
    let output = delete(&mut partition, definition);
    happened(
        &output,
        &[
            "RESOURCE_DELETION DELETING",
            "PROCESS DELETING p version 1",
            "PROCESS DELETED p version 1",
            "RESOURCE_DELETION DELETED",
            "reply RESOURCE_DELETION DELETED",
        ],
    );
    let by_key = ProcessInstanceCreationValue { process_definition_key: definition, ..creation("") };
    let by_version = ProcessInstanceCreationValue { version: 1, ..creation("p") };
    for value in [by_key, by_version, creation("p")] {
        refused(&create(&mut partition, value), RejectionType::NotFound, &["but none found"]);
    }
    let key = definition.to_string();
    refused(&delete(&mut partition, definition), RejectionType::NotFound, &["no resource found with key", &key]);
    partition.check();
}

#[test]
fn a_definition_with_instances_stays() {
    let mut partition = Partition::new();
    let definition = deploy(&mut partition, &version("p", "work"));
    let instances = [start(&mut partition, "p", ""), start(&mut partition, "p", "")];
    let parts = [&*definition.to_string(), "but there are still running instances"];
    refused(&delete(&mut partition, definition), RejectionType::InvalidState, &parts);
    complete(&mut partition, "task");
    refused(&delete(&mut partition, definition), RejectionType::InvalidState, &parts);
    partition.submit(instances[0], Payload::ProcessInstance(ProcessInstanceIntent::Cancel, Default::default()));
    accepted(&delete(&mut partition, definition));
    partition.check();
}

#[test]
fn an_unknown_resource_and_one_of_another_tenant_are_not_found() {
    let mut partition = Partition::new();
    let definition = deploy(&mut partition, &version("p", "work"));
    refused(&delete(&mut partition, Key::from_raw(77)), RejectionType::NotFound, &["`77`"]);
    let value = ResourceDeletionValue { resource_key: definition, tenant_id: "other".into() };
    let other = Payload::ResourceDeletion(ResourceDeletionIntent::Delete, Box::new(value));
    refused(&partition.submit(Key::NONE, other), RejectionType::NotFound, &[]);
}

#[test]
fn the_version_before_is_the_newest_again_and_numbers_do_not_repeat() {
    let mut partition = Partition::new();
    let definitions: Vec<Key> =
        ["one", "two", "three"].iter().map(|mark| deploy(&mut partition, &version("p", mark))).collect();
    accepted(&delete(&mut partition, definitions[1]));
    assert_eq!(created_version(&create(&mut partition, creation("p"))), 3, "the newest stays");
    complete(&mut partition, "task");
    accepted(&delete(&mut partition, definitions[2]));
    assert_eq!(created_version(&create(&mut partition, creation("p"))), 1);
    complete(&mut partition, "task");
    assert_eq!(deployed_version(&mut partition, &version("p", "one")), 1, "the newest is deployed again");
    assert_eq!(deployed_version(&mut partition, &version("p", "three")), 4);
    accepted(&delete(&mut partition, definitions[0]));
    let newest = deploy(&mut partition, &version("p", "five"));
    accepted(&delete(&mut partition, newest));
    let output = create(&mut partition, creation("p"));
    assert_eq!(created_version(&output), 4);
    complete(&mut partition, "task");
    let fourth = match &accepted(&output).payload {
        Payload::ProcessInstanceCreation(_, creation) => creation.process_definition_key,
        payload => panic!("a creation, not {payload:?}"),
    };
    accepted(&delete(&mut partition, fourth));
    assert_eq!(deployed_version(&mut partition, &version("p", "six")), 6, "after all are gone too");
    partition.check();
}

#[test]
fn start_events_of_the_version_before_wait_again() {
    let process = |interval: &str, message: &str| {
        ProcessBuilder::new("p")
            .start_event("timer", Event::Cycle(interval))
            .service_task("timed", "work")
            .end("te")
            .start_event("message", Event::Message(message, ""))
            .service_task("told", "work")
            .end("me")
    };
    let mut partition = Partition::new();
    deploy(&mut partition, &process("R/PT1H", "first"));
    let newest = deploy(&mut partition, &process("R/PT1M", "second"));
    let output = delete(&mut partition, newest);
    happened(
        &output,
        &[
            "PROCESS DELETING p version 2",
            "TIMER CANCELED",
            "MESSAGE_START_EVENT_SUBSCRIPTION DELETED",
            "MESSAGE_START_EVENT_SUBSCRIPTION CREATED",
            "TIMER CREATED",
            "PROCESS DELETED p version 2",
        ],
    );
    assert_eq!(partition.engine.statistics().timers, 1);
    let output = partition.advance(60_000);
    assert!(output.records.is_empty(), "the timer of the deleted version is not due");
    let publish = |partition: &mut Partition, name: &str| {
        let value = MessageValue { name: name.into(), tenant_id: TENANT.into(), ..MessageValue::default() };
        partition.submit(Key::NONE, Payload::Message(MessageIntent::Publish, Box::new(value)))
    };
    did_not_happen(&publish(&mut partition, "second"), "ELEMENT_ACTIVATING");
    happened(&publish(&mut partition, "first"), &["JOB CREATED told work retries 3"]);
    happened(&partition.advance(3_600_000), &["JOB CREATED timed work retries 3"]);
    partition.check();
}

#[test]
fn start_events_of_an_older_version_do_not_wait_when_it_goes() {
    let process = |message: &str| {
        ProcessBuilder::new("p").start_event("message", Event::Message(message, "")).service_task("told", "work")
    };
    let mut partition = Partition::new();
    let oldest = deploy(&mut partition, &process("first"));
    deploy(&mut partition, &process("second"));
    let output = delete(&mut partition, oldest);
    did_not_happen(&output, "SUBSCRIPTION");
    partition.check();
}

/// A date that has passed would start an instance at once; a timer that is never due again stays closed.
#[test]
fn the_last_version_leaves_nothing_waiting() {
    let process = ProcessBuilder::new("p").start_event("timer", Event::Cycle("R/PT1H")).service_task("timed", "work");
    let mut partition = Partition::new();
    let definition = deploy(&mut partition, &process);
    accepted(&delete(&mut partition, definition));
    assert_eq!(partition.engine.statistics().timers, 0);
    assert_eq!(partition.engine.next_due(), None);
    partition.check();
}

#[test]
fn calls_find_what_is_left() {
    let child = |mark: &str| version("child", mark).version_tag("stable");
    let parent = |id: &str| ProcessBuilder::new(id).start("s").call_activity("call", "child");
    let mut partition = Partition::new();
    deploy(&mut partition, &child("one"));
    let newest = deploy(&mut partition, &child("two"));
    deploy(&mut partition, &parent("latest").end("e"));
    deploy(&mut partition, &parent("tagged").bind_to_version_tag("stable").end("e"));
    start(&mut partition, "latest", "");
    refused(&delete(&mut partition, newest), RejectionType::InvalidState, &["still running instances"]);
    complete(&mut partition, "task");
    accepted(&delete(&mut partition, newest));
    for id in ["latest", "tagged"] {
        start(&mut partition, id, "");
        let job = partition.records.iter().rev().find_map(|record| match &record.payload {
            Payload::Job(JobIntent::Created, job) => Some(job.job_type.clone()),
            _ => None,
        });
        assert_eq!(job.as_deref(), Some("one"), "called by '{id}'");
        complete(&mut partition, "task");
    }
    let oldest = partition.records.iter().find_map(|record| match &record.payload {
        Payload::Process(ProcessIntent::Created, _) => Some(record.key),
        _ => None,
    });
    accepted(&delete(&mut partition, oldest.expect("deployed")));
    for id in ["latest", "tagged"] {
        start(&mut partition, id, "");
        assert!(partition.incidents.contains_key("call"), "'{id}' finds nothing to call");
        partition.incidents.clear();
    }
    partition.check();
}

#[test]
fn a_call_of_the_same_deployment_fails_when_the_version_is_gone() {
    let child = version("child", "one");
    let parent = ProcessBuilder::new("parent").start("s").call_activity("call", "child").bind_to_deployment().end("e");
    let mut partition = Partition::new();
    let resource = |name: &str, process: ProcessBuilder| DeploymentResource {
        resource_name: name.into(),
        resource: process.to_xml().as_bytes().into(),
    };
    let value = DeploymentValue {
        resources: vec![resource("child.bpmn", child), resource("parent.bpmn", parent)],
        tenant_id: TENANT.into(),
        ..DeploymentValue::default()
    };
    let output = partition.submit(Key::NONE, Payload::Deployment(DeploymentIntent::Create, Box::new(value)));
    let definition = match &accepted(&output).payload {
        Payload::Deployment(_, deployment) => deployment.processes_metadata[0].process_definition_key,
        payload => panic!("a deployment, not {payload:?}"),
    };
    accepted(&delete(&mut partition, definition));
    start(&mut partition, "parent", "");
    assert!(partition.incidents.contains_key("call"));
    partition.check();
}

/// An instance that is yet to begin by interrupted work uses its definition too.
#[test]
fn an_instance_that_waits_to_begin_keeps_its_definition() {
    let limits = Limits { steps_per_command_max: 1, ..Limits::default() };
    let mut partition = Partition::with_options(EngineOptions { limits, ..support::options() });
    let definition = deploy(&mut partition, &version("child", "one"));
    deploy(&mut partition, &ProcessBuilder::new("parent").start("s").call_activity("call", "child").end("e"));
    let value = Payload::ProcessInstanceCreation(ProcessInstanceCreationIntent::Create, Box::new(creation("parent")));
    let mut output = partition.apply(vec![Command::new(Key::NONE, value)]);
    while !living(&partition).contains(&"call: activated".to_owned()) {
        output = partition.apply(vec![partition.engine.continuation().expect("work waits")]);
    }
    did_not_happen(&output, "PROCESS child");
    let request = Some(Request { node: 0, number: 1_000 });
    let output = partition.apply(vec![Command { request, ..Command::new(Key::NONE, payload(definition)) }]);
    refused(&output, RejectionType::InvalidState, &["still running instances"]);
    while let Some(command) = partition.engine.continuation() {
        partition.apply(vec![command]);
    }
    complete(&mut partition, "task");
    accepted(&delete(&mut partition, definition));
    partition.check();
}

/// A deployment that is refused after its processes were read must not be remembered under keys that are given again.
#[test]
fn a_refused_deployment_is_forgotten() {
    let good = ProcessBuilder::new("p").start("s").service_task("stays", "work").end("e");
    let bad = ProcessBuilder::new("q")
        .start_event("never", Event::Cycle("R/P999999999Y"))
        .service_task("wrong", "work")
        .end("e");
    let mut partition = Partition::new();
    let output = partition.deploy("bad.bpmn", bad.to_xml().as_bytes());
    refused(&output, RejectionType::InvalidArgument, &["'never' of process 'q'", "it is never due"]);
    deploy(&mut partition, &good);
    start(&mut partition, "p", "");
    assert!(partition.jobs.contains_key("stays"));
    partition.check();
}

/// Three partitions and the way between them.
struct Cluster {
    engines: Vec<Engine>,
    records: Vec<Vec<Record>>,
    way: VecDeque<(PartitionId, Command)>,
    replies: Vec<engine::Reply>,
    index: u64,
}

impl Cluster {
    fn new(limits: Limits) -> Self {
        let options = |partition| EngineOptions { partition, partition_count: 3, limits };
        Cluster {
            engines: (1..=3).map(|number| Engine::in_memory(options(PartitionId(number)))).collect(),
            records: vec![Vec::new(); 3],
            way: VecDeque::new(),
            replies: Vec::new(),
            index: 0,
        }
    }

    fn apply(&mut self, partition: u16, command: Command) -> Vec<Record> {
        let at = usize::from(partition) - 1;
        self.index += 1;
        let mut output = Output::default();
        let batch = CommandBatch { timestamp: self.index as i64, commands: vec![command] };
        self.engines[at].apply(self.index, &batch, &mut output).expect("the state is sound");
        self.way.extend(output.sends.into_iter().map(|send| (send.partition, send.command)));
        self.replies.extend(output.replies);
        self.records[at].extend(output.records.iter().cloned());
        output.records
    }

    fn submit(&mut self, partition: u16, key: Key, payload: Payload) -> Vec<Record> {
        let request = Some(Request { node: 0, number: self.index + 1 });
        self.apply(partition, Command { request, ..Command::new(key, payload) })
    }

    /// Lets everything arrive that is on its way.
    fn settle(&mut self) {
        while let Some((partition, command)) = self.way.pop_front() {
            self.apply(partition.0, command);
        }
    }

    fn work(&mut self, partition: u16) {
        while let Some(command) = self.engines[usize::from(partition) - 1].continuation() {
            self.apply(partition, command);
        }
    }

    fn deploy(&mut self, process: &ProcessBuilder) -> Key {
        let content = process.clone().to_xml();
        let value = DeploymentValue {
            resources: vec![DeploymentResource {
                resource_name: "process.bpmn".into(),
                resource: content.as_bytes().into(),
            }],
            tenant_id: TENANT.into(),
            ..DeploymentValue::default()
        };
        self.submit(1, Key::NONE, Payload::Deployment(DeploymentIntent::Create, Box::new(value)));
        self.settle();
        match &self.replies.pop().expect("an answer").payload {
            Payload::Deployment(_, deployment) => deployment.processes_metadata[0].process_definition_key,
            payload => panic!("a deployment, not {payload:?}"),
        }
    }

    /// The intents of the records about definitions and deletions of a partition, without those of deployments.
    fn told(&self, partition: u16) -> Vec<String> {
        let records = self.records[usize::from(partition) - 1].iter();
        let about = |record: &&Record| match &record.payload {
            Payload::Process(intent, _) => *intent != ProcessIntent::Created,
            Payload::ResourceDeletion(..) => true,
            _ => false,
        };
        let text = |record: &Record| format!("{} {}", record.payload.value_type().name(), record.payload.intent_name());
        records.filter(about).map(text).collect()
    }

    /// The records alone rebuild each partition.
    fn check(&self) {
        for (number, (engine, records)) in (1..).zip(self.engines.iter().zip(&self.records)) {
            let limits = Limits::default();
            let options = EngineOptions { partition: PartitionId(number), partition_count: 3, limits };
            let mut folded = Engine::in_memory(options);
            for record in records {
                folded.replay(record).expect("the state is sound");
            }
            assert_eq!(support::rows(&folded), support::rows(engine), "partition {number}");
        }
    }
}

fn create_on(cluster: &mut Cluster, partition: u16, id: &str) -> Vec<Record> {
    let value = Box::new(creation(id));
    let payload = Payload::ProcessInstanceCreation(ProcessInstanceCreationIntent::Create, value);
    let records = cluster.submit(partition, Key::NONE, payload);
    cluster.replies.pop();
    records
}

fn job_of(records: &[Record]) -> Key {
    let created = |record: &&Record| matches!(record.payload, Payload::Job(JobIntent::Created, _));
    records.iter().find(created).expect("a job").key
}

const GOES: [&str; 4] =
    ["RESOURCE_DELETION DELETING", "PROCESS DELETING", "PROCESS DELETED", "RESOURCE_DELETION DELETED"];

#[test]
fn a_definition_goes_from_every_partition_and_then_the_answer_comes() {
    let mut cluster = Cluster::new(Limits::default());
    let definition = cluster.deploy(&version("p", "work"));
    cluster.submit(1, Key::NONE, payload(definition));
    assert!(cluster.replies.is_empty(), "the others have not heard of it");
    cluster.settle();
    let [reply] = &cluster.replies[..] else { panic!("one answer, not {:?}", cluster.replies) };
    assert!(matches!(&reply.payload, Payload::ResourceDeletion(ResourceDeletionIntent::Deleted, _)));
    for partition in 1..=3 {
        assert_eq!(cluster.told(partition), GOES, "partition {partition}");
    }
    cluster.check();
}

#[test]
fn a_partition_keeps_a_definition_until_its_last_instance_has_ended() {
    let mut cluster = Cluster::new(Limits::default());
    let first = cluster.deploy(&version("p", "one"));
    let second = cluster.deploy(&version("p", "two"));
    let job = job_of(&create_on(&mut cluster, 2, "p"));
    cluster.submit(1, Key::NONE, payload(second));
    cluster.settle();
    assert_eq!(cluster.replies.len(), 1, "it is answered");
    assert_eq!(cluster.told(1), GOES);
    assert_eq!(cluster.told(2), GOES[..2], "the definition is in use here");
    let created = create_on(&mut cluster, 2, "p");
    let uses_first = |record: &Record| match &record.payload {
        Payload::ProcessInstance(_, value) => value.process_definition_key == first,
        _ => false,
    };
    assert!(created.iter().any(uses_first), "nothing new begins with it");
    let by_key = ProcessInstanceCreationValue { process_definition_key: second, ..creation("") };
    let by_key = Payload::ProcessInstanceCreation(ProcessInstanceCreationIntent::Create, Box::new(by_key));
    cluster.submit(2, Key::NONE, by_key);
    let reply = cluster.replies.pop().expect("an answer");
    assert_eq!(reply.rejection.expect("a refusal").rejection_type, RejectionType::NotFound);
    cluster.submit(2, job, Payload::Job(JobIntent::Complete, Default::default()));
    assert_eq!(cluster.told(2), GOES, "its last instance has ended");
    cluster.check();
}

#[test]
fn a_decided_deletion_waits_behind_work_that_begins_an_instance() {
    let limits = Limits { steps_per_command_max: 1, ..Limits::default() };
    let mut cluster = Cluster::new(limits);
    let definition = cluster.deploy(&version("child", "one"));
    cluster.deploy(&ProcessBuilder::new("parent").start("s").call_activity("call", "child").end("e"));
    create_on(&mut cluster, 2, "parent");
    let has_called = |cluster: &Cluster| {
        cluster.records[1].iter().any(|record| match &record.payload {
            Payload::ProcessInstance(ProcessInstanceIntent::ElementActivated, value) => value.element_id == "call",
            _ => false,
        })
    };
    while !has_called(&cluster) {
        let command = cluster.engines[1].continuation().expect("work waits");
        cluster.apply(2, command);
    }
    cluster.submit(1, Key::NONE, payload(definition));
    cluster.settle();
    assert!(cluster.told(2).is_empty(), "it waits");
    cluster.work(2);
    assert_eq!(cluster.told(2), GOES[..2], "the instance has begun");
    let job = job_of(&cluster.records[1]);
    cluster.submit(2, job, Payload::Job(JobIntent::Complete, Default::default()));
    cluster.work(2);
    assert_eq!(cluster.told(2), GOES);
    cluster.check();
}

/// What a failure of the engine put aside never ends, so it must not hold its definition for ever.
#[test]
fn a_banned_instance_does_not_keep_its_definition() {
    let mut partition = Partition::new();
    let child = deploy(&mut partition, &version("child", "one"));
    let parent =
        deploy(&mut partition, &ProcessBuilder::new("parent").start("s").call_activity("call", "child").end("e"));
    let instance = start(&mut partition, "parent", "");
    let task = partition.jobs["task"];
    let error = ErrorValue {
        exception_message: "a test".into(),
        stacktrace: Text::default(),
        error_event_position: 0,
        process_instance_key: instance,
    };
    let record = Record {
        position: partition.engine.last_position() + 1,
        source_position: 0,
        key: Key::NONE,
        timestamp: partition.time,
        record_type: RecordType::Event,
        operation_reference: None,
        payload: Payload::Error(ErrorIntent::Created, Box::new(error)),
    };
    partition.engine.replay(&record).expect("the state is sound");
    refused(&delete(&mut partition, child), RejectionType::InvalidState, &["still running instances"]);
    accepted(&delete(&mut partition, parent));
    // The called instance goes on without its caller.
    let output = partition.job(task, JobIntent::Complete, JobValue::default());
    happened(&output, &["PROCESS_INSTANCE ELEMENT_COMPLETED PROCESS child", "reply JOB COMPLETED"]);
    did_not_happen(&output, "ERROR");
    accepted(&delete(&mut partition, child));
}
