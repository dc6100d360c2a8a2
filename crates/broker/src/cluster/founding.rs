//! How nodes become a cluster, driven by calls: messages and ticks go in, messages come out.
//!
//! The member with the lowest number founds. It asks all others what they are, and only when each of them has answered
//! that its directory is empty, it makes the configuration, stores it and hands it out. Whoever knows a configuration
//! answers with it. So an empty directory never makes a cluster, or a voter, on its own: a lost disk among members that
//! know each other stays outside until an operator gives it the place of the lost one.

use std::collections::{BTreeMap, BTreeSet};

use engine::FeatureLevel;
use peers::{DirectoryId, NodeNumber};

use super::configuration::{ClusterConfiguration, Membership};

/// What nodes say to each other before they have a cluster, and about its configuration afterwards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FoundingMessage {
    /// What are you?
    Ask,
    /// A node whose directory belongs to no cluster.
    Empty(Empty),
    /// The configuration that the node knows.
    Configuration(Box<ClusterConfiguration>),
}

/// A node without a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Empty {
    /// The life of its directory.
    pub directory: DirectoryId,
    /// The number of partitions that its settings ask for.
    pub partition_count: u16,
    /// The feature level at which its settings begin.
    pub first_level: FeatureLevel,
    /// The members that its settings name.
    pub members: BTreeSet<NodeNumber>,
}

/// A message with its addressee.
pub(crate) type Addressed = (NodeNumber, FoundingMessage);

/// A node on its way into a cluster, or in it.
#[derive(Debug)]
pub(crate) struct Founding {
    own: NodeNumber,
    /// What it is while it has no cluster.
    empty: Empty,
    /// The name that the cluster gets if this node founds it.
    cluster_id: String,
    answers: BTreeMap<NodeNumber, Empty>,
    /// What was found and is not stored yet.
    found: Option<ClusterConfiguration>,
    configuration: Option<ClusterConfiguration>,
    /// Why there is no cluster yet, apart from missing answers.
    problem: Option<String>,
}

impl Founding {
    /// A node with its settings, and the configuration that it has stored.
    pub fn new(
        own: NodeNumber,
        empty: Empty,
        cluster_id: String,
        configuration: Option<ClusterConfiguration>,
    ) -> Founding {
        let (answers, found, problem) = (BTreeMap::new(), None, None);
        Founding { own, empty, cluster_id, answers, found, configuration, problem }
    }

    /// The configuration that is stored here.
    pub fn configuration(&self) -> Option<&ClusterConfiguration> {
        self.configuration.as_ref()
    }

    /// A configuration that is to be stored now. [`Founding::stored`] follows.
    pub fn to_store(&self) -> Option<&ClusterConfiguration> {
        self.found.as_ref()
    }

    /// What the node waits for, as a sentence for its operator; none when it belongs to a cluster.
    pub fn waits_for(&self) -> Option<String> {
        if self.configuration.is_some() {
            return None;
        }
        if let Some(problem) = &self.problem {
            return Some(problem.clone());
        }
        let missing: Vec<String> = self.missing().map(|node| node.to_string()).collect();
        Some(match (self.is_founder(), missing.is_empty()) {
            (true, false) => format!(
                "node {} founds the cluster when all members have answered; missing: node {}",
                self.own,
                missing.join(", node ")
            ),
            (true, true) => "the cluster is being founded".to_owned(),
            (false, _) => {
                format!("node {} waits until node {} has founded the cluster", self.own, self.founder())
            }
        })
    }

    fn founder(&self) -> NodeNumber {
        self.empty.members.first().copied().unwrap_or(self.own)
    }

    fn is_founder(&self) -> bool {
        self.founder() == self.own
    }

    fn others(&self) -> impl Iterator<Item = NodeNumber> + '_ {
        self.empty.members.iter().copied().filter(|node| *node != self.own)
    }

    fn missing(&self) -> impl Iterator<Item = NodeNumber> + '_ {
        self.others().filter(|node| !self.answers.contains_key(node))
    }

    /// Asks the others again while there is no cluster.
    pub fn tick(&mut self) -> Vec<Addressed> {
        if self.configuration.is_some() || self.found.is_some() {
            return Vec::new();
        }
        self.found_if_complete();
        self.others().map(|node| (node, FoundingMessage::Ask)).collect()
    }

    /// The connection to a node is lost: what it said may not hold for whoever comes next.
    pub fn lost(&mut self, node: NodeNumber) {
        self.answers.remove(&node);
    }

    /// A node does not take the connection of this one, for this reason.
    pub fn refused(&mut self, sentence: &str) {
        if self.configuration.is_none() && self.found.is_none() {
            self.problem = Some(sentence.to_owned());
        }
    }

    /// Takes a message.
    pub fn received(&mut self, from: NodeNumber, message: FoundingMessage) -> Option<Addressed> {
        match message {
            FoundingMessage::Ask => Some((
                from,
                match &self.configuration {
                    Some(configuration) => FoundingMessage::Configuration(Box::new(configuration.clone())),
                    None => FoundingMessage::Empty(self.empty.clone()),
                },
            )),
            FoundingMessage::Empty(empty) => {
                if self.configuration.is_none() {
                    self.answers.insert(from, empty);
                    self.found_if_complete();
                }
                None
            }
            FoundingMessage::Configuration(configuration) => {
                self.learn(from, *configuration);
                None
            }
        }
    }

    /// Founds, when this is the founder's task and everybody has answered alike.
    fn found_if_complete(&mut self) {
        if !self.is_founder() || self.found.is_some() || self.missing().next().is_some() {
            return;
        }
        self.problem = self.answers.iter().find_map(|(node, theirs)| self.disagreement(*node, theirs));
        if self.problem.is_some() {
            return;
        }
        let own = (self.own, self.empty.directory);
        let all = self.answers.iter().map(|(node, empty)| (*node, empty.directory)).chain([own]);
        let members: BTreeMap<_, _> =
            all.map(|(node, directory)| (node, Membership { directory, replaced: 0 })).collect();
        self.found = Some(ClusterConfiguration {
            cluster_id: self.cluster_id.clone(),
            revision: 1,
            partition_count: self.empty.partition_count,
            first_level: self.empty.first_level,
            founders: members.values().map(|membership| membership.directory).collect(),
            members,
        });
    }

    fn disagreement(&self, node: NodeNumber, theirs: &Empty) -> Option<String> {
        let ours = &self.empty;
        let own = self.own;
        if theirs.members != ours.members {
            let list =
                |members: &BTreeSet<NodeNumber>| members.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            let (ours, theirs) = (list(&ours.members), list(&theirs.members));
            return Some(format!(
                "node {own} has the members {ours} in its list, and node {node} has {theirs}; give all nodes the same \
                 list of members"
            ));
        }
        if theirs.partition_count != ours.partition_count {
            return Some(format!(
                "node {own} is set to {} partitions, and node {node} to {}; give all nodes the same number",
                ours.partition_count, theirs.partition_count
            ));
        }
        if theirs.first_level != ours.first_level {
            return Some(format!(
                "node {own} begins at feature level {}, and node {node} at {}; start the same version on all nodes",
                ours.first_level, theirs.first_level
            ));
        }
        (theirs.directory == ours.directory).then(|| {
            format!("node {own} and node {node} run on copies of one data directory; empty one of the two directories")
        })
    }

    /// Another node knows a configuration.
    fn learn(&mut self, from: NodeNumber, theirs: ClusterConfiguration) {
        let known = self.configuration.as_ref().or(self.found.as_ref());
        // Should two nodes have decided at once, all settle for the same one.
        let is_older =
            |known: &ClusterConfiguration| (known.revision, known.to_text()) >= (theirs.revision, theirs.to_text());
        if known.is_some_and(|known| known.cluster_id != theirs.cluster_id || is_older(known)) {
            return;
        }
        let own = self.own;
        match theirs.members.get(&own) {
            Some(membership) if membership.directory == self.empty.directory => {
                if self.configuration.is_none() && theirs.partition_count != self.empty.partition_count {
                    let (theirs, ours) = (theirs.partition_count, self.empty.partition_count);
                    self.problem = Some(format!(
                        "the cluster has {theirs} partitions, and node {own} is set to {ours}; set it to {theirs}"
                    ));
                    return;
                }
                self.problem = None;
                self.found = Some(theirs);
            }
            Some(membership) => {
                self.problem = Some(format!(
                    "node {from} knows node {own} with the data directory {}, and this one is {}; put that directory \
                     back, or, if its disk is lost, run 'osmia cluster replace {own}'",
                    membership.directory, self.empty.directory
                ));
            }
            None => {
                self.problem = Some(format!(
                    "the cluster that node {from} belongs to has no node {own}; correct the list of members of node \
                     {own}"
                ));
            }
        }
    }

    /// A configuration that [`Founding::to_store`] gave is on the disk. All others get it. Another one may have come meanwhile,
    /// which is stored next.
    pub fn stored(&mut self, configuration: ClusterConfiguration) -> Vec<Addressed> {
        self.found = self.found.take().filter(|found| *found != configuration);
        self.problem = None;
        self.configuration = Some(configuration.clone());
        let message = |node| (node, FoundingMessage::Configuration(Box::new(configuration.clone())));
        self.others().map(message).collect()
    }

    /// What a node that was away has to hear when it is there again.
    pub fn news(&self) -> FoundingMessage {
        match &self.configuration {
            Some(configuration) => FoundingMessage::Configuration(Box::new(configuration.clone())),
            None => FoundingMessage::Ask,
        }
    }

    /// A change of the configuration that this node makes itself. `false` while another one is under way.
    pub fn change(&mut self, next: ClusterConfiguration) -> bool {
        let is_free = self.found.is_none();
        if is_free {
            self.found = Some(next);
        }
        is_free
    }
}

#[cfg(test)]
mod tests {
    use super::super::configuration::tests::{configuration, directory_of};
    use super::*;

    fn founding(node: u32) -> Founding {
        let empty = Empty {
            directory: directory_of(node),
            partition_count: 3,
            first_level: FeatureLevel::NEWEST,
            members: (0..3).map(NodeNumber).collect(),
        };
        Founding::new(NodeNumber(node), empty, format!("c{node}"), None)
    }

    /// Delivers everything between the nodes that are there, and stores what is to be stored.
    fn settle(nodes: &mut BTreeMap<u32, Founding>) {
        for _ in 0..4 {
            let mut under_way: Vec<(NodeNumber, Addressed)> = Vec::new();
            for (node, founding) in nodes.iter_mut() {
                under_way.extend(founding.tick().into_iter().map(|addressed| (NodeNumber(*node), addressed)));
            }
            while let Some((from, (to, message))) = under_way.pop() {
                let Some(receiver) = nodes.get_mut(&to.0) else { continue };
                under_way.extend(receiver.received(from, message).map(|answer| (to, answer)));
                if let Some(found) = receiver.to_store().cloned() {
                    under_way.extend(receiver.stored(found).into_iter().map(|addressed| (to, addressed)));
                }
            }
        }
    }

    fn configurations(nodes: &BTreeMap<u32, Founding>) -> Vec<Option<String>> {
        nodes.values().map(|node| node.configuration().map(|known| known.cluster_id.clone())).collect()
    }

    #[test]
    fn the_lowest_node_founds_when_all_have_answered() {
        let mut nodes: BTreeMap<u32, Founding> = [0, 2].map(|node| (node, founding(node))).into();
        settle(&mut nodes);
        assert_eq!(configurations(&nodes), [None, None]);
        let waits_for = nodes[&0].waits_for().expect("it waits");
        assert!(waits_for.ends_with("missing: node 1"), "{waits_for}");
        nodes.insert(1, founding(1));
        settle(&mut nodes);
        let c0 = Some("c0".to_owned());
        assert_eq!(configurations(&nodes), [c0.clone(), c0.clone(), c0]);
        assert_eq!(nodes[&2].configuration().map(|known| known.founders.len()), Some(3));
    }

    #[test]
    fn an_empty_founder_among_members_founds_nothing() {
        let mut members: BTreeMap<u32, Founding> = [0, 1, 2].map(|node| (node, founding(node))).into();
        settle(&mut members);
        let mut lost = founding(0);
        lost.empty.directory = directory_of(9);
        members.insert(0, lost);
        settle(&mut members);
        let waits_for = members[&0].waits_for().expect("it waits");
        assert!(waits_for.contains("osmia cluster replace 0"), "{waits_for}");
        // Whoever knows the cluster gives it the place.
        let next = members[&1].configuration().expect("it is one").with_directory(NodeNumber(0), directory_of(9));
        let changed = members.get_mut(&1).expect("it is there");
        let next = next.expect("a member");
        assert!(changed.change(next.clone()) && !changed.change(next.clone()), "one after the other");
        changed.stored(next);
        settle(&mut members);
        let revisions: Vec<_> = members.values().map(|node| node.configuration().map(|known| known.revision)).collect();
        assert_eq!(revisions[0], Some(2));
    }

    #[test]
    fn nodes_that_disagree_say_so_and_wait() {
        let mut nodes: BTreeMap<u32, Founding> = [0, 1, 2].map(|node| (node, founding(node))).into();
        nodes.get_mut(&1).expect("it is there").empty.partition_count = 4;
        settle(&mut nodes);
        let waits_for = nodes[&0].waits_for().expect("it waits");
        assert!(waits_for.contains("node 0 is set to 3 partitions, and node 1 to 4"), "{waits_for}");
        nodes.get_mut(&1).expect("it is there").empty.partition_count = 3;
        settle(&mut nodes);
        assert!(nodes.values().all(|node| node.configuration().is_some()));
    }

    #[test]
    fn older_and_foreign_configurations_change_nothing() {
        let mut node = founding(1);
        node.received(NodeNumber(0), FoundingMessage::Configuration(Box::new(configuration(3))));
        node.stored(configuration(3));
        let mut foreign = configuration(3);
        (foreign.cluster_id, foreign.revision) = ("other".to_owned(), 9);
        for configuration in [configuration(3), foreign] {
            node.received(NodeNumber(2), FoundingMessage::Configuration(Box::new(configuration)));
            assert_eq!(node.to_store(), None);
        }
    }
}
