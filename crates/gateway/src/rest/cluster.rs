//! The cluster in JSON.

use broker::{ClusterView, Health, NodeView, PartitionView, Role};
use hyper::{Response, StatusCode};
use protocol::DEFAULT_TENANT;

use super::json::JsonObject;
use super::response::{ApiBody, empty};
use crate::options::MESSAGE_BYTES_MAX;
use crate::topology::GATEWAY_VERSION;

/// The engine refuses longer names of types and workers.
const NAME_BYTES_MAX: usize = 512;

pub(super) fn topology(cluster: &ClusterView) -> Vec<u8> {
    let mut json = JsonObject::new();
    json.objects("brokers", cluster.nodes.iter().map(broker));
    json.text("clusterId", &cluster.cluster_id).number("clusterSize", cluster.cluster_size);
    json.number("partitionsCount", cluster.partitions_count);
    json.number("replicationFactor", cluster.replication_factor).text("gatewayVersion", GATEWAY_VERSION);
    let change = cluster.last_completed_change.map_or_else(|| "-1".to_owned(), |change| change.to_string());
    json.text("lastCompletedChangeId", &change);
    json.finish()
}

fn broker(node: &NodeView) -> JsonObject {
    let mut json = JsonObject::new();
    json.number("nodeId", node.node_id).text("brokerId", &node.node_id.to_string());
    json.text("host", &node.host).number("port", node.port);
    json.objects("partitions", node.partitions.iter().map(partition)).text("version", &node.version);
    json
}

fn partition(partition: &PartitionView) -> JsonObject {
    let role = match partition.role {
        Role::Leader => "leader",
        Role::Follower => "follower",
        Role::Inactive => "inactive",
    };
    let health = match partition.health {
        Health::Healthy => "healthy",
        Health::Unhealthy => "unhealthy",
        Health::Dead | Health::LeftOut => "dead",
    };
    let mut json = JsonObject::new();
    json.number("partitionId", partition.id.0).text("role", role).text("health", health).text("state", "active");
    json
}

/// Whether anything can be done: at least one partition has a leader that is well.
pub(super) fn status(cluster: &ClusterView) -> Response<ApiBody> {
    let works = |partition: &PartitionView| partition.role == Role::Leader && partition.health == Health::Healthy;
    let mut partitions = cluster.nodes.iter().flat_map(|node| &node.partitions);
    empty(if partitions.any(works) { StatusCode::NO_CONTENT } else { StatusCode::SERVICE_UNAVAILABLE })
}

/// Nothing has to be bought.
pub(super) fn license() -> Vec<u8> {
    let mut json = JsonObject::new();
    json.flag("validLicense", true).text("licenseType", "Apache-2.0").flag("isCommercial", false).null("expiresAt");
    json.finish()
}

/// What there is, and the limits of what is counted and taken.
pub(super) fn configuration() -> Vec<u8> {
    let limit = |limit: usize| i64::try_from(limit).unwrap_or(i64::MAX);
    let mut metrics = JsonObject::new();
    metrics.flag("enabled", true).text("exportInterval", "PT1M").number("maxWorkerNameLength", limit(NAME_BYTES_MAX));
    metrics.number("maxJobTypeLength", limit(NAME_BYTES_MAX)).number("maxTenantIdLength", 256);
    // There is no limit.
    metrics.number("maxUniqueKeys", i32::MAX);
    let (mut components, mut deployment) = (JsonObject::new(), JsonObject::new());
    components.texts("active", &[]);
    deployment.flag("isMultiTenancyEnabled", false).number("maxRequestSize", limit(MESSAGE_BYTES_MAX));
    let (mut authentication, mut cloud) = (JsonObject::new(), JsonObject::new());
    authentication.flag("canLogout", false).flag("isLoginDelegated", false);
    cloud.null("stage");
    let mut json = JsonObject::new();
    json.object_or_null("jobMetrics", Some(metrics)).object_or_null("components", Some(components));
    json.object_or_null("deployment", Some(deployment)).object_or_null("authentication", Some(authentication));
    json.object_or_null("cloud", Some(cloud));
    json.finish()
}

/// Nobody has to say who they are, and everybody may do everything.
pub(super) fn authentication() -> Vec<u8> {
    let mut tenant = JsonObject::new();
    tenant.text("name", "Default").text("tenantId", DEFAULT_TENANT).null("description");
    let mut json = JsonObject::new();
    json.text("username", "anonymous").null("displayName").null("email").texts("authorizedComponents", &["*".into()]);
    json.objects("tenants", [tenant]).texts("groups", &[]).texts("roles", &[]).null("salesPlanType");
    json.object_or_null("c8Links", Some(JsonObject::new())).flag("canLogout", false);
    json.finish()
}

#[cfg(test)]
mod tests {
    use protocol::PartitionId;
    use serde_json::{Value, json};

    use super::*;

    fn cluster(partitions: &[(Role, Health)]) -> ClusterView {
        let view = |(index, (role, health)): (usize, &(Role, Health))| PartitionView {
            id: PartitionId(index as u16 + 1),
            role: *role,
            health: *health,
        };
        let node = NodeView {
            node_id: 0,
            host: "localhost".to_owned(),
            port: 26_500,
            version: "8.9.0".to_owned(),
            partitions: partitions.iter().enumerate().map(view).collect(),
        };
        ClusterView {
            nodes: vec![node],
            partitions_count: 2,
            replication_factor: 1,
            cluster_size: 1,
            cluster_id: "c".to_owned(),
            last_completed_change: None,
        }
    }

    #[test]
    fn the_topology_has_every_field_in_the_words_of_the_api() {
        let cluster = cluster(&[(Role::Leader, Health::Healthy), (Role::Inactive, Health::LeftOut)]);
        let found: Value = serde_json::from_slice(&topology(&cluster)).unwrap();
        let expected = json!({
            "brokers": [{
                "nodeId": 0, "brokerId": "0", "host": "localhost", "port": 26_500, "version": "8.9.0",
                "partitions": [
                    {"partitionId": 1, "role": "leader", "health": "healthy", "state": "active"},
                    {"partitionId": 2, "role": "inactive", "health": "dead", "state": "active"},
                ],
            }],
            "clusterId": "c", "clusterSize": 1, "partitionsCount": 2, "replicationFactor": 1,
            "gatewayVersion": GATEWAY_VERSION, "lastCompletedChangeId": "-1",
        });
        assert_eq!(found, expected);
    }

    #[test]
    fn one_leader_that_is_well_is_enough() {
        let code = |partitions: &[(Role, Health)]| status(&cluster(partitions)).status().as_u16();
        assert_eq!(code(&[(Role::Inactive, Health::Dead), (Role::Leader, Health::Healthy)]), 204);
        assert_eq!(code(&[(Role::Leader, Health::Unhealthy), (Role::Follower, Health::Healthy)]), 503);
        assert_eq!(code(&[]), 503);
    }
}
