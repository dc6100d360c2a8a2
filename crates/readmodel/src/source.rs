//! Where the rows of the partitions are: in files of the node, or on a server that several nodes may have in common.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use protocol::PartitionId;

use crate::database::{Looked, Server, ServerError};
use crate::file::{self, StoreError};
use crate::gate::Gate;
use crate::store::{LogLimits, Store};

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
    /// In files of this directory, where searches go through the gate.
    Directory(PathBuf, Gate),
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

impl SourceError {
    /// Whether nothing gets better until an operator changes something.
    pub fn needs_operator(&self) -> bool {
        match self {
            SourceError::Server(error) => error.needs_operator(),
            SourceError::File(error) => error.needs_operator(),
            SourceError::NoCluster => false,
        }
    }
}

impl Source {
    /// In files of a directory.
    pub fn in_directory(directory: &Path) -> Source {
        Source::Directory(directory.to_owned(), Gate::default())
    }

    /// Looks whether the rows can be opened that are on a server; files are simply made.
    pub fn look(&self, partitions: impl Iterator<Item = PartitionId>) -> Result<Looked, ServerError> {
        match self {
            Source::Directory(..) => Ok(Looked::Usable { is_cluster_known: true }),
            Source::Server(PostgreSql { server, cluster }) => server.look(partitions, cluster().as_deref()),
        }
    }

    /// Opens the rows of a partition for writing. A file in which damage was found is set aside before.
    pub fn open(&self, partition: PartitionId, damage: Option<&str>) -> Result<Store, SourceError> {
        match self {
            Source::Directory(directory, gate) => {
                let store = match damage {
                    Some(damage) => file::open_instead(directory, partition, damage)?,
                    None => file::open(directory, partition)?,
                };
                Ok(Store { gate: gate.clone(), ..store })
            }
            Source::Server(PostgreSql { server, cluster }) => {
                let cluster = cluster().ok_or(SourceError::NoCluster)?;
                let (database, place) = server.writer(partition, &cluster)?;
                Ok(Store { database, place, gate: Gate::default(), log_limits: LogLimits::default() })
            }
        }
    }

    /// Whether the rows are this node's alone.
    pub fn is_local(&self) -> bool {
        self.server().is_none()
    }

    /// The server, if several nodes may have the rows in common.
    pub fn server(&self) -> Option<&PostgreSql> {
        match self {
            Source::Directory(..) => None,
            Source::Server(server) => Some(server),
        }
    }

    /// The file that can be looked through for damage. A server looks after itself.
    pub fn file(&self, partition: PartitionId) -> Option<PathBuf> {
        match self {
            Source::Directory(directory, _) => Some(file::path_of(directory, partition)),
            Source::Server(_) => None,
        }
    }
}
