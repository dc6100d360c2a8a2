//! One worker at a time: a job is given to a worker only while no other has it and nothing stands in its way, and what was
//! activated is sent out once. Otherwise two workers do the same work, or one does what an operator has to look at first.

use std::collections::BTreeMap;

use protocol::{IncidentIntent, JobBatchIntent, JobIntent, JobOwner, JobValue, Key, PartitionId, Payload, Record};
use protocol::{RecordType, StreamId, Text};

/// Where a job is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Held {
    /// In its queue.
    Available,
    /// With a worker.
    Worker(Text),
    /// Nobody gets it before its back-off is over.
    BackOff,
    /// Nobody gets it before its incident is resolved.
    Stopped,
}

/// All jobs that there are.
#[derive(Default)]
pub struct Jobs {
    jobs: BTreeMap<Key, Held>,
    /// What was activated for streams, by the batch of the log; a job may be so twice in one, with its end in between.
    activated: BTreeMap<(PartitionId, u64), Vec<(Key, StreamId)>>,
}

impl Jobs {
    /// A record that was not seen before, of the batch at an index.
    pub fn record(&mut self, partition: PartitionId, index: u64, record: &Record) {
        if record.record_type != RecordType::Event {
            return;
        }
        match &record.payload {
            Payload::Job(intent, job) => self.job(*intent, record.key, job),
            Payload::JobBatch(JobBatchIntent::Activated, batch) => {
                for key in &batch.job_keys {
                    let before = self.jobs.insert(*key, Held::Worker(batch.worker.clone()));
                    assert!(
                        before == Some(Held::Available),
                        "the job {key} was given to the worker {}, and it was {before:?}",
                        batch.worker
                    );
                }
                if let Some(stream) = batch.owner.and_then(JobOwner::stream) {
                    let pushed = batch.job_keys.iter().map(|key| (*key, stream));
                    self.activated.entry((partition, index)).or_default().extend(pushed);
                }
            }
            Payload::Incident(intent @ (IncidentIntent::Created | IncidentIntent::Resolved), value) => {
                if let Some(held) = self.jobs.get_mut(&value.job_key) {
                    *held = if *intent == IncidentIntent::Created { Held::Stopped } else { Held::Available };
                }
            }
            _ => {}
        }
    }

    fn job(&mut self, intent: JobIntent, key: Key, job: &JobValue) {
        let now = match intent {
            JobIntent::Created => Some(Held::Available),
            JobIntent::Completed | JobIntent::Canceled => None,
            JobIntent::TimedOut | JobIntent::Yielded | JobIntent::RecurredAfterBackoff => Some(Held::Available),
            JobIntent::Failed if job.retries <= 0 => Some(Held::Stopped),
            JobIntent::Failed if job.retry_backoff > 0 => Some(Held::BackOff),
            JobIntent::Failed => Some(Held::Available),
            // It is gone, or stopped by an incident that follows.
            JobIntent::ErrorThrown => Some(Held::Stopped),
            _ => return,
        };
        let before = self.jobs.get(&key);
        let had_worker = matches!(before, Some(Held::Worker(_)));
        assert!(had_worker || intent != JobIntent::TimedOut, "the job {key} timed out, and it was {before:?}");
        match now {
            Some(now) => self.jobs.insert(key, now),
            None => self.jobs.remove(&key),
        };
    }

    /// A leader sends a job to a stream, because of the batch at an index.
    pub fn pushed(&mut self, partition: PartitionId, index: u64, job: Key, stream: StreamId) {
        let activated = self.activated.entry((partition, index)).or_default();
        let at = activated.iter().position(|pushed| *pushed == (job, stream));
        let was_activated = at.map(|at| activated.swap_remove(at)).is_some();
        assert!(
            was_activated,
            "the job {job} was sent to {stream:?} at {partition}/{index}, not activated or sent before"
        );
    }
}
