//! Listeners of user tasks where the reference engine is not followed to the letter, or does not say it: who is answered when, what is
//! refused and then changes nothing, banned instances, and what workers are told.

use std::sync::Arc;

use crate::support::{Partition, TENANT, without_keys};
use engine::Output;
use protocol::*;

const LISTENERS: &str = r#"<zeebe:taskListeners>
<zeebe:taskListener eventType="creating" type="c"/><zeebe:taskListener eventType="assigning" type="a"/>
<zeebe:taskListener eventType="updating" type="u"/><zeebe:taskListener eventType="completing" type="o"/>
<zeebe:taskListener eventType="canceling" type="n"/></zeebe:taskListeners>"#;

/// A partition with a created task that has a listener to each event.
fn with_task() -> (Partition, Key) {
    let mut partition = Partition::new();
    let model = format!(
        r#"<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:zeebe="http://camunda.org/schema/zeebe/1.0" id="d" targetNamespace="x">
<process id="p" isExecutable="true"><startEvent id="s"/><sequenceFlow id="f" sourceRef="s" targetRef="t"/>
<userTask id="t"><extensionElements><zeebe:userTask/>{LISTENERS}</extensionElements></userTask></process></definitions>"#
    );
    partition.deploy("p.bpmn", model.as_bytes());
    partition.create("p", r#"{"x":1}"#, ProcessInstanceCreationIntent::Create);
    complete_job(&mut partition, None);
    let created = partition.records.iter().find(|record| record.payload.intent_name() == "CREATING");
    let task = created.map(|record| record.key).expect("a user task");
    (partition, task)
}

fn user_task(partition: &mut Partition, key: Key, intent: UserTaskIntent, value: UserTaskValue) -> Output {
    partition.submit(key, Payload::UserTask(intent, Box::new(value)))
}

fn job(partition: &Partition) -> Key {
    let created =
        partition.records.iter().rev().find(|record| matches!(record.payload, Payload::Job(JobIntent::Created, _)));
    created.map(|record| record.key).expect("a job")
}

fn complete_job(partition: &mut Partition, result: Option<JobResult>) -> Output {
    let key = job(partition);
    partition.job(key, JobIntent::Complete, JobValue { result: result.map(Box::new), ..JobValue::default() })
}

fn task_result() -> JobResult {
    JobResult { result_type: JobResultType::UserTask, ..JobResult::default() }
}

fn correction(attribute: &str, value: JobResultCorrections) -> JobResult {
    let corrections = JobResultCorrections { corrected_attributes: vec![attribute.into()], ..value };
    JobResult { corrections: Some(Box::new(corrections)), ..task_result() }
}

/// Who is answered, and how.
fn answers(output: &Output) -> Vec<(u64, String)> {
    let answer = |reply: &engine::Reply| match &reply.rejection {
        None => format!("{} {}", reply.payload.value_type().name(), reply.payload.intent_name()),
        Some(rejection) => format!(
            "{} {:?}: {}",
            reply.payload.intent_name(),
            rejection.rejection_type,
            without_keys(&rejection.reason)
        ),
    };
    output.replies.iter().map(|reply| (reply.request.number, answer(reply))).collect()
}

fn number_of_last_request(partition: &Partition) -> u64 {
    let last = partition.batches.iter().rev().find_map(|batch| batch.commands[0].request);
    last.expect("a request").number
}

fn set_variables(partition: &mut Partition, variables: &str) -> Output {
    let value = VariableDocumentValue {
        scope_key: partition.elements["t"],
        variables: variables.into(),
        tenant_id: TENANT.into(),
        update_semantics: VariableDocumentUpdateSemantics::Propagate,
    };
    partition.submit(Key::NONE, Payload::VariableDocument(VariableDocumentIntent::Update, Box::new(value)))
}

#[test]
fn who_asks_for_a_change_is_answered_when_the_last_listener_is_done() {
    let (mut partition, task) = with_task();
    let assign = UserTaskValue { assignee: "b".into(), ..UserTaskValue::default() };
    let asked = [
        (UserTaskIntent::Assign, assign.clone(), "USER_TASK ASSIGNED"),
        (UserTaskIntent::Claim, assign, "USER_TASK ASSIGNED"),
        (UserTaskIntent::Update, UserTaskValue::default(), "USER_TASK UPDATED"),
        (UserTaskIntent::Complete, UserTaskValue::default(), "USER_TASK COMPLETED"),
    ];
    for (intent, value, answer) in asked {
        let output = user_task(&mut partition, task, intent, value.clone());
        assert_eq!(answers(&output), [], "{intent:?} waits");
        let waiting = number_of_last_request(&partition);
        // Meanwhile nothing else can be asked for.
        let refused = answers(&user_task(&mut partition, task, intent, value));
        assert!(refused[0].1.contains("InvalidState") && refused[0].1.contains("but it is in state"), "{refused:?}");
        let output = complete_job(&mut partition, None);
        let worker = number_of_last_request(&partition);
        assert_eq!(answers(&output), [(worker, "JOB COMPLETED".to_owned()), (waiting, answer.to_owned())]);
    }
    partition.check();
}

#[test]
fn a_denial_is_the_answer() {
    let (mut partition, task) = with_task();
    let assign = UserTaskValue { assignee: "b".into(), ..UserTaskValue::default() };
    let asked = [
        (UserTaskIntent::Assign, assign.clone(), "ASSIGN InvalidState: Assignment"),
        (UserTaskIntent::Claim, assign, "ASSIGN InvalidState: Assignment"),
        (UserTaskIntent::Update, UserTaskValue::default(), "UPDATE InvalidState: Update"),
        (UserTaskIntent::Complete, UserTaskValue::default(), "COMPLETE InvalidState: Completion"),
    ];
    for (intent, value, answer) in asked {
        user_task(&mut partition, task, intent, value);
        let waiting = number_of_last_request(&partition);
        let denied = JobResult { denied: true, denied_reason: "late".into(), ..task_result() };
        let output = complete_job(&mut partition, Some(denied));
        let expected =
            format!("{answer} of user task with key '<key>' was denied by a task listener. Reason to deny: 'late'");
        assert_eq!(answers(&output)[1..], [(waiting, expected)]);
        assert!(output.records.iter().all(|record| record.record_type == RecordType::Event));
    }
    partition.check();
}

#[test]
fn variables_wait_for_listeners_too() {
    let (mut partition, _) = with_task();
    assert_eq!(answers(&set_variables(&mut partition, r#"{"x":2}"#)), []);
    let waiting = number_of_last_request(&partition);
    let output = complete_job(&mut partition, None);
    assert_eq!(answers(&output)[1..], [(waiting, "VARIABLE_DOCUMENT UPDATED".to_owned())]);
    set_variables(&mut partition, r#"{"x":3}"#);
    let waiting = number_of_last_request(&partition);
    let refused = answers(&set_variables(&mut partition, "{}"));
    assert!(refused[0].1.contains("but it is in state 'UPDATING'"), "{refused:?}");
    let denied = JobResult { denied: true, denied_reason: "no".into(), ..task_result() };
    let output = complete_job(&mut partition, Some(denied));
    let reason = "UPDATE InvalidState: Update of variables of user task instance with key '<key>' was denied by a task listener. Reason to deny: 'no'";
    assert_eq!(answers(&output)[1..], [(waiting, reason.to_owned())]);
    partition.check();
}

#[test]
fn what_waits_is_refused_when_the_task_is_canceled() {
    let (mut partition, task) = with_task();
    user_task(&mut partition, task, UserTaskIntent::Complete, UserTaskValue::default());
    let waiting = number_of_last_request(&partition);
    let instance = partition.instance;
    let payload = Payload::ProcessInstance(ProcessInstanceIntent::Cancel, Arc::default());
    let output = partition.submit(instance, payload);
    let reason = "COMPLETE InvalidState: Expected to complete user task with key '<key>', but it was canceled before its listeners were done";
    assert!(answers(&output).contains(&(waiting, reason.to_owned())), "{:?}", answers(&output));
    assert!(!output.records.iter().any(|record| record.payload.intent_name() == "ELEMENT_TERMINATED"));
    let output = complete_job(&mut partition, None);
    let ended = output.records.iter().filter(|record| record.payload.intent_name() == "ELEMENT_TERMINATED").count();
    assert_eq!(ended, 2, "the task, and the process with it");
    partition.check();
}

#[test]
fn what_a_listener_cannot_say_is_refused_and_changes_nothing() {
    let (mut partition, task) = with_task();
    let update = UserTaskValue { changed_attributes: vec!["priority".into()], priority: 9, ..UserTaskValue::default() };
    user_task(&mut partition, task, UserTaskIntent::Update, update);
    let corrections = JobResultCorrections::default;
    let cases = [
        (JobResult::default(), "its result is that of an ad-hoc sub-process"),
        (
            JobResult { denied: true, ..correction("priority", JobResultCorrections { priority: 1, ..corrections() }) },
            "it has corrections and a denied result",
        ),
        (correction("owner", corrections()), "the attribute 'owner' of a user task cannot be corrected, only one of ["),
        (
            correction("priority", JobResultCorrections { priority: 101, ..corrections() }),
            "its priority must be from 0 to 100, and not '101'",
        ),
        (
            correction("dueDate", JobResultCorrections { due_date: "soon".into(), ..corrections() }),
            "its due date must be a date-time with offset",
        ),
        (
            correction("assignee", JobResultCorrections { assignee: "x".repeat(600).as_str().into(), ..corrections() }),
            "have at most 512 bytes",
        ),
    ];
    for (result, expected) in cases {
        let output = complete_job(&mut partition, Some(result));
        let [(_, answer)] = &answers(&output)[..] else { panic!("one answer") };
        let start = "COMPLETE InvalidArgument: Expected to complete task listener job with key '<key>', but ";
        assert!(answer.starts_with(start) && answer.contains(expected), "{answer}");
        assert!(output.records.iter().all(|record| record.record_type != RecordType::Event));
    }
    let key = job(&partition);
    let with_variables = JobValue { variables: r#"{"x":2}"#.into(), ..JobValue::default() };
    let answer = answers(&partition.job(key, JobIntent::Complete, with_variables));
    assert!(answer[0].1.contains("it has variables, which task listeners cannot set yet"), "{answer:?}");
    let error = JobValue { error_code: "E".into(), ..JobValue::default() };
    let answer = answers(&partition.job(key, JobIntent::ThrowError, error));
    assert!(answer[0].1.contains("it is of the kind 'TASK_LISTENER'"), "{answer:?}");
    let none = JobValue { variables: "{}".into(), ..JobValue::default() };
    assert_eq!(answers(&partition.job(key, JobIntent::Complete, none)).len(), 2, "the worker and who waits");
    partition.check();
}

#[test]
fn a_worker_is_told_of_the_task_and_of_what_comes_with_the_change() {
    let (mut partition, task) = with_task();
    let variables = r#"{"x":2,"r":[1]}"#;
    let complete = UserTaskValue { variables: variables.into(), action: "done".into(), ..UserTaskValue::default() };
    user_task(&mut partition, task, UserTaskIntent::Complete, complete);
    let output = partition.activate("o", 1);
    let Payload::JobBatch(_, batch) = &output.replies[0].payload else { panic!("jobs") };
    let job = &batch.jobs[0];
    let expected = (JobKind::TaskListener, JobListenerEventType::Completing, r#"{"x":2,"r":[1]}"#);
    assert_eq!((job.job_kind, job.job_listener_event_type, &*job.variables), expected);
    let headers = format!(
        r#"{{"io.camunda.zeebe:userTaskKey":"{task}","io.camunda.zeebe:action":"done","io.camunda.zeebe:priority":"50"}}"#
    );
    assert_eq!(&*job.custom_headers, headers);
    complete_job(&mut partition, None);
    partition.check();
}

#[test]
fn the_result_of_a_user_task_means_nothing_for_the_work_of_an_element() {
    let mut partition = Partition::new();
    let model = br#"<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:zeebe="http://camunda.org/schema/zeebe/1.0" id="d" targetNamespace="x">
<process id="p" isExecutable="true"><startEvent id="s"/><sequenceFlow id="f" sourceRef="s" targetRef="t"/>
<serviceTask id="t"><extensionElements><zeebe:taskDefinition type="t"/></extensionElements></serviceTask></process></definitions>"#;
    partition.deploy("p.bpmn", model);
    partition.create("p", "{}", ProcessInstanceCreationIntent::Create);
    let output = complete_job(&mut partition, Some(JobResult { denied: true, ..task_result() }));
    let completed = output.records.iter().find(|record| record.payload.intent_name() == "ELEMENT_COMPLETED");
    assert!(completed.is_some(), "{:?}", output.records);
    partition.check();
}
