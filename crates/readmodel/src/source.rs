//! Where the rows of the partitions are: in files of the node, or on a server that several nodes may have in common.

use std::path::PathBuf;
use std::sync::Arc;

use protocol::PartitionId;

use crate::database::{Server, ServerError};
use crate::file::{self, StoreError};
use crate::store::Store;

/// A PostgreSQL server as what searches read.
#[derive(Clone)]
pub struct PostgreSql {
    pub(crate) server: Arc<Server>,
    /// The cluster that the rows are of, as soon as the node has one.
    cluster: Arc<dyn Fn() -> Option<String> + Send + Sync>,
}

impl PostgreSql {
    /// The server that a URL names. It is asked for the first time when a partition begins; `cluster` says then whose rows these
    /// are.
    ///
    /// # Errors
    /// When the URL means nothing.
    pub fn new(
        url: &str,
        cluster: impl Fn() -> Option<String> + Send + Sync + 'static,
    ) -> Result<PostgreSql, ServerError> {
        Ok(PostgreSql { server: Arc::new(Server::at(url)?), cluster: Arc::new(cluster) })
    }
}

impl std::fmt::Debug for PostgreSql {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.server.fmt(formatter)
    }
}

/// Where the rows are.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    /// In files of this directory.
    Directory(PathBuf),
    Server(PostgreSql),
}

/// Why there are no rows to go on with.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SourceError {
    #[error(transparent)]
    File(#[from] StoreError),
    #[error(transparent)]
    Server(#[from] ServerError),
    #[error("the node does not know yet of which cluster it is")]
    NoCluster,
}

impl Source {
    /// Opens the rows of a partition for writing. A file in which damage was found is set aside before.
    pub fn open(&self, partition: PartitionId, damage: Option<&str>) -> Result<Store, SourceError> {
        match self {
            Source::Directory(directory) => Ok(match damage {
                Some(damage) => file::open_instead(directory, partition, damage)?,
                None => file::open(directory, partition)?,
            }),
            Source::Server(PostgreSql { server, cluster }) => {
                let cluster = cluster().ok_or(SourceError::NoCluster)?;
                let (database, place) = server.writer(partition, &cluster)?;
                Ok(Store { database, place })
            }
        }
    }

    /// The file that can be looked through for damage. A server looks after itself.
    pub fn file(&self, partition: PartitionId) -> Option<PathBuf> {
        match self {
            Source::Directory(directory) => Some(file::path_of(directory, partition)),
            Source::Server(_) => None,
        }
    }
}
