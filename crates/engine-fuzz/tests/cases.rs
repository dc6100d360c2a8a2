//! A fixed number of seeds and the cases that are kept: nothing that the engine promises is broken.

use std::collections::BTreeSet;

use engine_fuzz::case::{self, Report};
use engine_fuzz::choices::bytes_of_seed;

const SEEDS: u64 = 200;

fn passes(name: &str, bytes: &[u8]) -> Report {
    let report = case::run(bytes);
    if let Some(failure) = &report.failure {
        panic!("{name} fails\n{}=> {}", report.story, failure.0);
    }
    report
}

/// The seeds are worth something only if much of what they try happens.
#[test]
fn seeds_pass_and_do_much() {
    let mut done = BTreeSet::new();
    for seed in 1..=SEEDS {
        let report = passes(&format!("seed {seed}"), &bytes_of_seed(seed));
        done.extend(report.costs.into_iter().filter(|cost| cost.refusal.is_none()).map(|cost| cost.name));
    }
    let expected = [
        "DECISION_EVALUATION EVALUATE",
        "DEPLOYMENT CREATE",
        "GLOBAL_LISTENER CREATE",
        "GLOBAL_LISTENER UPDATE",
        "GLOBAL_LISTENER DELETE",
        "GLOBAL_LISTENER_BATCH CONFIGURE",
        "INCIDENT RESOLVE",
        "JOB COMPLETE",
        "JOB FAIL",
        "JOB THROW_ERROR",
        "JOB_BATCH ACTIVATE",
        "JOB_STREAM ADD",
        "MESSAGE PUBLISH",
        "PROCESS_INSTANCE CANCEL",
        "PROCESS_INSTANCE_CREATION CREATE",
        "PROCESS_INSTANCE_MIGRATION MIGRATE",
        "PROCESS_INSTANCE_MODIFICATION MODIFY",
        "RESOURCE_DELETION DELETE",
        "TIMER TRIGGER",
        "VARIABLE_DOCUMENT UPDATE",
        "WORK CONTINUE",
    ];
    let missing: Vec<_> = expected.into_iter().filter(|name| !done.contains(*name)).collect();
    assert!(missing.is_empty(), "no seed does any of {missing:?}; done was {done:?}");
}

#[test]
fn the_kept_cases_pass() {
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    for entry in std::fs::read_dir(directory).expect("the kept cases are there") {
        let file = entry.expect("readable").path();
        passes(&file.display().to_string(), &std::fs::read(&file).expect("readable"));
    }
}

/// A case that fails is only found again if it is the same each time.
#[test]
fn a_case_is_the_same_each_time() {
    for seed in 1..=5 {
        let of = |report: Report| -> Vec<_> {
            report.costs.into_iter().map(|cost| (cost.name, cost.records, cost.spent)).collect()
        };
        let bytes = bytes_of_seed(seed);
        assert_eq!(of(passes("once", &bytes)), of(passes("twice", &bytes)), "seed {seed}");
    }
}
