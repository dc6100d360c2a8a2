//! Job streams: which connections of this node take jobs of which type, and how many more each of them can take.
//!
//! Every stream has a window of credit on every partition, in jobs and in bytes. The partition's state counts what it may
//! still push; here is counted what was pushed and not yet handed to the connection. Credit goes back in one GRANT per half
//! window, as a total since the stream was opened. So a pushed job always finds room in the connection's queue, and a slow
//! worker costs the log nothing.
//!
//! The bytes of a window are shared among the partitions. With many open streams each has less, so that all together hold
//! no more than their limit; at least one job of any size is always possible.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::{Mutex, RwLock};
use protocol::{Command, JobAmount, JobStreamIntent, JobStreamValue, Key, PartitionId, Payload, StreamId, Text};

use crate::flow_control::{Admission, Permit};
use crate::inbox::{Inbound, QueuedCommand};
use crate::shared::Shared;
use crate::submit_error::SubmitError;
use engine::Push;

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

/// What a stream may hold of each partition, in jobs.
const STREAM_JOBS_MAX: u32 = 128;
/// What a stream may hold of all partitions together, in bytes.
const STREAM_BYTES_MAX: usize = 4 << 20;
/// What all streams of a node may hold together, in bytes.
const NODE_STREAM_BYTES_MAX: usize = 256 << 20;

/// What streams may hold that their connections have not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamWindow {
    /// Jobs of each stream and partition.
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
        JobAmount { jobs: self.jobs.max(1).into(), bytes: bytes.max(1) as u64 }
    }
}

/// All open streams of this node.
pub(crate) struct Streams {
    window: StreamWindow,
    open: RwLock<HashMap<u64, Arc<Stream>>>,
    /// How many are open, read without the lock.
    count: AtomicUsize,
    /// Of the partitions that this node holds: whether it leads them.
    leading: RwLock<Arc<Leading>>,
    pushed: AtomicU64,
    yielded: AtomicU64,
}

/// A lock is held while the streams of its partition are registered, so that each is registered exactly once per leadership.
type Leading = BTreeMap<PartitionId, Arc<Mutex<bool>>>;

struct Stream {
    id: StreamId,
    specification: StreamSpecification,
    sink: Arc<dyn JobSink>,
    /// Of each partition that had to do with the stream.
    credits: RwLock<BTreeMap<PartitionId, Arc<Mutex<Credit>>>>,
}

#[derive(Debug, Default)]
struct Credit {
    /// The partition knows the stream.
    registered: bool,
    /// What came from the partition, as all that follows since the stream was opened.
    pushed: JobAmount,
    /// What the connection took, in the order in which it came: so `delivered.jobs` is the number of the last such push.
    delivered: JobAmount,
    /// What the partition knows.
    granted: JobAmount,
}

impl Credit {
    fn undelivered(&self) -> JobAmount {
        self.pushed.minus(self.delivered)
    }
}

impl Streams {
    pub fn new(partitions: impl Iterator<Item = PartitionId>, window: StreamWindow) -> Self {
        let streams = Streams {
            window,
            open: RwLock::default(),
            count: AtomicUsize::new(0),
            leading: RwLock::default(),
            pushed: AtomicU64::new(0),
            yielded: AtomicU64::new(0),
        };
        partitions.for_each(|partition| streams.add_partition(partition));
        streams
    }

    /// The node holds one more partition, which it does not lead yet. The open streams are registered there when it does.
    pub fn add_partition(&self, partition: PartitionId) {
        Arc::make_mut(&mut self.leading.write()).entry(partition).or_default();
    }

    fn leading(&self) -> Arc<Leading> {
        self.leading.read().clone()
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
            let is_blocked = credit.registered && (left.jobs == 0 || left.bytes == 0);
            (blocked + usize::from(is_blocked), bytes + credit.undelivered().bytes)
        })
    }

    /// Jobs pushed and jobs given back so far.
    pub fn totals(&self) -> (u64, u64) {
        (self.pushed.load(Ordering::Relaxed), self.yielded.load(Ordering::Relaxed))
    }

    fn window(&self) -> JobAmount {
        self.window.share(self.count(), self.leading.read().len())
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
        // A partition that is added from here on finds the stream among the open ones as soon as it is led.
        for (&partition, leading) in &*self.leading() {
            let leading = leading.lock();
            if *leading {
                self.register(shared, partition, &stream, permits.remove(&partition));
            }
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
        let leading = self.leading();
        leading.iter().filter(|(_, leads)| *leads.lock()).map(|(partition, _)| permit(*partition)).collect()
    }

    /// This node leads the partition from now on: registers all open streams there. What an earlier leader knew of
    /// streams is cleared by a command before.
    pub fn lead(&self, shared: &Shared, partition: PartitionId) {
        let Some(leading) = self.leading().get(&partition).cloned() else {
            return;
        };
        let mut leading = leading.lock();
        let streams: Vec<_> = self.open.read().values().cloned().collect();
        for stream in streams {
            stream.credit(partition).lock().registered = false;
            self.register(shared, partition, &stream, None);
        }
        *leading = true;
    }

    /// This node does not lead the partition any more.
    pub fn step_down(&self, partition: PartitionId) {
        if let Some(leading) = self.leading().get(&partition) {
            *leading.lock() = false;
        }
    }

    fn register(&self, shared: &Shared, partition: PartitionId, stream: &Stream, permit: Option<Permit>) {
        let credit = stream.credit(partition);
        let mut credit = credit.lock();
        if credit.registered {
            return;
        }
        credit.registered = true;
        // What still lies in the connection's queue takes its room.
        credit.granted = credit.delivered.plus(self.window());
        submit(shared, partition, &stream_command(JobStreamIntent::Add, stream, &credit), permit);
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
        if credit.registered && is_due {
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
        for (&partition, leading) in &*streams.leading() {
            let _leading = leading.lock();
            let credit = self.stream.credit(partition);
            let mut credit = credit.lock();
            if std::mem::take(&mut credit.registered) {
                submit(&self.shared, partition, &stream_command(JobStreamIntent::Remove, &self.stream, &credit), None);
            }
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
    fn a_stream_is_registered_once_per_leadership_with_the_credit_it_has_room_for() {
        let (shared, inbox) = Shared::for_test(2, 8);
        shared.streams.lead(&shared, PartitionId(1));
        let handle = open(&shared, true);
        assert_eq!(submitted(&inbox), [(1, "ADD", 8)]);
        shared.streams.lead(&shared, PartitionId(2));
        assert_eq!(submitted(&inbox), [(2, "ADD", 8)]);
        for counter in 1..=3 {
            shared.streams.push(PartitionId(1), push(handle.id(), 1, counter));
        }
        handle.delivered(PartitionId(1), amount(1));
        shared.streams.step_down(PartitionId(1));
        shared.streams.lead(&shared, PartitionId(1));
        // Three were pushed and two of them have not been taken: room for six more.
        assert_eq!(submitted(&inbox), [(1, "ADD", 9)]);
        drop(handle);
        assert_eq!(submitted(&inbox), [(1, "REMOVE", 9), (2, "REMOVE", 8)]);
    }

    #[test]
    fn credit_goes_back_by_half_windows() {
        let (shared, inbox) = Shared::for_test(1, 8);
        shared.streams.lead(&shared, PartitionId(1));
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
        shared.streams.lead(&shared, PartitionId(1));
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
        assert_eq!(window.share(10, 4), JobAmount { jobs: 128, bytes: 1 << 20 });
        assert_eq!(window.share(256, 1).bytes, 1 << 20);
        assert_eq!(window.share(usize::MAX, 4_095).bytes, 1, "one job of any size");
    }

    #[test]
    fn large_jobs_give_their_credit_back_by_their_bytes() {
        let (shared, inbox) = Shared::for_test(1, 128);
        shared.streams.lead(&shared, PartitionId(1));
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
        shared.streams.lead(&shared, PartitionId(1));
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
        shared.streams.lead(&shared, PartitionId(1));
        let limiter = &shared.entrance(PartitionId(1)).expect("it exists").limiter;
        let _streams = [open(&shared, true), open(&shared, true)];
        assert_eq!(limiter.in_flight(), 2);
        inbox.try_iter().for_each(drop);
        assert_eq!(limiter.in_flight(), 0);
    }
}
