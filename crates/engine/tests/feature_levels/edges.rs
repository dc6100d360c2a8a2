//! What takes a process made for it to show.

use std::sync::Arc;

use engine::FeatureLevel;
use model_builder::{Event, ProcessBuilder};
use protocol::*;

use super::{at, migrate, newest_definition};
use crate::support::{Partition, TENANT};

/// One rule after the other, each with a process of its own.
pub(super) fn history(level: FeatureLevel) -> Partition {
    let mut partition = Partition::with_options(at(level));
    gather_behind_an_event(&mut partition);
    touch_what_is_being_terminated(&mut partition);
    undo_what_was_completed_late(&mut partition);
    choose_a_compensation_event(&mut partition);
    migrate_a_condition(&mut partition);
    correct_what_is_cancelled(&mut partition);
    come_too_late(&mut partition);
    partition.check();
    partition
}

fn deploy(partition: &mut Partition, model: &str) {
    let rejection = &partition.deploy("p.bpmn", model.as_bytes()).replies[0].rejection;
    assert_eq!(*rejection, None);
}

fn create(partition: &mut Partition, process: &str, variables: &str) {
    partition.create(process, variables, ProcessInstanceCreationIntent::Create);
}

fn complete(partition: &mut Partition, element: &str, value: JobValue) {
    let job = partition.jobs[element];
    partition.job(job, JobIntent::Complete, value);
}

/// The newest instance of the element.
fn element(partition: &Partition, id: &str) -> Key {
    partition.elements[id]
}

fn broadcast(partition: &mut Partition, signal: &str) {
    let value = SignalValue { signal_name: signal.into(), tenant_id: TENANT.into(), ..SignalValue::default() };
    partition.submit(Key::NONE, Payload::Signal(SignalIntent::Broadcast, Box::new(value)));
}

/// The first job for the type that there was.
fn first_job(partition: &Partition, job_type: &str) -> Key {
    let is_created = |record: &&Record| matches!(&record.payload, Payload::Job(JobIntent::Created, job) if *job.job_type == *job_type);
    partition.records.iter().find(is_created).expect("there is a job").key
}

/// An event sub-process in an ad-hoc sub-process completes, and then an inner instance, with a variable of its own that fulfils the
/// completion condition.
fn gather_behind_an_event(partition: &mut Partition) {
    let model = ProcessBuilder::new("gather")
        .start("start")
        .ad_hoc_sub_process("ad", "=[\"a\"]")
        .ad_hoc_output("all", "=result")
        .service_task("a", "gather")
        .event_sub_process("note")
        .start_event("noted", Event::Message("note", "=k"))
        .non_interrupting()
        .end("done")
        .end_sub_process()
        .end_sub_process()
        .end("end")
        .to_xml();
    let condition =
        "<bpmn:completionCondition xsi:type=\"bpmn:tFormalExpression\">=result = 1</bpmn:completionCondition>";
    deploy(partition, &model.replace("</bpmn:adHocSubProcess>", &format!("{condition}</bpmn:adHocSubProcess>")));
    create(partition, "gather", "{\"k\":\"1\",\"result\":0}");
    let message = MessageValue {
        name: "note".into(),
        correlation_key: "1".into(),
        tenant_id: TENANT.into(),
        ..MessageValue::default()
    };
    partition.submit(Key::NONE, Payload::Message(MessageIntent::Publish, Box::new(message)));
    complete(partition, "a", JobValue { variables: "{\"result\":1}".into(), ..JobValue::default() });
}

#[test]
fn ad_hoc_sub_processes_count_events_and_see_their_own_variables() {
    let mut partition = Partition::new();
    gather_behind_an_event(&mut partition);
    let has = |is: fn(&Payload) -> bool| partition.records.iter().any(|record| is(&record.payload));
    let is_gathered = has(
        |payload| matches!(payload, Payload::Variable(VariableIntent::Updated, value) if *value.name == *"all" && *value.value == *"[0]"),
    );
    let has_ended = has(
        |payload| matches!(payload, Payload::ProcessInstance(ProcessInstanceIntent::ElementCompleted, value) if *value.element_id == *"ad"),
    );
    assert_eq!((is_gathered, has_ended), (true, false));
    partition.check();
}

/// Waits for the canceling listener of its user task, and is cancelled again, and told variables.
fn touch_what_is_being_terminated(partition: &mut Partition) -> [Option<RejectionType>; 3] {
    let model = ProcessBuilder::new("ending").start("start").user_task("t").task_listener("canceling", "bye");
    deploy(partition, &model.end("end").to_xml());
    create(partition, "ending", "{}");
    let instance = partition.instance;
    let value = VariableDocumentValue {
        scope_key: instance,
        variables: "{\"x\":1}".into(),
        tenant_id: TENANT.into(),
        update_semantics: VariableDocumentUpdateSemantics::Local,
    };
    let update = Payload::VariableDocument(VariableDocumentIntent::Update, Box::new(value));
    let cancel = Payload::ProcessInstance(ProcessInstanceIntent::Cancel, Default::default());
    let answers = [cancel.clone(), cancel, update].map(|payload| {
        let rejection = partition.submit(instance, payload).replies[0].rejection.clone();
        rejection.map(|rejection| rejection.rejection_type)
    });
    complete(partition, "t", JobValue::default());
    answers
}

#[test]
fn what_is_being_terminated_is_gone() {
    let mut partition = Partition::new();
    let answers = touch_what_is_being_terminated(&mut partition);
    assert_eq!(answers, [None, Some(RejectionType::NotFound), Some(RejectionType::NotFound)]);
    let instance = partition.instance;
    let has_ended = |record: &Record| {
        record.key == instance
            && matches!(record.payload, Payload::ProcessInstance(ProcessInstanceIntent::ElementTerminated, _))
    };
    assert!(partition.records.iter().any(has_ended), "it has ended");
    partition.check();
}

/// A task is completed while a listener to the compensation event is at work.
fn undo_what_was_completed_late(partition: &mut Partition) {
    let builder =
        ProcessBuilder::new("undone").start("start").parallel_gateway("fork").service_task("during", "during");
    let builder = builder.compensation("undo-during", "during", "handler-during", "undo").end("end-during");
    let builder =
        builder.move_to("fork").manual_task("before").compensation("undo-before", "before", "handler-before", "undo");
    let builder = builder.compensation_throw("throw").execution_listener("start", "listen").end("end");
    deploy(partition, &builder.to_xml());
    create(partition, "undone", "{}");
    for element in ["during", "throw", "handler-before"] {
        complete(partition, element, JobValue::default());
    }
    if partition.jobs.contains_key("handler-during") {
        complete(partition, "handler-during", JobValue::default());
    }
}

/// The compensation event at an element of an ad-hoc sub-process is chosen instead of the element.
fn choose_a_compensation_event(partition: &mut Partition) {
    let builder = ProcessBuilder::new("choose").start("start").ad_hoc_sub_process("ad", "=elements");
    let builder = builder.service_task("a", "choose").compensation("undo", "a", "handler", "undo");
    deploy(partition, &builder.end_sub_process().end("end").to_xml());
    for elements in [r#"{"elements":["a","handler"]}"#, r#"{"elements":["undo"]}"#] {
        create(partition, "choose", elements);
    }
}

/// What waits for a condition goes on in another definition.
fn migrate_a_condition(partition: &mut Partition) {
    let model = |process: &str, condition: &str| {
        let builder = ProcessBuilder::new(process).start("start").service_task("work", "work");
        builder.catch_event("wait", Event::Condition(condition, "")).end("end").to_xml()
    };
    deploy(partition, &model("source", "= x > 1"));
    create(partition, "source", "{\"x\":0}");
    let instance = partition.instance;
    complete(partition, "work", JobValue::default());
    deploy(partition, &model("target", "= x > 2"));
    let definition = newest_definition(partition);
    migrate(partition, instance, definition, &[("wait", "wait")]);
    for variables in ["{\"x\":2}", "{\"x\":3}"] {
        let value = VariableDocumentValue {
            scope_key: instance,
            variables: variables.into(),
            tenant_id: TENANT.into(),
            update_semantics: VariableDocumentUpdateSemantics::Propagate,
        };
        partition.submit(Key::NONE, Payload::VariableDocument(VariableDocumentIntent::Update, Box::new(value)));
    }
}

/// A signal cancels a user task, its first listener corrects it, and a modification ends it before the second one has answered.
fn correct_what_is_cancelled(partition: &mut Partition) {
    let model = ProcessBuilder::new("corrected").start("start").sub_process("s").start("in").user_task("c");
    let model = model.task_listener("canceling", "one").task_listener("canceling", "two");
    let model = model.boundary("stopped", "c", Event::Signal("stop")).end("over").move_to("c").end("out");
    let model = model.end_sub_process().service_task("after", "after").end("end").to_xml();
    deploy(partition, &model);
    create(partition, "corrected", "{}");
    broadcast(partition, "stop");
    let corrections =
        JobResultCorrections { priority: 7, corrected_attributes: vec!["priority".into()], ..Default::default() };
    let result = JobResult {
        result_type: JobResultType::UserTask,
        corrections: Some(Box::new(corrections)),
        ..JobResult::default()
    };
    let job = first_job(partition, "one");
    partition.job(job, JobIntent::Complete, JobValue { result: Some(Box::new(result)), ..JobValue::default() });
    let instance = partition.instance;
    let value = ProcessInstanceModificationValue {
        process_instance_key: instance,
        activate_instructions: vec![ModificationActivateInstruction {
            element_id: "after".into(),
            ..ModificationActivateInstruction::default()
        }],
        terminate_instructions: vec![ModificationTerminateInstruction {
            element_instance_key: element(partition, "s"),
            ..Default::default()
        }],
        ..ProcessInstanceModificationValue::default()
    };
    let modify = Payload::ProcessInstanceModification(ProcessInstanceModificationIntent::Modify, Box::new(value));
    let rejection = &partition.submit(instance, modify).replies[0].rejection;
    assert_eq!(*rejection, None);
}

#[test]
fn canceled_tasks_keep_what_was_corrected() {
    let mut partition = Partition::new();
    correct_what_is_cancelled(&mut partition);
    let canceled = partition.records.iter().find_map(|record| match &record.payload {
        Payload::UserTask(UserTaskIntent::Canceled, value) => Some((value.priority, value.changed_attributes.len())),
        _ => None,
    });
    assert_eq!(canceled, Some((7, 1)));
    partition.check();
}

/// The deadline of a job is noticed when the job has failed and is due for another try.
fn come_too_late(partition: &mut Partition) {
    let model = ProcessBuilder::new("late").start("start").service_task("slow", "slow").end("end");
    deploy(partition, &model.to_xml());
    create(partition, "late", "{}");
    partition.activate("slow", 1);
    let job = partition.jobs["slow"];
    partition.job(job, JobIntent::Fail, JobValue { retries: 1, retry_backoff: 1_000, ..JobValue::default() });
    partition.time += 5_000;
    let time_out = Payload::Job(JobIntent::TimeOut, Arc::default());
    partition.apply(vec![Command::of_system(job, time_out)]);
    partition.advance(0);
}
