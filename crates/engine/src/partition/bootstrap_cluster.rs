//! CLUSTER BOOTSTRAP: the cluster gets its id, and its partitions know by which of them is routed.
//!
//! It is given to the first partition, once, and goes to the others through the outbox, so that all know the same.

use protocol::{ClusterIntent, ClusterValue, Command, Key, PartitionId, Payload, Rejection};

use crate::distribution;
use crate::execution::{Execution, Outcome};
use crate::routing;

/// Bytes of the id of a cluster.
const CLUSTER_ID_BYTES_MAX: usize = 255;

pub(crate) fn bootstrap(execution: &mut Execution<'_>, command: &Command, value: &ClusterValue) -> Outcome {
    if let Some(row) = execution.state.tables.cluster.get(&()) {
        return Err(Rejection::already_exists(format!(
            "Expected to give the cluster the id '{}', but it has the id '{}', which never changes",
            value.cluster_id, row.value.cluster_id
        ))
        .into());
    }
    let own = execution.state.partition;
    if command.source.is_none() && own != PartitionId::DEPLOYMENT {
        return Err(Rejection::invalid_state(format!(
            "Expected the cluster to be bootstrapped on partition {}, which tells the others, but this is partition {own}",
            PartitionId::DEPLOYMENT
        ))
        .into());
    }
    check(value, own).map_err(Rejection::invalid_argument)?;
    let payload = |intent| Payload::Cluster(intent, Box::new(value.clone()));
    execution.emit(Key::NONE, payload(ClusterIntent::Bootstrapped));
    if command.source.is_none() {
        for partition in routing::other_partitions(execution) {
            let command = Command::of_system(Key::NONE, payload(ClusterIntent::Bootstrap));
            distribution::send_command(execution, partition, command);
        }
    }
    execution.reply(Key::NONE, payload(ClusterIntent::Bootstrapped));
    Ok(())
}

/// Looks that partitions could route by it.
fn check(value: &ClusterValue, own: PartitionId) -> Result<(), String> {
    let ClusterValue { cluster_id, active_partitions, correlation_partition_count } = value;
    let valid = PartitionId::DEPLOYMENT..=PartitionId::MAX;
    if !(1..=CLUSTER_ID_BYTES_MAX).contains(&cluster_id.len()) {
        return Err(format!(
            "Expected the id of a cluster to have 1 to {CLUSTER_ID_BYTES_MAX} bytes, but it has {}",
            cluster_id.len()
        ));
    }
    if !active_partitions.is_sorted_by(|one, next| one < next) || !active_partitions.iter().all(|id| valid.contains(id))
    {
        return Err(format!(
            "Expected the active partitions to be different ones of 1 to {} in ascending order, but they are {active_partitions:?}",
            PartitionId::MAX
        ));
    }
    // Messages go to the partitions from 1 to their count, so all of these must be there.
    let correlating = usize::from(*correlation_partition_count);
    let is_there = correlating
        .checked_sub(1)
        .and_then(|last| active_partitions.get(last))
        .is_some_and(|last| last.0 == *correlation_partition_count);
    if !is_there || !active_partitions.contains(&own) {
        return Err(format!(
            "Expected partition {own} and the partitions 1 to {correlation_partition_count}, by which messages are routed, to be \
             among the active partitions, but these are {active_partitions:?}"
        ));
    }
    Ok(())
}
