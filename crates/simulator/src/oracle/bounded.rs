//! Bounded: when all instances have ended, nothing is left of them: no job, timer, subscription, variable, lock or entry
//! of an outbox. Otherwise a node that runs for a year would grow without end.

/// Tables that hold something when nothing is under way: what was deployed, how far other partitions are, and streams.
const STAYS: &[&str] = &[
    "processes",
    "latest_processes",
    "deleted_versions",
    "process_versions",
    "processes_by_deployment",
    "processes_by_version_tag",
    "message_start_subscriptions",
    "message_started_processes",
    "outbox_sequences",
    "inbox_sequences",
    "job_streams",
    "job_streams_by_type",
    "served_streams",
];

/// The rows of a state that should not be there any more.
pub fn left_over(rows: &[String]) -> Vec<&String> {
    let stays = |row: &&String| row.split(' ').next().is_some_and(|table| STAYS.contains(&table));
    rows.iter().filter(|row| !stays(row)).collect()
}
