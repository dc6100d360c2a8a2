//! The node as its gateway sees it: commands in, answers and jobs out.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use protocol::{Command, PartitionId, Payload, Request};

use crate::cluster::{ClusterPort, MemberReport, Positions, ReplicaStatus, reports};
use crate::disk::DiskView;
use crate::entrance::Entrance;
use crate::flow_control::Admission;
use crate::inbox::{Inbound, QueuedCommand};
use crate::polls::{has_jobs, is_poll};
use crate::requests::{KeptCommand, ReplyFunction};
use crate::shared::{JobsAvailableListener, Shared};
use crate::status::PartitionView;
use crate::streams::{JobSink, StreamHandle, StreamSpecification};
use crate::submit_error::SubmitError;
use crate::turns::{HeldCommand, SenderId};
use engine::Reply;

/// What the node knows about the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterView {
    /// The nodes in the order of their numbers.
    pub nodes: Vec<NodeView>,
    /// Number of partitions.
    pub partitions_count: u16,
    /// Number of replicas of every partition.
    pub replication_factor: u16,
    /// Number of nodes.
    pub cluster_size: u16,
    /// Name of the cluster, given once and part of the state of its partitions; never changes.
    pub cluster_id: String,
    /// The number of the last change of the cluster that was completed while this node runs.
    pub last_completed_change: Option<u64>,
}

/// One node of the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeView {
    /// Its number, from 0.
    pub node_id: u32,
    /// Where its clients find it.
    pub host: String,
    /// The port of its gateway.
    pub port: u16,
    /// The version it speaks for.
    pub version: String,
    /// Its replicas in the order of their partitions.
    pub partitions: Vec<PartitionView>,
}

/// The gateway's handle to the node. Cheap to clone, usable from every thread.
#[derive(Clone)]
pub struct Client {
    pub(crate) shared: Arc<Shared>,
    sender: SenderId,
}

/// A command that waits for its answer.
#[derive(Debug)]
pub struct PendingRequest {
    entrance: Option<(Arc<Entrance>, u64)>,
}

impl PendingRequest {
    /// The number of the request; none when the command was refused at once.
    pub fn number(&self) -> Option<u64> {
        self.entrance.as_ref().map(|(_, number)| *number)
    }

    /// The answer is no longer wanted: forgets the reply function, which is then never called. The command is still
    /// carried out.
    pub fn cancel(self) {
        if let Some((entrance, number)) = self.entrance {
            entrance.requests.forget(number);
        }
    }
}

/// A question that waits for its answers, until it is dropped.
#[must_use = "who drops it gives up"]
#[derive(Debug)]
pub struct PendingPositions(Option<(Arc<ClusterPort>, u64)>);

impl Drop for PendingPositions {
    fn drop(&mut self) {
        if let Some((port, question)) = &self.0 {
            port.forget_question(*question);
        }
    }
}

impl Client {
    /// What the node itself sends commands with.
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Client { shared, sender: SenderId::default() }
    }

    /// A handle for somebody else who sends commands, a connection for example: where commands wait for room, theirs take
    /// turns with those of all other senders.
    pub fn new_sender(&self) -> Client {
        let sender = SenderId(self.shared.next_sender.fetch_add(1, Ordering::Relaxed));
        Client { shared: self.shared.clone(), sender }
    }

    /// The number of this node.
    pub fn node(&self) -> u32 {
        self.shared.node
    }

    /// The cluster as this node sees it now.
    pub fn cluster(&self) -> ClusterView {
        let held = self.shared.entrances.all();
        let partitions = held
            .values()
            .map(|entrance| PartitionView { id: entrance.id, role: entrance.role(), health: entrance.health() })
            .collect();
        let (host, port) = self.shared.advertised_address.lock().clone();
        let node = NodeView {
            node_id: self.shared.node,
            host,
            port,
            version: protocol::BROKER_VERSION.to_owned(),
            partitions,
        };
        let mut nodes = vec![node];
        let port = self.shared.port.as_ref();
        let (contacts, now) = port.map(|port| (port.contacts(), port.now())).unzip();
        let contacts = contacts.unwrap_or_default();
        // Every node holds a replica of every partition.
        let size = u16::try_from(contacts.len() + 1).unwrap_or(u16::MAX);
        nodes.extend(contacts.into_iter().filter(|(_, contact)| now.is_some_and(|now| contact.is_alive(now))).map(
            |(node, contact)| NodeView {
                node_id: node.0,
                partitions: contact.status.replicas.iter().map(ReplicaStatus::view).collect(),
                host: contact.status.host,
                port: contact.status.port,
                version: contact.status.version,
            },
        ));
        nodes.sort_by_key(|node| node.node_id);
        ClusterView {
            nodes,
            partitions_count: self.partition_count(),
            replication_factor: size,
            cluster_size: size,
            cluster_id: self.shared.cluster_id.lock().clone(),
            last_completed_change: *self.shared.last_completed_change.lock(),
        }
    }

    /// Whether clients of this node are served: by a leader here, or by one elsewhere that the replica here is close to.
    pub fn is_served(&self) -> bool {
        self.shared.entrances.all().values().any(|entrance| self.shared.is_served(entrance))
    }

    /// Whether the replica of a partition at this node votes in its group.
    pub fn is_voter(&self, partition: u16) -> bool {
        let group = self.shared.entrance(PartitionId(partition)).ok().and_then(|entrance| entrance.group());
        group.is_some_and(|group| group.membership.voters.contains(&self.shared.member))
    }

    /// What this node knows of the members of its cluster, itself included; nothing at a node alone.
    pub fn member_reports(&self) -> Vec<MemberReport> {
        reports(&self.shared)
    }

    /// What an operator has to know about a partition of this node, in a sentence: why it stopped, for example.
    pub fn remark(&self, partition: u16) -> Option<String> {
        self.shared.entrance(PartitionId(partition)).ok()?.remark()
    }

    /// What an operator has to know of nodes of the cluster that are set up differently, a sentence each.
    pub fn disagreements(&self) -> Vec<String> {
        self.shared.port.as_ref().map(|port| port.disagreements().into_iter().collect()).unwrap_or_default()
    }

    /// The disk of the data directory as it was seen last.
    pub fn disk(&self) -> DiskView {
        self.shared.disk.view()
    }

    /// The partitions that this node holds now, in the order of their numbers.
    pub fn partition_ids(&self) -> impl Iterator<Item = PartitionId> {
        self.shared.entrances.all().keys().copied().collect::<Vec<_>>().into_iter()
    }

    /// Number of partitions of the cluster; they are numbered from 1.
    pub fn partition_count(&self) -> u16 {
        self.shared.partition_count
    }

    /// By how many partitions, from partition 1 on, messages find those who wait for them, which may be fewer than there
    /// are: as the state of the first partition that this node holds says, and before it is known, all.
    pub fn correlation_partition_count(&self) -> u16 {
        let held = self.shared.entrances.all();
        let first = held.values().next().and_then(|first| first.correlation_partition_count());
        first.unwrap_or_else(|| self.partition_count())
    }

    /// Position of the last record of a partition, beyond which no answer goes; none if the node does not hold it, or the
    /// partition does not work: then more may have been answered than is applied again. Also none in a cluster, where other
    /// nodes may have answered more.
    pub fn last_position(&self, partition: PartitionId) -> Option<u64> {
        let entrance = self.shared.entrance(partition).ok()?;
        (entrance.is_open() && self.shared.port.is_none()).then(|| entrance.last_position())
    }

    /// Position of the last record that this node's replica of a partition has applied; none if it holds none.
    pub fn applied_position(&self, partition: PartitionId) -> Option<u64> {
        self.shared.entrance(partition).ok().map(|entrance| entrance.last_position())
    }

    /// Asks how far the leaders of all partitions are at this moment: `told` is called, on any thread, when all of them are
    /// known and a majority of the nodes has answered. It is dropped uncalled when too many wait, or with what is returned;
    /// whoever has waited for long asks again, as leaders may change.
    pub fn leader_positions(&self, told: impl FnOnce(Positions) + Send + 'static) -> PendingPositions {
        let Some(port) = &self.shared.port else {
            told(
                self.shared.entrances.all().values().map(|entrance| (entrance.id, entrance.last_position())).collect(),
            );
            return PendingPositions(None);
        };
        let question = port.ask_how_far(&*self.shared, told);
        PendingPositions(question.map(|question| (port.clone(), question)))
    }

    /// The partition for the next thing that may be created anywhere: in turn, among those that take commands now. When
    /// none does, the next one, which says why, as the first one does for a node that holds none.
    pub fn next_partition(&self) -> PartitionId {
        let entrances = self.shared.entrances.all();
        let mut turns = entrances.iter().map(|_| {
            let turn = self.shared.next_partition.fetch_add(1, Ordering::Relaxed) % entrances.len() as u64;
            let turn = usize::try_from(turn).expect("a remainder is below the number of partitions");
            entrances.values().nth(turn).expect("a remainder is below the number of partitions")
        });
        let Some(first) = turns.next() else { return PartitionId::DEPLOYMENT };
        if first.is_led() { first.id } else { turns.find(|entrance| entrance.is_led()).unwrap_or(first).id }
    }

    /// Hands the command to the partition's inbox. `reply` is called exactly once and must not block: with the engine's
    /// answer on a thread of the broker, or with an error (at once, on the calling thread, when the command is refused; later
    /// on any thread, when it waits for room and has to leave).
    /// A command whose caller gave up is cancelled through the returned handle, or its reply comes and goes unread.
    pub fn submit(
        &self,
        partition: PartitionId,
        mut command: Command,
        reply: impl FnOnce(Result<Reply, SubmitError>) + Send + 'static,
    ) -> PendingRequest {
        let entrance = match self.shared.entrance(partition) {
            Ok(entrance) => entrance,
            Err(error) => return refused(reply, error),
        };
        let number = entrance.next_request.fetch_add(1, Ordering::Relaxed);
        command.request = Some(Request { node: self.shared.node, number });
        let reply = self.note_poll(partition, number, &command.payload, Box::new(reply));
        let (bytes, admission) = match self.encode(&entrance, &command) {
            Ok(encoded) => encoded,
            Err(error) => return refused(reply, error),
        };
        // It is open in this term only if that is the same before and after: a command that counts for another term than the one
        // in which it is proposed would be waited for without end, or be called lost although it is carried out.
        let term = entrance.term();
        let is_open = entrance.is_open() && (self.shared.port.is_none() || entrance.term() == term);
        if !is_open {
            let command = KeptCommand { bytes: bytes.into(), admission, sender: self.sender };
            if let Err((reply, error)) = entrance.requests.park(number, command, reply) {
                return refused(reply, error);
            }
            entrance.send_on(&self.shared, number);
            return PendingRequest { entrance: Some((entrance, number)) };
        }
        let admitted = entrance.admit(admission, bytes.len());
        if let Err(refusal) = &admitted
            && !(admission == Admission::Growth && refusal.is_passing())
        {
            return refused(reply, entrance.refuse(refusal));
        }
        // Registered before the command leaves: the answer may come before `send` returns.
        if let Err((reply, error)) = entrance.requests.wait(number, term, reply) {
            return refused(reply, error);
        }
        match admitted {
            Ok(permit) => {
                let queued = QueuedCommand { partition, bytes, permit: Some(permit), term: Some(term) };
                if self.shared.inbox.send(Inbound::Command(queued)).is_err() {
                    entrance.fail(Request { node: self.shared.node, number }, &SubmitError::Stopped);
                }
            }
            Err(refusal) => {
                let request = Request { node: self.shared.node, number };
                let held = HeldCommand { request, sender: self.sender, bytes };
                entrance.hold(self.sender, held, &refusal, &self.shared.inbox);
            }
        }
        PendingRequest { entrance: Some((entrance, number)) }
    }

    /// A poll ends with its answer, unless that has jobs: then a client gets them first.
    fn note_poll(&self, partition: PartitionId, number: u64, payload: &Payload, reply: ReplyFunction) -> ReplyFunction {
        if !is_poll(payload) {
            return reply;
        }
        self.shared.polls.begin(partition, number);
        let shared = self.shared.clone();
        Box::new(move |answer| {
            if !has_jobs(&answer) {
                shared.polls.end(partition, number);
            }
            reply(answer);
        })
    }

    /// Hands the command to the partition's inbox without waiting for an answer.
    ///
    /// # Errors
    /// When the command is refused at once.
    pub fn send(&self, partition: PartitionId, command: Command) -> Result<(), SubmitError> {
        let entrance = self.shared.entrance(partition)?;
        let (bytes, admission) = self.encode(&entrance, &command)?;
        if !entrance.is_open() {
            return entrance.forward(&self.shared, admission, &bytes);
        }
        let permit = entrance.admit(admission, bytes.len()).map_err(|refusal| entrance.refuse(&refusal))?;
        let queued = QueuedCommand { partition, bytes, permit: Some(permit), term: None };
        self.shared.inbox.send(Inbound::Command(queued)).map_err(|_| SubmitError::Stopped)
    }

    /// Opens a job stream on every partition (and again after a change of leader). Jobs arrive at the `sink` until the
    /// handle is closed or dropped.
    ///
    /// # Errors
    /// When a partition has no room for what that writes: its memory for commands, or the disk, is used up.
    pub fn open_stream(
        &self,
        specification: StreamSpecification,
        sink: Arc<dyn JobSink>,
    ) -> Result<StreamHandle, SubmitError> {
        if self.shared.stopping.load(Ordering::Acquire) {
            return Err(SubmitError::Stopped);
        }
        self.shared.streams.open(&self.shared, specification, sink)
    }

    /// Adds a listener that is called on a broker thread whenever a partition announces available jobs. It must not
    /// block.
    pub fn on_jobs_available(&self, listener: JobsAvailableListener) {
        self.shared.listeners.write().push(listener);
    }

    fn encode(&self, entrance: &Entrance, command: &Command) -> Result<(Vec<u8>, Admission), SubmitError> {
        if self.shared.stopping.load(Ordering::Acquire) {
            return Err(SubmitError::Stopped);
        }
        // At a member of a cluster it goes to another node, or waits a little until there is a leader.
        if !entrance.is_open() && (self.shared.port.is_none() || entrance.health().has_stopped()) {
            return Err(entrance.not_led_here());
        }
        let bytes = protocol::encode_to_vec(command);
        let limit_bytes = self.shared.command_limit_bytes;
        if bytes.len() > limit_bytes {
            return Err(SubmitError::PayloadTooLarge { bytes: bytes.len(), limit_bytes });
        }
        Ok((bytes, Admission::of(&command.payload)))
    }
}

fn refused(reply: impl FnOnce(Result<Reply, SubmitError>), error: SubmitError) -> PendingRequest {
    reply(Err(error));
    PendingRequest { entrance: None }
}

#[cfg(test)]
mod tests {
    use crate::status::{Health, Role};
    use protocol::{Key, MessageIntent, MessageValue, Payload};

    use super::*;

    #[test]
    fn what_may_be_created_anywhere_goes_to_partitions_that_take_it() {
        let (shared, _inbox) = Shared::for_test(3, 8);
        let client = Client::new(shared.clone());
        let turns = || (0..6).map(|_| client.next_partition().0).collect::<Vec<_>>();
        assert_eq!(turns(), [1, 2, 3, 1, 2, 3]);
        shared.entrances.of(PartitionId(2)).set_health(Health::Dead);
        assert_eq!(turns(), [1, 3, 1, 3, 1, 3]);
        shared.entrances.all().values().for_each(|entrance| entrance.set_role(Role::Inactive));
        assert!((1..=3).contains(&client.next_partition().0), "the one that is asked says why");
    }

    #[test]
    fn messages_go_by_the_count_that_the_state_has() {
        let (shared, _inbox) = Shared::for_test(3, 8);
        let client = Client::new(shared.clone());
        assert_eq!(client.correlation_partition_count(), 3, "before the state is known");
        // Partitions were added to two.
        let options = engine::EngineOptions::new(PartitionId(1), 2);
        shared.entrances.of(PartitionId(1)).applied(&engine::Engine::in_memory(options));
        assert_eq!((client.correlation_partition_count(), client.partition_count()), (2, 3));
    }

    fn message(name: &str) -> Command {
        let message = MessageValue { name: name.into(), ..Default::default() };
        Command::new(Key::NONE, Payload::Message(MessageIntent::Publish, Box::new(message)))
    }

    #[test]
    fn who_sends_one_command_does_not_wait_behind_the_hundreds_of_another() {
        let (shared, inbox) = Shared::for_test(1, 8);
        let (partition, clients) = (PartitionId(1), Client::new(shared.clone()));
        let (many, one, third) = (clients.new_sender(), clients.new_sender(), clients.new_sender());
        let (sender, answers) = std::sync::mpsc::channel();
        let send = |client: &Client, name: &str| {
            let (sender, answered) = (sender.clone(), name.to_owned());
            client.submit(partition, message(name), move |answer| {
                let refused = matches!(answer, Err(SubmitError::ResourceExhausted { .. }));
                drop(sender.send((answered, refused)));
            });
        };
        let taken = || {
            inbox.try_iter().map(|inbound| match inbound {
                Inbound::Command(QueuedCommand { bytes, permit, .. }) => {
                    let Payload::Message(_, message) = protocol::decode::<Command>(&bytes).expect("encoded").payload
                    else {
                        panic!("a message was sent");
                    };
                    (message.name.to_string(), permit)
                }
                other => panic!("unexpected {other:?}"),
            })
        };
        let (limit, held) = (50, 512);
        for number in 0..limit + held {
            send(&many, &number.to_string());
        }
        let mut in_flight: Vec<_> = taken().collect();
        assert_eq!(in_flight.len(), limit);
        send(&one, "one");
        send(&third, "third");
        let refused: Vec<_> = answers.try_iter().collect();
        assert_eq!(refused, [("561".to_owned(), true), ("560".to_owned(), true)], "the newest ones made room");
        send(&many, "one more");
        assert_eq!(answers.try_iter().collect::<Vec<_>>(), [("one more".to_owned(), true)]);
        for expected in ["50", "one", "third", "51", "52"] {
            in_flight.remove(0);
            shared.entrances.of(PartitionId(1)).admit_held(&shared.inbox);
            let admitted: Vec<_> = taken().collect();
            assert_eq!(admitted.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), [expected]);
            in_flight.extend(admitted);
        }
    }
}
