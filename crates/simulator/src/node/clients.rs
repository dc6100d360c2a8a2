//! The way into a node and out of it: clients, the worker of the node, and the other nodes to which their commands go.

use std::collections::BTreeMap;
use std::time::Duration;

use broker::FlowControlOptions;
use broker::reception::{MemberNumber, NodeFrame, Reception, ReceptionOptions, Taken};
use engine::Reply;
use protocol::{Command, JobAmount, PartitionId, Request, StreamId};
use replication::NodeId;

use super::{Inbound, Node, SENDERS, Surroundings, founders};
use crate::network::Parcel;
use crate::options::{Milliseconds, Swarm};
use crate::schedule::Event;
use crate::worker;

/// Ticks between two times at which a node says that it is there, and at which it compares its streams with the states.
const STATUS_TICKS: u64 = 2;
const RECONCILIATION_TICKS: u64 = 10;

/// The part of a life's number that counts starts, in bits; above it is how often the directory was replaced.
const REPLACED_SHIFT: u32 = 16;

impl Node {
    /// Its number among the nodes of the cluster.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// From now on these are the members of the cluster.
    pub fn set_members(&mut self, members: &BTreeMap<u32, MemberNumber>) {
        members.clone_into(&mut self.members);
        if let Some(running) = &self.running {
            running.reception.set_members(members);
        }
    }

    /// Its disk is gone, with everything on it.
    pub fn lose_disk(&mut self, surroundings: &mut Surroundings<'_>) {
        surroundings.oracles.trace("loses its disk", &[self.id.0], "");
        self.stop(surroundings);
        self.refuses = Some("its disk is gone".to_owned());
        if self.directory.exists() {
            std::fs::remove_dir_all(&self.directory).expect("the scratch directory is writable");
        }
    }

    /// Its empty directory takes the place of that of another node, under the number of that node.
    pub fn take_place(&mut self, number: u32) {
        self.number = number;
        self.lives = 1 << REPLACED_SHIFT;
    }

    /// What time it is.
    pub fn set_now(&self, now: Milliseconds) {
        if let Some(running) = &self.running {
            running.reception.set_now(Duration::from_millis(now.saturating_sub(running.started)));
        }
    }

    /// A client asks. `false` when this node is not there.
    pub fn request(
        &mut self,
        partition: PartitionId,
        number: u64,
        bytes: &[u8],
        surroundings: &mut Surroundings<'_>,
    ) -> bool {
        let (gateway, node) = (self.id, self.number());
        let Some(running) = &mut self.running else { return false };
        let command = protocol::decode::<Command>(bytes).expect("a client encoded it");
        let answers = running.answers.clone();
        let reply = move |answer: Result<Reply, _>| answers.lock().push((number, answer));
        let sender = usize::try_from(number % SENDERS).expect("a remainder is small");
        let pending = running.senders[sender].submit(partition, command, reply);
        if let Some(of_node) = pending.number() {
            let request = Request { node, number: of_node };
            running.waiting.insert(number, (partition, request));
            surroundings.oracles.sent(gateway, partition, request, number);
        }
        self.receive(surroundings);
        self.work(surroundings);
        true
    }

    /// Opens the stream of the node's worker in place of the one before.
    pub fn open_stream(&mut self, surroundings: &mut Surroundings<'_>) {
        let credit = surroundings.swarm.stream_credit;
        let Some(running) = self.running.as_mut().filter(|_| credit > 0) else { return };
        running.stream = None;
        running.fronts.iter_mut().for_each(|front| front.taken = JobAmount::default());
        running.stream = worker::Stream::open(&running.reception.client(), surroundings.swarm.long_activations);
        let Some(stream) = &running.stream else { return };
        for partition in (1..=surroundings.swarm.partitions).map(PartitionId) {
            surroundings.oracles.offered(partition, stream.id(), worker::offer(JobAmount::default(), credit));
        }
        self.receive(surroundings);
        self.work(surroundings);
    }

    /// The stream of the node's worker.
    pub fn stream(&self) -> Option<StreamId> {
        self.running.as_ref()?.stream.as_ref().map(worker::Stream::id)
    }

    /// Takes over what came in, tells clients of what the node will not answer, and sends what goes to other nodes.
    pub(super) fn receive(&mut self, surroundings: &mut Surroundings<'_>) {
        let (life, own) = (self.life(), self.number);
        let Some(running) = &mut self.running else { return };
        for (number, answer) in std::mem::take(&mut *running.answers.lock()) {
            if let (Some((partition, request)), Err(error)) = (running.waiting.remove(&number), &answer) {
                surroundings.oracles.request_refused(partition, request, error);
            }
            surroundings.schedule.after(1, Event::Answer(number, None));
        }
        while let Some(Taken { partition, bytes, permit }) = running.reception.take() {
            running.inbox.push(Inbound::Command(partition, bytes, permit));
        }
        for frame in running.reception.frames() {
            let Some(to) = self.members.get(&frame.to).map(|of| of.member) else { continue };
            let from = life.node;
            let Surroundings { network, schedule, .. } = surroundings;
            if let Some(latency) = network.delivery_in_order(schedule.now(), from, to) {
                let parcel = Parcel::Node(own, life.number, frame);
                schedule.after(latency, Event::Arrival { from, to, parcel });
            }
        }
    }

    /// Something came from another node.
    pub(super) fn node_frame(&mut self, from: u32, life: u64, frame: &NodeFrame, surroundings: &mut Surroundings<'_>) {
        let Some(running) = &mut self.running else { return };
        running.reception.arrived(from, life, frame);
        self.receive(surroundings);
        self.work(surroundings);
    }

    /// At the end nothing waits for a leader of an earlier term.
    pub fn check_requests(&self) {
        let Some(running) = &self.running else { return };
        for (number, front) in (1..).zip(&running.fronts) {
            let left = running.reception.sent_before(PartitionId(number), front.term);
            assert!(left.is_empty(), "node {} waits for {left:?} of terms before {}", self.id, front.term);
        }
    }

    /// Whether a partition has the stream of the node's worker, with room for more, as the node knows it.
    pub fn has_stream(&self, partition: PartitionId) -> bool {
        let Some(stream) = self.stream() else { return true };
        let totals = self.engine(partition).and_then(|engine| engine.job_stream(stream));
        totals.is_some_and(|totals| {
            let left = totals.granted.minus(totals.used);
            left.jobs > 0 && left.bytes > 0
        })
    }

    /// What the node does many times a second for those who wait at it.
    pub(super) fn look_after_clients(&mut self, surroundings: &mut Surroundings<'_>) {
        let Some(running) = &mut self.running else { return };
        running.ticks += 1;
        running.reception.look_after_parked();
        if running.ticks.is_multiple_of(STATUS_TICKS) {
            running.reception.announce();
        }
        if running.ticks.is_multiple_of(RECONCILIATION_TICKS) {
            for (number, of) in (1..).zip(&running.partitions) {
                let of = of.partition();
                running.reception.reconcile(PartitionId(number), of.is_leading(), of.engine());
            }
        }
        self.receive(surroundings);
        self.work(surroundings);
    }

    /// The way in, with limits that a run reaches.
    pub(super) fn reception(&self, swarm: &Swarm) -> Reception {
        let commands = swarm.commands_in_flight;
        let flow_control = FlowControlOptions {
            initial_commands: commands,
            continuing_commands: commands,
            min_commands: commands,
            max_commands: commands,
            // The limits stay as they are: real time must not matter.
            target_latency: Duration::MAX,
            held_commands: 3,
            inflight_limit_bytes: 64 << 10,
            ..FlowControlOptions::default()
        };
        Reception::new(&ReceptionOptions {
            node: self.number(),
            partition_count: swarm.partitions,
            life: self.lives + 1,
            flow_control,
            waiting_requests_limit: 1_000,
            stream_window: worker::node_window(swarm.stream_credit, swarm.partitions),
            members: self.members.clone(),
        })
    }
}

/// Who belongs to the cluster at first; nobody if there is one node alone.
pub fn members(swarm: &Swarm) -> BTreeMap<u32, MemberNumber> {
    if swarm.voters == 1 {
        return BTreeMap::new();
    }
    // A directory that takes the place of another has no number of its own.
    let spare = (swarm.replaces_node && !swarm.loses_disk).then_some(super::SPARE);
    let members = founders(swarm).iter().copied().chain(spare);
    let number = |member: NodeId| (u32::try_from(member.0).expect("few nodes"), MemberNumber { member, replaced: 0 });
    members.map(number).collect()
}
