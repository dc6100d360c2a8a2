//! Deletion of versions of processes.

use engine::{EngineOptions, Limits, Output};
use model_builder::{Event, ProcessBuilder};
use protocol::*;

use crate::cluster::Cluster;
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

/// An instance that interrupted work has yet to begin uses its definition too.
#[test]
fn an_instance_that_waits_to_begin_keeps_its_definition() {
    let limits = Limits { steps_per_command_max: 1, ..Limits::default() };
    let mut partition = Partition::with_options(EngineOptions { limits: Some(limits), ..support::options() });
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

/// The intents of the records about definitions and deletions of a partition, without those of deployments.
fn told(cluster: &Cluster, partition: usize) -> Vec<String> {
    let about = |record: &&Record| match &record.payload {
        Payload::Process(intent, _) => *intent != ProcessIntent::Created,
        Payload::ResourceDeletion(..) => record.record_type == RecordType::Event,
        _ => false,
    };
    let text = |record: &Record| format!("{} {}", record.payload.value_type().name(), record.payload.intent_name());
    cluster.nodes[partition - 1].records.iter().filter(about).map(text).collect()
}

fn deploy_to_all(cluster: &mut Cluster, process: &ProcessBuilder) -> Key {
    cluster.deploy(&process.clone().to_xml());
    let deployed = cluster.nodes[0].records.iter().rev().find_map(|record| match &record.payload {
        Payload::Process(ProcessIntent::Created, _) => Some(record.key),
        _ => None,
    });
    deployed.expect("deployed")
}

/// Deletes on the first partition and lets the others hear of it; returns how often that was answered before and after.
fn delete_everywhere(cluster: &mut Cluster, definition: Key) -> [usize; 2] {
    let answers = |cluster: &Cluster| {
        let is_deletion = |reply: &&engine::Reply| matches!(&reply.payload, Payload::ResourceDeletion(..));
        cluster.nodes[0].replies.iter().filter(is_deletion).count()
    };
    cluster.submit(1, Key::NONE, payload(definition));
    let before = answers(cluster);
    cluster.settle();
    [before, answers(cluster)]
}

fn complete_job_on(cluster: &mut Cluster, partition: u16) {
    let created = |record: &&Record| matches!(record.payload, Payload::Job(JobIntent::Created, _));
    let job = cluster.node(partition).records.iter().rev().find(created).expect("a job").key;
    let reply = cluster.submit(partition, job, Payload::Job(JobIntent::Complete, Default::default()));
    assert_eq!(reply.expect("an answer").rejection, None);
}

const GOES: [&str; 4] =
    ["RESOURCE_DELETION DELETING", "PROCESS DELETING", "PROCESS DELETED", "RESOURCE_DELETION DELETED"];

#[test]
fn a_definition_goes_from_every_partition_and_then_the_answer_comes() {
    let mut cluster = Cluster::new(3);
    let definition = deploy_to_all(&mut cluster, &version("p", "work"));
    assert_eq!(delete_everywhere(&mut cluster, definition), [0, 1], "answered when the others have heard of it");
    for partition in 1..=3 {
        assert_eq!(told(&cluster, partition), GOES, "partition {partition}");
    }
    cluster.check();
}

#[test]
fn a_partition_keeps_a_definition_until_its_last_instance_has_ended() {
    let mut cluster = Cluster::new(3);
    let first = deploy_to_all(&mut cluster, &version("p", "one"));
    let second = deploy_to_all(&mut cluster, &version("p", "two"));
    cluster.create(2, "p", "");
    assert_eq!(delete_everywhere(&mut cluster, second), [0, 1], "it is answered");
    assert_eq!(told(&cluster, 1), GOES);
    assert_eq!(told(&cluster, 2), GOES[..2], "the definition is in use here");
    let by_key = ProcessInstanceCreationValue { process_definition_key: second, ..creation("") };
    let by_key = Payload::ProcessInstanceCreation(ProcessInstanceCreationIntent::Create, Box::new(by_key));
    let refusal = cluster.submit(2, Key::NONE, by_key).expect("an answer").rejection;
    assert_eq!(refusal.expect("a refusal").rejection_type, RejectionType::NotFound, "nothing new begins with it");
    complete_job_on(&mut cluster, 2);
    assert_eq!(told(&cluster, 2), GOES, "its last instance has ended");
    let instance = cluster.create(2, "p", "");
    let begun = cluster.nodes[1].records.iter().rev().find_map(|record| match &record.payload {
        Payload::ProcessInstance(_, value) if value.process_instance_key == instance => Some(value.clone()),
        _ => None,
    });
    assert_eq!(begun.expect("begun").process_definition_key, first);
    cluster.check();
}

#[test]
fn a_decided_deletion_waits_behind_work_that_begins_an_instance() {
    let limits = Limits { steps_per_command_max: 1, ..Limits::default() };
    let mut cluster = Cluster::with_limits(3, limits);
    let definition = deploy_to_all(&mut cluster, &version("child", "one"));
    deploy_to_all(&mut cluster, &ProcessBuilder::new("parent").start("s").call_activity("call", "child").end("e"));
    let value = Payload::ProcessInstanceCreation(ProcessInstanceCreationIntent::Create, Box::new(creation("parent")));
    cluster.apply_batch(2, vec![Command::new(Key::NONE, value)]);
    let position = |cluster: &Cluster, wanted: fn(&Payload) -> bool| {
        cluster.nodes[1].records.iter().position(|record| wanted(&record.payload))
    };
    let called: fn(&Payload) -> bool = |payload| match payload {
        Payload::ProcessInstance(ProcessInstanceIntent::ElementActivated, value) => value.element_id == "call",
        _ => false,
    };
    while position(&cluster, called).is_none() {
        let command = cluster.node(2).engine.continuation().expect("work waits");
        cluster.apply_batch(2, vec![command]);
    }
    assert_eq!(delete_everywhere(&mut cluster, definition), [0, 1]);
    let child_begins: fn(&Payload) -> bool = |payload| match payload {
        Payload::ProcessInstance(ProcessInstanceIntent::ElementActivating, value) => value.element_id == "child",
        _ => false,
    };
    let closes: fn(&Payload) -> bool = |payload| matches!(payload, Payload::Process(ProcessIntent::Deleting, _));
    assert!(position(&cluster, child_begins).expect("it begins") < position(&cluster, closes).expect("it closes"));
    assert_eq!(told(&cluster, 2), GOES[..2], "the instance has begun");
    complete_job_on(&mut cluster, 2);
    assert_eq!(told(&cluster, 2), GOES);
    cluster.check();
}

/// A banned instance never ends, so it must not hold its definition for ever.
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
    let record = Record::event(
        partition.engine.last_position() + 1,
        partition.time,
        Key::NONE,
        Payload::Error(ErrorIntent::Created, Box::new(error)),
    );
    partition.engine.replay(&record).expect("the state is sound");
    refused(&delete(&mut partition, child), RejectionType::InvalidState, &["still running instances"]);
    accepted(&delete(&mut partition, parent));
    // The called instance continues without its caller.
    let output = partition.job(task, JobIntent::Complete, JobValue::default());
    happened(&output, &["PROCESS_INSTANCE ELEMENT_COMPLETED PROCESS child", "reply JOB COMPLETED"]);
    did_not_happen(&output, "ERROR");
    accepted(&delete(&mut partition, child));
}
