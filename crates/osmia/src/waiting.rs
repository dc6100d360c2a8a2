//! What a node of a cluster says while it waits for the others.

use std::time::Duration;

use broker::ClusterView;

use crate::cluster::status::leader_of;
use crate::configuration::ClusterSettings;

/// A start in which nothing is wrong takes less.
pub(crate) const USUAL: Duration = Duration::from_secs(3);

/// Says each thing once, until it changes.
pub(crate) struct Waiting {
    cluster: ClusterSettings,
    said: Option<(Vec<u32>, Vec<u16>)>,
}

impl Waiting {
    pub(crate) fn new(cluster: ClusterSettings) -> Self {
        Waiting { cluster, said: None }
    }

    /// What is to be said of a node that has waited for so long and sees the cluster like this.
    pub(crate) fn sentence(&mut self, view: &ClusterView, waited: Duration) -> Option<String> {
        let is_heard = |number: &u32| view.nodes.iter().any(|node| node.node_id == *number);
        let away: Vec<u32> = self.cluster.members.keys().filter(|number| !is_heard(number)).copied().collect();
        let leaderless: Vec<u16> =
            (1..=view.partitions_count).filter(|partition| leader_of(view, *partition).is_none()).collect();
        let state = (away, leaderless);
        if waited < USUAL || self.said.as_ref() == Some(&state) {
            return None;
        }
        let (away, leaderless) = self.said.insert(state);
        let led = match leaderless.as_slice() {
            [] => String::new(),
            [one] => format!("; partition {one} has no leader"),
            several => format!("; {} partitions have no leader", several.len()),
        };
        if away.is_empty() {
            return Some(format!("this node is not ready yet, though all other nodes have answered{led}"));
        }
        let address = |number: &u32| format!("node {number} at {}", self.cluster.members[number]);
        let away: Vec<_> = away.iter().map(address).collect();
        Some(format!(
            "this node is not ready yet: it waits for {}, which did not answer{led}. Do they run, with the same list of members, \
             and does the network let their ports through?",
            away.join(" and ")
        ))
    }
}

#[cfg(test)]
mod tests {
    use broker::{Health, NodeView, PartitionView, Role};
    use protocol::PartitionId;

    use super::*;
    use crate::configuration::MemberAddress;

    fn view(nodes: &[u32], leader: Option<u32>) -> ClusterView {
        let role = |node| if leader == Some(node) { Role::Leader } else { Role::Follower };
        let node = |&node_id: &u32| NodeView {
            node_id,
            host: "h".to_owned(),
            port: 1,
            version: "8.8.0".to_owned(),
            partitions: vec![PartitionView { id: PartitionId(1), role: role(node_id), health: Health::Healthy }],
        };
        ClusterView {
            nodes: nodes.iter().map(node).collect(),
            partitions_count: 1,
            replication_factor: 3,
            cluster_size: 3,
            cluster_id: String::new(),
            last_completed_change: None,
        }
    }

    #[test]
    fn who_is_waited_for_is_said_once_and_again_when_it_changes() {
        let member = |number: u32| (number, MemberAddress { host: format!("n{number}"), port: 26_502 });
        let members = (0..3).map(member).collect();
        let mut waiting = Waiting::new(ClusterSettings { node_id: 0, host: "0.0.0.0".to_owned(), members });
        assert_eq!(waiting.sentence(&view(&[0], None), Duration::from_secs(1)), None, "that is usual");
        let first = waiting.sentence(&view(&[0], None), USUAL).expect("it is time");
        assert!(first.contains("node 1 at n1:26502 and node 2 at n2:26502, which did not answer"), "{first}");
        assert!(first.contains("partition 1 has no leader"), "{first}");
        assert_eq!(waiting.sentence(&view(&[0], None), USUAL * 100), None);
        let second = waiting.sentence(&view(&[0, 2], None), USUAL * 101).expect("one came");
        assert!(second.contains("node 1 at n1:26502, which") && !second.contains("node 2"), "{second}");
        let third = waiting.sentence(&view(&[0, 1, 2], Some(1)), USUAL * 102).expect("all came");
        assert!(third.contains("all other nodes have answered"), "{third}");
    }
}
