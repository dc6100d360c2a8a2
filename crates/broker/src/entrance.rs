//! What other threads see of a partition.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crossbeam_channel::Sender;
use engine::{Engine, FeatureLevel, Reply};
use parking_lot::Mutex;
use protocol::{PartitionId, Request};
use replication::GroupStatus;

use crate::cluster::{ClusterPort, RefusedCommand};
use crate::flow_control::{Admission, Limiter, Permit, Refusal};
use crate::held::Held;
use crate::inbox::Inbound;
use crate::record_log::RecordLogError;
use crate::requests::Requests;
use crate::status::{Health, Role, Trouble};
use crate::submit_error::SubmitError;

const ROLE_BITS: u32 = 8;
const ROLE_MASK: u64 = (1 << ROLE_BITS) - 1;

/// The way into a partition, shared by the threads that submit commands and the thread that owns the partition.
#[derive(Debug)]
pub(crate) struct Entrance {
    pub id: PartitionId,
    /// The number of this node.
    pub node: u32,
    /// The way to the other nodes; none of a node alone.
    pub port: Option<Arc<ClusterPort>>,
    pub limiter: Arc<Limiter>,
    pub requests: Requests,
    pub held: Held,
    /// The number of the next request.
    pub next_request: AtomicU64,
    /// The role in the lowest byte, and above it how many leaderships have ended here.
    role: AtomicU64,
    health: AtomicU8,
    /// One bit for each trouble that is being retried.
    troubles: AtomicU8,
    /// What an operator has to know, in a sentence.
    remark: Mutex<Option<String>>,
    /// By which rules the partition works.
    feature_level: AtomicU32,
    /// By how many partitions its state routes messages; 0 before that is known.
    correlation_partition_count: AtomicU16,
    /// Position of the last record that is part of its state.
    last_position: AtomicU64,
    /// Who leads, as the replica of this node knows it.
    lead: Mutex<Lead>,
    /// The term of it, read without the lock.
    term: AtomicU64,
    /// How the group was when the thread of the log looked last.
    group: Mutex<Option<GroupStatus>>,
    /// Told (without blocking) that the role has changed.
    watchers: Mutex<Vec<Sender<()>>>,
}

/// Who leads a partition.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Lead {
    /// Raft's term.
    pub term: u64,
    /// The node, once it is known.
    pub leader: Option<u32>,
}

impl Entrance {
    pub fn new(id: PartitionId, limiter: Arc<Limiter>, requests: Requests, held: Held) -> Self {
        Entrance {
            id,
            node: 0,
            port: None,
            limiter,
            requests,
            held,
            next_request: AtomicU64::new(1),
            role: AtomicU64::new(Role::Inactive as u64),
            health: AtomicU8::new(Health::Unhealthy as u8),
            troubles: AtomicU8::new(0),
            remark: Mutex::default(),
            feature_level: AtomicU32::new(FeatureLevel::OLDEST.number()),
            correlation_partition_count: AtomicU16::new(0),
            last_position: AtomicU64::new(0),
            lead: Mutex::default(),
            term: AtomicU64::new(0),
            group: Mutex::default(),
            watchers: Mutex::default(),
        }
    }

    /// From now on, this is told (without blocking) when the role has changed.
    pub fn watch_role(&self, watcher: Sender<()>) {
        self.watchers.lock().push(watcher);
    }

    fn role_changed(&self) {
        // A full channel means that it is known already.
        for watcher in &*self.watchers.lock() {
            let _ = watcher.try_send(());
        }
    }

    /// The same at a node of a cluster.
    pub fn at(self, node: u32, port: Option<Arc<ClusterPort>>) -> Self {
        Entrance { node, port, ..self }
    }

    /// Who leads, as far as this node knows.
    pub fn lead(&self) -> Lead {
        *self.lead.lock()
    }

    /// The term that this node's replica is in.
    pub fn term(&self) -> u64 {
        self.term.load(Ordering::Acquire)
    }

    /// Somebody leads, or nobody that is known.
    pub fn set_lead(&self, term: u64, leader: Option<u32>) {
        let mut lead = self.lead.lock();
        *lead = Lead { term, leader };
        self.term.store(term, Ordering::Release);
    }

    /// How the group was when the thread of the log looked last.
    pub fn group(&self) -> Option<GroupStatus> {
        self.group.lock().clone()
    }

    /// The thread of the log has looked at the group.
    pub fn set_group(&self, status: GroupStatus) {
        *self.group.lock() = Some(status);
    }

    /// What the gateway has to know of the state that was just applied.
    pub fn applied(&self, engine: &Engine) {
        self.set_feature_level(engine.feature_level());
        self.correlation_partition_count.store(engine.correlation_partition_count(), Ordering::Release);
        self.last_position.store(engine.last_position(), Ordering::Release);
    }

    /// Position of the last record that is part of its state. No answer says a later one.
    pub fn last_position(&self) -> u64 {
        self.last_position.load(Ordering::Acquire)
    }

    /// By how many partitions its state routes messages, as soon as that is known.
    pub fn correlation_partition_count(&self) -> Option<u16> {
        Some(self.correlation_partition_count.load(Ordering::Acquire)).filter(|count| *count > 0)
    }

    /// The partition works by the rules of this level.
    pub fn set_feature_level(&self, level: FeatureLevel) {
        self.feature_level.store(level.number(), Ordering::Release);
    }

    /// By which rules the partition works.
    pub fn feature_level(&self) -> u32 {
        self.feature_level.load(Ordering::Acquire)
    }

    /// Whether commands find a leader, here or at another node.
    pub fn is_led(&self) -> bool {
        // Without a replica that works, nobody would hear what became of a command.
        self.is_open() || !self.health().has_stopped() && self.lead().leader.is_some_and(|node| node != self.node)
    }

    /// Whether commands may come in.
    pub fn is_open(&self) -> bool {
        self.role() == Role::Leader && !self.health().has_stopped()
    }

    /// Takes a share of the limits for a command, unless others wait for one already.
    pub fn admit(&self, admission: Admission, bytes: usize) -> Result<Permit, Refusal> {
        if admission == Admission::Growth && !self.held.is_empty() {
            return Err(self.limiter.no_room());
        }
        self.limiter.admit(admission, bytes, self.unwritable())
    }

    /// The answer to a command that is not taken.
    pub fn refuse(&self, refusal: &Refusal) -> SubmitError {
        self.limiter.count_refusal(refusal);
        SubmitError::ResourceExhausted { partition: self.id, reason: refusal.to_string() }
    }

    /// Answers all waiting requests with an error: their commands were lost, or their outcome will not be known here.
    pub fn fail_all(&self, error: &SubmitError) {
        for held in self.held.drain().filter(|held| held.request.node != self.node) {
            self.fail(held.request, error);
        }
        self.requests.fail_all(error);
    }

    /// Answers a request whose command is not taken, at this node or at another.
    pub fn fail(&self, request: Request, error: &SubmitError) {
        if request.node != self.node {
            return self.refuse_elsewhere(request, &RefusedCommand::new(self.id, request.number, error));
        }
        if let Some(function) = self.requests.take(request.number) {
            function(Err(error.clone()));
        }
    }

    /// Says to the node of a client that its command was not taken.
    pub fn refuse_elsewhere(&self, request: Request, refusal: &RefusedCommand) {
        if let Some(port) = &self.port {
            port.refuse(request.node, refusal);
        }
    }

    /// Why a command is not taken by a node that does not lead.
    pub fn not_led_here(&self) -> SubmitError {
        let reason = match self.health().has_stopped() {
            true => "it has stopped until an operator looks at it; the health of its node says why",
            false => "it has no leader here yet",
        };
        SubmitError::Unavailable { partition: self.id, reason: reason.into() }
    }

    /// Answers a request of this node. Gives the answer back when nobody waits for it.
    pub fn answer(&self, reply: Reply) -> Option<Reply> {
        if reply.request.node != self.node {
            return None;
        }
        match self.requests.take(reply.request.number) {
            Some(function) => {
                function(Ok(reply));
                None
            }
            None => Some(reply),
        }
    }

    /// The records of a batch were written, for which the partition worked so long: its share of the limits is free again.
    pub fn written(&self, permit: Option<Permit>, at: Instant, processing: Duration, inbox: &Sender<Inbound>) {
        if let Some(permit) = permit {
            permit.applied(at, processing);
            self.admit_held(inbox);
        }
    }

    /// Records were written, or could not be, which is tried again.
    pub fn records_flushed(&self, result: Result<(), &RecordLogError>, inbox: &Sender<Inbound>) {
        match result {
            Ok(()) => {
                if self.set_trouble(Trouble::Records, false) {
                    tracing::info!(partition = %self.id, "the record stream can be written again");
                }
            }
            Err(error) => {
                if self.set_trouble(Trouble::Records, true) {
                    tracing::warn!(
                        partition = %self.id, %error,
                        "the record stream cannot be written; the partition waits and tries again until it works"
                    );
                }
                // What waits for room is refused with the reason.
                self.admit_held(inbox);
            }
        }
    }

    /// The partition takes no part in anything any more.
    pub fn stop(&self, health: Health, reason: &str) {
        self.set_remark(reason);
        self.set_role(Role::Inactive);
        self.set_health(health);
    }

    /// Whoever waits for an answer of the stopped partition gets none.
    pub fn refuse_all(&self) {
        let reason = "it has stopped until an operator looks at it; the health of its node says why";
        self.fail_all(&SubmitError::Unavailable { partition: self.id, reason: reason.into() });
    }

    pub fn role(&self) -> Role {
        match self.role.load(Ordering::Acquire) & ROLE_MASK {
            role if role == Role::Leader as u64 => Role::Leader,
            role if role == Role::Follower as u64 => Role::Follower,
            _ => Role::Inactive,
        }
    }

    /// A dead partition stays inactive.
    pub fn set_role(&self, role: Role) {
        let role = if self.health().has_stopped() { Role::Inactive } else { role };
        let set = |current: u64| Some(current & !ROLE_MASK | role as u64);
        // An update that always has a value never fails.
        let _ = self.role.fetch_update(Ordering::AcqRel, Ordering::Acquire, set);
        self.role_changed();
    }

    /// The number of the leadership that comes next, or is under way.
    pub fn leadership(&self) -> u64 {
        self.role.load(Ordering::Acquire) >> ROLE_BITS
    }

    /// Lets commands in for a leadership. `false` when that has ended meanwhile.
    pub fn open(&self, leadership: u64) -> bool {
        let open =
            |current: u64| (current >> ROLE_BITS == leadership).then_some(current & !ROLE_MASK | Role::Leader as u64);
        let is_open = self.role.fetch_update(Ordering::AcqRel, Ordering::Acquire, open).is_ok();
        self.role_changed();
        is_open
    }

    /// Lets no commands in any more: the leadership has ended, or ends before it began.
    pub fn close(&self) {
        let role = if self.health().has_stopped() { Role::Inactive } else { Role::Follower };
        let close = |current: u64| Some(((current >> ROLE_BITS) + 1) << ROLE_BITS | role as u64);
        let _ = self.role.fetch_update(Ordering::AcqRel, Ordering::Acquire, close);
        self.role_changed();
    }

    pub fn health(&self) -> Health {
        match self.health.load(Ordering::Acquire) {
            health if health == Health::Dead as u8 => Health::Dead,
            health if health == Health::LeftOut as u8 => Health::LeftOut,
            health if health == Health::Healthy as u8 && self.troubles.load(Ordering::Acquire) == 0 => Health::Healthy,
            _ => Health::Unhealthy,
        }
    }

    pub fn set_health(&self, health: Health) {
        self.health.store(health as u8, Ordering::Release);
    }

    /// What an operator has to know: why the partition stopped, or what it leaves out.
    pub fn remark(&self) -> Option<String> {
        self.remark.lock().clone()
    }

    pub fn set_remark(&self, remark: &str) {
        *self.remark.lock() = Some(remark.to_owned());
    }

    /// What the partition must write for every command and cannot write now.
    pub fn unwritable(&self) -> Option<&'static str> {
        match self.troubles.load(Ordering::Acquire) {
            0 => None,
            troubles if troubles & Trouble::Log as u8 != 0 => Some("its log"),
            troubles if troubles & Trouble::Records as u8 != 0 => Some("its record stream"),
            // A checkpoint has time: the limit of changes that wait for one holds meanwhile.
            _ => None,
        }
    }

    /// Something that the partition needs fails and is tried again, or works again. Returns whether that is news.
    pub fn set_trouble(&self, trouble: Trouble, troubled: bool) -> bool {
        let bit = trouble as u8;
        let before = match troubled {
            true => self.troubles.fetch_or(bit, Ordering::AcqRel),
            false => self.troubles.fetch_and(!bit, Ordering::AcqRel),
        };
        (before & bit != 0) != troubled
    }
}
