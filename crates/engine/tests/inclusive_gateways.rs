//! Joining inclusive gateways: what they wait for, and how much is looked at to find that out.

use crate::support::{self, Partition};
use engine::{EngineOptions, Limits};
use model_builder::ProcessBuilder;
use protocol::*;

/// Looked-at entries after which a command leaves the rest of its steps to the next one.
const READS_PER_COMMAND: u64 = 200;

/// The commands that an instance takes until it waits at `after`, when only what is looked at limits them.
fn commands_of(process: &ProcessBuilder, jobs: &[&str]) -> usize {
    let limits = Limits {
        steps_per_command_max: 1_000_000,
        records_per_command: 1_000_000,
        evaluation_steps_per_command: READS_PER_COMMAND,
        work_entries_max: 1_000_000,
        ..Limits::default()
    };
    let mut partition = Partition::with_options(EngineOptions { limits: Some(limits), ..support::options() });
    let output = partition.deploy("process.bpmn", process.to_xml().as_bytes());
    assert_eq!(output.replies[0].rejection, None);
    partition.create("process", "{}", ProcessInstanceCreationIntent::Create);
    for job in jobs {
        assert!(!partition.elements.contains_key("after"), "the gateway waits for '{job}'");
        let key = partition.jobs[*job];
        partition.job(key, JobIntent::Complete, JobValue::default());
    }
    assert!(partition.elements.contains_key("after"), "nothing more can arrive");
    partition.check();
    let is_continued = |record: &&Record| matches!(record.payload, Payload::Work(WorkIntent::Dequeued, _));
    partition.records.iter().filter(is_continued).count()
}

/// So many branches between a parallel fork and an inclusive join, and one with a job.
fn branches(count: usize, other: impl Fn(ProcessBuilder, usize) -> ProcessBuilder) -> ProcessBuilder {
    let builder = ProcessBuilder::new("process").start("start").parallel_gateway("fork");
    let mut builder = builder.service_task("last", "work").inclusive_gateway("join").manual_task("after").end("end");
    for number in 0..count {
        builder = builder.move_to("fork").manual_task(&format!("manual-{number}")).connect_to("join");
        builder = other(builder.move_to("fork"), number);
    }
    builder
}

fn check_linear(shape: impl Fn(usize) -> ProcessBuilder) {
    let [small, large] = [100, 400].map(|count| commands_of(&shape(count), &["last"]));
    assert!(small > 0, "what is looked at counts");
    assert!(large <= small * 6, "four times the branches took {large} commands instead of {small}");
}

#[test]
fn a_join_looks_at_its_branches_a_few_times_only() {
    check_linear(|count| branches(count, |builder, _| builder.connect_to("join")));
}

#[test]
fn a_join_looks_at_what_leads_elsewhere_a_few_times_only() {
    // These begin first, wait, and lead nowhere.
    check_linear(|count| {
        branches(count, |builder, number| {
            builder.service_task(&format!("elsewhere-{number}"), "work").end(&format!("end-{number}"))
        })
    });
}

#[test]
fn paths_that_end_elsewhere_have_a_join_look_a_few_times_only() {
    check_linear(|count| {
        branches(count, |builder, number| {
            builder.manual_task(&format!("elsewhere-{number}")).end(&format!("end-{number}"))
        })
    });
}

/// The last path that the join waits for ends in the gateway itself.
#[test]
fn a_join_looks_again_when_a_path_ends_in_a_gateway() {
    let gateways: [fn(ProcessBuilder, &str) -> ProcessBuilder; 3] =
        [ProcessBuilder::exclusive_gateway, ProcessBuilder::inclusive_gateway, ProcessBuilder::parallel_gateway];
    for gateway in gateways {
        let builder = branches(3, |builder, _| builder.connect_to("join"));
        let builder = builder.move_to("fork").service_task("leaving", "work").exclusive_gateway("leave");
        let builder = builder.condition("=false").connect_to("join").move_to("leave").default_flow();
        commands_of(&gateway(builder, "nowhere"), &["last", "leaving"]);
    }
}
