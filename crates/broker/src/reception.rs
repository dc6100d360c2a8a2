//! The way into a node and out of it, without its threads: clients submit, flow control admits or lets wait, commands go to
//! the nodes that lead, requests are answered, and jobs go to streams, by the code of production. It is what a simulation has
//! of a node beside the loops.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crossbeam_channel::Receiver;
use engine::{Engine, FeatureLevel, Push, Reply};
use parking_lot::{Mutex, RwLock};
use peers::{DirectoryId, Identity, Lane, NodeNumber, Receiver as _};
use protocol::{Command, PartitionId, Request};
use replication::NodeId;

use crate::applying::Notes;
use crate::client::Client;
use crate::clock::Clock;
use crate::cluster::{
    ClusterConfiguration, ClusterPort, Empty, Founding, Membership, NodeStatus, Received, Served, kind,
};
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
use crate::status::Role;
use crate::streams::{StreamWindow, Streams};

/// A node that is nothing but its way in and out.
#[derive(Clone)]
pub struct Reception {
    shared: Arc<Shared>,
    inbox: Receiver<Inbound>,
    /// When its own time began. It does not go by itself.
    began: Instant,
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
    /// Which number in the Raft groups the members of the cluster have, this one included; empty for a node alone.
    pub members: BTreeMap<u32, MemberNumber>,
}

/// A member as the others know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemberNumber {
    /// The number of its directory, not 0.
    pub member: NodeId,
    /// How many directories had the place before.
    pub replaced: u32,
}

/// What a node says to another one, besides Raft and snapshots, on its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeFrame {
    /// The number of the node to which it goes.
    pub to: u32,
    kind: u8,
    payload: bytes::Bytes,
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
        let began = Instant::now();
        let port = (!options.members.is_empty()).then(|| port(options, began));
        let disk = Arc::new(Disk::unlimited());
        let flow_control = &options.flow_control;
        let entrance = |id| {
            let limiter = Arc::new(Limiter::new(id, flow_control.clone(), disk.clone()));
            let held = Held::new(flow_control.held_commands, flow_control.inflight_limit_bytes);
            let entrance = Entrance::new(id, limiter, Requests::new(id, options.waiting_requests_limit), held);
            entrance.next_request.store(Shared::first_number(options.life), Ordering::Release);
            entrance.at(options.node, port.clone())
        };
        let partitions = || (1..=options.partition_count).map(PartitionId);
        let shared = Shared {
            node: options.node,
            member: NodeId(u64::from(options.node)),
            life: options.life,
            port: port.clone(),
            cluster_id: Mutex::default(),
            last_completed_change: Mutex::default(),
            global_listeners: Arc::default(),
            settings: Vec::new(),
            decides_settings: Arc::new(AtomicBool::new(true)),
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
        let shared = Arc::new(shared);
        if let Some(port) = &port {
            port.serve(Arc::downgrade(&(shared.clone() as Arc<dyn Served>)));
        }
        Reception { shared, inbox, began }
    }

    /// So much of the node's life has passed.
    pub fn set_now(&self, elapsed: Duration) {
        if let Some(port) = &self.shared.port {
            port.set_now(self.began + elapsed);
        }
    }

    /// From now on these are the members of the cluster.
    pub fn set_members(&self, members: &BTreeMap<u32, MemberNumber>) {
        if let Some(port) = &self.shared.port {
            port.configure(configuration(members, self.shared.partition_count));
        }
    }

    /// What goes to other nodes.
    pub fn frames(&self) -> Vec<NodeFrame> {
        let frames = self.shared.port.iter().flat_map(|port| port.take_frames());
        // Nothing is founded here.
        let is_taken = |kind| matches!(kind, kind::COMMAND | kind::REFUSAL | kind::STATUS);
        let taken = frames.filter(|frame| is_taken(frame.kind));
        taken.map(|frame| NodeFrame { to: frame.to.0, kind: frame.kind, payload: frame.payload }).collect()
    }

    /// Something came from another node, in its life of this number.
    pub fn arrived(&self, from: u32, life: u64, frame: &NodeFrame) {
        let Some(port) = &self.shared.port else { return };
        let (from, received) = (NodeNumber(from), Received(port.clone()));
        let known = port.contacts().get(&from).and_then(|contact| Some(contact.identity.as_ref()?.boot));
        if known.is_some_and(|known| known > life) {
            // The connections of an earlier life are closed.
            return;
        }
        if known.is_none_or(|known| known < life) {
            received.connected(&identity(from, life), Lane::Requests);
        }
        received.received(from, Lane::Requests, frame.kind, frame.payload.clone());
    }

    /// Says to the other nodes that this one is there. For several times a second.
    pub fn announce(&self) {
        if let Some(port) = &self.shared.port {
            port.announce(&NodeStatus::default());
        }
    }

    /// Refuses commands that have waited for a leader for too long, and sends the others on. For many times a second.
    pub fn look_after_parked(&self) {
        if let Some(port) = &self.shared.port {
            self.shared.look_after_parked(port.now());
        }
    }

    /// A command of the node itself goes to the leader of a partition, or gets lost.
    pub fn submit_to(&self, partition: PartitionId, command: &Command) {
        self.shared.submit_to(partition, command);
    }

    /// The state of a partition was replaced by one that skips batches.
    pub fn replaced(&self, partition: PartitionId, engine: &Engine) {
        let skipped = self.entrance(partition).requests.skipped();
        self.shared.give_back_skipped(partition, &skipped, engine);
    }

    /// Requests that were given to leaders of terms before this one, and are neither answered, applied nor lost.
    pub fn sent_before(&self, partition: PartitionId, term: u64) -> Vec<u64> {
        self.entrance(partition).requests.sent_before(term)
    }

    /// What a gateway has of the node.
    pub fn client(&self) -> Client {
        Client::new(self.shared.clone())
    }

    /// The next command that was taken in and goes to the log.
    pub fn take(&self) -> Option<Taken> {
        let command = |inbound| match inbound {
            Inbound::Command(QueuedCommand { partition, bytes, permit, .. }) => {
                Some(Taken { partition, bytes, permit })
            }
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
        self.entrance(partition).end_leadership();
    }

    /// The node follows, or looks for, the leader of a term.
    pub fn follow(&self, partition: PartitionId, leader: Option<NodeId>, term: u64) {
        let leader = leader.and_then(|member| self.shared.port.as_ref()?.node(member)).map(|node| node.0);
        self.entrance(partition).follow(&self.shared, leader, term);
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
        self.entrance(partition).begin_leadership(&self.shared, leadership);
    }

    /// The node does not lead the partition any more.
    pub fn step_down(&self, partition: PartitionId) {
        self.entrance(partition).set_role(Role::Follower);
    }

    /// Compares the streams of the node with the state of a partition, and gives back what belongs to nodes that are gone, if
    /// this one leads. For about once a second.
    pub fn reconcile(&self, partition: PartitionId, is_leading: bool, engine: &Engine) {
        self.shared.reconcile(partition, is_leading, engine);
    }

    /// Hands a job to its stream, or gives it back when the stream is gone.
    pub fn push(&self, partition: PartitionId, push: Push) {
        self.shared.streams.push(partition, push);
    }

    /// Answers a request of this node.
    pub fn answer(&self, partition: PartitionId, reply: Reply) {
        self.shared.answer(&self.entrance(partition), reply);
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

/// A port whose frames the caller carries, of a member of a cluster that was founded.
fn port(options: &ReceptionOptions, began: Instant) -> Arc<ClusterPort> {
    let own = NodeNumber(options.node);
    let configuration = configuration(&options.members, options.partition_count);
    let directory = configuration.members.get(&own).map(|membership| membership.directory);
    let empty = Empty {
        directory: directory.unwrap_or(DirectoryId(NonZeroU64::MIN)),
        partition_count: options.partition_count,
        first_level: FeatureLevel::NEWEST,
        members: configuration.members.keys().copied().collect(),
    };
    let others: Vec<_> = configuration.members.keys().copied().filter(|node| *node != own).collect();
    let founding = Founding::new(own, empty, configuration.cluster_id.clone(), Some(configuration));
    ClusterPort::kept(own, others.into_iter(), founding, began)
}

fn configuration(members: &BTreeMap<u32, MemberNumber>, partition_count: u16) -> ClusterConfiguration {
    let directory = |member: NodeId| DirectoryId(NonZeroU64::new(member.0).unwrap_or(NonZeroU64::MIN));
    let membership = |of: &MemberNumber| Membership { directory: directory(of.member), replaced: of.replaced };
    let members: BTreeMap<_, _> = members.iter().map(|(node, of)| (NodeNumber(*node), membership(of))).collect();
    ClusterConfiguration {
        cluster_id: "simulated".to_owned(),
        revision: 1,
        partition_count,
        first_level: FeatureLevel::NEWEST,
        founders: members.values().map(|membership| membership.directory).collect(),
        members,
    }
}

/// Who a node says that it is, when a connection to it is made.
fn identity(node: NodeNumber, life: u64) -> Identity {
    Identity {
        node,
        directory: DirectoryId(NonZeroU64::MIN),
        boot: life,
        process: life,
        cluster: "simulated".to_owned(),
        build: String::new(),
        newest_level: FeatureLevel::NEWEST.number(),
    }
}
