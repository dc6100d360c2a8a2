//! The node's port to the other nodes: what is sent through it, and where goes what comes in.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::{Mutex, RwLock};
use peers::{Absence, DirectoryId, Identity, Lane, Mesh, NodeNumber, Receiver, SendError};
use protocol::PartitionId;
use replication::{Frame, Message, NodeId, Options as ReplicationOptions};

use super::configuration::{ClusterConfiguration, life};
use super::founding::{Addressed, Founding, FoundingMessage};
use super::messages::{ForwardedCommand, NodeStatus, RefusedCommand, ReplicaStatus, kind};
use super::reached::{Positions, Questions, Reached};
use super::served::Served;
use crate::snapshot_transfer::{SnapshotExchange, SnapshotTransport, TransportError};
use crate::status::Role;
use crate::submit_error::SubmitError;

/// Bytes of Raft messages that came in and wait for the thread of the log. What comes above is dropped; Raft sends again.
const UNSTEPPED_BYTES_MAX: usize = 64 << 20;
/// A node that was not heard of for so long counts as gone.
const GONE_AFTER: Duration = Duration::from_secs(1);

/// Takes what other nodes say of their exporters.
pub(crate) type ExportedFrames = Box<dyn Fn(NodeNumber, &[u8]) + Send + Sync>;

/// The port of one node of a cluster.
pub(crate) struct ClusterPort {
    own: NodeNumber,
    link: RwLock<Link>,
    pub founding: Mutex<Founding>,
    configuration: RwLock<Option<Arc<ClusterConfiguration>>>,
    contacts: Mutex<BTreeMap<NodeNumber, Contact>>,
    /// The running node.
    node: OnceLock<Weak<dyn Served>>,
    snapshots: OnceLock<SnapshotExchange>,
    exported: OnceLock<ExportedFrames>,
    /// What an operator must know of nodes that are set up differently.
    disagreements: Mutex<BTreeSet<String>>,
    questions: Mutex<Questions>,
    unstepped_bytes: Arc<AtomicUsize>,
}

/// How frames leave the node.
#[derive(Default)]
enum Link {
    /// Not at all.
    #[default]
    Closed,
    /// Over connections.
    Mesh(Mesh),
    /// Somebody else carries them, who also says what time it is: a simulation.
    Kept(Mutex<KeptFrames>),
}

/// Frames that wait for whoever carries them.
struct KeptFrames {
    frames: Vec<KeptFrame>,
    now: Instant,
}

/// A frame on its way to another node, without a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeptFrame {
    /// Where it goes.
    pub to: NodeNumber,
    /// What it is.
    pub kind: u8,
    /// Its content.
    pub payload: Bytes,
}

/// What is known of another node.
#[derive(Debug, Clone)]
pub(crate) struct Contact {
    /// When this node began to look for it.
    since: Instant,
    /// Its machine says that nothing listens at its port any more.
    is_closed: bool,
    /// Who it said it is, when the connection to it was made last.
    pub identity: Option<Identity>,
    /// Whether requests can be sent to it.
    pub is_connected: bool,
    /// When something came from it last.
    pub heard: Option<Instant>,
    /// What it said of itself last.
    pub status: NodeStatus,
}

impl Contact {
    pub fn new(now: Instant) -> Self {
        Contact {
            since: now,
            is_closed: false,
            identity: None,
            is_connected: false,
            heard: None,
            status: NodeStatus::default(),
        }
    }

    /// Whether it was there, or was looked for, and is certainly not there any more.
    pub fn is_gone(&self, now: Instant) -> bool {
        let heard = self.heard.unwrap_or(self.since);
        !self.is_alive(now) && (self.is_closed || now.saturating_duration_since(heard) >= GONE_AFTER)
    }

    /// Whether it was heard of lately.
    pub fn is_alive(&self, now: Instant) -> bool {
        let was_heard = |heard| now.saturating_duration_since(heard) < GONE_AFTER;
        self.is_connected && self.heard.is_some_and(was_heard)
    }
}

impl std::fmt::Debug for ClusterPort {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("ClusterPort").field("own", &self.own).finish_non_exhaustive()
    }
}

impl ClusterPort {
    pub fn new(own: NodeNumber, others: impl Iterator<Item = NodeNumber>, founding: Founding) -> Arc<ClusterPort> {
        Arc::new(ClusterPort::with_link(own, others, founding, Link::Closed, Instant::now()))
    }

    /// One whose frames somebody else carries, from a time on.
    pub fn kept(
        own: NodeNumber,
        others: impl Iterator<Item = NodeNumber>,
        founding: Founding,
        now: Instant,
    ) -> Arc<ClusterPort> {
        let link = Link::Kept(Mutex::new(KeptFrames { frames: Vec::new(), now }));
        Arc::new(ClusterPort::with_link(own, others, founding, link, now))
    }

    fn with_link(
        own: NodeNumber,
        others: impl Iterator<Item = NodeNumber>,
        founding: Founding,
        link: Link,
        now: Instant,
    ) -> ClusterPort {
        let configuration = founding.configuration().cloned().map(Arc::new);
        ClusterPort {
            own,
            link: RwLock::new(link),
            founding: Mutex::new(founding),
            configuration: RwLock::new(configuration),
            contacts: Mutex::new(others.map(|node| (node, Contact::new(now))).collect()),
            node: OnceLock::new(),
            snapshots: OnceLock::new(),
            exported: OnceLock::new(),
            disagreements: Mutex::default(),
            questions: Mutex::default(),
            unstepped_bytes: Arc::default(),
        }
    }

    /// From now on frames can be sent.
    pub fn open(&self, mesh: Mesh) {
        *self.link.write() = Link::Mesh(mesh);
    }

    /// Ends all connections and their threads.
    pub fn close(&self) {
        let link = std::mem::take(&mut *self.link.write());
        drop(link);
    }

    /// The time by which it counts who was heard of.
    pub fn now(&self) -> Instant {
        match &*self.link.read() {
            Link::Kept(kept) => kept.lock().now,
            Link::Closed | Link::Mesh(_) => Instant::now(),
        }
    }

    /// What it is for whoever carries its frames.
    pub fn set_now(&self, now: Instant) {
        if let Link::Kept(kept) = &*self.link.read() {
            kept.lock().now = now;
        }
    }

    /// The frames that wait for whoever carries them.
    pub fn take_frames(&self) -> Vec<KeptFrame> {
        match &*self.link.read() {
            Link::Kept(kept) => std::mem::take(&mut kept.lock().frames),
            Link::Closed | Link::Mesh(_) => Vec::new(),
        }
    }

    /// From now on commands and messages go to this node.
    pub fn serve(&self, node: Weak<dyn Served>) {
        let _ = self.node.set(node);
    }

    /// From now on parts of states are taken.
    pub fn exchange(&self, snapshots: SnapshotExchange) {
        let _ = self.snapshots.set(snapshots);
    }

    /// From now on, what other nodes say of their exporters is taken.
    pub fn take_exported(&self, frames: ExportedFrames) {
        let _ = self.exported.set(frames);
    }

    /// What an operator must know of nodes that are set up differently, a sentence each.
    pub fn disagreements(&self) -> BTreeSet<String> {
        self.disagreements.lock().clone()
    }

    /// Replaces them. Returns those that are new.
    pub fn set_disagreements(&self, sentences: BTreeSet<String>) -> Vec<String> {
        let mut known = self.disagreements.lock();
        let news = sentences.difference(&known).cloned().collect();
        *known = sentences;
        news
    }

    /// The number of this node.
    pub fn own(&self) -> NodeNumber {
        self.own
    }

    /// The configuration of the cluster, once it is founded.
    pub fn configuration(&self) -> Option<Arc<ClusterConfiguration>> {
        self.configuration.read().clone()
    }

    /// All other nodes, as they are known now.
    pub fn contacts(&self) -> BTreeMap<NodeNumber, Contact> {
        self.contacts.lock().clone()
    }

    /// The cluster has this configuration from now on.
    pub fn configure(&self, configuration: ClusterConfiguration) {
        *self.configuration.write() = Some(Arc::new(configuration));
    }

    /// The configuration that the founding or a change brought is on the disk.
    pub fn stored(&self, configuration: ClusterConfiguration) {
        let messages = self.founding.lock().stored(configuration.clone());
        if let Link::Mesh(mesh) = &*self.link.read() {
            mesh.registry(|registry| {
                registry.join(configuration.cluster_id.clone());
                for (node, membership) in configuration.members.iter().filter(|(node, _)| **node != self.own) {
                    registry.set_directory(*node, membership.directory);
                }
            });
        }
        self.configure(configuration);
        self.send_founding(messages);
    }

    /// Sends messages of the founding. What does not arrive is asked for again.
    pub fn send_founding(&self, messages: Vec<Addressed>) {
        for (to, message) in messages {
            let (kind, payload) = message.encode();
            if let Err(error) = self.send(to, Lane::Requests, kind, &[&payload]) {
                tracing::trace!(%to, %error, "a message of the founding was not sent");
            }
        }
    }

    fn send(&self, to: NodeNumber, lane: Lane, kind: u8, parts: &[&[u8]]) -> Result<(), SendError> {
        match &*self.link.read() {
            Link::Mesh(mesh) => mesh.send(to, lane, kind, parts),
            Link::Closed => Err(SendError::Unreachable(to)),
            Link::Kept(kept) => {
                kept.lock().frames.push(KeptFrame { to, kind, payload: parts.concat().into() });
                Ok(())
            }
        }
    }

    /// The node whose replicas have this number.
    pub fn node(&self, member: NodeId) -> Option<NodeNumber> {
        self.configuration.read().as_ref()?.node(member)
    }

    /// Sends a message of Raft. `false` when its addressee cannot be reached now.
    pub fn send_message(&self, message: Message) -> bool {
        let Some(to) = self.node(message.to()) else { return false };
        let mut payload = Vec::new();
        Frame::Message(message).encode(&mut payload);
        self.send(to, Lane::Consensus, kind::RAFT, &[&payload]).is_ok()
    }

    /// Sends a command to the node that leads its partition.
    pub fn send_command(&self, to: u32, command: &ForwardedCommand<'_>) -> Result<(), SendError> {
        self.send(NodeNumber(to), Lane::Requests, kind::COMMAND, &[&command.header(), command.bytes])
    }

    /// Says to the node of a client that its command was not taken. When that does not arrive, the client hears of it with
    /// the next leader.
    pub fn refuse(&self, to: u32, refusal: &RefusedCommand) {
        let payload = protocol::encode_to_vec(refusal);
        if let Err(error) = self.send(NodeNumber(to), Lane::Requests, kind::REFUSAL, &[&payload]) {
            tracing::debug!(to, %error, "a refusal was not sent");
        }
    }

    /// Says to all other nodes how this one is.
    pub fn announce(&self, status: &NodeStatus) {
        let payload = protocol::encode_to_vec(status);
        let others: Vec<NodeNumber> = self.contacts.lock().keys().copied().collect();
        for node in others {
            // Whoever cannot be reached now gets the next one.
            let _ = self.send(node, Lane::Requests, kind::STATUS, &[&payload]);
        }
    }

    /// Says what this node keeps for the exporters of a partition. `false` when the other node cannot be reached now.
    pub fn say_exported(&self, to: NodeNumber, said: &[u8]) -> bool {
        self.send(to, Lane::Requests, kind::EXPORTED, &[said]).is_ok()
    }

    /// Asks all nodes how far the leaders are. Returns the number of the question, or none when too many wait.
    pub fn ask_how_far(&self, node: &dyn Served, told: impl FnOnce(Positions) + Send + 'static) -> Option<u64> {
        let question = self.questions.lock().ask(told)?;
        self.reached(node, self.own, node.reached(question));
        let others: Vec<NodeNumber> = self.contacts.lock().keys().copied().collect();
        for other in others {
            // Who does not answer is no part of the majority.
            let _ = self.send(other, Lane::Requests, kind::HOW_FAR, &[&question.to_le_bytes()]);
        }
        Some(question)
    }

    /// Nobody waits for the answers to a question any more.
    pub fn forget_question(&self, question: u64) {
        self.questions.lock().forget(question);
    }

    fn reached(&self, node: &dyn Served, from: NodeNumber, reached: Reached) {
        let nodes = self.contacts.lock().len() + 1;
        let answered = self.questions.lock().answered(from.0, reached, (nodes, node.partition_count()));
        if let Some((told, positions)) = answered {
            told(positions);
        }
    }

    /// Another node asks, or answers.
    fn how_far(&self, from: NodeNumber, kind: u8, payload: &[u8]) {
        let Some(node) = self.served() else { return };
        if kind == kind::HOW_FAR {
            let Ok(question) = payload.try_into().map(u64::from_le_bytes) else {
                return tracing::warn!(%from, "a question of another node cannot be read");
            };
            let reached = protocol::encode_to_vec(&node.reached(question));
            let _ = self.send(from, Lane::Requests, kind::REACHED, &[&reached]);
            return;
        }
        match protocol::decode(payload) {
            Ok(reached) => self.reached(&*node, from, reached),
            Err(error) => tracing::warn!(%from, %error, "an answer of another node cannot be read"),
        }
    }

    fn served(&self) -> Option<Arc<dyn Served>> {
        self.node.get().and_then(Weak::upgrade)
    }

    fn heard(&self, from: NodeNumber, note: impl FnOnce(&mut Contact)) {
        let now = self.now();
        let mut contacts = self.contacts.lock();
        let contact = contacts.entry(from).or_insert_with(|| Contact::new(now));
        contact.heard = Some(now);
        note(contact);
    }

    /// The process of a node is gone. Whoever waits for its heartbeats waits no longer.
    fn closed(&self, node: NodeNumber) {
        let was_closed = match self.contacts.lock().get_mut(&node) {
            Some(contact) => std::mem::replace(&mut contact.is_closed, true),
            None => return,
        };
        let member = self.configuration().and_then(|configuration| configuration.member(node));
        if let (false, Some(member), Some(served)) = (was_closed, member, self.served()) {
            tracing::warn!(%node, "the process of a node of the cluster is gone");
            served.gone(member);
        }
    }

    /// The life of another node as far as it is known, with 0 for one that nothing is known of; none when it is gone.
    pub fn life(&self, node: u32) -> Option<u64> {
        let node = NodeNumber(node);
        let contact = self.contacts.lock().get(&node).cloned()?;
        if contact.is_gone(self.now()) {
            return None;
        }
        let configuration = self.configuration();
        let replaced = configuration.and_then(|known| known.members.get(&node).map(|membership| membership.replaced));
        Some(contact.identity.map_or(0, |identity| life(replaced.unwrap_or_default(), identity.boot)))
    }

    /// A node says how it is.
    fn status(&self, from: NodeNumber, status: NodeStatus) {
        if let Some(node) = self.served() {
            let leads = |replica: &&ReplicaStatus| replica.role() == Role::Leader && replica.replicated_index > 0;
            for replica in status.replicas.iter().filter(leads) {
                node.everybody_has(PartitionId(replica.partition), replica.term, replica.replicated_index);
            }
        }
        self.heard(from, |contact| contact.status = status);
    }

    /// A node with an empty directory that asked for the place of a member.
    pub fn applicant(&self, node: NodeNumber) -> Option<DirectoryId> {
        match &*self.link.read() {
            Link::Mesh(mesh) => mesh.registry(|registry| registry.applicant(node)),
            Link::Closed | Link::Kept(_) => None,
        }
    }

    /// Asks the leader of the first partition to replace the directory of a node.
    pub fn send_replacement(&self, leader: u32, node: NodeNumber) -> Result<(), SendError> {
        self.send(NodeNumber(leader), Lane::Requests, kind::REPLACE, &[&node.0.to_le_bytes()])
    }

    fn part_of_state(&self, from: NodeNumber, payload: &[u8]) {
        let member = self.configuration().and_then(|configuration| configuration.member(from));
        let (Some(snapshots), Some(member)) = (self.snapshots.get(), member) else { return };
        if let Err(error) = snapshots.received(member, payload.to_vec()) {
            tracing::warn!(%from, %error, "a part of a state of another node cannot be read");
        }
    }

    fn founding_message(&self, from: NodeNumber, message: FoundingMessage) {
        let answer = self.founding.lock().received(from, message);
        self.send_founding(answer.into_iter().collect());
    }

    fn message(&self, from: NodeNumber, payload: &[u8]) {
        let bytes = payload.len();
        let message = match Frame::decode(payload, ReplicationOptions::default().max_frame_bytes()) {
            Ok(Frame::Message(message)) => message,
            Ok(_) => return tracing::debug!(%from, "a part of a snapshot came among the messages of Raft"),
            Err(error) => return tracing::warn!(%from, %error, "a message of Raft cannot be read"),
        };
        let Some(node) = self.served() else { return };
        if self.unstepped_bytes.fetch_add(bytes, Ordering::AcqRel) > UNSTEPPED_BYTES_MAX {
            self.unstepped_bytes.fetch_sub(bytes, Ordering::AcqRel);
            return tracing::debug!(%from, "a message of Raft was dropped: too many wait");
        }
        node.message(message, bytes);
    }

    /// A message of Raft does not wait any more.
    pub fn stepped(&self, bytes: usize) {
        self.unstepped_bytes.fetch_sub(bytes, Ordering::AcqRel);
    }

    fn refusal(&self, payload: &[u8]) {
        let Some(node) = self.served() else { return };
        match protocol::decode::<RefusedCommand>(payload) {
            Ok(refusal) => node.refused(refusal),
            Err(error) => tracing::warn!(%error, "a refusal of another node cannot be read"),
        }
    }
}

impl SnapshotTransport for ClusterPort {
    fn send(&self, to: NodeId, bytes: &[u8]) -> Result<(), TransportError> {
        let node = self.node(to).ok_or(TransportError::Unreachable)?;
        match ClusterPort::send(self, node, Lane::Bulk, kind::SNAPSHOT, &[bytes]) {
            Ok(()) => Ok(()),
            Err(SendError::Full { .. }) => Err(TransportError::Full),
            Err(_) => Err(TransportError::Unreachable),
        }
    }
}

/// What the mesh calls.
pub(crate) struct Received(pub Arc<ClusterPort>);

impl Receiver for Received {
    fn received(&self, from: NodeNumber, _: Lane, kind: u8, payload: Bytes) {
        let port = &self.0;
        match kind {
            kind::RAFT => {
                port.heard(from, |_| ());
                port.message(from, &payload);
            }
            kind::COMMAND => match (ForwardedCommand::decode(&payload), port.served()) {
                (Ok(command), Some(node)) => node.command(from, &command),
                (Ok(ForwardedCommand { partition, origin, request: Some(number), term, .. }), None) => {
                    let error =
                        SubmitError::Unavailable { partition, reason: "the node of its leader is starting".into() };
                    // With the term, it is sent again only when another one leads.
                    let refusal = RefusedCommand { term, ..RefusedCommand::not_taken(partition, number, &error) };
                    port.refuse(origin, &refusal);
                }
                (Ok(_), None) => {}
                (Err(error), _) => tracing::warn!(%from, %error, "a command of another node cannot be read"),
            },
            kind::REFUSAL => port.refusal(&payload),
            kind::STATUS => match protocol::decode(&payload) {
                Ok(status) => port.status(from, status),
                Err(error) => tracing::warn!(%from, %error, "the status of another node cannot be read"),
            },
            kind::EXPORTED => {
                if let Some(take) = port.exported.get() {
                    take(from, &payload);
                }
            }
            kind::HOW_FAR | kind::REACHED => port.how_far(from, kind, &payload),
            kind::REPLACE => match (payload.as_ref().try_into().map(u32::from_le_bytes), port.served()) {
                (Ok(node), Some(served)) => served.replace(NodeNumber(node)),
                _ => tracing::warn!(%from, "a wish to replace a node cannot be read"),
            },
            kind::SNAPSHOT => port.part_of_state(from, &payload),
            kind => match FoundingMessage::decode(kind, &payload) {
                Some(Ok(message)) => port.founding_message(from, message),
                Some(Err(error)) => tracing::warn!(%from, %error, "a message of the founding cannot be read"),
                None => tracing::debug!(%from, kind, "a frame of an unknown kind was dropped"),
            },
        }
    }

    fn connected(&self, to: &Identity, lane: Lane) {
        if lane == Lane::Consensus {
            self.0.heard(to.node, |contact| contact.is_closed = false);
        }
        if lane != Lane::Requests {
            return;
        }
        self.0.heard(to.node, |contact| {
            contact.identity = Some(to.clone());
            contact.is_connected = true;
            contact.is_closed = false;
        });
        tracing::info!(node = %to.node, directory = %to.directory, start = to.boot, "connected to a node of the cluster");
        // Whoever was away has missed what changed; so both say what they know.
        let news = self.0.founding.lock().news();
        self.0.send_founding(vec![(to.node, news)]);
        if let Some(node) = self.0.served() {
            node.reconnected(to.node);
        }
    }

    fn absent(&self, to: NodeNumber, lane: Lane, reason: &Absence) {
        if *reason == Absence::Gone && lane == Lane::Consensus {
            self.0.closed(to);
        }
        if let Absence::Refused(sentence) = reason
            && lane == Lane::Requests
        {
            self.0.founding.lock().refused(sentence);
        }
    }

    fn disconnected(&self, to: NodeNumber, lane: Lane) {
        if lane == Lane::Requests {
            if let Some(contact) = self.0.contacts.lock().get_mut(&to) {
                contact.is_connected = false;
            }
            self.0.founding.lock().lost(to);
            if let Some(node) = self.0.served() {
                node.disconnected(to);
            }
            tracing::warn!(node = %to, "the connection to a node of the cluster is lost");
        }
        if lane == Lane::Bulk
            && let (Some(snapshots), Some(configuration)) = (self.0.snapshots.get(), self.0.configuration())
            && let Some(member) = configuration.member(to)
        {
            snapshots.disconnected(member);
        }
        if lane == Lane::Consensus
            && let (Some(node), Some(configuration)) = (self.0.served(), self.0.configuration())
            && let Some(member) = configuration.member(to)
        {
            node.unreachable(member);
        }
    }
}
