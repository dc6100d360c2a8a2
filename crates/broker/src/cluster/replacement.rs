//! Giving a node's place in the cluster to another directory, because its disk is lost.
//!
//! The leader of the first partition decides, so that two operators do not decide differently. The new configuration goes to
//! all nodes; each partition's leader then makes the new directory a learner, and a voter once it has everything.

use std::time::{Duration, Instant};

use peers::NodeNumber;
use protocol::PartitionId;

use super::port::ClusterPort;
use crate::client::Client;
use crate::shared::Shared;

/// How long a node waits until the leader of the first partition has decided.
const DECISION_MAX: Duration = Duration::from_secs(5);
/// How often it looks meanwhile.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// Why a directory is not replaced.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReplaceError {
    /// The node is alone.
    #[error("Expected to replace node {0}, but this node belongs to no cluster; ask a node that does")]
    NoCluster(u32),
    /// There is no such node.
    #[error("Expected to replace node {0}, but the cluster has no such node; name one of its members")]
    NoSuchNode(u32),
    /// No directory has asked for the place.
    #[error(
        "Expected to replace node {0}, but no node {0} with an empty data directory has asked to join; start it with an \
         empty data directory and the same list of members first"
    )]
    NoApplicant(u32),
    /// The node runs with the directory that the cluster knows.
    #[error(
        "Expected to replace node {0}, but it is there with the data directory that the cluster knows; stop it first"
    )]
    Alive(u32),
    /// The leader was asked, and nothing has come of it.
    #[error(
        "Expected to replace node {0}, but the leader of partition 1 has not decided within 5 s, and may still do so; look at \
         'osmia cluster status' and at the log of that leader, and try again"
    )]
    Undecided(u32),
    /// Without the first partition nothing is decided.
    #[error(
        "Expected to replace node {0}, but partition 1 has no leader that this node can reach; wait until a majority of the \
         nodes is there"
    )]
    NoLeader(u32),
}

impl Client {
    /// Gives the place of a node to the empty directory that has asked for it. Returns when the configuration says so;
    /// the partitions are copied after that. Blocks the calling thread for some seconds at most.
    ///
    /// # Errors
    /// When that is not possible now.
    pub fn replace_member(&self, node: u32) -> Result<(), ReplaceError> {
        let port = self.shared.port.as_ref().ok_or(ReplaceError::NoCluster(node))?;
        let wished = check(port, NodeNumber(node))?;
        let leader = self.shared.entrance(PartitionId::DEPLOYMENT).ok().and_then(|entrance| entrance.lead().leader);
        match leader {
            Some(leader) if leader == self.shared.node => replace_here(&self.shared, port, NodeNumber(node))?,
            Some(leader) => {
                port.send_replacement(leader, NodeNumber(node)).map_err(|_| ReplaceError::NoLeader(node))?;
            }
            None => return Err(ReplaceError::NoLeader(node)),
        }
        let until = Instant::now() + DECISION_MAX;
        while Instant::now() < until {
            let configuration = port.configuration();
            let known = configuration.and_then(|known| known.members.get(&NodeNumber(node)).copied());
            if known.is_some_and(|membership| membership.directory == wished) {
                return Ok(());
            }
            std::thread::sleep(LOOK_INTERVAL);
        }
        Err(ReplaceError::Undecided(node))
    }
}

/// Whether a node may be replaced, and by which directory.
fn check(port: &ClusterPort, node: NodeNumber) -> Result<peers::DirectoryId, ReplaceError> {
    let known = port.configuration().is_some_and(|configuration| configuration.members.contains_key(&node));
    if !known {
        return Err(ReplaceError::NoSuchNode(node.0));
    }
    if port.contacts().get(&node).is_some_and(|contact| contact.is_alive(Instant::now())) {
        return Err(ReplaceError::Alive(node.0));
    }
    port.applicant(node).ok_or(ReplaceError::NoApplicant(node.0))
}

/// Decides, at the leader of the first partition.
pub(super) fn replace_here(shared: &Shared, port: &ClusterPort, node: NodeNumber) -> Result<(), ReplaceError> {
    let directory = check(port, node)?;
    let is_leader = shared.entrance(PartitionId::DEPLOYMENT).is_ok_and(|entrance| entrance.is_open());
    let configuration = port.configuration().filter(|_| is_leader).ok_or(ReplaceError::NoLeader(node.0))?;
    let next = configuration.with_directory(node, directory).ok_or(ReplaceError::NoSuchNode(node.0))?;
    tracing::warn!(%node, %directory, revision = next.revision, "the directory of a node is replaced");
    match port.founding.lock().change(next) {
        true => Ok(()),
        false => Err(ReplaceError::Undecided(node.0)),
    }
}
