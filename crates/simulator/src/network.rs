//! The network between nodes: messages get lost, or arrive late, twice, or out of order.

use std::collections::{BTreeMap, BTreeSet};

use broker::reception::NodeFrame;
use replication::NodeId;

use crate::options::{Milliseconds, Swarm};
use chance::Chance;

/// What travels between nodes, as bytes.
#[derive(Clone, Debug)]
pub enum Parcel {
    /// A frame with a message of Raft.
    Frame(Vec<u8>),
    /// A state, over a separate connection: its frames in order, as many as arrived before the connection broke.
    State {
        /// The frames that arrived.
        frames: Vec<Vec<u8>>,
        /// Whether these are all.
        is_whole: bool,
    },
    /// The leader of a partition says up to which index every member has its log.
    EverybodyHas(protocol::PartitionId, u64),
    /// What nodes say to each other besides, with the number of the sender and that of its life.
    Node(u32, u64, NodeFrame),
}

/// The links between all nodes.
#[derive(Debug)]
pub struct Network {
    chance: Chance,
    /// Directions that are blocked.
    cut: BTreeSet<(NodeId, NodeId)>,
    /// When the last parcel of each connection arrives.
    last_arrivals: BTreeMap<(NodeId, NodeId), Milliseconds>,
    is_faulty: bool,
    loss: u64,
    duplication: u64,
    delay: u64,
    message_milliseconds: Milliseconds,
}

impl Network {
    /// A network with the faults of a run.
    pub fn new(swarm: &Swarm, chance: Chance) -> Self {
        Network {
            chance,
            cut: BTreeSet::new(),
            last_arrivals: BTreeMap::new(),
            is_faulty: true,
            loss: swarm.loss,
            duplication: swarm.duplication,
            delay: swarm.delay,
            message_milliseconds: swarm.message_milliseconds,
        }
    }

    /// From now on everything arrives.
    pub fn heal(&mut self) {
        self.is_faulty = false;
        self.cut.clear();
    }

    /// Nothing passes from one node to another.
    pub fn cut(&mut self, from: NodeId, to: NodeId) {
        self.cut.insert((from, to));
    }

    /// Everything passes again.
    pub fn mend(&mut self, from: NodeId, to: NodeId) {
        self.cut.remove(&(from, to));
    }

    /// Whether anything passes.
    pub fn is_cut(&self, from: NodeId, to: NodeId) -> bool {
        self.cut.contains(&(from, to))
    }

    /// After which times a parcel arrives: never, once or twice.
    pub fn deliveries(&mut self, from: NodeId, to: NodeId) -> Vec<Milliseconds> {
        let mut arrivals = vec![self.latency()];
        if self.is_cut(from, to) || (self.is_faulty && self.chance.per_mille(self.loss)) {
            arrivals.clear();
        } else if self.is_faulty && self.chance.per_mille(self.duplication) {
            arrivals.push(self.latency());
        }
        arrivals
    }

    /// After which times a parcel arrives that goes over a connection, behind what went before it: never, or once. What is
    /// lost is lost with its connection; the next parcel takes a new one.
    pub fn delivery_in_order(&mut self, now: Milliseconds, from: NodeId, to: NodeId) -> Option<Milliseconds> {
        let latency = self.deliveries(from, to).first().copied()?;
        let last = self.last_arrivals.entry((from, to)).or_insert(0);
        *last = (now + latency).max(*last);
        Some(*last - now)
    }

    /// How many of the frames of a state arrive before its connection breaks.
    pub fn frames_that_arrive(&mut self, from: NodeId, to: NodeId, frames: usize) -> usize {
        let breaks = self.is_cut(from, to) || (self.is_faulty && self.chance.per_mille(self.loss));
        if breaks { self.chance.index(frames) } else { frames }
    }

    /// How long the next parcel takes.
    pub fn latency(&mut self) -> Milliseconds {
        let usual = self.chance.within(0..self.message_milliseconds + 1);
        if self.is_faulty && self.chance.per_mille(self.delay) { usual + self.chance.within(0..2_000) } else { usual }
    }
}
