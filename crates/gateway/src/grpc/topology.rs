//! The cluster in messages of gRPC.

use broker::{ClusterView, Health, NodeView, PartitionView, Role};
use gateway_interface::partition::{PartitionBrokerHealth, PartitionBrokerRole};
use gateway_interface::{BrokerInfo, Partition, TopologyResponse};

use crate::topology::GATEWAY_VERSION;

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
