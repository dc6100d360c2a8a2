//! Creates instances that are to wait, as fast as the server takes them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::Semaphore;
use tonic::Status;

use crate::figures::{Failures, Latencies};
use crate::model::Tag;
use crate::schedule::Timeline;
use crate::starter::Creator;

const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(20);
/// The run gives up when nothing has succeeded for this long.
const PATIENCE: Duration = Duration::from_secs(30);

/// Tags the instances and follows what becomes of them.
pub(crate) trait Tags: Clone + Send + 'static {
    /// The tag of an instance that is about to be created. None when there is no room for another.
    fn begin(&self, number: u64) -> Option<Tag>;
    fn created(&self, tag: Tag);
    fn failed(&self, tag: Tag, status: &Status);
}

/// Creates instances of one process in a closed loop: a slow server is asked less.
pub(crate) struct Beforehand {
    pub creator: Creator,
    pub kind: usize,
    pub timeline: Timeline,
    pub in_flight: usize,
    /// Not later than this.
    pub end: Duration,
    pub progress: bool,
}

/// What creating them took.
pub(crate) struct CreatedBeforehand {
    pub created: u64,
    /// Creations that failed; each was replaced by another.
    pub rejected: Failures,
    pub seconds: f64,
    pub latency: Latencies,
}

struct Progress {
    created: AtomicU64,
    outcome: Mutex<(Latencies, Failures)>,
}

impl Beforehand {
    /// Creates this many instances, or fewer when nothing succeeds any more or the time is up.
    pub async fn create(&self, instances: u64, tags: &impl Tags) -> CreatedBeforehand {
        let progress = Arc::new(Progress {
            created: AtomicU64::new(0),
            outcome: Mutex::new((Latencies::new(), Failures::default())),
        });
        let in_flight = Arc::new(Semaphore::new(self.in_flight));
        let start = self.timeline.now();
        let mut started = 0_u64;
        let mut reported = (0, start);
        let mut last_success = (0, start);
        loop {
            let permit = Arc::clone(&in_flight).acquire_owned().await.expect("the semaphore is never closed");
            let created = progress.created.load(Ordering::Relaxed);
            let now = self.timeline.now();
            if created > last_success.0 {
                last_success = (created, now);
            }
            if created >= instances || now > last_success.1 + PATIENCE || now >= self.end {
                break;
            }
            if self.progress && now >= reported.1 + Duration::from_secs(1) {
                let (seconds, rate) = ((now - start).as_secs(), created - reported.0);
                eprintln!("{seconds:>5} s  created {created:>9} of {instances}  {rate:>7}/s");
                reported = (created, now);
            }
            // Never more in flight than are missing.
            let others = (self.in_flight - 1 - in_flight.available_permits()) as u64;
            let tag = if created + others < instances { tags.begin(started) } else { None };
            let Some(tag) = tag else {
                drop(permit);
                tokio::time::sleep(Duration::from_millis(1)).await;
                continue;
            };
            let (number, kind) = (started, self.kind);
            started += 1;
            let (creator, progress, tags) = (self.creator.clone(), Arc::clone(&progress), tags.clone());
            let timeline = self.timeline;
            tokio::spawn(async move {
                let sent = timeline.now();
                let result = creator.create(kind, number, tag, |_| ()).await.map(drop);
                match &result {
                    Ok(()) => tags.created(tag),
                    Err(status) => tags.failed(tag, status),
                }
                let failed = result.is_err();
                progress.record(timeline.now() - sent, result);
                if failed {
                    tokio::time::sleep(PAUSE_AFTER_FAILURE).await;
                }
                drop(permit);
            });
        }
        let outcome = progress.outcome();
        CreatedBeforehand {
            created: progress.created.load(Ordering::Relaxed),
            rejected: outcome.1.clone(),
            seconds: (self.timeline.now() - start).as_secs_f64(),
            latency: outcome.0.clone(),
        }
    }
}

impl Progress {
    fn outcome(&self) -> MutexGuard<'_, (Latencies, Failures)> {
        self.outcome.lock().expect("nothing that holds the outcome panics")
    }

    fn record(&self, latency: Duration, result: Result<(), Status>) {
        let mut outcome = self.outcome();
        match result {
            Ok(()) => {
                outcome.0.record(latency);
                self.created.fetch_add(1, Ordering::Relaxed);
            }
            Err(status) => outcome.1.record(&status),
        }
    }
}
