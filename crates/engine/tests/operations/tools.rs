//! Steps and questions that the tests share.

use engine::Output;
use model_builder::ProcessBuilder;
use protocol::*;

use crate::support::{Partition, TENANT, describe};

/// A partition with these processes, each in a separate deployment.
pub fn partition(processes: &[ProcessBuilder]) -> Partition {
    let mut partition = Partition::new();
    for process in processes {
        deploy(&mut partition, process);
    }
    partition
}

/// Deploys one process and answers its definition.
pub fn deploy(partition: &mut Partition, process: &ProcessBuilder) -> Key {
    let output = partition.deploy("process.bpmn", process.clone().to_xml().as_bytes());
    let reply = output.replies.last().expect("an answer");
    assert!(reply.rejection.is_none(), "{:?}", reply.rejection);
    match &reply.payload {
        Payload::Deployment(_, deployment) => deployment.processes_metadata[0].process_definition_key,
        payload => panic!("a deployment, not {payload:?}"),
    }
}

/// A creation of the newest version.
pub fn creation(id: &str) -> ProcessInstanceCreationValue {
    ProcessInstanceCreationValue {
        bpmn_process_id: id.into(),
        version: -1,
        tenant_id: TENANT.into(),
        ..ProcessInstanceCreationValue::default()
    }
}

pub fn create(partition: &mut Partition, value: ProcessInstanceCreationValue) -> Output {
    let payload = Payload::ProcessInstanceCreation(ProcessInstanceCreationIntent::Create, Box::new(value));
    partition.submit(Key::NONE, payload)
}

/// Creates an instance at its none start event and answers its key.
pub fn start(partition: &mut Partition, id: &str, variables: &str) -> Key {
    let value = ProcessInstanceCreationValue { variables: variables.into(), ..creation(id) };
    let output = create(partition, value);
    match &accepted(&output).payload {
        Payload::ProcessInstanceCreation(_, creation) => creation.process_instance_key,
        payload => panic!("a creation, not {payload:?}"),
    }
}

/// The answer, which is no refusal.
pub fn accepted(output: &Output) -> &engine::Reply {
    let reply = output.replies.first().expect("an answer");
    assert!(reply.rejection.is_none(), "{:?}", reply.rejection);
    reply
}

/// Checks the kind of a refusal, parts of its reason, and that it left nothing else behind.
pub fn refused(output: &Output, rejection_type: RejectionType, parts: &[&str]) {
    let reply = output.replies.first().expect("an answer");
    let rejection = reply.rejection.as_ref().unwrap_or_else(|| panic!("a refusal, not {:?}", reply.payload));
    assert_eq!(rejection.rejection_type, rejection_type, "{}", rejection.reason);
    for part in parts {
        assert!(rejection.reason.contains(part), "'{part}' is not in '{}'", rejection.reason);
    }
    assert_eq!(output.records.len(), 1, "a refused command leaves nothing but its refusal");
}

/// What happened as lines.
pub fn lines(output: &Output) -> Vec<String> {
    describe(output).lines().map(|line| line.trim().to_owned()).collect()
}

/// Checks that these lines are among what happened, in this order.
pub fn happened(output: &Output, expected: &[&str]) {
    let lines = lines(output);
    let mut rest = lines.iter();
    for line in expected {
        assert!(rest.any(|found| found == line), "'{line}' did not happen, or not in this order: {lines:#?}");
    }
}

/// Checks that no line of what happened has this part.
pub fn did_not_happen(output: &Output, part: &str) {
    let lines = lines(output);
    assert!(!lines.iter().any(|line| line.contains(part)), "'{part}' happened: {lines:#?}");
}

/// Completes the job that an element got last.
pub fn complete(partition: &mut Partition, element: &str) -> Output {
    let key = *partition.jobs.get(element).unwrap_or_else(|| panic!("'{element}' has no job"));
    let output = partition.job(key, JobIntent::Complete, JobValue::default());
    accepted(&output);
    output
}

/// The living element instances as `id: state`, in the order of their beginning.
pub fn living(partition: &Partition) -> Vec<String> {
    let mut living: Vec<(Key, String)> = Vec::new();
    for record in partition.records.iter().filter(|record| record.record_type == RecordType::Event) {
        let Payload::ProcessInstance(intent, value) = &record.payload else { continue };
        let state = match intent {
            ProcessInstanceIntent::ElementActivating => "activating",
            ProcessInstanceIntent::ElementActivated => "activated",
            ProcessInstanceIntent::ElementCompleting => "completing",
            ProcessInstanceIntent::ElementTerminating => "terminating",
            ProcessInstanceIntent::ElementCompleted | ProcessInstanceIntent::ElementTerminated => {
                living.retain(|(key, _)| *key != record.key);
                continue;
            }
            _ => continue,
        };
        let text = format!("{}: {state}", value.element_id);
        match living.iter_mut().find(|(key, _)| *key == record.key) {
            Some((_, known)) => *known = text,
            None => living.push((record.key, text)),
        }
    }
    living.into_iter().map(|(_, text)| text).collect()
}

/// Ended instances leave nothing behind but what belongs to definitions and streams.
pub fn check_nothing_is_left(partition: &Partition) {
    const STAYS: &[&str] =
        &["Counters", "processes", "latest_processes", "process_versions", "processes_by_deployment"];
    let mut dump = Vec::new();
    partition.engine.dump(&mut dump).expect("readable");
    let dump = String::from_utf8_lossy(&dump);
    let left: Vec<_> = dump.lines().filter(|line| !STAYS.contains(&line.split(' ').next().unwrap_or(""))).collect();
    assert!(left.is_empty(), "ended instances leave nothing: {left:#?}");
}
