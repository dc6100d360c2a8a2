//! Compensation of much at once, and that nothing of it is left when its instance ends, however it ends.

use crate::support::{Partition, rows};
use model_builder::ProcessBuilder;
use protocol::*;

/// A sub-process runs for each item, a task in it with a handler, and then everything is undone.
fn model(items: usize, handler: &str) -> String {
    format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:zeebe="http://camunda.org/schema/zeebe/1.0" id="d" targetNamespace="t">
<process id="p" isExecutable="true">
<startEvent id="start"/><sequenceFlow id="f1" sourceRef="start" targetRef="each"/>
<subProcess id="each">
<multiInstanceLoopCharacteristics><extensionElements><zeebe:loopCharacteristics inputCollection="=for i in 1..{items} return i"/></extensionElements></multiInstanceLoopCharacteristics>
<startEvent id="inner"/><sequenceFlow id="f2" sourceRef="inner" targetRef="done"/>
<manualTask id="done"/>
<boundaryEvent id="undo" attachedToRef="done"><compensateEventDefinition/></boundaryEvent>
<association id="a" sourceRef="undo" targetRef="handler"/>
{handler}
</subProcess>
<sequenceFlow id="f3" sourceRef="each" targetRef="wait"/>
<serviceTask id="wait"><extensionElements><zeebe:taskDefinition type="wait"/></extensionElements></serviceTask>
<sequenceFlow id="f4" sourceRef="wait" targetRef="throw"/>
<endEvent id="throw"><compensateEventDefinition/></endEvent>
</process>
</definitions>"#
    )
}

const MANUAL: &str = r#"<manualTask id="handler" isForCompensation="true"/>"#;
const SERVICE: &str = r#"<serviceTask id="handler" isForCompensation="true"><extensionElements><zeebe:taskDefinition type="undo"/></extensionElements></serviceTask>"#;

/// An instance that waits before it throws.
fn begun(items: usize, handler: &str) -> Partition {
    let mut partition = Partition::new();
    let output = partition.deploy("p.bpmn", model(items, handler).as_bytes());
    assert_eq!(output.replies[0].rejection, None);
    partition.create("p", "{}", ProcessInstanceCreationIntent::Create);
    assert_eq!(count(&partition, CompensationSubscriptionIntent::Created), items * 2 + 1);
    partition
}

fn go_on(partition: &mut Partition) {
    let key = partition.jobs["wait"];
    partition.job(key, JobIntent::Complete, JobValue::default());
}

fn count(partition: &Partition, wanted: CompensationSubscriptionIntent) -> usize {
    let is_wanted =
        |payload: &Payload| matches!(payload, Payload::CompensationSubscription(intent, _) if *intent == wanted);
    partition.records.iter().filter(|record| is_wanted(&record.payload)).count()
}

/// The largest number of records that one command wrote.
fn most_records(partition: &Partition) -> usize {
    let commands = partition.records.chunk_by(|left, right| left.source_position == right.source_position);
    commands.map(<[Record]>::len).max().expect("there are records")
}

/// Only what a deployment leaves is there.
fn assert_nothing_is_left(partition: &Partition) {
    let mut deployed = Partition::new();
    deployed.deploy("q.bpmn", model(1, MANUAL).as_bytes());
    let tables = |partition: &Partition| {
        let mut tables: Vec<String> =
            rows(&partition.engine).iter().map(|row| row.split(' ').next().unwrap_or_default().to_owned()).collect();
        tables.dedup();
        tables
    };
    assert_eq!(tables(partition), tables(&deployed));
    partition.check();
}

#[test]
fn ten_thousand_handlers_begin_in_slices() {
    const ITEMS: usize = 10_000;
    let mut partition = begun(ITEMS, MANUAL);
    go_on(&mut partition);
    assert_eq!(count(&partition, CompensationSubscriptionIntent::Triggered), ITEMS * 2 + 1);
    assert_eq!(count(&partition, CompensationSubscriptionIntent::Completed), ITEMS * 2 + 1);
    assert_eq!(count(&partition, CompensationSubscriptionIntent::Deleted), 0);
    assert!(most_records(&partition) < 10_000, "one command wrote {} records", most_records(&partition));
    let thrown = |record: &&Record| {
        matches!(&record.payload, Payload::ProcessInstance(ProcessInstanceIntent::ElementCompleted, value)
            if value.element_id == *"throw")
    };
    assert_eq!(partition.records.iter().filter(thrown).count(), 1, "the event completes once, after all of them");
    assert_nothing_is_left(&partition);
}

/// What is undone comes in the order of its completion, what is inside of an activity behind it, also over slices.
#[test]
fn the_order_of_compensation_is_that_of_completion() {
    const ITEMS: usize = 120;
    let mut partition = begun(ITEMS, SERVICE);
    go_on(&mut partition);
    let mut triggered = partition.records.iter().filter_map(|record| match &record.payload {
        Payload::CompensationSubscription(CompensationSubscriptionIntent::Triggered, value) => {
            Some((value.compensable_activity_scope_key, value.compensable_activity_instance_key, record.key))
        }
        _ => None,
    });
    let (_, body, _) = triggered.next().expect("the loop");
    let mut last = Key::NONE;
    for _ in 0..ITEMS {
        let (scope, inner, key) = triggered.next().expect("an inner instance");
        assert_eq!(scope, body);
        assert!(last.is_none() || key > last, "in the order of completion");
        last = key;
        let (scope, ..) = triggered.next().expect("its task");
        assert_eq!(scope, inner, "right behind what contains it");
    }
    assert!(triggered.next().is_none());
    partition.check();
}

#[test]
fn a_cancellation_leaves_nothing_to_undo() {
    const ITEMS: usize = 200;
    for is_compensating in [false, true] {
        let mut partition = begun(ITEMS, SERVICE);
        if is_compensating {
            go_on(&mut partition);
        }
        let instance = partition.instance;
        partition.submit(instance, Payload::ProcessInstance(ProcessInstanceIntent::Cancel, Default::default()));
        assert_eq!(count(&partition, CompensationSubscriptionIntent::Deleted), ITEMS * 2 + 1);
        assert_nothing_is_left(&partition);
    }
}

#[test]
fn a_modification_that_ends_the_instance_leaves_nothing_to_undo() {
    let mut partition = begun(3, MANUAL);
    let value = ProcessInstanceModificationValue {
        process_instance_key: partition.instance,
        terminate_instructions: vec![ModificationTerminateInstruction {
            element_instance_key: partition.elements["wait"],
            ..ModificationTerminateInstruction::default()
        }],
        ..ProcessInstanceModificationValue::default()
    };
    let modify = Payload::ProcessInstanceModification(ProcessInstanceModificationIntent::Modify, Box::new(value));
    let output = partition.submit(partition.instance, modify);
    assert_eq!(output.replies[0].rejection, None);
    assert_eq!(count(&partition, CompensationSubscriptionIntent::Deleted), 7);
    assert_nothing_is_left(&partition);
}

#[test]
fn an_instance_that_never_throws_forgets_what_it_could_undo_in_slices() {
    const ITEMS: usize = 300;
    let mut partition = Partition::new();
    let never = model(ITEMS, MANUAL)
        .replace(r#"<endEvent id="throw"><compensateEventDefinition/></endEvent>"#, r#"<endEvent id="throw"/>"#);
    partition.deploy("p.bpmn", never.as_bytes());
    partition.create("p", "{}", ProcessInstanceCreationIntent::Create);
    go_on(&mut partition);
    assert_eq!(count(&partition, CompensationSubscriptionIntent::Deleted), ITEMS * 2 + 1);
    assert_nothing_is_left(&partition);
}

/// One task is done before the event that has everything undone, another one while a listener to that event is at work, and a
/// third one behind it.
fn listened() -> String {
    let mut builder = ProcessBuilder::new("p").start("start").parallel_gateway("fork");
    for task in ["during", "behind"] {
        let [undo, handler] = ["undo", "handler"].map(|kind| format!("{kind}-{task}"));
        builder = builder.move_to("fork").service_task(task, task).compensation(&undo, task, &handler, &handler);
        builder = builder.end(&format!("end-{task}"));
    }
    builder =
        builder.move_to("fork").manual_task("before").compensation("undo-before", "before", "handler-before", "undo");
    builder.compensation_throw("throw").execution_listener("start", "listen").end("end").to_xml()
}

#[test]
fn an_event_undoes_what_was_completed_until_its_work_began() {
    let undone = ["handler-before", "handler-during"];
    let mut partition = Partition::new();
    let deployed = partition.deploy("p.bpmn", listened().as_bytes());
    assert_eq!(deployed.replies[0].rejection, None);
    partition.create("p", "{}", ProcessInstanceCreationIntent::Create);
    for element in ["during", "throw", "behind"] {
        let key = partition.jobs[element];
        partition.job(key, JobIntent::Complete, JobValue::default());
    }
    let handlers: Vec<&str> =
        partition.jobs.keys().map(String::as_str).filter(|of| of.starts_with("handler")).collect();
    assert_eq!(handlers, undone);
    for handler in undone {
        let key = partition.jobs[handler];
        partition.job(key, JobIntent::Complete, JobValue::default());
    }
    assert_eq!(count(&partition, CompensationSubscriptionIntent::Completed), undone.len());
    partition.check();
}
