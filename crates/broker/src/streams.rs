//! Job streams: which connections of this node take jobs of which type, and how many more each of them can take.
//!
//! Every stream has a window of credit on every partition, in jobs and in bytes. The partition's state counts what it may
//! still push; here is counted what was pushed and not yet handed to the connection. Credit goes back in one GRANT per half
//! window, as a total since the stream was opened. So a pushed job always finds room in the connection's queue, and a slow
//! worker costs the log nothing.
//!
//! The bytes of a window are shared among the partitions. With many open streams each has less, so that all together hold
//! no more than their limit; at least one job of any size is always possible.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::{Mutex, RwLock};
use protocol::{
    Command, JobAmount, JobStreamIntent, JobStreamValue, Key, PartitionId, Payload, Request, StreamId, Text, life_of,
};

use crate::entrance::Entrance;
use crate::flow_control::{Admission, Permit};
use crate::inbox::{Inbound, QueuedCommand};
use crate::shared::Shared;
use crate::submit_error::SubmitError;
use engine::{Engine, Push, Reply, StreamTotals};

/// What a job stream wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamSpecification {
    /// Type of the jobs.
    pub job_type: Text,
    /// Name of the worker.
    pub worker: Text,
    /// Milliseconds until an activation ends.
    pub timeout: i64,
    /// Variables wanted; empty for all.
    pub fetch_variables: Vec<Text>,
    /// Tenants whose jobs are wanted.
    pub tenant_ids: Vec<Text>,
}

/// Where the jobs of a stream go.
pub trait JobSink: Send + Sync {
    /// Takes a job. Never blocks: the credit window guarantees room. `false` means that the client is gone, and that the
    /// stream is about to be closed, which gives the job back.
    fn push(&self, push: Push) -> bool;
}

/// What a stream may hold of all partitions together, in jobs.
const STREAM_JOBS_MAX: u32 = 128;
/// What a stream may hold of each partition at least, in jobs: a grant comes with every half of it.
const PARTITION_JOBS_MIN: u64 = 16;
/// What a stream may hold of all partitions together, in bytes.
const STREAM_BYTES_MAX: usize = 4 << 20;
/// What all streams of a node may hold together, in bytes.
const NODE_STREAM_BYTES_MAX: usize = 256 << 20;

/// What streams may hold that their connections have not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamWindow {
    /// Jobs of each stream, for all partitions together.
    pub jobs: u32,
    /// Bytes of each stream, for all partitions together.
    pub bytes: usize,
    /// Bytes of all streams of this node together.
    pub node_bytes: usize,
}

impl Default for StreamWindow {
    fn default() -> Self {
        StreamWindow { jobs: STREAM_JOBS_MAX, bytes: STREAM_BYTES_MAX, node_bytes: NODE_STREAM_BYTES_MAX }
    }
}

impl StreamWindow {
    /// The share of one stream on one partition.
    fn share(&self, streams: usize, partitions: usize) -> JobAmount {
        let bytes = self.bytes.min(self.node_bytes / streams.max(1)) / partitions.max(1);
        // With many partitions a stream still holds no more jobs than its worker has use for.
        let jobs = usize::try_from(self.jobs).unwrap_or(usize::MAX) / partitions.max(1);
        let jobs = (jobs as u64).max(PARTITION_JOBS_MIN).min(self.jobs.max(1).into());
        JobAmount { jobs, bytes: bytes.max(1) as u64 }
    }
}

/// All open streams of this node.
pub(crate) struct Streams {
    window: StreamWindow,
    open: RwLock<HashMap<u64, Arc<Stream>>>,
    /// How many are open, read without the lock.
    count: AtomicUsize,
    /// Closed, and perhaps known to a partition still.
    closed: RwLock<BTreeMap<u64, Closed>>,
    partitions: RwLock<BTreeSet<PartitionId>>,
    pushed: AtomicU64,
    yielded: AtomicU64,
}

/// A stream that was closed.
struct Closed {
    stream: Arc<Stream>,
    /// The partitions whose state was seen without it.
    gone_from: BTreeSet<PartitionId>,
}

struct Stream {
    id: StreamId,
    specification: StreamSpecification,
    sink: Arc<dyn JobSink>,
    /// Of each partition that had to do with the stream.
    credits: RwLock<BTreeMap<PartitionId, Arc<Mutex<Credit>>>>,
}

#[derive(Debug, Default)]
struct Credit {
    /// How the partition's state had the stream when it was looked at last.
    seen: Seen,
    /// What came from the partition, as all that follows since the stream was opened.
    pushed: JobAmount,
    /// What the connection took, in the order in which it came: so `delivered.jobs` is the number of the last such push.
    delivered: JobAmount,
    /// What the partition knows.
    granted: JobAmount,
}

/// Whether a partition's state has a stream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Seen {
    /// Its registration is on its way.
    #[default]
    NotYet,
    /// It was missing when it was looked at last: if it still is, its registration got lost.
    Missing,
    /// It is there.
    There,
    /// It is there, and the state lacks a grant. If it still does, that got lost.
    Behind,
}

impl Credit {
    fn undelivered(&self) -> JobAmount {
        self.pushed.minus(self.delivered)
    }
}

impl Streams {
    pub fn new(partitions: impl Iterator<Item = PartitionId>, window: StreamWindow) -> Self {
        Streams {
            window,
            open: RwLock::default(),
            count: AtomicUsize::new(0),
            closed: RwLock::default(),
            partitions: RwLock::new(partitions.collect()),
            pushed: AtomicU64::new(0),
            yielded: AtomicU64::new(0),
        }
    }

    /// The node holds one more partition. The open streams are registered there when its state is looked at.
    pub fn add_partition(&self, partition: PartitionId) {
        self.partitions.write().insert(partition);
    }

    fn partitions(&self) -> Vec<PartitionId> {
        self.partitions.read().iter().copied().collect()
    }

    /// Number of open streams.
    pub fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// How many streams have used up their credit on a partition, counted for each partition, and the bytes of jobs that no
    /// connection has taken.
    pub fn blocked(&self) -> (usize, u64) {
        let open = self.open.read();
        let credits = open.values().flat_map(|stream| stream.credits.read().values().cloned().collect::<Vec<_>>());
        credits.fold((0, 0), |(blocked, bytes), credit| {
            let credit = credit.lock();
            let left = credit.granted.minus(credit.pushed);
            let is_blocked = credit.granted.jobs > 0 && (left.jobs == 0 || left.bytes == 0);
            (blocked + usize::from(is_blocked), bytes + credit.undelivered().bytes)
        })
    }

    /// Jobs pushed and jobs given back so far.
    pub fn totals(&self) -> (u64, u64) {
        (self.pushed.load(Ordering::Relaxed), self.yielded.load(Ordering::Relaxed))
    }

    fn window(&self) -> JobAmount {
        self.window.share(self.count(), self.partitions.read().len())
    }

    /// Opens a stream, unless a partition has no room for what that writes: closing it is never refused.
    pub fn open(
        &self,
        shared: &Arc<Shared>,
        specification: StreamSpecification,
        sink: Arc<dyn JobSink>,
    ) -> Result<StreamHandle, SubmitError> {
        let number = shared.next_stream.fetch_add(1, Ordering::Relaxed);
        let stream = Arc::new(Stream {
            id: StreamId { node: shared.node, number },
            specification,
            sink,
            credits: RwLock::default(),
        });
        let mut permits = self.admit(shared, &stream)?;
        self.open.write().insert(number, stream.clone());
        self.count.fetch_add(1, Ordering::Relaxed);
        for partition in self.partitions() {
            self.register(shared, partition, &stream, permits.remove(&partition));
        }
        let (of, worker) = (&stream.specification.job_type, &stream.specification.worker);
        tracing::debug!(number, job_type = of.as_str(), worker = worker.as_str(), "a job stream was opened");
        Ok(StreamHandle { shared: shared.clone(), stream, closed: false })
    }

    /// Takes a share of the limits of every partition that is led from here.
    fn admit(&self, shared: &Shared, stream: &Stream) -> Result<BTreeMap<PartitionId, Permit>, SubmitError> {
        let bytes = protocol::encode_to_vec(&stream_command(JobStreamIntent::Add, stream, &Credit::default())).len();
        let permit = |partition: PartitionId| {
            let entrance = shared.entrance(partition)?;
            let permit = entrance.admit(Admission::Preferred, bytes).map_err(|refusal| entrance.refuse(&refusal))?;
            Ok((partition, permit))
        };
        let is_led = |partition: &PartitionId| shared.entrance(*partition).is_ok_and(|entrance| entrance.is_open());
        self.partitions().into_iter().filter(is_led).map(permit).collect()
    }

    fn register(&self, shared: &Shared, partition: PartitionId, stream: &Stream, permit: Option<Permit>) {
        let credit = stream.credit(partition);
        let mut credit = credit.lock();
        credit.seen = Seen::NotYet;
        // What still lies in the connection's queue takes its room.
        credit.granted = credit.granted.max(credit.delivered.plus(self.window()));
        submit(shared, partition, &stream_command(JobStreamIntent::Add, stream, &credit), permit);
    }

    /// Compares the streams with a partition's state, which this node applies as all replicas do: what got lost on its way to
    /// a leader is said again. What is on its way now is not, so it is said again when it is missing twice.
    pub fn reconcile(&self, shared: &Shared, partition: PartitionId, engine: &Engine) {
        let open: Vec<_> = self.open.read().values().cloned().collect();
        for stream in &open {
            // One that was opened before the node held the partition.
            if stream.credit(partition).lock().granted.jobs == 0 {
                self.register(shared, partition, stream, None);
                continue;
            }
            self.reconcile_open(shared, partition, stream, engine.job_stream(stream.id));
        }
        let is_own = |totals: &StreamTotals| life_of(totals.stream.number) == shared.life;
        for totals in engine.job_streams_of(shared.node).filter(is_own) {
            if !self.open.read().contains_key(&totals.stream.number) {
                self.remove_again(shared, partition, totals);
            }
        }
        let count = self.partitions.read().len();
        self.closed.write().retain(|_, closed| {
            if engine.job_stream(closed.stream.id).is_none() {
                closed.gone_from.insert(partition);
            }
            closed.gone_from.len() < count
        });
    }

    fn reconcile_open(&self, shared: &Shared, partition: PartitionId, stream: &Stream, totals: Option<StreamTotals>) {
        let credit = stream.credit(partition);
        let mut credit = credit.lock();
        let (granted, delivered) = (credit.granted, credit.delivered.jobs);
        // What is not known to be delivered is given to others when this node is lost, so it must not grow old.
        let lacks_grant =
            |totals: &StreamTotals| totals.granted != totals.granted.max(granted) || totals.delivered < delivered;
        match (totals, credit.seen) {
            (None, Seen::Missing) => {
                credit.seen = Seen::NotYet;
                submit(shared, partition, &stream_command(JobStreamIntent::Add, stream, &credit), None);
            }
            (None, Seen::NotYet | Seen::There | Seen::Behind) => credit.seen = Seen::Missing,
            (Some(totals), Seen::Behind) if lacks_grant(&totals) => {
                credit.seen = Seen::There;
                submit(shared, partition, &stream_command(JobStreamIntent::Grant, stream, &credit), None);
            }
            (Some(totals), _) => credit.seen = if lacks_grant(&totals) { Seen::Behind } else { Seen::There },
        }
    }

    /// The partition still has a stream that is not open here any more.
    fn remove_again(&self, shared: &Shared, partition: PartitionId, totals: StreamTotals) {
        let value = JobStreamValue { stream: totals.stream, delivered: totals.delivered, ..JobStreamValue::default() };
        let command = match self.closed.read().get(&totals.stream.number) {
            Some(Closed { stream, .. }) => {
                stream_command(JobStreamIntent::Remove, stream, &stream.credit(partition).lock())
            }
            None => Command::of_system(Key::NONE, Payload::JobStream(JobStreamIntent::Remove, Box::new(value))),
        };
        submit(shared, partition, &command, None);
    }

    /// The state of a partition was replaced by one that skips batches, and with them jobs that were pushed. The streams begin
    /// again there: so these jobs are given back.
    pub fn begin_again(&self, shared: &Shared, partition: PartitionId) {
        let open: Vec<_> = self.open.read().values().cloned().collect();
        for stream in &open {
            let credit = stream.credit(partition);
            let credit = credit.lock();
            submit(shared, partition, &stream_command(JobStreamIntent::Remove, stream, &credit), None);
            submit(shared, partition, &stream_command(JobStreamIntent::Add, stream, &credit), None);
        }
    }

    /// Hands a job to its stream. When that is gone, nothing is to be done: its removal gives the job back.
    pub fn push(&self, partition: PartitionId, push: Push) {
        let stream = self.open.read().get(&push.stream.number).cloned();
        if let Some(stream) = stream.filter(|stream| stream.id == push.stream) {
            let amount = JobAmount::of(&push.job);
            {
                let credit = stream.credit(partition);
                let mut credit = credit.lock();
                credit.pushed = credit.pushed.plus(amount);
            }
            if stream.sink.push(push) {
                self.pushed.fetch_add(1, Ordering::Relaxed);
                return;
            }
        }
        self.yielded.fetch_add(1, Ordering::Relaxed);
    }
}

impl Stream {
    /// What it may hold of a partition.
    fn credit(&self, partition: PartitionId) -> Arc<Mutex<Credit>> {
        if let Some(credit) = self.credits.read().get(&partition) {
            return credit.clone();
        }
        self.credits.write().entry(partition).or_default().clone()
    }

    /// Jobs do not take room in the connection's queue any more.
    fn returned(&self, shared: &Shared, partition: PartitionId, amount: JobAmount) {
        let Some(credit) = self.credits.read().get(&partition).cloned() else {
            return;
        };
        let window = shared.streams.window();
        let mut credit = credit.lock();
        credit.delivered = credit.delivered.plus(amount);
        let possible = credit.delivered.plus(window);
        let more = possible.minus(credit.granted);
        // A half window, so that a busy stream neither runs dry nor sends a command per job.
        let is_due = more.jobs >= window.jobs.div_ceil(2) || more.bytes >= window.bytes.div_ceil(2);
        if credit.granted.jobs > 0 && is_due {
            credit.granted = credit.granted.max(possible);
            submit(shared, partition, &stream_command(JobStreamIntent::Grant, self, &credit), None);
        }
    }
}

/// An open job stream. Dropping it closes the stream.
pub struct StreamHandle {
    shared: Arc<Shared>,
    stream: Arc<Stream>,
    closed: bool,
}

impl StreamHandle {
    /// The stream's name in the state of the partitions.
    pub fn id(&self) -> StreamId {
        self.stream.id
    }

    /// The gateway has handed the next jobs of this partition to the connection, in the order in which they came: their credit
    /// goes back.
    pub fn delivered(&self, partition: PartitionId, amount: JobAmount) {
        self.stream.returned(&self.shared, partition, amount);
    }

    /// Closes the stream on all partitions, which give back the jobs that did not reach the client: all but the delivered ones.
    /// `undelivered` are those of them that came.
    pub fn close(mut self, undelivered: Vec<Push>) {
        self.remove();
        self.shared.streams.yielded.fetch_add(undelivered.len() as u64, Ordering::Relaxed);
    }

    fn remove(&mut self) {
        if std::mem::replace(&mut self.closed, true) {
            return;
        }
        let streams = &self.shared.streams;
        if streams.open.write().remove(&self.stream.id.number).is_some() {
            streams.count.fetch_sub(1, Ordering::Relaxed);
            tracing::debug!(number = self.stream.id.number, "a job stream was closed");
        }
        let closed = Closed { stream: self.stream.clone(), gone_from: BTreeSet::new() };
        streams.closed.write().insert(self.stream.id.number, closed);
        for partition in streams.partitions() {
            let credit = self.stream.credit(partition);
            let credit = credit.lock();
            submit(&self.shared, partition, &stream_command(JobStreamIntent::Remove, &self.stream, &credit), None);
        }
    }
}

impl Drop for StreamHandle {
    fn drop(&mut self) {
        self.remove();
    }
}

impl std::fmt::Debug for StreamHandle {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let specification = &self.stream.specification;
        formatter.debug_struct("StreamHandle").field("id", &self.stream.id).field("of", specification).finish()
    }
}

/// Only the registration of a stream says what it wants: everything after that just names it.
fn stream_command(intent: JobStreamIntent, stream: &Stream, credit: &Credit) -> Command {
    let mut value = JobStreamValue {
        stream: stream.id,
        granted: credit.granted,
        delivered: credit.delivered.jobs,
        ..JobStreamValue::default()
    };
    if intent == JobStreamIntent::Add {
        let specification = &stream.specification;
        value = JobStreamValue {
            job_type: specification.job_type.clone(),
            worker: specification.worker.clone(),
            timeout: specification.timeout,
            fetch_variables: specification.fetch_variables.clone(),
            tenant_ids: specification.tenant_ids.clone(),
            used: credit.pushed,
            ..value
        };
    }
    Command::of_system(Key::NONE, Payload::JobStream(intent, Box::new(value)))
}

/// Lost streams and polls that are given back at a time.
const LOST_MAX: usize = 1_000;

impl Shared {
    /// Answers a request of this node. Jobs of a poll for which nobody waits any more go to others.
    pub fn answer(&self, entrance: &Entrance, reply: Reply) {
        let Some(Reply { request, payload: Payload::JobBatch(_, batch), .. }) = entrance.answer(reply) else { return };
        // The leader gives back what earlier lives of this node polled.
        if !batch.job_keys.is_empty() && life_of(request.number) == self.life {
            self.submit_to(entrance.id, &engine::give_back_poll(request));
        }
    }

    /// The state of a partition was replaced by one that skips batches. What was pushed and polled by these does not come:
    /// it is given back. `skipped` are the requests whose outcome is not known.
    pub fn give_back_skipped(&self, partition: PartitionId, skipped: &[u64], engine: &Engine) {
        self.streams.begin_again(self, partition);
        let polls = skipped.iter().map(|number| Request { node: self.node, number: *number });
        for poll in polls.filter(|poll| engine.has_poll(*poll)) {
            self.submit_to(partition, &engine::give_back_poll(poll));
        }
    }

    /// Compares the streams of the node with a partition's state, and gives back what belongs to nodes that are gone, if this
    /// one leads. For about once a second.
    pub fn reconcile(&self, partition: PartitionId, is_leading: bool, engine: &Engine) {
        self.streams.reconcile(self, partition, engine);
        let (node, life) = (self.node, self.life);
        let (oldest, ended) = (engine.oldest_poll(node, life), self.polls.ended(partition));
        if let (Some(oldest), Some(number)) = (oldest, ended)
            && oldest.number <= number
        {
            self.submit_to(partition, &engine::acknowledge_polls(Request { node, number }));
        }
        if is_leading {
            let life = |node| self.life_at(node).filter(|_| !self.has_stopped_at(node, partition));
            let streams = engine.lost_streams(life).map(engine::remove_lost_stream).take(LOST_MAX);
            let polls = engine.lost_polls(life).map(engine::give_back_poll).take(LOST_MAX);
            for command in streams.chain(polls) {
                self.submit_to(partition, &command);
            }
        }
    }

    /// Says to all partitions which polls are delivered, before the node stops.
    pub fn acknowledge_polls(&self) {
        let node = self.node;
        for partition in self.entrances.all().keys() {
            if let Some(number) = self.polls.ended(*partition) {
                self.submit_to(*partition, &engine::acknowledge_polls(Request { node, number }));
            }
        }
    }
}

/// When the node has stopped, the command is no longer needed.
fn submit(shared: &Shared, partition: PartitionId, command: &Command, permit: Option<Permit>) {
    if permit.is_none() {
        return shared.submit_to(partition, command);
    }
    let command = QueuedCommand { permit, ..QueuedCommand::internal(partition, command) };
    drop(shared.inbox.send(Inbound::Command(command)));
}

#[cfg(test)]
mod tests {
    use crossbeam_channel::Receiver;

    use super::*;

    struct Queue(Mutex<Vec<Push>>, bool);

    impl JobSink for Queue {
        fn push(&self, push: Push) -> bool {
            self.0.lock().push(push);
            self.1
        }
    }

    fn specification() -> StreamSpecification {
        StreamSpecification {
            job_type: "pay".into(),
            worker: "w".into(),
            timeout: 1_000,
            fetch_variables: Vec::new(),
            tenant_ids: vec![protocol::DEFAULT_TENANT.into()],
        }
    }

    /// What was submitted: partition, intent, and the jobs that stream commands grant.
    fn submitted(inbox: &Receiver<Inbound>) -> Vec<(u16, &'static str, u64)> {
        let command = |inbound| match inbound {
            Inbound::Command(queued) => {
                let command: Command = protocol::decode(&queued.bytes).expect("encoded by us");
                let credit = match &command.payload {
                    Payload::JobStream(_, value) => value.granted.jobs,
                    _ => 0,
                };
                (queued.partition.0, command.payload.intent_name(), credit)
            }
            other => panic!("unexpected {other:?}"),
        };
        inbox.try_iter().map(command).collect()
    }

    fn push(stream: StreamId, partition: u16, counter: u64) -> Push {
        Push { stream, number: counter, key: Key::new(PartitionId(partition), counter), job: Arc::default() }
    }

    fn open(shared: &Arc<Shared>, takes: bool) -> StreamHandle {
        let sink = Arc::new(Queue(Mutex::default(), takes));
        shared.streams.open(shared, specification(), sink).expect("there is room")
    }

    fn amount(jobs: u64) -> JobAmount {
        JobAmount { jobs, bytes: jobs * JobAmount::of(&protocol::JobValue::default()).bytes }
    }

    #[test]
    fn what_a_partition_lacks_twice_is_said_again() {
        let (shared, inbox) = Shared::for_test(1, 8);
        let handle = open(&shared, true);
        assert_eq!(submitted(&inbox), [(1, "ADD", 8)]);
        let mut engine = Engine::in_memory(engine::EngineOptions::new(PartitionId(1), 1));
        let reconcile = |engine: &Engine| {
            shared.streams.reconcile(&shared, PartitionId(1), engine);
            submitted(&inbox)
        };
        assert_eq!(reconcile(&engine), [], "it may be on its way");
        assert_eq!(reconcile(&engine), [(1, "ADD", 8)]);
        apply(&mut engine, 1, &stream_command(JobStreamIntent::Add, &handle.stream, &handle.credit()));
        assert_eq!(reconcile(&engine), []);
        handle.delivered(PartitionId(1), amount(5));
        assert_eq!(submitted(&inbox), [(1, "GRANT", 13)], "and it is lost");
        assert_eq!(reconcile(&engine), []);
        assert_eq!(reconcile(&engine), [(1, "GRANT", 13)]);
        drop(handle);
        assert_eq!(submitted(&inbox), [(1, "REMOVE", 13)], "and it is lost");
        assert_eq!(reconcile(&engine), [(1, "REMOVE", 13)]);
        let stream = shared.streams.closed.read().values().next().expect("it was closed").stream.clone();
        apply(&mut engine, 2, &stream_command(JobStreamIntent::Remove, &stream, &Credit::default()));
        assert_eq!(reconcile(&engine), []);
        assert!(shared.streams.closed.read().is_empty());
    }

    fn apply(engine: &mut Engine, index: u64, command: &Command) {
        let batch = protocol::CommandBatch { timestamp: 1, commands: vec![command.clone()] };
        engine.apply(index, &batch, &mut engine::Output::default()).expect("the state is fine");
    }

    impl StreamHandle {
        fn credit(&self) -> Credit {
            let credit = self.stream.credit(PartitionId(1));
            let credit = credit.lock();
            Credit { seen: credit.seen, ..*credit }
        }
    }

    #[test]
    fn credit_goes_back_by_half_windows() {
        let (shared, inbox) = Shared::for_test(1, 8);
        let handle = open(&shared, true);
        for counter in 1..=8 {
            shared.streams.push(PartitionId(1), push(handle.id(), 1, counter));
        }
        assert_eq!(shared.streams.blocked(), (1, amount(8).bytes));
        submitted(&inbox);
        handle.delivered(PartitionId(1), amount(3));
        assert_eq!(submitted(&inbox), []);
        handle.delivered(PartitionId(1), amount(2));
        assert_eq!(submitted(&inbox), [(1, "GRANT", 13)]);
    }

    #[test]
    fn closing_says_which_jobs_reached_the_client() {
        let (shared, inbox) = Shared::for_test(1, 8);
        let (taking, gone) = (open(&shared, true), open(&shared, false));
        submitted(&inbox);
        for (stream, jobs) in [(&taking, 3), (&gone, 2)] {
            (1..=jobs).for_each(|counter| shared.streams.push(PartitionId(1), push(stream.id(), 1, counter)));
        }
        taking.delivered(PartitionId(1), amount(2));
        let ids = [taking.id(), gone.id()];
        taking.close(vec![push(ids[0], 1, 3)]);
        drop(gone);
        let delivered = |inbound| {
            let Inbound::Command(queued) = inbound else { panic!("a command") };
            let command: Command = protocol::decode(&queued.bytes).expect("encoded by us");
            let Payload::JobStream(intent, value) = command.payload else { panic!("a stream") };
            (intent, value.stream, value.delivered)
        };
        let expected = [(JobStreamIntent::Remove, ids[0], 2), (JobStreamIntent::Remove, ids[1], 0)];
        assert_eq!(inbox.try_iter().map(delivered).collect::<Vec<_>>(), expected);
        assert_eq!(shared.streams.totals(), (3, 3));
    }

    #[test]
    fn many_streams_share_what_all_may_hold() {
        let window = StreamWindow { jobs: 128, bytes: 4 << 20, node_bytes: 256 << 20 };
        assert_eq!(window.share(1, 1).bytes, 4 << 20);
        assert_eq!(window.share(10, 4), JobAmount { jobs: 32, bytes: 1 << 20 });
        assert_eq!(window.share(1, 100).jobs, 16, "a grant still comes for several jobs");
        assert_eq!(window.share(256, 1).bytes, 1 << 20);
        assert_eq!(window.share(usize::MAX, 4_095).bytes, 1, "one job of any size");
    }

    #[test]
    fn large_jobs_give_their_credit_back_by_their_bytes() {
        let (shared, inbox) = Shared::for_test(1, 128);
        let handle = open(&shared, true);
        submitted(&inbox);
        handle.delivered(PartitionId(1), JobAmount { jobs: 1, bytes: 1 << 20 });
        assert_eq!(submitted(&inbox), []);
        handle.delivered(PartitionId(1), JobAmount { jobs: 1, bytes: 1 << 20 });
        assert_eq!(submitted(&inbox), [(1, "GRANT", 130)], "half of the bytes");
    }

    #[test]
    fn a_full_disk_refuses_to_open_and_never_to_close() {
        let (shared, inbox) = Shared::for_test(1, 8);
        let handle = open(&shared, true);
        assert_eq!(inbox.len(), 1);
        shared.disk.note(0, 0);
        let refused = shared.streams.open(&shared, specification(), Arc::new(Queue(Mutex::default(), true)));
        let refusal = refused.expect_err("the disk is full");
        assert!(matches!(&refusal, SubmitError::ResourceExhausted { .. }), "{refusal}");
        assert!(refusal.to_string().contains("is full"), "{refusal}");
        assert_eq!((inbox.len(), shared.streams.count()), (1, 1), "nothing is left of it");
        drop(handle);
        let [_, closing] = inbox.try_iter().collect::<Vec<_>>().try_into().expect("opened and closed");
        let Inbound::Command(closing) = closing else { panic!("a command") };
        assert!(closing.bytes.len() < 100, "it names the stream, not what it wants: {} bytes", closing.bytes.len());
    }

    #[test]
    fn what_opens_streams_counts_among_the_bytes_in_flight() {
        let (shared, inbox) = Shared::for_test(1, 8);
        let limiter = &shared.entrance(PartitionId(1)).expect("it exists").limiter;
        let _streams = [open(&shared, true), open(&shared, true)];
        assert_eq!(limiter.in_flight(), 2);
        inbox.try_iter().for_each(drop);
        assert_eq!(limiter.in_flight(), 0);
    }
}
