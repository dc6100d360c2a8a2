//! A node on its way into its cluster.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::num::NonZeroU64;
use std::sync::Arc;

use peers::{DirectoryId, Identity, Mesh, MeshError, MeshOptions, NodeNumber};

use super::founding::{Empty, Founding};
use super::port::{ClusterPort, Received};
use crate::data_directory::{DataDirectory, DataDirectoryError};
use crate::options::{ClusterOptions, NodeOptions};

/// A node that listens for the others, and waits until it belongs to a cluster.
#[derive(Debug)]
pub struct Joining {
    pub(crate) directory: DataDirectory,
    pub(crate) port: ClosePort,
}

/// Why a node cannot join a cluster.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// The list of members makes no sense.
    #[error("The list of members has no node {0}, which this one is. Add it, or correct the node number.")]
    NotInList(u32),
    /// The port cannot be had.
    #[error(transparent)]
    Mesh(#[from] MeshError),
    /// The data directory cannot be used.
    #[error(transparent)]
    DataDirectory(#[from] DataDirectoryError),
}

impl Joining {
    pub(crate) fn start(
        options: &NodeOptions,
        cluster: &ClusterOptions,
        directory: DataDirectory,
    ) -> Result<Joining, JoinError> {
        if !cluster.members.contains_key(&options.node_id) {
            return Err(JoinError::NotInList(options.node_id));
        }
        let own = NodeNumber(options.node_id);
        let id = DirectoryId(NonZeroU64::new(directory.member.0).unwrap_or(NonZeroU64::MIN));
        let identity = Identity {
            node: own,
            directory: id,
            boot: directory.boot,
            process: RandomState::new().build_hasher().finish(),
            cluster: directory.cluster.as_ref().map(|known| known.cluster_id.clone()).unwrap_or_default(),
            build: env!("CARGO_PKG_VERSION").to_owned(),
            newest_level: options.newest_feature_level.number(),
        };
        let empty = Empty {
            directory: id,
            partition_count: options.partition_count,
            first_level: options.first_feature_level,
            members: cluster.members.keys().copied().map(NodeNumber).collect(),
        };
        let others: BTreeMap<NodeNumber, String> = cluster
            .members
            .iter()
            .filter(|(node, _)| **node != options.node_id)
            .map(|(node, address)| (NodeNumber(*node), address.clone()))
            .collect();
        let founding = Founding::new(own, empty, directory.cluster_id.clone(), directory.cluster.clone());
        let port = ClusterPort::new(own, others.keys().copied(), founding);
        let known = directory.cluster.iter().flat_map(|cluster| &cluster.members).filter(|(node, _)| **node != own);
        let directories = known.map(|(node, membership)| (*node, membership.directory)).collect();
        let options = MeshOptions { listen: cluster.listen, identity, members: others, directories };
        let mesh = Mesh::start(options, Received(port.clone()))?;
        port.open(mesh);
        Ok(Joining { directory, port: ClosePort(port) })
    }

    /// Takes the next step. `true` when the node belongs to a cluster; otherwise the caller tries again in a while.
    ///
    /// # Errors
    /// When the configuration of the cluster cannot be stored.
    pub fn is_founded(&mut self) -> Result<bool, DataDirectoryError> {
        let messages = self.port.0.founding.lock().tick();
        self.port.0.send_founding(messages);
        let to_store = self.port.0.founding.lock().to_store().cloned();
        if let Some(configuration) = to_store {
            tracing::info!(
                cluster = configuration.cluster_id,
                revision = configuration.revision,
                nodes = configuration.members.len(),
                partitions = configuration.partition_count,
                "the node belongs to this cluster"
            );
            self.directory.store_cluster(configuration.clone())?;
            self.port.0.stored(configuration);
        }
        Ok(self.directory.cluster.is_some())
    }

    /// What the node waits for, in a sentence.
    pub fn waits_for(&self) -> Option<String> {
        self.port.0.founding.lock().waits_for()
    }
}

impl Drop for ClosePort {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Closes the port of a node that ends, also when it never began.
#[derive(Debug)]
pub(crate) struct ClosePort(pub Arc<ClusterPort>);
