//! How a node is set up.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use engine::FeatureLevel;
use exporters::ExporterConfiguration;
use protocol::GlobalListenerValue;

use crate::disk::DiskOptions;
use crate::flow_control::FlowControlOptions;
use crate::streams::StreamWindow;
use crate::write_throttle::WriteThrottleOptions;

/// The cluster that a node belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterOptions {
    /// Where the node listens for the other nodes.
    pub listen: SocketAddr,
    /// All members by their numbers, this one included: `host:port` of their cluster ports.
    pub members: BTreeMap<u32, String>,
}

/// How a node is set up.
#[derive(Debug, Clone)]
pub struct NodeOptions {
    /// Where all data of the node is.
    pub data_directory: PathBuf,
    /// The number of this node, from 0.
    pub node_id: u32,
    /// The cluster that it belongs to; none for a node alone.
    pub cluster: Option<ClusterOptions>,
    /// Number of partitions, 1 to 4095; fixed by the data once there is some.
    pub partition_count: u16,
    /// Threads that apply commands; 0 for one per core, but never more than partitions.
    pub processing_threads: usize,
    /// Host and port at which clients reach the gateway, as reported in the topology.
    pub advertised_address: (String, u16),
    /// Consumers of the record stream.
    pub exporters: Vec<ExporterConfiguration>,
    /// The feature level at which the partitions of a new data directory begin: an older one only to be joined by older programs.
    pub first_feature_level: FeatureLevel,
    /// The newest feature level that the node knows: [`FeatureLevel::NEWEST`], but for tests of raising it.
    pub newest_feature_level: FeatureLevel,
    /// Bytes that the variables of a root process instance may have, of all that it called too; none for what the partitions have.
    pub root_variable_bytes_limit: Option<u64>,
    /// Whether no two living instances of a process that nobody called may have the same business id; none for what the
    /// partitions have.
    pub unique_business_ids: Option<bool>,
    /// The listeners of the user tasks of all processes that the configuration of the cluster defines; those that clients define
    /// are besides these.
    pub global_listeners: Arc<[GlobalListenerValue]>,
    /// Whether the clock may be changed.
    pub clock_control: bool,
    /// How much a partition takes at once.
    pub flow_control: FlowControlOptions,
    /// What is kept free on the disk.
    pub disk: DiskOptions,
    /// Size of an encoded command.
    pub command_limit_bytes: usize,
    /// Requests that wait for an answer, for each partition.
    pub waiting_requests_limit: usize,
    /// Bytes of commands that go into one entry of the log. A single larger command is an entry of its own.
    pub batch_limit_bytes: usize,
    /// Time between two checkpoints of a partition that changes.
    pub checkpoint_interval: Duration,
    /// Bytes of changes of all partitions that start a checkpoint before its time. Each partition has an equal share.
    pub checkpoint_bytes: usize,
    /// What job streams may hold undelivered.
    pub stream_window: StreamWindow,
    /// Time without acknowledgement after which commands to other partitions are sent again.
    pub outbox_resend_interval: Duration,
    /// Size of a segment file of the record stream; less on a small volume. The newest segments are read at the start, so
    /// they are not large.
    pub segment_bytes: u64,
    /// Bytes of records, for each partition, that an exporter may hold back before new work is refused.
    pub exporter_backlog_limit_bytes: u64,
    /// When an exporter's backlog slows new work down; never unless this is said.
    pub write_throttle: Option<WriteThrottleOptions>,
    /// An exporter that does not come back from a call for so long is reported.
    pub exporter_stuck_after: Duration,
}

impl Default for NodeOptions {
    fn default() -> Self {
        NodeOptions {
            data_directory: PathBuf::from("data"),
            node_id: 0,
            cluster: None,
            partition_count: 1,
            processing_threads: 0,
            advertised_address: ("127.0.0.1".to_owned(), 26_500),
            exporters: Vec::new(),
            first_feature_level: FeatureLevel::NEWEST,
            newest_feature_level: FeatureLevel::NEWEST,
            root_variable_bytes_limit: None,
            unique_business_ids: None,
            global_listeners: Arc::default(),
            clock_control: false,
            flow_control: FlowControlOptions::default(),
            disk: DiskOptions::default(),
            command_limit_bytes: 4 << 20,
            waiting_requests_limit: 100_000,
            batch_limit_bytes: 8 << 20,
            checkpoint_interval: Duration::from_secs(5),
            checkpoint_bytes: 64 << 20,
            stream_window: StreamWindow::default(),
            outbox_resend_interval: Duration::from_secs(1),
            segment_bytes: 16 << 20,
            exporter_backlog_limit_bytes: 4 << 30,
            write_throttle: None,
            exporter_stuck_after: Duration::from_secs(10),
        }
    }
}

impl NodeOptions {
    /// A partition's share of [`Self::checkpoint_bytes`]. It is never so small that a checkpoint would cost more than what it
    /// writes.
    pub(crate) fn checkpoint_bytes_of_each(&self) -> u64 {
        const SMALLEST_SHARE_BYTES: u64 = 4 << 20;
        let all = self.checkpoint_bytes as u64;
        (all / u64::from(self.partition_count.max(1))).max(all.min(SMALLEST_SHARE_BYTES))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_take_no_more_memory_because_there_are_more_partitions() {
        for partition_count in [1, 2, 3, 8, 10] {
            let options = NodeOptions { partition_count, ..NodeOptions::default() };
            let state_limit = options.flow_control.state_limit_of(partition_count);
            assert!(state_limit * u64::from(partition_count) <= options.flow_control.state_limit_bytes);
            assert!(options.checkpoint_bytes_of_each() * u64::from(partition_count) <= options.checkpoint_bytes as u64);
            assert!(
                options.checkpoint_bytes_of_each() * 2 < state_limit,
                "a checkpoint is under way before work is refused"
            );
        }
        let many = NodeOptions { partition_count: 1_000, ..NodeOptions::default() };
        assert_eq!(many.checkpoint_bytes_of_each(), 4 << 20);
        let small = NodeOptions { partition_count: 1_000, checkpoint_bytes: 1_000, ..NodeOptions::default() };
        assert_eq!(small.checkpoint_bytes_of_each(), 1_000, "what a test wants is not made larger");
    }
}
