//! Migration of running instances to other definitions.

use engine::{EngineOptions, Limits, Output};
use model_builder::{Event, ProcessBuilder};
use protocol::*;

use crate::cluster::{Cluster, Message};
use crate::support::{self, Partition, TENANT};
use crate::tools::*;

fn plan(instance: Key, target: Key, mapping: &[(&str, &str)]) -> Payload {
    let instruction = |(source, target): &(&str, &str)| MigrationMappingInstruction {
        source_element_id: Text::from(*source),
        target_element_id: Text::from(*target),
    };
    let value = ProcessInstanceMigrationValue {
        process_instance_key: instance,
        target_process_definition_key: target,
        mapping_instructions: mapping.iter().map(instruction).collect(),
        tenant_id: TENANT.into(),
    };
    Payload::ProcessInstanceMigration(ProcessInstanceMigrationIntent::Migrate, Box::new(value))
}

fn migrate(partition: &mut Partition, instance: Key, target: Key, mapping: &[(&str, &str)]) -> Output {
    partition.submit(Key::NONE, plan(instance, target, mapping))
}

/// Deploys both, starts an instance of the first and tries to migrate it to the second.
fn try_migration(source: &ProcessBuilder, target: &ProcessBuilder, mapping: &[(&str, &str)]) -> (Partition, Output) {
    try_migration_with(source, "{\"key\":\"k\",\"items\":[1,2]}", target, mapping)
}

fn try_migration_with(
    source: &ProcessBuilder,
    variables: &str,
    target: &ProcessBuilder,
    mapping: &[(&str, &str)],
) -> (Partition, Output) {
    let mut partition = Partition::new();
    deploy(&mut partition, source);
    let instance = start(&mut partition, "p", variables);
    let target = deploy(&mut partition, target);
    let output = migrate(&mut partition, instance, target, mapping);
    partition.check();
    (partition, output)
}

/// A process with one task.
fn task(id: &str, task: &str) -> ProcessBuilder {
    ProcessBuilder::new(id).start("s").service_task(task, "work").end("e")
}

/// The values of the events that say something went on.
fn migrated_elements(output: &Output) -> Vec<ProcessInstanceValue> {
    let migrated = |record: &Record| match &record.payload {
        Payload::ProcessInstance(ProcessInstanceIntent::ElementMigrated, value) => Some((**value).clone()),
        _ => None,
    };
    output.records.iter().filter_map(migrated).collect()
}

#[test]
fn elements_jobs_variables_and_incidents_go_on_with_the_target() {
    let mut partition = Partition::new();
    deploy(&mut partition, &task("p", "a"));
    let next = ProcessBuilder::new("q")
        .start("s")
        .service_task("b", "other")
        .retries("7")
        .service_task("after", "work")
        .end("e");
    let target = deploy(&mut partition, &next);
    let instance = start(&mut partition, "p", "{\"x\":1}");
    let (task, job) = (partition.elements["a"], partition.jobs["a"]);
    partition.job(job, JobIntent::Fail, JobValue { retries: 0, ..JobValue::default() });
    let output = migrate(&mut partition, instance, target, &[("a", "b")]);
    happened(
        &output,
        &[
            "PROCESS_INSTANCE ELEMENT_MIGRATED PROCESS q",
            "VARIABLE MIGRATED x =",
            "PROCESS_INSTANCE ELEMENT_MIGRATED SERVICE_TASK b",
            "JOB MIGRATED b work retries 0",
            "INCIDENT MIGRATED b JOB_NO_RETRIES 'No more retries left.'",
            "PROCESS_INSTANCE_MIGRATION MIGRATED",
            "reply PROCESS_INSTANCE_MIGRATION MIGRATED",
        ],
    );
    for value in migrated_elements(&output) {
        assert_eq!((value.process_definition_key, &*value.bpmn_process_id, value.version), (target, "q", 1));
    }
    for record in &output.records {
        match &record.payload {
            Payload::Job(_, value) => {
                assert_eq!(record.key, job, "the job stays");
                assert_eq!((value.process_definition_key, value.element_instance_key), (target, task));
                assert_eq!(&*value.job_type, "work", "it is not evaluated again");
            }
            Payload::Incident(_, value) => assert_eq!(value.process_definition_key, target),
            Payload::Variable(_, value) => assert_eq!(value.process_definition_key, target),
            _ => {}
        }
    }
    partition.job(job, JobIntent::UpdateRetries, JobValue { retries: 1, ..JobValue::default() });
    let incident = partition.incidents["a"];
    accepted(&partition.submit(incident, Payload::Incident(IncidentIntent::Resolve, Box::default())));
    let output = partition.job(job, JobIntent::Complete, JobValue::default());
    happened(&output, &["PROCESS_INSTANCE ELEMENT_COMPLETED SERVICE_TASK b", "JOB CREATED after work retries 3"]);
    let output = complete(&mut partition, "after");
    happened(&output, &["PROCESS_INSTANCE ELEMENT_COMPLETED PROCESS q"]);
    partition.check();
    check_nothing_is_left(&partition);
}

#[test]
fn what_is_not_there_is_not_found() {
    let mut partition = Partition::new();
    let source = deploy(&mut partition, &task("p", "a"));
    let instance = start(&mut partition, "p", "");
    let element = partition.elements["a"];
    for key in [Key::from_raw(77), element] {
        let output = migrate(&mut partition, key, source, &[("a", "a")]);
        refused(&output, RejectionType::NotFound, &["no process instance found with key", &key.to_string()]);
    }
    let output = migrate(&mut partition, instance, Key::from_raw(77), &[("a", "a")]);
    refused(&output, RejectionType::NotFound, &["no process definition found with key '77'"]);
    partition.check();
}

#[test]
fn plans_that_speak_of_what_is_not_there_are_refused() {
    let target = task("p", "b");
    let cases: [(&[(&str, &str)], &str); 4] = [
        (&[("a", "b"), ("a", "e")], "duplicate source element ids '[a]'"),
        (&[("a", "b"), ("nowhere", "b")], "non-existing source element id 'nowhere'"),
        (&[("a", "nowhere")], "non-existing target element id 'nowhere'"),
        (&[("a", "a")], "non-existing target element id 'a'"),
    ];
    for (mapping, part) in cases {
        let (_, output) = try_migration(&task("p", "a"), &target, mapping);
        refused(&output, RejectionType::InvalidArgument, &[part, "Expected to migrate process instance"]);
    }
}

#[test]
fn active_elements_must_be_mapped_to_their_like() {
    let source = task("p", "a");
    let (_, output) = try_migration(&source, &task("p", "b"), &[]);
    refused(&output, RejectionType::InvalidState, &["no mapping instruction defined for active element with id 'a'"]);
    let other = ProcessBuilder::new("p").start("s").send_task("b", "work").end("e");
    for (target, found) in [("b", "SEND_TASK"), ("e", "END_EVENT"), ("flow_1", "SEQUENCE_FLOW")] {
        let (_, output) = try_migration(&source, &other, &[("a", target)]);
        let parts = ["'a' and type 'SERVICE_TASK'", &format!("'{target}' and different type '{found}'")];
        refused(&output, RejectionType::InvalidState, &parts);
    }
}

#[test]
fn elements_stay_in_their_scope() {
    let inside =
        |id: &str| ProcessBuilder::new("p").start("s").sub_process(id).start("ss").service_task("a", "work").end("se");
    let source = inside("sub").end_sub_process().end("e");
    let flat = ProcessBuilder::new("p").start("s").sub_process("sub").start("ss").end("se").end_sub_process();
    let flat = flat.service_task("a", "work").end("e");
    let (_, output) = try_migration(&source, &flat, &[("a", "a"), ("sub", "sub")]);
    let parts = ["the flow scope of active element with id 'a' is changed", "expected to be 'sub' but was 'p'"];
    refused(&output, RejectionType::InvalidState, &parts);
    let renamed = inside("renamed").end_sub_process().end("e");
    let (mut partition, output) = try_migration(&source, &renamed, &[("a", "a"), ("sub", "renamed")]);
    accepted(&output);
    happened(&complete(&mut partition, "a"), &["PROCESS_INSTANCE ELEMENT_COMPLETED SUB_PROCESS renamed"]);
    partition.check();
    check_nothing_is_left(&partition);
}

#[test]
fn elements_whose_kind_cannot_go_on_are_refused() {
    // The end event waits with an incident, because nothing catches its error.
    let source = ProcessBuilder::new("p").start("s").error_end("e", "E");
    let (_, output) = try_migration(&source, &source, &[("e", "e")]);
    refused(&output, RejectionType::InvalidState, &["'e' has an unsupported type", "a END_EVENT is not supported"]);
}

#[test]
fn an_event_behind_a_gateway_cannot_go_on_but_the_gateway_can() {
    let process = |first: &str| {
        ProcessBuilder::new("p")
            .start("s")
            .event_based_gateway("race")
            .catch_event(first, Event::Duration("PT1M"))
            .output("=for i in 1..1000000000 return i", "x")
            .end("e")
            .move_to("race")
            .catch_event("second", Event::Duration("PT2M"))
            .end("f")
    };
    let mapping = [("race", "race"), ("first", "renamed"), ("second", "second")];
    let (mut partition, output) = try_migration(&process("first"), &process("renamed"), &mapping);
    happened(&output, &["PROCESS_INSTANCE ELEMENT_MIGRATED EVENT_BASED_GATEWAY race", "TIMER MIGRATED"]);
    assert_eq!(partition.engine.statistics().timers, 2);
    let output = partition.advance(60_000);
    happened(&output, &["PROCESS_INSTANCE ELEMENT_ACTIVATED INTERMEDIATE_CATCH_EVENT renamed"]);
    assert!(partition.incidents.contains_key("renamed"), "its mapping takes too long");
    let third = deploy(&mut partition, &process("third"));
    let instance = partition.instance;
    let output = migrate(&mut partition, instance, third, &[("renamed", "third")]);
    refused(
        &output,
        RejectionType::InvalidState,
        &["'renamed' is an intermediate catch event attached to an event-based gateway"],
    );
    partition.check();
}

#[test]
fn mapped_timers_keep_their_date_and_others_close_or_open() {
    let process = |boundaries: &[(&str, &str)]| {
        let mut process = task("p", "a");
        for (id, duration) in boundaries {
            process = process.boundary(id, "a", Event::Duration(duration)).non_interrupting().end(&format!("{id}-end"));
        }
        process
    };
    let source = process(&[("kept", "PT1M"), ("closed", "PT2M")]);
    let target = process(&[("renamed", "PT10H"), ("opened", "PT3M")]);
    let (mut partition, output) = try_migration(&source, &target, &[("a", "a"), ("kept", "renamed")]);
    happened(&output, &["TIMER CANCELED", "TIMER CREATED", "TIMER MIGRATED"]);
    let timers: Vec<_> = output
        .records
        .iter()
        .filter_map(|record| match &record.payload {
            Payload::Timer(intent, value) => {
                Some(format!("{} {} {}", intent.name(), value.target_element_id, value.due_date - partition.time))
            }
            _ => None,
        })
        .collect();
    assert_eq!(timers, ["CANCELED closed 120000", "CREATED opened 180000", "MIGRATED renamed 60000"]);
    happened(&partition.advance(60_000), &["PROCESS_INSTANCE ELEMENT_COMPLETED BOUNDARY_EVENT renamed"]);
    let output = partition.advance(60_000);
    assert!(output.records.is_empty(), "the closed one is not due");
    happened(&partition.advance(60_000), &["PROCESS_INSTANCE ELEMENT_COMPLETED BOUNDARY_EVENT opened"]);
    partition.check();
}

/// The plan may give the id of one event to another.
#[test]
fn events_can_swap_their_ids() {
    let process = |first: &str, second: &str| {
        task("p", "a")
            .boundary(first, "a", Event::Duration("PT1M"))
            .non_interrupting()
            .end("one")
            .boundary(second, "a", Event::Duration("PT2M"))
            .non_interrupting()
            .end("two")
    };
    let mapping = [("a", "a"), ("x", "y"), ("y", "x")];
    let (mut partition, output) = try_migration(&process("x", "y"), &process("y", "x"), &mapping);
    did_not_happen(&output, "TIMER CREATED");
    happened(&partition.advance(60_000), &["PROCESS_INSTANCE ELEMENT_COMPLETED END_EVENT one"]);
    happened(&partition.advance(60_000), &["PROCESS_INSTANCE ELEMENT_COMPLETED END_EVENT two"]);
    partition.check();
    // A new event opens whose id means another one in the source, and the mapped one continues.
    let (mut partition, output) = try_migration(&process("x", "y"), &process("y", "z"), &[("a", "a"), ("x", "z")]);
    happened(&output, &["TIMER CANCELED", "TIMER CREATED", "TIMER MIGRATED"]);
    happened(&partition.advance(60_000), &["PROCESS_INSTANCE ELEMENT_COMPLETED BOUNDARY_EVENT y"]);
    partition.check();
}

#[test]
fn catch_events_keep_their_place_and_kind() {
    let two_tasks = ProcessBuilder::new("p").start("s").service_task("a", "work").service_task("b", "work").end("e");
    let with = |process: &ProcessBuilder, id: &str, on: &str, event: Event| {
        process.clone().boundary(id, on, event).end(&format!("{id}-end"))
    };
    let timer = Event::Duration("PT1M");
    let source = with(&two_tasks, "x", "a", timer);
    let (_, output) = try_migration(&source, &with(&two_tasks, "y", "b", timer), &[("a", "a"), ("x", "y")]);
    let parts = ["'x' that is mapped to a catch event with id 'y'", "detach the catch event from the element"];
    refused(&output, RejectionType::InvalidState, &parts);
    let message = Event::Message("m", "=key");
    let (_, output) = try_migration(&source, &with(&two_tasks, "y", "a", message), &[("a", "a"), ("x", "y")]);
    refused(&output, RejectionType::InvalidState, &["different event types: 'TIMER' and 'MESSAGE'"]);
    let both = with(&source, "z", "a", Event::Duration("PT2M"));
    let (_, output) = try_migration(&both, &source, &[("a", "a"), ("x", "x"), ("z", "x")]);
    refused(
        &output,
        RejectionType::InvalidState,
        &["multiple mapping instructions that target this catch event: 'x', 'z'"],
    );
}

#[test]
fn mapped_subscriptions_stay_and_take_messages_for_the_target() {
    let process = |id: &str, event: &str, name: &str| {
        ProcessBuilder::new(id).start("s").catch_event(event, Event::Message(name, "=key")).service_task("t", "work")
    };
    let mut partition = Partition::new();
    deploy(&mut partition, &process("p", "x", "m"));
    let target = deploy(&mut partition, &process("q", "y", "other"));
    let instance = start(&mut partition, "p", "{\"key\":\"k\"}");
    let output = migrate(&mut partition, instance, target, &[("x", "y")]);
    happened(
        &output,
        &[
            "PROCESS_MESSAGE_SUBSCRIPTION MIGRATED",
            "PROCESS_INSTANCE_MIGRATION MIGRATED",
            "MESSAGE_SUBSCRIPTION MIGRATED",
        ],
    );
    did_not_happen(&output, "CREATING");
    did_not_happen(&publish(&mut partition, "other", "k"), "CORRELATED");
    let output = publish(&mut partition, "m", "k");
    happened(
        &output,
        &["PROCESS_INSTANCE ELEMENT_COMPLETED INTERMEDIATE_CATCH_EVENT y", "JOB CREATED t work retries 3"],
    );
    partition.check();
}

fn publish(partition: &mut Partition, name: &str, correlation_key: &str) -> Output {
    let value = MessageValue {
        name: name.into(),
        correlation_key: correlation_key.into(),
        tenant_id: TENANT.into(),
        ..MessageValue::default()
    };
    partition.submit(Key::NONE, Payload::Message(MessageIntent::Publish, Box::new(value)))
}

#[test]
fn subscriptions_that_are_not_mapped_close_and_new_ones_open() {
    let process = |event: &str, name: &str| {
        task("p", "a").boundary(event, "a", Event::Message(name, "=key")).non_interrupting().end("told")
    };
    let (mut partition, output) = try_migration(&process("x", "old"), &process("y", "new"), &[("a", "a")]);
    happened(&output, &["PROCESS_MESSAGE_SUBSCRIPTION DELETING", "PROCESS_MESSAGE_SUBSCRIPTION CREATING"]);
    did_not_happen(&publish(&mut partition, "old", "k"), "BOUNDARY_EVENT");
    happened(&publish(&mut partition, "new", "k"), &["PROCESS_INSTANCE ELEMENT_COMPLETED BOUNDARY_EVENT y"]);
    partition.check();
    let (_, output) = try_migration(&process("x", "same"), &process("y", "same"), &[("a", "a")]);
    let parts = ["'a' is already subscribed to the same message name 'same'", "target message catch event with id 'y'"];
    refused(&output, RejectionType::InvalidState, &parts);
    let (_, output) = try_migration_with(&task("p", "a"), "{}", &process("y", "new"), &[("a", "a")]);
    let parts = ["is mapped to element with id 'a' that must be subscribed to a catch event"];
    refused(&output, RejectionType::InvalidState, &parts);
}

/// Whether a subscription ends with its first message is as the target says.
#[test]
fn mapped_events_interrupt_as_the_target_says() {
    let process = |is_interrupting: bool| {
        let process = task("p", "a").boundary("x", "a", Event::Message("m", "=key"));
        let process = if is_interrupting { process } else { process.non_interrupting() };
        process.end("told")
    };
    let mapping = [("a", "a"), ("x", "x")];
    let (mut partition, output) = try_migration(&process(true), &process(false), &mapping);
    accepted(&output);
    for _ in 0..2 {
        happened(&publish(&mut partition, "m", "k"), &["PROCESS_INSTANCE ELEMENT_COMPLETED BOUNDARY_EVENT x"]);
    }
    partition.check();
    let (mut partition, output) = try_migration(&process(false), &process(true), &mapping);
    accepted(&output);
    let output = publish(&mut partition, "m", "k");
    happened(&output, &["PROCESS_INSTANCE ELEMENT_TERMINATED SERVICE_TASK a"]);
    did_not_happen(&publish(&mut partition, "m", "k"), "CORRELATED");
    partition.check();
}

#[test]
fn receive_tasks_and_loops_of_them_go_on_waiting() {
    let process = |id: &str| ProcessBuilder::new("p").start("s").receive_task(id, "m", "=key");
    let (mut partition, output) = try_migration(&process("r").end("e"), &process("q").end("e"), &[("r", "q")]);
    accepted(&output);
    happened(&publish(&mut partition, "m", "k"), &["PROCESS_INSTANCE ELEMENT_COMPLETED RECEIVE_TASK q"]);
    partition.check();
    let many = |id: &str| process(id).multi_instance("=items", "item").end("e");
    let (mut partition, output) = try_migration(&many("r"), &many("q"), &[("r", "q")]);
    assert_eq!(migrated_elements(&output).len(), 4, "the process, the loop and its two instances");
    for _ in 0..2 {
        happened(&publish(&mut partition, "m", "k"), &["PROCESS_INSTANCE ELEMENT_COMPLETED RECEIVE_TASK q"]);
    }
    partition.check();
    check_nothing_is_left(&partition);
}

#[test]
fn loops_go_on_as_loops_of_the_same_kind() {
    let plain = |id: &str| ProcessBuilder::new("p").start("s").service_task(id, "work");
    let parallel = |id: &str| plain(id).multi_instance("=items", "item").end("e");
    let sequential = |id: &str| plain(id).sequential_multi_instance("=items", "item").end("e");
    let mapping = [("a", "b")];
    let (_, output) = try_migration(&parallel("a"), &sequential("b"), &mapping);
    refused(&output, RejectionType::InvalidState, &["'a' has a different loop characteristics", "'b'"]);
    let (_, output) = try_migration(&parallel("a"), &plain("b").end("e"), &mapping);
    refused(&output, RejectionType::InvalidState, &["'MULTI_INSTANCE_BODY'", "different type 'SERVICE_TASK'"]);
    let (_, output) = try_migration(&plain("a").end("e"), &parallel("b"), &mapping);
    refused(&output, RejectionType::InvalidState, &["'SERVICE_TASK'", "different type 'MULTI_INSTANCE_BODY'"]);
    let sending = ProcessBuilder::new("p").start("s").send_task("b", "work").multi_instance("=items", "item").end("e");
    let (_, output) = try_migration(&parallel("a"), &sending, &mapping);
    refused(&output, RejectionType::InvalidState, &["'a' and type 'SERVICE_TASK'", "different type 'SEND_TASK'"]);
    let (mut partition, output) = try_migration(&sequential("a"), &sequential("b"), &mapping);
    accepted(&output);
    let output = complete(&mut partition, "a");
    happened(&output, &["PROCESS_INSTANCE ELEMENT_COMPLETED SERVICE_TASK b", "JOB CREATED b work retries 3"]);
    happened(&complete(&mut partition, "b"), &["PROCESS_INSTANCE ELEMENT_COMPLETED MULTI_INSTANCE_BODY b"]);
    partition.check();
    check_nothing_is_left(&partition);
}

#[test]
fn event_sub_processes_go_on_also_when_they_interrupted_their_scope() {
    let process = |id: &str, start: &str, task: &str| {
        ProcessBuilder::new("p")
            .start("s")
            .service_task("a", "work")
            .end("e")
            .event_sub_process(id)
            .start_event(start, Event::Message("m", "=key"))
            .service_task(task, "work")
            .end("ee")
            .end_sub_process()
    };
    let (source, target) = (process("on-x", "x", "b"), process("on-y", "y", "c"));
    let (mut partition, output) = try_migration(&source, &target, &[("a", "a"), ("x", "y")]);
    happened(&output, &["PROCESS_MESSAGE_SUBSCRIPTION MIGRATED", "PROCESS_INSTANCE ELEMENT_MIGRATED SERVICE_TASK a"]);
    let output = publish(&mut partition, "m", "k");
    happened(&output, &["PROCESS_INSTANCE ELEMENT_TERMINATED SERVICE_TASK a", "JOB CREATED c work retries 3"]);
    // Interrupted by then, and on to the next version under another name.
    let third = deploy(&mut partition, &process("on-z", "z", "d"));
    let instance = partition.instance;
    let output = migrate(&mut partition, instance, third, &[("on-y", "on-z"), ("c", "d")]);
    happened(&output, &["PROCESS_INSTANCE ELEMENT_MIGRATED EVENT_SUB_PROCESS on-z"]);
    did_not_happen(&output, "PROCESS_MESSAGE_SUBSCRIPTION");
    let output = complete(&mut partition, "c");
    happened(
        &output,
        &["PROCESS_INSTANCE ELEMENT_COMPLETED EVENT_SUB_PROCESS on-z", "PROCESS_INSTANCE ELEMENT_COMPLETED PROCESS p"],
    );
    partition.check();
    check_nothing_is_left(&partition);
}

#[test]
fn called_instances_stay_and_return_to_the_target() {
    let child = task("child", "inside");
    let parent = |id: &str| ProcessBuilder::new("p").start("s").call_activity(id, "child").service_task("then", "work");
    let mut partition = Partition::new();
    deploy(&mut partition, &child);
    deploy(&mut partition, &parent("call").end("e"));
    let instance = start(&mut partition, "p", "");
    let called = partition.instance;
    let target = deploy(&mut partition, &parent("renamed").end("e"));
    let output = migrate(&mut partition, instance, target, &[("call", "renamed")]);
    assert_eq!(migrated_elements(&output).len(), 2, "the called instance is another one");
    // The called one continues with a different version.
    let newer = deploy(&mut partition, &task("child", "renamed-inside"));
    accepted(&migrate(&mut partition, called, newer, &[("inside", "renamed-inside")]));
    let output = complete(&mut partition, "inside");
    happened(
        &output,
        &[
            "PROCESS_INSTANCE ELEMENT_COMPLETED PROCESS child",
            "PROCESS_INSTANCE ELEMENT_COMPLETED CALL_ACTIVITY renamed",
            "JOB CREATED then work retries 3",
        ],
    );
    partition.check();
}

/// An incident that stops an element before it begins is what many migrations repair.
#[test]
fn an_element_that_has_not_begun_begins_in_the_target() {
    let process = |called: &str| ProcessBuilder::new("p").start("s").call_activity("call", called).end("e");
    let mut partition = Partition::new();
    deploy(&mut partition, &task("child", "inside"));
    deploy(&mut partition, &process("missing"));
    let instance = start(&mut partition, "p", "");
    let incident = partition.incidents["call"];
    let repaired = process("child").boundary("late", "call", Event::Duration("PT1H")).end("too-late");
    let target = deploy(&mut partition, &repaired);
    let output = migrate(&mut partition, instance, target, &[("call", "call")]);
    happened(
        &output,
        &[
            "INCIDENT MIGRATED call CALLED_ELEMENT_ERROR 'Expected process with BPMN process id 'missing' to be deployed, but not found.'",
        ],
    );
    did_not_happen(&output, "TIMER");
    let output = partition.submit(incident, Payload::Incident(IncidentIntent::Resolve, Box::default()));
    happened(&output, &["TIMER CREATED", "JOB CREATED inside work retries 3"]);
    partition.check();
}

/// A fork into several tasks and their join.
fn fork(kind: &'static str, prefix: &str, tasks: usize) -> ProcessBuilder {
    let id = |name: &str| format!("{prefix}{name}");
    let process = ProcessBuilder::new("p").start("s").parallel_gateway("fork").service_task(&id("0"), "work");
    let mut process = process.element(kind, &id("join")).service_task("after", "work").end("e");
    for task in 1..tasks {
        process = process.move_to("fork").service_task(&id(&task.to_string()), "work").connect_to(&id("join"));
    }
    process
}

/// The sequence flow from a task of [`fork`] to the join.
fn flow_of(task: usize) -> String {
    format!("flow_{}", if task == 0 { 3 } else { 5 + 2 * task })
}

#[test]
fn tokens_at_joining_gateways_go_on_at_mapped_flows() {
    for kind in ["parallelGateway", "inclusiveGateway"] {
        let mut partition = Partition::new();
        deploy(&mut partition, &fork(kind, "a", 2));
        let instance = start(&mut partition, "p", "");
        let target = deploy(&mut partition, &fork(kind, "b", 3));
        complete(&mut partition, "a0");
        let taken = partition.records.iter().rev().find_map(|record| match &record.payload {
            Payload::ProcessInstance(ProcessInstanceIntent::SequenceFlowTaken, value) => Some(value.element_id.clone()),
            _ => None,
        });
        let taken = taken.expect("a flow");
        let good = flow_of(1);
        let tasks = ("a1", "b1");
        let cases: [(&[(&str, &str)], &str); 4] = [
            (&[tasks], "gateway 'ajoin' has at least one incoming sequence flow taken"),
            (&[tasks, ("ajoin", "bjoin")], "a taken sequence flow with id"),
            (&[tasks, ("ajoin", "fork"), (&taken, &good)], "has less incoming sequence flows"),
            (&[tasks, ("ajoin", "bjoin"), (&taken, "flow_1")], "no sequence flow that leads to the gateway"),
        ];
        for (mapping, part) in cases {
            let output = migrate(&mut partition, instance, target, mapping);
            let is_other_kind = kind == "inclusiveGateway" && part.contains("less incoming");
            let part = if is_other_kind { "different type 'PARALLEL_GATEWAY'" } else { part };
            refused(&output, RejectionType::InvalidArgument, &[part]);
        }
        // The last task of the target takes the place of the first one.
        let other = flow_of(2);
        let output = migrate(&mut partition, instance, target, &[tasks, ("ajoin", "bjoin"), (&taken, &other)]);
        happened(
            &output,
            &[
                &format!("PROCESS_INSTANCE SEQUENCE_FLOW_DELETED SEQUENCE_FLOW {taken}"),
                &format!("PROCESS_INSTANCE SEQUENCE_FLOW_TAKEN SEQUENCE_FLOW {other}"),
            ],
        );
        partition.check();
        let output = complete(&mut partition, "a1");
        if kind == "inclusiveGateway" {
            happened(&output, &["JOB CREATED after work retries 3"]);
            complete(&mut partition, "after");
            check_nothing_is_left(&partition);
        } else {
            did_not_happen(&output, "ELEMENT_ACTIVATING");
            let modification = ProcessInstanceModificationValue {
                process_instance_key: instance,
                activate_instructions: vec![ModificationActivateInstruction {
                    element_id: "b0".into(),
                    ..Default::default()
                }],
                ..Default::default()
            };
            let intent = ProcessInstanceModificationIntent::Modify;
            let modification = Payload::ProcessInstanceModification(intent, Box::new(modification));
            accepted(&partition.submit(Key::NONE, modification));
            happened(&complete(&mut partition, "b0"), &["JOB CREATED after work retries 3"]);
            complete(&mut partition, "after");
            check_nothing_is_left(&partition);
        }
        partition.check();
    }
}

/// In the target nothing else can reach the gateway, so it does not wait any more.
#[test]
fn an_inclusive_gateway_begins_when_the_target_leads_nothing_else_to_it() {
    let source = fork("inclusiveGateway", "a", 2);
    let target = ProcessBuilder::new("p")
        .start("s")
        .exclusive_gateway("choice")
        .condition("=true")
        .service_task("a0", "work")
        .inclusive_gateway("join")
        .service_task("after", "work")
        .end("e")
        .move_to("choice")
        .default_flow()
        .manual_task("never")
        .connect_to("join")
        .move_to("choice")
        .condition("=false")
        .service_task("a1", "work")
        .end("f");
    let mut partition = Partition::new();
    deploy(&mut partition, &source);
    let instance = start(&mut partition, "p", "");
    let target = deploy(&mut partition, &target);
    complete(&mut partition, "a0");
    let taken = partition.records.iter().rev().find_map(|record| match &record.payload {
        Payload::ProcessInstance(ProcessInstanceIntent::SequenceFlowTaken, value) => Some(value.element_id.clone()),
        _ => None,
    });
    let mapping = [("a1", "a1"), ("ajoin", "join"), (&*taken.expect("a flow"), "flow_3")];
    let output = migrate(&mut partition, instance, target, &mapping);
    happened(&output, &["PROCESS_INSTANCE_MIGRATION MIGRATED", "JOB CREATED after work retries 3"]);
    partition.check();
}

#[test]
fn an_instance_with_work_under_way_is_refused() {
    let limits = Limits { steps_per_command_max: 2, ..Limits::default() };
    let mut partition = Partition::with_options(EngineOptions { limits: Some(limits), ..support::options() });
    let process = |id: &str| {
        ProcessBuilder::new("p").start("s").service_task("a", "work").manual_task("m").service_task(id, "work").end("e")
    };
    deploy(&mut partition, &process("b"));
    let instance = start(&mut partition, "p", "");
    let other = start(&mut partition, "p", "");
    let target = deploy(&mut partition, &process("c"));
    let job = partition.jobs["a"];
    partition.apply(vec![Command::new(job, Payload::Job(JobIntent::Complete, Default::default()))]);
    assert!(partition.engine.continuation().is_some(), "work waits");
    let submit = |partition: &mut Partition, instance| {
        let request = Some(Request { node: 0, number: 1_000 });
        partition.apply(vec![Command { request, ..Command::new(Key::NONE, plan(instance, target, &[("a", "a")])) }])
    };
    accepted(&submit(&mut partition, instance));
    let output = submit(&mut partition, other);
    refused(&output, RejectionType::InvalidState, &["a concurrent command was executed on the process instance"]);
    partition.check();
}

#[test]
fn an_instance_that_is_too_large_is_refused() {
    let limits = Limits { elements_per_operation_max: 3, ..Limits::default() };
    let mut partition = Partition::with_options(EngineOptions { limits: Some(limits), ..support::options() });
    let process = |id: &str| {
        ProcessBuilder::new("p").start("s").service_task(id, "work").multi_instance("=items", "item").end("e")
    };
    deploy(&mut partition, &process("a"));
    let instance = start(&mut partition, "p", "{\"items\":[1]}");
    let target = deploy(&mut partition, &process("b"));
    accepted(&migrate(&mut partition, instance, target, &[("a", "b")]));
    let instance = start(&mut partition, "p", "{\"items\":[1,2]}");
    let output = migrate(&mut partition, instance, target, &[("b", "b")]);
    refused(&output, RejectionType::InvalidArgument, &["more than 3 element instances"]);
    partition.check();
}

#[test]
fn instances_started_by_messages_keep_their_lock_or_give_it_up() {
    let started =
        |id: &str| ProcessBuilder::new(id).start_event("s", Event::Message(id, "")).service_task("t", "work").end("e");
    let mut partition = Partition::new();
    deploy(&mut partition, &started("p"));
    let other = deploy(&mut partition, &started("q"));
    let plain = deploy(&mut partition, &task("plain", "t"));
    publish(&mut partition, "p", "k");
    let first = partition.instance;
    did_not_happen(&publish(&mut partition, "p", "k"), "ELEMENT_ACTIVATING");
    publish(&mut partition, "q", "k");
    let second = partition.instance;
    let output = migrate(&mut partition, first, other, &[("t", "t")]);
    let parts = ["has an active instance triggered by a message start event with correlation key 'k'"];
    refused(&output, RejectionType::InvalidState, &parts);
    accepted(&migrate(&mut partition, second, plain, &[("t", "t")]));
    accepted(&migrate(&mut partition, first, other, &[("t", "t")]));
    did_not_happen(&publish(&mut partition, "q", "k"), "ELEMENT_ACTIVATING");
    happened(&publish(&mut partition, "p", "k"), &["PROCESS_INSTANCE ELEMENT_ACTIVATED PROCESS p"]);
    let third = partition.instance;
    for instance in [first, second, third] {
        partition.submit(instance, Payload::ProcessInstance(ProcessInstanceIntent::Cancel, Default::default()));
    }
    happened(&publish(&mut partition, "q", "k"), &["PROCESS_INSTANCE ELEMENT_ACTIVATED PROCESS q"]);
    partition.check();
}

#[test]
fn definitions_are_free_when_their_last_instance_went_on_with_another() {
    let mut partition = Partition::new();
    let source = deploy(&mut partition, &task("p", "a"));
    let target = deploy(&mut partition, &task("p", "b"));
    let old = ProcessInstanceCreationValue { version: 1, ..creation("p") };
    create(&mut partition, old);
    let instance = partition.instance;
    let delete = |partition: &mut Partition, definition| {
        let value = ResourceDeletionValue { resource_key: definition, tenant_id: TENANT.into() };
        partition.submit(Key::NONE, Payload::ResourceDeletion(ResourceDeletionIntent::Delete, Box::new(value)))
    };
    refused(&delete(&mut partition, source), RejectionType::InvalidState, &["still running instances"]);
    accepted(&migrate(&mut partition, instance, target, &[("a", "b")]));
    refused(&delete(&mut partition, target), RejectionType::InvalidState, &["still running instances"]);
    accepted(&delete(&mut partition, source));
    let output = migrate(&mut partition, instance, source, &[("b", "a")]);
    refused(&output, RejectionType::NotFound, &["no process definition found"]);
    complete(&mut partition, "a");
    accepted(&delete(&mut partition, target));
    partition.check();
}

/// The subscription where the message arrives learns of it, in order with everything else.
#[test]
fn subscriptions_on_other_partitions_are_migrated_too() {
    let process = |id: &str, event: &str, is_interrupting: bool| {
        let process = task(id, "a").boundary(event, "a", Event::Message("m", "=key"));
        let process = if is_interrupting { process } else { process.non_interrupting() };
        process.end("told").to_xml()
    };
    let mut cluster = Cluster::new(3);
    cluster.deploy(&process("p", "x", true));
    cluster.deploy(&process("q", "y", false));
    let target = cluster.events().filter_map(|record| match &record.payload {
        Payload::Process(ProcessIntent::Created, _) => Some(record.key),
        _ => None,
    });
    let target = target.max().expect("deployed");
    for key in ["a", "order-1", "order-42"] {
        let instance = cluster.create(2, "p", &format!("{{\"key\":\"{key}\"}}"));
        // The subscription may still be on its way.
        let reply = cluster.submit(2, Key::NONE, plan(instance, target, &[("a", "a"), ("x", "y")]));
        assert_eq!(reply.expect("an answer").rejection, None);
        cluster.settle();
    }
    assert_eq!(cluster.count("MESSAGE_SUBSCRIPTION", "MIGRATED"), 3);
    for key in ["a", "order-1", "order-42"] {
        for _ in 0..2 {
            cluster.publish(&Message::new("m", key)).expect("published");
            cluster.settle();
        }
    }
    assert_eq!(cluster.count("PROCESS_MESSAGE_SUBSCRIPTION", "CORRELATED"), 6, "they do not end with a message");
    let of_target = cluster.events().filter(|record| match &record.payload {
        Payload::MessageSubscription(MessageSubscriptionIntent::Correlated, value) => value.bpmn_process_id == "q",
        _ => false,
    });
    assert_eq!(of_target.count(), 6);
    cluster.check();
}
