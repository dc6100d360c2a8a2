//! The engine does on every written scenario what the reference engine does, as far as it is not meant to differ. The
//! stored traces come from `make differential`; no reference engine is needed here.

use osmia_differential::compare::difference;
use osmia_differential::ours::Ours;
use osmia_differential::scenario::{self, Scenario, Trace, directory, read_all};
use osmia_differential::session::Session;

fn run(scenario: &Scenario) -> Trace {
    Session::run(&mut Ours::new(1), &scenario.files, &scenario.steps).expect("the engine goes on").trace
}

#[test]
fn every_scenario_does_what_the_reference_does() {
    let scenarios = read_all(&directory()).expect("readable scenarios");
    assert!(scenarios.len() >= 60, "there are scenarios");
    let mut failures = Vec::new();
    for scenario in &scenarios {
        let Some(stored) = scenario.stored_trace() else {
            failures.push(format!("{}: has no stored trace; UPDATE_EXPECTATIONS=1 make differential", scenario.name));
            continue;
        };
        if let Some((_, shown)) = difference(&stored, &run(scenario)) {
            failures.push(format!("{}: {shown}", scenario.name));
        }
    }
    assert!(
        failures.is_empty(),
        "{} of {} scenarios differ from the reference (-), ours is +:\n{}",
        failures.len(),
        scenarios.len(),
        failures.join("\n")
    );
}

#[test]
fn stored_traces_are_read_as_they_are_written() {
    let trace = vec![("a".to_owned(), vec!["x y".to_owned(), String::new()]), ("b".to_owned(), Vec::new())];
    assert_eq!(scenario::read_trace(&scenario::write_trace(&trace)), trace);
}
