//! Activated jobs on their way to a client.

use std::sync::Arc;

use broker::{Client, Delivery};
use protocol::{Command, JobIntent, JobValue, Key, Payload};

/// Jobs that no client has yet. Whatever happens to the request, they are not lost: dropped undelivered, they are given
/// back to their partitions at once instead of staying locked until their time-out.
pub(crate) struct Undelivered {
    client: Client,
    jobs: Vec<(Key, JobValue)>,
    /// Dropped last: while it is there, the partition keeps the jobs for this node.
    delivery: Arc<Delivery>,
}

impl Undelivered {
    pub(crate) fn new(client: Client, delivery: Delivery, keys: Vec<Key>, jobs: Vec<JobValue>) -> Self {
        Undelivered { client, jobs: keys.into_iter().zip(jobs).collect(), delivery: Arc::new(delivery) }
    }

    pub(crate) fn len(&self) -> usize {
        self.jobs.len()
    }

    /// Upper bound of the bytes of these jobs in a response.
    pub(crate) fn bytes(&self) -> usize {
        self.jobs.iter().map(|(_, job)| job.message_bytes()).sum()
    }

    /// The first jobs that fit `bytes_max`, at least one; the others stay here.
    pub(crate) fn take_fitting(&mut self, bytes_max: usize) -> Undelivered {
        let mut bytes = 0usize;
        let fitting = self.jobs.iter().take_while(|(_, job)| {
            bytes = bytes.saturating_add(job.message_bytes());
            bytes <= bytes_max
        });
        let count = fitting.count().max(1).min(self.jobs.len());
        let rest = self.jobs.split_off(count);
        let jobs = std::mem::replace(&mut self.jobs, rest);
        Undelivered { client: self.client.clone(), jobs, delivery: self.delivery.clone() }
    }

    /// Hands the jobs over; from here on they are the client's.
    pub(crate) fn deliver(mut self) -> Vec<(Key, JobValue)> {
        std::mem::take(&mut self.jobs)
    }
}

impl Drop for Undelivered {
    fn drop(&mut self) {
        for (key, _) in self.jobs.drain(..) {
            give_back(&self.client, key);
        }
    }
}

/// Makes an activated job available again, for streams and polls alike.
fn give_back(client: &Client, key: Key) {
    let Some(partition) = key.partition() else {
        return;
    };
    let command = Command::new(key, Payload::Job(JobIntent::Yield, Arc::new(JobValue::default())));
    if let Err(error) = client.send(partition, command) {
        // The lock of the job ends by itself.
        tracing::warn!(%key, %error, "cannot give back a job whose client is gone; it waits for its time-out");
    }
}
