//! A worker on every node, with a stream on each partition that the node leads.

use std::sync::Arc;

use broker::{Client, JobSink, StreamHandle, StreamSpecification, StreamWindow};
use engine::Push;
use parking_lot::Mutex;
use protocol::{
    Command, JobAmount, JobIntent, JobStreamIntent, JobStreamValue, JobValue, Key, PartitionId, Payload, StreamId,
};

use crate::model::JOB_TYPE;
use chance::Chance;

/// Longer than a run waits for the end of everything: what nobody has must be given back before, in milliseconds.
pub const LONG_TIMEOUT: i64 = 1_000_000;

/// The open stream of a node.
pub struct Stream {
    handle: StreamHandle,
    /// What was pushed and not taken.
    pushed: Arc<Pushed>,
}

#[derive(Default)]
struct Pushed(Mutex<Vec<Push>>);

impl JobSink for Pushed {
    fn push(&self, push: Push) -> bool {
        self.0.lock().push(push);
        true
    }
}

impl Stream {
    /// Opens a stream on all partitions, unless there is no room for that.
    pub fn open(client: &Client, is_patient: bool) -> Option<Self> {
        let specification = StreamSpecification {
            job_type: JOB_TYPE.into(),
            worker: "stream".into(),
            timeout: if is_patient { LONG_TIMEOUT } else { 3_000 },
            fetch_variables: Vec::new(),
            tenant_ids: vec!["<default>".into()],
        };
        let pushed = Arc::<Pushed>::default();
        let handle = client.open_stream(specification, pushed.clone()).ok()?;
        Some(Stream { handle, pushed })
    }

    /// Its name in the state.
    pub fn id(&self) -> StreamId {
        self.handle.id()
    }

    /// Takes the next job, which makes room for others.
    pub fn take(&self, partition: PartitionId) -> Option<Push> {
        let mut pushed = self.pushed.0.lock();
        let push = (!pushed.is_empty()).then(|| pushed.remove(0))?;
        drop(pushed);
        self.handle.delivered(partition, JobAmount::of(&push.job));
        Some(push)
    }
}

/// What the streams of a node may hold in all, so that each has its window on each partition.
pub fn node_window(credit: u32, partitions: u16) -> StreamWindow {
    let bytes = usize::try_from(window(credit).bytes).expect("a small window") * usize::from(partitions);
    StreamWindow { jobs: credit, bytes, node_bytes: usize::MAX }
}

/// What a stream may hold that its worker has not taken. The bytes are those of a few small jobs.
fn window(credit: u32) -> JobAmount {
    JobAmount { jobs: credit.into(), bytes: u64::from(credit) * 300 }
}

/// How much a stream may have taken in all when its worker has taken so much.
pub fn offer(taken: JobAmount, credit: u32) -> JobAmount {
    taken.plus(window(credit))
}

/// The grant before a job was taken, which comes late or once more.
pub fn late_grant(stream: StreamId, taken_before: JobAmount, credit: u32) -> Command {
    let granted = offer(taken_before, credit);
    let value = JobStreamValue { stream, granted, ..JobStreamValue::default() };
    Command::new(Key::NONE, Payload::JobStream(JobStreamIntent::Grant, Box::new(value)))
}

/// What a worker does with a job that was pushed to it: mostly it completes it, sometimes it forgets it.
pub fn answer(push: &Push, is_patient: bool, chance: &mut Chance) -> Option<Command> {
    let job = |intent, value| Some(Command::new(push.key, Payload::Job(intent, Arc::new(value))));
    match chance.below(20) {
        0 if !is_patient => None,
        1 => job(JobIntent::Fail, JobValue { retries: 2, ..JobValue::default() }),
        2 => job(JobIntent::Yield, JobValue::default()),
        _ => job(JobIntent::Complete, JobValue::default()),
    }
}
