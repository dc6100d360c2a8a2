//! Long loops and deep calls: neither holds the partition or its stack, and nothing of them is left.

use crate::support::{self, Partition};
use engine::{EngineOptions, Limits};
use model_builder::{Event, ProcessBuilder};
use protocol::*;

fn partition(limits: Limits) -> Partition {
    Partition::with_options(EngineOptions { limits: Some(limits), ..support::options() })
}

fn deploy(partition: &mut Partition, process: &ProcessBuilder) {
    let output = partition.deploy("process.bpmn", process.to_xml().as_bytes());
    assert_eq!(output.replies[0].rejection, None);
}

fn last_value(partition: &Partition, name: &str) -> Text {
    let mut values = partition.records.iter().filter_map(|record| match &record.payload {
        Payload::Variable(_, variable) if variable.name == *name => Some(variable.value.clone()),
        _ => None,
    });
    values.next_back().expect("the variable was written")
}

fn count(partition: &Partition, wanted: impl Fn(&Payload) -> bool) -> usize {
    partition.records.iter().filter(|record| wanted(&record.payload)).count()
}

#[test]
fn a_long_loop_begins_in_slices_and_writes_its_results_once() {
    const ITEMS: usize = 5_000;
    let mut partition = partition(Limits::default());
    deploy(
        &mut partition,
        &ProcessBuilder::new("loop")
            .start("start")
            .manual_task("each")
            .multi_instance("=for i in 1..5000 return i", "item")
            .output_collection("results", "=item * 2")
            .end("end"),
    );
    partition.create("loop", "{}", ProcessInstanceCreationIntent::Create);
    let sizes = partition.records.chunk_by(|left, right| left.source_position == right.source_position);
    let largest = sizes.map(<[Record]>::len).max().expect("there are records");
    assert!(largest < 10_000, "one command wrote {largest} records");
    let expected: Vec<String> = (1..=ITEMS).map(|item| (item * 2).to_string()).collect();
    assert_eq!(last_value(&partition, "results").as_str(), format!("[{}]", expected.join(",")));
    let writes =
        count(&partition, |payload| matches!(payload, Payload::Variable(_, value) if value.name == *"results"));
    assert_eq!(writes, 2, "the list of nulls in the loop, the results in the process");
    let ended = |payload: &Payload| {
        matches!(payload, Payload::ProcessInstance(ProcessInstanceIntent::ElementCompleted, value)
            if value.bpmn_element_type == BpmnElementType::Process)
    };
    assert_eq!(count(&partition, ended), 1);
    partition.check();
}

#[test]
fn a_loop_that_ends_early_leaves_no_inner_instance_behind() {
    let mut partition = partition(Limits::default());
    deploy(
        &mut partition,
        &ProcessBuilder::new("loop")
            .start("start")
            .manual_task("each")
            .multi_instance("=[1,2,3,4]", "item")
            .completion_condition("=numberOfCompletedInstances >= 1")
            .end("end"),
    );
    partition.create("loop", "{}", ProcessInstanceCreationIntent::Create);
    let count = |wanted: &[ProcessInstanceIntent]| {
        count(&partition, |payload| matches!(payload, Payload::ProcessInstance(intent, _) if wanted.contains(intent)))
    };
    let ended = count(&[ProcessInstanceIntent::ElementCompleted, ProcessInstanceIntent::ElementTerminated]);
    assert_eq!(count(&[ProcessInstanceIntent::ElementActivating]), ended, "everything that began has ended");
    partition.check();
}

#[test]
fn a_short_loop_shows_every_result_at_once() {
    let mut partition = partition(Limits::default());
    deploy(
        &mut partition,
        &ProcessBuilder::new("loop")
            .start("start")
            .service_task("each", "work")
            .sequential_multi_instance("=[1,2,3]", "item")
            .output_collection("results", "=item * 2")
            .end("end"),
    );
    partition.create("loop", "{}", ProcessInstanceCreationIntent::Create);
    for expected in ["[2,null,null]", "[2,4,null]", "[2,4,6]"] {
        let key = partition.jobs["each"];
        partition.job(key, JobIntent::Complete, JobValue::default());
        assert_eq!(last_value(&partition, "results").as_str(), expected);
    }
    partition.check();
}

/// Calls itself as long as `depth` is not reached.
fn recursive() -> ProcessBuilder {
    ProcessBuilder::new("recursive")
        .start("start")
        .service_task("wait", "work")
        .exclusive_gateway("again")
        .condition("=depth > 1")
        .call_activity("call", "recursive")
        .input("=depth - 1", "depth")
        .end("called")
        .move_to("again")
        .default_flow()
        .end("end")
}

fn run_down(partition: &mut Partition) {
    while let Some(key) = partition.jobs.remove("wait") {
        partition.job(key, JobIntent::Complete, JobValue::default());
    }
}

#[test]
fn calls_go_down_to_the_limit_and_end_without_recursion() {
    let mut partition = partition(Limits::default());
    deploy(&mut partition, &recursive());
    partition.create("recursive", "{\"depth\":2000}", ProcessInstanceCreationIntent::Create);
    let root = partition.instance;
    run_down(&mut partition);
    let incident = partition.records.iter().find_map(|record| match &record.payload {
        Payload::Incident(IncidentIntent::Created, incident) => Some(incident.clone()),
        _ => None,
    });
    let incident = incident.expect("the deepest call is an incident");
    assert_eq!(incident.error_type, ErrorType::CalledElementError);
    assert!(incident.error_message.contains("1000"), "{}", incident.error_message);
    let begun = |payload: &Payload| {
        matches!(payload, Payload::ProcessInstance(ProcessInstanceIntent::ElementActivating, value)
            if value.bpmn_element_type == BpmnElementType::Process)
    };
    assert_eq!(count(&partition, begun), 1_000);

    let refused = partition.submit(
        incident.process_instance_key,
        Payload::ProcessInstance(ProcessInstanceIntent::Cancel, Default::default()),
    );
    let rejection = refused.replies[0].rejection.clone().expect("a called instance is not cancelled alone");
    assert_eq!(rejection.rejection_type, RejectionType::InvalidState);
    assert!(rejection.reason.contains(&root.to_string()), "{}", rejection.reason);

    partition.submit(root, Payload::ProcessInstance(ProcessInstanceIntent::Cancel, Default::default()));
    let ended = |payload: &Payload| {
        matches!(payload, Payload::ProcessInstance(ProcessInstanceIntent::ElementTerminated, value)
            if value.bpmn_element_type == BpmnElementType::Process)
    };
    assert_eq!(count(&partition, ended), 1_000);
    assert_eq!(partition.engine.statistics().incidents, 0);
    partition.check();
}

#[test]
fn calls_return_all_the_way_up() {
    let mut partition = partition(Limits::default());
    deploy(&mut partition, &recursive());
    partition.create("recursive", "{\"depth\":300}", ProcessInstanceCreationIntent::Create);
    run_down(&mut partition);
    let ended = |payload: &Payload| {
        matches!(payload, Payload::ProcessInstance(ProcessInstanceIntent::ElementCompleted, value)
            if value.bpmn_element_type == BpmnElementType::Process)
    };
    assert_eq!(count(&partition, ended), 300);
    partition.check();
}

/// The items are evaluated again after an incident of what waits for the loop; by then there may be fewer.
#[test]
fn no_items_are_left_when_there_are_none_after_an_incident() {
    let mut partition = partition(Limits::default());
    let process =
        ProcessBuilder::new("loop").start("start").service_task("each", "work").multi_instance("=items", "item");
    let process = process.end("end").boundary("late", "each", Event::Duration("=delay")).end("late-end");
    deploy(&mut partition, &process);
    partition.create("loop", "{\"items\":[1,2,3]}", ProcessInstanceCreationIntent::Create);
    let value = VariableDocumentValue {
        scope_key: partition.instance,
        update_semantics: VariableDocumentUpdateSemantics::Propagate,
        variables: "{\"items\":[],\"delay\":\"PT1H\"}".into(),
        tenant_id: support::TENANT.into(),
    };
    partition.submit(Key::NONE, Payload::VariableDocument(VariableDocumentIntent::Update, Box::new(value)));
    let incident = partition.incidents["each"];
    partition.submit(incident, Payload::Incident(IncidentIntent::Resolve, Box::default()));
    let ended = |payload: &Payload| {
        matches!(payload, Payload::ProcessInstance(ProcessInstanceIntent::ElementCompleted, value)
            if value.bpmn_element_type == BpmnElementType::Process)
    };
    assert_eq!(count(&partition, ended), 1);
    let mut dump = Vec::new();
    partition.engine.dump(&mut dump).expect("readable");
    assert!(!String::from_utf8_lossy(&dump).contains("loop_items"), "no item is left");
    partition.check();
}

/// A loop over `items` items that collects the text `document` for each.
fn collecting(items: usize) -> ProcessBuilder {
    ProcessBuilder::new("loop")
        .start("start")
        .manual_task("each")
        .multi_instance(&format!("=for i in 1..{items} return i"), "item")
        .output_collection("results", "=document + \"\"")
        .end("end")
}

fn incidents(partition: &Partition) -> Vec<&str> {
    let incidents = partition.records.iter().filter_map(|record| match &record.payload {
        Payload::Incident(IncidentIntent::Created, incident) => Some(incident.error_message.as_str()),
        _ => None,
    });
    incidents.collect()
}

/// Bytes of all values that a variable had.
fn written_bytes(partition: &Partition, name: &str) -> usize {
    let values = partition.records.iter().filter_map(|record| match &record.payload {
        Payload::Variable(_, variable) if variable.name == *name => Some(variable.value.len()),
        _ => None,
    });
    values.sum()
}

#[test]
fn large_results_are_written_once_also_in_a_short_loop() {
    let document = "x".repeat(1_000);
    for items in [100, 800] {
        let mut partition = partition(Limits::default());
        deploy(&mut partition, &collecting(items));
        let variables = format!("{{\"document\":\"{document}\"}}");
        partition.create("loop", &variables, ProcessInstanceCreationIntent::Create);
        let expected = vec![format!("\"{document}\""); items].join(",");
        assert_eq!(last_value(&partition, "results").as_str(), format!("[{expected}]"));
        let updates = 16 * (16 << 10);
        let at_the_end = 2 * (expected.len() + 2);
        let written = written_bytes(&partition, "results");
        assert!(written <= updates + at_the_end, "{written} bytes were written for {items} results");
        partition.check();
    }
}

#[test]
fn results_that_are_too_large_together_are_an_incident_that_says_what_to_do() {
    let mut partition = partition(Limits { output_collection_bytes_max: 50_000, ..Limits::default() });
    deploy(&mut partition, &collecting(100));
    let variables = format!("{{\"document\":\"{}\"}}", "x".repeat(20_000));
    partition.create("loop", &variables, ProcessInstanceCreationIntent::Create);
    let incidents = incidents(&partition);
    assert_eq!(incidents.len(), 98, "two results fit");
    assert!(
        incidents[0]
            .starts_with("Expected the results of all instances of 'each' to have at most 50000 bytes together"),
        "{incidents:?}"
    );
    partition.check();
}

/// A value takes little memory when its parts are the same, and its text takes all the more.
#[test]
fn the_text_of_a_result_is_charged_before_it_is_made() {
    let limits = Limits { evaluation_bytes_built_per_command_max: 1 << 20, ..Limits::default() };
    let mut partition = partition(limits);
    let row = |of: &str| format!("[{}]", vec![of; 50].join(","));
    let element = format!("={{a: {}, b: {}, c: {}}}.c", row("\"text\""), row("a"), row("b"));
    deploy(
        &mut partition,
        &ProcessBuilder::new("loop")
            .start("start")
            .manual_task("each")
            .multi_instance("=[1]", "item")
            .output_collection("results", &element)
            .end("end"),
    );
    partition.create("loop", "{}", ProcessInstanceCreationIntent::Create);
    let incidents = incidents(&partition);
    assert_eq!(incidents.len(), 1);
    assert!(incidents[0].starts_with("Failed to write the output collection 'results': "), "{incidents:?}");
    partition.check();
}

#[test]
fn a_result_that_is_too_large_alone_is_an_incident_that_says_what_to_do() {
    let mut partition = partition(Limits { output_collection_bytes_max: 10_000, ..Limits::default() });
    deploy(&mut partition, &collecting(1));
    let variables = format!("{{\"document\":\"{}\"}}", "x".repeat(20_000));
    partition.create("loop", &variables, ProcessInstanceCreationIntent::Create);
    let expected = "Expected the results of all instances of 'each' to have at most 10000 bytes together, but this one alone has \
                    more. Let the output element give less, such as the id of what is stored elsewhere.";
    assert_eq!(incidents(&partition), [expected]);
    partition.check();
}
