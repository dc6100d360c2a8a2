//! A stream or a poll that is over gives back its own jobs, all that it may not have delivered, and those of nobody else. Otherwise a
//! job waits for nothing, or two workers have it.

use std::collections::BTreeMap;

use protocol::{
    JobIntent, JobOwner, JobPollIntent, JobStreamIntent, Key, PartitionId, Payload, Record, RecordType, Request,
    StreamId, WorkIntent,
};

/// Whose the activated jobs are.
#[derive(Default)]
pub struct Owners {
    owned: BTreeMap<Key, JobOwner>,
    given_back: BTreeMap<PartitionId, GivenBack>,
    /// The stream that the command at hand ended, with what its connection took last.
    ended: BTreeMap<PartitionId, (u64, StreamId, u64)>,
}

/// By the command at hand.
#[derive(Default)]
struct GivenBack {
    source_position: u64,
    /// So far, with whose they were.
    jobs: Vec<(Key, Option<JobOwner>)>,
}

impl Owners {
    /// A record that was not seen before.
    pub fn record(&mut self, partition: PartitionId, record: &Record) {
        if record.record_type != RecordType::Event {
            return;
        }
        if self.ended.get(&partition).is_some_and(|(position, ..)| *position != record.source_position) {
            let ended = self.ended.remove(&partition);
            self.check_ended(partition, ended);
        }
        match &record.payload {
            Payload::JobStream(JobStreamIntent::Removed, value) => {
                self.ended.insert(partition, (record.source_position, value.stream, value.delivered));
            }
            // The rest of its jobs follows.
            Payload::Work(WorkIntent::Enqueued, _) => drop(self.ended.remove(&partition)),
            Payload::Job(JobIntent::Yielded, _) => {
                let owner = self.owned.remove(&record.key);
                self.of_command(partition, record).push((record.key, owner));
            }
            Payload::Job(intent, _) => {
                let stays = matches!(
                    intent,
                    JobIntent::RetriesUpdated | JobIntent::TimeoutUpdated | JobIntent::Updated | JobIntent::Migrated
                );
                if !stays {
                    self.owned.remove(&record.key);
                }
            }
            Payload::JobBatch(_, batch) => {
                let owner = |place| batch.owner.map(|first: JobOwner| first.after(place));
                let jobs = batch.job_keys.iter().enumerate();
                self.owned.extend(jobs.filter_map(|(place, key)| Some((*key, owner(place)?))));
            }
            Payload::JobStream(JobStreamIntent::Yielded, value) => {
                let numbers = value.delivered + 1..=value.used.jobs;
                let is_of = |owner: &JobOwner| match owner {
                    JobOwner::Stream(stream, number) => *stream == value.stream && numbers.contains(number),
                    JobOwner::Poll(..) => false,
                };
                self.check(partition, record, is_of);
            }
            Payload::JobPoll(JobPollIntent::Yielded, value) => {
                let poll = Request { node: value.node, number: value.number };
                self.check(partition, record, |owner| matches!(owner, JobOwner::Poll(of, _) if *of == poll));
            }
            _ => {}
        }
    }

    fn check_ended(&self, partition: PartitionId, ended: Option<(u64, StreamId, u64)>) {
        let Some((_, stream, delivered)) = ended else { return };
        let is_left = |(key, owner): &(&Key, &JobOwner)| match owner {
            JobOwner::Stream(of, number) => *of == stream && *number > delivered && key.partition() == Some(partition),
            JobOwner::Poll(..) => false,
        };
        let left = self.owned.iter().find(is_left);
        assert!(left.is_none(), "{left:?} was not given back when its stream ended, with {delivered} jobs delivered");
    }

    fn of_command(&mut self, partition: PartitionId, record: &Record) -> &mut Vec<(Key, Option<JobOwner>)> {
        let given_back = self.given_back.entry(partition).or_default();
        if given_back.source_position != record.source_position {
            *given_back = GivenBack { source_position: record.source_position, jobs: Vec::new() };
        }
        &mut given_back.jobs
    }

    fn check(&mut self, partition: PartitionId, record: &Record, is_of: impl Fn(&JobOwner) -> bool) {
        for (key, owner) in self.of_command(partition, record).drain(..) {
            assert!(owner.as_ref().is_some_and(&is_of), "the job {key} of {owner:?} was given back by {record:?}");
        }
        let left = self.owned.iter().find(|(key, owner)| key.partition() == Some(partition) && is_of(owner));
        assert!(left.is_none(), "{left:?} was not given back by {record:?}");
    }
}
