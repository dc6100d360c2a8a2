//! The cluster as clients see it.

use broker::{ClusterView, Role};

/// The version whose interface this gateway speaks; clients and modelers compare major and minor.
pub(crate) const GATEWAY_VERSION: &str = protocol::BROKER_VERSION;

/// Shows the roles of all replicas in the metrics, with the numbers that dashboards know.
pub(crate) fn report(cluster: &ClusterView) {
    for node in &cluster.nodes {
        for partition in &node.partitions {
            let role = match partition.role {
                Role::Leader => 3.0,
                Role::Follower => 1.0,
                Role::Inactive => 0.0,
            };
            let labels = [("broker", node.node_id.to_string()), ("partition", partition.id.to_string())];
            metrics::gauge!("zeebe_gateway_topology_partition_roles", &labels).set(role);
        }
    }
}
