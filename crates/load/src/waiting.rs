//! Creates instances that wait at a task without a worker.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::Serialize;
use tokio::sync::Semaphore;

use crate::connection::{connect, describe_server};
use crate::error::LoadError;
use crate::figures::{Failures, Latencies, Quantiles};
use crate::model::Tag;
use crate::options::{Options, Profile, WaitingOptions};
use crate::process_statistics::{ProcessUse, Usage};
use crate::report::Context;
use crate::schedule::Timeline;
use crate::session::{creator, deploy};

const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(20);
/// Without a success for so long the run gives up.
const PATIENCE: Duration = Duration::from_secs(30);

/// What creating the waiting instances took.
#[derive(Clone, Debug, Serialize)]
pub struct WaitingReport {
    /// Instances acknowledged.
    pub created: u64,
    /// Creations that failed; each was made up for by another.
    pub rejected_creations: Failures,
    /// In seconds.
    pub seconds: f64,
    /// Instances per second.
    pub created_per_second: f64,
    /// From sending to acknowledgement; a closed loop, so that a slow server is asked less.
    pub creation_latency: Quantiles,
    /// Processor time and memory of the server.
    pub server: Option<ProcessUse>,
    /// Microseconds of processor time of the server for each instance.
    pub server_cpu_microseconds_per_instance: Option<f64>,
    /// Processor time and memory of the load generator.
    pub own: Option<ProcessUse>,
}

struct Progress {
    created: AtomicU64,
    outcome: std::sync::Mutex<(Latencies, Failures)>,
}

pub(crate) async fn run(options: &Options, waiting: &WaitingOptions) -> Result<(Context, WaitingReport), LoadError> {
    let clients = connect(options, options.connections).await?;
    let server = describe_server(&clients[0], options.request_timeout).await?;
    let names = deploy(&clients[0], Profile::OneTask, options.request_timeout).await?;
    let creator = creator(options, clients, &names, waiting.payload_bytes);
    let timeline = Timeline::start_now();
    let progress = Arc::new(Progress {
        created: AtomicU64::new(0),
        outcome: std::sync::Mutex::new((Latencies::new(), Failures::default())),
    });
    let in_flight = Arc::new(Semaphore::new(waiting.in_flight));
    let before = Usage::take(&options.server_pids)?;
    let mut started = 0_u64;
    let mut reported = (0, Duration::ZERO);
    let mut last_success = (0, Duration::ZERO);
    loop {
        let permit = Arc::clone(&in_flight).acquire_owned().await.expect("the semaphore is never closed");
        let created = progress.created.load(Ordering::Relaxed);
        let now = timeline.now();
        if created > last_success.0 {
            last_success = (created, now);
        }
        if created >= waiting.instances || now > last_success.1 + PATIENCE {
            break;
        }
        if options.progress && now >= reported.1 + Duration::from_secs(1) {
            let (seconds, rate) = (now.as_secs(), created - reported.0);
            eprintln!("{seconds:>5} s  created {created:>9} of {}  {rate:>7}/s", waiting.instances);
            reported = (created, now);
        }
        // Never more on their way than are missing.
        let others = (waiting.in_flight - 1 - in_flight.available_permits()) as u64;
        if created + others >= waiting.instances {
            drop(permit);
            tokio::time::sleep(Duration::from_millis(1)).await;
            continue;
        }
        let number = started;
        started += 1;
        let (creator, progress) = (creator.clone(), Arc::clone(&progress));
        tokio::spawn(async move {
            let sent = timeline.now();
            let result = creator.create(number, Tag(number)).await;
            let failed = result.is_err();
            progress.record(timeline.now() - sent, result);
            if failed {
                tokio::time::sleep(PAUSE_AFTER_FAILURE).await;
            }
            drop(permit);
        });
    }
    let seconds = timeline.now().as_secs_f64();
    let (server_use, own) = Usage::take(&options.server_pids)?.since(&before);
    let created = progress.created.load(Ordering::Relaxed);
    let outcome = progress.outcome();
    let report = WaitingReport {
        created,
        rejected_creations: outcome.1.clone(),
        seconds,
        created_per_second: created as f64 / seconds,
        creation_latency: outcome.0.quantiles(),
        server_cpu_microseconds_per_instance: server_use.and_then(|server| server.cpu_microseconds_per(created)),
        server: server_use,
        own,
    };
    Ok((Context::new(server, Some(&names), created_nothing(&report)), report))
}

/// A hint for the reader when the run gave up.
fn created_nothing(report: &WaitingReport) -> Option<String> {
    (report.created == 0).then(|| "No creation succeeded; see the failures.".to_owned())
}

impl Progress {
    fn outcome(&self) -> std::sync::MutexGuard<'_, (Latencies, Failures)> {
        self.outcome.lock().expect("nothing that holds the outcome panics")
    }

    fn record(&self, latency: Duration, result: Result<(), tonic::Status>) {
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
