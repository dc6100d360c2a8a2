//! One run: a cluster and its clients, first with faults, then without.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use broker::reception::MemberNumber;
use protocol::{PartitionId, Request, StreamId};
use replication::{MembershipChange, NodeId, Role};

use crate::clients::{Ask, Clients};
use crate::network::Network;
use crate::node::{EPOCH, Node, SPARE, Surroundings, founders, members};
use crate::options::{Milliseconds, Swarm};
use crate::oracle::{self, Oracles, left_over};
use crate::schedule::{Event, Life, Schedule};
use chance::Chance;

/// Time between two acts of the clients.
const ACT_INTERVAL: Milliseconds = 40;
/// Time between two draws of faults.
const FAULTS_INTERVAL: Milliseconds = 250;
/// So many entries may lack a learner that becomes a voter.
const LEARNED_BEHIND_MAX: u64 = 50;
/// A client that has no answer after so long counts the outcome as unknown.
const CLIENT_TIMEOUT: Milliseconds = 15_000;
/// Time after the last fault in which everything that can end must have ended.
const LIVENESS_LIMIT: Milliseconds = 180_000;
/// As long as less is left after each of these times, an end of very many small steps may take longer ...
const PROGRESS_INTERVAL: Milliseconds = 30_000;
/// ... but no longer than this. What does things again and again comes to an end much later, or never.
const PROGRESS_LIMIT: Milliseconds = 360_000;
/// Time after the last fault in which the cluster has found its leaders and caught up with its clocks.
const RECOVERY_LIMIT: Milliseconds = 60_000;
/// Time between two looks at whether everything has ended.
const LOOK_INTERVAL: Milliseconds = 500;

/// What a run was like.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// A hash over everything that happened.
    pub trace_hash: u64,
    /// Virtual time that passed.
    pub virtual_milliseconds: Milliseconds,
    /// Batches that were committed.
    pub batches: u64,
    /// Commands of each kind that were accepted and refused.
    pub answers: BTreeMap<&'static str, (u64, u64)>,
    /// Instances that were created.
    pub instances: u64,
    /// Faults that happened.
    pub faults: u64,
}

struct Simulation {
    seed: u64,
    swarm: Swarm,
    schedule: Schedule,
    network: Network,
    oracles: Oracles,
    chance: Chance,
    clients: Clients,
    nodes: Vec<Node>,
    faults: u64,
    /// The one whose disk may be damaged: with two damaged disks of three, data may be lost for good.
    damageable: NodeId,
    replaced: Option<NodeId>,
}

/// Runs a seed in an empty directory.
///
/// # Panics
/// When a promise is broken; the message says which.
pub fn run(seed: u64, swarm: Swarm, directory: &Path) -> Report {
    let mut simulation = Simulation::new(seed, swarm, directory);
    simulation.start();
    simulation.until(simulation.swarm.faults_for);
    simulation.heal();
    simulation.finish();
    if !simulation.is_lost() {
        simulation.check();
    }
    Report {
        trace_hash: simulation.oracles.trace_hash(),
        virtual_milliseconds: simulation.schedule.now(),
        batches: simulation.oracles.batches(),
        answers: simulation.clients.into_answers(),
        instances: simulation.oracles.accounting().created(),
        faults: simulation.faults,
    }
}

impl Simulation {
    fn new(seed: u64, swarm: Swarm, directory: &Path) -> Self {
        let mut chance = Chance::new(seed);
        let node = |id: NodeId| Node::new(id, directory.join(format!("node-{id}")), members(&swarm));
        let mut nodes: Vec<Node> = founders(&swarm).iter().copied().map(node).collect();
        if swarm.replaces_node {
            nodes.push(node(SPARE));
        }
        Simulation {
            seed,
            schedule: Schedule::default(),
            network: Network::new(&swarm, chance.fork()),
            oracles: Oracles::new(swarm.partitions, swarm.retention_bytes > 0),
            clients: Clients::new(&swarm, chance.fork()),
            damageable: *chance.choose(founders(&swarm)),
            replaced: None,
            chance,
            swarm,
            nodes,
            faults: 0,
        }
    }

    fn start(&mut self) {
        for id in self.nodes.iter().map(|node| node.id).collect::<Vec<_>>() {
            self.schedule.after(0, Event::Start(id));
        }
        self.schedule.after(FAULTS_INTERVAL, Event::Faults);
        self.schedule.after(500, Event::Act);
    }

    /// Lets everything happen until a time.
    fn until(&mut self, time: Milliseconds) {
        while self.schedule.now() < time
            && let Some(event) = self.schedule.next()
        {
            self.happen(event);
        }
    }

    /// Calls a node with its surroundings.
    fn with<T>(&mut self, id: NodeId, call: impl FnOnce(&mut Node, &mut Surroundings<'_>) -> T) -> Option<T> {
        let node = self.nodes.iter_mut().find(|node| node.id == id)?;
        let mut surroundings = Surroundings {
            schedule: &mut self.schedule,
            network: &mut self.network,
            oracles: &mut self.oracles,
            chance: &mut self.chance,
            swarm: &self.swarm,
        };
        node.set_now(surroundings.schedule.now());
        Some(call(node, &mut surroundings))
    }

    /// Calls a node if it still lives the same life; later, if it stands still.
    fn in_life(&mut self, life: Life, event: Event, call: impl FnOnce(&mut Node, &mut Surroundings<'_>, Event)) {
        let now = self.schedule.now();
        let node = self.nodes.iter().find(|node| node.id == life.node);
        let Some(node) = node.filter(|node| node.life() == life && node.is_running()) else { return };
        if node.paused_until > now {
            self.schedule.after(node.paused_until - now, event);
        } else {
            self.with(life.node, |node, surroundings| call(node, surroundings, event));
        }
    }

    fn happen(&mut self, event: Event) {
        match &event {
            Event::Tick(life) => self.in_life(*life, event, |node, surroundings, _| node.tick(surroundings)),
            Event::Work(life) => self.in_life(*life, event, |node, surroundings, _| node.round(surroundings)),
            Event::RoundDone(life, _) => self.in_life(*life, event, |node, surroundings, event| {
                let Event::RoundDone(_, news) = event else { return };
                node.round_done(news, surroundings);
            }),
            Event::Process(life) => self.in_life(*life, event, |node, surroundings, _| node.process(surroundings)),
            Event::Export(life) => self.in_life(*life, event, |node, surroundings, _| node.export(surroundings)),
            Event::WriteCheckpoint(life, partition) => {
                let partition = *partition;
                self.in_life(*life, event, |node, surroundings, _| node.write_checkpoint(partition, surroundings));
            }
            Event::CheckpointWritten(life, partition) => {
                let partition = *partition;
                self.in_life(*life, event, |node, surroundings, _| node.checkpoint_written(partition, surroundings));
            }
            Event::StateSent { life, group, to, delivered } => {
                let (group, to, delivered) = (*group, *to, *delivered);
                self.in_life(*life, event, |node, surroundings, _| {
                    node.state_sent(group, to, delivered, surroundings);
                });
            }
            _ => self.happen_anywhere(event),
        }
    }

    fn happen_anywhere(&mut self, event: Event) {
        match event {
            Event::Arrival { from, to, parcel } => {
                let now = self.schedule.now();
                let paused = self.nodes.iter().find(|node| node.id == to).map_or(0, |node| node.paused_until);
                if paused > now {
                    self.schedule.after(paused - now, Event::Arrival { from, to, parcel });
                } else {
                    self.with(to, |node, surroundings| node.arrive(from, parcel, surroundings));
                }
            }
            Event::Start(id) => self.start_node(id),
            Event::Mend(from, to) => self.network.mend(from, to),
            Event::Room(id) => {
                self.with(id, |node, _| node.disk.set_full(false));
            }
            Event::Works(id) => {
                self.with(id, |node, _| {
                    node.disk.set_fails_writes(false);
                    node.disk.set_fails_opens(false);
                });
            }
            Event::Fast(id) => {
                self.with(id, |node, _| node.is_slow = false);
            }
            Event::Faults => self.draw_faults(),
            Event::Act => {
                let asks = self.clients.act(self.oracles.accounting());
                asks.into_iter().for_each(|ask| self.send(ask));
                self.schedule.after(ACT_INTERVAL, Event::Act);
            }
            Event::Unfinished(job, event) => self.clients.adopt(job, event),
            Event::Request { to, partition, number, bytes } => {
                let taken = self.with(to, |node, surroundings| node.request(partition, number, &bytes, surroundings));
                if taken != Some(true) {
                    self.clients.answered(number, None);
                }
            }
            Event::Answer(number, reply) => self.clients.answered(number, reply.as_deref()),
            _ => {}
        }
    }

    /// The nodes that clients know: all members, and of a node alone itself, as long as it leads.
    fn gateways(&self, partition: PartitionId) -> Vec<NodeId> {
        let is_member = |node: &&Node| {
            node.is_running() && Some(node.id) != self.replaced && (node.id != SPARE || self.replaced.is_some())
        };
        let is_gateway =
            |node: &&Node| if self.swarm.voters > 1 { is_member(node) } else { node.is_leading(partition) };
        self.nodes.iter().filter(is_gateway).map(|node| node.id).collect()
    }

    /// Sends a command to any node.
    fn send(&mut self, ask: Ask) {
        let gateways = self.gateways(ask.partition);
        if gateways.is_empty() {
            return self.clients.answered(ask.number, None);
        }
        let to = *self.chance.choose(&gateways);
        let mut command = ask.command;
        self.oracles.asked(ask.number, &command);
        let node = u32::try_from(to.0).expect("few nodes");
        command.request = Some(Request { node, number: ask.number });
        let bytes = protocol::encode_to_vec(&command);
        if self.swarm.voters > 1 {
            self.schedule.after(CLIENT_TIMEOUT, Event::Answer(ask.number, None));
        }
        let latency = self.network.latency();
        let event = Event::Request { to, partition: ask.partition, number: ask.number, bytes };
        self.schedule.after(latency, event);
    }

    fn start_node(&mut self, id: NodeId) {
        if id == SPARE && self.swarm.loses_disk && self.replaced.is_none() {
            return;
        }
        let seed = self.seed;
        let has_faults = self.oracles.has_faults();
        let outcome = self.with(id, |node, surroundings| {
            if node.is_running() || node.refuses.is_some() {
                return Ok(());
            }
            node.start(seed, surroundings)
        });
        let Some(Err(reason)) = outcome else { return };
        let Some(node) = self.nodes.iter_mut().find(|node| node.id == id) else { return };
        let is_interrupted = node.disk.is_crashed() || crate::disk::passes(&reason);
        self.oracles.trace("does not start", &[id.0], "");
        if is_interrupted && has_faults {
            // The power failed again, or the disk cannot be used for now: it will start later.
            let settled = node.disk.settle(crate::disk::Tearing::Mixes, &mut self.chance);
            settled.expect("the scratch directory is writable");
            self.schedule.after(self.chance.within(100..2_000), Event::Start(id));
            return;
        }
        assert!(node.disk.explains(&reason), "node {id} does not start, and no damage there explains it: {reason}");
        let names_it = ["damaged", "cannot be read", "missing", "ahead of"].iter().any(|word| reason.contains(word))
            || reason.contains("its log ends");
        assert!(names_it, "node {id} does not say what is damaged: {reason}");
        tracing::debug!(%id, reason, "the node refuses to start");
        node.refuses = Some(reason);
    }

    fn draw_faults(&mut self) {
        if !self.oracles.has_faults() {
            return;
        }
        self.schedule.after(FAULTS_INTERVAL, Event::Faults);
        for id in self.nodes.iter().map(|node| node.id).collect::<Vec<_>>() {
            self.draw_faults_of(id);
        }
        self.draw_cuts();
        if self.swarm.replaces_node && self.schedule.now() > self.swarm.faults_for / 3 {
            self.replace();
        }
    }

    /// A probability for each second, for one of the draws in it.
    fn drawn(&mut self, per_mille: u64) -> bool {
        let happens = per_mille > 0 && self.chance.below(1_000 * 1_000 / FAULTS_INTERVAL) < per_mille;
        self.faults += u64::from(happens);
        happens
    }

    fn draw_faults_of(&mut self, id: NodeId) {
        let swarm = self.swarm.clone();
        if self.drawn(swarm.crash) {
            self.crash(id, &swarm);
        }
        if self.drawn(swarm.pause) {
            let until = self.schedule.now() + self.chance.within(100..8_000);
            self.with(id, |node, _| node.paused_until = until);
        }
        if self.drawn(swarm.full_disk) {
            self.with(id, |node, _| node.disk.set_full(true));
            self.schedule.after(self.chance.within(100..5_000), Event::Room(id));
        }
        if self.drawn(swarm.failed_writes) {
            self.with(id, |node, _| node.disk.set_fails_writes(true));
            self.schedule.after(self.chance.within(10..3_000), Event::Works(id));
        }
        if self.drawn(swarm.failed_opens) {
            self.with(id, |node, _| node.disk.set_fails_opens(true));
            self.schedule.after(self.chance.within(10..3_000), Event::Works(id));
        }
        if self.drawn(swarm.slow_disk) {
            self.with(id, |node, _| node.is_slow = true);
            self.schedule.after(self.chance.within(500..5_000), Event::Fast(id));
        }
        if self.drawn(swarm.failed_sync) {
            self.with(id, |node, _| node.disk.fail_next_sync());
        }
        if id == self.damageable && self.drawn(swarm.damage) {
            self.damage(id);
        }
        if self.drawn(swarm.clock_jump) {
            let jump = i64::try_from(self.chance.below(swarm.clock_jump_milliseconds)).unwrap_or(0);
            let jump = if self.chance.one_in(2) { jump } else { -jump };
            self.oracles.clock_is_ahead(jump);
            self.with(id, |node, _| node.clock_offset = jump);
        }
        if self.drawn(swarm.transfer) {
            let to = *self.chance.choose(founders(&swarm));
            let partition = PartitionId(1 + u16::try_from(self.chance.below(swarm.partitions.into())).expect("few"));
            self.with(id, |node, surroundings| node.transfer(partition, to, surroundings));
        }
    }

    fn crash(&mut self, id: NodeId, swarm: &Swarm) {
        let in_operation = self.chance.per_mille(swarm.crash_in_operation);
        let (operations, pause) = (self.chance.within(1..30), self.chance.within(50..6_000));
        self.with(id, |node, surroundings| {
            if !node.is_running() {
                return;
            }
            if in_operation {
                // The node notices when the next write fails, and starts again.
                node.disk.crash_after(operations);
                return;
            }
            surroundings.oracles.trace("crashes", &[id.0], "");
            node.stop(surroundings);
            surroundings.schedule.after(pause, Event::Start(id));
        });
    }

    fn damage(&mut self, id: NodeId) {
        self.with(id, |node, surroundings| {
            let files = node.log_files();
            if files.exists()
                && let Some(what) = node.disk.damage(&files, surroundings.chance).expect("the scratch directory")
            {
                tracing::debug!(%id, what, "the disk was damaged");
            }
        });
    }

    fn draw_cuts(&mut self) {
        if !self.drawn(self.swarm.partition) {
            return;
        }
        let founders = founders(&self.swarm);
        let (one, other) = (*self.chance.choose(founders), *self.chance.choose(founders));
        let one_way = self.chance.per_mille(self.swarm.one_way);
        // Either one link, or all links of a node.
        let others: Vec<NodeId> =
            if self.chance.one_in(2) { vec![other] } else { self.nodes.iter().map(|node| node.id).collect() };
        let pause = self.chance.within(200..8_000);
        for other in others.into_iter().filter(|other| *other != one) {
            for (from, to) in if one_way { vec![(one, other)] } else { vec![(one, other), (other, one)] } {
                self.network.cut(from, to);
                self.schedule.after(pause, Event::Mend(from, to));
            }
        }
    }

    /// Puts the spare node into the place of one of the others. As often as it is asked, until it has happened on every
    /// partition: it is refused where nobody leads or another change is under way.
    fn replace(&mut self) {
        let leaves = self.damageable;
        if self.replaced.replace(leaves).is_none() && self.swarm.loses_disk {
            self.lose_disk(leaves);
        }
        let members: BTreeSet<NodeId> =
            founders(&self.swarm).iter().copied().chain([SPARE]).filter(|id| *id != leaves).collect();
        for partition in (1..=self.swarm.partitions).map(PartitionId) {
            let leads = |node: &&Node| node.status(partition).is_some_and(|status| status.role == Role::Leader);
            let Some(leader) =
                self.nodes.iter().filter(leads).max_by_key(|node| node.status(partition).map(|status| status.term))
            else {
                continue;
            };
            let (id, status) = (leader.id, leader.status(partition).expect("it leads"));
            if status.membership.voters.iter().copied().collect::<BTreeSet<_>>() == members {
                continue;
            }
            // Nobody votes before it has what was acknowledged.
            let follows = |of: &replication::MemberProgress| {
                of.node == SPARE && status.commit.saturating_sub(of.matched) < LEARNED_BEHIND_MAX
            };
            let changes = match status.progress.iter().any(follows) {
                true => vec![MembershipChange::AddVoter(SPARE), MembershipChange::Remove(leaves)],
                false if status.membership.learners.contains(&SPARE) => continue,
                false => vec![MembershipChange::AddLearner(SPARE)],
            };
            // A leader does not remove itself.
            let successor = *members.first().expect("three members");
            self.with(id, |node, surroundings| {
                if id == leaves {
                    node.transfer(partition, successor, surroundings);
                } else {
                    node.change_members(partition, &changes);
                }
            });
        }
    }

    /// The disk of a node is gone. An empty one comes in its place, under the same number of the node.
    fn lose_disk(&mut self, leaves: NodeId) {
        let number = self.with(leaves, |node, surroundings| {
            node.lose_disk(surroundings);
            node.number()
        });
        let Some(number) = number else { return };
        self.with(SPARE, |node, _| node.take_place(number));
        let mut members = members(&self.swarm);
        members.insert(number, MemberNumber { member: SPARE, replaced: 1 });
        self.nodes.iter_mut().for_each(|node| node.set_members(&members));
        self.schedule.after(1, Event::Start(SPARE));
    }

    fn heal(&mut self) {
        self.oracles.heal();
        self.network.heal();
        self.clients.finish();
        let now = self.schedule.now();
        for node in &mut self.nodes {
            node.disk.heal();
            node.is_slow = false;
            node.clock_offset = 0;
            node.paused_until = now;
        }
        for id in self.nodes.iter().map(|node| node.id).collect::<Vec<_>>() {
            self.schedule.after(1, Event::Start(id));
        }
        // A minority may stay away for ever: the others must continue without it.
        let is_damaged = self.nodes.iter().any(|node| node.disk.is_damaged());
        if self.swarm.voters > 1 && !is_damaged && self.chance.one_in(3) && self.replaced.is_none() {
            let id = *self.chance.choose(founders(&self.swarm));
            self.with(id, |node, surroundings| {
                node.stop(surroundings);
                node.refuses = Some("it stays away".to_owned());
            });
        }
    }

    /// Whether the only voter refuses to start, because its disk was damaged: nobody else has what was there.
    fn is_lost(&self) -> bool {
        self.swarm.voters == 1 && self.nodes.iter().any(|node| node.refuses.is_some())
    }

    /// Everything that can end has to end now, and then the rest is cancelled.
    fn finish(&mut self) {
        let begin = self.schedule.now();
        let (mut limit, mut left) = (begin + LIVENESS_LIMIT, usize::MAX);
        while !self.is_at_rest() && !self.is_lost() {
            if self.schedule.now() >= limit && self.schedule.now() < begin + PROGRESS_LIMIT {
                let now_left = self.rows_left();
                limit += if now_left < left { PROGRESS_INTERVAL } else { 0 };
                left = now_left;
            }
            let accounting = self.oracles.accounting();
            assert!(
                self.schedule.now() < limit,
                "{} instances are active {} s after the last fault, with {} incidents: {:?}; {}",
                accounting.active(),
                (self.schedule.now() - begin) / 1_000,
                accounting.incidents().count(),
                accounting.roots().take(3).collect::<Vec<_>>(),
                self.describe()
            );
            if self.schedule.now() > begin + RECOVERY_LIMIT {
                self.oracles.check_due(EPOCH + i64::try_from(self.schedule.now()).expect("a short time"));
            }
            if self.replaced.is_some() {
                self.replace();
            }
            let next = self.schedule.now() + LOOK_INTERVAL;
            self.until(next);
            if self.schedule.now() > begin + LIVENESS_LIMIT / 3 * 2 {
                // An incident that no resolution helps is a reason to be there still.
                let asks = self.clients.cancel_stuck(self.oracles.accounting());
                asks.into_iter().for_each(|ask| self.send(ask));
            }
        }
    }

    /// How many rows of all nodes are not those that stay.
    fn rows_left(&self) -> usize {
        let partitions = (1..=self.swarm.partitions).map(PartitionId);
        partitions.flat_map(|partition| self.running().map(move |node| left_over(&node.rows(partition)).len())).sum()
    }

    /// Nothing is active, nothing is on its way, and all nodes have the same.
    fn is_at_rest(&self) -> bool {
        let nothing_left = |partition| {
            self.running().all(|node| left_over(&node.rows(partition)).is_empty() && node.status(partition).is_some())
        };
        let partitions = || (1..=self.swarm.partitions).map(PartitionId);
        self.clients.has_begun()
            && self.nodes.iter().all(|node| node.is_running() || node.refuses.is_some())
            && self.oracles.accounting().active() == 0
            && partitions().all(|partition| {
                self.is_even(partition)
                    && nothing_left(partition)
                    && self.foreign_streams(partition).is_empty()
                    && self.has_streams(partition)
            })
            && partitions().all(|of| self.running().all(|node| self.oracles.is_exported(node.id, of)))
            && partitions().all(|of| self.is_compacted(of))
            && (!self.swarm.has_read_model
                || partitions().all(|of| self.running().all(|node| self.oracles.is_searched(node.id, of))))
    }

    /// Streams of a partition that no worker has: nobody would take what is pushed to them.
    fn foreign_streams(&self, partition: PartitionId) -> Vec<StreamId> {
        let own: Vec<StreamId> = self.nodes.iter().filter_map(Node::stream).collect();
        let mut open = self.oracles.streams(partition);
        // A node that was replaced and goes on may know no leader any more to whom it could say that its stream is closed.
        let replaced = self.replaced.filter(|_| !self.swarm.loses_disk).map(|node| node.0);
        open.retain(|stream| !own.contains(stream) && Some(stream.node.into()) != replaced);
        open
    }

    /// Whether the workers of all members take jobs of a partition.
    fn has_streams(&self, partition: PartitionId) -> bool {
        let gateways = self.gateways(partition);
        self.nodes.iter().filter(|node| gateways.contains(&node.id)).all(|node| node.has_stream(partition))
    }

    fn running(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().filter(|node| node.is_running() && Some(node.id) != self.replaced)
    }

    /// Whether all nodes have applied everything that any node applied.
    fn is_even(&self, partition: PartitionId) -> bool {
        let last = self.oracles.last(partition);
        self.running().all(|node| node.engine(partition).is_some_and(|engine| engine.applied() >= last))
    }

    /// Whether no log keeps anything for members, which have everything.
    fn is_compacted(&self, partition: PartitionId) -> bool {
        let is_compacted = |node: &Node| {
            let status = node.status(partition);
            status.is_some_and(|status| self.oracles.is_compacted(node.id, partition, &status))
        };
        let is_whole = self.running().count() >= self.swarm.voters;
        // A log without retention is looked at after each of its checkpoints.
        self.swarm.retention_bytes == 0 || !is_whole || self.running().all(is_compacted)
    }

    fn check(&mut self) {
        self.check_logs();
        for node in self.running() {
            self.oracles.check_requests(node.id);
            node.check_requests();
        }
        let (mut deployed, mut known) = (None, None);
        for partition in (1..=self.swarm.partitions).map(PartitionId) {
            let replaced = self.replaced;
            for node in self.nodes.iter().filter(|node| node.is_running() && Some(node.id) != replaced) {
                let engine = node.engine(partition).expect("it runs");
                self.oracles.check_end(node.id, partition, engine);
            }
            let node = self.running().next().expect("a quorum runs");
            let engine = node.engine(partition).expect("it runs");
            self.oracles.check_fold(partition, engine, self.swarm.partitions);
            let rows = node.rows(partition);
            self.oracles.check_rows(partition, &rows);
            let here = oracle::deployed(&rows);
            let cluster = engine.cluster();
            assert!(cluster.is_some(), "partition {partition} was not told of its cluster");
            assert_eq!(
                cluster,
                *known.get_or_insert(cluster.clone()),
                "partition {partition} knows another cluster than partition 1"
            );
            let first = deployed.get_or_insert_with(|| here.clone());
            assert!(*first == here, "{partition} has other definitions than partition 1: {here:?} and {first:?}");
        }
    }

    fn check_logs(&self) {
        for node in self.running() {
            // Once moves what is still needed, once more frees what it was moved from.
            if !(0..3).all(|_| node.reclaim_space()) {
                continue;
            }
            let needed = (1..=self.swarm.partitions).map(PartitionId).map(|partition| {
                let first = node.status(partition).map_or(0, |status| status.first_index);
                self.oracles.bytes_from(partition, first)
            });
            // A file ends behind the entry that makes it large enough.
            let entry_bytes = self.swarm.payload_bytes + self.swarm.read_variable_bytes;
            let file_bytes = self.swarm.log_file_bytes + entry_bytes as u64;
            oracle::check_log_bytes(node.id, &node.log_files(), file_bytes, needed.sum());
        }
    }

    /// Where everything stands, for a failure.
    fn describe(&self) -> String {
        let mut text = String::new();
        for node in &self.nodes {
            for partition in (1..=self.swarm.partitions).map(PartitionId) {
                let Some(engine) = node.engine(partition) else {
                    text += &format!("\n  node {} is down ({:?})", node.id, node.refuses);
                    break;
                };
                let status = node.status(partition);
                let status = status.map(|status| (status.role, status.term, status.leader, status.commit));
                let (foreign, has_own) = (self.foreign_streams(partition), node.has_stream(partition));
                text += &format!("\n  {partition} has streams of others: {foreign:?}, and that of the node: {has_own}");
                let rows = node.rows(partition);
                let left = left_over(&rows);
                text += &format!(
                    "\n  node {} {partition}: applied {}, time {}, {status:?}, {} rows left",
                    node.id,
                    engine.applied(),
                    engine.last_timestamp() - EPOCH,
                    left.len()
                );
                for row in left.iter().take(if text.len() > 2_000 { 0 } else { 4 }) {
                    text += &format!("\n    {}", row.chars().take(200).collect::<String>());
                }
            }
        }
        text
    }
}
