//! Where what belongs to other partitions goes: by what the state says of the cluster.
//!
//! Deployments go to the active partitions. Messages find those who wait for them by a count of their own, which stays when
//! partitions are added. Both come with CLUSTER BOOTSTRAP. Before a partition has that, as at the feature levels without it, it
//! routes by the number of partitions with which its data began, which never changes.

use protocol::{PartitionId, partition_for_correlation_key};

use crate::execution::Execution;

/// By how many partitions, from partition 1 on, messages are routed.
pub(crate) fn correlation_partition_count(execution: &Execution<'_>) -> u16 {
    execution.state.counters.correlation_partition_count.unwrap_or(execution.first_partition_count)
}

/// The partition where the messages of a correlation key arrive.
pub(crate) fn correlation_partition(execution: &Execution<'_>, correlation_key: &str) -> PartitionId {
    partition_for_correlation_key(correlation_key, correlation_partition_count(execution))
}

/// The active partitions but this one, ascending.
pub(crate) fn other_partitions(execution: &Execution<'_>) -> Vec<PartitionId> {
    let own = execution.state.partition;
    let mut partitions = match execution.state.tables.cluster.get(&()) {
        Some(row) => row.value.active_partitions.clone(),
        None => (1..=execution.first_partition_count).map(PartitionId).collect(),
    };
    partitions.retain(|partition| *partition != own);
    partitions
}

/// Whether there are others.
pub(crate) fn has_other_partitions(execution: &Execution<'_>) -> bool {
    match execution.state.tables.cluster.get(&()) {
        Some(row) => row.value.active_partitions.len() > 1,
        None => execution.first_partition_count > 1,
    }
}
