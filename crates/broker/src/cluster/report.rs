//! What a node of a cluster knows of all of them, for operators.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use peers::NodeNumber;
use protocol::PartitionId;

use super::port::ClusterPort;
use crate::shared::Shared;

/// The part of a node's life that counts its starts.
const STARTS: u64 = 0xffff;

/// What a node knows of a member of its cluster, itself included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberReport {
    /// Its number.
    pub node: u32,
    /// The id of the data directory that has the place of this node, in hexadecimal digits.
    pub directory: Option<String>,
    /// How often a node was started with that directory; none while no connection to it was made.
    pub starts: Option<u64>,
    /// Time since something came from it; none for the node itself, and for one that was never heard from.
    pub last_contact: Option<Duration>,
    /// What it said of its replicas last.
    pub replicas: BTreeMap<PartitionId, ReplicaReport>,
}

/// How far a replica is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplicaReport {
    /// The term of Raft that it is in.
    pub term: u64,
    /// The index of the last entry of its log.
    pub last_index: u64,
    /// Whether it votes, as the log of the node that reports says. A group whose members are being changed has no new voters
    /// yet; none while that node does not know.
    pub is_voter: Option<bool>,
}

/// All members in the order of their numbers; none of a node alone.
pub(crate) fn reports(shared: &Shared) -> Vec<MemberReport> {
    shared.port.as_deref().map(|port| of_port(shared, port)).unwrap_or_default()
}

fn of_port(shared: &Shared, port: &ClusterPort) -> Vec<MemberReport> {
    let now = Instant::now();
    let configuration = port.configuration();
    let directory = |node: NodeNumber| {
        let membership = configuration.as_ref().and_then(|known| known.members.get(&node));
        membership.map(|membership| membership.directory.to_string())
    };
    let groups: BTreeMap<_, _> = shared
        .entrances
        .all()
        .values()
        .filter_map(|entrance| Some((entrance.id, entrance.group()?.membership)))
        .collect();
    let is_voter = |node: NodeNumber, partition: PartitionId| {
        let member = configuration.as_ref()?.member(node)?;
        groups.get(&partition).map(|membership| membership.voters.contains(&member) && !membership.is_joint())
    };
    let own = MemberReport {
        node: port.own().0,
        directory: directory(port.own()),
        starts: Some(shared.life & STARTS),
        last_contact: None,
        replicas: shared
            .entrances
            .all()
            .values()
            .map(|entrance| {
                let last_index = entrance.group().map_or(0, |group| group.last_index);
                (
                    entrance.id,
                    ReplicaReport { term: entrance.term(), last_index, is_voter: is_voter(port.own(), entrance.id) },
                )
            })
            .collect(),
    };
    let others = port.contacts().into_iter().map(|(node, contact)| MemberReport {
        node: node.0,
        directory: directory(node),
        starts: contact.identity.map(|identity| identity.boot),
        last_contact: contact.heard.map(|heard| now.saturating_duration_since(heard)),
        replicas: contact
            .status
            .replicas
            .iter()
            .map(|replica| {
                let (id, term, last_index) = (PartitionId(replica.partition), replica.term, replica.last_index);
                (id, ReplicaReport { term, last_index, is_voter: is_voter(node, id) })
            })
            .collect(),
    });
    let mut all: Vec<_> = others.chain([own]).collect();
    all.sort_by_key(|member| member.node);
    all
}
