//! The way into a node and out of it, without its threads: clients submit, flow control admits or lets wait, requests are
//! answered, and jobs go to streams, by the code of production. It is what a simulation has of a node beside the loops.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crossbeam_channel::Receiver;
use engine::{Engine, FeatureLevel, Push, Reply};
use parking_lot::{Mutex, RwLock};
use protocol::{PartitionId, Request};
use replication::NodeId;

use crate::applying::Notes;
use crate::client::Client;
use crate::clock::Clock;
use crate::disk::Disk;
use crate::entrance::Entrance;
use crate::flow_control::{FlowControlOptions, Limiter, Permit};
use crate::held::Held;
use crate::inbox::{Inbound, QueuedCommand};
use crate::member::Member;
use crate::polls::Polls;
use crate::record_log::RecordLogError;
use crate::requests::Requests;
use crate::shared::Shared;
use crate::status::{Health, Role};
use crate::streams::{StreamWindow, Streams};

/// A node that is nothing but its way in and out.
#[derive(Clone)]
pub struct Reception {
    shared: Arc<Shared>,
    inbox: Receiver<Inbound>,
}

/// How a reception is set up.
#[derive(Debug, Clone)]
pub struct ReceptionOptions {
    /// Number of the node.
    pub node: u32,
    /// Number of partitions.
    pub partition_count: u16,
    /// The number of this life of the node.
    pub life: u64,
    /// The limits of each partition.
    pub flow_control: FlowControlOptions,
    /// Requests of a partition that may wait for an answer.
    pub waiting_requests_limit: usize,
    /// What job streams may hold.
    pub stream_window: StreamWindow,
}

/// A command that was taken in, for the log.
#[derive(Debug)]
pub struct Taken {
    /// Where it goes.
    pub partition: PartitionId,
    /// The encoded command.
    pub bytes: Vec<u8>,
    /// Its share of the partition's limits.
    pub permit: Option<Permit>,
}

impl Reception {
    /// One whose partitions have no leader here yet, on a disk that never fills up.
    pub fn new(options: &ReceptionOptions) -> Self {
        let (sender, inbox) = crossbeam_channel::unbounded();
        let disk = Arc::new(Disk::unlimited());
        let flow_control = &options.flow_control;
        let entrance = |id| {
            let limiter = Arc::new(Limiter::new(id, flow_control.clone(), disk.clone()));
            let held = Held::new(flow_control.held_commands, flow_control.inflight_limit_bytes);
            let entrance = Entrance::new(id, limiter, Requests::new(id, options.waiting_requests_limit), held);
            entrance.next_request.store(Shared::first_number(options.life), Ordering::Release);
            entrance.at(options.node, None)
        };
        let partitions = || (1..=options.partition_count).map(PartitionId);
        let shared = Shared {
            node: options.node,
            member: NodeId(u64::from(options.node)),
            life: options.life,
            port: None,
            cluster_id: Mutex::default(),
            last_completed_change: Mutex::default(),
            global_listeners: Arc::default(),
            members: Mutex::new(vec![Member::of(options.node, FeatureLevel::NEWEST)]),
            newest_feature_level: FeatureLevel::NEWEST,
            advertised_address: Mutex::default(),
            clock: Arc::new(Clock::new(false)),
            partition_count: options.partition_count,
            entrances: partitions().map(entrance).collect(),
            disk,
            notes: Notes::default(),
            inbox: sender,
            polls: Polls::default(),
            streams: Streams::new(partitions(), options.stream_window),
            listeners: RwLock::default(),
            command_limit_bytes: 4 << 20,
            next_stream: AtomicU64::new(Shared::first_number(options.life)),
            next_partition: AtomicU64::new(0),
            next_sender: AtomicU64::new(1),
            unapplied_bytes: AtomicUsize::new(0),
            stopping: AtomicBool::new(false),
            crashed: AtomicBool::new(false),
            failure: Mutex::default(),
        };
        Reception { shared: Arc::new(shared), inbox }
    }

    /// What a gateway has of the node.
    pub fn client(&self) -> Client {
        Client::new(self.shared.clone())
    }

    /// The next command that was taken in and goes to the log.
    pub fn take(&self) -> Option<Taken> {
        let command = |inbound| match inbound {
            Inbound::Command(QueuedCommand { partition, bytes, permit }) => Some(Taken { partition, bytes, permit }),
            _ => None,
        };
        self.inbox.try_iter().find_map(command)
    }

    fn entrance(&self, partition: PartitionId) -> Arc<Entrance> {
        self.shared.entrances.of(partition)
    }

    /// Whether commands of clients come in.
    pub fn is_open(&self, partition: PartitionId) -> bool {
        self.entrance(partition).is_open()
    }

    /// The number of the leadership that comes next, or is under way.
    pub fn leadership(&self, partition: PartitionId) -> u64 {
        self.entrance(partition).leadership()
    }

    /// The leadership has ended, or ends before it began.
    pub fn close(&self, partition: PartitionId) {
        self.entrance(partition).close();
    }

    /// The node follows, or looks for, the leader of a term.
    pub fn follow(&self, partition: PartitionId, leader: Option<u32>, term: u64) {
        self.entrance(partition).set_lead(term, leader);
        self.entrance(partition).set_role(Role::Follower);
    }

    /// The node leads in a term, as soon as everything before is applied.
    pub fn elected(&self, partition: PartitionId, term: u64) {
        self.entrance(partition).set_lead(term, Some(self.shared.node));
    }

    /// The first entry of a term is about to be applied: nothing of earlier terms follows.
    pub fn began(&self, partition: PartitionId, term: u64) {
        self.entrance(partition).requests.lost_before(term);
    }

    /// The command of this request is applied, and its answer comes with a later one.
    pub fn awaits(&self, partition: PartitionId, request: Request) {
        if request.node == self.shared.node {
            self.entrance(partition).requests.applied(request.number);
        }
    }

    /// Streams are registered, and commands may come in for a leadership, unless it has ended meanwhile.
    pub fn lead(&self, partition: PartitionId, leadership: u64) {
        self.entrance(partition).set_health(Health::Healthy);
        self.entrance(partition).open(leadership);
    }

    /// The node does not lead the partition any more.
    pub fn step_down(&self, partition: PartitionId) {
        self.entrance(partition).set_role(Role::Follower);
    }

    /// Compares the streams of the node with the state of a partition.
    pub fn reconcile(&self, partition: PartitionId, engine: &Engine) {
        self.shared.streams.reconcile(&self.shared, partition, engine);
    }

    /// Hands a job to its stream, or gives it back when the stream is gone.
    pub fn push(&self, partition: PartitionId, push: Push) {
        self.shared.streams.push(partition, push);
    }

    /// Answers a request of this node.
    pub fn answer(&self, partition: PartitionId, reply: Reply) {
        self.entrance(partition).answer(self.shared.node, reply);
    }

    /// The records of a batch were written: its share of the limits is free again.
    pub fn written(&self, partition: PartitionId, permit: Option<Permit>) {
        self.entrance(partition).written(permit, Instant::now(), Duration::ZERO, &self.shared.inbox);
    }

    /// Records were written, or could not be, which is tried again.
    pub fn records_flushed(&self, partition: PartitionId, result: Result<(), &RecordLogError>) {
        self.entrance(partition).records_flushed(result, &self.shared.inbox);
    }

    /// How much is changed and not in a checkpoint.
    pub fn unsaved(&self, partition: PartitionId, overlay_bytes: u64) {
        self.entrance(partition).limiter.set_state_bytes(overlay_bytes);
    }
}
