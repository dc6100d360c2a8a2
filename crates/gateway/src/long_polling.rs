//! Requests for jobs that wait for a first job.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use broker::Client;
use metrics::Gauge;
use parking_lot::Mutex;
use protocol::{DEFAULT_TENANT, PartitionId, Text};
use tokio::sync::oneshot;
use tonic::{Code, Status};

use crate::job_type::{JobType, Ticket};
use crate::status::status;

/// How many job types are remembered without a request for them.
const IDLE_JOB_TYPES_MAX: usize = 10_000;

/// The job types that clients ask for, with those who wait.
pub(crate) struct LongPolling {
    job_types: Mutex<HashMap<Text, Arc<JobType>>>,
    partition_count: u16,
    parked: AtomicUsize,
    parked_max: usize,
    gauge: Gauge,
}

impl LongPolling {
    /// Makes the registry and has `client` report available jobs to it.
    pub(crate) fn new(client: &Client, parked_max: usize) -> Arc<Self> {
        let polling = Arc::new(LongPolling {
            job_types: Mutex::default(),
            partition_count: client.partition_count(),
            parked: AtomicUsize::new(0),
            parked_max,
            gauge: metrics::gauge!("zeebe_long_polling_queued_current"),
        });
        let weak = Arc::downgrade(&polling);
        client.on_jobs_available(Arc::new(move |partition, available| {
            if let Some(polling) = weak.upgrade()
                && available.tenant_id == DEFAULT_TENANT
            {
                polling.notify(partition, &available.job_type);
            }
        }));
        polling
    }

    /// What is known about a type. It is remembered from now on, so that no notification is missed.
    pub(crate) fn job_type(&self, name: &Text) -> Arc<JobType> {
        let mut job_types = self.job_types.lock();
        if let Some(job_type) = job_types.get(name) {
            return job_type.clone();
        }
        if job_types.len() >= IDLE_JOB_TYPES_MAX {
            // Only hints are forgotten; the next request for such a type asks all partitions.
            job_types.retain(|_, job_type| Arc::strong_count(job_type) > 1);
        }
        let job_type = Arc::new(JobType::new(self.partition_count));
        job_types.insert(name.clone(), job_type.clone());
        job_type
    }

    /// Wakes requests whose partitions have been quiet for too long.
    pub(crate) fn tick(&self, now: Instant) {
        if self.parked.load(Ordering::Relaxed) == 0 {
            return;
        }
        let job_types: Vec<_> = self.job_types.lock().values().cloned().collect();
        for job_type in job_types {
            job_type.tick(now);
        }
    }

    /// Parks a request; `Ok(None)` when there is something to ask now.
    pub(crate) fn park(self: &Arc<Self>, job_type: &Arc<JobType>, ticket: Ticket) -> Result<Option<Parked>, Status> {
        let count = self.parked.fetch_add(1, Ordering::Relaxed) + 1;
        self.gauge.set(count as f64);
        // From here on the guard counts down and leaves the queue.
        let mut parked = Parked { polling: self.clone(), job_type: job_type.clone(), ticket, woken: None };
        if count > self.parked_max {
            return Err(status(
                Code::ResourceExhausted,
                format!(
                    "The limit of {} requests that wait for jobs at this gateway (parked-polls-max) is reached. Please try again later, or let fewer workers poll.",
                    self.parked_max
                ),
            ));
        }
        parked.woken = job_type.park(ticket);
        Ok(parked.woken.is_some().then_some(parked))
    }

    fn notify(&self, partition: PartitionId, name: &Text) {
        let job_type = self.job_types.lock().get(name).cloned();
        if let Some(job_type) = job_type {
            job_type.notify(partition);
        }
    }
}

/// A request in the queue of its type.
pub(crate) struct Parked {
    polling: Arc<LongPolling>,
    job_type: Arc<JobType>,
    ticket: Ticket,
    woken: Option<oneshot::Receiver<()>>,
}

impl Parked {
    /// Waits until there may be work for this request.
    pub(crate) async fn woken(mut self) {
        if let Some(woken) = &mut self.woken {
            // An error means that the queue is gone, so there is nothing to wait for.
            let _ = woken.await;
            // Woken and about to ask: the turn is used.
            self.woken = None;
        }
    }
}

impl Drop for Parked {
    fn drop(&mut self) {
        let before = self.polling.parked.fetch_sub(1, Ordering::Relaxed);
        self.polling.gauge.set(before.saturating_sub(1) as f64);
        if self.woken.is_some() {
            self.job_type.leave(self.ticket);
        }
    }
}
