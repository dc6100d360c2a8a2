//! Distributed: what partition 1 deploys, defines and deletes, it does for all partitions. Otherwise instances would begin with a version on
//! one partition that does not exist any more on another, and nobody could tell by where a request went.

/// The tables that say what is deployed and which global listeners there are, the same everywhere once nothing is under way.
const DEPLOYED: &[&str] = &[
    "processes",
    "latest_processes",
    "deleted_versions",
    "process_versions",
    "processes_by_deployment",
    "decision_requirements",
    "latest_decision_requirements",
    "decisions",
    "latest_decisions",
    "global_listeners",
];

/// The rows of a state that say what is deployed.
pub fn deployed(rows: &[String]) -> Vec<String> {
    let of = |row: &&String| row.split(' ').next().is_some_and(|table| DEPLOYED.contains(&table));
    rows.iter().filter(of).cloned().collect()
}
