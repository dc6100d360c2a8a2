//! The cluster as clients see it.

use broker::{ClusterView, Health, NodeView, PartitionView, Role};
use gateway_interface::partition::{PartitionBrokerHealth, PartitionBrokerRole};
use gateway_interface::{BrokerInfo, Partition, TopologyResponse};

/// The version whose interface this gateway speaks; clients and modelers compare major and minor.
const GATEWAY_VERSION: &str = protocol::BROKER_VERSION;

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

pub(crate) fn topology(cluster: &ClusterView) -> TopologyResponse {
    TopologyResponse {
        brokers: cluster.nodes.iter().map(broker).collect(),
        cluster_size: cluster.cluster_size.into(),
        partitions_count: cluster.partitions_count.into(),
        replication_factor: cluster.replication_factor.into(),
        gateway_version: GATEWAY_VERSION.to_owned(),
        cluster_id: cluster.cluster_id.clone(),
    }
}

fn broker(node: &NodeView) -> BrokerInfo {
    BrokerInfo {
        node_id: i32::try_from(node.node_id).unwrap_or(i32::MAX),
        host: node.host.clone(),
        port: node.port.into(),
        partitions: node.partitions.iter().map(partition).collect(),
        version: node.version.clone(),
    }
}

fn partition(partition: &PartitionView) -> Partition {
    let role = match partition.role {
        Role::Leader => PartitionBrokerRole::Leader,
        Role::Follower => PartitionBrokerRole::Follower,
        Role::Inactive => PartitionBrokerRole::Inactive,
    };
    let health = match partition.health {
        Health::Healthy => PartitionBrokerHealth::Healthy,
        Health::Unhealthy => PartitionBrokerHealth::Unhealthy,
        Health::Dead | Health::LeftOut => PartitionBrokerHealth::Dead,
    };
    Partition { partition_id: partition.id.0.into(), role: role.into(), health: health.into() }
}
