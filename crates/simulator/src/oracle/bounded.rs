//! Bounded: when all instances have ended, nothing is left of them: no job, timer, subscription, variable, lock or entry
//! of an outbox; and the log holds nothing that a checkpoint made unnecessary. Otherwise a node that runs for a year would grow
//! without end.

use std::collections::BTreeMap;

use protocol::PartitionId;
use replication::{GroupStatus, NodeId};

/// Tables that hold something when nothing is under way: what was deployed, the present global listeners, how far other partitions
/// are, and streams.
const STAYS: &[&str] = &[
    "processes",
    "latest_processes",
    "deleted_versions",
    "process_versions",
    "processes_by_deployment",
    "processes_by_version_tag",
    "decision_requirements",
    "latest_decision_requirements",
    "decision_requirements_versions",
    "decisions",
    "latest_decisions",
    "decision_versions",
    "decisions_by_requirements",
    "decisions_by_deployment",
    "message_start_subscriptions",
    "message_started_processes",
    "signal_receivers",
    "conditional_start_events",
    "global_listeners",
    "outbox_sequences",
    "inbox_sequences",
    "cluster",
    "node_starts",
    "job_streams",
    "job_streams_by_type",
    "served_streams",
    "pushed_jobs",
    "polled_jobs",
];

/// What each node's log does not need any more, by its checkpoints since it started.
pub struct Compacted {
    up_to: BTreeMap<(NodeId, PartitionId), u64>,
    keeps_entries: bool,
}

impl Compacted {
    /// Of nodes whose logs keep entries for members that lack them, or do not.
    pub fn new(keeps_entries: bool) -> Self {
        Compacted { up_to: BTreeMap::new(), keeps_entries }
    }

    /// A node starts: it compacts its log at the next checkpoint.
    pub fn started(&mut self, node: NodeId, partition: PartitionId) {
        self.up_to.remove(&(node, partition));
    }

    /// A checkpoint is on the disk.
    pub fn checkpointed(&mut self, node: NodeId, partition: PartitionId, applied: u64) {
        self.up_to.insert((node, partition), applied);
    }

    /// Whether the log of a node holds nothing that its state holds, as it must when all members have everything.
    pub fn is_compacted(&self, node: NodeId, partition: PartitionId, status: &GroupStatus) -> bool {
        self.up_to.get(&(node, partition)).is_none_or(|up_to| status.first_index > *up_to)
    }

    /// A node has made a round and written its log.
    pub fn check(&self, node: NodeId, partition: PartitionId, status: &GroupStatus) {
        if self.keeps_entries && status.membership.voters.len() > 1 {
            return;
        }
        let Some(up_to) = self.up_to.get(&(node, partition)) else { return };
        let first = status.first_index;
        assert!(first > *up_to, "node {node} keeps the log of {partition} from {first}, with a checkpoint at {up_to}");
    }
}

/// Files of the log that there may be beside those with what is needed: two sequences, the room below which nothing is given
/// back, files that wait to be used again, and what was moved and not needed any more before a crash: the log counts that
/// anew after its start, so it goes with the next entries that are moved.
const LOG_FILES_MAX: u64 = 48;

/// The log of a node has given back the space of what it does not need.
pub fn check_log_bytes(node: NodeId, files: &std::path::Path, file_bytes: u64, needed_bytes: u64) {
    let entries = std::fs::read_dir(files).expect("the scratch directory is readable");
    let mut sizes: Vec<_> = entries
        .filter_map(|entry| entry.ok().and_then(|entry| Some((entry.file_name(), entry.metadata().ok()?.len()))))
        .collect();
    sizes.sort();
    let bytes: u64 = sizes.iter().map(|(_, bytes)| bytes).sum();
    // What is needed may be moved, and a file goes only as a whole.
    let limit = LOG_FILES_MAX * file_bytes + 3 * needed_bytes;
    assert!(
        bytes <= limit,
        "the log of node {node} has {bytes} bytes, more than {limit}, and {needed_bytes} are needed: {sizes:?}"
    );
}

/// The rows of a state that should not be there any more.
pub fn left_over(rows: &[String]) -> Vec<&String> {
    let stays = |row: &&String| {
        let table = row.split(' ').next().unwrap_or_default();
        // A start event of a process waits as long as its version is the newest.
        let is_of_start = table == "signal_subscriptions" && row.contains("catch_event_instance_key: Key(-1)")
            || table == "conditional_subscriptions" && row.contains("element_instance_key: Key(-1)");
        is_of_start || STAYS.contains(&table)
    };
    rows.iter().filter(|row| !stays(row)).collect()
}
