//! `osmia topology`.

use std::fmt::{Debug, Write};

use clap::Args;
use gateway_interface::TopologyRequest;
use gateway_interface::partition::{PartitionBrokerHealth, PartitionBrokerRole};
use serde_json::{Value, json};

use super::action::Action;
use crate::client::{Client, Outcome};
use crate::output::Output;

#[derive(Debug, Args)]
pub(crate) struct Topology {}

impl Action for Topology {
    async fn carry_out(self, mut client: Client, output: &Output) -> Outcome {
        let topology = client.gateway.topology(client.request(TopologyRequest {})).await?.into_inner();
        let mut text = format!(
            "cluster {}: {} node(s), {} partition(s), {} replica(s) each, version {}",
            topology.cluster_id,
            topology.cluster_size,
            topology.partitions_count,
            topology.replication_factor,
            topology.gateway_version
        );
        let mut brokers = Vec::new();
        for broker in &topology.brokers {
            let _ = write!(
                text,
                "\nnode {} at {}:{}, version {}",
                broker.node_id, broker.host, broker.port, broker.version
            );
            let mut partitions = Vec::new();
            for partition in &broker.partitions {
                let role = name(PartitionBrokerRole::try_from(partition.role));
                let health = name(PartitionBrokerHealth::try_from(partition.health));
                let _ = write!(text, "\n  partition {}: {role}, {health}", partition.partition_id);
                partitions.push(json!({ "partitionId": partition.partition_id, "role": role, "health": health }));
            }
            brokers.push(json!({
                "nodeId": broker.node_id,
                "host": broker.host,
                "port": broker.port,
                "version": broker.version,
                "partitions": partitions,
            }));
        }
        let json = || {
            json!({
                "brokers": Value::Array(brokers),
                "clusterId": topology.cluster_id,
                "clusterSize": topology.cluster_size,
                "partitionsCount": topology.partitions_count,
                "replicationFactor": topology.replication_factor,
                "gatewayVersion": topology.gateway_version,
            })
        };
        Ok(output.say(text, json)?)
    }
}

/// A value of an enumeration in the words of a sentence.
fn name<T: Debug, E>(value: Result<T, E>) -> String {
    value.map_or_else(|_| "unknown".to_owned(), |value| format!("{value:?}").to_lowercase())
}
