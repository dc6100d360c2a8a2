//! What a member does for the cluster all the time: it says how it is, sends waiting commands on, and stores changes of the
//! cluster's configuration.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError};

use super::messages::{NodeStatus, ReplicaStatus};
use super::port::ClusterPort;
use crate::data_directory::store_cluster;
use crate::shared::Shared;

/// How often waiting commands are looked at.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);
/// How often the node says how it is.
const STATUS_INTERVAL: Duration = Duration::from_millis(250);

/// The thread of a member.
pub(crate) struct ClusterThread {
    shared: Arc<Shared>,
    port: Arc<ClusterPort>,
    directory: PathBuf,
    stop: Receiver<()>,
    next_status: Instant,
    announced: NodeStatus,
}

impl ClusterThread {
    pub fn new(shared: Arc<Shared>, port: Arc<ClusterPort>, directory: PathBuf, stop: Receiver<()>) -> Self {
        let (next_status, announced) = (Instant::now(), NodeStatus::default());
        ClusterThread { shared, port, directory, stop, next_status, announced }
    }

    /// Runs until the node stops.
    pub fn run(mut self) {
        while self.stop.recv_timeout(LOOK_INTERVAL) == Err(RecvTimeoutError::Timeout) {
            let now = Instant::now();
            for entrance in self.shared.entrances.all().values() {
                entrance.requests.refuse_parked(now);
                entrance.send_parked(&self.shared);
            }
            self.store_configuration();
            if now >= self.next_status {
                self.next_status = now + STATUS_INTERVAL;
                self.announced = self.status();
                self.port.announce(&self.announced);
            }
        }
    }

    fn store_configuration(&self) {
        let to_store = self.port.founding.lock().to_store().cloned();
        let Some(configuration) = to_store else { return };
        match store_cluster(&self.directory, &configuration) {
            Ok(()) => {
                tracing::info!(revision = configuration.revision, "the configuration of the cluster has changed");
                self.port.stored();
            }
            Err(error) => tracing::error!(%error, "the configuration of the cluster cannot be stored; trying again"),
        }
    }

    fn status(&self) -> NodeStatus {
        let replica = |entrance: &Arc<crate::entrance::Entrance>| {
            let mut status = ReplicaStatus::new(entrance.id, entrance.role(), entrance.health());
            let group = entrance.group();
            let replicated = group.as_ref().and_then(|group| group.progress.iter().map(|member| member.matched).min());
            status.term = entrance.term();
            status.last_index = group.as_ref().map_or(0, |group| group.last_index);
            status.replicated_index = replicated.unwrap_or_default();
            status.last_position = entrance.last_position();
            status
        };
        let (host, port) = self.shared.advertised_address.lock().clone();
        NodeStatus {
            host,
            port,
            version: protocol::BROKER_VERSION.to_owned(),
            newest_level: self.shared.newest_feature_level.number(),
            settings: 0,
            replicas: self.shared.entrances.all().values().map(replica).collect(),
        }
    }
}
