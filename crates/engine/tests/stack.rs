//! Mappings, loops and gateways on values as deep as there may be, on a thread with a small stack.

mod support;

use engine::Output;
use model_builder::ProcessBuilder;
use protocol::*;
use support::Partition;

/// A third of what processing threads have. What is nested takes no more than 256 KiB of it; the rest is for the engine's own
/// frames, which are large as long as nothing is optimized.
const STACK_BYTES: usize = if cfg!(debug_assertions) { 640 << 10 } else { 256 << 10 };

/// The JSON text of contexts in each other under the name `a`, around a number.
fn nested(levels: usize) -> String {
    format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels))
}

/// Deploys on the thread of the test, whose stack is no part of it, and creates an instance on a small one.
fn create_on_a_small_stack(process: &ProcessBuilder, variables: String) -> (Partition, Output) {
    let mut partition = Partition::new();
    let output = partition.deploy("deep.bpmn", process.to_xml().as_bytes());
    assert_eq!(output.replies[0].rejection, None);
    let run = move || {
        let output = partition.create("deep", &variables, ProcessInstanceCreationIntent::Create);
        (partition, output)
    };
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(run).expect("a thread starts");
    thread.join().expect("the thread ends without a panic")
}

fn incidents(partition: &Partition) -> Vec<&str> {
    let incidents = partition.records.iter().filter_map(|record| match &record.payload {
        Payload::Incident(IncidentIntent::Created, incident) => Some(incident.error_message.as_str()),
        _ => None,
    });
    incidents.collect()
}

#[test]
fn deep_values_go_through_mappings_with_deep_targets() {
    let target = vec!["a"; bpmn::MAPPING_TARGET_NAMES_MAX].join(".");
    let process = ProcessBuilder::new("deep")
        .start("start")
        .script_task("merge", "=deep", "result")
        .output("=1", &target.replace("a.a", "a.b"))
        .output("=result = deep", "same")
        .service_task("task", "work")
        .input("=a", "copy")
        .input("=copy = a", "equal")
        .input("=2", &target)
        .end("end");
    let variables = format!("{{\"a\":{},\"deep\":{}}}", nested(998), nested(998));
    let (partition, _) = create_on_a_small_stack(&process, variables);
    assert_eq!(incidents(&partition), [] as [&str; 0]);
    assert!(partition.jobs.contains_key("task"));
    let values = partition.records.iter().filter(|record| {
        matches!(&record.payload, Payload::Variable(_, value) if ["same", "equal"].contains(&&*value.name) && value.value == *"true")
    });
    assert_eq!(values.count(), 2);
    partition.check();
}

#[test]
fn mappings_that_would_nest_values_deeper_are_incidents() {
    let target = vec!["a"; bpmn::MAPPING_TARGET_NAMES_MAX].join(".");
    let process = ProcessBuilder::new("deep").start("start").service_task("task", "work").input("=deep", &target);
    let (partition, _) = create_on_a_small_stack(&process.end("end"), format!("{{\"deep\":{}}}", nested(998)));
    let incidents = incidents(&partition);
    assert_eq!(incidents.len(), 1);
    assert!(incidents[0].starts_with("Expected the mappings to nest values at most 1000 levels deep"), "{incidents:?}");
    partition.check();
}

#[test]
fn deep_values_go_through_loops_and_gateways() {
    let process = ProcessBuilder::new("deep")
        .start("start")
        .manual_task("each")
        .multi_instance("=[deep.a, deep.a.a]", "item")
        .output_collection("results", "=item")
        .exclusive_gateway("gateway")
        .condition("=results[1] = deep.a")
        .service_task("task", "work")
        .end("end")
        .move_to("gateway")
        .default_flow()
        .end("other");
    let (partition, _) = create_on_a_small_stack(&process, format!("{{\"deep\":{}}}", nested(997)));
    assert_eq!(incidents(&partition), [] as [&str; 0]);
    assert!(partition.jobs.contains_key("task"));
    partition.check();
}
