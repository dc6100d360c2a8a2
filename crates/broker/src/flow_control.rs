//! How much a partition takes at once.
//!
//! The number of user commands in flight (taken, but not applied yet) adapts to the latency that it causes behind the
//! log: as long as commands are applied within the target time after they are committed, and the limit is in use, it
//! grows by a few for each of its fillings; when they take longer, it shrinks by a tenth, at most once per target time, so
//! that a pause that says nothing about the load does not take away what the log needs in flight. When the next look shows
//! the same, it was no pause: from then on the limit shrinks with the time that is too much, by half at most.
//! How far it shrinks depends on what a command takes: a few dozen ordinary ones are always let in flight, because the log
//! needs them and they take little time, but of those that take milliseconds each (a decision with megabytes of results), only as
//! many as fill the target time.
//! So what is in front of the engine stays short whatever the disk can do, and what ends work, which this limit does
//! not delay, finds a short queue however much is to be started. What starts work waits if there is no room
//! (`held.rs`), and is refused at once if there is no room there either.

mod room;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock};
use protocol::{DeploymentIntent, JobIntent, PartitionId, Payload, ProcessInstanceIntent, UserTaskIntent};

use crate::disk::{Disk, DiskState, DiskView};
use crate::replication_loop::Share;
use crate::write_throttle::Pace;

/// How much the limit grows for each full window of applied commands.
const GROWTH_PER_FILLING: u32 = 16;
/// The limit never shrinks below this, whatever a command takes.
const LEAST_COMMANDS: u32 = 8;

/// Limits of flow control, for each partition.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowControlOptions {
    /// Limit of user commands in flight at the start.
    pub initial_commands: u32,
    /// What goes on with work finds room as long as there are fewer in flight, however low the limit is.
    pub continuing_commands: u32,
    /// The limit does not shrink below this as long as so many commands are applied within the target time.
    pub min_commands: u32,
    /// The limit never grows above this.
    pub max_commands: u32,
    /// Time from the commitment of a command to its application above which the limit shrinks.
    pub target_latency: Duration,
    /// Commands that start work and wait for room; for more than these, the newest of whoever has the most is refused.
    pub held_commands: usize,
    /// Bytes of commands in flight, of all users' commands together. Those that wait for room may take as much again.
    pub inflight_limit_bytes: usize,
    /// Bytes of changes of all partitions that wait in memory for their checkpoint: the memory of a node does not grow with the
    /// number of its partitions.
    pub state_limit_bytes: u64,
}

impl FlowControlOptions {
    /// A partition's share of [`Self::state_limit_bytes`], with room for the changes of a large command.
    pub(crate) fn state_limit_of(&self, partition_count: u16) -> u64 {
        const SMALLEST_SHARE_BYTES: u64 = 16 << 20;
        let all = self.state_limit_bytes;
        (all / u64::from(partition_count.max(1))).max(all.min(SMALLEST_SHARE_BYTES))
    }
}

impl Default for FlowControlOptions {
    fn default() -> Self {
        FlowControlOptions {
            // Before anything is known of them, they may each take milliseconds.
            initial_commands: 50,
            continuing_commands: 200,
            min_commands: 50,
            max_commands: 10_000,
            target_latency: Duration::from_millis(10),
            held_commands: 512,
            inflight_limit_bytes: 64 << 20,
            state_limit_bytes: 160 << 20,
        }
    }
}

/// How a command is treated at the entrance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Admission {
    /// Starts new work: all limits hold.
    Growth,
    /// Adds to what can be started. It is rare, so the number of commands does not hold it up; all other limits hold.
    Deployment,
    /// Goes on with work: limited in number, but not as strictly, and refused only when memory or disk would overflow.
    Limited,
    /// Ends work: refused only when memory or disk would overflow.
    Preferred,
    /// Between the gateway, the partitions and the engine itself: never refused, and bounded by what was admitted.
    Internal,
}

impl Admission {
    /// All of them, in the order of their numbers between nodes.
    pub const ALL: [Admission; 5] =
        [Admission::Growth, Admission::Deployment, Admission::Limited, Admission::Preferred, Admission::Internal];

    /// How commands with this payload are treated.
    pub fn of(payload: &Payload) -> Admission {
        match payload {
            Payload::Job(JobIntent::Complete | JobIntent::Fail, _)
            | Payload::UserTask(UserTaskIntent::Complete, _)
            | Payload::ProcessInstance(ProcessInstanceIntent::Cancel, _) => Admission::Preferred,
            Payload::Deployment(DeploymentIntent::Create, _) | Payload::GlobalListener(..) => Admission::Deployment,
            Payload::Job(JobIntent::Yield | JobIntent::TimeOut | JobIntent::RecurAfterBackoff, _)
            | Payload::Deployment(DeploymentIntent::Distribute, _)
            | Payload::JobStream(..)
            | Payload::JobPoll(..)
            | Payload::CommandDistribution(..)
            | Payload::ProcessInstanceBatch(..)
            | Payload::Work(..)
            | Payload::Outbox(..)
            | Payload::FeatureLevel(..)
            | Payload::Incarnation(..)
            | Payload::Settings(..)
            | Payload::Node(..)
            | Payload::Cluster(..)
            | Payload::GlobalListenerBatch(..)
            | Payload::Purge(..)
            | Payload::Clock(..) => Admission::Internal,
            Payload::Job(..)
            | Payload::JobBatch(..)
            | Payload::Incident(..)
            | Payload::ProcessInstance(..)
            | Payload::ProcessInstanceModification(..)
            | Payload::AdHocSubProcessInstruction(..)
            | Payload::ProcessInstanceMigration(..)
            | Payload::UserTask(..)
            | Payload::VariableDocument(..)
            | Payload::Resource(..)
            | Payload::ResourceDeletion(..) => Admission::Limited,
            Payload::Deployment(..)
            | Payload::ProcessInstanceCreation(..)
            | Payload::ProcessInstanceResult(..)
            | Payload::Message(..)
            | Payload::MessageCorrelation(..)
            | Payload::Signal(..)
            | Payload::SignalSubscription(..)
            | Payload::ConditionalSubscription(..)
            | Payload::ConditionalEvaluation(..)
            | Payload::MessageBatch(..)
            | Payload::MessageSubscription(..)
            | Payload::ProcessMessageSubscription(..)
            | Payload::MessageStartEventSubscription(..)
            | Payload::Timer(..)
            | Payload::Variable(..)
            | Payload::Process(..)
            | Payload::ProcessEvent(..)
            | Payload::Decision(..)
            | Payload::DecisionRequirements(..)
            | Payload::DecisionEvaluation(..)
            | Payload::Form(..)
            | Payload::Expression(..)
            | Payload::Escalation(..)
            | Payload::Error(..)
            | Payload::CompensationSubscription(..)
            | Payload::MultiInstance(..)
            | Payload::RuntimeInstruction(..) => Admission::Growth,
        }
    }

    /// Whether there is more to do afterwards, which is what a node without room refuses first.
    pub fn grows(self) -> bool {
        matches!(self, Admission::Growth | Admission::Deployment)
    }
}

/// What ends the pause of exporting.
pub(crate) const RESUME: &str =
    "exporting is paused, which POST /actuator/exporting/resume on the management port of the node ends";

/// Why a command was not admitted, as a sentence.
#[derive(Debug, Clone)]
pub(crate) enum Refusal {
    Commands { partition: PartitionId, in_flight: u32, limit: u32, min: u32, max: u32 },
    Bytes { partition: PartitionId, in_flight: usize, limit: usize },
    Backlog { partition: PartitionId, backlog: Arc<Backlog> },
    Pace { partition: PartitionId, pace: Arc<Pace> },
    State { partition: PartitionId, bytes: u64, limit: u64 },
    StateFile { partition: PartitionId, reason: Arc<str> },
    Disk(DiskView),
    Unwritable { partition: PartitionId, what: &'static str },
}

impl Refusal {
    /// Whether there will be room as soon as something in flight is applied.
    pub fn is_passing(&self) -> bool {
        matches!(self, Refusal::Commands { .. } | Refusal::Bytes { .. })
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Commands { partition, in_flight, limit, min, max } => write!(
                formatter,
                "partition {partition} has {in_flight} commands in flight, and its limit is {limit} now (it adapts \
                 between {min} and {max}); try again after a growing pause"
            ),
            Refusal::Bytes { partition, in_flight, limit } => write!(
                formatter,
                "partition {partition} has {in_flight} bytes of commands in flight, and its limit is {limit} bytes; try \
                 again after a growing pause"
            ),
            Refusal::Backlog { partition, backlog } => {
                let Backlog { exporter, bytes, limit_bytes, is_paused } = &**backlog;
                let way_out = match is_paused {
                    true => RESUME,
                    false => "bring the exporter's target back or remove the exporter",
                };
                write!(
                    formatter,
                    "partition {partition} keeps {bytes} bytes of records for the exporter '{exporter}', and its limit is \
                     {limit_bytes} bytes; {way_out}"
                )
            }
            Refusal::Pace { partition, pace } => write!(formatter, "in partition {partition}, {pace}"),
            Refusal::State { partition, bytes, limit } => write!(
                formatter,
                "partition {partition} holds {bytes} bytes of changes in memory that are not in a checkpoint, and its \
                 limit is {limit} bytes; try again after a growing pause, and look at the disk of the node if it stays so"
            ),
            Refusal::StateFile { partition, reason } => {
                write!(formatter, "partition {partition} takes no new work: {reason}")
            }
            Refusal::Disk(disk) => disk.fmt(formatter),
            Refusal::Unwritable { partition, what } => write!(
                formatter,
                "partition {partition} takes no new work now, because {what} cannot be written; try again after a growing \
                 pause, and look at the disk of the node (its log names the reason, and it goes on by itself when the disk \
                 is in order)"
            ),
        }
    }
}

/// An exporter that is too far behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Backlog {
    pub exporter: String,
    pub bytes: u64,
    pub limit_bytes: u64,
    /// An operator paused exporting.
    pub is_paused: bool,
}

impl Backlog {
    /// Ending work writes records too, so it may use as much again, but no more.
    fn refuses(&self, admission: Admission) -> bool {
        match admission {
            Admission::Growth | Admission::Deployment => true,
            Admission::Limited | Admission::Preferred => self.bytes > self.limit_bytes.saturating_mul(2),
            Admission::Internal => false,
        }
    }
}

/// When commands took longer than the target time.
#[derive(Debug, Default)]
struct Excess {
    /// When the limit last shrank for it.
    last_decrease: Option<Instant>,
    /// Nothing was in time since then.
    lasts: bool,
}

/// The limits of one partition and what is in flight.
#[derive(Debug)]
pub(crate) struct Limiter {
    partition: PartitionId,
    options: FlowControlOptions,
    commands: AtomicU32,
    bytes: AtomicUsize,
    limit: AtomicU32,
    state_bytes: AtomicU64,
    excess: Mutex<Excess>,
    backlog: RwLock<Option<Arc<Backlog>>>,
    /// How fast new work is taken, while an exporter slows it down.
    pace: RwLock<Option<Arc<Pace>>>,
    /// Why the state file cannot take more, while it cannot.
    full_state_file: RwLock<Option<Arc<str>>>,
    disk: Arc<Disk>,
    refused: AtomicUsize,
    /// Of those that were refused, the ones for which an exporter was too slow.
    refused_for_pace: AtomicUsize,
    admitted: AtomicUsize,
}

impl Limiter {
    pub fn new(partition: PartitionId, options: FlowControlOptions, disk: Arc<Disk>) -> Self {
        let limit = options.initial_commands.clamp(options.min_commands, options.max_commands);
        Limiter {
            partition,
            options,
            commands: AtomicU32::new(0),
            bytes: AtomicUsize::new(0),
            limit: AtomicU32::new(limit),
            state_bytes: AtomicU64::new(0),
            excess: Mutex::default(),
            backlog: RwLock::new(None),
            pace: RwLock::new(None),
            full_state_file: RwLock::new(None),
            disk,
            refused: AtomicUsize::new(0),
            refused_for_pace: AtomicUsize::new(0),
            admitted: AtomicUsize::new(0),
        }
    }

    /// Takes a share of the limits for a command. `unwritable` is what the partition needs and cannot write now.
    pub fn admit(
        self: &Arc<Self>,
        admission: Admission,
        bytes: usize,
        unwritable: Option<&'static str>,
    ) -> Result<Permit, Refusal> {
        let partition = self.partition;
        let refusal = unwritable.filter(|_| admission.grows()).map(|what| Refusal::Unwritable { partition, what });
        self.check(admission, bytes).and(refusal.map_or(Ok(()), Err))?;
        self.admitted.fetch_add(1, Ordering::Relaxed);
        self.commands.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(Permit { limiter: self.clone(), commands: 1, bytes, admitted: Instant::now(), committed: None })
    }

    /// Why nothing that starts work is taken now, if it is for the number of commands in flight.
    pub fn no_room(&self) -> Refusal {
        self.no_room_above(self.limit())
    }

    fn no_room_above(&self, limit: u32) -> Refusal {
        let (min, max) = (self.least_commands(), self.options.max_commands);
        Refusal::Commands { partition: self.partition, in_flight: self.in_flight(), limit, min, max }
    }

    /// Counts a command that was refused.
    pub fn count_refusal(&self, refusal: &Refusal) {
        self.refused.fetch_add(1, Ordering::Relaxed);
        if matches!(refusal, Refusal::Pace { .. }) {
            self.refused_for_pace.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The counters are read without a lock: threads that submit at the same moment may overshoot a limit by one each.
    fn check(&self, admission: Admission, bytes: usize) -> Result<(), Refusal> {
        let partition = self.partition;
        if admission == Admission::Internal {
            return Ok(());
        }
        match self.disk.state() {
            DiskState::Enough => {}
            DiskState::Low if !admission.grows() => {}
            DiskState::Low | DiskState::Full => return Err(Refusal::Disk(self.disk.view())),
        }
        let in_flight = self.bytes.load(Ordering::Relaxed);
        let limit = self.options.inflight_limit_bytes;
        // A command that is alone in flight is admitted whatever its size.
        if in_flight > 0 && in_flight.saturating_add(bytes) > limit {
            return Err(Refusal::Bytes { partition, in_flight, limit });
        }
        if let Some(backlog) = self.backlog.read().as_ref()
            && backlog.refuses(admission)
        {
            return Err(Refusal::Backlog { partition, backlog: backlog.clone() });
        }
        if admission.grows()
            && let Some(reason) = self.full_state_file.read().as_ref()
        {
            return Err(Refusal::StateFile { partition, reason: reason.clone() });
        }
        let (bytes, limit) = (self.state_bytes.load(Ordering::Relaxed), self.options.state_limit_bytes);
        // As with exporters: ending work may use as much again.
        let limit = if admission.grows() { limit } else { limit.saturating_mul(2) };
        if bytes > limit {
            return Err(Refusal::State { partition, bytes, limit });
        }
        let limit = match admission {
            Admission::Growth => self.limit(),
            Admission::Limited => self.limit().max(self.options.continuing_commands),
            _ => u32::MAX,
        };
        if self.in_flight() >= limit {
            return Err(self.no_room_above(limit));
        }
        // The last one, because it takes.
        if admission == Admission::Growth
            && let Some(pace) = self.pace.read().as_ref()
            && !pace.admits()
        {
            return Err(Refusal::Pace { partition, pace: pace.clone() });
        }
        Ok(())
    }

    /// An exporter is too far behind, or (none) no exporter is.
    pub fn set_backlog(&self, backlog: Option<Backlog>) {
        *self.backlog.write() = backlog.map(Arc::new);
    }

    /// New work is to be taken at this pace, or (none) as fast as it comes.
    pub fn set_pace(&self, pace: Option<Pace>) {
        *self.pace.write() = pace.map(Arc::new);
    }

    /// The state file is nearly full or a checkpoint did not fit into it, for this reason, or (none) there is room.
    pub fn set_full_state_file(&self, reason: Option<&str>) {
        *self.full_state_file.write() = reason.map(Arc::from);
    }

    /// How many bytes of changes wait for their checkpoint.
    pub fn set_state_bytes(&self, bytes: u64) {
        self.state_bytes.store(bytes, Ordering::Relaxed);
    }

    /// User commands in flight.
    pub fn in_flight(&self) -> u32 {
        self.commands.load(Ordering::Relaxed)
    }

    /// The limit of user commands in flight.
    pub fn limit(&self) -> u32 {
        self.limit.load(Ordering::Relaxed)
    }

    /// Of the refused ones, how many were refused because an exporter was too slow.
    pub fn refused_for_pace(&self) -> u64 {
        self.refused_for_pace.load(Ordering::Relaxed) as u64
    }

    /// How many commands were admitted and refused so far.
    pub fn totals(&self) -> (u64, u64) {
        (self.admitted.load(Ordering::Relaxed) as u64, self.refused.load(Ordering::Relaxed) as u64)
    }

    /// Adapts the limit to the time that commands took which are applied now.
    fn observe(&self, applied: Applied, now: Instant) {
        let Applied { commands, latency, .. } = applied;
        let limit = self.limit();
        let target = self.options.target_latency;
        if latency <= target {
            self.excess.lock().lasts = false;
            // A limit that is never reached says nothing about what the partition can do.
            if self.in_flight() >= limit / 2 {
                let share = u64::from(commands) * u64::from(GROWTH_PER_FILLING) / u64::from(limit.max(1));
                let step = u32::try_from(share).unwrap_or(u32::MAX).max(1);
                let grown = limit.saturating_add(step).min(self.options.max_commands);
                self.limit.store(grown, Ordering::Relaxed);
            }
            return;
        }
        let mut excess = self.excess.lock();
        if excess.last_decrease.is_none_or(|last| now.duration_since(last) > target) {
            let in_time = u64::try_from(per_mille(target, latency)).unwrap_or(u64::MAX).clamp(500, 900);
            let kept = u64::from(limit) * if excess.lasts { in_time } else { 900 } / 1_000;
            *excess = Excess { last_decrease: Some(now), lasts: true };
            let shrunk = u32::try_from(kept).unwrap_or(u32::MAX).max(self.least(applied)).min(limit);
            self.limit.store(shrunk, Ordering::Relaxed);
        }
    }

    /// How far the limit may shrink when commands take as long as these did: to so many as are applied within the target time,
    /// but never below a few and never above what is always let in flight.
    fn least(&self, applied: Applied) -> u32 {
        let Applied { commands, processing, .. } = applied;
        let in_time = per_mille(self.options.target_latency, processing).saturating_mul(u128::from(commands)) / 1_000;
        u32::try_from(in_time).unwrap_or(u32::MAX).clamp(self.least_commands(), self.options.min_commands)
    }

    fn least_commands(&self) -> u32 {
        LEAST_COMMANDS.min(self.options.min_commands)
    }
}

/// How many thousandths of the other time a time is.
fn per_mille(time: Duration, of: Duration) -> u128 {
    time.as_nanos().saturating_mul(1_000) / of.as_nanos().max(1)
}

/// Commands that are applied now.
#[derive(Debug, Clone, Copy)]
struct Applied {
    commands: u32,
    /// Time since they were committed.
    latency: Duration,
    /// How long the partition worked for them.
    processing: Duration,
}

/// A share of a partition's limits, given back when it is dropped: when its commands are applied or lost.
#[derive(Debug)]
pub struct Permit {
    limiter: Arc<Limiter>,
    commands: u32,
    bytes: usize,
    admitted: Instant,
    committed: Option<Instant>,
}

impl Permit {
    /// Joins the share of a later command of the same partition.
    pub(crate) fn join(&mut self, mut other: Permit) {
        debug_assert!(Arc::ptr_eq(&self.limiter, &other.limiter), "permits of one batch belong to one partition");
        self.commands = self.commands.saturating_add(std::mem::take(&mut other.commands));
        self.bytes = self.bytes.saturating_add(std::mem::take(&mut other.bytes));
        self.admitted = self.admitted.min(other.admitted);
    }

    /// When the first of the commands was taken.
    pub(crate) fn admitted(&self) -> Instant {
        self.admitted
    }

    /// The commands are in the log; what they wait for from now on is the engine.
    pub fn committed(&mut self, now: Instant) {
        self.committed = Some(now);
    }

    /// The commands are applied, for which the partition took this time: returns their share and lets the limit adapt.
    pub(crate) fn applied(self, now: Instant, processing: Duration) {
        let latency = now.saturating_duration_since(self.committed.unwrap_or(self.admitted));
        self.limiter.observe(Applied { commands: self.commands, latency, processing }, now);
    }
}

impl Share for Permit {
    fn join(&mut self, other: Self) {
        Permit::join(self, other);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.limiter.commands.fetch_sub(self.commands, Ordering::Relaxed);
        self.limiter.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write_throttle::{Slowest, WriteThrottle, WriteThrottleOptions};

    fn limiter_on(disk: Disk, options: FlowControlOptions) -> Arc<Limiter> {
        Arc::new(Limiter::new(PartitionId(2), options, Arc::new(disk)))
    }

    fn limiter(change: impl FnOnce(&mut FlowControlOptions)) -> Arc<Limiter> {
        let mut options = FlowControlOptions {
            initial_commands: 10,
            continuing_commands: 10,
            min_commands: 5,
            max_commands: 20,
            ..Default::default()
        };
        change(&mut options);
        limiter_on(Disk::unlimited(), options)
    }

    fn take(limiter: &Arc<Limiter>, count: usize) -> Permit {
        let mut permits = (0..count).map(|_| limiter.admit(Admission::Growth, 1, None).expect("below the limit"));
        let mut first = permits.next().expect("at least one");
        permits.for_each(|permit| first.join(permit));
        first
    }

    #[test]
    fn what_starts_work_is_told_from_what_goes_on_with_it_and_what_ends_it() {
        use protocol::{
            IncidentIntent, JobBatchIntent, MessageCorrelationIntent, MessageIntent, ProcessInstanceCreationIntent,
            SignalIntent,
        };

        let creation = ProcessInstanceCreationIntent::Create;
        for (payload, admission) in [
            (Payload::ProcessInstanceCreation(creation, Box::default()), Admission::Growth),
            (Payload::Message(MessageIntent::Publish, Box::default()), Admission::Growth),
            (Payload::MessageCorrelation(MessageCorrelationIntent::Correlate, Box::default()), Admission::Growth),
            (Payload::Signal(SignalIntent::Broadcast, Box::default()), Admission::Growth),
            (Payload::Deployment(DeploymentIntent::Create, Box::default()), Admission::Deployment),
            (Payload::JobBatch(JobBatchIntent::Activate, Box::default()), Admission::Limited),
            (Payload::Incident(IncidentIntent::Resolve, Box::default()), Admission::Limited),
            (Payload::Job(JobIntent::ThrowError, Arc::default()), Admission::Limited),
            (Payload::Job(JobIntent::Complete, Arc::default()), Admission::Preferred),
            (Payload::ProcessInstance(ProcessInstanceIntent::Cancel, Arc::default()), Admission::Preferred),
            (Payload::Job(JobIntent::TimeOut, Arc::default()), Admission::Internal),
        ] {
            assert_eq!(Admission::of(&payload), admission, "{payload:?}");
        }
    }

    #[test]
    fn the_command_limit_refuses_new_work_only_and_says_so() {
        let limiter = limiter(|_| {});
        let permit = take(&limiter, 10);
        let refusal = limiter.admit(Admission::Growth, 1, None).expect_err("the limit is reached");
        assert_eq!(
            refusal.to_string(),
            "partition 2 has 10 commands in flight, and its limit is 10 now (it adapts between 5 and 20); try again \
             after a growing pause"
        );
        let preferred =
            limiter.admit(Admission::Preferred, 1, None).expect("ending work is never refused by this limit");
        assert_eq!(limiter.in_flight(), 11);
        drop((permit, preferred));
        assert_eq!(limiter.in_flight(), 0);
        assert_eq!(limiter.totals(), (11, 0), "refusals count when a client is told");
    }

    #[test]
    fn the_byte_limit_holds_for_all_users_but_lets_one_command_through() {
        let limiter = limiter(|options| options.inflight_limit_bytes = 100);
        let large = limiter.admit(Admission::Growth, 500, None).expect("it is alone");
        let refusal = limiter.admit(Admission::Preferred, 1, None).expect_err("bytes are used up");
        assert!(refusal.to_string().contains("its limit is 100 bytes"), "{refusal}");
        limiter.admit(Admission::Internal, 500, None).expect("internal commands are never refused");
        drop(large);
        limiter.admit(Admission::Preferred, 1, None).expect("bytes are free again");
    }

    #[test]
    fn the_limit_grows_while_latency_is_low_and_shrinks_once_per_target_time() {
        let limiter = limiter(|_| {});
        let start = Instant::now();
        take(&limiter, 10).applied(start, Duration::ZERO);
        // The permit itself still counted while it was observed, so the limit was in use.
        assert_eq!(limiter.limit(), 20);
        let late = start + Duration::from_secs(10);
        take(&limiter, 5).applied(late, Duration::ZERO);
        assert_eq!(limiter.limit(), 18);
        take(&limiter, 5).applied(late, Duration::ZERO);
        assert_eq!(limiter.limit(), 18, "once per target time");
        for round in 1..20 {
            take(&limiter, 5).applied(late + Duration::from_secs(round), Duration::ZERO);
        }
        assert_eq!(limiter.limit(), 5, "never below the minimum");
    }

    #[test]
    fn the_time_that_the_log_takes_does_not_count() {
        let limiter = limiter(|_| {});
        let applied = Instant::now() + Duration::from_secs(10);
        let mut permit = take(&limiter, 10);
        permit.committed(applied);
        permit.applied(applied, Duration::ZERO);
        assert_eq!(limiter.limit(), 20);
    }

    /// What the limit is after batches of commands that each take a time of the partition, one after the other.
    fn limits_after(limiter: &Arc<Limiter>, each: Duration) -> [u32; 6] {
        let mut now = Instant::now();
        std::array::from_fn(|_| {
            let count = limiter.limit();
            let mut permit = take(limiter, count as usize);
            permit.committed(now);
            now += each * count;
            permit.applied(now, each * count);
            limiter.limit()
        })
    }

    #[test]
    fn a_limit_that_stays_too_high_shrinks_fast_and_to_few_where_each_command_takes_long() {
        let at_start = |each| {
            let limiter = limiter(|options| {
                (options.initial_commands, options.min_commands, options.max_commands) = (80, 50, 1_000)
            });
            limits_after(&limiter, each)
        };
        assert_eq!(
            at_start(Duration::from_millis(5)),
            [72, 36, 18, 9, 8, 8],
            "the first time it may have been a pause"
        );
        assert_eq!(at_start(Duration::from_micros(500)), [72, 36, 19, 35, 31, 19], "as many as take the target time");
        assert_eq!(at_start(Duration::from_micros(190))[..3], [72, 52, 68], "what is just in time grows again");
        let limits = at_start(Duration::from_micros(10));
        assert!(limits.is_sorted() && limits[0] > 80, "{limits:?}");
    }

    #[test]
    fn what_goes_on_with_work_finds_room_above_the_limit_for_new_work() {
        let limiter = limiter(|options| options.continuing_commands = 12);
        let mut permits = vec![take(&limiter, 10)];
        limiter.admit(Admission::Growth, 1, None).expect_err("the limit is reached");
        permits.extend([1, 2].map(|_| limiter.admit(Admission::Limited, 1, None).expect("there is room for that")));
        let refusal = limiter.admit(Admission::Limited, 1, None).expect_err("but not for ever").to_string();
        assert!(refusal.contains("12 commands in flight, and its limit is 12 now"), "{refusal}");
    }

    #[test]
    fn an_idle_limit_does_not_grow() {
        let limiter = limiter(|_| {});
        take(&limiter, 1).applied(Instant::now(), Duration::ZERO);
        assert_eq!(limiter.limit(), 10);
    }

    #[test]
    fn a_backlog_names_the_exporter_and_stops_all_users_at_twice_the_limit() {
        let limiter = limiter(|_| {});
        let backlog = |bytes| Backlog { exporter: "warehouse".to_owned(), bytes, limit_bytes: 1_000, is_paused: false };
        limiter.set_backlog(Some(backlog(1_001)));
        let refusal = limiter.admit(Admission::Growth, 1, None).expect_err("the exporter is behind");
        assert!(refusal.to_string().contains("for the exporter 'warehouse', and its limit is 1000 bytes"), "{refusal}");
        limiter.admit(Admission::Preferred, 1, None).expect("ending work goes on");
        limiter.set_backlog(Some(backlog(2_001)));
        limiter.admit(Admission::Preferred, 1, None).expect_err("twice the limit");
        limiter.set_backlog(Some(Backlog { is_paused: true, ..backlog(1_001) }));
        let refusal = limiter.admit(Admission::Growth, 1, None).expect_err("nothing is exported").to_string();
        assert!(refusal.contains("'warehouse'") && refusal.contains("POST /actuator/exporting/resume"), "{refusal}");
        limiter.set_backlog(None);
        limiter.admit(Admission::Growth, 1, None).expect("the exporter caught up");
    }

    #[test]
    fn changes_that_no_checkpoint_takes_refuse_new_work_first() {
        let limiter = limiter(|options| options.state_limit_bytes = 100);
        limiter.set_state_bytes(101);
        let refusal = limiter.admit(Admission::Growth, 1, None).expect_err("too many changes");
        assert!(refusal.to_string().contains("holds 101 bytes of changes in memory"), "{refusal}");
        limiter.admit(Admission::Preferred, 1, None).expect("ending work goes on");
        limiter.set_state_bytes(201);
        limiter.admit(Admission::Preferred, 1, None).expect_err("twice the limit");
    }

    #[test]
    fn a_state_file_that_is_nearly_full_refuses_new_work_by_name() {
        let limiter = limiter(|_| {});
        limiter.set_full_state_file(Some("the state file data.mdb uses 99 bytes, and its largest size is 100 bytes"));
        for growing in [Admission::Growth, Admission::Deployment] {
            let refusal = limiter.admit(growing, 1, None).expect_err("it is nearly full").to_string();
            assert!(refusal.contains("takes no new work: the state file data.mdb uses 99 bytes"), "{refusal}");
        }
        limiter.admit(Admission::Limited, 1, None).expect("jobs are still activated");
        limiter.admit(Admission::Preferred, 1, None).expect("ending work goes on");
        limiter.set_full_state_file(None);
        limiter.admit(Admission::Growth, 1, None).expect("there is room again");
    }

    #[test]
    fn the_disk_stops_new_work_first_and_everything_of_users_when_it_is_full() {
        let disk = Arc::new(Disk::measured(1 << 30, 100 << 20, 0));
        let limiter = Arc::new(Limiter::new(PartitionId(2), FlowControlOptions::default(), disk.clone()));
        limiter.admit(Admission::Growth, 1, None).expect("there is room");
        disk.note(50 << 20, 0);
        for growing in [Admission::Growth, Admission::Deployment] {
            let refusal = limiter.admit(growing, 1, None).expect_err("the disk is low").to_string();
            assert!(refusal.contains("the data directory data has 50 MiB free"), "{refusal}");
            assert!(refusal.contains("new work is taken only above 100 MiB; make room"), "{refusal}");
        }
        limiter.admit(Admission::Limited, 1, None).expect("jobs are still activated");
        limiter.admit(Admission::Preferred, 1, None).expect("ending work goes on");
        disk.note(1_000, 0);
        let refusal = limiter.admit(Admission::Preferred, 1, None).expect_err("the disk is full").to_string();
        assert!(refusal.contains("data is full (1000 bytes free, and the reserve is used up)"), "{refusal}");
        limiter.admit(Admission::Internal, 1, None).expect("what the node must do waits for room");
        disk.note(500 << 20, 0);
        limiter.admit(Admission::Growth, 1, None).expect("there is room again");
    }

    #[test]
    fn what_cannot_be_written_stops_new_work_whatever_the_reason() {
        let limiter = limiter(|_| {});
        let refusal = limiter.admit(Admission::Growth, 1, Some("its log")).expect_err("the log fails").to_string();
        assert!(
            refusal.starts_with("partition 2 takes no new work now, because its log cannot be written"),
            "{refusal}"
        );
        limiter.admit(Admission::Preferred, 1, Some("its log")).expect("it waits for the log");
        assert_eq!(limiter.totals().0, 1);
    }

    #[test]
    fn what_a_slow_exporter_refuses_is_counted_apart() {
        let limiter = limiter(|_| {});
        let mut throttle = WriteThrottle::new(Some(WriteThrottleOptions::above(10)), PartitionId(2));
        let slowest = Slowest { exporter: "slow", is_paused: false, exported: 0, written: 1_000, admitted: 0 };
        limiter.set_pace(throttle.look(Duration::ZERO, slowest));
        let refusal = limiter.admit(Admission::Growth, 1, None).expect_err("nothing may be written yet");
        limiter.count_refusal(&refusal);
        limiter.count_refusal(&limiter.no_room());
        assert_eq!((limiter.totals().1, limiter.refused_for_pace()), (2, 1));
    }
}
