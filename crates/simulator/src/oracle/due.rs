//! Due: timers fire, messages expire, and jobs that were taken or wait for another try are there again, soon after their
//! time. Otherwise what waits for them waits for ever, and only a cancellation would end it.

use std::collections::BTreeMap;

use protocol::{JobBatchIntent, JobIntent, Key, MessageIntent, Payload, Record, RecordType, TimerIntent, Timestamp};

/// How late that may be while nothing is wrong with the cluster, in milliseconds.
const LATE_MAX: i64 = 60_000;

/// What is waited for, with its time.
#[derive(Default)]
pub struct Due {
    waiting: BTreeMap<(&'static str, Key), Timestamp>,
}

impl Due {
    /// A record that was not seen before.
    pub fn record(&mut self, record: &Record) {
        if record.record_type != RecordType::Event {
            return;
        }
        let (key, after) = (record.key, |pause: i64| record.timestamp.saturating_add(pause));
        match &record.payload {
            Payload::JobBatch(JobBatchIntent::Activated, batch) => {
                let jobs = batch.job_keys.iter().map(|job| (("job", *job), after(batch.timeout)));
                self.waiting.extend(jobs);
            }
            Payload::Job(JobIntent::Failed, job) if job.retries > 0 && job.retry_backoff > 0 => {
                self.waiting.insert(("job", key), after(job.retry_backoff));
            }
            Payload::Job(intent, _) if *intent != JobIntent::RetriesUpdated && *intent != JobIntent::Migrated => {
                self.waiting.remove(&("job", key));
            }
            Payload::Timer(TimerIntent::Created, timer) => {
                self.waiting.insert(("timer", key), timer.due_date);
            }
            Payload::Timer(TimerIntent::Triggered | TimerIntent::Canceled, _) => {
                self.waiting.remove(&("timer", key));
            }
            Payload::Message(MessageIntent::Published, message) => {
                self.waiting.insert(("message", key), after(message.time_to_live));
            }
            Payload::Message(MessageIntent::Expired, _) => {
                self.waiting.remove(&("message", key));
            }
            _ => {}
        }
    }

    /// Nothing has been wrong for a while, and this is the time.
    pub fn check(&self, now: Timestamp) {
        let late = self.waiting.iter().find(|(_, at)| at.saturating_add(LATE_MAX) < now);
        if let Some(((what, key), at)) = late {
            panic!("the {what} {key} was due {} ms ago, and nothing has come of it", now - at);
        }
    }
}
