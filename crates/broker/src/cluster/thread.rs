//! What a member does for the cluster all the time: it says how it is, sends waiting commands on, and stores changes of the
//! cluster's configuration.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use peers::NodeNumber;

use super::messages::{NodeStatus, ReplicaStatus};
use super::port::ClusterPort;
use crate::data_directory::store_cluster;
use crate::inbox::Work;
use crate::retention::everybody_has;
use crate::shared::Shared;

/// How often waiting commands are looked at.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);
/// How often the streams of the node are compared with the states of partitions.
const RECONCILIATION_INTERVAL: Duration = Duration::from_secs(1);
/// How often the node says how it is.
const STATUS_INTERVAL: Duration = Duration::from_millis(250);

/// The thread of a member.
pub(crate) struct ClusterThread {
    shared: Arc<Shared>,
    port: Arc<ClusterPort>,
    directory: PathBuf,
    stop: Receiver<()>,
    /// To the processing threads.
    work: Vec<Sender<Work>>,
    next_status: Instant,
    next_reconciliation: Instant,
    /// The nodes that were gone at the last look.
    gone: BTreeSet<NodeNumber>,
}

impl ClusterThread {
    pub fn new(
        shared: Arc<Shared>,
        port: Arc<ClusterPort>,
        directory: PathBuf,
        work: Vec<Sender<Work>>,
        stop: Receiver<()>,
    ) -> Self {
        let (next_status, next_reconciliation, gone) = (Instant::now(), Instant::now(), BTreeSet::new());
        ClusterThread { shared, port, directory, stop, work, next_status, next_reconciliation, gone }
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
                self.port.announce(&self.status());
            }
            self.reconcile(now);
        }
    }

    /// Once a second, and as soon as a node is gone.
    fn reconcile(&mut self, now: Instant) {
        let contacts = self.port.contacts();
        let gone = contacts.into_iter().filter(|(_, contact)| contact.is_gone()).map(|(node, _)| node).collect();
        let is_news = !self.gone.is_superset(&gone);
        self.gone = gone;
        if is_news || now >= self.next_reconciliation {
            self.next_reconciliation = now + RECONCILIATION_INTERVAL;
            for work in &self.work {
                drop(work.send(Work::Reconcile));
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
            let replicated = group.as_ref().and_then(|group| everybody_has(group));
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
