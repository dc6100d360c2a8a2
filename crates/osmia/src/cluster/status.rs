//! What a node says about its cluster on `GET /cluster` of its management port, and what `osmia cluster status` makes of it.

use std::time::Duration;

use broker::{ClusterView, Health, MemberReport, NodeView, PartitionView, Role};
use protocol::PartitionId;
use serde::{Deserialize, Serialize};

use crate::configuration::ClusterSettings;

/// The cluster as one node sees it. What that node does not know is left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ClusterStatus {
    pub cluster_id: String,
    pub partitions_count: u16,
    pub replication_factor: u16,
    /// The node that says this.
    pub answered_by: u32,
    /// All members in the order of their numbers, also those that were not heard from.
    pub nodes: Vec<NodeStatus>,
}

/// A member of the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NodeStatus {
    pub node_id: u32,
    /// Where its clients find it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Where the other nodes find it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_address: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Which data directory it has, in hexadecimal digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory_id: Option<String>,
    /// How often a node was started with that directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub starts: Option<u64>,
    /// Time since something came from it; not of the node that answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_contact_milliseconds: Option<u64>,
    /// Its replicas in the order of their partitions.
    pub partitions: Vec<ReplicaStatus>,
}

/// A replica of a partition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReplicaStatus {
    pub partition_id: u16,
    pub role: ReplicaRole,
    pub health: ReplicaHealth,
    /// Whether it votes. One that does not gets the data first, for example of a node that was replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_voter: Option<bool>,
    /// The node that leads the partition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leader: Option<u32>,
    /// The term of that leadership.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub term: Option<u64>,
    /// Entries of the leader's log that the replica does not have yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lag_entries: Option<u64>,
    /// Of a replica of the node that answers: time since that node heard from the leader's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_contact_milliseconds: Option<u64>,
}

/// What a replica does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum ReplicaRole {
    Leader,
    Follower,
    Inactive,
}

/// How a replica is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum ReplicaHealth {
    Healthy,
    Unhealthy,
    Dead,
    LeftOut,
}

impl ClusterStatus {
    /// What a node with this number sees. `members` are those of its settings.
    pub(crate) fn new(
        view: &ClusterView,
        own: u32,
        members: Option<&ClusterSettings>,
        reports: &[MemberReport],
    ) -> ClusterStatus {
        let leader = |partition: &PartitionView| leader_of(view, partition.id.0);
        let node = |node: &NodeView| NodeStatus {
            node_id: node.node_id,
            address: Some(with_port(&node.host, node.port)),
            version: Some(node.version.clone()),
            partitions: node.partitions.iter().map(|one| ReplicaStatus::new(one, leader(one))).collect(),
            ..NodeStatus::unheard(node.node_id)
        };
        let mut nodes: Vec<_> = view.nodes.iter().map(node).collect();
        for (number, member) in members.into_iter().flat_map(|cluster| &cluster.members) {
            let place = nodes.iter().position(|node| node.node_id == *number).unwrap_or_else(|| {
                nodes.push(NodeStatus::unheard(*number));
                nodes.len() - 1
            });
            nodes[place].cluster_address = Some(member.to_string());
        }
        nodes.sort_by_key(|node| node.node_id);
        nodes.iter_mut().for_each(|node| node.complete(own, reports));
        ClusterStatus {
            cluster_id: view.cluster_id.clone(),
            partitions_count: view.partitions_count,
            replication_factor: view.replication_factor,
            answered_by: own,
            nodes,
        }
    }

    /// The partitions for which no leader is known.
    pub(crate) fn leaderless(&self) -> Vec<u16> {
        let replicas = || self.nodes.iter().flat_map(|node| &node.partitions);
        let is_led = |partition: u16| {
            replicas().any(|replica| replica.partition_id == partition && replica.role == ReplicaRole::Leader)
        };
        (1..=self.partitions_count).filter(|partition| !is_led(*partition)).collect()
    }
}

/// The node that leads a partition, as far as is known.
pub(crate) fn leader_of(view: &ClusterView, partition: u16) -> Option<u32> {
    let leads = |node: &&NodeView| node.partitions.iter().any(|one| one.id.0 == partition && one.role == Role::Leader);
    view.nodes.iter().find(leads).map(|node| node.node_id)
}

impl NodeStatus {
    /// A member of which nothing is known but its number.
    fn unheard(node_id: u32) -> NodeStatus {
        NodeStatus {
            node_id,
            address: None,
            cluster_address: None,
            version: None,
            directory_id: None,
            starts: None,
            last_contact_milliseconds: None,
            partitions: Vec::new(),
        }
    }
}

impl NodeStatus {
    /// Adds what the reports say of the node and its replicas. `own` is the node that answers.
    fn complete(&mut self, own: u32, reports: &[MemberReport]) {
        let is_own = self.node_id == own;
        let Some(report) = reports.iter().find(|report| report.node == self.node_id) else { return };
        self.directory_id.clone_from(&report.directory);
        self.starts = report.starts;
        self.last_contact_milliseconds = report.last_contact.map(milliseconds);
        for replica in &mut self.partitions {
            replica.complete(report.node, is_own, reports);
        }
    }
}

/// Whole milliseconds.
fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl ReplicaStatus {
    /// Adds what the reports say of this replica of a node.
    pub(crate) fn complete(&mut self, node: u32, is_own: bool, reports: &[MemberReport]) {
        let report_of = |node| reports.iter().find(|report| report.node == node);
        let replica_of = |node| report_of(node)?.replicas.get(&PartitionId(self.partition_id)).copied();
        let Some(replica) = replica_of(node) else { return };
        self.term = Some(replica.term).filter(|term| *term > 0);
        self.is_voter = replica.is_voter;
        let Some(leader) = self.leader.filter(|leader| *leader != node) else { return };
        // Both said it a moment ago, not at the same time, so a replica may seem to be ahead.
        self.lag_entries = replica_of(leader).map(|leader| leader.last_index.saturating_sub(replica.last_index));
        if is_own {
            self.last_contact_milliseconds = report_of(leader).and_then(|leader| leader.last_contact).map(milliseconds);
        }
    }

    pub(crate) fn new(view: &PartitionView, leader: Option<u32>) -> ReplicaStatus {
        ReplicaStatus {
            partition_id: view.id.0,
            role: match view.role {
                Role::Leader => ReplicaRole::Leader,
                Role::Follower => ReplicaRole::Follower,
                Role::Inactive => ReplicaRole::Inactive,
            },
            health: match view.health {
                Health::Healthy => ReplicaHealth::Healthy,
                Health::Unhealthy => ReplicaHealth::Unhealthy,
                Health::Dead => ReplicaHealth::Dead,
                Health::LeftOut => ReplicaHealth::LeftOut,
            },
            is_voter: None,
            leader,
            term: None,
            lag_entries: None,
            last_contact_milliseconds: None,
        }
    }
}

/// Of version 6, an address has brackets before its port.
fn with_port(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use broker::ReplicaReport;
    use serde_json::json;

    use super::*;
    use crate::configuration::MemberAddress;

    fn settings() -> ClusterSettings {
        let member = |number: u32| (number, MemberAddress { host: format!("n{number}"), port: 26_502 });
        ClusterSettings {
            node_id: 0,
            host: "0.0.0.0".to_owned(),
            members: (0..3).map(member).collect::<BTreeMap<_, _>>(),
        }
    }

    fn view() -> ClusterView {
        let partition = |id, role| PartitionView { id: PartitionId(id), role, health: Health::Healthy };
        let node = |node_id, partitions: &[PartitionView]| NodeView {
            node_id,
            host: "::1".to_owned(),
            port: 26_500,
            version: "8.8.0".to_owned(),
            partitions: partitions.to_vec(),
        };
        let nodes = vec![
            node(1, &[partition(1, Role::Leader), partition(2, Role::Follower)]),
            node(0, &[partition(1, Role::Follower), partition(2, Role::Follower)]),
        ];
        ClusterView {
            nodes,
            partitions_count: 2,
            replication_factor: 3,
            cluster_size: 3,
            cluster_id: "c".to_owned(),
            last_completed_change: None,
        }
    }

    #[test]
    fn members_that_nothing_was_heard_from_are_shown_too() {
        let status = ClusterStatus::new(&view(), 0, Some(&settings()), &[]);
        let numbers: Vec<_> = status.nodes.iter().map(|node| node.node_id).collect();
        assert_eq!((numbers, status.leaderless()), (vec![0, 1, 2], vec![2]));
        let follower = json!({ "partitionId": 1, "role": "follower", "health": "healthy", "leader": 1 });
        let shown = serde_json::to_value(&status).expect("JSON");
        assert_eq!(shown["nodes"][0]["partitions"][0], follower);
        assert_eq!(shown["nodes"][1]["address"], "[::1]:26500");
        assert_eq!(shown["nodes"][2], json!({ "nodeId": 2, "clusterAddress": "n2:26502", "partitions": [] }));
        assert_eq!(serde_json::from_value::<ClusterStatus>(shown).expect("the same"), status);
    }

    #[test]
    fn reports_say_how_far_replicas_are_and_how_long_nodes_are_away() {
        let report = |node, last_index, milliseconds: Option<u64>| MemberReport {
            node,
            directory: Some(format!("d{node}")),
            starts: Some(3),
            last_contact: milliseconds.map(Duration::from_millis),
            replicas: BTreeMap::from([(
                PartitionId(1),
                ReplicaReport { term: 4, last_index, is_voter: Some(node != 0) },
            )]),
        };
        let mut away = report(2, 0, Some(90_000));
        away.replicas.clear();
        let reports = [report(0, 90, None), report(1, 100, Some(12)), away];
        let status = ClusterStatus::new(&view(), 0, Some(&settings()), &reports);
        let [follower, leader, away] = &status.nodes[..] else { panic!("there are three: {status:?}") };
        let replica = &follower.partitions[0];
        let expected = (Some(4), Some(10), Some(12));
        assert_eq!((replica.term, replica.lag_entries, replica.last_contact_milliseconds), expected);
        assert_eq!((&follower.directory_id, follower.last_contact_milliseconds), (&Some("d0".to_owned()), None));
        assert_eq!((replica.is_voter, leader.partitions[0].is_voter), (Some(false), Some(true)));
        let replica = &leader.partitions[0];
        assert_eq!((replica.term, replica.lag_entries, replica.last_contact_milliseconds), (Some(4), None, None));
        assert_eq!((leader.last_contact_milliseconds, leader.starts), (Some(12), Some(3)));
        assert_eq!((away.last_contact_milliseconds, away.partitions.len()), (Some(90_000), 0));
        let other = &follower.partitions[1];
        assert_eq!((other.leader, other.term, other.lag_entries), (None, None, None), "nothing was said of it");
    }

    #[test]
    fn a_node_alone_is_a_cluster_of_one() {
        let mut view = view();
        view.nodes.truncate(1);
        view.nodes[0].partitions[1].role = Role::Leader;
        let status = ClusterStatus::new(&view, 1, None, &[]);
        assert_eq!((status.nodes.len(), status.leaderless()), (1, vec![]));
        assert_eq!(status.nodes[0].cluster_address, None);
    }
}
