//! What workers do.

use std::sync::Arc;

use protocol::*;

use super::{Driver, TENANT};
use crate::cluster::Outcome;
use crate::names::{ERRORS, JOB_TYPES, VARIABLES, name};

impl Driver<'_, '_> {
    fn job(&mut self) -> Key {
        self.key(|cluster| &cluster.known.jobs)
    }

    fn submit_job(&mut self, key: Key, intent: JobIntent, value: JobValue) -> Outcome {
        self.submit(key, Payload::Job(intent, Arc::new(value)))
    }

    pub(super) fn complete_job(&mut self) -> Outcome {
        let value = JobValue { variables: self.variables(), ..JobValue::default() };
        let key = self.job();
        self.submit_job(key, JobIntent::Complete, value)
    }

    /// Several at once, the oldest first.
    pub(super) fn complete_jobs(&mut self) -> Outcome {
        let value = JobValue { variables: self.variables(), ..JobValue::default() };
        let count = 1 + self.choices.size(500);
        let jobs: Vec<Key> = self.cluster.known.jobs.iter().rev().take(count).rev().copied().collect();
        self.note(&format!("complete {} jobs with {}", jobs.len(), &*value.variables));
        for key in jobs {
            let partition = self.cluster.partition_of(key);
            self.cluster.submit(partition, key, Payload::Job(JobIntent::Complete, Arc::new(value.clone())))?;
        }
        Ok(())
    }

    pub(super) fn fail_job(&mut self) -> Outcome {
        let value = JobValue {
            retries: self.choices.pick(&[0, 1, 3, -1, i32::MAX]),
            retry_backoff: self.choices.pick(&[0, 5_000, i64::MAX, -1]),
            error_message: "x".repeat(self.choices.size(100_000)).into(),
            variables: self.variables(),
            ..JobValue::default()
        };
        let key = self.job();
        self.submit_job(key, JobIntent::Fail, value)
    }

    pub(super) fn throw_error(&mut self) -> Outcome {
        let value = JobValue {
            error_code: name(&mut self.choices, ERRORS).into(),
            error_message: "message".into(),
            variables: self.variables(),
            ..JobValue::default()
        };
        let key = self.job();
        self.submit_job(key, JobIntent::ThrowError, value)
    }

    pub(super) fn update_job(&mut self) -> Outcome {
        let intents = [JobIntent::UpdateRetries, JobIntent::UpdateTimeout, JobIntent::Update, JobIntent::Yield];
        let intent = self.choices.pick(&intents);
        let value = JobValue {
            retries: self.choices.pick(&[1, 0, 3, -1, i32::MAX]),
            timeout: self.choices.pick(&[1_000, 0, -1, i64::MAX]),
            changed_attributes: vec!["retries".into(), "timeout".into()],
            ..JobValue::default()
        };
        let key = self.job();
        self.submit_job(key, intent, value)
    }

    pub(super) fn activate_jobs(&mut self) -> Outcome {
        let value = JobBatchValue {
            job_type: name(&mut self.choices, JOB_TYPES).into(),
            worker: "worker".into(),
            timeout: self.choices.pick(&[60_000, 1, 5_000, i64::MAX]),
            max_jobs_to_activate: self.choices.pick(&[10, 1, 1_000, i32::MAX, 0, -1]),
            tenant_ids: vec![TENANT.into()],
            fetch_variables: self.fetched(),
            ..JobBatchValue::default()
        };
        let partition = self.partition();
        self.submit_to(partition, Key::NONE, Payload::JobBatch(JobBatchIntent::Activate, Box::new(value)))
    }

    fn fetched(&mut self) -> Vec<Text> {
        (0..self.choices.size(300)).map(|number| VARIABLES[number % VARIABLES.len()].into()).collect()
    }

    pub(super) fn stream(&mut self) -> Outcome {
        let intents = [
            JobStreamIntent::Add,
            JobStreamIntent::Grant,
            JobStreamIntent::Remove,
            JobStreamIntent::Add,
            JobStreamIntent::Yield,
        ];
        let intent = self.choices.pick(&intents);
        let behind = self.choices.below(3) as u64;
        // Now and then one is added again.
        if intent == JobStreamIntent::Add && behind > 0 {
            self.streams += 1;
        }
        let number = if intent == JobStreamIntent::Add { self.streams } else { self.streams.saturating_sub(behind) };
        let value = JobStreamValue {
            stream: StreamId { node: 0, number },
            job_type: name(&mut self.choices, JOB_TYPES).into(),
            worker: "stream".into(),
            timeout: self.choices.pick(&[60_000, 1, i64::MAX]),
            fetch_variables: self.fetched(),
            tenant_ids: vec![TENANT.into()],
            granted: JobAmount {
                jobs: self.choices.pick(&[10, 0, 1, 1_000, u64::MAX]),
                bytes: self.choices.pick(&[4 << 20, 1, 0, u64::MAX]),
            },
            used: JobAmount { jobs: self.choices.pick(&[0, 0, 3, u64::MAX]), bytes: 0 },
            delivered: self.choices.pick(&[0, 1, 5, u64::MAX]),
        };
        let partition = self.partition();
        self.submit_to(partition, Key::NONE, Payload::JobStream(intent, Box::new(value)))
    }

    /// The answer to a poll was not delivered, or all up to it were.
    pub(super) fn poll(&mut self) -> Outcome {
        let partition = self.partition();
        let intent = self.choices.pick(&[JobPollIntent::Yield, JobPollIntent::Acknowledge]);
        let number = self.cluster.requests().saturating_sub(self.choices.below(30) as u64);
        let mut job_keys = Vec::new();
        if self.choices.below(3) == 0 {
            job_keys.extend((0..3).map(|_| self.job()));
        }
        let value = JobPollValue { node: 0, number, job_keys };
        self.submit_to(partition, Key::NONE, Payload::JobPoll(intent, Box::new(value)))
    }
}
