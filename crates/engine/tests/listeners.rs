//! Execution listeners where the reference engine was not asked: limits, work that is interrupted, and banned
//! instances.

use std::sync::Arc;

use crate::support::{Partition, options};
use engine::{EngineOptions, Limits};
use protocol::*;

fn listener(event_type: &str, job_type: &str) -> String {
    format!(r#"<zeebe:executionListener eventType="{event_type}" type="{job_type}"/>"#)
}

fn listening(listeners: &str) -> String {
    format!("<extensionElements><zeebe:executionListeners>{listeners}</zeebe:executionListeners></extensionElements>")
}

/// A process whose manual task has listeners, and what the process itself has.
fn model(of_process: &str, of_task: &str) -> String {
    format!(
        r#"<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:zeebe="http://camunda.org/schema/zeebe/1.0" id="d" targetNamespace="x">
<process id="p" isExecutable="true">{of_process}<startEvent id="s"/><sequenceFlow id="f" sourceRef="s" targetRef="t"/>
<manualTask id="t">{}</manualTask><sequenceFlow id="g" sourceRef="t" targetRef="e"/><endEvent id="e"/></process></definitions>"#,
        listening(of_task)
    )
}

fn created_jobs(partition: &Partition) -> Vec<(String, JobKind, JobListenerEventType)> {
    let jobs = partition.records.iter().filter_map(|record| match &record.payload {
        Payload::Job(JobIntent::Created, job) => {
            Some((job.job_type.to_string(), job.job_kind, job.job_listener_event_type))
        }
        _ => None,
    });
    jobs.collect()
}

fn last_job(partition: &Partition) -> Key {
    let created = |record: &&Record| matches!(record.payload, Payload::Job(JobIntent::Created, _));
    partition.records.iter().rev().find(created).map(|record| record.key).expect("a job")
}

fn complete(partition: &mut Partition, variables: &str) {
    let key = last_job(partition);
    partition.job(key, JobIntent::Complete, JobValue { variables: variables.into(), ..JobValue::default() });
}

fn has_ended(partition: &Partition) -> bool {
    partition.records.iter().any(|record| match &record.payload {
        Payload::ProcessInstance(ProcessInstanceIntent::ElementCompleted, value) => {
            value.bpmn_element_type == BpmnElementType::Process
        }
        _ => false,
    })
}

#[test]
fn many_listeners_run_in_the_order_of_the_model() {
    let types: Vec<String> = (0..100).map(|number| format!("l{number}")).collect();
    let starts: String = types.iter().map(|job_type| listener("start", job_type)).collect();
    let ends: String = types.iter().map(|job_type| listener("end", job_type)).collect();
    let mut partition = Partition::new();
    // Between one another they may stand in any order.
    partition.deploy("p.bpmn", model("", &(ends + &starts)).as_bytes());
    partition.create("p", "{}", ProcessInstanceCreationIntent::Create);
    for _ in 0..200 {
        assert!(!has_ended(&partition));
        complete(&mut partition, "");
    }
    assert!(has_ended(&partition));
    let of = |event_type| types.iter().map(move |name| (name.clone(), JobKind::ExecutionListener, event_type));
    let expected: Vec<_> = of(JobListenerEventType::Start).chain(of(JobListenerEventType::End)).collect();
    assert_eq!(created_jobs(&partition), expected);
    partition.check();
}

#[test]
fn an_element_goes_on_in_further_commands_when_each_takes_one_step() {
    let limits = Limits { steps_per_command_max: 1, ..*options().limits.as_ref().unwrap_or(&Limits::default()) };
    let mut partition = Partition::with_options(EngineOptions { limits: Some(limits), ..options() });
    let of_process = listening(&(listener("start", "ps") + &listener("end", "pe")));
    partition.deploy("p.bpmn", model(&of_process, &(listener("start", "ts") + &listener("end", "te"))).as_bytes());
    partition.create("p", "{}", ProcessInstanceCreationIntent::Create);
    for variables in [r#"{"a":1}"#, r#"{"b":1}"#, r#"{"c":1}"#, r#"{"d":1}"#] {
        partition.advance(0);
        complete(&mut partition, variables);
        partition.advance(0);
    }
    assert!(has_ended(&partition), "{:?}", created_jobs(&partition));
    let types: Vec<String> = created_jobs(&partition).into_iter().map(|(job_type, ..)| job_type).collect();
    assert_eq!(types, ["ps", "ts", "te", "pe"]);
    partition.check();
}

#[test]
fn variables_of_a_listener_that_find_no_room_are_refused_and_the_job_stays() {
    let limits = Limits { root_variable_bytes_max: 10_000, ..*options().limits.as_ref().unwrap_or(&Limits::default()) };
    let mut partition = Partition::with_options(EngineOptions { limits: Some(limits), ..options() });
    partition.deploy("p.bpmn", model("", &(listener("start", "a") + &listener("end", "b"))).as_bytes());
    partition.create("p", "{}", ProcessInstanceCreationIntent::Create);
    let long = format!(r#"{{"v":"{}"}}"#, "x".repeat(20_000));
    for _ in 0..2 {
        let key = last_job(&partition);
        let value = JobValue { variables: long.as_str().into(), ..JobValue::default() };
        let output = partition.job(key, JobIntent::Complete, value);
        let rejection = output.replies[0].rejection.as_ref().expect("a refusal");
        assert_eq!(rejection.rejection_type, RejectionType::InvalidState, "{rejection:?}");
        complete(&mut partition, r#"{"v":1}"#);
    }
    assert!(has_ended(&partition));
    partition.check();
}

#[test]
fn what_listens_throws_no_errors_and_ends_with_its_instance() {
    let mut partition = Partition::new();
    partition.deploy("p.bpmn", model(&listening(&listener("start", "a")), &listener("end", "b")).as_bytes());
    partition.create("p", "{}", ProcessInstanceCreationIntent::Create);
    for _ in 0..2 {
        let key = last_job(&partition);
        let error = JobValue { error_code: "E".into(), ..JobValue::default() };
        let output = partition.job(key, JobIntent::ThrowError, error);
        let rejection = output.replies[0].rejection.as_ref().expect("a refusal");
        assert!(rejection.reason.contains("'EXECUTION_LISTENER'"), "{}", rejection.reason);
        partition.create("p", "{}", ProcessInstanceCreationIntent::Create);
        let instance = partition.instance;
        let job = last_job(&partition);
        let cancel = Payload::ProcessInstance(ProcessInstanceIntent::Cancel, Arc::default());
        partition.submit(instance, cancel);
        let canceled = partition
            .records
            .iter()
            .any(|record| record.key == job && matches!(record.payload, Payload::Job(JobIntent::Canceled, _)));
        assert!(canceled);
        // The first instance goes on with the listener at the end of its task.
        let first = Payload::Job(JobIntent::Complete, Arc::default());
        partition.submit(key, first);
    }
    partition.check();
}
