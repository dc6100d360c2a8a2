//! Which nodes make a cluster, and what they agreed on when it was founded.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU64;

use engine::FeatureLevel;
use peers::{DirectoryId, NodeNumber};
use replication::NodeId;

use crate::data_directory::checksum::{check_checksum, with_checksum};

/// Version of the text form.
const VERSION: u32 = 1;

/// The configuration of a cluster. All members hold the one with the highest revision that they have heard of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClusterConfiguration {
    /// Name of the cluster, random, never changed.
    pub cluster_id: String,
    /// 1 at the founding, one more with every change.
    pub revision: u64,
    /// Number of partitions.
    pub partition_count: u16,
    /// The feature level at which the partitions begin.
    pub first_level: FeatureLevel,
    /// The directories of the founding: the first voters of every Raft group.
    pub founders: BTreeSet<DirectoryId>,
    /// Who belongs to the cluster now.
    pub members: BTreeMap<NodeNumber, Membership>,
}

/// A node's place in the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Membership {
    /// The life of its data directory.
    pub directory: DirectoryId,
    /// How many directories had the place before.
    pub replaced: u32,
}

/// The part of a node's life that counts its starts, in bits.
const BOOT_BITS: u32 = 16;
/// A life has so many bits: it stands above [`protocol::NUMBER_BITS`] in the numbers of requests and streams.
const LIFE_BITS: u32 = u64::BITS - protocol::NUMBER_BITS;

/// Tells apart what a process of a node numbers from what every other one did under the node's number: how often its
/// directory was replaced, and how often it was started.
pub(crate) fn life(replaced: u32, boot: u64) -> u64 {
    (u64::from(replaced) << BOOT_BITS | boot & ((1 << BOOT_BITS) - 1)) & ((1 << LIFE_BITS) - 1)
}

impl ClusterConfiguration {
    /// The member number of a node's directory in the Raft groups.
    pub fn member(&self, node: NodeNumber) -> Option<NodeId> {
        self.members.get(&node).map(|membership| NodeId(membership.directory.0.get()))
    }

    /// The member numbers of all directories.
    pub fn directories(&self) -> BTreeSet<NodeId> {
        self.members.values().map(|membership| NodeId(membership.directory.0.get())).collect()
    }

    /// The node whose directory has this member number.
    pub fn node(&self, member: NodeId) -> Option<NodeNumber> {
        let is_member = |membership: &Membership| membership.directory.0.get() == member.0;
        self.members.iter().find(|(_, membership)| is_member(membership)).map(|(node, _)| *node)
    }

    /// The members that make a group which the log of this directory does not know: all founders, or nobody, because a
    /// directory that came later hears everything from the leader.
    pub fn first_voters(&self, own: DirectoryId) -> Vec<NodeId> {
        match self.founders.contains(&own) {
            true => self.founders.iter().map(|directory| NodeId(directory.0.get())).collect(),
            false => Vec::new(),
        }
    }

    /// The next configuration, in which a node has another directory.
    pub fn with_directory(&self, node: NodeNumber, directory: DirectoryId) -> Option<ClusterConfiguration> {
        let mut next = self.clone();
        let membership = next.members.get_mut(&node)?;
        *membership = Membership { directory, replaced: membership.replaced.saturating_add(1) };
        next.revision = next.revision.saturating_add(1);
        Some(next)
    }

    /// Lines with a checksum: the content of the file, and the payload between nodes.
    pub fn to_text(&self) -> String {
        let mut text = format!(
            "cluster-configuration {VERSION}\ncluster {}\nrevision {}\npartitions {}\nfeature-level {}\n",
            self.cluster_id, self.revision, self.partition_count, self.first_level
        );
        for founder in &self.founders {
            text.push_str(&format!("founder {founder}\n"));
        }
        for (node, Membership { directory, replaced }) in &self.members {
            text.push_str(&format!("member {node} {directory} {replaced}\n"));
        }
        with_checksum(text)
    }

    /// Reads the text form.
    ///
    /// # Errors
    /// With what does not fit.
    pub fn from_text(content: &[u8]) -> Result<ClusterConfiguration, String> {
        let text = std::str::from_utf8(content).map_err(|_| "it is not UTF-8".to_owned())?;
        let mut lines = text.lines().map(|line| line.split_once(' ').unwrap_or((line, "")));
        let mut line = |name: &str| match lines.next() {
            Some((found, value)) if found == name => Ok(value.to_owned()),
            _ => Err(format!("it has no line '{name}' in its place")),
        };
        let version = line("cluster-configuration")?;
        if version != VERSION.to_string() {
            return Err(format!("it has version {version}, and this program reads version {VERSION}"));
        }
        check_checksum(content).map_err(str::to_owned)?;
        let cluster_id = line("cluster")?;
        let revision = number(&line("revision")?)?;
        let partition_count = number(&line("partitions")?)?;
        let level = number(&line("feature-level")?)?;
        let first_level = FeatureLevel::new(level).map_err(|error| error.to_string())?;
        let mut configuration = ClusterConfiguration {
            cluster_id,
            revision,
            partition_count,
            first_level,
            founders: BTreeSet::new(),
            members: BTreeMap::new(),
        };
        for (name, value) in lines {
            let mut words = value.split(' ');
            let mut word = || words.next().ok_or_else(|| format!("its line '{name}' is too short"));
            match name {
                "founder" => drop(configuration.founders.insert(directory(word()?)?)),
                "member" => {
                    let node = NodeNumber(number(word()?)?);
                    let membership = Membership { directory: directory(word()?)?, replaced: number(word()?)? };
                    configuration.members.insert(node, membership);
                }
                _ => {}
            }
        }
        Ok(configuration)
    }
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("'{text}' is no number that fits"))
}

fn directory(text: &str) -> Result<DirectoryId, String> {
    let number = u64::from_str_radix(text, 16).ok().and_then(NonZeroU64::new);
    number.map(DirectoryId).ok_or_else(|| format!("'{text}' is no directory id"))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn directory_of(node: u32) -> DirectoryId {
        DirectoryId(NonZeroU64::new(u64::from(node) + 0xd0).expect("not 0"))
    }

    pub(crate) fn configuration(nodes: u32) -> ClusterConfiguration {
        let membership = |node| Membership { directory: directory_of(node), replaced: 0 };
        ClusterConfiguration {
            cluster_id: "c".to_owned(),
            revision: 1,
            partition_count: 3,
            first_level: FeatureLevel::NEWEST,
            founders: (0..nodes).map(directory_of).collect(),
            members: (0..nodes).map(|node| (NodeNumber(node), membership(node))).collect(),
        }
    }

    #[test]
    fn a_configuration_is_read_back_and_damage_is_noticed() {
        let replaced = configuration(3).with_directory(NodeNumber(1), directory_of(9)).expect("a member");
        assert_eq!(replaced.revision, 2);
        let text = replaced.to_text();
        assert_eq!(ClusterConfiguration::from_text(text.as_bytes()), Ok(replaced));
        for at in 0..text.len() {
            let mut damaged = text.clone().into_bytes();
            damaged[at] ^= 1;
            assert!(ClusterConfiguration::from_text(&damaged).is_err(), "byte {at}");
            assert!(ClusterConfiguration::from_text(&text.as_bytes()[..at]).is_err(), "cut at {at}");
        }
    }

    #[test]
    fn only_a_founder_makes_groups_with_voters() {
        let replaced = configuration(3).with_directory(NodeNumber(1), directory_of(9)).expect("a member");
        assert_eq!(replaced.first_voters(directory_of(0)).len(), 3);
        assert_eq!(replaced.first_voters(directory_of(9)), Vec::new(), "it has forgotten what the others know");
        assert_eq!(replaced.node(NodeId(directory_of(9).0.get())), Some(NodeNumber(1)));
        assert_eq!(replaced.node(NodeId(directory_of(1).0.get())), None);
    }
}
