//! A file that somebody deploys: refused with a report of bounded length, or compiled to a sound model.
#![no_main]

#[path = "../../crates/bpmn/tests/soundness/mod.rs"]
mod soundness;

use libfuzzer_sys::fuzz_target;
use bpmn::{MAXIMUM_REPORT_BYTES, parse, parse_deployed, render_reports};

fuzz_target!(|content: &[u8]| {
    let deployed = parse_deployed("fuzzed.bpmn", content);
    deployed.iter().flatten().for_each(soundness::check);
    match parse("fuzzed.bpmn", content) {
        Ok(processes) => {
            assert!(!processes.is_empty(), "an accepted file has a process");
            processes.iter().for_each(soundness::check);
            assert!(deployed.is_ok(), "what may be deployed is read again");
        }
        Err(report) => {
            assert!(!report.problems.is_empty(), "a refused file has a problem");
            assert!(render_reports(&[("fuzzed.bpmn", &report)]).len() <= MAXIMUM_REPORT_BYTES);
        }
    }
});
