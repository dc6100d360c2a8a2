//! The engine does on every written scenario what the reference engine does, as far as it is not meant to differ. The
//! stored traces come from `make differential`; no reference engine is needed here.

use differential::compare::difference;
use differential::ours::Ours;
use differential::scenario::{self, Scenario, Trace, directory, read_all};
use differential::session::Session;

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

/// Where deployments are refused on purpose. Everywhere else nothing would be tested by the steps that follow.
const WITH_REFUSED_DEPLOYMENTS: [&str; 10] = [
    "024-several-processes-of-a-file",
    "025-files-that-cannot-be-deployed",
    "062-bindings-of-calls",
    "096-timers-of-cron-expressions",
    "141-signal-events-that-cannot-be-deployed",
    "179-compensation-event-sub-process",
    "185-compensation-that-cannot-be-deployed",
    "198-listeners-that-cannot-be-deployed",
    "305-messages-without-a-key",
    "306-resources-of-the-same-name",
];

#[test]
fn the_models_of_a_scenario_can_be_deployed() {
    for scenario in read_all(&directory()).expect("readable scenarios") {
        let trace = scenario.stored_trace().unwrap_or_default();
        let is_refused = |(step, events): &&(String, Vec<String>)| {
            step.starts_with("deploy ") && events.iter().any(|event| event.starts_with("= refused"))
        };
        if let Some((step, _)) = trace.iter().find(is_refused) {
            let name = &scenario.name;
            assert!(WITH_REFUSED_DEPLOYMENTS.contains(&name.as_str()), "{name}: '{step}' is refused");
        }
    }
}

#[test]
fn stored_traces_are_read_as_they_are_written() {
    let trace = vec![("a".to_owned(), vec!["x y".to_owned(), String::new()]), ("b".to_owned(), Vec::new())];
    assert_eq!(scenario::read_trace(&scenario::write_trace(&trace)), trace);
}
