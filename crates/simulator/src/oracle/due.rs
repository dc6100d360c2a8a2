//! Due: timers fire, messages expire, and jobs that were taken or wait for another try are there again, soon after their
//! time, and never before it. Otherwise what waits for them waits for ever, and only a cancellation would end it; or a
//! reminder comes before there is anything to remind of, and a job is taken from a worker who still has it.

use std::collections::BTreeMap;

use protocol::{
    IncidentIntent, JobBatchIntent, JobIntent, Key, MessageIntent, PartitionId, Payload, Record, RecordType,
    TimerIntent, Timestamp,
};

/// How late that may be while nothing is wrong with the cluster, in milliseconds.
const LATE_MAX: i64 = 60_000;

/// What is waited for, with its time.
#[derive(Default)]
pub struct Due {
    waiting: BTreeMap<(&'static str, Key), Timestamp>,
    /// By partition the job whose incident the last record resolved: that it is available again is told as the end of a back-off.
    given_back: BTreeMap<Option<PartitionId>, Key>,
}

impl Due {
    /// A record that was not seen before.
    pub fn record(&mut self, record: &Record) {
        if record.record_type != RecordType::Event {
            return;
        }
        let (key, after) = (record.key, |pause: i64| record.timestamp.saturating_add(pause));
        let given_back = self.given_back.remove(&key.partition());
        match &record.payload {
            Payload::JobBatch(JobBatchIntent::Activated, batch) => {
                let jobs = batch.job_keys.iter().map(|job| (("job", *job), after(batch.timeout)));
                self.waiting.extend(jobs);
            }
            Payload::Job(intent, job) => {
                let is_given_back = given_back == Some(key);
                if *intent == JobIntent::TimedOut || *intent == JobIntent::RecurredAfterBackoff && !is_given_back {
                    self.comes("job", record);
                }
                let at = match intent {
                    JobIntent::RetriesUpdated | JobIntent::Migrated => return,
                    JobIntent::TimeoutUpdated => Some(job.deadline),
                    JobIntent::Failed if job.retries > 0 && job.retry_backoff > 0 => Some(after(job.retry_backoff)),
                    _ => None,
                };
                self.waits("job", key, at);
            }
            Payload::Incident(IncidentIntent::Resolved, incident) => {
                self.given_back.insert(key.partition(), incident.job_key);
            }
            Payload::Timer(TimerIntent::Created, timer) => self.waits("timer", key, Some(timer.due_date)),
            Payload::Timer(intent @ (TimerIntent::Triggered | TimerIntent::Canceled), _) => {
                if *intent == TimerIntent::Triggered {
                    self.comes("timer", record);
                }
                self.waits("timer", key, None);
            }
            Payload::Message(MessageIntent::Published, message) => {
                self.waits("message", key, Some(after(message.time_to_live)));
            }
            Payload::Message(MessageIntent::Expired, _) => {
                self.comes("message", record);
                self.waits("message", key, None);
            }
            _ => {}
        }
    }

    fn waits(&mut self, what: &'static str, key: Key, until: Option<Timestamp>) {
        match until {
            Some(until) => drop(self.waiting.insert((what, key), until)),
            None => drop(self.waiting.remove(&(what, key))),
        }
    }

    /// What was waited for is said to be due.
    fn comes(&self, what: &'static str, record: &Record) {
        let Some(at) = self.waiting.get(&(what, record.key)) else {
            panic!("the {what} {} became due, and nothing waited for that", record.key);
        };
        let early = at - record.timestamp;
        assert!(early <= 0, "the {what} {} became due {early} ms before its time", record.key);
    }

    /// How many timers and messages of a partition wait.
    pub fn count(&self, what: &'static str, partition: PartitionId) -> u64 {
        let of = |(kind, key): &&(&'static str, Key)| *kind == what && key.partition() == Some(partition);
        self.waiting.keys().filter(of).count() as u64
    }

    /// Nothing has been wrong for a while, and this is the time.
    pub fn check(&self, now: Timestamp) {
        let late = self.waiting.iter().find(|(_, at)| at.saturating_add(LATE_MAX) < now);
        if let Some(((what, key), at)) = late {
            panic!("the {what} {key} was due {} ms ago, and nothing has come of it", now - at);
        }
    }
}
