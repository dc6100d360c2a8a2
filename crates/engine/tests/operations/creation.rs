//! Creation at elements, and with runtime instructions.

use engine::{EngineOptions, Limits};
use model_builder::{Event, ProcessBuilder};
use protocol::*;

use crate::support::{self, Partition};
use crate::tools::*;

fn at(id: &str, elements: &[&str]) -> ProcessInstanceCreationValue {
    ProcessInstanceCreationValue {
        start_instructions: elements.iter().map(|element| Text::from(*element)).collect(),
        ..creation(id)
    }
}

fn until(id: &str, elements: &[&str]) -> ProcessInstanceCreationValue {
    let instruction =
        |element: &&str| RuntimeInstruction { after_element_id: Text::from(*element), ..RuntimeInstruction::default() };
    ProcessInstanceCreationValue { runtime_instructions: elements.iter().map(instruction).collect(), ..creation(id) }
}

/// A task, a sub-process in a sub-process with an event sub-process and a boundary event, and a join behind a fork.
fn nested() -> ProcessBuilder {
    ProcessBuilder::new("nested")
        .start("start")
        .service_task("before", "work")
        .sub_process("outer")
        .start("outer-start")
        .sub_process("inner")
        .start("inner-start")
        .service_task("deep", "work")
        .end("inner-end")
        .end_sub_process()
        .end("outer-end")
        .event_sub_process("on-message")
        .start_event("message-start", Event::Message("stop", "=key"))
        .end("message-end")
        .end_sub_process()
        .end_sub_process()
        .end("end")
        .boundary("late", "outer", Event::Duration("PT1H"))
        .end("too-late")
}

#[test]
fn the_flow_scopes_of_the_element_begin_with_it() {
    let mut partition = partition(&[nested()]);
    let output = create(
        &mut partition,
        ProcessInstanceCreationValue { variables: "{\"key\":\"k\"}".into(), ..at("nested", &["deep"]) },
    );
    happened(
        &output,
        &[
            "VARIABLE CREATED key = \"k\"",
            "PROCESS_INSTANCE ELEMENT_ACTIVATING PROCESS nested",
            "PROCESS_INSTANCE ELEMENT_ACTIVATED PROCESS nested",
            "PROCESS_INSTANCE ELEMENT_ACTIVATING SUB_PROCESS outer",
            "PROCESS_INSTANCE ELEMENT_ACTIVATED SUB_PROCESS outer",
            "TIMER CREATED",
            "PROCESS_INSTANCE ELEMENT_ACTIVATING SUB_PROCESS inner",
            "PROCESS_INSTANCE ELEMENT_ACTIVATED SUB_PROCESS inner",
            "PROCESS_INSTANCE_CREATION CREATED nested v1",
            "PROCESS_INSTANCE ELEMENT_ACTIVATING SERVICE_TASK deep",
            "JOB CREATED deep work retries 3",
            "PROCESS_INSTANCE ELEMENT_ACTIVATED SERVICE_TASK deep",
        ],
    );
    did_not_happen(&output, "start");
    assert_eq!(living(&partition), ["nested: activated", "outer: activated", "inner: activated", "deep: activated"]);
    let output = complete(&mut partition, "deep");
    happened(&output, &["PROCESS_INSTANCE ELEMENT_COMPLETED PROCESS nested"]);
    partition.check();
    assert!(living(&partition).is_empty());
}

#[test]
fn what_waits_in_the_scopes_is_opened() {
    let mut partition = partition(&[nested()]);
    let value = ProcessInstanceCreationValue { variables: "{\"key\":\"k\"}".into(), ..at("nested", &["deep"]) };
    create(&mut partition, value);
    let output = partition.advance(3_600_000);
    happened(
        &output,
        &[
            "PROCESS_INSTANCE ELEMENT_TERMINATED SUB_PROCESS outer",
            "PROCESS_INSTANCE ELEMENT_COMPLETED BOUNDARY_EVENT late",
            "PROCESS_INSTANCE ELEMENT_COMPLETED PROCESS nested",
        ],
    );
    partition.check();
}

#[test]
fn what_cannot_be_opened_in_a_scope_refuses_the_creation() {
    let mut partition = partition(&[nested()]);
    let output = create(&mut partition, at("nested", &["deep"]));
    refused(&output, RejectionType::InvalidArgument, &["Expected to subscribe to catch event(s) of 'outer'"]);
    assert!(living(&partition).is_empty());
    partition.check();
}

#[test]
fn several_elements_share_their_scopes() {
    let process = ProcessBuilder::new("p")
        .start("s")
        .sub_process("sub")
        .start("ss")
        .service_task("a", "work")
        .service_task("b", "work")
        .end("se")
        .end_sub_process()
        .service_task("c", "work")
        .end("e");
    let mut partition = partition(&[process]);
    accepted(&create(&mut partition, at("p", &["a", "b", "c"])));
    assert_eq!(
        living(&partition),
        ["p: activated", "sub: activated", "a: activated", "b: activated", "c: activated"],
        "the sub-process is there once"
    );
    for job in ["c", "b"] {
        let output = complete(&mut partition, job);
        did_not_happen(&output, "COMPLETED PROCESS");
    }
    complete(&mut partition, "a");
    complete(&mut partition, "b");
    complete(&mut partition, "c");
    partition.check();
    check_nothing_is_left(&partition);
}

/// An element that ends at once must not end the instance while the next one has not begun.
#[test]
fn an_element_that_ends_at_once_leaves_the_others_their_instance() {
    let process = ProcessBuilder::new("p").start("s").manual_task("a").end("e").move_to("s").service_task("b", "work");
    let mut partition = partition(&[process]);
    let output = create(&mut partition, at("p", &["e", "b", "e"]));
    happened(&output, &["JOB CREATED b work retries 3", "PROCESS_INSTANCE ELEMENT_COMPLETED END_EVENT e"]);
    assert_eq!(living(&partition), ["p: activated", "b: activated"]);
    complete(&mut partition, "b");
    partition.check();
    check_nothing_is_left(&partition);
}

#[test]
fn an_instance_that_starts_at_its_end_completes() {
    let process = ProcessBuilder::new("p").start("s").manual_task("a").end("e");
    let mut partition = partition(&[process]);
    let value = at("p", &["e"]);
    let intent = ProcessInstanceCreationIntent::CreateWithAwaitingResult;
    let value = ProcessInstanceCreationValue { variables: "{\"x\":1}".into(), ..value };
    let output = partition.submit(Key::NONE, Payload::ProcessInstanceCreation(intent, Box::new(value)));
    happened(&output, &["PROCESS_INSTANCE ELEMENT_COMPLETED PROCESS p", "result {\"x\":1}"]);
    partition.check();
    check_nothing_is_left(&partition);
}

#[test]
fn gateways_begin_without_waiting_for_their_flows() {
    for kind in ["parallelGateway", "inclusiveGateway"] {
        let process = ProcessBuilder::new("p")
            .start("s")
            .parallel_gateway("fork")
            .service_task("a", "work")
            .element(kind, "join")
            .service_task("after", "work")
            .end("e")
            .move_to("fork")
            .service_task("b", "work")
            .connect_to("join");
        let mut partition = partition(&[process]);
        let output = create(&mut partition, at("p", &["join", "b"]));
        happened(&output, &["JOB CREATED b work retries 3", "JOB CREATED after work retries 3"]);
        complete(&mut partition, "after");
        let left = living(&partition);
        assert_eq!(left, ["p: activated", "b: activated"], "{kind}");
        partition.check();
    }
}

#[test]
fn events_activities_and_calls_can_be_started_at() {
    let child = ProcessBuilder::new("child").start("cs").service_task("child-task", "work").end("ce");
    let process = ProcessBuilder::new("p")
        .start("s")
        .catch_event("timer", Event::Duration("PT1M"))
        .service_task("loop", "work")
        .multi_instance("=[1,2]", "item")
        .call_activity("call", "child")
        .event_based_gateway("race")
        .catch_event("short", Event::Duration("PT10M"))
        .end("e")
        .move_to("race")
        .catch_event("long", Event::Duration("PT20M"))
        .end("f");
    let mut partition = partition(&[child, process]);
    accepted(&create(&mut partition, at("p", &["timer", "loop", "call", "race"])));
    let expected = [
        "p: activated",
        "timer: activated",
        "loop: activated",
        "call: activated",
        "race: activated",
        "loop: activated",
        "loop: activated",
        "child: activated",
        "child-task: activated",
    ];
    let mut found = living(&partition);
    found.sort();
    let mut expected = expected.map(str::to_owned);
    expected.sort();
    assert_eq!(found, expected, "with the instances of the loop and of the called process");
    partition.check();
}

#[test]
fn elements_inside_event_sub_processes_can_be_started_at() {
    let process = ProcessBuilder::new("p")
        .start("s")
        .service_task("main", "work")
        .end("e")
        .event_sub_process("on-error")
        .start_event("error", Event::Error("E"))
        .service_task("repair", "work")
        .end("repaired")
        .end_sub_process();
    let mut partition = partition(&[process]);
    accepted(&create(&mut partition, at("p", &["repair", "main"])));
    assert_eq!(living(&partition), ["p: activated", "on-error: activated", "repair: activated", "main: activated"]);
    complete(&mut partition, "repair");
    complete(&mut partition, "main");
    check_nothing_is_left(&partition);
    accepted(&create(&mut partition, at("p", &["on-error"])));
    complete(&mut partition, "repair");
    partition.check();
    check_nothing_is_left(&partition);
}

#[test]
fn elements_that_cannot_be_started_at_are_refused_by_name() {
    let process = ProcessBuilder::new("p")
        .start("s")
        .service_task("task", "work")
        .sub_process("many")
        .multi_instance("=[1]", "item")
        .start("ms")
        .manual_task("inside")
        .end("me")
        .end_sub_process()
        .event_based_gateway("race")
        .catch_event("winner", Event::Duration("PT1M"))
        .end("e")
        .move_to("race")
        .catch_event("loser", Event::Duration("PT2M"))
        .end("f")
        .boundary("late", "task", Event::Duration("PT1H"))
        .end("too-late");
    let mut partition = partition(&[process]);
    let cases: [(&str, &[&str]); 7] = [
        ("nowhere", &["with start instructions", "no element found with id 'nowhere'"]),
        ("inside", &["'inside' is inside a multi-instance subprocess"]),
        ("s", &["'s' targets unsupported element type 'START_EVENT'"]),
        ("late", &["'late' targets unsupported element type 'BOUNDARY_EVENT'"]),
        ("flow_1", &["'flow_1' targets unsupported element type 'SEQUENCE_FLOW'"]),
        ("p", &["'p' targets unsupported element type 'PROCESS'"]),
        ("winner", &["'winner' belongs to an event-based gateway"]),
    ];
    for (element, parts) in cases {
        let output = create(&mut partition, at("p", &["task", element]));
        refused(&output, RejectionType::InvalidArgument, parts);
    }
    assert!(living(&partition).is_empty());
    partition.check();
}

#[test]
fn a_process_without_a_none_start_event_can_be_started_at_elements_only() {
    let process =
        ProcessBuilder::new("p").start_event("s", Event::Message("go", "")).service_task("task", "work").end("e");
    let mut partition = partition(&[process]);
    refused(&create(&mut partition, creation("p")), RejectionType::InvalidState, &["none start event"]);
    accepted(&create(&mut partition, at("p", &["task"])));
    complete(&mut partition, "task");
    assert!(living(&partition).is_empty());
    partition.check();
}

#[test]
fn more_start_instructions_than_the_limit_are_refused() {
    let limits = Limits { elements_per_operation_max: 2, ..Limits::default() };
    let mut partition = Partition::with_options(EngineOptions { limits: Some(limits), ..support::options() });
    deploy(&mut partition, &ProcessBuilder::new("p").start("s").service_task("task", "work").end("e"));
    accepted(&create(&mut partition, at("p", &["task", "task"])));
    let output = create(&mut partition, at("p", &["task", "task", "task"]));
    refused(&output, RejectionType::InvalidArgument, &["at most 2 start instructions, but there are 3"]);
}

fn parallel() -> ProcessBuilder {
    ProcessBuilder::new("p")
        .start("s")
        .parallel_gateway("fork")
        .service_task("a", "work")
        .service_task("after", "work")
        .end("e")
        .move_to("fork")
        .sub_process("sub")
        .start("ss")
        .service_task("b", "work")
        .end("se")
        .end_sub_process()
}

#[test]
fn an_instance_ends_after_the_element_that_was_asked_for() {
    let mut partition = partition(&[parallel()]);
    create(&mut partition, until("p", &["a"]));
    let output = complete(&mut partition, "a");
    happened(
        &output,
        &[
            "PROCESS_INSTANCE ELEMENT_COMPLETED SERVICE_TASK a",
            "RUNTIME_INSTRUCTION INTERRUPTED",
            "PROCESS_INSTANCE ELEMENT_TERMINATING PROCESS p",
            "JOB CANCELED b work retries 3",
            "PROCESS_INSTANCE ELEMENT_TERMINATED SUB_PROCESS sub",
            "PROCESS_INSTANCE ELEMENT_TERMINATED PROCESS p",
        ],
    );
    did_not_happen(&output, "SEQUENCE_FLOW");
    did_not_happen(&output, "after");
    partition.check();
    check_nothing_is_left(&partition);
}

#[test]
fn an_instance_ends_after_gateways_scopes_and_ends_too() {
    for (element, jobs) in [("fork", &[][..]), ("s", &[]), ("sub", &["b"]), ("se", &["b"]), ("e", &["a", "after"])] {
        let mut partition = partition(&[parallel()]);
        create(&mut partition, until("p", &[element, "nowhere", element]));
        for job in jobs {
            assert!(!living(&partition).is_empty(), "'{element}' has not ended");
            complete(&mut partition, job);
        }
        assert!(living(&partition).is_empty(), "after '{element}'");
        let is_interruption = |record: &&Record| matches!(&record.payload, Payload::RuntimeInstruction(..));
        let interruptions = partition.records.iter().filter(is_interruption).count();
        assert_eq!(interruptions, 1, "after '{element}' it is interrupted once");
        partition.check();
        check_nothing_is_left(&partition);
    }
}

/// Nothing begins any more in other scopes once the instance is interrupted, although they do not know it yet.
#[test]
fn nothing_begins_once_the_instance_is_interrupted() {
    let process = ProcessBuilder::new("p")
        .start("s")
        .parallel_gateway("fork")
        .manual_task("a")
        .end("e")
        .move_to("fork")
        .sub_process("sub")
        .start("ss")
        .manual_task("b")
        .manual_task("c")
        .manual_task("d")
        .end("se")
        .end_sub_process()
        .end("f");
    let mut partition = partition(&[process]);
    let output = create(&mut partition, until("p", &["a"]));
    let lines = lines(&output);
    let interrupted = lines.iter().position(|line| line.starts_with("RUNTIME_INSTRUCTION")).expect("interrupted");
    let begins = |line: &&String| line.contains("ELEMENT_ACTIVATING");
    let after: Vec<_> = lines[interrupted..].iter().filter(begins).collect();
    assert!(after.is_empty(), "{after:?} began afterwards");
    partition.check();
    check_nothing_is_left(&partition);
}

#[test]
fn an_element_that_is_interrupted_ends_the_instance_too() {
    let process = ProcessBuilder::new("p")
        .start("s")
        .service_task("task", "work")
        .end("e")
        .boundary("late", "task", Event::Duration("PT1M"))
        .service_task("remind", "work")
        .end("r");
    let mut partition = partition(&[process]);
    create(&mut partition, until("p", &["task"]));
    let output = partition.advance(60_000);
    happened(
        &output,
        &[
            "PROCESS_INSTANCE ELEMENT_TERMINATED SERVICE_TASK task",
            "RUNTIME_INSTRUCTION INTERRUPTED",
            "PROCESS_INSTANCE ELEMENT_TERMINATED PROCESS p",
        ],
    );
    did_not_happen(&output, "remind");
    partition.check();
    check_nothing_is_left(&partition);
}

#[test]
fn the_instances_of_a_loop_do_not_end_the_instance_but_the_loop_does() {
    let process = ProcessBuilder::new("p")
        .start("s")
        .service_task("loop", "work")
        .sequential_multi_instance("=[1,2]", "item")
        .service_task("after", "work")
        .end("e");
    let mut partition = partition(&[process]);
    create(&mut partition, until("p", &["loop"]));
    complete(&mut partition, "loop");
    assert_eq!(living(&partition), ["p: activated", "loop: activated", "loop: activated"], "the second one began");
    let output = complete(&mut partition, "loop");
    happened(
        &output,
        &["PROCESS_INSTANCE ELEMENT_COMPLETED MULTI_INSTANCE_BODY loop", "RUNTIME_INSTRUCTION INTERRUPTED"],
    );
    partition.check();
    check_nothing_is_left(&partition);
}

#[test]
fn instructions_that_were_not_reached_are_forgotten_with_the_instance() {
    let mut partition = partition(&[parallel()]);
    let output = create(&mut partition, until("p", &["nowhere"]));
    let key = match &accepted(&output).payload {
        Payload::ProcessInstanceCreation(_, creation) => {
            assert_eq!(creation.runtime_instructions.len(), 1, "the record tells them");
            creation.process_instance_key
        }
        payload => panic!("a creation, not {payload:?}"),
    };
    partition.submit(key, Payload::ProcessInstance(ProcessInstanceIntent::Cancel, Default::default()));
    partition.check();
    check_nothing_is_left(&partition);
}
