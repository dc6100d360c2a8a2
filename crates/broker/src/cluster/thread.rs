//! What a member does for the cluster all the time: it says how it is, sends waiting commands on, and stores changes of the
//! cluster's configuration.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use peers::NodeNumber;

use super::agreement::SetUp;
use super::exporting::Consumers;
use super::messages::{NodeStatus, ReplicaStatus};
use super::port::{ClusterPort, Contact};
use crate::data_directory::store_cluster;
use crate::disk::DiskState;
use crate::entrance::Entrance;
use crate::inbox::{Inbound, Work};
use crate::retention::everybody_has;
use crate::shared::Shared;
use crate::status::Health;

/// How often waiting commands are looked at.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);
/// How often the streams of the node are compared with the states of partitions.
const RECONCILIATION_INTERVAL: Duration = Duration::from_secs(1);
/// Leaders move to spread them when all nodes were there for so long.
const CALM_MIN: Duration = Duration::from_secs(30);
/// The time between two such moves.
const SPREAD_INTERVAL: Duration = Duration::from_secs(2);
/// A replica that lacks so many entries at most may lead.
const SPREAD_LAG_ENTRIES_MAX: u64 = 1_000;
/// How often the node says how it is.
const STATUS_INTERVAL: Duration = Duration::from_millis(250);

/// The thread of a member.
pub(crate) struct ClusterThread {
    shared: Arc<Shared>,
    port: Arc<ClusterPort>,
    directory: PathBuf,
    consumers: Consumers,
    stop: Receiver<()>,
    /// To the processing threads.
    work: Vec<Sender<Work>>,
    next_status: Instant,
    next_reconciliation: Instant,
    /// The nodes that were gone at the last look.
    gone: BTreeSet<NodeNumber>,
    /// Since when all nodes are there.
    calm_since: Instant,
    next_spread: Instant,
    next_escape: Instant,
}

impl ClusterThread {
    pub fn new(
        shared: Arc<Shared>,
        port: Arc<ClusterPort>,
        directory: PathBuf,
        work: Vec<Sender<Work>>,
        consumers: Consumers,
        stop: Receiver<()>,
    ) -> Self {
        let (next_status, next_reconciliation, gone) = (Instant::now(), Instant::now(), BTreeSet::new());
        let calm_since = Instant::now();
        ClusterThread {
            shared,
            port,
            directory,
            consumers,
            stop,
            work,
            next_status,
            next_reconciliation,
            gone,
            calm_since,
            next_spread: calm_since,
            next_escape: calm_since,
        }
    }

    /// Runs until the node stops.
    pub fn run(mut self) {
        while self.stop.recv_timeout(LOOK_INTERVAL) == Err(RecvTimeoutError::Timeout) {
            let now = Instant::now();
            self.shared.look_after_parked(now);
            self.store_configuration();
            if now >= self.next_status {
                self.next_status = now + STATUS_INTERVAL;
                self.port.announce(&self.status());
                self.consumers.adopt_pause(&self.port);
                self.look_at_set_ups();
            }
            self.consumers.say(&self.shared, &self.port, now);
            self.reconcile(now);
            self.leave_full_disk(now);
            self.spread_leaders(now);
        }
    }

    /// Whether new work is refused here, because the disk has no room for it.
    fn is_short_of_room(&self) -> bool {
        self.shared.disk.state() != DiskState::Enough
    }

    /// Gives leaderships away that are no use to anyone here: new work is refused while the disk is nearly full, and
    /// nothing is done while the log or the records cannot be written.
    fn leave_full_disk(&mut self, now: Instant) {
        if now < self.next_escape {
            return;
        }
        let (entrances, is_short) = (self.shared.entrances.all(), self.is_short_of_room());
        let is_stuck = |entrance: &&Arc<Entrance>| is_short || entrance.unwritable().is_some();
        for entrance in entrances.values().filter(|entrance| entrance.is_open()).filter(is_stuck) {
            // Who gets none is asked again after a while.
            self.next_escape = now + SPREAD_INTERVAL;
            let contacts = self.port.contacts();
            let can_lead = |contact: &Contact| {
                contact.is_alive(now) && !contact.status.is_short_of_room && has_all(contact, entrance)
            };
            let heir = contacts.iter().filter(|(_, contact)| can_lead(contact));
            if let Some((node, _)) = heir.min_by_key(|(_, contact)| contact.status.leaders()) {
                tracing::warn!(partition = %entrance.id, %node, "the leadership goes to a node whose disk has room");
                self.hand_over(entrance, *node);
            }
        }
    }

    fn hand_over(&self, entrance: &Entrance, node: NodeNumber) {
        let configuration = self.port.configuration();
        if let Some(to) = configuration.and_then(|configuration| configuration.member(node)) {
            drop(self.shared.inbox.send(Inbound::HandOver { partition: entrance.id, to: Some(to) }));
        }
    }

    /// Gives one leadership away when another node that is well has at least two fewer: so leaders that moved because a node
    /// was away come back, one by one, and only when all is calm.
    fn spread_leaders(&mut self, now: Instant) {
        let contacts = self.port.contacts();
        if contacts.values().any(|contact| !contact.is_alive(now)) {
            self.calm_since = now;
        }
        if now.saturating_duration_since(self.calm_since) < CALM_MIN {
            return;
        }
        if now < self.next_spread {
            return;
        }
        // One after the other: the next one when the news of this one is everywhere.
        self.next_spread = now + SPREAD_INTERVAL;
        let entrances = self.shared.entrances.all();
        let own: Vec<_> = entrances.values().filter(|entrance| entrance.is_open()).collect();
        let with_room = contacts.iter().filter(|(_, contact)| !contact.status.is_short_of_room);
        let least = with_room.min_by_key(|(_, contact)| contact.status.leaders());
        let Some((node, contact)) = least.filter(|(_, contact)| contact.status.leaders() + 2 <= own.len()) else {
            return;
        };
        if let Some(entrance) = own.iter().find(|entrance| has_all(contact, entrance)) {
            tracing::info!(partition = %entrance.id, %node, "the leadership goes to a node that leads less");
            self.hand_over(entrance, *node);
        }
    }

    /// Looks whether the nodes are set up alike.
    fn look_at_set_ups(&self) {
        let contacts = self.port.contacts();
        let exporters = self.consumers.sharing.names();
        let own = SetUp { node: self.port.own(), settings: &self.shared.settings, exporters: &exporters };
        let decides = own.decides_settings(&contacts);
        self.shared.decides_settings.store(decides, Ordering::Release);
        let others = SetUp::heard(&contacts).flat_map(|other| other.exporters.iter().cloned()).collect();
        self.consumers.sharing.others_have(&others);
        for sentence in self.port.set_disagreements(own.disagreements(&contacts)) {
            tracing::warn!("{sentence}");
        }
    }

    /// Once a second, and as soon as a node is gone.
    fn reconcile(&mut self, now: Instant) {
        let contacts = self.port.contacts();
        let gone = contacts.into_iter().filter(|(_, contact)| contact.is_gone(now)).map(|(node, _)| node).collect();
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
                self.port.stored(configuration);
            }
            Err(error) => tracing::error!(%error, "the configuration of the cluster cannot be stored; trying again"),
        }
    }

    fn status(&self) -> NodeStatus {
        let replica = |entrance: &Arc<crate::entrance::Entrance>| {
            let mut status = ReplicaStatus::new(entrance.id, entrance.role(), entrance.health());
            let group = entrance.group();
            let replicated = group.as_ref().and_then(everybody_has);
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
            settings: self.shared.settings.clone(),
            replicas: self.shared.entrances.all().values().map(replica).collect(),
            pause: self.consumers.exporters.pause_change().bits(),
            exporters: self.consumers.sharing.names(),
            is_short_of_room: self.is_short_of_room(),
        }
    }
}

/// Whether a node's replica is as good as up to date, so that it may lead.
fn has_all(contact: &Contact, entrance: &Entrance) -> bool {
    let last = entrance.group().map_or(0, |group| group.last_index);
    let theirs = contact.status.replica(entrance.id).filter(|replica| replica.health() == Health::Healthy);
    theirs.is_some_and(|replica| replica.last_index + SPREAD_LAG_ENTRIES_MAX >= last)
}
