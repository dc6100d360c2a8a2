//! Requests for jobs that wait for a first job.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use broker::Client;
use metrics::Gauge;
use parking_lot::Mutex;
use protocol::{PartitionId, Text};
use tokio::sync::{Semaphore, oneshot};

use crate::job_type::{JobType, Ticket};
use crate::outcome::Failure;

/// How many job types are remembered without a request for them.
const IDLE_JOB_TYPES_MAX: usize = 10_000;

/// How many requests whose time is over are answered before others have their turn.
const EXPIRED_AT_ONCE: usize = 16;

/// The job types that clients ask for, with those who wait.
pub(crate) struct LongPolling {
    job_types: Mutex<JobTypes>,
    client: Client,
    parked: AtomicUsize,
    parked_max: usize,
    expired: Semaphore,
    gauge: Gauge,
}

/// What is known about the jobs of a type that belong to some tenants: those of one tenant are no hint for those who may
/// not have them.
struct OfTenants {
    /// In order and without duplicates.
    tenant_ids: Vec<Text>,
    job_type: Arc<JobType>,
}

/// All that is known, by the name of the type.
#[derive(Default)]
struct JobTypes {
    by_name: HashMap<Text, Vec<OfTenants>>,
    count: usize,
}

impl JobTypes {
    fn find(&self, name: &Text, tenant_ids: &[Text]) -> Option<&Arc<JobType>> {
        let of_name = self.by_name.get(name)?;
        of_name.iter().find(|one| one.tenant_ids == tenant_ids).map(|one| &one.job_type)
    }

    fn add(&mut self, name: &Text, tenant_ids: &[Text], job_type: Arc<JobType>) {
        self.by_name.entry(name.clone()).or_default().push(OfTenants { tenant_ids: tenant_ids.to_vec(), job_type });
        self.count += 1;
    }

    /// Forgets what no request holds.
    fn forget_idle(&mut self) {
        self.by_name.retain(|_, of_name| {
            of_name.retain(|one| Arc::strong_count(&one.job_type) > 1);
            !of_name.is_empty()
        });
        self.count = self.by_name.values().map(Vec::len).sum();
    }

    fn all(&self) -> impl Iterator<Item = &Arc<JobType>> {
        self.by_name.values().flatten().map(|one| &one.job_type)
    }

    /// Those who want jobs of this tenant.
    fn of_tenant(&self, name: &Text, tenant_id: &Text) -> Vec<Arc<JobType>> {
        let of_name = self.by_name.get(name).into_iter().flatten();
        of_name.filter(|one| one.tenant_ids.contains(tenant_id)).map(|one| one.job_type.clone()).collect()
    }
}

impl LongPolling {
    /// Makes the registry and has `client` report available jobs to it.
    pub(crate) fn new(client: &Client, parked_max: usize) -> Arc<Self> {
        let polling = Arc::new(LongPolling {
            job_types: Mutex::default(),
            client: client.clone(),
            parked: AtomicUsize::new(0),
            parked_max,
            expired: Semaphore::new(EXPIRED_AT_ONCE),
            gauge: metrics::gauge!("zeebe_long_polling_queued_current"),
        });
        let weak = Arc::downgrade(&polling);
        client.on_jobs_available(Arc::new(move |partition, available| {
            if let Some(polling) = weak.upgrade() {
                polling.notify(partition, &available.job_type, &available.tenant_id);
            }
        }));
        polling
    }

    /// What is known about the jobs of a type that belong to these tenants. It is remembered from now on, so that no
    /// notification is missed.
    pub(crate) fn job_type(&self, name: &Text, tenant_ids: &[Text]) -> Arc<JobType> {
        let partitions: Vec<_> = self.client.partition_ids().collect();
        let mut job_types = self.job_types.lock();
        if let Some(job_type) = job_types.find(name, tenant_ids) {
            job_type.know(&partitions);
            return job_type.clone();
        }
        if job_types.count >= IDLE_JOB_TYPES_MAX {
            // Only hints are forgotten; the next request for such a type asks all partitions.
            job_types.forget_idle();
        }
        let job_type = Arc::new(JobType::new(partitions.into_iter()));
        job_types.add(name, tenant_ids, job_type.clone());
        job_type
    }

    /// Wakes requests whose partitions have been quiet for too long.
    pub(crate) fn tick(&self, now: Instant) {
        if self.parked.load(Ordering::Relaxed) == 0 {
            return;
        }
        let job_types: Vec<_> = self.job_types.lock().all().cloned().collect();
        let partitions: Vec<_> = self.client.partition_ids().collect();
        for job_type in job_types {
            job_type.know(&partitions);
            job_type.tick(now);
        }
    }

    /// Parks a request; `Ok(None)` when there is something to ask now.
    pub(crate) fn park(self: &Arc<Self>, job_type: &Arc<JobType>, ticket: Ticket) -> Result<Option<Parked>, Failure> {
        let count = self.parked.fetch_add(1, Ordering::Relaxed) + 1;
        self.gauge.set(count as f64);
        // From here on the guard counts down and leaves the queue.
        let mut parked = Parked { polling: self.clone(), job_type: job_type.clone(), ticket, woken: None };
        if count > self.parked_max {
            return Err(Failure::Exhausted(format!(
                "The limit of {} requests that wait for jobs at this gateway (parked-polls-max) is reached. Please try again later, or let fewer workers poll.",
                self.parked_max
            )));
        }
        parked.woken = job_type.park(ticket);
        Ok(parked.woken.is_some().then_some(parked))
    }

    /// Waits for its turn to be answered that there was nothing. The time of many requests may be over at once: together
    /// they would hold up everybody else for as long as all their answers take.
    pub(crate) async fn give_way(&self) {
        // An error means that nobody counts any more.
        let _turn = self.expired.acquire().await;
        tokio::task::yield_now().await;
    }

    fn notify(&self, partition: PartitionId, name: &Text, tenant_id: &Text) {
        let interested = self.job_types.lock().of_tenant(name, tenant_id);
        interested.iter().for_each(|job_type| job_type.notify(partition));
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

#[cfg(test)]
mod tests {
    use super::*;

    fn tenants(ids: &[&str]) -> Vec<Text> {
        ids.iter().map(|id| Text::from(*id)).collect()
    }

    #[test]
    fn jobs_of_one_tenant_are_no_hint_for_those_who_may_not_have_them() {
        let mut job_types = JobTypes::default();
        let name = Text::from("work");
        let [of_a, of_b, of_both] = [["a"].as_slice(), &["b"], &["a", "b"]].map(|ids| {
            let job_type = Arc::new(JobType::new([PartitionId(1)].into_iter()));
            job_types.add(&name, &tenants(ids), job_type.clone());
            job_type
        });
        let interested = job_types.of_tenant(&name, &"b".into());
        let is_interested = |one: &Arc<JobType>| interested.iter().any(|other| Arc::ptr_eq(one, other));
        assert!(!is_interested(&of_a) && is_interested(&of_b) && is_interested(&of_both));
        assert!(Arc::ptr_eq(job_types.find(&name, &tenants(&["a", "b"])).unwrap(), &of_both));
        assert!(job_types.of_tenant(&"other".into(), &"b".into()).is_empty());
    }

    #[test]
    fn only_what_nobody_asks_for_is_forgotten() {
        let mut job_types = JobTypes::default();
        let held = Arc::new(JobType::new([PartitionId(1)].into_iter()));
        job_types.add(&"held".into(), &tenants(&["a"]), held.clone());
        job_types.add(&"held".into(), &tenants(&["b"]), Arc::new(JobType::new([PartitionId(1)].into_iter())));
        job_types.add(&"idle".into(), &tenants(&["a"]), Arc::new(JobType::new([PartitionId(1)].into_iter())));
        assert_eq!((job_types.count, job_types.all().count()), (3, 3));
        job_types.forget_idle();
        assert_eq!((job_types.count, job_types.all().count()), (1, 1));
        assert!(job_types.find(&"held".into(), &tenants(&["a"])).is_some());
    }
}
