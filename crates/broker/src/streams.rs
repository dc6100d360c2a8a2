//! Job streams: which connections of this node take jobs of which type, and how many more each of them can take.
//!
//! Every stream has a window of credit on every partition. The partition's state counts what it may still push; here is
//! counted what was pushed and not yet handed to the connection. Credit goes back in one GRANT per half window. So a
//! pushed job always finds room in the connection's queue, and a slow worker costs the log nothing.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};
use protocol::{Command, JobIntent, JobStreamIntent, JobStreamValue, Key, PartitionId, Payload, StreamId, Text};

use crate::inbox::{Inbound, QueuedCommand};
use crate::shared::Shared;
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
    /// Takes a job. Never blocks: the credit window guarantees room. `false` says that the client is gone: the broker
    /// gives the job back. So once the jobs for [`StreamHandle::close`] are collected, it must only answer `false`.
    fn push(&self, push: Push) -> bool;
}

/// All open streams of this node.
pub(crate) struct Streams {
    window: u32,
    open: RwLock<HashMap<u64, Arc<Stream>>>,
    /// Held while the streams of a partition are registered, so that each is registered exactly once per leadership.
    leading: Vec<Mutex<bool>>,
    pushed: AtomicU64,
    yielded: AtomicU64,
}

struct Stream {
    id: StreamId,
    specification: StreamSpecification,
    sink: Arc<dyn JobSink>,
    /// By partition, from partition 1 on.
    credits: Vec<Mutex<Credit>>,
}

#[derive(Debug, Default)]
struct Credit {
    /// The partition was told of the stream.
    registered: bool,
    /// Pushed, and not yet handed to the connection.
    undelivered: u32,
    /// Handed to the connection, and not yet granted again.
    delivered: u32,
}

impl Streams {
    pub fn new(partition_count: u16, window: u32) -> Self {
        Streams {
            window: window.max(1),
            open: RwLock::default(),
            leading: (0..partition_count).map(|_| Mutex::new(false)).collect(),
            pushed: AtomicU64::new(0),
            yielded: AtomicU64::new(0),
        }
    }

    /// Number of open streams.
    pub fn count(&self) -> usize {
        self.open.read().len()
    }

    /// How many streams have used up their credit on a partition, counted for each partition.
    pub fn blocked(&self) -> usize {
        let open = self.open.read();
        let credits = open.values().flat_map(|stream| &stream.credits);
        credits.filter(|credit| credit.lock().undelivered >= self.window).count()
    }

    /// Jobs pushed and jobs given back so far.
    pub fn totals(&self) -> (u64, u64) {
        (self.pushed.load(Ordering::Relaxed), self.yielded.load(Ordering::Relaxed))
    }

    pub fn open(
        &self,
        shared: &Arc<Shared>,
        specification: StreamSpecification,
        sink: Arc<dyn JobSink>,
    ) -> StreamHandle {
        let number = shared.next_number.fetch_add(1, Ordering::Relaxed);
        let stream = Arc::new(Stream {
            id: StreamId { node: shared.node, number },
            specification,
            sink,
            credits: self.leading.iter().map(|_| Mutex::default()).collect(),
        });
        self.open.write().insert(number, stream.clone());
        for (partition, leading) in partitions(&self.leading) {
            let leading = leading.lock();
            if *leading {
                self.register(shared, partition, &stream);
            }
        }
        StreamHandle { shared: shared.clone(), stream, closed: false }
    }

    /// This node leads the partition from now on: registers all open streams there. What an earlier leader knew of
    /// streams is cleared by a command before.
    pub fn lead(&self, shared: &Shared, partition: PartitionId) {
        let Some(leading) = self.leading.get(index_of(partition)) else {
            return;
        };
        let mut leading = leading.lock();
        let streams: Vec<_> = self.open.read().values().cloned().collect();
        for stream in streams {
            stream.credits[index_of(partition)].lock().registered = false;
            self.register(shared, partition, &stream);
        }
        *leading = true;
    }

    /// This node does not lead the partition any more.
    pub fn step_down(&self, partition: PartitionId) {
        if let Some(leading) = self.leading.get(index_of(partition)) {
            *leading.lock() = false;
        }
    }

    fn register(&self, shared: &Shared, partition: PartitionId, stream: &Stream) {
        let mut credit = stream.credits[index_of(partition)].lock();
        if credit.registered {
            return;
        }
        credit.registered = true;
        credit.delivered = 0;
        // What still lies in the connection's queue takes its room.
        let free = self.window.saturating_sub(credit.undelivered);
        submit(shared, partition, &stream_command(JobStreamIntent::Add, stream, free));
    }

    /// Hands a job to its stream, or gives it back when the stream is gone.
    pub fn push(&self, shared: &Shared, partition: PartitionId, push: Push) {
        let stream = self.open.read().get(&push.stream.number).cloned();
        let key = push.key;
        if let Some(stream) = stream.filter(|stream| stream.id == push.stream) {
            stream.credits[index_of(partition)].lock().undelivered += 1;
            if stream.sink.push(push) {
                self.pushed.fetch_add(1, Ordering::Relaxed);
                return;
            }
            stream.returned(self.window, shared, partition, 1);
        }
        self.give_back(shared, partition, key);
    }

    fn give_back(&self, shared: &Shared, partition: PartitionId, key: Key) {
        self.yielded.fetch_add(1, Ordering::Relaxed);
        submit(shared, partition, &Command::new(key, Payload::Job(JobIntent::Yield, Arc::default())));
    }
}

impl Stream {
    /// `count` jobs do not take room in the connection's queue any more.
    fn returned(&self, window: u32, shared: &Shared, partition: PartitionId, count: u32) {
        let Some(credit) = self.credits.get(index_of(partition)) else {
            return;
        };
        let mut credit = credit.lock();
        credit.undelivered = credit.undelivered.saturating_sub(count);
        credit.delivered = credit.delivered.saturating_add(count);
        // A half window, so that a busy stream neither runs dry nor sends a command per job.
        if credit.registered && credit.delivered >= window.div_ceil(2) {
            let grant = std::mem::take(&mut credit.delivered);
            submit(shared, partition, &stream_command(JobStreamIntent::Grant, self, grant));
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

    /// The gateway has handed `count` jobs of this partition to the connection: their credit goes back.
    pub fn delivered(&self, partition: PartitionId, count: u32) {
        self.stream.returned(self.shared.streams.window, &self.shared, partition, count);
    }

    /// Closes the stream on all partitions and gives back the jobs that did not reach the client.
    pub fn close(mut self, undelivered: Vec<Push>) {
        self.remove();
        for push in undelivered {
            // Every key of a pushed job names its partition; one that does not was never pushed from here.
            if let Some(partition) = push.key.partition().filter(|p| self.shared.entrance(*p).is_ok()) {
                self.shared.streams.give_back(&self.shared, partition, push.key);
            }
        }
    }

    fn remove(&mut self) {
        if std::mem::replace(&mut self.closed, true) {
            return;
        }
        let streams = &self.shared.streams;
        streams.open.write().remove(&self.stream.id.number);
        for (partition, leading) in partitions(&streams.leading) {
            let _leading = leading.lock();
            let mut credit = self.stream.credits[index_of(partition)].lock();
            if std::mem::take(&mut credit.registered) {
                submit(&self.shared, partition, &stream_command(JobStreamIntent::Remove, &self.stream, 0));
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

fn partitions(leading: &[Mutex<bool>]) -> impl Iterator<Item = (PartitionId, &Mutex<bool>)> {
    (1..).map(PartitionId).zip(leading)
}

fn index_of(partition: PartitionId) -> usize {
    usize::from(partition.0.saturating_sub(1))
}

fn stream_command(intent: JobStreamIntent, stream: &Stream, credit: u32) -> Command {
    let specification = &stream.specification;
    let value = JobStreamValue {
        stream: stream.id,
        job_type: specification.job_type.clone(),
        worker: specification.worker.clone(),
        timeout: specification.timeout,
        fetch_variables: specification.fetch_variables.clone(),
        tenant_ids: specification.tenant_ids.clone(),
        credit,
    };
    Command::new(Key::NONE, Payload::JobStream(intent, Box::new(value)))
}

/// When the node has stopped, nobody needs the command any more.
fn submit(shared: &Shared, partition: PartitionId, command: &Command) {
    drop(shared.inbox.send(Inbound::Command(QueuedCommand::internal(partition, command))));
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

    /// What was submitted: partition, intent, and the credit of stream commands.
    fn submitted(inbox: &Receiver<Inbound>) -> Vec<(u16, &'static str, u32)> {
        let command = |inbound| match inbound {
            Inbound::Command(queued) => {
                let command: Command = protocol::decode(&queued.bytes).expect("encoded by us");
                let credit = match &command.payload {
                    Payload::JobStream(_, value) => value.credit,
                    _ => 0,
                };
                (queued.partition.0, command.payload.intent_name(), credit)
            }
            other => panic!("unexpected {other:?}"),
        };
        inbox.try_iter().map(command).collect()
    }

    fn push(stream: StreamId, partition: u16, counter: u64) -> Push {
        Push { stream, key: Key::new(PartitionId(partition), counter), job: Arc::default() }
    }

    #[test]
    fn a_stream_is_registered_once_per_leadership_with_the_credit_it_has_room_for() {
        let (shared, inbox) = Shared::for_test(2, 8);
        shared.streams.lead(&shared, PartitionId(1));
        let sink = Arc::new(Queue(Mutex::default(), true));
        let handle = shared.streams.open(&shared, specification(), sink);
        assert_eq!(submitted(&inbox), [(1, "ADD", 8)]);
        shared.streams.lead(&shared, PartitionId(2));
        assert_eq!(submitted(&inbox), [(2, "ADD", 8)]);
        for counter in 1..=3 {
            shared.streams.push(&shared, PartitionId(1), push(handle.id(), 1, counter));
        }
        handle.delivered(PartitionId(1), 1);
        shared.streams.step_down(PartitionId(1));
        shared.streams.lead(&shared, PartitionId(1));
        assert_eq!(submitted(&inbox), [(1, "ADD", 6)]);
        drop(handle);
        assert_eq!(submitted(&inbox), [(1, "REMOVE", 0), (2, "REMOVE", 0)]);
    }

    #[test]
    fn credit_goes_back_by_half_windows() {
        let (shared, inbox) = Shared::for_test(1, 8);
        shared.streams.lead(&shared, PartitionId(1));
        let handle = shared.streams.open(&shared, specification(), Arc::new(Queue(Mutex::default(), true)));
        for counter in 1..=8 {
            shared.streams.push(&shared, PartitionId(1), push(handle.id(), 1, counter));
        }
        assert_eq!(shared.streams.blocked(), 1);
        submitted(&inbox);
        handle.delivered(PartitionId(1), 3);
        assert_eq!(submitted(&inbox), []);
        handle.delivered(PartitionId(1), 2);
        assert_eq!(submitted(&inbox), [(1, "GRANT", 5)]);
    }

    #[test]
    fn jobs_without_a_client_are_given_back() {
        let (shared, inbox) = Shared::for_test(1, 8);
        shared.streams.lead(&shared, PartitionId(1));
        let gone = shared.streams.open(&shared, specification(), Arc::new(Queue(Mutex::default(), false)));
        submitted(&inbox);
        shared.streams.push(&shared, PartitionId(1), push(gone.id(), 1, 1));
        assert_eq!(submitted(&inbox), [(1, "YIELD", 0)]);
        let id = gone.id();
        gone.close(vec![push(id, 1, 2)]);
        assert_eq!(submitted(&inbox), [(1, "REMOVE", 0), (1, "YIELD", 0)]);
        shared.streams.push(&shared, PartitionId(1), push(id, 1, 3));
        assert_eq!(submitted(&inbox), [(1, "YIELD", 0)]);
    }
}
