//! What happens at the limits of a command.

mod support;

use engine::{EngineOptions, Limits};
use protocol::*;
use support::Partition;

const ONE_TASK: &[u8] = include_bytes!("scenarios/models/one-task.bpmn");

fn partition(limits: Limits) -> Partition {
    let mut partition = Partition::with_options(EngineOptions { limits, ..support::options() });
    partition.deploy("one-task.bpmn", ONE_TASK);
    partition
}

fn create(partition: &mut Partition, bytes: usize) {
    let variables = format!("{{\"text\":\"{}\"}}", "x".repeat(bytes));
    partition.create("one-task", &variables, ProcessInstanceCreationIntent::Create);
}

fn activated(output: &engine::Output) -> &JobBatchValue {
    match &output.replies[0].payload {
        Payload::JobBatch(JobBatchIntent::Activated, batch) => batch,
        other => panic!("an activation was expected, not {other:?}"),
    }
}

#[test]
fn a_job_too_large_for_a_message_is_an_incident_and_holds_nobody_up() {
    let mut partition = partition(Limits { job_bytes_max: 2_000, ..Limits::default() });
    create(&mut partition, 5_000);
    let large = partition.jobs["work"];
    create(&mut partition, 10);
    let first = partition.activate("work", 1);
    assert!(activated(&first).job_keys.is_empty());
    assert!(activated(&first).truncated, "there is more behind the job that was too large");
    let incident = first.records.iter().find_map(|record| match &record.payload {
        Payload::Incident(IncidentIntent::Created, incident) => Some(incident),
        _ => None,
    });
    let incident = incident.expect("the job became an incident");
    assert_eq!((incident.error_type, incident.job_key), (ErrorType::MessageSizeExceeded, large));
    assert_eq!(activated(&partition.activate("work", 1)).job_keys, [partition.jobs["work"]]);

    // With a smaller variable and the incident resolved, the job is handed out.
    let scope_key = partition.records.iter().find_map(|record| match &record.payload {
        Payload::Job(JobIntent::Created, job) if record.key == large => Some(job.process_instance_key),
        _ => None,
    });
    let smaller = VariableDocumentValue {
        scope_key: scope_key.expect("the job was created"),
        update_semantics: VariableDocumentUpdateSemantics::Propagate,
        variables: "{\"text\":1}".into(),
        tenant_id: support::TENANT.into(),
    };
    partition.submit(Key::NONE, Payload::VariableDocument(VariableDocumentIntent::Update, Box::new(smaller)));
    let key = partition.incidents["work"];
    partition.submit(key, Payload::Incident(IncidentIntent::Resolve, Box::default()));
    assert_eq!(activated(&partition.activate("work", 5)).job_keys, [large]);
    partition.check();
}

#[test]
fn a_batch_of_jobs_ends_at_its_bytes_and_says_so() {
    let mut partition = partition(Limits { job_batch_bytes_max: 3_000, ..Limits::default() });
    for _ in 0..5 {
        create(&mut partition, 1_000);
    }
    let output = partition.activate("work", 5);
    let batch = activated(&output);
    assert_eq!((batch.job_keys.len(), batch.truncated), (2, true));
    assert_eq!(activated(&partition.activate("work", 5)).job_keys.len(), 2);
    let last = partition.activate("work", 5);
    assert_eq!((activated(&last).job_keys.len(), activated(&last).truncated), (1, false));
    partition.check();
}

#[test]
fn names_that_are_too_long_are_refused_and_change_nothing() {
    let mut partition = partition(Limits::default());
    let variables = format!("{{\"{}\":1}}", "n".repeat(600));
    let output = partition.create("one-task", &variables, ProcessInstanceCreationIntent::Create);
    let rejection = output.replies[0].rejection.as_ref().expect("refused");
    assert_eq!(rejection.rejection_type, RejectionType::InvalidArgument);
    assert!(rejection.reason.starts_with("Expected the names of variables to have at most 512 bytes"), "{rejection:?}");
    let instances = partition.records.iter().filter(|record| matches!(record.payload, Payload::ProcessInstance(..)));
    assert_eq!(instances.count(), 0, "nothing was created");
}

/// Puts an instance aside, as a failure of the engine would.
fn ban(partition: &mut Partition, process_instance_key: Key) {
    let value = ErrorValue {
        exception_message: "a broken invariant".into(),
        stacktrace: Text::default(),
        error_event_position: 0,
        process_instance_key,
    };
    let record = Record {
        position: partition.engine.last_position() + 1,
        source_position: 0,
        key: Key::NONE,
        timestamp: partition.time,
        record_type: RecordType::Event,
        operation_reference: None,
        payload: Payload::Error(ErrorIntent::Created, Box::new(value)),
    };
    partition.engine.replay(&record).expect("the state is sound");
}

#[test]
fn jobs_of_a_banned_instance_neither_stay_due_nor_go_to_workers() {
    let mut partition = partition(Limits::default());
    create(&mut partition, 10);
    let activated_key = partition.jobs["work"];
    assert_eq!(activated(&partition.activate("work", 1)).job_keys, [activated_key]);
    let first = partition.instance;
    create(&mut partition, 10);
    let second = partition.instance;
    create(&mut partition, 10);
    let healthy = partition.jobs["work"];
    ban(&mut partition, first);
    ban(&mut partition, second);

    let output = partition.job(activated_key, JobIntent::Complete, JobValue::default());
    assert_eq!(output.replies[0].rejection.as_ref().expect("refused").rejection_type, RejectionType::InvalidState);
    partition.advance(60_000);
    assert_eq!(partition.engine.next_due(), None, "the time-out is done with");
    assert_eq!(activated(&partition.activate("work", 5)).job_keys, [healthy], "other instances go on");
}
