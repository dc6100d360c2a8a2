//! What becomes of a command whose event does not fit the state: here, because a row was taken out of it.

use std::sync::Arc;

use model_builder::ProcessBuilder;
use protocol::{
    Command, CommandBatch, DeploymentIntent, DeploymentResource, DeploymentValue, ErrorIntent, JobIntent, JobValue,
    Key, PartitionId, Payload, ProcessInstanceCreationIntent, ProcessInstanceCreationValue, Record, RecordType,
    Rejection, RejectionType,
};

use crate::{BrokenInvariant, Engine, EngineOptions, Fault, Output};

/// An engine with two instances that wait at a task.
struct Waiting {
    engine: Engine,
    jobs: Vec<Key>,
    records: Vec<Record>,
}

fn options(broken_invariant: BrokenInvariant) -> EngineOptions {
    EngineOptions { broken_invariant, ..EngineOptions::new(PartitionId(1), 1) }
}

fn run(engine: &mut Engine, key: Key, payload: Payload) -> Vec<Record> {
    let mut output = Output::default();
    let batch = CommandBatch { timestamp: 1, commands: vec![Command::new(key, payload)] };
    engine.apply(engine.applied() + 1, &batch, &mut output).expect("the state is sound");
    output.records
}

fn waiting(broken_invariant: BrokenInvariant) -> Waiting {
    let mut engine = Engine::in_memory(options(broken_invariant));
    let xml = ProcessBuilder::new("one").start("s").service_task("t", "work").end("e").to_xml();
    let resource = DeploymentResource { resource_name: "one.bpmn".into(), resource: Arc::from(xml.as_bytes()) };
    let deployment = DeploymentValue { resources: vec![resource], ..DeploymentValue::default() };
    let mut records = run(&mut engine, Key::NONE, Payload::Deployment(DeploymentIntent::Create, Box::new(deployment)));
    for _ in 0..2 {
        let creation = ProcessInstanceCreationValue {
            bpmn_process_id: "one".into(),
            version: -1,
            ..ProcessInstanceCreationValue::default()
        };
        let payload = Payload::ProcessInstanceCreation(ProcessInstanceCreationIntent::Create, Box::new(creation));
        records.extend(run(&mut engine, Key::NONE, payload));
    }
    let jobs = engine.state.tables.jobs.iter().map(|(key, _)| Key::from_raw(key)).collect();
    Waiting { engine, jobs, records }
}

fn complete(engine: &mut Engine, job: Key) -> Vec<Record> {
    run(engine, job, Payload::Job(JobIntent::Complete, Arc::new(JobValue::default())))
}

/// Takes the element instance of a job out of the state.
fn damage(engine: &mut Engine, job: Key) {
    let element_instance = engine.state.job(job).expect("a job").value.element_instance_key;
    engine.state.begin();
    engine.state.tables.element_instances.delete(&element_instance.raw());
    engine.state.commit().expect("the tables are in memory");
}

#[test]
fn an_event_that_does_not_fit_fails_its_command_and_bans_the_instance() {
    let Waiting { mut engine, jobs, .. } = waiting(BrokenInvariant::FailsTheCommand);
    let [first, second] = jobs[..] else { panic!("two jobs") };
    let instance = engine.state.job(first).expect("a job").value.process_instance_key;
    damage(&mut engine, first);
    let records = complete(&mut engine, first);
    let [error, refusal] = &records[..] else { panic!("two records: {records:?}") };
    assert!(
        matches!(&error.payload, Payload::Error(ErrorIntent::Created, value) if value.process_instance_key == instance)
    );
    let RecordType::Rejection(Rejection { rejection_type, reason, .. }) = &refusal.record_type else {
        panic!("a rejection: {refusal:?}")
    };
    assert_eq!(*rejection_type, RejectionType::ProcessingError);
    assert!(reason.contains(&format!("Expected event JOB COMPLETED of {first} at position")), "{reason}");
    assert!(reason.contains("is not there"), "{reason}");
    assert!(engine.state.job(first).is_some(), "nothing of the command stays");
    assert!(engine.state.is_banned(instance));

    let records = complete(&mut engine, second);
    assert!(records.iter().all(|record| record.record_type == RecordType::Event), "others go on: {records:?}");
}

#[test]
#[should_panic(expected = "Expected event JOB COMPLETED of")]
fn an_event_that_does_not_fit_stops_the_engine_of_a_test() {
    let Waiting { mut engine, jobs, .. } = waiting(BrokenInvariant::Stops);
    damage(&mut engine, jobs[0]);
    complete(&mut engine, jobs[0]);
}

#[test]
fn records_that_do_not_fit_are_not_replayed() {
    let Waiting { mut engine, jobs, mut records } = waiting(BrokenInvariant::FailsTheCommand);
    records.extend(complete(&mut engine, jobs[0]));
    let mut other = Engine::in_memory(options(BrokenInvariant::FailsTheCommand));
    let created = records
        .iter()
        .position(|record| matches!(record.payload, Payload::Job(JobIntent::Created, _)))
        .expect("a job was created");
    for record in &records[..created] {
        other.replay(record).expect("records in order fit");
    }
    let before = other.state_hash().expect("the tables are in memory");
    let completed = records
        .iter()
        .find(|record| matches!(record.payload, Payload::Job(JobIntent::Completed, _)))
        .expect("a job was completed");
    let fault = other.replay(completed).expect_err("its job is not there");
    assert!(matches!(&fault, Fault::Misfit { reason, .. } if reason.contains("JOB COMPLETED")), "{fault}");
    assert_eq!(other.state_hash().expect("the tables are in memory"), before);
}

/// Removes the rows that entries of queues refer to.
fn damage_rows(engine: &mut Engine, damage: impl FnOnce(&mut crate::state::Tables)) {
    engine.state.begin();
    damage(&mut engine.state.tables);
    engine.state.commit().expect("the tables are in memory");
}

#[test]
fn what_is_due_without_a_row_is_refused_once() {
    let mut engine = Engine::in_memory(options(BrokenInvariant::FailsTheCommand));
    damage_rows(&mut engine, |tables| {
        tables.due_timers.insert((), (1, 1), ());
        tables.job_deadlines.insert((), (1, 2), ());
        tables.job_backoffs.insert((), (1, 3), ());
        tables.message_deadlines.insert((), (1, 4), ());
        // Of another state: it is not due yet.
        tables.due_timers.insert((), (1_000, 5), ());
    });
    let commands = engine.due_commands(1, 128);
    assert_eq!(commands.len(), 4);
    let mut output = Output::default();
    engine.apply(1, &CommandBatch { timestamp: 1, commands }, &mut output).expect("the state is sound");
    let refused = output.records.iter().filter(|record| matches!(record.record_type, RecordType::Rejection(_)));
    assert_eq!(refused.count(), 4);
    assert!(engine.due_commands(1, 128).is_empty(), "nothing comes again");
    assert_eq!(engine.next_due(), Some(1_000));
}

#[test]
fn a_job_that_lost_its_element_instance_is_refused_once() {
    let Waiting { mut engine, jobs, .. } = waiting(BrokenInvariant::FailsTheCommand);
    let job = jobs[0];
    damage(&mut engine, job);
    let mut row = (*engine.state.job(job).expect("a job")).clone();
    row.state = crate::state::JobState::Activated;
    let mut value = (*row.value).clone();
    value.deadline = 1;
    // Which makes its time-out fail.
    value.job_type = "x".repeat(3_000).into();
    row.value = Arc::new(value);
    damage_rows(&mut engine, |tables| {
        tables.jobs.put(job.raw(), row);
        tables.job_deadlines.insert((), (1, job.raw()), ());
    });
    let commands = engine.due_commands(1, 128);
    assert_eq!(commands.len(), 1);
    let mut output = Output::default();
    engine.apply(100, &CommandBatch { timestamp: 1, commands }, &mut output).expect("the state is sound");
    assert!(output.records.iter().any(|record| matches!(record.record_type, RecordType::Rejection(_))));
    assert_eq!(engine.next_due(), None, "it does not come again");
}
