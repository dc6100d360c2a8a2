//! A cluster in one process: nodes, disks that crash, and a network that drops, delays, duplicates and reorders, all driven
//! by one seed.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex};

use chance::Chance;
use replication::{
    Committed, Entry, Frame, GroupId, LogError, LogStore, MembershipChange, Message, NodeId, Options, Position,
    ProposeError, Replicas, ReplicationError, Role, Round, SnapshotReceiver, SnapshotSink, SnapshotSource,
    SnapshotStream, StagedSnapshot, StepError,
};

pub const GROUPS: [GroupId; 2] = [GroupId(0), GroupId(5)];
const FRAME_LIMIT_BYTES: usize = 4 << 20;
const CHUNK_BYTES: usize = 64;

/// A node's disk, as far as the log is concerned.
pub trait Disk {
    type Log: LogStore;
    /// The log after a start.
    fn open(&mut self) -> Arc<Self::Log>;
    /// Lets the next write crash, if this disk can do that.
    fn crash_at_next_write(&mut self, chance: &mut Chance);
}

/// What the entries of a group amount to: enough to notice any entry lost, repeated, reordered or changed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct State {
    pub applied: u64,
    pub entries: u64,
    pub hash: u64,
}

impl State {
    fn apply(&mut self, entry: &Entry) {
        assert!(entry.index > self.applied, "entries come once and in order");
        self.entries += 1;
        for part in
            [entry.index, entry.term].iter().flat_map(|number| number.to_be_bytes()).chain(entry.data.iter().copied())
        {
            self.hash = (self.hash ^ u64::from(part)).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(5);
        }
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes: Vec<u8> =
            [self.applied, self.entries, self.hash].iter().flat_map(|number| number.to_be_bytes()).collect();
        // Some weight, so that it takes several chunks.
        bytes.resize(200, 0xee);
        bytes
    }

    fn decode(bytes: &[u8]) -> Self {
        assert!(bytes.len() == 200 && bytes[24..].iter().all(|byte| *byte == 0xee), "a snapshot arrives whole");
        let number = |at: usize| u64::from_be_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        Self { applied: number(0), entries: number(8), hash: number(16) }
    }
}

/// What survives a crash of a node besides its log.
#[derive(Default)]
struct Durable {
    checkpoints: BTreeMap<GroupId, State>,
    staged: BTreeMap<GroupId, (Position, State)>,
}

#[derive(Clone, Default)]
struct Files(Arc<Mutex<Durable>>);

struct Staging {
    files: Files,
    group: GroupId,
    position: Position,
    bytes: Vec<u8>,
}

impl SnapshotSource for Files {
    fn open(&self, group: GroupId) -> io::Result<(u64, Box<dyn Read + Send>)> {
        let state = self.0.lock().expect("no panic while locked").checkpoints[&group].clone();
        Ok((state.applied, Box::new(io::Cursor::new(state.encode()))))
    }
}

impl SnapshotSink for Files {
    fn stage(&mut self, group: GroupId, position: Position) -> io::Result<Box<dyn StagedSnapshot>> {
        Ok(Box::new(Staging { files: self.clone(), group, position, bytes: Vec::new() }))
    }
}

impl Write for Staging {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl StagedSnapshot for Staging {
    fn complete(self: Box<Self>) -> io::Result<()> {
        let state = State::decode(&self.bytes);
        assert_eq!(state.applied, self.position.index, "the message describes exactly the state that came");
        self.files.0.lock().expect("no panic while locked").staged.insert(self.group, (self.position, state));
        Ok(())
    }
}

pub struct Node<D: Disk> {
    id: NodeId,
    disk: D,
    files: Files,
    founder: bool,
    pub running: Option<Running<D::Log>>,
}

pub struct Running<L: LogStore> {
    pub replicas: Replicas<L>,
    receiver: SnapshotReceiver,
    pub states: BTreeMap<GroupId, State>,
}

/// What happened so far, to be compared with what happens.
#[derive(Default)]
pub struct History {
    committed: BTreeMap<(GroupId, u64), Entry>,
    leaders: BTreeMap<(GroupId, u64), NodeId>,
    pub snapshots_installed: u32,
    pub crashes: u32,
    pub leader_changes: u32,
    pub membership_changes: u32,
    pub proposals: u64,
}

pub struct Cluster<D: Disk> {
    pub nodes: Vec<Node<D>>,
    network: Vec<Frame>,
    pub chance: Chance,
    pub history: History,
    pub reliable: bool,
    /// Links that are cut, in both directions.
    cut: Vec<(NodeId, NodeId)>,
    seed: u64,
}

impl<D: Disk> Cluster<D> {
    /// The first `founders` nodes start the groups; the others can join later.
    pub fn new(seed: u64, founders: usize, disks: Vec<D>) -> Self {
        let mut cluster = Self {
            nodes: Vec::new(),
            network: Vec::new(),
            chance: Chance::new(seed),
            history: History::default(),
            reliable: true,
            cut: Vec::new(),
            seed,
        };
        for (id, disk) in (1..).map(NodeId).zip(disks) {
            let founder = id.0 <= founders as u64;
            cluster.nodes.push(Node { id, disk, files: Files::default(), founder, running: None });
        }
        for at in 0..cluster.nodes.len() {
            cluster.start(at, founders);
        }
        cluster
    }

    pub fn start(&mut self, at: usize, founders: usize) {
        let node = &mut self.nodes[at];
        let options = Options {
            seed: self.seed ^ node.id.0,
            max_append_message_bytes: 300,
            max_inflight_messages: 4,
            max_committed_bytes: 500,
            recent_entries_bytes: 1000,
            ..Options::default()
        };
        let founding: Vec<NodeId> = (1..=founders as u64).map(NodeId).collect();
        let voters = if node.founder { founding.as_slice() } else { &[] };
        let mut replicas = Replicas::open(node.id, node.disk.open(), options).expect("the options are fine");
        let mut states = BTreeMap::new();
        for group in GROUPS {
            let mut durable = node.files.0.lock().expect("no panic while locked");
            let mut state = durable.checkpoints.entry(group).or_default().clone();
            match replicas.create_group(group, voters, state.applied) {
                Ok(()) => {}
                Err(ReplicationError::StateBehindLog { compacted, .. }) => {
                    let (position, staged) =
                        durable.staged.remove(&group).expect("a snapshot is staged before it is stepped");
                    assert_eq!(position.index, compacted, "the staged snapshot is the one that the log stands on");
                    state = staged;
                    durable.checkpoints.insert(group, state.clone());
                    replicas.create_group(group, voters, state.applied).expect("the installed state fits");
                }
                Err(error) => panic!("node {} does not start: {error}", node.id),
            }
            states.insert(group, state);
        }
        node.running = Some(Running { replicas, receiver: SnapshotReceiver::new(), states });
    }

    pub fn crash(&mut self, at: usize) {
        self.nodes[at].running = None;
        self.history.crashes += 1;
    }

    pub fn cut(&mut self, a: NodeId, b: NodeId) {
        self.cut.push((a, b));
    }

    pub fn heal(&mut self) {
        self.cut.clear();
    }

    fn is_cut(&self, from: NodeId, to: NodeId) -> bool {
        self.cut.iter().any(|pair| *pair == (from, to) || *pair == (to, from))
    }

    /// The node that leads the group in the highest term.
    pub fn leader(&self, group: GroupId) -> Option<usize> {
        let leading = self.nodes.iter().enumerate().filter_map(|(at, node)| {
            let status = node.running.as_ref()?.replicas.status(group)?;
            (status.role == Role::Leader).then_some((status.term, at))
        });
        leading.max().map(|(_, at)| at)
    }

    pub fn propose(&mut self, at: usize, group: GroupId) {
        let Some(running) = &mut self.nodes[at].running else {
            return;
        };
        self.history.proposals += 1;
        let data = format!("proposal {} at node {at} {}", self.history.proposals, "x".repeat(self.chance.index(120)));
        match running.replicas.propose(group, data.into_bytes()) {
            Ok(()) | Err(ProposeError::NotLeader { .. } | ProposeError::TransferInProgress { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }

    pub fn change_membership(&mut self, group: GroupId, changes: &[MembershipChange]) -> Result<(), ProposeError> {
        let leader = self.leader(group).ok_or(ProposeError::NotLeader { group, leader: None })?;
        let running = self.nodes[leader].running.as_mut().expect("a leader runs");
        running.replicas.change_membership(group, changes)
    }

    pub fn transfer(&mut self, group: GroupId, to: NodeId) {
        if let Some(leader) = self.leader(group) {
            let running = self.nodes[leader].running.as_mut().expect("a leader runs");
            // A node that is not a voter is refused.
            let _ = running.replicas.transfer_leadership(group, to);
        }
    }

    /// Makes the state durable and, perhaps, drops the log up to it.
    pub fn checkpoint(&mut self, at: usize, group: GroupId, compact: bool) {
        let node = &mut self.nodes[at];
        let Some(running) = &mut node.running else {
            return;
        };
        let state = running.states[&group].clone();
        let applied = state.applied;
        node.files.0.lock().expect("no panic while locked").checkpoints.insert(group, state);
        running.replicas.applied(group, applied).expect("it was handed out");
        if compact {
            running.replicas.compact(group, applied).expect("the log works");
        }
    }

    pub fn tick(&mut self, at: usize) {
        if let Some(running) = &mut self.nodes[at].running {
            running.replicas.tick();
        }
    }

    pub fn crash_at_next_write(&mut self, at: usize) {
        let chance = &mut self.chance;
        self.nodes[at].disk.crash_at_next_write(chance);
    }

    /// Delivers one frame for the node, in any order, with the network's mischief.
    pub fn deliver(&mut self, at: usize) -> bool {
        let to = self.nodes[at].id;
        let waiting: Vec<usize> = (0..self.network.len()).filter(|frame| self.network[*frame].to() == to).collect();
        if waiting.is_empty() {
            return false;
        }
        let choice = if self.reliable { 0 } else { self.chance.index(waiting.len().min(12)) };
        let frame = if !self.reliable && self.chance.one_in(20) {
            self.network[waiting[choice]].clone()
        } else {
            self.network.remove(waiting[choice])
        };
        let lost = !self.reliable && self.chance.one_in(15);
        let Frame::Message(message) = frame else { panic!("states travel on their own connection") };
        if lost || self.is_cut(message.from(), to) {
            return true;
        }
        let mut bytes = Vec::new();
        Frame::Message(message).encode(&mut bytes);
        let Ok(Frame::Message(message)) = Frame::decode(&bytes, FRAME_LIMIT_BYTES) else {
            panic!("a frame survives its bytes")
        };
        if let Some(running) = &mut self.nodes[at].running {
            match running.replicas.step(message) {
                Ok(()) => {}
                Err(
                    error @ (StepError::EntriesLost { .. } | StepError::Refused { .. } | StepError::LogUnavailable),
                ) => {
                    panic!("node {to}: {error}")
                }
                Err(error) => panic!("{error}"),
            }
        }
        true
    }

    /// One round of the node, and everything that follows from it. A crash in it stops the node.
    pub fn round(&mut self, at: usize) {
        let Some(running) = &mut self.nodes[at].running else {
            return;
        };
        let mut outbox: Vec<Message> = Vec::new();
        let outcome = running.replicas.round(&mut outbox);
        // What was sent before a crash is on its way.
        self.network.extend(outbox.into_iter().map(Frame::Message));
        const NETWORK_LIMIT_FRAMES: usize = 400;
        while self.network.len() > NETWORK_LIMIT_FRAMES {
            self.network.remove(0);
        }
        match outcome {
            Ok(round) => self.follow(at, round),
            Err(ReplicationError::Log(LogError::Crashed)) => self.crash(at),
            Err(error) => panic!("{error}"),
        }
    }

    fn follow(&mut self, at: usize, round: Round) {
        let node = &mut self.nodes[at];
        let id = node.id;
        let running = node.running.as_mut().expect("the round was its");
        for (group, position) in &round.snapshots_to_install {
            let mut durable = node.files.0.lock().expect("no panic while locked");
            let (staged_position, state) =
                durable.staged.remove(group).expect("a snapshot is staged before it is stepped");
            assert_eq!(staged_position, *position);
            durable.checkpoints.insert(*group, state.clone());
            running.states.insert(*group, state);
            drop(durable);
            running.replicas.applied(*group, position.index).expect("it is what the log stands on");
            self.history.snapshots_installed += 1;
        }
        for Committed { group, entries, up_to } in round.committed {
            let state = running.states.get_mut(&group).expect("the group is open");
            for entry in entries {
                let known = self.history.committed.entry((group, entry.index)).or_insert_with(|| entry.clone());
                assert_eq!(*known, entry, "nodes disagree about group {group}");
                state.apply(&entry);
            }
            assert!(up_to > state.applied);
            state.applied = up_to;
        }
        for change in &round.role_changes {
            if change.role == Role::Leader {
                let leader = *self.history.leaders.entry((change.group, change.term)).or_insert(id);
                assert_eq!(leader, id, "two leaders of group {} in term {}", change.group, change.term);
                self.history.leader_changes += 1;
            }
        }
        self.history.membership_changes += round.membership_changes.len() as u32;
        for group in round.checkpoints_wanted {
            self.checkpoint(at, group, false);
        }
        for request in round.snapshots_to_send {
            let node = &self.nodes[at];
            let running = node.running.as_ref().expect("it runs");
            let stream = SnapshotStream::open(&running.replicas, &request, &node.files, CHUNK_BYTES).expect("readable");
            let delivered = stream.is_some_and(|stream| self.carry(id, stream));
            let running = self.nodes[at].running.as_mut().expect("it runs");
            running.replicas.snapshot_sent(request.group, request.to, delivered);
        }
    }

    /// Carries a state to its addressee, unless the connection breaks.
    fn carry(&mut self, from: NodeId, mut stream: SnapshotStream) -> bool {
        let to = stream.to();
        let cut = self.is_cut(from, to);
        let node = self.nodes.iter_mut().find(|node| node.id == to).expect("all nodes are known");
        let Some(running) = &mut node.running else {
            return false;
        };
        while let Some(frame) = stream.next_frame().expect("readable") {
            if cut || (!self.reliable && self.chance.one_in(20)) {
                running.receiver.disconnected(from);
                return false;
            }
            let mut bytes = Vec::new();
            frame.encode(&mut bytes);
            let complete = match Frame::decode(&bytes, FRAME_LIMIT_BYTES).expect("a frame survives its bytes") {
                Frame::SnapshotStart(message) => {
                    running.receiver.start(message, &mut node.files).expect("stageable");
                    None
                }
                Frame::SnapshotChunk(chunk) => running.receiver.chunk(&chunk).expect("in order"),
                Frame::Message(_) => panic!("a stream has no plain messages"),
            };
            if let Some(message) = complete {
                return running.replicas.step(message).is_ok();
            }
        }
        false
    }

    /// The state of a node's group.
    pub fn state(&self, at: usize, group: GroupId) -> &State {
        &self.nodes[at].running.as_ref().expect("it runs").states[&group]
    }

    /// Lets everything run without mischief until all members of all groups have the same state.
    pub fn converge(&mut self, founders: usize) {
        self.reliable = true;
        self.heal();
        for at in 0..self.nodes.len() {
            if self.nodes[at].running.is_none() {
                self.start(at, founders);
            }
        }
        for steps in 0..2000 {
            for at in 0..self.nodes.len() {
                if steps % 5 == 0 {
                    self.tick(at);
                }
                while self.deliver(at) {}
                self.round(at);
                if self.nodes[at].running.is_none() {
                    self.start(at, founders);
                }
            }
            if steps % 20 == 19 && GROUPS.iter().all(|group| self.is_converged(*group)) {
                return;
            }
        }
        for node in &self.nodes {
            let replicas = &node.running.as_ref().expect("it runs").replicas;
            for group in GROUPS {
                eprintln!("node {}: group {group}: {:?}", node.id, replicas.status(group));
            }
        }
        panic!("the cluster does not converge");
    }

    fn is_converged(&self, group: GroupId) -> bool {
        let Some(leader) = self.leader(group) else {
            return false;
        };
        let status = self.nodes[leader].running.as_ref().expect("it runs").replicas.status(group).expect("it is open");
        if status.membership.is_joint() || status.commit != status.last_index {
            return false;
        }
        let members: Vec<usize> =
            (0..self.nodes.len()).filter(|at| status.membership.contains(self.nodes[*at].id)).collect();
        if members.iter().any(|at| self.state(*at, group).applied != status.commit) {
            return false;
        }
        for at in members {
            let here = self.nodes[at].running.as_ref().expect("it runs").replicas.status(group).expect("it is open");
            assert_eq!(here.membership, status.membership, "the members of group {group} are agreed upon");
            assert_eq!(self.state(at, group), self.state(leader, group), "the states of group {group} are equal");
        }
        true
    }

    /// Every entry that any node ever applied is in the state of every member.
    pub fn check_nothing_lost(&self, group: GroupId) {
        let leader = self.leader(group).expect("it converged");
        let mut expected = State::default();
        for ((_, index), entry) in self.history.committed.range((group, 0)..=(group, u64::MAX)) {
            expected.apply(entry);
            expected.applied = *index;
        }
        let state = self.state(leader, group);
        assert_eq!((state.entries, state.hash), (expected.entries, expected.hash), "an applied entry got lost");
    }
}
