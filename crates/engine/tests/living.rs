//! What lives is told from a checkpoint in slices, as it was, whatever happens meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::support::{Partition, TENANT, options};
use engine::{Engine, EngineOptions, Limits, LivingRecords};
use model_builder::ProcessBuilder;
use protocol::*;

const MODEL: &str = r#"<b:definitions xmlns:b="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:z="http://camunda.org/schema/zeebe/1.0">
  <b:process id="order" isExecutable="true"><b:startEvent id="start"/><b:sequenceFlow id="f" sourceRef="start" targetRef="task"/>
  <b:serviceTask id="task"><b:extensionElements><z:taskDefinition type="work"/></b:extensionElements></b:serviceTask></b:process>
</b:definitions>"#;
const INSTANCES: usize = 700;

fn checkpoint(engine: &mut Engine) {
    let checkpoint = engine.freeze().expect("none is under way");
    let written = checkpoint.write().expect("the disk takes it");
    drop(checkpoint);
    drop(engine.release(written).expect("it can be read"));
}

/// A partition with a job that a worker has.
fn with_a_job(directory: &Path) -> (Partition, Key) {
    let mut partition = Partition::new();
    partition.engine = Engine::open(options(), directory).expect("a new state");
    partition.deploy("order.bpmn", MODEL.as_bytes());
    partition.create("order", "{}", ProcessInstanceCreationIntent::Create);
    let job = *partition.jobs.get("task").expect("a job");
    partition.activate("work", 1);
    (partition, job)
}

/// What is told of a key as of now, with the times.
fn told_of(key: Key, engine: &mut Engine) -> Vec<(&'static str, Timestamp)> {
    checkpoint(engine);
    let handle = engine.store().handle();
    let mut living = LivingRecords::of(PartitionId(1), &handle).expect("it can be read").expect("a checkpoint");
    let mut told = Vec::new();
    while let Some(slice) = living.next_slice().expect("it can be read") {
        let of_key = slice.iter().filter(|record| record.key == key);
        told.extend(of_key.map(|record| (record.payload.intent_name(), record.timestamp)));
    }
    told
}

#[test]
fn what_lives_is_told_in_slices_as_of_the_checkpoint() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut partition = Partition::new();
    partition.engine = Engine::open(options(), directory.path()).expect("a new state");
    let handle = partition.engine.store().handle();
    assert!(LivingRecords::of(PartitionId(1), &handle).expect("it can be read").is_none(), "there is no checkpoint");
    partition.deploy("order.bpmn", MODEL.as_bytes());
    for id in ["a", "b"] {
        let listener = GlobalListenerValue {
            id: id.into(),
            job_type: id.into(),
            event_types: vec![GlobalListenerEventType::All],
            ..GlobalListenerValue::default()
        };
        partition.submit(Key::NONE, Payload::GlobalListener(GlobalListenerIntent::Create, Box::new(listener)));
    }
    let mut begun = BTreeMap::new();
    for number in 0..INSTANCES {
        partition.time += 1;
        partition.create("order", &format!("{{\"n\":{number}}}"), ProcessInstanceCreationIntent::Create);
        begun.insert(partition.instance, partition.time);
    }
    partition.time += 1_000;
    let newest = *partition.jobs.get("task").expect("a job");
    partition.activate("work", 1);
    let activated = partition.time;
    checkpoint(&mut partition.engine);
    let place = partition.engine.record_place();
    let mut living = LivingRecords::of(PartitionId(1), &handle).expect("it can be read").expect("a checkpoint");
    // What happens behind it is no part of it.
    partition.time += 1_000;
    for instance in begun.keys().take(10) {
        partition.submit(*instance, Payload::ProcessInstance(ProcessInstanceIntent::Cancel, std::sync::Arc::default()));
    }
    checkpoint(&mut partition.engine);

    assert_eq!((living.place(), living.timestamp()), (place, activated));
    let (mut told, mut slices) = (BTreeMap::new(), 0);
    let mut seen = BTreeMap::new();
    while let Some(slice) = living.next_slice().expect("it can be read") {
        slices += 1;
        assert!(slice.len() <= 1_000, "two records of a job at most");
        for record in slice {
            assert_eq!((record.place(place.incarnation), &record.record_type), (place, &RecordType::Event));
            *told.entry((record.payload.value_type().name(), record.payload.intent_name())).or_insert(0) += 1;
            if begun.contains_key(&record.key) {
                seen.insert(record.key, record.timestamp);
            }
            if let Payload::Job(JobIntent::Updated, job) = &record.payload {
                assert_eq!((record.timestamp, job.worker.is_empty()), (activated, false));
                assert_ne!(record.key, newest, "the oldest job was activated");
            }
        }
    }
    assert!(slices > 3 * INSTANCES / 500, "{slices}");
    assert_eq!(seen, begun, "each instance is told with the time at which it began");
    let expected = BTreeMap::from([
        (("PROCESS", "CREATED"), 1),
        (("GLOBAL_LISTENER", "CREATED"), 2),
        (("PROCESS_INSTANCE", "ELEMENT_ACTIVATING"), 2 * INSTANCES),
        (("VARIABLE", "CREATED"), INSTANCES),
        (("JOB", "CREATED"), INSTANCES),
        (("JOB", "UPDATED"), 1),
    ]);
    assert_eq!(told, expected);
    drop(living);
    drop(partition);
    assert!(LivingRecords::of(PartitionId(1), &handle).expect("nothing is read").is_none(), "the state is closed");
}

/// An incident that stops a job is no change of it; its resolution is, and a record of the job says so.
#[test]
fn a_job_has_the_time_of_its_last_record_and_not_of_its_incident() {
    let directory = tempfile::tempdir().expect("a directory");
    let (mut partition, job) = with_a_job(directory.path());
    partition.time += 1_000;
    partition.job(job, JobIntent::Fail, JobValue::default());
    partition.time += 1_000;
    partition.job(job, JobIntent::UpdateRetries, JobValue { retries: 1, ..JobValue::default() });
    let updated = partition.time;
    partition.time += 1_000;
    assert_eq!(told_of(job, &mut partition.engine)[1..], [("RETRIES_UPDATED", updated)]);
    let incident = *partition.incidents.get("task").expect("an incident");
    partition.submit(incident, Payload::Incident(IncidentIntent::Resolve, Box::default()));
    partition.check();
    assert_eq!(told_of(job, &mut partition.engine)[1..], [("RETRIES_UPDATED", partition.time)]);
}

/// A record says that a job goes on after the resolved incident of its error, and that it was yielded is no other event of it.
#[test]
fn a_job_that_is_yielded_after_an_error_goes_on() {
    let directory = tempfile::tempdir().expect("a directory");
    let (mut partition, job) = with_a_job(directory.path());
    partition.job(job, JobIntent::ThrowError, JobValue { error_code: "E".into(), ..JobValue::default() });
    let incident = *partition.incidents.get("task").expect("nobody catches it");
    partition.submit(incident, Payload::Incident(IncidentIntent::Resolve, Box::default()));
    partition.activate("work", 1);
    partition.job(job, JobIntent::Yield, JobValue::default());
    partition.check();
    let told: Vec<_> = told_of(job, &mut partition.engine).into_iter().map(|(intent, _)| intent).collect();
    assert_eq!(told, ["CREATED", "ERROR_THROWN", "RECURRED_AFTER_BACKOFF"]);
}

/// A process that is called gets its variables before it begins. A checkpoint between the two has to tell them: no record behind it
/// does.
#[test]
fn variables_of_what_is_about_to_begin_are_told() {
    let directory = tempfile::tempdir().expect("a directory");
    let options = EngineOptions { limits: Some(Limits { steps_per_command_max: 1, ..Limits::default() }), ..options() };
    let mut partition = Partition::with_options(options);
    partition.engine = Engine::open(options, directory.path()).expect("a new state");
    let handle = partition.engine.store().handle();
    partition.deploy("order.bpmn", MODEL.as_bytes());
    let caller = ProcessBuilder::new("caller").start("start").call_activity("call", "order").end("end").to_xml();
    partition.deploy("caller.bpmn", caller.as_bytes());
    let creation = ProcessInstanceCreationValue {
        bpmn_process_id: "caller".into(),
        version: -1,
        variables: "{\"a\":1,\"b\":2}".into(),
        tenant_id: TENANT.into(),
        ..ProcessInstanceCreationValue::default()
    };
    let payload = Payload::ProcessInstanceCreation(ProcessInstanceCreationIntent::Create, Box::new(creation));
    let (mut command, mut between) = (Some(Command::new(Key::NONE, payload)), 0);
    while let Some(next) = command {
        partition.apply(vec![next]);
        command = partition.engine.continuation();
        checkpoint(&mut partition.engine);
        let mut living = LivingRecords::of(PartitionId(1), &handle).expect("it can be read").expect("a checkpoint");
        let (mut told, mut begun) = (BTreeSet::new(), BTreeSet::new());
        while let Some(slice) = living.next_slice().expect("it can be read") {
            for record in slice {
                match &record.payload {
                    Payload::Variable(_, variable) => drop(told.insert((record.key, variable.process_instance_key))),
                    Payload::ProcessInstance(..) => drop(begun.insert(record.key)),
                    _ => {}
                }
            }
        }
        let created = partition.records.iter().filter_map(|record| match &record.payload {
            Payload::Variable(VariableIntent::Created, variable) => Some((record.key, variable.process_instance_key)),
            _ => None,
        });
        assert_eq!(told, created.collect());
        between += usize::from(told.iter().any(|(_, instance)| !begun.contains(instance)));
    }
    assert!(between > 0, "a checkpoint came between the variables and what they are for");
}
