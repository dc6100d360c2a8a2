//! What all threads of a node share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use crossbeam_channel::Sender;
use parking_lot::{Mutex, RwLock};
use peers::NodeNumber;
use protocol::{GlobalListenerValue, NUMBER_BITS, PartitionId};
use replication::NodeId;

use crate::applying::Notes;
use crate::clock::Clock;
use crate::cluster::ClusterPort;
use crate::disk::Disk;
use crate::entrance::Entrance;
use crate::entrances::Entrances;
use crate::inbox::Inbound;
use crate::member::Member;
use crate::polls::Polls;
use crate::status::{Health, Role};
use crate::streams::Streams;
use crate::submit_error::SubmitError;
use engine::{Engine, FeatureLevel, JobsAvailable};

/// Called when a partition announces available jobs.
pub type JobsAvailableListener = Arc<dyn Fn(PartitionId, &JobsAvailable) + Send + Sync>;

/// A replica that lacks more entries of its leader serves nobody: it answers too late.
const SERVED_LAG_ENTRIES_MAX: u64 = 10_000;

pub(crate) struct Shared {
    pub node: u32,
    /// The number of this node's replicas in their groups.
    pub member: NodeId,
    /// The number of this life of the node, above the numbers of its requests and streams.
    pub life: u64,
    /// The way to the other nodes; none of a node alone.
    pub port: Option<Arc<ClusterPort>>,
    /// What the cluster is called: what the data directory says, until a partition of it is there that knows.
    pub cluster_id: Mutex<String>,
    /// The last change of the cluster that was completed since the node runs.
    pub last_completed_change: Mutex<Option<u64>>,
    /// The global listeners that the configuration of the cluster defines.
    pub global_listeners: Arc<[GlobalListenerValue]>,
    /// Checksums of the settings that become part of the state of partitions.
    pub settings: Vec<u32>,
    /// Whether those of this node may become so.
    pub decides_settings: Arc<AtomicBool>,
    /// The nodes of the cluster, as they announced themselves.
    pub members: Mutex<Vec<Member>>,
    /// The newest feature level that this node knows.
    pub newest_feature_level: FeatureLevel,
    /// Host and port that clients reach the gateway at; known once the gateway listens.
    pub advertised_address: Mutex<(String, u16)>,
    pub clock: Arc<Clock>,
    pub disk: Arc<Disk>,
    /// What the partitions are applying.
    pub notes: Notes,
    /// Number of partitions of the cluster, which are numbered from 1.
    pub partition_count: u16,
    /// Of the partitions that this node holds.
    pub entrances: Entrances,
    pub inbox: Sender<Inbound>,
    pub streams: Streams,
    pub polls: Polls,
    pub listeners: RwLock<Vec<JobsAvailableListener>>,
    pub command_limit_bytes: usize,
    /// Never used before, in no life of the node.
    pub next_stream: AtomicU64,
    pub next_partition: AtomicU64,
    /// The node itself is sender 0.
    pub next_sender: AtomicU64,
    /// Bytes of committed batches that the processing threads have not applied yet.
    pub unapplied_bytes: AtomicUsize,
    /// The node takes no more commands.
    pub stopping: AtomicBool,
    /// All threads end at once, without finishing anything, as if the process were killed.
    pub crashed: AtomicBool,
    /// Why the node cannot continue.
    pub failure: Mutex<Option<String>>,
}

impl Shared {
    /// The node cannot continue: nothing is acknowledged from here on, and its process should be started again.
    pub fn fail(&self, reason: &str) {
        tracing::error!(reason, "all partitions of this node stop; start the node again");
        self.failure.lock().get_or_insert_with(|| reason.to_owned());
        for entrance in self.entrances.all().values() {
            entrance.set_role(Role::Inactive);
            entrance.set_health(Health::Dead);
            let (partition, reason) = (entrance.id, "its node failed and has to be started again");
            entrance.fail_all(&SubmitError::Unavailable { partition, reason: reason.into() });
        }
    }

    /// Whether clients of this node are served by a partition: it has a leader, and if that is another node, the replica here,
    /// from which the answers come, is not far from it.
    pub fn is_served(&self, entrance: &Entrance) -> bool {
        if entrance.is_open() {
            return true;
        }
        let leader = entrance.lead().leader.filter(|node| *node != self.node);
        let (Some(leader), Some(port), Some(group)) = (leader, &self.port, entrance.group()) else { return false };
        let contacts = port.contacts();
        let theirs = contacts.get(&NodeNumber(leader)).and_then(|contact| contact.status.replica(entrance.id).copied());
        let lag = theirs.map(|theirs| theirs.last_index.saturating_sub(group.handed_out));
        lag.is_some_and(|lag| lag <= SERVED_LAG_ENTRIES_MAX) && group.membership.voters.contains(&self.member)
    }

    /// Whether another node says that its replica of a partition has stopped: nothing of the partition reaches its clients.
    pub fn has_stopped_at(&self, node: u32, partition: PartitionId) -> bool {
        let Some(port) = self.port.as_ref().filter(|_| node != self.node) else { return false };
        let contacts = port.contacts();
        let replica = contacts.get(&NodeNumber(node)).and_then(|contact| contact.status.replica(partition));
        replica.is_some_and(|replica| replica.health().has_stopped())
    }

    /// The life of a node as far as it is known, with 0 for one that nothing is known of; none when the node is gone.
    pub fn life_at(&self, node: u32) -> Option<u64> {
        match &self.port {
            _ if node == self.node => Some(self.life),
            Some(port) => port.life(node),
            None => None,
        }
    }

    /// The first number of requests and streams in a life.
    pub fn first_number(life: u64) -> u64 {
        life << NUMBER_BITS | 1
    }

    /// What a partition's state says of the cluster holds for the node.
    pub fn adopt_cluster(&self, engine: &Engine) {
        let Some(cluster) = engine.cluster() else { return };
        let mut known = self.cluster_id.lock();
        if **known != *cluster.cluster_id.as_str() {
            tracing::info!(cluster = cluster.cluster_id.as_str(), "the partitions belong to this cluster");
            *known = cluster.cluster_id.to_string();
        }
    }

    /// Whether all threads must end at once.
    pub fn is_crashed(&self) -> bool {
        self.crashed.load(Ordering::Relaxed)
    }

    /// The way into a partition.
    pub fn entrance(&self, partition: PartitionId) -> Result<Arc<Entrance>, SubmitError> {
        self.entrances.get(partition).ok_or_else(|| match (1..=self.partition_count).contains(&partition.0) {
            true => SubmitError::Unavailable { partition, reason: "this node does not hold it".into() },
            false => SubmitError::NoSuchPartition { partition, partition_count: self.partition_count },
        })
    }

    /// A node without threads, and the receiver of what is submitted.
    #[cfg(test)]
    pub fn for_test(partition_count: u16, window: u32) -> (Arc<Shared>, crossbeam_channel::Receiver<Inbound>) {
        use crate::flow_control::{FlowControlOptions, Limiter};
        use crate::held::Held;
        use crate::requests::Requests;

        let (inbox, receiver) = crossbeam_channel::unbounded();
        let disk = Arc::new(Disk::measured(u64::MAX, 1 << 30, 0));
        let entrance = |id| {
            let options = FlowControlOptions::default();
            let held = Held::new(options.held_commands, options.inflight_limit_bytes);
            let limiter = Arc::new(Limiter::new(id, options, disk.clone()));
            let entrance = Entrance::new(id, limiter, Requests::new(id, 1_000), held).at(7, None);
            entrance.set_role(Role::Leader);
            entrance.set_health(Health::Healthy);
            entrance
        };
        let shared = Shared {
            node: 7,
            member: NodeId(7),
            life: 0,
            port: None,
            cluster_id: Mutex::new("test".to_owned()),
            last_completed_change: Mutex::default(),
            global_listeners: Arc::default(),
            settings: Vec::new(),
            decides_settings: Arc::new(AtomicBool::new(true)),
            members: Mutex::new(vec![Member::of(7, FeatureLevel::TEST)]),
            newest_feature_level: FeatureLevel::TEST,
            advertised_address: Mutex::new(("localhost".to_owned(), 26_500)),
            clock: Arc::new(Clock::new(true)),
            partition_count,
            entrances: (1..=partition_count).map(PartitionId).map(entrance).collect(),
            disk,
            notes: Notes::default(),
            inbox,
            polls: Polls::default(),
            streams: Streams::new(
                (1..=partition_count).map(PartitionId),
                crate::streams::StreamWindow { jobs: window, ..crate::streams::StreamWindow::default() },
            ),
            listeners: RwLock::default(),
            command_limit_bytes: 4 << 20,
            next_stream: AtomicU64::new(1),
            next_partition: AtomicU64::new(0),
            next_sender: AtomicU64::new(1),
            unapplied_bytes: AtomicUsize::new(0),
            stopping: AtomicBool::new(false),
            crashed: AtomicBool::new(false),
            failure: Mutex::default(),
        };
        (Arc::new(shared), receiver)
    }
}
